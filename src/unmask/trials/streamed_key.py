"""A key gone through once, kept as the codes of its targets: labels for batches of scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.errors import InputError
from unmask.trials.arrays import Index, Labels
from unmask.trials.ids import lookup
from unmask.trials.labels import NONTARGET, OTHER, TARGET
from unmask.trials.streaming import Batch, Stream

MOST_NAMES = 30_000_000
UInts = npt.NDArray[np.uint64]


class StreamedKey:
    """Labels of trials by (enrol, test[, side]).

    Only trials that are not nontarget are kept, as sorted integers. That scores and key have the
    same trials is told by their number and by the sum of a 64-bit mix of each trial's integer,
    which is the same for different lists with a chance of 2⁻⁶⁴.
    """

    def __init__(self, stream: Stream, *, side: bool) -> None:
        self.stream = stream
        self._side = side
        self._names = {role: pl.Series([], dtype=pl.String) for role in ("enrol", "test")}
        kept: dict[int, list[Index]] = {TARGET: [], OTHER: []}
        self.count = 0
        self._sum = 0
        for batch in stream.batches(system=None, ids=True):
            assert batch.label is not None
            codes = self._codes(batch, grow=True)
            self.count += len(codes)
            self._sum += _mixed(codes)
            for label, parts in kept.items():
                parts.append(codes[batch.label == label])
        self._kept = {
            label: np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))
            for label, parts in kept.items()
        }
        self._seen = self._seen_sum = 0
        self._labelled = dict.fromkeys(kept, 0)

    def label(self, batch: Batch, scores: Stream) -> Labels:
        """Labels of a batch of scores; a name that the key lacks is an error."""
        codes = self._codes(batch, grow=False)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            row = int(unknown[0])
            trial = " ".join(str(column[row]) for column in batch.ids.values())
            raise InputError(
                f"{scores.where(batch.first + row)}: expected a trial of {self.stream.name}, "
                f"found {trial}"
            )
        self._seen += len(codes)
        self._seen_sum += _mixed(codes)
        label = np.full(len(codes), NONTARGET, np.int8)
        for value, kept in self._kept.items():
            if kept.size:
                place = np.minimum(np.searchsorted(kept, codes), kept.size - 1)
                found = kept[place] == codes
                label[found] = value
                self._labelled[value] += int(found.sum())
        return label

    def check_all_seen(self, scores: Stream) -> None:
        """After all scores: they are of the key's trials, each once."""
        if (self._seen, self._seen_sum % 2**64) != (self.count, self._sum % 2**64):
            raise InputError(
                f"{scores.name}: expected the {self.count} trials of {self.stream.name}, each "
                f"once, found {self._seen} scores: some are missing, repeated or of other trials"
            )
        if any(self._labelled[label] != kept.size for label, kept in self._kept.items()):
            raise InputError(
                f"{self.stream.name}: expected one label for each trial, found trials with two"
            )

    def _codes(self, batch: Batch, *, grow: bool) -> Index:
        columns = {role: batch.ids[role].cast(pl.String) for role in ("enrol", "test")}
        if self._side:
            side = batch.ids["side"].cast(pl.String)
            columns["test"] = columns["test"] + "\t" + side
        codes = []
        for role, column in columns.items():
            names = self._names[role]
            if grow:
                unique = column.unique(maintain_order=True)
                new = unique.filter(lookup(unique, names) < 0) if len(names) else unique
                if len(new):
                    names = self._names[role] = pl.concat([names, new], rechunk=True)
                if len(names) > MOST_NAMES:
                    raise InputError(
                        f"{self.stream.name}: more than {MOST_NAMES:,} names are too many to join "
                        "in batches"
                    )
            codes.append(lookup(column, names).astype(np.int64))
        joint: Index = (codes[0] << 32) | codes[1]
        joint[(codes[0] < 0) | (codes[1] < 0)] = -1
        return joint


def _mixed(codes: Index) -> int:
    """Sum of the codes after a mix of their bits (the finaliser of splitmix64)."""
    mixed: UInts = codes.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return int(mixed.sum(dtype=np.uint64))
