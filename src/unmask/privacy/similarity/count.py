"""The ROC statistic of every set: first all pairs of one speaker, then all others among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.privacy.similarity.device import DeviceSets
from unmask.privacy.similarity.sets import PairSets
from unmask.run import HERE, Arrays, Range, Where, code_among, run
from unmask.scoring import MOST_TRIALS, add_counts, packed, unpacked

Progress = Callable[[int, int], None]
TRIALS = 1 << 22
_PIECE = 1 << 21
_LONGEST_PIECE = 1 << 24


@dataclass(frozen=True, eq=False)
class Counting:
    """Sets, and for each of them the distinct scores of its pairs of one speaker, ascending."""

    sets: PairSets
    knots: tuple[FloatArray, ...]

    def arrays(self) -> Arrays:
        own = {f"knots-{number}": knots for number, knots in enumerate(self.knots)}
        return {**self.sets.arrays(), **own}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        sets = PairSets.from_arrays(arrays)
        return cls(sets, tuple(arrays[f"knots-{number}"] for number in range(len(sets.pairs))))

    def ranges(self, where: Where) -> list[Range]:
        """Counts do not depend on the ranges. Results take room that grows with the distinct
        target scores: where they travel, a task has at least 128 times as many trials.
        """
        most = max(knots.size for knots in self.knots)
        wanted = (8 if where.in_memory else 128) * most
        return self.sets.ranges(min(max(TRIALS, wanted), MOST_TRIALS))


def count(
    sets: PairSets,
    names: Sequence[str],
    *,
    where: Where = HERE,
    progress: Progress | None = None,
) -> list[Roc]:
    """The ROC statistic of each set: pairs of one speaker against all others.

    The scores of one speaker's pairs come from the same place as all others, so that they are met
    there again bit by bit.
    """
    targets = _targets(sets, names, where)
    counting = Counting(sets, tuple(scores for scores, _ in targets))
    below = [np.zeros(knots.size, np.int64) for knots in counting.knots]
    equal = [np.zeros(knots.size, np.int64) for knots in counting.knots]
    total = [0] * len(below)
    ranges = counting.ranges(where)
    found = run(
        count_rows, counting, ranges, where=where, on_device=count_on_device, progress=progress
    )
    for rows, part in zip(ranges, found, strict=True):
        number, _ = sets.located(rows)
        _refuse_nan(int(part["nan"]), names[number], "pairs of different speakers")
        lower, ties = unpacked(part["step"], part["met"], part["ties"])
        below[number] += lower
        equal[number] += ties
        total[number] += int(part["total"])
    for name, trials in zip(names, total, strict=True):
        if not trials:
            raise InputError(f"{name}: no pair of different speakers is compared")
    return [
        roc_of(*target, lower, ties, trials)
        for target, lower, ties, trials in zip(targets, below, equal, total, strict=True)
    ]


def halved(roc: Roc) -> Roc:
    """The statistic of comparisons that were counted in both orders, each counted once.

    Where the two orders differ, each weighs one half.
    """
    return Roc(roc.scores, roc.target / 2, roc.equal / 2, roc.between / 2)


def roc_of(
    scores: FloatArray, target: FloatArray, below: IntArray, equal: IntArray, total: int
) -> Roc:
    """The statistic of nontargets of which ``below`` lie under each target score."""
    upto = np.concatenate([[0], below + equal])
    between = np.append(below, total) - upto
    return Roc(scores, target, equal.astype(np.float64), between.astype(np.float64))


def _targets(
    sets: PairSets, names: Sequence[str], where: Where
) -> list[tuple[FloatArray, FloatArray]]:
    """Distinct scores of each set's pairs of one speaker, and how many there are of each."""
    parts: list[list[Arrays]] = [[] for _ in names]
    ranges = sets.ranges(TRIALS)
    found = run(target_rows, sets, ranges, where=where, on_device=targets_on_device)
    for rows, part in zip(ranges, found, strict=True):
        parts[sets.located(rows)[0]].append(part)
    made = []
    for name, own in zip(names, parts, strict=True):
        distinct, place = np.unique(
            np.concatenate([part["scores"] for part in own]), return_inverse=True
        )
        numbers = np.concatenate([part["counts"] for part in own])
        counts = np.bincount(place, numbers, minlength=distinct.size).astype(np.float64)
        if not distinct.size:
            raise InputError(f"{name}: no pair of one speaker is compared")
        _refuse_nan(int(counts[-1]) if np.isnan(distinct[-1]) else 0, name, "pairs of one speaker")
        made.append((distinct, counts))
    return made


