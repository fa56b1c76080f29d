"""All pairs of a plan, scored and counted somewhere: the ROC statistic straight from embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Rows32, ceiling
from unmask.errors import InputError
from unmask.run import Lost, Task, check_place, devices, unfinished, workplace
from unmask.run.places import Workers as Place
from unmask.run.where import place
from unmask.scoring.backend import Backend
from unmask.scoring.by_speaker import BySpeaker, count_by_speaker
from unmask.scoring.counting import (
    UNIT,
    Tally,
    TargetScores,
    count_block,
    target_scores,
)
from unmask.scoring.layout import Layout
from unmask.scoring.ledgers import SpeakerLedger, TallyLedger, keep_targets, kept_targets
from unmask.scoring.on_cuda import by_speaker_on_cuda, count_on_cuda
from unmask.scoring.plan import BLOCK, Plan, Sides

Progress = Callable[[int, int], None]
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Sums(Protocol[R_contra]):
    """Adds up what blocks found and knows which are done."""

    done: npt.NDArray[np.bool_]

    @property
    def left(self) -> npt.NDArray[np.intp]: ...

    def add(self, number: int, found: R_contra, /) -> None: ...

    def save(self) -> None: ...


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
    by_speaker: BySpeaker | None = None


def count_pairs(
    layout: Layout,
    backend: Backend,
    *,
    thresholds: Sequence[float] = (),
    edges: Callable[[CrossCounts], FloatArray] | None = None,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> CrossCounts:
    """Score every pair of a layout and count it; nobody ever holds the score matrix.

    ``edges`` chooses the bins of a second pass, which counts by speaker. ``state`` is a folder for
    the prepared rows and the finished blocks, which the workers must see; after a fault the same
    call goes on from there.
    """
    check_place(on, workers)
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
                parts = [part for _, part in somewhere.each(partial(_call, target_scores), tasks)]
                targets = TargetScores.merge(parts)
                keep_targets(folder, targets)
            knots = knots_of(targets.scores, thresholds)
            counter: Counter = _Devices(folder)
            if on != "cuda":
                told = _Told(progress, passes=1 if edges is None else 2)
                counter = _Blocks(somewhere, plan, folder, block, told)
            tally = counter.nontargets(knots, targets.scores.size)
            if not tally.total:
                raise InputError("pairs: expected nontarget trials, found none")
            counts = assemble(targets, thresholds, knots, tally)
            if edges is None:
                return counts
            bounds = edges(counts)
            return replace(counts, by_speaker=counter.by_speaker(bounds, layout.speakers))


class Counter(Protocol):
    """Counts the nontargets of a plan among knots, and all its pairs by speaker."""

    def nontargets(self, knots: Rows32, targets: int) -> Tally: ...

    def by_speaker(self, edges: FloatArray, speakers: int) -> BySpeaker: ...


@dataclass(frozen=True)
class _Devices:
    """All CUDA devices of this machine."""

    folder: Path

    def nontargets(self, knots: Rows32, targets: int) -> Tally:
        return count_on_cuda(Sides.open(self.folder), knots)

    def by_speaker(self, edges: FloatArray, speakers: int) -> BySpeaker:
        return by_speaker_on_cuda(Sides.open(self.folder), edges, speakers)


@dataclass(frozen=True)
class _Blocks:
    """Blocks on a place."""

    somewhere: Place
    plan: Plan
    folder: Path
    block: int
    told: _Told

    def nontargets(self, knots: Rows32, targets: int) -> Tally:
        np.save(self.folder / "knots.npy", knots)
        tasks = self.plan.blocks(targets=targets, block=self.block)
        ledger = TallyLedger(self.folder, len(tasks), knots, block=self.block)
        _work(self.somewhere, count_block, tasks, ledger, self.folder, self.told)
        return ledger.tally

    def by_speaker(self, edges: FloatArray, speakers: int) -> BySpeaker:
        np.save(self.folder / "bins.npy", ceiling(edges))
        tasks = self.plan.blocks(targets=0, block=self.block)
        ledger = SpeakerLedger(self.folder, len(tasks), edges, speakers, block=self.block)
        _work(self.somewhere, count_by_speaker, tasks, ledger, self.folder, self.told.following())
        return ledger.table.counted(edges)


@dataclass(frozen=True)
class _Told:
    """Progress over one pass or two of about equal length, told as one."""

    progress: Progress | None
    passes: int
    before: int = 0

    def following(self) -> _Told:
        """The next pass."""
        return _Told(self.progress, self.passes, self.before + 1)

    def __call__(self, done: int, tasks: int) -> None:
        if self.progress is not None:
            self.progress(self.before * tasks + done, self.passes * tasks)


def _work(
    somewhere: Place,
    work: Callable[[Task], R],
    tasks: list[Task],
    ledger: Sums[R],
    folder: Path,
    told: _Told,
) -> None:
    """Run the tasks that are left and note each; what is done is kept whatever happens."""
    left = ledger.left
    told(len(tasks) - left.size, len(tasks))
    try:
        for i, found in somewhere.each(partial(_call, work), [tasks[number] for number in left]):
            ledger.add(int(left[i]), found)
            told(int(ledger.done.sum()), len(tasks))
    except Lost as error:
        raise unfinished(error, int(ledger.done.sum()), len(tasks), folder) from None
    finally:
        if folder.exists():
            ledger.save()


def _call(work: Callable[[Task], R], _: object, task: Task) -> R:
    return work(task)


def knots_of(targets: Rows32, thresholds: Sequence[float]) -> Rows32:
    """Where float32 scores must be counted: at targets, and at the first float32 ≥ a threshold."""
    return np.unique(np.concatenate([targets, ceiling(thresholds)]))


def assemble(
    targets: TargetScores, thresholds: Sequence[float], knots: Rows32, tally: Tally
) -> CrossCounts:
    """From counts at knots to counts at the target scores and thresholds themselves."""
    exact = targets.scores.astype(np.float64)
    further = np.asarray(tuple(thresholds), np.float64)
    grid = np.unique(np.concatenate([exact, further]))
    place_of = np.searchsorted(knots, ceiling(tuple(grid)))
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
