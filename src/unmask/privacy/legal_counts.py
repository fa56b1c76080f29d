"""How many enrolment speakers score at or above the true one, for every test speaker.

Scores are inner products, computed in blocks in single precision. Where a score lies so close to
s(i,i) that rounding could decide, the pair is computed again in double precision, one pair at a
time: the counts are those of double precision, whatever the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import BoolArray, FloatArray, IntArray, reject_nan
from unmask.errors import InputError

Progress = Callable[[int, int], None]
ENROL_BLOCK = 1920
TEST_BLOCK = 5120
_RECHECK = 1 << 16
_STRIP = 240


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


def pair_scores(test: FloatArray, enrol: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    """Double-precision scores of pairs; equal vectors give equal scores, wherever they stand."""
    scores = np.empty(i.size)
    for start in range(0, i.size, _RECHECK):
        part = slice(start, start + _RECHECK)
        scores[part] = (test[i[part]] * enrol[j[part]]).sum(axis=1)
    return scores


def count_above(
    test: FloatArray,
    enrol: FloatArray,
    true: IntArray,
    *,
    test_side: IntArray | None = None,
    enrol_side: IntArray | None = None,
    enrol_block: int = ENROL_BLOCK,
    test_block: int = TEST_BLOCK,
    progress: Progress | None = None,
) -> Above:
    """Count over the score matrix ``test @ enrol.T`` without ever holding it.

    ``true[i]`` is the row of ``enrol`` that belongs to test row i. With side information a pair
    whose codes differ cannot be chosen: it scores −inf.
    """
    everyone = np.arange(len(true))
    own = pair_scores(test, enrol, everyone, true)
    if test_side is not None and enrol_side is not None:
        own = np.where(test_side == enrol_side[true], own, -np.inf)
    margin = rounding(test, enrol)
    low = _outward(own - margin, own, -np.inf)
    high = _outward(own + margin, own, np.inf)
    tests, enrols = test.astype(np.float32), enrol.astype(np.float32)
    at_or_above = np.zeros(len(true), dtype=np.int64)
    above = np.zeros(len(true), dtype=np.int64)
    for first in range(0, len(tests), test_block):
        columns = slice(first, first + test_block)
        side = tests[columns].T
        close_i, close_j = [], []
        for start, scores in _strips(enrols, side, enrol_block):
            rows = slice(start, start + len(scores))
            if test_side is not None and enrol_side is not None:
                scores[enrol_side[rows, None] != test_side[None, columns]] = -np.inf
            reaches, exceeds = scores >= low[columns], scores > high[columns]
            reached, exceeded = _column_sums(reaches), _column_sums(exceeds)
            above[columns] += exceeded
            unsure = np.flatnonzero(reached != exceeded)
            j, i = np.nonzero(reaches[:, unsure] > exceeds[:, unsure])
            close_i.append(unsure[i] + first)
            close_j.append(j + start)
        _settle(
            (test, enrol, own, true),
            (np.concatenate(close_i), np.concatenate(close_j)),
            (test_side, enrol_side),
            at_or_above,
            above,
        )
        at_or_above[columns] += above[columns]
        if progress is not None:
            progress(min(first + test_block, len(tests)), len(tests))
    return Above(at_or_above, above, len(enrol) - 1)


def _strips(
    enrol: npt.NDArray[np.float32], test: npt.NDArray[np.float32], block: int
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Strips of at most 240 rows of the product, cut from few large products: many small ones wait
    for each other's threads.
    """
    for first in range(0, len(enrol), block):
        product = enrol[first : first + block] @ test
        for start in range(0, len(product), _STRIP):
            yield first + start, product[start : start + _STRIP]


def _outward(bound: FloatArray, own: FloatArray, side: float) -> npt.NDArray[np.float32]:
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


def _settle(
    pairs: tuple[FloatArray, FloatArray, FloatArray, IntArray],
    close: tuple[IntArray, IntArray],
    sides: tuple[IntArray | None, IntArray | None],
    equal: IntArray,
    above: IntArray,
) -> None:
    """Decide the pairs too close to call: add those above to ``above``, ties to ``equal``."""
    test, enrol, own, true = pairs
    i, j = close
    other = j != true[i]
    i, j = i[other], j[other]
    scores = pair_scores(test, enrol, i, j)
    if sides[0] is not None and sides[1] is not None:
        scores = np.where(sides[0][i] == sides[1][j], scores, -np.inf)
    above += np.bincount(i[scores > own[i]], minlength=len(own))
    equal += np.bincount(i[scores == own[i]], minlength=len(own))


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
