"""Worst-case false alarms straight from embeddings, at any scale and on any place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Progress
from unmask.errors import InputError
from unmask.run import HERE, Where, run
from unmask.scoring import Backend, product_sides, resolve
from unmask.stress.worst_case.checks import check_single_scores, check_speakers, checked_counts
from unmask.stress.worst_case.jackknife import (
    GROUPS,
    Groups,
    checked_groups,
    checked_level,
    even,
)
from unmask.stress.worst_case.kernels import TIE, Levels
from unmask.stress.worst_case.on_device import (
    similarity_range_on_device,
    surfaces_of_voices_on_device,
)
from unmask.stress.worst_case.pairs import PairScores, from_zero
from unmask.stress.worst_case.rates import WorstCase, joined, middle_of, stage
from unmask.stress.worst_case.split import FOLDS, share_of
from unmask.stress.worst_case.voices import Likeness, Voices, similarity_range, surfaces_of_voices
from unmask.trials import Embeddings

FEW_SPEAKERS = 4096
_SLICE = 1 << 14


def worst_case_of_embeddings(
    embeddings: Embeddings,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    backend: Backend | str = "cosine",
    proxy: Embeddings | None = None,
    proxy_backend: Backend | str = "cosine",
    split: bool = True,
    skip_single: bool = False,
    groups: int = GROUPS,
    level: float = 0.99,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """P_FA^N(τ) over all utterances of every two speakers, with intervals over speakers.

    As :func:`measure_worst_case` of :func:`pairs_of_embeddings`, without ever holding the scores:
    time grows with the number of trials, memory with the embeddings. With ``split`` the folds are
    of utterances, not of scores: utterances that attack are on neither side of a score that chooses
    (but for a speaker who has only one). With ``proxy``, the same speakers through another encoder,
    the adversary chooses by its mean scores and attacks the real system. Two speakers with one
    utterance each make a pair with one score, which is refused unless ``skip_single`` leaves such
    pairs out. ``on``, ``workers`` and ``state`` say where ranges of targets are scored and counted,
    as in :func:`unmask.cross_pairing`.
    """
    where = Where(on, workers, state)
    checked_level(level)
    checked_groups(groups)
    levels = Levels.of(thresholds)
    order = SpeakerOrder.of(embeddings)
    order.check(skip_single=skip_single)
    wanted = checked_counts(counts, order.impostors, order.names)
    rows = SpeakerRows.of(embeddings, order, backend)
    dealt = order.groups(groups, seed=seed) if groups else None
    if proxy is not None:
        other = SpeakerOrder.of(proxy)
        chosen = other.places(order.names)
        target, impostor = SpeakerRows.of(proxy, other, proxy_backend).means
        parts = [(rows, (target[chosen], impostor[chosen]))]
    else:
        parts = [(rows, rows.means), *(rows.folds() if split else ())]
    found = []
    for number, (attack, means) in enumerate(parts):
        span = _span(Likeness(attack.edges, *means, order.sizes), where)
        voices = Voices(
            attack.edges,
            *means,
            order.sizes,
            attack.enrol,
            np.asarray(TIE * span),
            levels.values,
            wanted,
            None if attack.test is attack.enrol else attack.test,
            None if dealt is None else dealt.target,
            None if dealt is None else np.minimum(wanted, dealt.least),
        )
        tasks = run(
            surfaces_of_voices,
            voices,
            voices.shares(),
            where=where,
            on_device=surfaces_of_voices_on_device,
            progress=stage(progress, number, len(parts)),
        )
        found.append(joined(tasks, dealt))
    per_pair = float(np.median(order.sizes)) ** 2
    edge = 0.5 / (len(order.names) * per_pair)
    return WorstCase.around(
        middle_of(found, share_of(order.sizes), edge, wanted, dealt, levels.place),
        thresholds,
        wanted,
        level=level,
        seed=seed,
        targets=len(order.names),
        impostors=int(order.impostors.min()),
        per_pair=per_pair,
        split=len(found) > 1,
    )


def _span(likeness: Likeness, where: Where) -> float:
    """Range of all similarities, which tells rounding from a difference; a few are made here."""
    found = run(
        similarity_range,
        likeness,
        likeness.shares(),
        where=where if likeness.speakers > FEW_SPEAKERS else HERE,
        on_device=similarity_range_on_device,
    )
    ends = np.array([[part["low"], part["high"]] for part in found])
    return float(ends[:, 1].max() - ends[:, 0].min())


@dataclass(frozen=True, eq=False)
class SpeakerOrder:
    """Where each row of a set stands by speaker, in the order of the speakers' codes: speaker k has
    the places from ``edges[k]`` to ``edges[k + 1]``.
    """

    names: tuple[str, ...]
    edges: IntArray
    place: IntArray

    @classmethod
    def of(cls, embeddings: Embeddings) -> SpeakerOrder:
        present, codes = np.unique(embeddings.speakers.codes, return_inverse=True)
        place = np.empty(codes.size, dtype=np.int64)
        place[np.argsort(codes, kind="stable")] = np.arange(codes.size)
        names = tuple(str(embeddings.speakers.names[int(code)]) for code in present)
        return cls(names, from_zero(np.bincount(codes)), place)

    @property
    def sizes(self) -> IntArray:
        """Utterances of each speaker."""
        return np.diff(self.edges)

    def paired(self, pairs: PairScores) -> BoolArray:
        """Which pairs hold more than one score of all utterances."""
        size = dict(zip(self.names, self.sizes.tolist(), strict=True))
        target = np.array([size[name] for name in pairs.target_names])[pairs.target]
        impostor = np.array([size[name] for name in pairs.impostor_names])[pairs.impostor]
        return np.asarray(target * impostor > 1)

    def groups(self, number: int, *, seed: int) -> Groups:
        """Deal the speakers into groups that leave together, as targets and as impostors."""
        checked_groups(number)
        speakers = len(self.names)
        several = self.sizes > 1
        for size in (even(number, speakers), speakers):
            dealt = np.random.default_rng(seed).permutation(speakers) % size
            least = speakers - 1 - int(np.bincount(dealt).max())
            if not several.all():
                paired = np.bincount(dealt[several], minlength=size)
                least = min(least, int(several.sum() - paired.max()))
            if least > 0:
                return Groups(size, dealt, dealt, least)
        raise InputError("jackknife: a target loses all impostors with a single speaker")

    @property
    def single(self) -> IntArray:
        """Speakers with one utterance, two of whom make a pair with one score."""
        return np.flatnonzero(np.diff(self.edges) == 1)

    @property
    def skipped(self) -> int:
        """Number of pairs with one score."""
        return self.single.size * (self.single.size - 1)

    @property
    def impostors(self) -> IntArray:
        """Number of impostors of each target, without pairs of one score."""
        count = np.full(len(self.names), len(self.names) - 1)
        count[self.single] -= max(self.single.size - 1, 0)
        return count

    def check(self, *, skip_single: bool) -> None:
        """Refuse a set from which no worst case can be told."""
        if self.skipped and not skip_single:
            target, impostor = (self.names[k] for k in self.single[:2])
            pairs = len(self.names) * (len(self.names) - 1)
            check_single_scores(self.skipped, pairs, f"target {target}, impostor {impostor}")
        check_speakers(self.impostors, self.names)

    def places(self, names: tuple[str, ...]) -> list[int]:
        """Where the speakers of these names stand among those of this set, a proxy's."""
        known = {name: k for k, name in enumerate(self.names)}
        missing = [name for name in names if name not in known]
        if missing:
            raise InputError(
                f"proxy: {len(missing)} of {len(names)} speakers have no embeddings there,"
                f" the first {missing[0]}"
            )
        return [known[name] for name in names]


