"""Scores grouped by (target speaker, impostor speaker) pair, what an adversary has to choose from;
made from what users have: score lists with speaker ids, embeddings, arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, as_numbers, reject_nan
from unmask.engine import group_masks
from unmask.errors import InputError
from unmask.scoring import Backend, backend_named, sides_of
from unmask.stress.tables import Table, as_table, is_table
from unmask.trials import Embeddings, Ids, Scores, text_ids

LEAST_SPEAKERS = 3
TIE = 2.0**-40


class Targets(ABC):
    """Speakers who are attacked, each by so many ``impostors``."""

    target_names: tuple[str, ...]

    @property
    @abstractmethod
    def impostors(self) -> IntArray:
        """Number of impostors M of each target."""

    @property
    def max_count(self) -> int:
        """Largest N for which every target has N impostors."""
        return int(self.impostors.min())

    def check_speakers(self) -> None:
        """Enough targets, and enough impostors for each of them."""
        if len(self.target_names) < LEAST_SPEAKERS:
            raise InputError("targets", f"at least {LEAST_SPEAKERS}", len(self.target_names))
        if self.max_count < LEAST_SPEAKERS:
            least = f"at least {LEAST_SPEAKERS} for every target"
            raise InputError("impostors", least, f"{self.max_count} for {self._fewest}")

    def possible(self, counts: npt.ArrayLike) -> IntArray:
        """Whole counts from 1 to the fewest impostors that any target has."""
        values = as_counts(counts)
        if values.max() > self.max_count:
            raise InputError(
                f"counts: expected at most {self.max_count}, the number of impostors of target"
                f" {self._fewest}, found {values.max()} (larger populations need extrapolate)"
            )
        return values

    @property
    def _fewest(self) -> str:
        return self.target_names[int(self.impostors.argmin())]


@dataclass(frozen=True, eq=False)
class PairScores(Targets):
    """Scores of every (target, impostor) pair; :func:`~unmask.stress.speaker_pairs` makes them of
    data.

    Pair p is of target ``target[p]`` and impostor ``impostor[p]`` (codes into the two tables of
    names) and owns ``scores[start[p]:start[p + 1]]``. ``skipped`` counts pairs that were left out
    on request because they had a single score. ``means`` are the mean scores of the pairs where
    only some of the scores are kept: those that choose would else be those that attack.
    """

    scores: FloatArray
    start: IntArray
    target: IntArray
    impostor: IntArray
    target_names: tuple[str, ...]
    impostor_names: tuple[str, ...]
    skipped: int = 0
    means: FloatArray | None = None

    @classmethod
    def from_array(
        cls, scores: npt.ArrayLike, *, present: npt.ArrayLike | None = None
    ) -> PairScores:
        """From targets × impostors × scores-per-pair; ``present`` (same shape, or without the last
        axis) marks what exists: for a square array of one set of speakers, all but the diagonal.
        """
        cube = as_numbers(scores, "pair scores")
        if cube.ndim != 3:
            raise InputError("pair scores", "targets × impostors × scores", f"shape {cube.shape}")
        mask = np.asarray(True if present is None else present, dtype=np.bool_)
        if mask.shape not in ((), cube.shape, cube.shape[:2]):
            raise InputError(f"present: expected shape {cube.shape}, found {mask.shape}")
        if present is None and not cube.size:
            raise InputError(f"pair scores: expected numbers, found an empty {cube.shape}")
        mask = np.broadcast_to(mask[:, :, None] if mask.ndim == 2 else mask, cube.shape)
        sizes = mask.sum(axis=2)
        target, impostor = np.nonzero(sizes)
        return cls(
            cube.reshape(-1) if present is None else cube[mask],
            from_zero(sizes[target, impostor]),
            target,
            impostor,
            tuple(map(str, range(cube.shape[0]))),
            tuple(map(str, range(cube.shape[1]))),
        )

    @classmethod
    def from_trials(
        cls,
        target: Ids | Iterable[str],
        impostor: Ids | Iterable[str],
        scores: npt.ArrayLike,
        *,
        both_ways: bool = False,
    ) -> PairScores:
        """From one score per line with the speakers of its two sides, different people.
        ``both_ways`` lets a score count for either of them as the target, as symmetric systems
        score.
        """
        first, second = (text_ids(side, "trials", "pair scores") for side in (target, impostor))
        values = as_numbers(scores, "trials").reshape(-1)
        if not len(first) == len(second) == values.size:
            raise InputError(
                f"trials: expected as many targets and impostors as scores ({values.size}),"
                f" found {len(first)} and {len(second)}"
            )
        if values.size == 0:
            raise InputError("trials: expected impostor scores, found none")
        both = Ids.concatenate([first, second]).alphabetical()
        left, right = np.split(both.codes.astype(np.int64), 2)
        own = left == right
        if own.any():
            raise InputError(
                f"trials: {int(own.sum())} of {own.size} compare a speaker with themselves,"
                f" the first at index {int(own.argmax())} ({both.decode(int(own.argmax()))})"
            )
        if both_ways:
            left, right = np.concatenate([left, right]), np.concatenate([right, left])
            values = np.tile(values, 2)
        names = tuple(both.names.to_list())
        key = left * len(names) + right
        pairs, sizes = np.unique(key, return_counts=True)
        present, codes = np.unique(pairs // len(names), return_inverse=True)
        return cls(
            values[np.argsort(key, kind="stable")],
            from_zero(sizes),
            codes,
            pairs % len(names),
            tuple(names[k] for k in present),
            names,
        )

    @classmethod
    def from_embeddings(
        cls,
        embeddings: Embeddings,
        backend: Backend,
        *,
        per_pair: int | None = None,
        targets: int | None = None,
        attack: BoolArray | None = None,
    ) -> PairScores:
        """From the scores of all utterances of every two speakers, as :func:`speaker_pairs` tells.
        Of the utterances, ``attack`` marks those whose scores are kept; those of the others then
        choose (all of a speaker who has no others).
        """
        sides = sides_of(backend, embeddings.vectors)
        present, speakers = np.unique(embeddings.speakers.codes, return_inverse=True)
        names = tuple(str(embeddings.speakers.names[int(code)]) for code in present)
        chosen = np.arange(len(names))
        if targets is not None:
            if targets < 1:
                raise InputError(f"targets: expected at least 1, found {targets}")
            steps = np.linspace(0, len(names) - 1, min(targets, len(names)))
            chosen = np.unique(np.rint(steps).astype(np.int64))
        attacks = np.ones(speakers.size, dtype=np.bool_) if attack is None else attack
        order = np.flatnonzero(attacks)[np.argsort(speakers[attacks], kind="stable")]
        sizes = np.bincount(speakers[attacks], minlength=len(names))
        edges, chooses = from_zero(sizes), np.ones(speakers.size, dtype=np.bool_)
        if attack is not None:
            alone = np.bincount(speakers[~attack], minlength=len(names)) == 0
            chooses = ~attack | alone[speakers]
        choosing = np.bincount(speakers[chooses], minlength=len(names))
        partly = per_pair is not None or attack is not None
        kept, counts, means = [], [], []
        for k in chosen:
            own = speakers == k
            whole = sides.enrol[own] @ sides.test.T
            block = whole[attacks[own]][:, order]
            rows = block.shape[0]
            most = np.inf if per_pair is None else per_pair
            take = np.minimum(rows * sizes, most).astype(np.int64)
            take[k] = 0
            other = np.repeat(np.arange(len(names)), take)
            place = np.arange(other.size) - from_zero(take)[other]
            row, column = place // sizes[other], place % sizes[other]
            if per_pair is not None:
                # Down the diagonals: utterances recur on either side as late as possible.
                row = place % rows
                column = (place + place // np.lcm(rows, sizes[other])) % sizes[other]
            kept.append(block[row, edges[other] + column])
            counts.append(take)
            sums = np.bincount(
                speakers[chooses], whole[chooses[own]][:, chooses].sum(axis=0), minlength=len(names)
            )
            means.append(sums / np.maximum(choosing[k] * choosing, 1))
        take = np.stack(counts)
        target, impostor = np.nonzero(take)
        return cls(
            np.concatenate(kept),
            from_zero(take[target, impostor]),
            target,
            impostor,
            tuple(names[k] for k in chosen),
            names,
            means=np.stack(means)[target, impostor] if partly else None,
        )

    def __post_init__(self) -> None:
        reject_nan(self.scores, "pair")

    def __len__(self) -> int:
        return self.target.size

    @cached_property
    def sizes(self) -> IntArray:
        """Number of scores of each pair."""
        return np.diff(self.start)

    @cached_property
    def first(self) -> IntArray:
        """Where each target's pairs begin; one more entry than targets."""
        return np.searchsorted(self.target, np.arange(len(self.target_names) + 1))

    @cached_property
    def impostors(self) -> IntArray:
        """Number of impostors M of each target."""
        return np.diff(self.first)

    @property
    def per_pair(self) -> float:
        """Median number of scores of a pair."""
        return float(np.median(self.sizes))

    @cached_property
    def similarity(self) -> FloatArray:
        """Mean score of each pair."""
        if self.means is not None:
            return self.means
        return np.asarray(np.add.reduceat(self.scores, self.start[:-1]) / self.sizes)

    @cached_property
    def deviation(self) -> FloatArray:
        """Standard deviation of each pair's scores around their mean (divisor: their number)."""
        centred = self.scores - np.repeat(self.similarity, self.sizes)
        return np.asarray(np.sqrt(np.add.reduceat(centred**2, self.start[:-1]) / self.sizes))

    def checked(self) -> PairScores:
        """The same pairs, or an error where no worst case can be told from them."""
        if len(self) == 0:
            raise InputError("pair scores: expected pairs of different speakers, found none")
        self.check_speakers()
        single = self.sizes < 2
        check_single_scores(int(single.sum()), single.size, self._pair_name(int(single.argmax())))
        infinite = int(np.isinf(self.scores).sum())
        if infinite:
            raise InputError(
                f"pair scores: {infinite} of {self.scores.size} are infinite, so their mean over a"
                " pair orders nothing"
            )
        if self.scores.min() == self.scores.max():
            raise InputError(f"pair scores: all {self.scores.size} equal {self.scores[0]}")
        return self

    def without_single_scores(self) -> PairScores:
        """Leave out the pairs that hold one score; ``skipped`` tells how many."""
        skipped = self.skipped + int((self.sizes < 2).sum())
        return replace(self.select(self.sizes > 1), skipped=skipped)

    def with_impostors(self, at_least: int) -> PairScores:
        """Leave out the targets that have fewer than ``at_least`` impostors."""
        return self.select((self.impostors >= at_least)[self.target])

    def select(self, keep: BoolArray) -> PairScores:
        """Some of the pairs; targets that lose all of theirs are gone."""
        present, target = np.unique(self.target[keep], return_inverse=True)
        return replace(
            self,
            scores=self.scores[np.repeat(keep, self.sizes)],
            start=from_zero(self.sizes[keep]),
            target=target,
            impostor=self.impostor[keep],
            target_names=tuple(self.target_names[k] for k in present),
            means=None if self.means is None else self.means[keep],
        )

    @property
    def tie(self) -> float:
        """Similarities that differ by no more are equal: 2⁻⁴⁰ of their range, above rounding."""
        return float(np.ptp(self.similarity)) * TIE

    def chosen_by(self, proxy: Proxy) -> PairScores:
        """The same pairs, chosen by scores of pairs of the same names, or an array of such."""
        if proxy is None:
            return self
        if isinstance(proxy, PairScores):
            return replace(self, means=proxy.similarity[self._places_in(proxy)])
        values = as_numbers(proxy, "proxy")
        shape = (len(self.target_names), len(self.impostor_names))
        if values.ndim not in (2, 3) or values.shape[:2] != shape:
            wanted = f"{shape[0]} targets × {shape[1]} impostors"
            raise InputError("proxy", wanted, f"shape {values.shape}")
        reject_nan(values.reshape(-1), "proxy")
        means = values if values.ndim == 2 else values.mean(axis=2)
        return replace(self, means=means[self.target, self.impostor])

    def _places_in(self, proxy: PairScores) -> IntArray:
        """Where a proxy has each of these pairs."""
        known = {name: k for k, name in enumerate(proxy.target_names)}
        other = {name: k for k, name in enumerate(proxy.impostor_names)}
        row = np.array([known.get(name, -1) for name in self.target_names])[self.target]
        column = np.array([other.get(name, -1) for name in self.impostor_names])[self.impostor]
        width = len(proxy.impostor_names)
        keys = proxy.target * width + proxy.impostor
        wanted = np.where((row < 0) | (column < 0), -1, row * width + column)
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        absent = keys[place] != wanted
        if absent.any():
            raise InputError(
                f"proxy: {int(absent.sum())} of {absent.size} pairs have no proxy score,"
                f" the first {self._pair_name(int(absent.argmax()))}"
            )
        return place

    def _pair_name(self, pair: int) -> str:
        target = self.target_names[self.target[pair]]
        return f"target {target}, impostor {self.impostor_names[self.impostor[pair]]}"


