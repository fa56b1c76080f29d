"""Resamples of the speakers, each calibrated anew.

m_i is how often speaker i was drawn. A comparison within a speaker weighs m_i, one of two speakers
m_i·m_j; copies of one speaker are never compared with each other. Every replicate has its own
oracle calibration, and so its own similarity matrix. It needs no score again: with the scores of
every pair of speakers counted in fine bins, its statistic is a weighted sum of counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from unmask.base import BoolArray, FloatArray, IntArray, Lookup, lazy
from unmask.engine import Pav, Roc, equal_errors, first_of_blocks, information
from unmask.run import Arrays, Range, Xp, progress, ranges_of, run

_ENTRIES, _FEW = 1 << 22, 1 << 17
_MOST_TOGETHER = 128

CELLS = 1 << 25
FEWEST, MOST = 96, 512
_LEAST_PARTNERS = 32

Counts = npt.NDArray[np.int32]
Table = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class BinLayout:
    """Edges of the bins, and which pairs of speakers are counted: (i, i + offset mod speakers).

    All pairs where there is room; else as many partners for every speaker as there is room for,
    evenly spread and in both orders.
    """

    edges: FloatArray
    offsets: IntArray
    speakers: int

    @classmethod
    def of(cls, roc: Roc, speakers: int) -> BinLayout:
        """Bins and pairs for a set with this statistic."""
        bins = int(np.clip(CELLS // speakers**2, FEWEST, MOST))
        partners = max(CELLS // (speakers * bins) - 1, _LEAST_PARTNERS)
        offsets = np.arange(speakers)
        if partners < speakers - 1:
            half = np.round(np.linspace(1, speakers // 2, max(partners // 2, 1))).astype(np.int64)
            offsets = np.unique(np.concatenate([[0], half, speakers - half]))
        return cls(_edges(roc, bins), offsets, speakers)

    @property
    def bins(self) -> int:
        return self.edges.size + 1

    @property
    def partners(self) -> int:
        """With how many others each speaker is compared; 0 for all."""
        return self.offsets.size - 1 if self.offsets.size < self.speakers else 0

    @lazy
    def lookup(self) -> Lookup:
        """Gives the bin of each score."""
        return Lookup(self.edges)

    @lazy
    def column(self) -> IntArray:
        """Where each offset stands among those counted, −1 for all others."""
        column = np.full(self.speakers, -1, dtype=np.int64)
        column[self.offsets] = np.arange(self.offsets.size)
        return column

    def shape(self, rows: int) -> tuple[int, int, int]:
        """Of the counts of so many speakers."""
        return rows, self.offsets.size, self.bins

    def cells(self, one: IntArray, other: IntArray, start: int) -> IntArray:
        """First count of each pair among those of speakers from ``start`` on; −1 if not counted."""
        column = self.column[(other - one) % self.speakers]
        first = ((one - start) * self.offsets.size + column) * self.bins
        return np.where(column < 0, -1, first)


def _edges(roc: Roc, bins: int) -> FloatArray:
    """Edges at target scores: all where there is room, else even in number, closer at both ends."""
    scores = roc.scores[roc.target > 0]
    if 2 * scores.size < bins:
        return np.unique(np.concatenate([scores, np.nextafter(scores, np.inf)]))
    kept = roc.target > 0
    targets = np.cumsum(roc.target)[kept]
    nontargets = np.cumsum(roc.between[:-1] + roc.equal)[kept]
    places = []
    for rank in (targets, nontargets):
        total = max(float(rank[-1]), 2.0)
        even = np.linspace(0, total, bins // 4)
        tail = np.geomspace(1, total / 2, bins // 8)
        places += [np.searchsorted(rank, at) for at in (even, tail, total - tail)]
    chosen = np.minimum(np.unique(np.concatenate(places)), scores.size - 1)
    return np.unique(scores[chosen])


@dataclass(frozen=True, eq=False)
class Binned:
    """Counts of one set in bins, from low scores to high.

    ``own`` has a row per speaker, ``other`` one per pair of different speakers that was compared,
    ``first`` and ``second``. Where a pair scores the same in both orders, or where the orders are
    pooled, both stand in one row. ``partners`` are those of the layout.
    """

    own: FloatArray
    other: Table
    first: IntArray
    second: IntArray
    partners: int = 0

    @classmethod
    def of(cls, counts: Counts, layout: BinLayout, *, mirror: bool = False) -> Binned:
        """From counts by (speaker, offset, bin), whose memory is taken over, speaker after speaker;
        ``mirror`` pools both orders.
        """
        speakers, offsets = layout.speakers, layout.offsets[1:]
        back = layout.column[(speakers - offsets) % speakers]
        others = (np.arange(speakers)[:, None] + offsets) % speakers
        ahead = others > np.arange(speakers)[:, None]

        def rows_of(one: int) -> tuple[Counts, Counts]:
            """Counts of a speaker with those who come later, and of them with the speaker."""
            later = np.flatnonzero(ahead[one])
            return counts[one, 1 + later], counts[others[one, later], back[later]]

        pooled = mirror or all(np.array_equal(*rows_of(one)) for one in range(speakers))
        chosen = ahead if pooled else np.ones_like(ahead)
        first, second = np.nonzero(chosen)[0], others[chosen]
        within = counts[:, 0].astype(np.float64)
        rows = counts.view(np.float32).reshape(-1, layout.bins)[: first.size]
        start = 0
        for one in range(speakers):  # never beyond the counts of speakers who are done
            own = np.add(*rows_of(one)) if pooled else counts[one, 1:].copy()
            rows[start : start + len(own)] = own
            start += len(own)
        real = rows.any(axis=1)
        if not real.all():
            rows, first, second = rows[real], first[real], second[real]
        return cls(within, rows, first, second, layout.partners)

    @lazy
    def number(self) -> FloatArray:
        """How many comparisons each pair has."""
        return np.asarray(self.other.sum(axis=1, dtype=np.float64))

    def matrix(self, values: FloatArray) -> csr_array:
        """Values of pairs (replicates × pairs), a block for each replicate: with how often speakers
        are drawn it gives each first one's sum over the second ones, turned each second one's.
        """
        block = np.arange(len(values))[:, None]
        first = np.searchsorted(self.first, np.arange(len(self.own))) + block * values.shape[1]
        index = (self.second + block * len(self.own)).ravel(), np.append(first, values.size)
        return csr_array((values.ravel(), *index), shape=(first.size, first.size))

    def weighted(self, weight: Table) -> FloatArray:
        """Comparisons of two speakers in each bin, weighted (replicates × bins): whole numbers."""
        return (weight @ self.other).astype(np.float64)

    def summed(self, per_bin: FloatArray) -> Table:
        """Sums over the comparisons of each pair of what its bin gives (replicates × pairs)."""
        return np.ascontiguousarray(per_bin, np.float32) @ self.other.T


def counted(layout: BinLayout, scores: npt.NDArray[Any], one: IntArray, other: IntArray) -> Counts:
    """Counts of a list of scores of the speakers ``one`` against ``other``."""
    cell = layout.cells(one, other, 0)
    kept = cell >= 0
    flat = cell[kept] + layout.lookup(scores[kept])
    counts = np.zeros(layout.shape(layout.speakers), np.int32)
    np.add.at(counts.reshape(-1), flat, np.int32(1))
    return counts


@dataclass(frozen=True, eq=False)
class PairDraws:
    """Of every replicate: signed dominance of the similarities and of their log2, D_ECE and
    C_llr^min in bits, and the EER; ``share`` has a row per replicate and a column per speaker. Read
    by intervals only.
    """

    signed: FloatArray
    signed_log: FloatArray
    d_ece: FloatArray
    min_cllr: FloatArray
    eer: FloatArray
    share: FloatArray

    def joined(self, how: Any, *others: PairDraws) -> PairDraws:
        """Each number joined with those of ``others``."""
        each = zip(*(vars(one).values() for one in (self, *others)), strict=True)
        made = PairDraws(*(how(*values) for values in each))
        return replace(made, share=made.share.astype(np.float32))

    def moved(self, exact: PairDraws, coarse: PairDraws) -> PairDraws:
        """Less what the bins move: ``exact`` minus ``coarse``, which are those of all speakers."""
        return self.joined(lambda drawn, right, rough: drawn + (right - rough), exact, coarse)


@dataclass(frozen=True, eq=False)
class Resampling:
    """Counts in bins and how often each speaker (column) is drawn in each replicate (row): what
    replicates share. ``mean`` is that of the setup; ``negated`` asks for the negated scores too.
    """

    binned: Binned
    times: FloatArray
    mean: str
    negated: bool


def resampled(
    binned: Binned, times: FloatArray, *, mean: str, negated: bool = False
) -> list[PairDraws]:
    """What replicates give for scores and negated ones; ``times[r, i]``: speaker i in draw r."""
    together = int(np.clip(_ENTRIES // max(len(binned.other), 1), 1, _MOST_TOGETHER))
    shared = Resampling(binned, times, mean, negated)
    with progress(None):
        parts = list(run(replicate_rows, shared, ranges_of(len(times), together)))
    every = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return [
        PairDraws(*(every[f"{field.name} {sign}"] for field in fields(PairDraws)))
        for sign in ((1, -1) if negated else (1,))
    ]


def replicate_rows(xp: Xp, shared: Resampling, rows: Range) -> Arrays:
    """What a range of replicates gives: the fields of :class:`PairDraws` of the scores (1) and of
    the negated ones (−1), which have the same bins from high to low.
    """
    binned, times = shared.binned, shared.times[slice(*rows)]
    short = times.astype(np.float32)
    weight = short[:, binned.first]
    weight *= short[:, binned.second]
    target, nontarget = times @ binned.own, binned.weighted(weight)
    pieces = min(len(times), 1 + weight.size // _FEW)
    result: Arrays = {}
    for sign in (1, -1) if shared.negated else (1,):
        oracles = Oracles.of(target, nontarget, shared.mean, sign)
        with np.errstate(invalid="ignore", divide="ignore"):
            own = (oracles.per_bin @ binned.own.T) / binned.own.sum(axis=1)
            every = times, own, binned.summed(oracles.per_bin)
            parts = zip(*(np.array_split(one, pieces) for one in every), strict=True)
            dominances = [_dominances(binned, shared.mean, *part) for part in parts]
        signed, logs, share = (np.concatenate(each) for each in zip(*dominances, strict=True))
        values = PairDraws(signed, logs, oracles.d_ece, oracles.min_cllr, oracles.eer, share)
        result |= {f"{name} {sign}": value for name, value in vars(values).items()}
    return result


def _dominances(
    binned: Binned, mean: str, times: FloatArray, own: FloatArray, other: Table
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Dominance of the similarities and of their log2, and speakers' shares, of replicates."""
    within, between = own, other / binned.number
    if mean == "arithmetic":
        within, between = expit(within), expit(between)
        logs = np.log2(within), np.log2(between)
    else:
        logs = within / np.log(2), between / np.log(2)
        within, between = np.exp(within), np.exp(between)
    met, similar = binned.matrix(np.ones((1, len(binned.other)))), binned.matrix(between)
    partners = times @ met.T

    def ahead(matrix: csr_array) -> FloatArray:
        return np.asarray(matrix @ times.ravel()).reshape(times.shape)

    def dominance(within: FloatArray, between: FloatArray) -> FloatArray:
        compared = np.vecdot(times, between) / np.vecdot(times, partners)
        return np.asarray(np.vecdot(times, within) / times.sum(axis=1) - compared)

    total = ahead(similar)
    share = within - (total + ahead(similar.T)) / (partners + times @ met)
    return dominance(within, total), dominance(logs[0], ahead(binned.matrix(logs[1]))), share


