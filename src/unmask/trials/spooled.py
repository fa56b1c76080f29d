"""A file gone through once: its trials, labels, scores and names lie on disk, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unmask.base import Index, Labels, Mask
from unmask.trials.duplicates import OnProblem
from unmask.trials.ids import NameTable
from unmask.trials.labels import NONTARGET, OTHER, TARGET
from unmask.trials.messages import no_score, repeated, side_in_one
from unmask.trials.parsed import with_counts, without_any_score
from unmask.trials.scratch import Column, Scratch
from unmask.trials.source import Source
from unmask.trials.streaming import IDENTIFIERS, SPEAKERS, Stream
from unmask.trials.trial_spool import (
    RECORD,
    Repeats,
    TrialSpool,
    UInts,
    hash_trials,
    paired,
    partitions,
    repeated_rows,
    rows_of,
)

if TYPE_CHECKING:
    from unmask.trials.streamed_speakers import SpeakerCodes

DROPPED, UNLABELLED = -2, -3
ROWS = 1 << 20
Fraction = Callable[[float], None]


class CollisionError(Exception):
    """Two different trials have the same hashes: they are to be hashed otherwise."""


class Spooled:
    """One score file or key.

    ``label`` holds a label for each row, ``DROPPED`` for a row that was left out, ``UNLABELLED``
    where none is known yet. ``names`` holds a table of names and the codes of the rows for each
    of the two roles asked for.
    """

    def __init__(
        self, stream: Stream, scratch: Scratch, *, sideless: bool, named: tuple[str, ...]
    ) -> None:
        self.stream = stream
        self.name = stream.name
        self.has_label = "label" in stream.columns
        self.systems = list(stream.systems)
        self.rows = self.dropped = self.missing = self.duplicates = 0
        self.label: Column[np.int8] = Column(scratch, np.int8)
        self.scores = {name: Column(scratch, np.float64) for name in self.systems}
        self.names = {role: (NameTable(), Column(scratch, np.int32)) for role in named}
        self._ids = [tuple(role for role in IDENTIFIERS if role in stream.columns)]
        if sideless:
            self._ids.append(IDENTIFIERS[:2])
        self._spools = [TrialSpool(scratch) for _ in self._ids] if stream.has_ids else []
        self._absent = dict.fromkeys(self.systems, 0)
        self._remark = ""
        self.speakers: SpeakerCodes | None = None

    @property
    def has_side(self) -> bool:
        """Whether trials are told apart by the side of a segment, too."""
        return "side" in self.stream.columns

    @property
    def row_bytes(self) -> int:
        """Bytes on disk for each row."""
        return RECORD * len(self._spools) + 1 + 8 * len(self.scores) + 4 * len(self.names)

    @property
    def kept(self) -> int:
        """How many trials there are."""
        return self.rows - self.dropped

    def read(self, *, seed: int, tell: Fraction) -> None:
        """Go through the file; everything wrong with its rows is refused here."""
        size = max(self.stream.size, 1)
        roles = [r for r in (*IDENTIFIERS, *SPEAKERS) if r in self.stream.columns]
        for batch in self.stream.batches(systems=self.systems, label=self.has_label, names=roles):
            for spool, ids in zip(self._spools, self._ids, strict=False):
                columns = [batch.names[role] for role in ids]
                spool.append(batch.first, hash_trials(columns, seed=seed))
            for role, (table, column) in self.names.items():
                column.append(table.codes(batch.names[role]))
            for system, values in batch.scores.items():
                self.scores[system].append(values)
                self._absent[system] += int(np.count_nonzero(np.isnan(values)))
            label = batch.label
            if label is None:
                label = np.full(batch.rows, UNLABELLED, np.int8)
            self.label.append(label)
            self.rows += batch.rows
            tell(batch.done / size)

    def drop_absent(self, missing: OnProblem) -> None:
        """Leave out, or refuse, trials that lack a score; forget systems that have none at all."""
        if not self.systems:
            return
        empty = {system: count == self.rows for system, count in self._absent.items()}
        self.systems, self._remark = without_any_score(self.name, empty)
        gaps = [self.scores[system] for system in self.systems if self._absent[system]]
        if not gaps:
            return
        first = -1
        for start, stop in self.ranges():
            absent = np.logical_or.reduce([np.isnan(c.read(start, stop)) for c in gaps])
            rows = start + np.flatnonzero(absent)
            if first < 0 and len(rows):
                first = int(rows[0])
            self._drop(rows)
        if missing == "error":
            raise no_score(self.stream.where(first), self.dropped)
        self.missing += self.dropped

    def drop_repeats(self, duplicates: OnProblem, tell: Fraction) -> None:
        """Leave out, or refuse, trials that came before."""
        if not self._spools:
            return
        repeats = self._repeats(self._spools[0], tell, drop=duplicates == "skip")
        if repeats.count and duplicates == "error":
            trial, where = self._confirmed(repeats), self.stream.where
            raise repeated(where(repeats.again), trial, where(repeats.earlier), repeats.count)
        self.duplicates += repeats.count

    def spool(self, *, side: bool) -> TrialSpool:
        """Trials with or without their side; without it, they must still be different."""
        if side or not self.has_side:
            return self._spools[0]
        if self._repeats(self._spools[1], lambda done: None, drop=False).count:
            raise side_in_one(self.name)
        return self._spools[1]

    def _repeats(self, spool: TrialSpool, tell: Fraction, *, drop: bool) -> Repeats:
        repeats = Repeats()
        parts = list(partitions(spool))
        for done, buckets in enumerate(parts, 1):
            for again in repeated_rows(self._blocks(spool, buckets), repeats):
                if drop:
                    self._drop(again)
            tell(done / len(parts))
        return repeats

    def _confirmed(self, repeats: Repeats) -> str:
        """The trial whose hashes stand in two rows, if it does so itself."""
        rows = [repeats.earlier, repeats.again]
        earlier, again = self.stream.names_at(rows, self._ids[0])
        if earlier != again:
            raise CollisionError
        return " ".join(again[:2])

    def trial(self, row: int) -> str:
        """Names of the trial in a row, for messages."""
        return " ".join(self.stream.names_at([row], IDENTIFIERS[:2])[0])

    def records(self, spool: TrialSpool, buckets: range) -> UInts:
        """Hashes and rows of the trials in a range of buckets, left-out ones excepted."""
        return np.concatenate([np.zeros((0, 2), np.uint64), *self._blocks(spool, buckets)])

    def _blocks(self, spool: TrialSpool, buckets: range) -> Iterator[UInts]:
        for block in spool.blocks(buckets):
            if self.dropped:
                kept = self.label.at(rows_of(block)) != DROPPED
                block = block.compress(kept, axis=0)
            yield block

    def drop(self, rows: Index) -> None:
        """Leave out rows that have no partner."""
        self._drop(rows)
        self.missing += len(rows)

    def _drop(self, rows: Index) -> None:
        self.label.put(rows, DROPPED)
        self.dropped += len(rows)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows that are gone through at a time."""
        for start in range(0, self.rows, ROWS):
            yield start, min(start + ROWS, self.rows)

    def labels(self, start: int, stop: int) -> tuple[Labels, Mask | None]:
        """Labels of some rows, and which of them are kept if not all are."""
        label = self.label.read(start, stop)
        return label, (label != DROPPED) if self.dropped else None

    def counts(self) -> dict[str, int]:
        """Number of target, nontarget and other trials."""
        total = np.zeros(TARGET - UNLABELLED + 1, np.int64)
        for start, stop in self.ranges():
            label = self.label.read(start, stop).astype(np.int64)
            total += np.bincount(label - UNLABELLED, minlength=len(total))
        kinds = {"target": TARGET, "nontarget": NONTARGET, "other": OTHER}
        return {name: int(total[label - UNLABELLED]) for name, label in kinds.items()}

    def source(self, counts: dict[str, int], speakers: int | None) -> Source:
        """What the result says about this file."""
        told = replace(
            self.stream.source([self._remark]), missing=self.missing, duplicates=self.duplicates
        )
        return with_counts(told, counts, speakers)


def within(tell: Fraction, begin: float, end: float) -> Fraction:
    """Tells what is done of a part of the whole."""
    return lambda done: tell(begin + (end - begin) * done)


def pairs(
    first: Spooled, second: Spooled, tell: Fraction = lambda done: None
) -> Iterator[tuple[Index, Index, Index, Index]]:
    """Rows of the trials that both files have, and of those that one has, part by part.

    The side of a segment counts only if both have it; the one that alone has it must not need it.
    """
    side = first.has_side and second.has_side
    spools = [table.spool(side=side) for table in (first, second)]
    parts = list(partitions(*spools))
    for done, buckets in enumerate(parts, 1):
        yield paired(first.records(spools[0], buckets), second.records(spools[1], buckets))
        tell(done / len(parts))
