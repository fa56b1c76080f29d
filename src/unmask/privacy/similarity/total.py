"""Second pass over all pairs: calibrated scores, added up per pair of speakers.

Sums are real numbers: every tile adds to them in a fixed order, a task is a fixed range of rows,
and results are put together in the order of the ranges, so all places give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.engine import Roc
from unmask.privacy.similarity.bins import Counts, Layout
from unmask.privacy.similarity.count import TRIALS, Progress, halved
from unmask.privacy.similarity.device import DeviceSets, Strip
from unmask.privacy.similarity.fold import StripFold, TileFold
from unmask.privacy.similarity.sets import PairSets
from unmask.privacy.similarity.sums import MeanSums, PairSums, Tables
from unmask.run import HERE, Arrays, Range, Where, run

_TURNED = ("turned_log_sigmoid", "turned_llr")


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Sets with the tables of their calibration; ``turned`` are those of the negated scores,
    where they are wanted, ``layouts`` those of counts in bins, where they are.
    """

    sets: PairSets
    tables: tuple[Tables, ...]
    turned: tuple[Tables | None, ...]
    layouts: tuple[Layout | None, ...]

    @classmethod
    def of(
        cls,
        sets: PairSets,
        rocs: Sequence[Roc],
        negated: Sequence[bool],
        layouts: Sequence[Layout | None] | None = None,
    ) -> Self:
        turned = [
            Tables.of(roc.negated()) if wanted else None
            for roc, wanted in zip(rocs, negated, strict=True)
        ]
        none = [None] * len(turned)
        return cls(
            sets, tuple(Tables.of(roc) for roc in rocs), tuple(turned), tuple(layouts or none)
        )

    def arrays(self) -> Arrays:
        found = self.sets.arrays()
        for number, (tables, turned) in enumerate(zip(self.tables, self.turned, strict=True)):
            found |= _named(f"table-{number}-", tables.arrays())
            if turned is not None:
                found |= _named(f"turned-{number}-", turned.arrays())
        for number, layout in enumerate(self.layouts):
            if layout is not None:
                own = {"edges": layout.edges, "offsets": layout.offsets}
                found |= _named(f"layout-{number}-", own)
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        sets = PairSets.from_arrays(arrays)
        tables, turned, layouts = (
            [_chosen(f"{kind}-{number}-", arrays) for number in range(len(sets.pairs))]
            for kind in ("table", "turned", "layout")
        )
        speakers = sets.segments.speakers
        return cls(
            sets,
            tuple(Tables.from_arrays(own) for own in tables),
            tuple(Tables.from_arrays(own) if own else None for own in turned),
            tuple(Layout(**own, speakers=speakers) if own else None for own in layouts),
        )


def _named(prefix: str, arrays: Arrays) -> Arrays:
    return {prefix + name: array for name, array in arrays.items()}


