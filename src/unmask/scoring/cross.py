"""All pairs of a plan, scored and counted somewhere: the ROC statistic straight from embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.errors import InputError
from unmask.scoring.backend import Backend
from unmask.scoring.counting import (
    UNIT,
    Tally,
    TargetScores,
    count_block,
    target_scores,
)
from unmask.scoring.layout import Layout
from unmask.scoring.on_cuda import count_on_cuda, devices
from unmask.scoring.plan import BLOCK, Plan, Rows32, Sides, Task
from unmask.scoring.state import Ledger, keep_targets, kept_targets, workplace
from unmask.scoring.where import Lost, Place, check_place, place

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class CrossCounts:
    """Counts of both classes at the distinct target scores and at further thresholds.

    ``between`` are the nontargets in the gaps below, between and above the ``scores``; ``loss`` is
    the summed log(1 + e^∓s) of targets and nontargets.
    """

    scores: FloatArray
    target: IntArray
    equal: IntArray
    between: IntArray
    loss: tuple[float, float]


def count_pairs(
    layout: Layout,
    backend: Backend,
    *,
    thresholds: Sequence[float] = (),
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> CrossCounts:
    """Score every pair of a layout and count it; nobody ever holds the score matrix.

    ``state`` is a folder for the prepared rows and the finished blocks, which the workers must see;
    after a fault the same call goes on from there.
    """
    check_place(on)
    if on == "cuda":
        devices()
    with workplace(layout.key(backend), state) as folder:
        plan = (
            Plan.read(folder) if (folder / "plan.json").exists() else layout.write(folder, backend)
        )
        with place("local" if on == "cuda" else on, workers=workers) as somewhere:
            somewhere.check_folder(folder)
            targets = kept_targets(folder)
            if targets is None:
                tasks = plan.bands()
                parts = [part for _, part in somewhere.each(target_scores, tasks)]
                targets = TargetScores.merge(parts)
                keep_targets(folder, targets)
            knots = knots_of(targets.scores, thresholds)
            np.save(folder / "knots.npy", knots)
            if on == "cuda":
                tally = count_on_cuda(Sides.open(folder), knots)
            else:
                tasks = plan.blocks(targets=targets.scores.size, block=block)
                ledger = Ledger(folder, len(tasks), knots.size, block=block)
                _work(somewhere, tasks, ledger, folder, progress)
                tally = ledger.tally
    if not tally.total:
        raise InputError("pairs: expected nontarget trials, found none")
    return assemble(targets, thresholds, knots, tally)


def _work(
    somewhere: Place,
    tasks: list[Task],
    ledger: Ledger,
    folder: Path,
    progress: Progress | None,
) -> None:
    left = ledger.left
    if progress is not None:
        progress(len(tasks) - left.size, len(tasks))
    try:
        for i, tally in somewhere.each(count_block, [tasks[number] for number in left]):
            ledger.add(int(left[i]), tally)
            if progress is not None:
                progress(int(ledger.done.sum()), len(tasks))
    except Lost as error:
        done = int(ledger.done.sum())
        raise InputError(
            f"{error}; {done} of {len(tasks)} blocks are done and kept in {folder}: "
            "the same command goes on from there"
        ) from None
    finally:
        if folder.exists():
            ledger.save()


def knots_of(targets: Rows32, thresholds: Sequence[float]) -> Rows32:
    """Where float32 scores must be counted: at targets, and at the first float32 ≥ a threshold."""
    return np.unique(np.concatenate([targets, _ceiling(thresholds)]))


def _ceiling(thresholds: Sequence[float]) -> Rows32:
    exact = np.asarray(tuple(thresholds), np.float64)
    rounded = exact.astype(np.float32)
    return np.where(rounded < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)


def assemble(
    targets: TargetScores, thresholds: Sequence[float], knots: Rows32, tally: Tally
) -> CrossCounts:
    """From counts at knots to counts at the target scores and thresholds themselves."""
    exact = targets.scores.astype(np.float64)
    further = np.asarray(tuple(thresholds), np.float64)
    grid = np.unique(np.concatenate([exact, further]))
    place_of = np.searchsorted(knots, _ceiling(tuple(grid)))
    met = knots[place_of] == grid
    below = tally.below[place_of]
    equal = np.where(met, tally.equal[place_of], 0)
    between = np.empty(grid.size + 1, np.int64)
    between[0] = below[0]
    between[1:-1] = below[1:] - below[:-1] - equal[:-1]
    between[-1] = tally.total - below[-1] - equal[-1]
    target = np.zeros(grid.size, np.int64)
    target[np.searchsorted(grid, exact)] = targets.counts
    missed = float(targets.counts @ np.logaddexp(0.0, -exact))
    return CrossCounts(grid, target, equal, between, (missed, tally.loss * UNIT))
