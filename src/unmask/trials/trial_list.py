"""Trials: which pairs are compared, which of them are of one speaker, and the words for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl

from unmask.base import BoolArray, IntArray, Labels, as_index, read_only
from unmask.errors import InputError
from unmask.trials.ids import (
    Columns,
    Ids,
    digest_of_trials,
    first_occurrences,
    lookup,
    share,
    trial_codes,
)
from unmask.trials.problems import no_identifiers, repeated, side_in_one, unlabelled

OnProblem = Literal["error", "skip"]
TARGET, NONTARGET, OTHER = 1, 0, -1
UNKNOWN = -2
DIGITS = {"1": TARGET, "0": NONTARGET}
WORDS = {
    **dict.fromkeys(("target", "tgt", "tar", "true"), TARGET),
    **dict.fromkeys(("nontarget", "imp", "non", "false"), NONTARGET),
    "spoof": OTHER,
}
VOCABULARY = {**DIGITS, **WORDS}


def encode_labels(words: pl.Series) -> Labels:
    """Labels of a column of words; ``UNKNOWN`` where a word is none."""
    names = words.unique()
    labels = [VOCABULARY.get(word.strip().lower(), UNKNOWN) for word in names.to_list()]
    table: Labels = np.array(labels, np.int8)
    return table[lookup(words, names)]


def check_choice(name: str, value: str) -> None:
    """Refuse anything but ``error`` and ``skip``."""
    if value not in ("error", "skip"):
        raise InputError(f"expected {name}='error' or 'skip', found {value!r}")


@dataclass(frozen=True)
class Source:
    """One input: the path as given, the SHA-256 of its bytes, what was detected and counted.

    Readers make it, documents list it. ``missing`` counts trials of this input that had no
    partner in the other one (or had no score) and were left out on request, ``duplicates`` trials
    left out because they came before. A count that does not apply is ``None``.
    """

    name: str
    sha256: str
    format: str
    target: int | None = None
    nontarget: int | None = None
    missing: int = 0
    duplicates: int = 0
    speakers: int | None = None
    detected: str = ""

    def counted(self, counts: Mapping[str, int], speakers: int | None) -> Source:
        """The same with counts of target, nontarget and other trials and of speakers."""
        detected = self.detected
        if counts["other"] and "neither class" not in detected:
            detected += f"; {counts['other']} spoof trials belong to neither class"
        target, nontarget = counts["target"], counts["nontarget"]
        counted = replace(self, target=target, nontarget=nontarget, speakers=speakers)
        return replace(counted, detected=detected)


@dataclass(frozen=True, eq=False)
class TrialList:
    """What `Trials` and `Scores` have in common.

    ``label`` is 1 for target, 0 for nontarget and -1 for anything else (spoof), which belongs to
    neither class. ``enrol_speaker`` and ``test_speaker`` share one table of names. ``columns``
    holds what else is known of each trial, by the names of the file; ``sources`` are the files,
    that of the trials first.
    """

    enrol: Ids | None
    test: Ids | None
    label: Labels | None
    enrol_speaker: Ids | None = field(default=None, kw_only=True)
    test_speaker: Ids | None = field(default=None, kw_only=True)
    columns: Mapping[str, Ids] = field(default_factory=dict, kw_only=True)
    sources: tuple[Source, ...] = field(default=(), kw_only=True)
    _unnamed: ClassVar[str] = "trials"

    def __post_init__(self) -> None:
        if (self.enrol is None) != (self.test is None):
            raise InputError(self.name, "both enrol and test identifiers or none", "one of them")
        if (self.enrol_speaker is None) != (self.test_speaker is None):
            raise InputError(self.name, "speakers of both sides or of none", "one side")
        if self.label is not None:
            label = np.ascontiguousarray(self.label, dtype=np.int8)
            if label.size and (label.min() < OTHER or label.max() > TARGET):
                raise InputError(self.name, "labels 1, 0 or -1", "other values")
            object.__setattr__(self, "label", read_only(label))
        if self.enrol_speaker is not None and self.test_speaker is not None:
            enrol, test = share(self.enrol_speaker, self.test_speaker)
            object.__setattr__(self, "enrol_speaker", enrol)
            object.__setattr__(self, "test_speaker", test)
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        lengths = {name: len(column) for name, column in self._parts().items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(self.name, "columns of one length", listed)

    def _parts(self) -> dict[str, Any]:
        names = ("enrol", "test", "label", "enrol_speaker", "test_speaker")
        parts = {name: getattr(self, name) for name in names}
        parts |= {f"column {name}": column for name, column in self.columns.items()}
        return {name: part for name, part in parts.items() if part is not None}

    def __len__(self) -> int:
        return next((len(part) for part in self._parts().values()), 0)

    @property
    def side(self) -> Ids | None:
        """Channel of the test segment, where trials differ by it alone (NIST SRE)."""
        return self.columns.get("side")

    @property
    def has_ids(self) -> bool:
        return self.enrol is not None

    @property
    def has_speakers(self) -> bool:
        return self.enrol_speaker is not None

    @property
    def _speakers(self) -> dict[str, Any]:
        """Speakers of both sides, by the names of the fields."""
        return {"enrol_speaker": self.enrol_speaker, "test_speaker": self.test_speaker}

    @cached_property
    def is_target(self) -> BoolArray:
        return read_only(self._labels() == TARGET)

    @cached_property
    def is_nontarget(self) -> BoolArray:
        return read_only(self._labels() == NONTARGET)

    @property
    def name(self) -> str:
        """Name of the file the trials came from, for messages."""
        return self.sources[0].name if self.sources else self._unnamed

    def _left_out(self, *, missing: int = 0, duplicates: int = 0) -> Self:
        """Note in the first source how many trials were left out."""
        if not self.sources:
            return self
        first, *others = self.sources
        missing, duplicates = first.missing + missing, first.duplicates + duplicates
        first = replace(first, missing=missing, duplicates=duplicates)
        return replace(self, sources=(first, *others))

    def counted(self) -> Self:
        """The same with the numbers of trials and speakers in the first source."""
        first, *others = self.sources
        if self.label is None:
            first = replace(first, speakers=self.n_speakers)
        else:
            first = first.counted(self.counts, self.n_speakers)
        return replace(self, sources=(first, *others))

    def _labels(self) -> Labels:
        if self.label is None:
            raise unlabelled(self.name)
        return self.label

    @property
    def counts(self) -> dict[str, int]:
        """Number of target, nontarget and other trials."""
        kinds = {"target": TARGET, "nontarget": NONTARGET, "other": OTHER}
        return {name: int((self._labels() == kind).sum()) for name, kind in kinds.items()}

    @property
    def n_speakers(self) -> int | None:
        """Number of different speakers on either side, ``None`` if speakers are not known."""
        if self.enrol_speaker is None or self.test_speaker is None:
            return None
        return len(np.union1d(self.enrol_speaker.used, self.test_speaker.used))

    @property
    def ids(self) -> Columns:
        """Enrol, test and side of every trial."""
        if self.enrol is None or self.test is None:
            raise no_identifiers(self.name)
        return self.enrol, self.test, self.side

    @property
    def codes(self) -> IntArray:
        """One integer per trial, equal where the trial is the same."""
        return trial_codes(self.ids)

    @cached_property
    def first_occurrence(self) -> BoolArray | None:
        """Mask of the rows whose trial did not occur before; ``None`` if no trial is repeated."""
        return first_occurrences(self.codes)

    def without_duplicates(
        self, duplicates: OnProblem, *, where: Callable[[int], str] | None = None
    ) -> Self:
        """Return the trials with each one once: repeated ones are refused, or left out and counted.

        ``duplicates`` is ``"error"`` or ``"skip"``; ``where`` names a row of the file in messages.
        """
        check_choice("duplicates", duplicates)
        first = self.first_occurrence if self.has_ids else None
        if first is None:
            return self
        count = int((~first).sum())
        if duplicates == "error":
            again = int(np.flatnonzero(~first)[0])
            earlier = int(np.flatnonzero(self.codes == self.codes[again])[0])
            name_row = where or (lambda row: f"{self.name}, row {row + 1}")
            raise repeated(name_row(again), self.trial(again), name_row(earlier), count)
        return self.select(first)._left_out(duplicates=count)

    def trial(self, row: int) -> str:
        """Names of the trial in a row, for messages."""
        enrol, test, _ = self.ids
        return f"{enrol.decode(row)} {test.decode(row)}"

    @cached_property
    def digest(self) -> str:
        """Eight hex digits that name this set of labelled trials, whatever its order."""
        return digest_of_trials(self.ids, self.label)

    def select(self, selection: Any) -> Self:
        """Keep the trials of a mask, or those at the given positions."""
        return self._select(as_index(selection, len(self)))

    def _select(self, index: IntArray, **changes: Any) -> Self:
        ids = ("enrol", "test", "enrol_speaker", "test_speaker")
        known = {name: part for name, part in self._parts().items() if name in ids}
        changes |= {name: part.take(index) for name, part in known.items()}
        changes["columns"] = {name: column.take(index) for name, column in self.columns.items()}
        return replace(self, **changes, label=None if self.label is None else self.label[index])


@dataclass(frozen=True, eq=False)
class Trials(TrialList):
    """A key, as :func:`read_key` makes it: labelled trials without scores."""

    _unnamed = "the key"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._labels()

    @property
    def source(self) -> Source | None:
        """The file of the key."""
        return self.sources[0] if self.sources else None


def joint_codes(first: TrialList, second: TrialList) -> tuple[IntArray, IntArray]:
    """Codes under which the trials of two lists can be compared.

    The side of a segment counts only if both lists have it; the list that alone has it must not
    need it to tell its trials apart. A trial that ``first`` cannot hold has code -1 in ``second``.
    """
    ids, other_ids = first.ids, second.ids
    if (ids[2] is None) != (other_ids[2] is None):
        ids, other_ids = (*ids[:2], None), (*other_ids[:2], None)
        for trials, sideless in ((first, ids), (second, other_ids)):
            if trials.side is not None and first_occurrences(trial_codes(sideless)) is not None:
                raise side_in_one(trials.name)
    return trial_codes(ids), trial_codes(other_ids, ids)