def _chosen(prefix: str, arrays: Arrays) -> Arrays:
    """Those whose name begins so, without that beginning."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def total(
    sets: PairSets,
    rocs: Sequence[Roc],
    *,
    negated: Sequence[bool],
    once: Sequence[bool],
    layouts: Sequence[Layout | None] | None = None,
    where: Where = HERE,
    progress: Progress | None = None,
) -> Iterator[tuple[PairSums, MeanSums | None, Counts | None]]:
    """Sums of one set after the other under its own statistic; those of the negated scores where
    ``negated``, and counts in bins where there is a layout.

    ``once``: both orders of every comparison occur, and extreme LLRs are those of comparisons
    counted once.
    """
    calibrated = Calibrated.of(sets, rocs, negated, layouts)
    shape = (sets.segments.speakers,) * 2
    ranges = sets.ranges(TRIALS)
    parts = run(
        sum_rows, calibrated, ranges, where=where, on_device=sums_on_device, progress=progress
    )
    by_set = groupby(zip(ranges, parts, strict=True), lambda one: sets.located(one[0])[0])
    for number, own in by_set:
        sums = _nothing(shape, turned=negated[number], layout=calibrated.layouts[number])
        for rows, part in own:
            spoken = sets.segments.spoken(*sets.located(rows)[1])
            _add(sums, part, slice(spoken.start, spoken.stop), slice(None))
        tables = calibrated.tables[number]
        yield _sums(sums, Tables.of(halved(rocs[number])) if once[number] else tables)


def _nothing(shape: tuple[int, int], *, turned: bool, layout: Layout | None) -> Arrays:
    """Empty sums; the extremes are PAV blocks."""
    real = ("log_sigmoid", "llr", "disclosure", *(_TURNED if turned else ()))
    binned = {} if layout is None else {"bins": np.zeros(layout.shape(shape[0]), np.int32)}
    return {
        **binned,
        "count": np.zeros(shape, np.int64),
        **{name: np.zeros(shape) for name in real},
        "lowest": np.full(shape, np.iinfo(np.int32).max, np.int32),
        "highest": np.full(shape, -1, np.int32),
    }


def _add(sums: Arrays, part: Arrays, rows: slice, columns: slice) -> None:
    for name, table in sums.items():
        cells = table[rows] if name == "bins" else table[rows, columns]
        if name == "lowest":
            np.minimum(cells, part[name], out=cells)
        elif name == "highest":
            np.maximum(cells, part[name], out=cells)
        else:
            cells += part[name]


def _sums(found: Arrays, tables: Tables) -> tuple[PairSums, MeanSums | None, Counts | None]:
    turned = None
    if _TURNED[0] in found:
        turned = MeanSums(found["count"], *(found[name] for name in _TURNED))
    plain = PairSums(
        found["count"],
        found["log_sigmoid"],
        found["llr"],
        found["disclosure"],
        tables.llr_of(np.minimum(found["lowest"], tables.none)),
        tables.llr_of(found["highest"]),
    )
    return plain, turned, found.get("bins")


def sum_rows(calibrated: Calibrated, rows: Range) -> Arrays:
    """Sums of the speakers of a range of rows against all speakers."""
    number, rows = calibrated.sets.located(rows)
    pairs, segments = calibrated.sets.pairs[number], calibrated.sets.segments
    tables, turned = calibrated.tables[number], calibrated.turned[number]
    spoken = segments.spoken(*rows)
    layout = calibrated.layouts[number]
    sums = _nothing((len(spoken), segments.speakers), turned=turned is not None, layout=layout)
    for tile in pairs.tiles(rows):
        fold = TileFold.of(tile)
        top, left = fold.speakers
        part = _tile_sums(fold, tables, turned, layout)
        _add(sums, part, _within(top, spoken), slice(left.start, left.stop))
    return sums


def _within(speakers: range, all_speakers: range) -> slice:
    return slice(speakers.start - all_speakers.start, speakers.stop - all_speakers.start)


def _tile_sums(
    fold: TileFold, tables: Tables, turned: Tables | None, layout: Layout | None
) -> Arrays:
    scores, skipped = fold.tile.scores(), fold.tile.skipped()
    values = np.empty(scores.shape)

    def sums_of(table: FloatArray, step: IntArray) -> FloatArray:
        return fold(np.take(table, step, out=values, mode="clip"))

    step = tables.lookup(scores)
    step[skipped] = tables.none
    sums: Arrays = {
        "count": fold.count(),
        "log_sigmoid": sums_of(tables.log_sigmoid, step),
        "llr": sums_of(tables.llr, step),
        "lowest": fold(step, np.minimum),
    }
    np.take(tables.z_nontarget, step, out=values, mode="clip")
    for own in fold.own():
        values[own] = tables.z_target[step[own]]
    sums["disclosure"] = fold(values)
    step[skipped] = -1
    sums["highest"] = fold(step, np.maximum)
    if turned is not None:
        step = turned.lookup(-scores)
        step[skipped] = turned.none
        sums["turned_log_sigmoid"] = sums_of(turned.log_sigmoid, step)
        sums["turned_llr"] = sums_of(turned.llr, step)
    if layout is not None:
        sums["bins"] = fold.counts(layout, scores, skipped)
    return sums


def sums_on_device(calibrated: Calibrated, device: str) -> Callable[[Range], Arrays]:
    """The same as :func:`sum_rows` on a device; sums differ in their last bits."""
    opened = DeviceSets.of(calibrated.sets, device)
    tables = [_DeviceTables.of(table, opened) for table in calibrated.tables]
    turned = [
        None if table is None else _DeviceTables.of(table, opened) for table in calibrated.turned
    ]
    edges = [None if own is None else opened.put(own.edges) for own in calibrated.layouts]

    def summed(rows: Range) -> Arrays:
        number, local = calibrated.sets.located(rows)
        layout = calibrated.layouts[number]
        spoken = calibrated.sets.segments.spoken(*local)
        shape = len(spoken), calibrated.sets.segments.speakers
        sums = _nothing(shape, turned=turned[number] is not None, layout=layout)
        for strip in opened.strips(rows):
            fold = StripFold(opened, strip)
            part = _strip_sums(fold, strip, tables[number], turned[number])
            if layout is not None:
                part["bins"] = fold.counts(layout, edges[number], strip)
            _add(sums, part, _within(fold.speakers, spoken), slice(None))
        return sums

    return summed


@dataclass(frozen=True, eq=False)
class _DeviceTables:
    """Tables as tensors."""

    boundaries: Any
    llr: Any
    log_sigmoid: Any
    z_target: Any
    z_nontarget: Any

    @classmethod
    def of(cls, tables: Tables, opened: DeviceSets) -> _DeviceTables:
        return cls(**{name: opened.put(array) for name, array in tables.arrays().items()})

    def steps(self, scores: Any, kept: Any) -> Any:
        """PAV block of each score, or the entry for pairs that are not compared."""
        import torch

        step = torch.bucketize(scores, self.boundaries, right=True)
        return step.masked_fill_(~kept, len(self.llr) - 1)


def _strip_sums(
    fold: StripFold, strip: Strip, tables: _DeviceTables, turned: _DeviceTables | None
) -> Arrays:
    step = tables.steps(strip.scores, strip.kept)
    sums: Arrays = {
        "count": fold(strip.kept.double()).astype(np.int64),
        "log_sigmoid": fold(tables.log_sigmoid[step]),
        "llr": fold(tables.llr[step]),
        "disclosure": fold(tables.z_target[step].where(strip.same, tables.z_nontarget[step])),
        "lowest": fold.extreme(step, "amin", len(tables.llr) - 1),
        "highest": fold.extreme(step.masked_fill(~strip.kept, -1), "amax", -1),
    }
    if turned is not None:
        step = turned.steps(-strip.scores, strip.kept)
        sums["turned_log_sigmoid"] = fold(turned.log_sigmoid[step])
        sums["turned_llr"] = fold(turned.llr[step])
    return sums
