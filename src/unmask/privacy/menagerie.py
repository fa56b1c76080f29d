"""The biometric menagerie: who is hard to recognise, and who is easily taken for someone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unmask.base import BoolArray, FloatArray, IntArray, Tabular
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.similarity import SimilaritySet
from unmask.trials import Scores

CORNERS = ("doves", "chameleons", "phantoms", "worms")


@dataclass(frozen=True)
class Corner:
    """Speakers in one corner of the zoo plot, against what chance would put there.

    Under chance the quartile a speaker has on one axis says nothing about the other: the number is
    hypergeometric. ``p_value`` is the probability of at least as many.
    """

    animal: str
    speakers: tuple[str, ...]
    expected: float
    p_value: float

    @property
    def count(self) -> int:
        return len(self.speakers)


@dataclass(frozen=True, eq=False, repr=False)
class Zoo(Tabular):
    """Mean target score against mean impostor score of each speaker (Dunstone and Yager 2009).

    Made by :func:`zoo`, drawn by the figure of zoo plots. ``enrolled`` and ``probing`` are the mean
    impostor scores as the enrolled and as the test speaker; ``impostor`` is the mean over both.
    Scores are oracle LLRs for matrices, and what the list holds for lists. ``share`` of all
    speakers are goats, lambs and wolves (at least one each).
    """

    speakers: tuple[str, ...]
    target: FloatArray
    impostor: FloatArray
    enrolled: FloatArray
    probing: FloatArray
    share: float = 0.1
    score: str = "score"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 0.5:
            raise InputError(f"zoo: expected a share of 0 to 0.5, found {self.share}")
        for name in ("target", "impostor"):
            bad = np.flatnonzero(~np.isfinite(getattr(self, name)))
            if bad.size:
                raise InputError(
                    f"zoo: speaker {self.speakers[bad[0]]} has no finite mean {name} score"
                )

    @cached_property
    def animals(self) -> Mapping[str, tuple[str, ...]]:
        """Doddington's kinds. Goats: the lowest target means; lambs: the highest impostor means as
        the enrolled speaker; wolves: the same as the test speaker; sheep: everyone else. A speaker
        can be of several kinds but the sheep.
        """
        number = max(1, int(np.floor(self.share * len(self.speakers))))
        chosen = {
            "goats": _first(self.target, number),
            "lambs": _first(-self.enrolled, number),
            "wolves": _first(-self.probing, number),
        }
        rest = ~np.logical_or.reduce(list(chosen.values()))
        return {name: self._names(mask) for name, mask in {"sheep": rest, **chosen}.items()}

    @cached_property
    def quartiles(self) -> Mapping[str, tuple[float, float]]:
        """Lower and upper quartile of each axis."""
        axes = {"target": self.target, "impostor": self.impostor}
        ends = {name: np.quantile(values, [0.25, 0.75]) for name, values in axes.items()}
        return {name: (float(low), float(high)) for name, (low, high) in ends.items()}

    @cached_property
    def corners(self) -> Mapping[str, Corner]:
        """Doves (easily recognised, rarely confused), chameleons (high on both axes), phantoms (low
        on both) and worms (hardly recognised, often confused), by the outer quartiles; where both
        quartiles of an axis are the same, who has just that value is in no corner.
        """
        from scipy.stats import hypergeom

        ends = {name: (getattr(self, name), *q) for name, q in self.quartiles.items()}
        low = {n: (x <= first) & (x < last) for n, (x, first, last) in ends.items()}
        high = {n: (x >= last) & (x > first) for n, (x, first, last) in ends.items()}
        sides = {
            "doves": (high["target"], low["impostor"]),
            "chameleons": (high["target"], high["impostor"]),
            "phantoms": (low["target"], low["impostor"]),
            "worms": (low["target"], high["impostor"]),
        }
        corners, size = {}, len(self.speakers)
        for name, (first, second) in sides.items():
            inside, a, b = first & second, int(first.sum()), int(second.sum())
            p_value = float(hypergeom.sf(int(inside.sum()) - 1, size, a, b))
            corners[name] = Corner(name, self._names(inside), a * b / size, p_value)
        return corners

    @property
    def parts(self) -> Mapping[str, Corner]:
        """The corners by their animals."""
        return self.corners

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """How many speakers each corner holds, beside what chance would put there."""
        n, reason = {"speakers": len(self.speakers)}, "a count: the corner has its p-value"
        return tuple(
            Estimate(name, float(corner.count), chance=corner.expected, n=n, no_interval=reason)
            for name, corner in self.corners.items()
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per speaker: mean scores, and the corner."""
        names = ("target", "impostor", "enrolled", "probing")
        means = zip(*(getattr(self, name).tolist() for name in names), strict=True)
        every = zip(self.speakers, self.corner_of(), means, strict=True)
        return [
            {"speaker": who, **dict(zip(names, own, strict=True)), "corner": corner}
            for who, corner, own in every
        ]

    def _names(self, mask: BoolArray) -> tuple[str, ...]:
        return tuple(self.speakers[i] for i in np.flatnonzero(mask))

    def corner_of(self) -> tuple[str, ...]:
        """The corner that each speaker is in, empty for those in none."""
        corners = {name: kind for kind in CORNERS for name in self.corners[kind].speakers}
        return tuple(corners.get(name, "") for name in self.speakers)


