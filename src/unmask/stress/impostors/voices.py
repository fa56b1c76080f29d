"""P_FA^N(τ) straight from embeddings, at any scale and on any place: nobody ever holds the scores.

A task is a range of target speakers: the scores of its rows against all rows, inner products in
double precision, are made block by block, counted above each threshold for every impostor, and
forgotten. The mean score of two speakers is the product of their mean rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, Groups, IntArray, lazy, scattered
from unmask.engine import Roc, roc_of_pairs
from unmask.errors import InputError
from unmask.run import Arrays, Numpy, Range, Xp, progress, ranges_of, run, run_on
from unmask.scoring import Backend, PairGrid, Sides, backend_named, sides_of
from unmask.stress.impostors import pair_scores
from unmask.stress.impostors.pair_scores import TIE, ImpostorProtocol, PairScores, Targets
from unmask.stress.impostors.rates import (
    Levels,
    Ranked,
    ScoreSample,
    WorstCase,
    closest_first,
    rates_of,
    target_ranges,
)
from unmask.stress.impostors.uncertainty import CrossFitted, Jackknife, Leaving, attacking
from unmask.trials import Embeddings

ROWS = 960
BLOCK = 480
STRIP = 4096
FEW_SPEAKERS = 4096
_DEVICE = 1 << 26
_SLICE = 1 << 14
_FEW = 12  # thresholds, up to which comparing with each is quicker than looking up the place
_BYTE = 255
_CELLS = 1 << 23
_PAIRS = 1 << 23
_FITTED = 1 << 24
_LEAST_TARGETS = 50


@dataclass(frozen=True, eq=False)
class SpeakerOrder(Targets):
    """Where rows stand by speaker: row i of the set becomes row ``index[i]`` of the ``rows``."""

    target_names: tuple[str, ...]
    rows: Groups
    index: IntArray

    @classmethod
    def of(cls, embeddings: Embeddings) -> SpeakerOrder:
        present, codes = np.unique(embeddings.speakers.codes, return_inverse=True)
        index = np.empty(codes.size, dtype=np.int64)
        # Utterances of a speaker are dealt into folds by content, not in the order of rows.
        dealt = scattered(embeddings.content_codes, 0)
        index[np.lexsort((dealt, codes))] = np.arange(codes.size)
        names = tuple(str(embeddings.speakers.names[int(code)]) for code in present)
        return cls(names, Groups(np.sort(codes)), index)

    @property
    def sizes(self) -> IntArray:
        """Utterances of each speaker."""
        return self.rows.counts

    @property
    def single(self) -> IntArray:
        """Speakers with one utterance, two of whom make a pair with one score."""
        return np.flatnonzero(self.sizes == 1)

    @property
    def skipped(self) -> int:
        """Number of pairs with one score."""
        return self.single.size * (self.single.size - 1)

    @property
    def impostors(self) -> IntArray:
        """Number of impostors of each target, without pairs of one score."""
        count = np.full(self.sizes.size, self.sizes.size - 1)
        count[self.single] -= max(self.single.size - 1, 0)
        return count

    def groups(self, jackknife: Jackknife) -> Leaving:
        """Deal the speakers into groups that leave together, as targets and as impostors."""
        speakers, several = self.sizes.size, self.sizes > 1

        def least(dealt: IntArray) -> int:
            every = speakers - 1 - int(np.bincount(dealt).max())
            paired = int(several.sum() - np.bincount(dealt[several], minlength=1).max())
            return every if several.all() else min(every, paired)

        return jackknife.dealt(speakers, least)

    def among(self, proxy: SpeakerOrder) -> list[int]:
        """The numbers of these speakers among those of a proxy."""
        known = {name: k for k, name in enumerate(proxy.target_names)}
        missing = [name for name in self.target_names if name not in known]
        if missing:
            raise InputError(
                f"proxy: {len(missing)} of {self.sizes.size} speakers have no embeddings there,"
                f" the first {missing[0]}"
            )
        return [known[name] for name in self.target_names]


@dataclass(frozen=True, eq=False)
class SpeakerRows:
    """The sides of a set by speaker."""

    groups: Groups
    sides: Sides

    @classmethod
    def of(cls, embeddings: Embeddings, order: SpeakerOrder, scorer: Backend) -> SpeakerRows:
        """Make the rows, slice by slice."""
        index, vectors = order.index, embeddings.vectors
        first = sides_of(scorer, vectors[:1])
        enrol = test = np.empty((index.size, first.enrol.shape[1]))
        if first.test is not first.enrol:
            test = np.empty_like(enrol)
        for start, stop in ranges_of(index.size, _SLICE):
            try:
                made = sides_of(scorer, vectors[start:stop])
            except InputError as error:
                raise InputError(f"{embeddings.name}, from row {start} on: {error}") from None
            enrol[index[start:stop]] = made.enrol
            if test is not enrol:
                test[index[start:stop]] = made.test
        if all((side == side[0]).all() for side in (enrol, test)):
            raise InputError(f"embeddings: all {index.size} vectors are equal once prepared")
        return cls(order.rows, Sides(enrol, test))

    @property
    def pairs(self) -> PairGrid:
        """All pairs of rows."""
        return PairGrid(self.sides, self.groups, self.groups, tile=(BLOCK, STRIP), fixed=False)

    def means(self, chooses: BoolArray) -> Sides:
        """Mean of the rows of each speaker that choose, as target and as impostor."""
        starts, every = self.groups.first, chooses.all()
        size = np.add.reduceat(chooses, starts, dtype=np.int64)[:, None]
        target, impostor = (
            np.add.reduceat(side if every else side * chooses[:, None], starts, axis=0) / size
            for side in (self.sides.enrol, self.sides.test)
        )
        return Sides(target, impostor)

    def folds(self) -> Iterator[tuple[SpeakerRows, Sides]]:
        """Rows that attack, and the mean rows of the others, which choose (all of one alone)."""
        sizes, codes = self.groups.counts, self.groups.codes
        for attack in attacking(sizes):
            attacks = Groups(codes[attack])
            means = self.means(~attack | (attacks.counts == sizes)[codes])
            yield SpeakerRows(attacks, self.sides.take(attack)), means


@dataclass(frozen=True, eq=False)
class SpeakerMeans(Ranked):
    """Rows that attack, mean rows of all speakers as target and as impostor, whose scores are
    similarities, and how many ``utterances`` each has, on whichever rows a fold rests.
    Similarities that differ by ``tie`` or less are equal.
    """

    rows: SpeakerRows
    means: Sides
    utterances: IntArray
    tie: float = 0.0

    @lazy
    def sizes(self) -> IntArray:
        """Rows of each speaker."""
        return self.rows.groups.counts

    def ranges(self) -> list[Range]:
        """Their counts fit into memory; who works does not matter."""
        cells = self.sizes.size * self.levels.values.size
        return target_ranges(np.maximum(self.sizes, -(-cells * ROWS // _CELLS)), ROWS)

    def ranked(self, xp: Xp, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]:
        above = xp.host(self.above(xp, targets))
        similarity, allowed = map(xp.host, self.similarity(xp, targets))
        similarity = np.where(allowed, similarity, -np.inf)
        for own, counted, target in zip(similarity, above, range(*targets), strict=True):
            yield closest_first(counted, self.sizes[target] * self.sizes, own, self.tie)

    def similarity(self, xp: Xp, targets: Range) -> tuple[Any, Any]:
        """Mean score of some targets with every speaker, and who may be an impostor: nobody their
        own, and of speakers with one utterance each none, whose pair has one score.
        """
        some, who = slice(*targets), xp.put(self.utterances)
        everybody = xp.arange(0, self.utterances.size)
        allowed = (who[some, None] * who > 1) & (everybody[some, None] != everybody)
        return self.means.scores(xp, targets, (0, self.utterances.size)), allowed

    def with_tie(self) -> SpeakerMeans:
        """The same, where the range of all similarities tells rounding from a difference."""
        speakers = self.utterances.size
        ranges = ranges_of(speakers, max(1, _PAIRS // speakers))
        with progress(None), run_on() if speakers <= FEW_SPEAKERS else nullcontext():
            parts = list(run(similarity_range, self, ranges))
        low, high = (max(float(part[end]) for part in parts) for end in ("-low", "high"))
        return replace(self, tie=TIE * (high + low))

    def above(self, xp: Xp, targets: Range) -> Any:
        """Scores above each level, (targets, speakers, levels)."""
        levels, width, pairs = self.levels, self.levels.values.size, self.rows.pairs
        table = xp.zeros((targets[1] - targets[0], self.sizes.size, width))
        few, buffer = False, None
        if isinstance(xp, Numpy):
            few, buffer = width <= _FEW, np.empty(BLOCK * STRIP)
        start, stop = np.searchsorted(pairs.enrol.codes, targets).tolist()
        for tile in pairs.tiles(xp, (start, stop, 0, len(pairs.test)), cells=_DEVICE):
            (top, left), (rows, columns) = tile.speakers, tile.cuts
            scores, cell = tile.into(buffer), np.repeat(np.arange(len(left)), np.diff(columns))
            for first, last in ranges_of(len(top), xp.chunk(1, len(top), 1)):
                part, sizes = scores[rows[first] : rows[last]], np.diff(rows[first : last + 1])
                if few:
                    counts = _compared(xp, part, levels, columns[:-1])
                else:
                    counts = _counted(xp, part, sizes, levels, cell, len(left))
                begin = top.start - targets[0]
                table[begin + first : begin + last, left.start : left.stop] += counts
        return table


def similarity_range(xp: Xp, voices: SpeakerMeans, targets: Range) -> Arrays:
    """Lowest (its negative) and highest similarity of some targets' pairs."""
    values, allowed = voices.similarity(xp, targets)
    return {
        "-low": np.asarray(float(xp.where(allowed, -values, -np.inf).max())),
        "high": np.asarray(float(xp.where(allowed, values, -np.inf).max())),
    }