def from_zero(sizes: IntArray | BoolArray) -> IntArray:
    """Running totals, 0 first."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def check_system(data: Scores, how: ImpostorProtocol) -> None:
    """Of several systems one is named."""
    if how.system is None and len(data.systems) > 1:
        known = f"one of the systems {', '.join(data.systems)}"
        raise InputError(data.name, known, "no name: say protocol=um.ImpostorProtocol(system=…)")


def check_single_scores(single: int, pairs: int, first: str) -> None:
    """No pair with one score; ``first`` names the first of those there are."""
    if single:
        raise InputError(
            f"pairs: {single} of {pairs} have one score, the first {first}: a mean over one score"
            " picks the very score that attacks; um.ImpostorProtocol(skip_single=True) leaves them"
            " out"
        )


def as_counts(counts: npt.ArrayLike) -> IntArray:
    """Whole numbers of impostors of at least 1."""
    given = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"counts: expected a list of numbers, found shape {given.shape}")
    bad = ~(np.isfinite(given) & (given >= 1) & (given == np.floor(given)))
    if bad.any():
        raise InputError("counts", "whole numbers of at least 1", f"{given[bad.argmax()]:g}")
    return given.astype(np.int64)


Proxy = PairScores | npt.ArrayLike | None
Data = Table | Embeddings | PairScores | npt.ArrayLike


@dataclass(frozen=True, kw_only=True)
class ImpostorProtocol:
    """Which scores of two speakers an adversary has, and who chooses by them.

    Parameters
    ----------
    system
        Of a table: whose scores, where there are several.
    both_ways
        Of a table: a score counts for either speaker as the target, as symmetric systems score.
    skip_single
        Leave out pairs of speakers with one score, which are refused otherwise.
    min_impostors
        Of a table, pairs or an array: leave out targets with fewer.
    backend, proxy_backend
        Of embeddings: how they, and those of a proxy, are compared.
    per_pair
        Of embeddings: scores of a pair that models are fitted to; rates rest on all of them.
    split
        Keep the scores that choose the closest voice apart from those that attack.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> scores = np.random.default_rng(0).normal(size=(9, 9, 4))
    >>> for split in (True, False):
    ...     how = um.ImpostorProtocol(split=split)
    ...     rate = um.worst_case(scores, [1.0], counts=[9], protocol=how, groups=0).values
    ...     print(f"split {split}: {rate[0, 0]:.2f}")
    split True: 0.30
    split False: 0.42
    """

    system: str | None = None
    both_ways: bool = True
    skip_single: bool = False
    min_impostors: int | None = None
    backend: Backend | str = "cosine"
    proxy_backend: Backend | str = "cosine"
    per_pair: int = 20
    split: bool = True

    def __post_init__(self) -> None:
        if self.per_pair < 2:
            raise InputError(f"per_pair: expected at least 2, found {self.per_pair}")


def speaker_pairs(
    data: Data,
    protocol: ImpostorProtocol | None = None,
    *,
    per_pair: int | None = None,
    targets: int | None = None,
    **options: Any,
) -> PairScores:
    """Scores by (target speaker, impostor speaker) of ``data``.

    Of a table these are the nontarget scores by enrolled and test speaker. Of embeddings these are
    the scores of all utterances of every two speakers, or ``per_pair`` of them: similarities are
    mean scores over all utterances even so. ``targets`` takes that many of the speakers as targets,
    spread evenly over the set; all the others remain their impostors. An array is targets ×
    impostors × scores. ``options`` are fields of the ``protocol``.
    """
    how = replace(protocol or ImpostorProtocol(), **options)
    if is_table(data):
        data = as_table(cast(Table, data), "worst case")
        if data.enrol_speaker is None or data.test_speaker is None:
            cure = "the speaker of each side of a trial (--speakers utt2spk)"
            raise InputError(data.name, cure, "none")
        check_system(data, how)
        rows = np.flatnonzero(data.is_nontarget)
        sides = data.enrol_speaker.take(rows), data.test_speaker.take(rows)
        scores = data.scores(how.system)[rows]
        kept = PairScores.from_trials(*sides, scores, both_ways=how.both_ways)
    elif isinstance(data, Embeddings):
        scorer = backend_named(how.backend)
        kept = PairScores.from_embeddings(data, scorer, per_pair=per_pair, targets=targets)
    else:
        given = cast(npt.ArrayLike, data)
        kept = data if isinstance(data, PairScores) else PairScores.from_array(given)
    if how.skip_single:
        kept = kept.without_single_scores()
    return kept if how.min_impostors is None else kept.with_impostors(how.min_impostors)


POOLED = "none"
"""What to name in place of a column to take all impostors together."""


def sex_column(data: Scores | Embeddings) -> str | None:
    """The column of speakers' sex: impostors are of one sex by default, as in the paper."""
    sides = ("enrol_", "test_") if isinstance(data, Scores) else ("",)
    for name in ("sex", "gender"):
        if all(f"{side}{name}" in data.columns for side in sides):
            return name
    return None


def groups_of(
    data: Scores | Embeddings, by: str | None
) -> tuple[Mapping[str, Scores | Embeddings], tuple[str, ...]]:
    """Trials or utterances by group of the column ``by``, of the sex by default, or all together
    (``"none"``); and the names of groups without target trials, which are left out.
    """
    by = by or sex_column(data) or POOLED
    if by == POOLED:
        return {"all": data}, ()
    parts = {group: data.select(mask) for group, mask in group_masks(data, by)}
    tables = {group: part for group, part in parts.items() if isinstance(part, Scores)}
    left = sorted(group for group, part in tables.items() if not part.is_target.any())
    if len(left) == len(parts):
        raise InputError(f"by {by}: expected a group with target trials, found none")
    return {group: part for group, part in parts.items() if group not in left}, tuple(left)
