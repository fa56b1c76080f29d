"""Worst-case false alarms straight from embeddings, at any scale and on any place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection.bootstrap import Progress
from unmask.errors import InputError
from unmask.scoring import Backend, resolve
from unmask.scoring.job import HERE, Where, run
from unmask.scoring.products import product_sides
from unmask.stress.worst_case import Intervals, WorstCase
from unmask.stress.worst_case_checks import check_single_scores, check_speakers, checked_counts
from unmask.stress.worst_case_kernels import TIE, Levels
from unmask.stress.worst_case_on_device import (
    similarity_range_on_device,
    surfaces_of_voices_on_device,
)
from unmask.stress.worst_case_pairs import from_zero
from unmask.stress.worst_case_voices import Likeness, Voices, similarity_range, surfaces_of_voices
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
    skip_single: bool = False,
    replicates: int = 1000,
    level: float = 0.99,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """Exact P_FA^N(τ) over all utterances of every two speakers, with intervals over targets.

    The same as :func:`measure_worst_case` of :func:`pairs_of_embeddings`, without ever holding the
    scores: time grows with the number of trials, memory with the embeddings. With ``proxy``, the
    same speakers through another encoder, the adversary chooses by its mean scores and attacks the
    real system. Two speakers with one utterance each make a pair with one score, which is refused
    unless ``skip_single`` leaves such pairs out. ``on``, ``workers`` and ``state`` say where ranges
    of targets are scored and counted, as in :func:`unmask.cross_pairing`.
    """
    where = Where(on, workers, state)
    intervals = Intervals(replicates, level, seed)
    levels = Levels.of(thresholds)
    order = SpeakerOrder.of(embeddings)
    order.check(skip_single=skip_single)
    wanted = checked_counts(counts, order.impostors, order.names)
    rows = SpeakerRows.of(embeddings, order, backend)
    means = rows.means
    if proxy is not None:
        other = SpeakerOrder.of(proxy)
        chosen = other.places(order.names)
        target, impostor = SpeakerRows.of(proxy, other, proxy_backend).means
        means = target[chosen], impostor[chosen]
    span = _span(Likeness(order.edges, *means), where)
    voices = Voices(
        order.edges,
        *means,
        rows.enrol,
        np.asarray(TIE * span),
        levels.values,
        wanted,
        None if rows.test is rows.enrol else rows.test,
    )
    found = run(
        surfaces_of_voices,
        voices,
        voices.shares(),
        where=where,
        on_device=surfaces_of_voices_on_device,
        progress=progress,
    )
    each = np.concatenate([part["each"] for part in found])[:, :, levels.place]
    return intervals.around(each, wanted, thresholds, impostors=int(order.impostors.min()))


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