@dataclass(frozen=True, eq=False)
class SpeakerRows:
    """Prepared rows by speaker, for both sides of the inner product that is the score."""

    edges: IntArray
    enrol: FloatArray
    test: FloatArray

    @classmethod
    def of(cls, embeddings: Embeddings, order: SpeakerOrder, backend: Backend | str) -> SpeakerRows:
        scorer = resolve(backend)
        prepared = _prepared(scorer, embeddings, order.place)
        if (prepared == prepared[0]).all():
            raise InputError(f"embeddings: all {len(prepared)} vectors are equal once prepared")
        return cls(order.edges, *product_sides(scorer, prepared))

    @property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Mean row of each speaker, as target and as impostor."""
        target, impostor = (
            np.add.reduceat(side, self.edges[:-1], axis=0) / np.diff(self.edges)[:, None]
            for side in (self.enrol, self.test)
        )
        return target, impostor

    def folds(self) -> Iterator[tuple[SpeakerRows, tuple[FloatArray, FloatArray]]]:
        """Rows that attack, and the mean rows of the others, which choose."""
        for attack in attacking(np.diff(self.edges)):
            sizes = np.add.reduceat(attack.astype(np.int64), self.edges[:-1])
            left = np.diff(self.edges) - sizes
            means = []
            for side in (self.enrol, self.test):
                total = np.add.reduceat(side, self.edges[:-1], axis=0)
                part = np.add.reduceat(side * attack[:, None], self.edges[:-1], axis=0)
                chosen = np.where(left[:, None] > 0, total - part, total)
                means.append(chosen / np.where(left > 0, left, left + sizes)[:, None])
            enrol = self.enrol[attack]
            test = enrol if self.test is self.enrol else self.test[attack]
            yield SpeakerRows(from_zero(sizes), enrol, test), (means[0], means[1])


def attacking(sizes: IntArray) -> Iterator[BoolArray]:
    """For each fold, the utterances (in order of speakers) that attack: every fourth of a
    speaker's,
    one where there are fewer.
    """
    speaker = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(speaker.size) - from_zero(sizes)[:-1][speaker]
    most = np.minimum(sizes, FOLDS)
    for fold in range(min(FOLDS, int(sizes.max()))):
        yield rank % most[speaker] == (fold % most)[speaker]


def _prepared(scorer: Backend, embeddings: Embeddings, place: IntArray) -> FloatArray:
    """Prepared rows, slice by slice, each at its place."""
    rows = np.empty((place.size, scorer.prepare(embeddings.vectors[:1]).shape[1]))
    for start in range(0, place.size, _SLICE):
        part = slice(start, start + _SLICE)
        try:
            rows[place[part]] = scorer.prepare(embeddings.vectors[part])
        except InputError as error:
            name = embeddings.source.name if embeddings.source else "embeddings"
            raise InputError(f"{name}, from row {start} on: {error}") from None
    return rows
