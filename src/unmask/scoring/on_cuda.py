"""Whole plans on one or several CUDA devices; torch is imported when a device is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Rows32
from unmask.run import Range, devices, tensor
from unmask.scoring.by_speaker import BySpeaker, by_speaker_on_device
from unmask.scoring.counting import UNIT, Tally
from unmask.scoring.plan import TILE, Sides

R = TypeVar("R")
STRIP = 1 << 28
WIDEST_COSINE = np.float32(1.001)


def count_on_cuda(sides: Sides, knots: Rows32) -> Tally:
    """Count the nontargets of a plan, its rows shared among all devices."""
    found = devices()
    shares = share_rows(sides.plan.enrol, len(found), symmetric=sides.plan.symmetric)
    with ThreadPoolExecutor(len(shares)) as pool:
        parts = pool.map(lambda pair: _count(sides, knots, *pair), zip(found, shares, strict=False))
        return sum(parts, start=Tally.empty(knots.size))


def by_speaker_on_cuda(sides: Sides, edges: FloatArray, speakers: int) -> BySpeaker:
    """Count a plan by speaker, its rows shared among all devices."""
    found = devices()
    shares = share_rows(sides.plan.enrol, len(found), symmetric=False)

    def count(pair: tuple[str, Range]) -> tuple[npt.NDArray[Any], ...]:
        return by_speaker_on_device(sides, edges, speakers, *pair)

    with ThreadPoolExecutor(len(shares)) as pool:
        parts = list(pool.map(count, zip(found, shares, strict=False)))
    target, nontarget, missed, accepted = (
        np.sum(tables, axis=0) for tables in zip(*parts, strict=True)
    )
    if sides.plan.symmetric:
        target, missed = target // 2, missed / 2
    return BySpeaker.of_pairs(edges, target, nontarget, missed, accepted)


def share_rows(rows: int, parts: int, *, symmetric: bool) -> list[Range]:
    """Ranges of rows on the grid of tiles with about as many pairs each."""
    share = np.linspace(0, 1, parts + 1)
    if symmetric:
        share = 1 - np.sqrt(1 - share)
    cut = np.minimum(np.round(share * rows / TILE).astype(int) * TILE, rows)
    cut[-1] = rows
    return [(int(a), int(b)) for a, b in pairwise(cut) if a < b]


def _count(sides: Sides, knots: Rows32, device: str, rows: Range) -> Tally:
    import torch

    from unmask.scoring.cuda_roc import count_nontargets

    put = partial(tensor, device=device)
    plan = sides.plan
    enrol, one = put(sides.enrol), put(sides.enrol_speaker)
    same = sides.test is sides.enrol
    test, other = (enrol, one) if same else (put(sides.test), put(sides.test_speaker))
    possible = np.ones(knots.size, bool) if plan.llr else np.abs(knots) <= WIDEST_COSINE
    with torch.cuda.device(device):
        counts = count_nontargets(
            enrol, test, one, other, put(knots[possible]), symmetric=plan.symmetric, rows=rows
        )
        loss = _loss(torch, enrol, test, one, other, rows, symmetric=plan.symmetric)
    return tally_of(counts.equal, counts.between, knots, possible, loss)


def tally_of(
    equal: IntArray,
    between: IntArray,
    knots: Rows32,
    possible: npt.NDArray[np.bool_],
    loss: float,
) -> Tally:
    """Counts of gaps and ties as a tally over all knots; impossible ones have no scores beyond."""
    total = int(equal.sum() + between.sum())
    below = np.where(knots > 0, total, 0).astype(np.int64)
    below[possible] = np.cumsum(between[:-1]) + np.cumsum(equal) - equal
    ties = np.zeros(knots.size, np.int64)
    ties[possible] = equal
    return Tally(below, ties, total, round(loss / UNIT))


def _loss(
    torch: Any, enrol: Any, test: Any, one: Any, other: Any, rows: Range, *, symmetric: bool
) -> float:
    """Sum of log(1 + eˢ) over the nontargets of some rows, strip by strip, in float32."""
    total = 0.0
    step = max(1, STRIP // len(test))
    column = torch.arange(len(test), device=test.device)
    for start in range(rows[0], rows[1], step):
        stop = min(start + step, rows[1])
        scores = torch.nn.functional.softplus(enrol[start:stop] @ test.T)
        counted = one[start:stop, None] != other[None, :]
        if symmetric:
            counted &= column[start:stop, None] < column[None, :]
        total += float((scores * counted).sum(dtype=torch.float64))
    return total
