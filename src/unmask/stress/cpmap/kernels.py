"""The trials of a C-P map, hardest first, and EER and minDCF of every cell from counts of prefixes.

Between two target scores Pmiss is constant, so only the gap matters in which a nontarget lies. How
many of the first a trials lie below gap τ? Where targets are few, a table of all prefixes and gaps
tells. Else a wavelet matrix (Claude and Navarro 2012) counts that in one step per binary digit of
the gap's number: walking down the digits *is* a bisection over thresholds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, Lookup, as_numbers, as_scores, reject_nan
from unmask.engine import Cost
from unmask.errors import InputError

Ranks = npt.NDArray[np.int32]
Hardness = npt.ArrayLike | Sequence[npt.ArrayLike]
Pair = tuple[npt.ArrayLike, npt.ArrayLike]
Times = tuple[IntArray, IntArray]
COMBINATIONS = ("rank", "mean")
_CLASSES = ("target", "nontarget")
_CELLS_PER_TRIAL = 4
_FEW = 1 << 10
"""Trials that tell most orders apart."""


@dataclass(frozen=True, eq=False)
class Order:
    """How the trials of one class stand on their axis: trial numbers ``hardest_first``, and
    ``starts`` in it of those that something tells apart from the ones before. ``digest`` names the
    order that the hardness gives, whatever its scale; ``tied`` is the largest group of equal
    hardness, within which the system's own scores decide; ``own`` tells that they are among those
    that order; ``unlike`` how many times wider the widest averaged reference spreads than the
    narrowest.
    """

    hardest_first: IntArray
    starts: IntArray
    digest: str
    tied: int
    own: bool
    unlike: float = 1.0

    @property
    def place(self) -> FloatArray:
        """Where each trial stands, in (0, 1); those that nothing tells apart share the mean."""
        size = self.hardest_first.size
        ends = np.append(self.starts, size)
        place = np.empty(size)
        place[self.hardest_first] = np.repeat((ends[:-1] + ends[1:]) / (2 * size), np.diff(ends))
        return place

    def position(self, times: IntArray, inside: IntArray) -> float:
        """Twice the mean place of the trials that stand ``inside`` times among all ``times``."""
        group, chosen = (
            np.add.reduceat(each[self.hardest_first], self.starts) for each in (times, inside)
        )
        place = (np.cumsum(group) - group / 2) / times.sum()
        return 2 * float(place @ chosen / chosen.sum())


@dataclass(frozen=True, eq=False)
class References:
    """Reference scores of one class: ``rows`` of the systems, and the ``one`` that they become."""

    rows: list[FloatArray]
    one: FloatArray

    @classmethod
    def of(cls, hardness: Hardness, size: int, combine: str, name: str) -> References:
        name = f"{name} hardness"
        rows = [_column(row, size, name) for row in references(hardness, name)]
        return cls(rows, combined(rows, combine=combine, name=name))


def ordered(
    scores: FloatArray, hardness: Hardness | References | None, *, combine: str, name: str
) -> Order:
    """Sort one class, hardest first: targets by low, nontargets by high reference scores, the own
    ones without hardness and for ties. Several references become one by the mean of ``rank`` or of
    scores.
    """
    if combine not in COMBINATIONS:
        raise InputError(f"hardness: expected combine rank or mean, found {combine}")
    sign = -1.0 if name == "nontarget" else 1.0
    if hardness is None:
        hardness = References([scores], scores)
    elif not isinstance(hardness, References):
        hardness = References.of(hardness, scores.size, combine, name)
    rows, reference = hardness.rows, sign * hardness.one
    hardest_first = np.lexsort([sign * scores, reference])
    groups = _changes(reference[hardest_first])
    codes = np.empty(groups.size, np.int64)
    codes[hardest_first] = np.cumsum(groups)
    return Order(
        hardest_first,
        np.flatnonzero(groups | _changes(scores[hardest_first])),
        hashlib.blake2b(codes.tobytes(), digest_size=8).hexdigest(),
        int(np.bincount(codes).max()),
        own=any(_alike(row, scores) for row in rows),
        unlike=_unlike(rows) if combine == "mean" and len(rows) > 1 else 1.0,
    )


def combined(rows: list[FloatArray], *, combine: str, name: str) -> FloatArray:
    """One reference score per trial: that of one system, or the mean over systems."""
    from scipy.stats import rankdata

    if len(rows) == 1:
        return rows[0]
    if combine == "rank":
        rows = [rankdata(row) for row in rows]
    with np.errstate(invalid="ignore"):
        mean = np.mean(rows, axis=0)
    reject_nan(mean, f"mean {name}")
    return np.asarray(mean)


def references(hardness: Any, name: str = "hardness") -> list[Any]:
    """A single array is one reference; a sequence of arrays (or two dimensions) is several."""
    single = isinstance(hardness, np.ndarray) and hardness.ndim == 1
    rows = [hardness] if single else list(hardness)
    if rows and all(np.ndim(row) == 0 for row in rows):
        rows = [rows]
    if not rows:
        raise InputError(f"{name}: expected at least one reference, found none")
    return rows


def _changes(keys: FloatArray) -> BoolArray:
    """True where a sorted key differs from the one before."""
    return np.append(True, keys[1:] != keys[:-1])


def _alike(row: FloatArray, scores: FloatArray) -> bool:
    """Whether two columns put the trials in one order, ties included; mostly a few tell."""
    if np.array_equal(row, scores):
        return True
    if row.size > _FEW and not _alike(row[:_FEW], scores[:_FEW]):
        return False
    by_row = np.argsort(row, kind="stable")
    row, scores = row[by_row], scores[by_row]
    rising = bool((scores[1:] >= scores[:-1]).all())
    return rising and np.array_equal(_changes(row), _changes(scores))


def _unlike(rows: list[FloatArray]) -> float:
    """How many times wider the widest column spreads than the narrowest (quartiles)."""
    spreads = [np.subtract(*np.quantile(row, (0.75, 0.25), method="lower")) for row in rows]
    widest, narrowest = max(spreads), min(spreads)
    if widest == 0 or not np.isfinite(widest):
        return 1.0
    return float(widest / narrowest) if narrowest > 0 else float("inf")


def _column(values: npt.ArrayLike, size: int, name: str) -> FloatArray:
    column = as_numbers(values, name)
    if column.shape != (size,):
        shape = column.size if column.ndim == 1 else f"shape {column.shape}"
        raise InputError(f"{name}: expected {size} values, one per trial, found {shape}")
    reject_nan(column, name)
    return column


def prefixes(codes: Ranks, digits: int) -> tuple[Ranks, ...]:
    """Score codes below 2^digits of one class in hardness order, split digit by digit from the
    highest: item i of level d counts those among the first i whose d-th digit is 0; they come first
    in level d + 1.
    """
    levels = []
    for shift in range(digits - 1, -1, -1):
        is_lower = (codes >> shift) & 1 == 0
        counts = np.zeros(codes.size + 1, np.int32)
        np.cumsum(is_lower, out=counts[1:])
        levels.append(counts)
        codes = np.concatenate([codes[is_lower], codes[~is_lower]])
    return tuple(levels)


Trials = tuple[tuple[Ranks, ...], tuple[Ranks, ...]]
"""Prefixes of targets and nontargets."""


def _split(lower: Ranks, places: Ranks) -> tuple[Ranks, Ranks]:
    """The lower and upper half of a score range one level down; ``places`` end each prefix."""
    below = lower[places]
    return below, lower[-1] + places - below


@dataclass(frozen=True, eq=False)
class Listed:
    """Both classes of one system, sorted once: their orders, and in them the ``codes`` of scores:
    2j + 1 at the j-th target score, even ones in the gaps; there are ``size`` of them.
    """

    orders: tuple[Order, Order]
    codes: tuple[Ranks, Ranks]
    size: int

    @classmethod
    def every(
        cls, pairs: Sequence[Pair], hardness: Sequence[Hardness | None], combine: str
    ) -> tuple[Listed, ...]:
        """All systems of one list of trials, whose references are made one once."""
        sizes = map(np.size, pairs[0])
        shared = [
            one if one is None else References.of(one, size, combine, name)
            for one, size, name in zip(hardness, sizes, _CLASSES, strict=True)
        ]
        return tuple(cls.of(pair, shared, combine) for pair in pairs)

    @classmethod
    def of(
        cls, pair: Pair, hardness: Sequence[Hardness | References | None], combine: str
    ) -> Listed:
        scores = [as_scores(one, name) for one, name in zip(pair, _CLASSES, strict=True)]
        target, nontarget = (
            ordered(score, hard, combine=combine, name=name)
            for score, hard, name in zip(scores, hardness, _CLASSES, strict=True)
        )
        gaps = Lookup(np.unique(scores[0]), "both")
        of_target, of_nontarget = (gaps(score).astype(np.int32) for score in scores)
        codes = of_target[target.hardest_first], of_nontarget[nontarget.hardest_first]
        return cls((target, nontarget), codes, 2 * gaps.boundaries.size + 1)

    @property
    def sizes(self) -> tuple[int, int]:
        """Targets and nontargets."""
        return self.codes[0].size, self.codes[1].size

    def is_tabular(self, *cells: IntArray) -> bool:
        """Whether tables of the prefixes of these ``cells`` are no larger than lists of trials."""
        prefixes = sum(len(np.unique(cell)) for cell in cells)
        return prefixes * self.size <= _CELLS_PER_TRIAL * sum(self.sizes)

    def eer(self, targets: IntArray, nontargets: IntArray, times: Times | None) -> FloatArray:
        """Raw EER of the first ``targets`` and ``nontargets`` trials, cell by cell, by tables."""
        tables, rows = [], []
        for i, (sizes, order) in enumerate(zip((targets, nontargets), self.orders, strict=True)):
            ends, row = np.unique(sizes, return_inverse=True)
            often = None if times is None else times[i][order.hardest_first]
            tables.append(_below(self.codes[i], ends, self.size, often))
            rows.append(row)
        return _eer_of_tables(*tables, *rows)

    def trials(self, times: Times | None = None) -> Trials:
        """The list in which a trial stands as often as ``times`` says, or once."""
        codes: Sequence[Ranks] = self.codes
        if times is not None:
            each = zip(codes, self.orders, times, strict=True)
            codes = [np.repeat(c, often[o.hardest_first]) for c, o, often in each]
        target, nontarget = (prefixes(ranks, self.size.bit_length()) for ranks in codes)
        return target, nontarget


def _below(codes: Ranks, ends: IntArray, size: int, times: IntArray | None) -> IntArray:
    """How many of the first ``ends`` trials, each ``times`` times, lie below codes 0 … ``size``."""
    counts = np.zeros((len(ends), size + 1), np.int64)
    after = None if times is None else np.cumsum(times)
    # Trials before these are whole in a prefix; of these some copies are, or none.
    at = ends if after is None else np.searchsorted(after, ends)
    for row, first, last in zip(counts, np.append(0, at), at, strict=False):
        often = None if times is None else times[first:last]
        row[1:] = np.bincount(codes[first:last], often, minlength=size)
    np.cumsum(counts, axis=0, out=counts)
    if after is not None and times is not None:
        counts[np.arange(len(ends)), codes[at] + 1] += ends - after[at] + times[at]
    return np.cumsum(counts, axis=1, out=counts)


def _eer_of_tables(
    target: IntArray, nontarget: IntArray, of_target: IntArray, of_nontarget: IntArray
) -> FloatArray:
    """Raw EER of cells, rows of both tables, by bisection for the last code of Pmiss < Pfa."""
    targets, nontargets = target[of_target, -1], nontarget[of_nontarget, -1]
    code = np.zeros(of_target.size, np.int64)
    for shift in range(target.shape[1].bit_length() - 1, -1, -1):
        higher = np.minimum(code + (1 << shift), target.shape[1] - 1)
        accepted = nontargets - nontarget[of_nontarget, higher]
        below = target[of_target, higher] * nontargets < accepted * targets
        code = np.where(below, higher, code)
    missed, accepted = target[of_target, code], nontargets - nontarget[of_nontarget, code]
    lost, gone = target[of_target, code + 1] - missed, nontarget[of_nontarget, code + 1]
    gone -= nontargets - accepted
    share = (accepted * targets - missed * nontargets) / (lost * nontargets + gone * targets)
    return np.asarray((missed + share * lost) / targets)


def prefix_sizes(trials: int, grid: int) -> IntArray:
    """ceil(i·n/grid) for i = 1 … grid, in integers: no rounding error can add a trial."""
    return -(-np.arange(1, grid + 1) * trials // grid)


def _first(counts: IntArray) -> Ranks:
    """Places of the first ``counts`` trials over the whole score range."""
    return np.stack([np.zeros_like(counts), counts]).astype(np.int32)


def _sizes(places: Ranks) -> Ranks:
    return np.asarray(places[1] - places[0])


def eer(trials: Trials, targets: IntArray, nontargets: IntArray) -> FloatArray:
    """Raw EER of the first ``targets`` and ``nontargets`` trials, cell by cell: digit by digit the
    half of the score range is kept in which Pmiss − Pfa reaches 0, down to one score, over which
    the ROC polygon runs straight. Comparisons are in integers, so ties are exact.
    """
    t, n = _first(targets), _first(nontargets)
    missed = np.zeros(targets.size, np.int64)
    accepted = nontargets.astype(np.int64)
    for target, nontarget in zip(*trials, strict=True):
        t_lower, t_upper = _split(target, t)
        n_lower, n_upper = _split(nontarget, n)
        missed_at = missed + _sizes(t_lower)
        accepted_at = accepted - _sizes(n_lower)
        upper = missed_at * nontargets < accepted_at * targets
        missed = np.where(upper, missed_at, missed)
        accepted = np.where(upper, accepted_at, accepted)
        t, n = np.where(upper, t_upper, t_lower), np.where(upper, n_upper, n_lower)
    lacking = accepted * targets - missed * nontargets
    share = lacking / (_sizes(t) * nontargets + _sizes(n) * targets)
    return np.asarray((missed + share * _sizes(t)) / targets)


def min_dcf(trials: Trials, targets: IntArray, nontargets: IntArray, cost: Cost) -> FloatArray:
    """Least normalised detection cost, ±inf included, cell by cell, by branch and bound: a score
    range is split only where Pmiss at its lower and Pfa at its upper end undercut the best
    threshold yet.
    """
    miss, alarm = float(cost.of(1.0, 0.0)) / targets, float(cost.of(0.0, 1.0)) / nontargets
    best = np.minimum(miss * targets, alarm * nontargets)
    cell: npt.NDArray[np.intp] = np.arange(targets.size)
    t, n = _first(targets), _first(nontargets)
    missed = np.zeros(targets.size, np.int64)
    accepted = nontargets.astype(np.int64)
    for target, nontarget in zip(*trials, strict=True):
        t_lower, t_upper = _split(target, t)
        n_lower, n_upper = _split(nontarget, n)
        missed_at = missed + _sizes(t_lower)
        accepted_at = accepted - _sizes(n_lower)
        cost_missed, cost_accepted = miss[cell] * missed_at, alarm[cell] * accepted_at
        np.minimum.at(best, cell, cost_missed + cost_accepted)
        least = best[cell]
        lower = np.flatnonzero(miss[cell] * missed + cost_accepted < least)
        upper = np.flatnonzero(cost_missed + alarm[cell] * (accepted_at - _sizes(n_upper)) < least)
        cell = np.concatenate([cell[lower], cell[upper]])
        missed = np.concatenate([missed[lower], missed_at[upper]])
        accepted = np.concatenate([accepted[lower], accepted_at[upper]])
        t = np.concatenate([t_lower[:, lower], t_upper[:, upper]], axis=1)
        n = np.concatenate([n_lower[:, lower], n_upper[:, upper]], axis=1)
    return best