@dataclass(frozen=True, eq=False)
class Oracles:
    """Oracle calibrations of rows of counts in bins: LLRs with Laplace, what a score of each bin
    adds to a similarity (bins from low scores to high), D_ECE and C_llr^min in bits, and the EER.
    """

    llr: FloatArray
    per_bin: FloatArray
    d_ece: FloatArray
    min_cllr: FloatArray
    eer: FloatArray

    @classmethod
    def of(
        cls, target: FloatArray, nontarget: FloatArray, mean: str = "geometric", sign: int = 1
    ) -> Oracles:
        """Calibrate every row; negated scores (−1) have the same bins from high to low."""
        target, nontarget = target[:, ::sign], nontarget[:, ::sign]
        bare = _Blocks.of(target, nontarget)
        smooth = bare.with_laplace()
        llr, place = smooth.llr(target, nontarget), smooth.place(target.shape)
        per_block = llr if mean == "arithmetic" else -information.softplus(-llr)
        disclosed = _disclosed(bare, target, nontarget)
        return cls(llr[place], per_block[place][:, ::sign], *disclosed, bare.eer(len(target)))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """PAV of rows of counts, of those that have both classes: the ``row`` of each block, the bin in
    which it begins (a row's first one reaches down to bin 0), and what was pooled.
    """

    row: IntArray
    start: IntArray
    target: FloatArray
    nontarget: FloatArray

    @classmethod
    def of(cls, target: FloatArray, nontarget: FloatArray) -> _Blocks:
        real = (target > 0) | (nontarget > 0)
        real &= np.any(target, axis=1, keepdims=True) & np.any(nontarget, axis=1, keepdims=True)
        row, start = np.nonzero(real)
        return cls(row, start, target[real], nontarget[real]).pooled()

    def pooled(self) -> _Blocks:
        """Neighbours of a row pooled; those that begin below 0 go where nothing else is pooled."""
        if not self.row.size:
            return self
        first = first_of_blocks(self.target, self.nontarget, self.row)
        real = np.maximum.reduceat(self.start, first) >= 0
        target, nontarget = (np.add.reduceat(one, first) for one in (self.target, self.nontarget))
        first = first[real]
        return _Blocks(self.row[first], self.start[first], target[real], nontarget[real])

    def with_laplace(self) -> _Blocks:
        """One target, then one nontarget, added at each end of a row."""
        rows = np.unique(self.row)
        order = np.argsort(np.concatenate([rows, rows, self.row, rows, rows]), kind="stable")
        one, none = np.ones(rows.size), np.zeros(rows.size)

        def added(more: Any, own: Any, last: Any) -> Any:
            return np.concatenate([more, last, own, more, last])[order]

        start = added(none - 1, self.start, none - 1).astype(np.int64)
        counts = added(one, self.target, none), added(none, self.nontarget, one)
        return _Blocks(added(rows, self.row, rows), start, *counts).pooled()

    @property
    def further(self) -> BoolArray:
        """Which blocks are not the first of their row."""
        return np.asarray(np.diff(self.row, prepend=-1) == 0)

    def llr(self, target: FloatArray, nontarget: FloatArray) -> FloatArray:
        """Natural-log LLR of every block of these rows of counts; NaN after the last."""
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = np.log(target.sum(axis=1) / nontarget.sum(axis=1))
            llr = np.log(self.target) - np.log(self.nontarget) - prior[self.row]
        return np.append(llr, np.nan)

    def place(self, shape: tuple[int, ...]) -> IntArray:
        """The number of the block of every bin of the rows, behind the last where there is none."""
        begins, further = np.zeros(shape, dtype=np.int64), self.further
        begins[self.row[further], self.start[further]] = 1
        first = np.searchsorted(self.row, np.arange(len(begins) + 1))
        begins[:, 0] = np.where(np.diff(first) > 0, first[:-1], self.row.size)
        return np.cumsum(begins, axis=1)

    def eer(self, rows: int) -> FloatArray:
        """EER on the hull of every row; NaN without both classes."""
        known, number = np.unique(self.row, return_inverse=True)
        column = np.arange(self.row.size) - np.searchsorted(self.row, self.row)
        counts = np.zeros((2, known.size, int(column.max(initial=0)) + 1))
        counts[:, number, column] = self.target, self.nontarget
        eer = np.full(rows, np.nan)
        eer[known] = equal_errors(*counts)
        return eer