def _refuse_nan(number: int, name: str, which: str) -> None:
    if number:
        raise InputError(f"{name}: expected numbers, found NaN as score of {number} {which}")


def target_rows(sets: PairSets, rows: Range) -> Arrays:
    """Distinct scores of the pairs of one speaker in a range of rows, and how often each occurs."""
    number, rows = sets.located(rows)
    found = [tile.class_scores(target=True) for tile in sets.pairs[number].band(rows)]
    scores, counts = np.unique(np.concatenate(found).astype(np.float64), return_counts=True)
    return {"scores": scores, "counts": counts}


def count_rows(counting: Counting, rows: Range) -> Arrays:
    """Scores of pairs of different speakers in a range of rows, counted among the knots."""
    number, rows = counting.sets.located(rows)
    knots = counting.knots[number]
    below, equal = np.zeros(knots.size, np.int64), np.zeros(knots.size, np.int64)
    piece = np.empty(min(max(_PIECE, 8 * knots.size), _LONGEST_PIECE))
    held = total = unknown = 0

    def settle() -> None:
        nonlocal held, total, unknown
        add_counts(below, equal, piece[:held], knots)
        if held and np.isnan(piece[held - 1]):
            unknown += int(np.isnan(piece[:held]).sum())
        total += held
        held = 0

    for tile in counting.sets.pairs[number].tiles(rows):
        scores = tile.class_scores(target=False)
        if held + scores.size > piece.size:
            settle()
        piece[held : held + scores.size] = scores
        held += scores.size
    settle()
    return tally(below, equal, total, unknown)


def tally(below: IntArray, equal: IntArray, total: int, unknown: int) -> Arrays:
    """Counts as they travel; ``unknown`` are NaN."""
    step, met, ties = packed(below, equal)
    return {
        "step": step,
        "met": met,
        "ties": ties,
        "total": np.asarray(total),
        "nan": np.asarray(unknown),
    }


def targets_on_device(sets: PairSets, device: str) -> Callable[[Range], Arrays]:
    """The same as :func:`target_rows` on a device."""
    opened = DeviceSets.of(sets, device)

    def found(rows: Range) -> Arrays:
        scores = [
            strip.scores[strip.kept & strip.same].cpu().numpy() for strip in opened.strips(rows)
        ]
        distinct, counts = np.unique(np.concatenate(scores), return_counts=True)
        return {"scores": distinct, "counts": counts}

    return found


def count_on_device(counting: Counting, device: str) -> Callable[[Range], Arrays]:
    """The same as :func:`count_rows` on a device: a binary search of every score, then counts of
    the gaps (even cells) and of the knots (odd cells); the last cell is for all other pairs.
    """
    import torch

    opened = DeviceSets.of(counting.sets, device)
    all_knots = [opened.put(knots) for knots in counting.knots]

    def counted(rows: Range) -> Arrays:
        knots = all_knots[counting.sets.located(rows)[0]]
        last = len(knots)
        cells = torch.zeros(2 * last + 2, dtype=torch.int64, device=device)
        unknown = torch.zeros((), dtype=torch.int64, device=device)
        for strip in opened.strips(rows):
            nontarget = strip.kept & ~strip.same
            cell = torch.where(nontarget, code_among(knots, strip.scores), 2 * last + 1)
            cells += torch.bincount(cell.view(-1), minlength=2 * last + 2)
            unknown += (torch.isnan(strip.scores) & nontarget).sum()
        return _tally_of_cells(cells, int(unknown))

    return counted


def _tally_of_cells(cells: Any, unknown: int) -> Arrays:
    counts: IntArray = cells[:-1].cpu().numpy()
    between, equal = counts[::2], counts[1::2]
    return tally(np.cumsum(between[:-1]) + np.cumsum(equal) - equal, equal, counts.sum(), unknown)
