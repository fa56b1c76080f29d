"""Joins of files that lie on disk: a key gives labels and speakers, several score files agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unmask.base import Index
from unmask.trials.duplicates import OnProblem
from unmask.trials.messages import mismatch, nothing_in_common, other_labels, other_trials
from unmask.trials.scratch import Scratch
from unmask.trials.spooled import Fraction, Spooled, pairs


@dataclass
class Lone:
    """Trials that only one of two files has: how many, and the row of the first."""

    count: int = 0
    first: int = -1

    def add(self, rows: Index) -> None:
        """Take note of rows."""
        if len(rows):
            first = int(rows.min())
            self.first = first if not self.count else min(self.first, first)
            self.count += len(rows)

    def told(self, table: Spooled, total: int) -> tuple[int, int, str]:
        """Their number, that of all trials, and the first one's name."""
        return self.count, total, table.trial(self.first) if self.count else ""


def join_key(
    scores: Spooled,
    key: Spooled,
    scratch: Scratch,
    *,
    speakers: bool,
    missing: OnProblem,
    tell: Fraction,
) -> int:
    """Take labels, and speakers, from a key; return how many of its trials have no score."""
    total, conflict = scores.kept, 0
    unlabelled, unscored = Lone(), Lone()
    given = key.speakers if speakers else None
    taken = given.empty(scratch, scores.rows) if given else None
    for rows, key_rows, lone, unused in pairs(scores, key, tell):
        label = key.label.at(key_rows)
        if scores.has_label:
            conflict += int(np.count_nonzero(scores.label.at(rows) != label))
        scores.label.put(rows, label)
        if given and taken:
            taken.put(rows, given, key_rows)
        scores.drop(lone)
        unlabelled.add(lone)
        unscored.add(unused)
    if missing == "error" and (unlabelled.count or unscored.count):
        raise mismatch(
            scores.name, key.name, unlabelled.told(scores, total), unscored.told(key, key.kept)
        )
    if not scores.kept:
        raise nothing_in_common(scores.name, total, key.name)
    if conflict:
        raise other_labels(scores.name, key.name, conflict)
    scores.has_label = True
    scores.speakers = taken or scores.speakers
    return unscored.count


def join_systems(tables: Sequence[Spooled], scratch: Scratch) -> None:
    """See that score files have the same trials; what one knows of them, all get to know."""
    first, *others = tables
    for other in others:
        _agree(first, other, scratch)
    for other in others:
        if not other.has_label or not _shares_speakers(first, other):
            _agree(first, other, scratch)


def _agree(first: Spooled, other: Spooled, scratch: Scratch) -> None:
    both = first.has_label and other.has_label
    giver, taker = (first, other) if first.has_label else (other, first)
    teller, asker = (first, other) if first.speakers else (other, first)
    speakers = None
    if teller.speakers and not _shares_speakers(first, other):
        speakers = teller.speakers.empty(scratch, asker.rows)
    conflict = lacking = surplus = 0
    for rows, other_rows, lone, extra in pairs(first, other):
        at = {first: rows, other: other_rows}
        if both:
            conflict += int(np.count_nonzero(first.label.at(rows) != other.label.at(other_rows)))
        elif giver.has_label:
            taker.label.put(at[taker], giver.label.at(at[giver]))
        if speakers and teller.speakers:
            speakers.put(at[asker], teller.speakers, at[teller])
        lacking += len(lone)
        surplus += len(extra)
    if lacking or surplus:
        raise other_trials(first.name, other.name, lacking, surplus)
    if conflict:
        raise other_labels(other.name, first.name, conflict)
    taker.has_label = giver.has_label
    asker.speakers = speakers or asker.speakers


def _shares_speakers(first: Spooled, other: Spooled) -> bool:
    if first.speakers is None or other.speakers is None:
        return first.speakers is other.speakers
    return first.speakers.names is other.speakers.names