def _first(values: FloatArray, number: int) -> BoolArray:
    """The lowest values; ties at the edge go in together."""
    return np.asarray(values <= np.partition(values, number - 1)[number - 1])


def zoo(scores: Scores | SimilaritySet, *, system: str | None = None, share: float = 0.1) -> Zoo:
    """Who is hard to recognise, and who is easily taken for someone else.

    Mean target score against mean impostor score of each speaker (Dunstone and Yager 2009).

    Parameters
    ----------
    scores
        A table with the speakers on both sides of each trial, whose scores are taken as they are;
        or a :class:`~unmask.privacy.SimilaritySet`, of which the mean oracle LLRs are.
    system
        Of a table: which scores, where there are several.
    share
        How many of the speakers are goats, lambs and wolves each, at least one.

    Returns
    -------
    Zoo
        The means of each speaker, ``animals`` by kind, and the ``corners`` against chance.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> who = list("abcd")
    >>> means = np.array([[9, 1, 1, 1], [1, 2, 1, 1], [1, 1, 9, 5], [1, 1, 1, 8]])
    >>> enrol, test = (um.Ids.from_strings(names) for names in (np.repeat(who, 4), np.tile(who, 4)))
    >>> sides = {"enrol_speaker": enrol, "test_speaker": test}
    >>> trials = um.Scores(None, None, None, **sides, systems={"cosine": means.ravel() * 1.0})
    >>> animals = um.zoo(trials).animals
    >>> print(*(f"{kind} {animals[kind]}" for kind in ("goats", "lambs", "wolves")))
    goats ('b',) lambs ('c',) wolves ('d',)
    """
    if isinstance(scores, SimilaritySet):
        own, score = (scores.speakers, scores.sums.llr, scores.sums.count), "oracle LLR"
    else:
        own, score = _of_list(scores, system), "score"
    speakers, total, number = own
    off = ~np.eye(len(speakers), dtype=bool)
    other, times = total * off, number * off
    with np.errstate(invalid="ignore", divide="ignore"):
        return Zoo(
            speakers,
            np.diag(total) / np.diag(number),
            (other.sum(axis=1) + other.sum(axis=0)) / (times.sum(axis=1) + times.sum(axis=0)),
            other.sum(axis=1) / times.sum(axis=1),
            other.sum(axis=0) / times.sum(axis=0),
            share,
            score,
        )


def _of_list(scores: Scores, system: str | None) -> tuple[tuple[str, ...], FloatArray, IntArray]:
    """The speakers, and the sum and number of the scores of every ordered pair of them."""
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError("zoo: expected speakers on both sides of each trial, found none")
    codes = np.stack([scores.enrol_speaker.codes, scores.test_speaker.codes])
    values = scores.scores(system)
    if scores.label is not None:
        counted = scores.is_target | scores.is_nontarget
        codes, values = codes[:, counted], values[counted]
    used, dense = np.unique(codes, return_inverse=True)
    enrol, test = dense.reshape(codes.shape)
    size = used.size
    pair = enrol * size + test
    total = np.bincount(pair, values, minlength=size * size).astype(np.float64)
    number = np.bincount(pair, minlength=size * size)
    names = tuple(str(scores.enrol_speaker.names[int(code)]) for code in used)
    return names, total.reshape(size, size), number.reshape(size, size)