def _compared(xp: Xp, scores: FloatArray, levels: Levels, starts: IntArray) -> IntArray:
    """Scores of one target above each level, (1, impostors, levels), summed in bytes."""
    total = np.zeros((1, starts.size, levels.values.size), np.int64)
    for first, last in ranges_of(len(scores), _BYTE):
        columns = np.stack([xp.column_sums(scores[first:last] > level) for level in levels.values])
        total[0] += np.add.reduceat(columns, starts, axis=1, dtype=np.int64).T
    return total


def _counted(
    xp: Xp, scores: Any, sizes: IntArray, levels: Levels, impostor: IntArray, impostors: int
) -> Any:
    """The same for many levels and several targets: the place of each score among the levels."""
    cell = xp.put(impostor)
    if sizes.size > 1:
        cell = cell + (xp.repeat(xp.put(sizes)) * impostors)[:, None]
    above = levels.above(xp, scores, cell, sizes.size * impostors)
    return above.reshape(sizes.size, impostors, -1)


@dataclass(frozen=True, eq=False)
class EmbeddedVoices:
    """Embeddings, whose scores are never held, chosen by their mean scores or a ``proxy``'s."""

    embeddings: Embeddings
    proxy: Embeddings | None
    protocol: ImpostorProtocol

    @lazy
    def backend(self) -> Backend:
        """Compares the embeddings."""
        return backend_named(self.protocol.backend)

    @lazy
    def proxy_backend(self) -> Backend:
        """Compares those of the proxy."""
        return backend_named(self.protocol.proxy_backend)

    @lazy
    def order(self) -> SpeakerOrder:
        """The speakers, if a worst case can be told from them."""
        order = SpeakerOrder.of(self.embeddings)
        if order.skipped and not self.protocol.skip_single:
            target, impostor = (order.target_names[k] for k in order.single[:2])
            every = order.sizes.size * (order.sizes.size - 1)
            pair_scores.check_single_scores(
                order.skipped, every, f"target {target}, impostor {impostor}"
            )
        order.check_speakers()
        return order

    @property
    def impostors(self) -> int:
        """Number of impostors that every target has."""
        return self.order.max_count

    def roc(self, thresholds: Sequence[float]) -> Roc:
        """The ROC statistic of all pairs of utterances."""
        return roc_of_pairs(self.embeddings, self.backend, thresholds=thresholds)

    def measured(
        self, thresholds: npt.ArrayLike, counts: npt.ArrayLike, jackknife: Jackknife
    ) -> WorstCase:
        """P_FA^N(τ) over all utterances of every two speakers; those that attack in a fold are on
        neither side of a score that chooses (but for a speaker who has only one).
        """
        levels, order = Levels.of(thresholds), self.order
        wanted = order.possible(counts)
        rows = SpeakerRows.of(self.embeddings, order, self.backend)
        dealt = order.groups(jackknife) if jackknife.groups else None
        if self.proxy is not None:
            other = SpeakerOrder.of(self.proxy)
            chosen = order.among(other)
            choosing = SpeakerRows.of(self.proxy, other, self.proxy_backend)
            means = choosing.means(np.ones(other.index.size, np.bool_))
            parts = [(rows, means.take(np.array(chosen)))]
        else:
            means = rows.means(np.ones(order.index.size, np.bool_))
            parts = [(rows, means), *(rows.folds() if self.protocol.split else ())]
        asked = levels, wanted, dealt
        jobs = [
            SpeakerMeans(*asked, attack, means, order.sizes).with_tie() for attack, means in parts
        ]
        per_pair = float(np.median(order.sizes)) ** 2
        rates = rates_of(jobs, order.sizes, per_pair)
        return WorstCase.around(rates, jackknife, order, per_pair, split=len(jobs) > 1)

    def sample(self) -> tuple[CrossFitted, ScoreSample | None]:
        """At most ``per_pair`` scores of a pair, and as many targets as fit; all if they do."""
        order, per_pair = self.order, self.protocol.per_pair
        sizes, speakers = order.sizes, order.sizes.size
        of_target = np.minimum(np.median(sizes) * sizes, per_pair).sum()
        targets = min(max(int(_FITTED / of_target), _LEAST_TARGETS), speakers)
        everything = targets == speakers and sizes.max() ** 2 <= per_pair
        some = partial(
            PairScores.from_embeddings,
            self.embeddings,
            self.backend,
            per_pair=None if everything else per_pair,
            targets=targets,
        )
        whole = some()
        several = whole.sizes > 1
        kept = replace(whole.select(several), skipped=order.skipped)
        sample = None if everything else ScoreSample(targets, per_pair)
        if self.proxy is not None:
            chosen = PairScores.from_embeddings(self.proxy, self.proxy_backend, per_pair=1)
            return CrossFitted(kept, kept.chosen_by(chosen)), sample
        folds = attacking(sizes) if self.protocol.split else ()
        attacks = (some(attack=mask[order.index]).select(several) for mask in folds)
        return CrossFitted(kept, kept, tuple(attacks)), sample