def _disclosed(
    blocks: _Blocks, target: FloatArray, nontarget: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """D_ECE and C_llr^min in bits of every row, calibrated without Laplace."""
    llr, place = blocks.llr(target, nontarget), blocks.place(target.shape)

    def mean(weight: FloatArray, values: FloatArray) -> FloatArray:
        """Over trials, none of which has an infinite value."""
        finite = np.where(np.isinf(values), 0.0, values)
        with np.errstate(invalid="ignore"):
            return np.asarray((weight * finite[place]).sum(axis=1) / weight.sum(axis=1))

    both = (target, llr), (nontarget, -llr)
    d_ece = sum(mean(weight, information.z(values)) for weight, values in both)
    cllr = sum(mean(weight, information.softplus(-values)) for weight, values in both)
    return np.maximum(d_ece, 0.0) / (2 * np.log(2)), np.asarray(cllr) / (2 * np.log(2))


def pav_of(target: FloatArray, nontarget: FloatArray) -> Pav:
    """PAV of counts in bins, as a map of the numbers of the bins."""
    bins = np.flatnonzero((target > 0) | (nontarget > 0))
    first = first_of_blocks(target[bins], nontarget[bins])
    return Pav(
        bins[first[1:]].astype(np.float64),
        np.add.reduceat(target[bins], first),
        np.add.reduceat(nontarget[bins], first),
        float(target.sum()),
        float(nontarget.sum()),
    )
