"""How many enrolment speakers score at or above the true one, for every test speaker.

Scores are inner products, computed in blocks in single precision. Where a score lies so close to
s(i,i) that rounding could decide, the pair is computed again in double precision, one pair at a
time: the counts are those of double precision, whatever the place and the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, reject_nan
from unmask.errors import InputError
from unmask.run import HERE, ArrayFields, Arrays, Range, Where, product_type, ranges_of, run, tensor

Progress = Callable[[int, int], None]
Single = npt.NDArray[np.float32]
ROWS = 1280
_RECHECK = 1 << 16
_STRIP = 240
_DEVICE_SCORES = 1 << 28


@dataclass(frozen=True, eq=False)
class Above:
    """Of the ``others`` enrolment speakers j ≠ i, how many score at or above s(i,i), and above."""

    at_or_above: IntArray
    above: IntArray
    others: int

    def negated(self) -> Above:
        """The same counts for the negated score: −s(i,j) ≥ −s(i,i) where s(i,j) ≤ s(i,i)."""
        return Above(self.others - self.above, self.others - self.at_or_above, self.others)


def rounding(test: FloatArray, enrol: FloatArray) -> FloatArray:
    """Bound on the difference of two single-precision scores of each test vector from the truth.

    An inner product of d terms errs by at most (d + 2)·u·‖a‖·‖b‖ with u = 2⁻²⁴, rounding of the
    vectors to single precision included; a difference of two such scores by twice that.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", enrol, enrol).max()))
    lengths = np.sqrt(np.einsum("ij,ij->i", test, test))
    return np.asarray(2 * (test.shape[1] + 4) * 2.0**-24 * lengths * longest)


@dataclass(frozen=True, eq=False)
class Comparison(ArrayFields):
    """Rows whose inner products are scores; ``true[i]`` is the row of ``enrol`` that belongs to
    test row i. With side information a pair whose codes differ cannot be chosen: it scores −inf.
    """

    test: FloatArray
    enrol: FloatArray
    true: IntArray
    test_side: IntArray | None = None
    enrol_side: IntArray | None = None

    def scores(self, i: IntArray, j: IntArray) -> FloatArray:
        """Double-precision scores of pairs; equal vectors give equal scores, wherever they are."""
        scores = np.empty(i.size)
        for start in range(0, i.size, _RECHECK):
            part = slice(start, start + _RECHECK)
            scores[part] = (self.test[i[part]] * self.enrol[j[part]]).sum(axis=1)
        if self.test_side is None or self.enrol_side is None:
            return scores
        return np.where(self.test_side[i] == self.enrol_side[j], scores, -np.inf)

    def bounds(self, rows: Range) -> tuple[FloatArray, Single, Single]:
        """s(i,i) of some test rows, and between which bounds single precision cannot decide."""
        i = np.arange(*rows)
        own = self.scores(i, self.true[slice(*rows)])
        margin = rounding(self.test[slice(*rows)], self.enrol)
        return own, _outward(own - margin, own, -np.inf), _outward(own + margin, own, np.inf)

    def settled(
        self, rows: Range, own: FloatArray, above: IntArray, close: tuple[IntArray, IntArray]
    ) -> Arrays:
        """Counts of some test rows: those surely above, and what becomes of the pairs too close to
        call, each (number within the rows, enrolment row).
        """
        i, j = close
        other = j != self.true[rows[0] + i]
        i, j = i[other], j[other]
        scores = self.scores(rows[0] + i, j)
        above = above + np.bincount(i[scores > own[i]], minlength=own.size)
        equal = np.bincount(i[scores == own[i]], minlength=own.size)
        return {"at_or_above": above + equal, "above": above}


def count_above(
    comparison: Comparison,
    *,
    rows: int | None = None,
    where: Where = HERE,
    progress: Progress | None = None,
) -> Above:
    """Count over the score matrix ``test @ enrol.T`` without ever holding it.

    Counts of test rows do not depend on each other, so a task is a range of them; they are those
    of double precision, so all places give the same.
    """
    ranges = ranges_of(len(comparison.true), rows or ROWS)
    found = run(
        count_rows,
        comparison,
        ranges,
        where=where,
        on_device=counts_on_device,
        progress=progress,
    )
    parts = list(found)
    return Above(
        np.concatenate([part["at_or_above"] for part in parts]),
        np.concatenate([part["above"] for part in parts]),
        len(comparison.enrol) - 1,
    )


