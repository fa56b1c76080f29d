"""Speakers of trials that lie on disk: codes that are the same over all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmask.base import Codes, Index
from unmask.trials.ids import Ids, lookup
from unmask.trials.labels import NONTARGET, TARGET
from unmask.trials.scratch import Column, Scratch
from unmask.trials.speakers import SpeakerRule, speakers_of
from unmask.trials.spooled import DROPPED, Spooled
from unmask.trials.streaming import IDENTIFIERS, SPEAKERS


@dataclass(frozen=True, eq=False)
class SpeakerCodes:
    """Codes of names on both sides of each row, and the speaker that each code stands for.

    ``names[speaker[0][code]]`` is the speaker on the enrolment side, ``speaker[1]`` is for the
    test side.
    """

    sides: tuple[Column[np.int32], Column[np.int32]]
    speaker: tuple[Codes, Codes]
    names: pl.Series

    @classmethod
    def of_columns(cls, table: Spooled) -> SpeakerCodes:
        """From columns that name the speakers."""
        (first, enrol), (second, test) = (table.names[role] for role in SPEAKERS)
        names = pl.concat([first.names, second.names]).unique(maintain_order=True)
        speaker = (lookup(first.names, names), lookup(second.names, names))
        return cls((enrol, test), speaker, names)

    @classmethod
    def by_rule(cls, table: Spooled, rule: SpeakerRule) -> SpeakerCodes:
        """From a rule on the identifiers of the trials that are kept."""
        (first, enrol), (second, test) = (table.names[role] for role in IDENTIFIERS[:2])
        used = [np.zeros(len(names), bool) for names in (first.names, second.names)]
        for start, stop in table.ranges():
            _, kept = table.labels(start, stop)
            for seen, column in zip(used, (enrol, test), strict=True):
                codes = column.read(start, stop)
                seen[codes if kept is None else codes[kept]] = True
        of_test = Ids.from_strings(speakers_of(second.names.filter(used[1]), rule))
        known = rule.known(of_test.names)
        of_enrol = Ids.from_strings(speakers_of(first.names.filter(used[0]), rule, known=known))
        names = pl.concat([of_enrol.names, of_test.names]).unique(maintain_order=True)
        speaker = [np.full(len(seen), -1, np.int32) for seen in used]
        for codes, seen, found in zip(speaker, used, (of_enrol, of_test), strict=True):
            codes[seen] = lookup(found.names, names)[found.codes]
        return cls((enrol, test), (speaker[0], speaker[1]), names)

    def read(self, start: int, stop: int) -> tuple[Codes, Codes]:
        """Speakers of successive rows on both sides."""
        enrol, test = (
            speaker[column.read(start, stop)]
            for speaker, column in zip(self.speaker, self.sides, strict=True)
        )
        return enrol, test

    def empty(self, scratch: Scratch, rows: int) -> SpeakerCodes:
        """Room for the speakers of the same trials in another order."""
        enrol, test = (Column.filled(scratch, np.int32, 0, rows) for _ in self.sides)
        return SpeakerCodes((enrol, test), self.speaker, self.names)

    def put(self, rows: Index, other: SpeakerCodes, others: Index) -> None:
        """Take the speakers of some rows from another file's."""
        for column, given in zip(self.sides, other.sides, strict=True):
            column.put(rows, given.at(others))


@dataclass
class SpeakerCounts:
    """Speakers of the trials of both classes, of all trials, and what is wrong with them."""

    of_classes: int = 0
    of_all: int = 0
    torn: int = 0
    first: tuple[str, str] = ("", "")


def count_speakers(table: Spooled, codes: SpeakerCodes) -> SpeakerCounts:
    """Count speakers, and target trials that have two of them."""
    seen = {kind: np.zeros(len(codes.names), bool) for kind in ("classes", "all")}
    found = SpeakerCounts()
    for start, stop in table.ranges():
        label, _ = table.labels(start, stop)
        enrol, test = codes.read(start, stop)
        torn = np.flatnonzero((label == TARGET) & (enrol != test))
        if torn.size and not found.torn:
            row = int(torn[0])
            found.first = (str(codes.names[int(enrol[row])]), str(codes.names[int(test[row])]))
        found.torn += torn.size
        counted = {"classes": (label == TARGET) | (label == NONTARGET), "all": label != DROPPED}
        for kind, mask in counted.items():
            seen[kind][enrol[mask]] = True
            seen[kind][test[mask]] = True
    found.of_classes, found.of_all = (int(seen[kind].sum()) for kind in ("classes", "all"))
    return found
