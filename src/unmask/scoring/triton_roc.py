"""The exact ROC statistic of a whole score matrix on a GPU; needs torch and numpy alone.

Scores are counted inside the tile of the product that made them. The range of target scores is cut
into fine cells by a monotone map: in one without a target a nontarget lies in a known gap between
targets, in another its place among them is found by binary search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # a CPU build of torch, or a platform without triton
    triton = None

CELLS = 1 << 22
TILE = 64
"""Rows and columns of a tile: of larger ones the search among targets does not fit registers."""
GROUP = 8
"""Tiles of rows that are done together, so that the columns they share stay near."""
MOST_TRIALS = 1 << 31


@dataclass(frozen=True)
class Counts:
    """Nontargets equal to each distinct target score, and in the gaps below, between and above."""

    equal: np.ndarray[Any, np.dtype[np.int64]]
    between: np.ndarray[Any, np.dtype[np.int64]]


def count_nontargets(
    enrol: torch.Tensor,
    test: torch.Tensor,
    enrol_speaker: torch.Tensor,
    test_speaker: torch.Tensor,
    target_scores: torch.Tensor,
    *,
    symmetric: bool = False,
    precision: str = "tf32x3",
    rows: tuple[int, int] | None = None,
) -> Counts:
    """Count the scores ``enrol @ test.T`` of different speakers among distinct target scores.

    Rows are unit vectors on a CUDA device, ``target_scores`` distinct, ascending, float32.
    ``symmetric`` counts each unordered pair of a set with itself once. ``precision`` is that of the
    product: ``ieee`` float32, or ``tf32x3``, which is as exact to about 1e-7 and faster. ``rows``
    counts only the enrolment rows of that range, so that several devices can share the work.
    """
    if triton is None:
        raise RuntimeError("counting on a GPU needs triton, which comes with torch's CUDA build")
    tables = _Tables(target_scores)
    columns, dimension = test.shape
    step = max(TILE, MOST_TRIALS // max(columns, 1) // TILE * TILE)
    size = CELLS + 2 * len(target_scores) + 1 + 2
    counters = torch.zeros(size, dtype=torch.int64, device=test.device)
    first, last = rows or (0, len(enrol))
    for start in range(first, last, step):
        stop = min(start + step, last)
        piece = torch.zeros(counters.numel(), dtype=torch.int32, device=test.device)
        grid = (triton.cdiv(stop - start, TILE) * triton.cdiv(columns, TILE),)
        _count_tile[grid](
            enrol, test, enrol_speaker, test_speaker, target_scores, tables.first, tables.occupied,
            piece, start, stop, columns, len(target_scores), tables.low, tables.high, tables.scale,
            DIMENSION=dimension, DEPTH=min(64, triton.next_power_of_2(dimension)),
            CELLS=CELLS, STEPS=tables.steps, SYMMETRIC=symmetric, PRECISION=precision,
            TILE=TILE, GROUP=GROUP, num_warps=4, num_stages=3,
        )  # fmt: skip
        counters += piece
    return tables.gather(counters)


class _Tables:
    """Which cells hold targets, and how many targets lie below each cell."""

    def __init__(self, target_scores: torch.Tensor) -> None:
        self.targets = target_scores
        self.low, self.high = float(target_scores[0]), float(target_scores[-1])
        width = self.high - self.low
        self.scale = float(np.float32((CELLS - 1) / width)) if width > 0 else 0.0
        cell = ((target_scores - self.low) * self.scale).to(torch.int32).clamp_(0, CELLS - 1)
        counts = torch.bincount(cell, minlength=CELLS)
        self.first = torch.zeros(CELLS + 1, dtype=torch.int32, device=target_scores.device)
        self.first[1:] = torch.cumsum(counts, 0)
        self.steps = int(counts.max()).bit_length()
        bits = (counts > 0).to(torch.int32).reshape(-1, 32)
        place = torch.arange(32, device=bits.device, dtype=torch.int32)
        self.occupied = (bits << place).sum(1, dtype=torch.int32)

    def gather(self, counters: torch.Tensor) -> Counts:
        """From counters of cells and of bins to counts of gaps and of ties."""
        m = len(self.targets)
        cells, bins = counters[:CELLS], counters[CELLS : CELLS + 2 * m + 1]
        between = bins[0::2].clone()
        between.index_add_(0, self.first[:-1].long(), cells)
        between[0] += counters[-2]
        between[m] += counters[-1]
        return Counts(bins[1::2].cpu().numpy(), between.cpu().numpy())


if triton is not None:

    @triton.jit
    def _count_tile(
        enrol, test, enrol_speaker, test_speaker, targets, first, occupied, counters,
        row_start, row_stop, columns, m, low, high, scale,
        DIMENSION: tl.constexpr, DEPTH: tl.constexpr, CELLS: tl.constexpr, STEPS: tl.constexpr,
        SYMMETRIC: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    ):  # fmt: skip
        across = tl.cdiv(columns, TILE)
        together = tl.program_id(0) // (GROUP * across) * GROUP
        number = tl.program_id(0) % (GROUP * across)
        high_group = tl.minimum(tl.cdiv(row_stop - row_start, TILE) - together, GROUP)
        top = row_start + (together + number % high_group) * TILE
        side = number // high_group * TILE
        if SYMMETRIC:  # noqa: SIM102 - known when compiled, apart from the test at run time
            if side + TILE <= top:
                return
        within = tl.arange(0, TILE)
        rows, cols = top + within, side + within
        row_real, col_real = rows < row_stop, cols < columns
        enrol += tl.cast(top, tl.int64) * DIMENSION
        test += tl.cast(side, tl.int64) * DIMENSION
        score = tl.zeros((TILE, TILE), dtype=tl.float32)
        for start in range(0, DIMENSION, DEPTH):
            depth = start + tl.arange(0, DEPTH)
            real = depth < DIMENSION
            a = tl.load(
                enrol + within[:, None] * DIMENSION + depth[None, :],
                mask=row_real[:, None] & real[None, :], other=0.0,
            )  # fmt: skip
            b = tl.load(
                test + within[None, :] * DIMENSION + depth[:, None],
                mask=col_real[None, :] & real[:, None], other=0.0,
            )  # fmt: skip
            score = tl.dot(a, b, score, input_precision=PRECISION)
        one = tl.load(enrol_speaker + rows, mask=row_real, other=-1)
        other = tl.load(test_speaker + cols, mask=col_real, other=-2)
        counted = (one[:, None] != other[None, :]) & row_real[:, None] & col_real[None, :]
        if SYMMETRIC:
            counted = counted & (rows[:, None] < cols[None, :])
        under = counted & (score < low)
        over = counted & (score > high)
        end = counters + CELLS + 2 * m + 1
        tl.atomic_add(end, tl.sum(under.to(tl.int32)), sem="relaxed")
        tl.atomic_add(end + 1, tl.sum(over.to(tl.int32)), sem="relaxed")
        inside = counted & (score >= low) & (score <= high)
        cell = tl.minimum(tl.maximum(((score - low) * scale).to(tl.int32), 0), CELLS - 1)
        word = tl.load(occupied + (cell >> 5), mask=inside, other=0)
        mixed = inside & (((word >> (cell & 31)) & 1) != 0)
        tl.atomic_add(counters + cell, 1, mask=inside & (mixed == 0), sem="relaxed")
        if tl.sum(mixed.to(tl.int32)) > 0:
            left = tl.load(first + cell, mask=mixed, other=0)
            right = tl.load(first + cell + 1, mask=mixed, other=0)
            for _ in range(STEPS):
                middle = (left + right) // 2
                searching = mixed & (left < right)
                value = tl.load(targets + middle, mask=searching, other=0.0)
                left = tl.where(searching & (value < score), middle + 1, left)
                right = tl.where(searching & (value >= score), middle, right)
            value = tl.load(targets + left, mask=mixed & (left < m), other=2.0)
            place = CELLS + 2 * left + (value == score).to(tl.int32)
            tl.atomic_add(counters + place, 1, mask=mixed, sem="relaxed")