def count_rows(comparison: Comparison, rows: Range) -> Arrays:
    """Counts of a range of test rows."""
    own, low, high = comparison.bounds(rows)
    test = comparison.test[slice(*rows)].astype(np.float32).T
    above = np.zeros(own.size, dtype=np.int64)
    close_i, close_j = [], []
    for first in range(0, len(comparison.enrol), _STRIP):
        strip = slice(first, first + _STRIP)
        scores = comparison.enrol[strip].astype(np.float32) @ test
        if comparison.test_side is not None and comparison.enrol_side is not None:
            differ = comparison.enrol_side[strip, None] != comparison.test_side[None, slice(*rows)]
            scores[differ] = -np.inf
        reaches, exceeds = scores >= low, scores > high
        reached, exceeded = _column_sums(reaches), _column_sums(exceeds)
        above += exceeded
        unsure = np.flatnonzero(reached != exceeded)
        j, i = np.nonzero(reaches[:, unsure] > exceeds[:, unsure])
        close_i.append(unsure[i])
        close_j.append(j + first)
    return comparison.settled(rows, own, above, (np.concatenate(close_i), np.concatenate(close_j)))


def counts_on_device(comparison: Comparison, device: str) -> Callable[[Range], Arrays]:
    """The same on a CUDA device: products there, the pairs too close to call here."""
    import torch

    put = partial(tensor, device=device)
    kind = product_type()
    enrol = put(comparison.enrol.astype(np.float32)).to(kind)
    enrol_side = None if comparison.enrol_side is None else put(comparison.enrol_side)
    step = max(1, _DEVICE_SCORES // len(comparison.enrol))

    def count(rows: Range) -> Arrays:
        own, low, high = comparison.bounds(rows)
        above = np.zeros(own.size, dtype=np.int64)
        close_i, close_j = [], []
        for first in range(0, own.size, step):
            part = slice(first, min(first + step, own.size))
            chosen = slice(rows[0] + part.start, rows[0] + part.stop)
            scores = put(comparison.test[chosen].astype(np.float32)).to(kind) @ enrol.T
            if comparison.test_side is not None and enrol_side is not None:
                differ = put(comparison.test_side[chosen])[:, None] != enrol_side[None, :]
                scores.masked_fill_(differ, -torch.inf)
            exceeds = scores > put(high[part])[:, None]
            above[part] = exceeds.sum(dim=1).cpu().numpy()
            i, j = torch.nonzero((scores >= put(low[part])[:, None]) & ~exceeds).cpu().numpy().T
            close_i.append(i + first)
            close_j.append(j)
        close = np.concatenate(close_i), np.concatenate(close_j)
        return comparison.settled(rows, own, above, close)

    return count


def _outward(bound: FloatArray, own: FloatArray, side: float) -> Single:
    """A bound in single precision that is not tightened by rounding; none around −inf."""
    bound = np.where(np.isfinite(own), bound, own)
    rounded = bound.astype(np.float32)
    finite = np.isfinite(rounded)
    rounded[finite] = np.nextafter(rounded[finite], np.float32(side))
    return rounded


def _column_sums(flags: BoolArray) -> npt.NDArray[np.uint8]:
    """Sums over at most 255 rows, in bytes: eight times narrower than a sum of integers."""
    sums: npt.NDArray[np.uint8] = np.add.reduce(flags.view(np.uint8), axis=0, dtype=np.uint8)
    return sums


def count_above_in_scores(
    scores: npt.ArrayLike, true_column: npt.ArrayLike, *, matches: npt.ArrayLike | None = None
) -> Above:
    """The same counts from a given matrix, test speakers × enrolment speakers."""
    matrix = np.asarray(scores)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or not matrix.size:
        raise InputError(
            "scores: expected a matrix of test speakers × at least 2 enrolment speakers,"
            f" found shape {matrix.shape}"
        )
    true = np.asarray(true_column)
    if true.shape != (len(matrix),) or true.dtype.kind not in "iu":
        raise InputError(
            f"true_column: expected {len(matrix)} column numbers, found shape {true.shape}"
            f" of {true.dtype}"
        )
    outside = (true < 0) | (true >= matrix.shape[1])
    if outside.any():
        raise InputError(
            f"true_column: {int(outside.sum())} of {true.size} lie outside the"
            f" {matrix.shape[1]} enrolment columns, the first at index {int(outside.argmax())}"
        )
    allowed = None if matches is None else np.asarray(matches, dtype=bool)
    if allowed is not None and allowed.shape != matrix.shape:
        raise InputError(f"matches: expected shape {matrix.shape}, found {allowed.shape}")
    at_or_above = np.empty(len(matrix), dtype=np.int64)
    above = np.empty(len(matrix), dtype=np.int64)
    step = max(1, (1 << 22) // matrix.shape[1])
    for start in range(0, len(matrix), step):
        rows = slice(start, start + step)
        part = np.asarray(matrix[rows], dtype=np.float64)
        reject_nan(part.reshape(-1), "pair")
        if allowed is not None:
            part = np.where(allowed[rows], part, -np.inf)
        own = np.take_along_axis(part, true[rows, None].astype(np.int64), axis=1)
        at_or_above[rows] = (part >= own).sum(axis=1) - 1
        above[rows] = (part > own).sum(axis=1)
    return Above(at_or_above, above, matrix.shape[1] - 1)
