"""Trials, which pairs are compared and which of them are of one speaker, and the scores of one or
several systems on them; how lists are compared, in memory or on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from unmask import base
from unmask.base import BoolArray, FloatArray, IntArray, Labels
from unmask.errors import InputError
from unmask.trials import problems
from unmask.trials.formats import (
    NONTARGET,
    OTHER,
    TARGET,
    VOCABULARY,
    OnProblem,
    Source,
    check_choice,
)
from unmask.trials.ids import (
    Columns,
    Digest,
    Ids,
    check_names,
    codes_of_pairs,
    distinct_names,
    match,
    repeats,
    score_hashes,
    share,
    trial_codes,
    trial_hashes,
)
from unmask.trials.speakers import SpeakerRule, Speakers, assign, side_rules, with_rules

if TYPE_CHECKING:
    from unmask.trials.large import SpooledTrials

Again = tuple[IntArray, int]
"""Rows of trials that came before, in order, and where the first of them came before."""


SKIP_DUPLICATES = "duplicates='skip' keeps the first"
"""The cure of repeated trials where a function has that option."""


@dataclass(frozen=True, eq=False, repr=False)
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
            label = np.ascontiguousarray(base.as_array(self.label, self.name), dtype=np.int8)
            if label.size and (label.min() < OTHER or label.max() > TARGET):
                raise InputError(self.name, "labels 1, 0 or -1", "other values")
            object.__setattr__(self, "label", base.read_only(label))
        if self.enrol_speaker is not None and self.test_speaker is not None:
            enrol, test = share(self.enrol_speaker, self.test_speaker)
            check_names("speakers", self.name, enrol, test)
            object.__setattr__(self, "enrol_speaker", enrol)
            object.__setattr__(self, "test_speaker", test)
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        if self.enrol is not None and self.test is not None:
            check_names("enrol and test", self.name, self.enrol, self.test)
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

    def __repr__(self) -> str:
        counts = {} if self.label is None else self.counts
        known = [f"{number:,} {kind}" for kind, number in counts.items() if number]
        known += [] if self.n_speakers is None else [f"{self.n_speakers:,} speakers"]
        named = [*(f"system {name}" for name in getattr(self, "systems", ())), *self.columns]
        parts = "; ".join(
            filter(None, [f"{len(self):,} trials", ", ".join(known), ", ".join(named)])
        )
        return base.visible(f"{type(self).__name__}({parts})")

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
        return base.read_only(self._labels() == TARGET)

    @cached_property
    def is_nontarget(self) -> BoolArray:
        return base.read_only(self._labels() == NONTARGET)

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
            raise problems.unlabelled(self.name, self._label_columns())
        return self.label

    def _label_columns(self) -> list[str]:
        """Columns whose words are all labels, as the file spells them as far as that is known."""
        return [
            name
            for name, column in self.columns.items()
            if len(column.present) <= len(VOCABULARY)
            and all(word.strip().lower() in VOCABULARY for word in column.present)
        ]

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
            raise problems.no_identifiers(self.name)
        return self.enrol, self.test, self.side

    @property
    def codes(self) -> IntArray:
        """One integer per trial, equal where the trial is the same."""
        return trial_codes(self.ids)

    @cached_property
    def repeats(self) -> list[Again]:
        """Rows whose trial occurred before."""
        return [repeats([self.codes])]

    @cached_property
    def contradictions(self) -> list[Again]:
        """Rows labelled unlike the same trial before, either way round."""
        return [] if self.label is None else [repeats([codes_of_pairs(self.ids)], self.label)]

    @property
    def first_occurrence(self) -> BoolArray | None:
        """Mask of the rows whose trial did not occur before; ``None`` if no trial is repeated."""
        again = self.repeats[0][0]
        return ~np.isin(np.arange(len(self)), again) if again.size else None

    def without_duplicates(
        self,
        duplicates: OnProblem,
        *,
        where: Callable[[int], str] | None = None,
        cure: str = SKIP_DUPLICATES,
    ) -> Self:
        """Each trial once: repeated ones are refused, or left out and counted; two labels of one
        trial, either way round, are refused. ``where`` names a row of the file in messages, and
        ``cure`` says what to do about a repeated trial.
        """
        check_choice("duplicates", duplicates)
        if not self.has_ids:
            return self
        gone: list[IntArray] = []
        where = where or (lambda row: f"{self.name}, row {row + 1}")
        check_repeats(self, duplicates, where, gone.append, cure=cure)
        if not (gone and gone[0].size):
            return self
        kept = np.delete(np.arange(len(self)), gone[0])
        return self.select(kept)._left_out(duplicates=gone[0].size)

    def trial(self, row: int) -> str:
        """Names of the trial in a row, for messages."""
        enrol, test, _ = self.ids
        return f"{enrol.decode(row)} {test.decode(row)}"

    @cached_property
    def digest(self) -> str:
        """Eight hex digits that name this set of labelled trials, whatever its order."""
        return str(Digest().add(trial_hashes(self.ids), self.label))

    def with_speakers(self, speakers: Speakers) -> Self:
        """Name the speakers of both sides; ``speakers`` as in :func:`read_scores`."""
        return self.spoken(*side_rules(speakers))

    def spoken(self, enrol_rule: SpeakerRule, test_rule: SpeakerRule) -> Self:
        """The same with speakers by a rule for each side."""
        enrol, test, _ = self.ids
        tested = assign(test, test_rule)
        enrolled = assign(enrol, enrol_rule, known=enrol_rule.known(tested.names))
        sources = with_rules(self.sources, enrol_rule, test_rule)
        return replace(self, enrol_speaker=enrolled, test_speaker=tested, sources=sources)

    def select(self, selection: Any) -> Self:
        """Keep the trials of a mask, or those at the given positions."""
        return self._select(base.as_index(selection, len(self)))

    def _select(self, index: IntArray, **changes: Any) -> Self:
        ids = ("enrol", "test", "enrol_speaker", "test_speaker")
        known = {name: part for name, part in self._parts().items() if name in ids}
        changes |= {name: part.take(index) for name, part in known.items()}
        changes["columns"] = {name: column.take(index) for name, column in self.columns.items()}
        return replace(self, **changes, label=None if self.label is None else self.label[index])


@dataclass(frozen=True, eq=False, repr=False)
class Trials(TrialList):
    """A key, as :func:`read_key` makes it: labelled trials without scores.

    Parameters
    ----------
    enrol, test : Ids
        Identifiers of both sides.
    label : array
        1 for target, 0 for nontarget, -1 for spoof trials, which belong to neither class.
    enrol_speaker, test_speaker : Ids, optional
        Who speaks on both sides.
    columns : mapping of Ids, optional
        What else is known of each trial, by name.
    sources : tuple of Source
        The files.

    Examples
    --------
    >>> import unmask as um
    >>> um.Trials(um.Ids.from_strings(["m", "m"]), um.Ids.from_strings(["x", "y"]), [1, 0])
    Trials(2 trials; 1 target, 1 nontarget)
    """

    _unnamed = "the key"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._labels()

    @property
    def source(self) -> Source | None:
        """The file of the key."""
        return self.sources[0] if self.sources else None


def joint_codes(first: TrialList, second: TrialList) -> tuple[IntArray, IntArray]:
    """Codes under which two lists can be compared, -1 for trials that ``first`` cannot hold. The
    side of a segment counts if both have it; else trials must differ without it.
    """
    ids, other_ids = first.ids, second.ids
    if (ids[2] is None) != (other_ids[2] is None):
        ids, other_ids = (*ids[:2], None), (*other_ids[:2], None)
        for trials, sideless in ((first, ids), (second, other_ids)):
            if trials.side is not None and repeats([trial_codes(sideless)])[0].size:
                raise problems.side_in_one(trials.name)
    return trial_codes(ids), trial_codes(other_ids, ids)


@dataclass(frozen=True, eq=False, repr=False)
class Scores(TrialList):
    """Trials with the scores of one or several systems; higher means more likely one speaker.

    :func:`read_scores` makes them, every metric takes them. Labels may be absent until a key is
    joined. Scores are finite or infinite, never NaN.

    Parameters
    ----------
    enrol, test, label, enrol_speaker, test_speaker, columns, sources
        As in :class:`Trials`; any of the first three may be ``None``.
    systems : mapping of arrays
        One score per trial, by name of the system.

    Examples
    --------
    >>> import unmask as um
    >>> scores = um.Scores.from_arrays([2.0, 1.5], [-1.0, 0.5])
    >>> scores.targets().tolist()
    [2.0, 1.5]
    """

    systems: Mapping[str, FloatArray] = field(default_factory=dict, kw_only=True)
    _unnamed = "scores"

    def __post_init__(self) -> None:
        systems = {}
        for name, values in self.systems.items():
            array = np.ascontiguousarray(base.as_numbers(values, f"{self.name}, scores of {name}"))
            if array.ndim != 1:
                raise InputError(self.name, "one score per trial", f"{array.ndim} axes")
            problems.refuse_nan(array, lambda i: f"{self.name}, row {i + 1}", f"a score of {name}")
            systems[name] = base.read_only(array)
        if not systems:
            raise InputError(self.name, "the scores of a system", "none")
        object.__setattr__(self, "systems", MappingProxyType(systems))
        super().__post_init__()

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | {f"system {name}": s for name, s in self.systems.items()}

    def _label_columns(self) -> list[str]:
        """Also systems of 0 and 1 alone, if there are scores beside them."""
        digits = [name for name, values in self.systems.items() if set(np.unique(values)) == {0, 1}]
        return super()._label_columns() + digits * (len(digits) < len(self.systems))

    @classmethod
    def from_arrays(
        cls, target: ArrayLike, nontarget: ArrayLike, *, system: str = "system"
    ) -> Self:
        """Scores of the two classes without identifiers of trials."""
        classes = {"target": target, "nontarget": nontarget}
        parts = [base.as_numbers(values, kind).ravel() for kind, values in classes.items()]
        label = np.repeat(np.array([TARGET, NONTARGET], np.int8), [len(part) for part in parts])
        return cls(None, None, label, systems={system: np.concatenate(parts)})

    @classmethod
    def merged(cls, *tables: Self) -> Self:
        """Join tables by trial into one with all their systems, in the first one's order.

        All ``tables`` must hold the same trials with the same labels. A name of a system that two
        of them share is preceded by the folder of its file.
        """
        if not tables:
            raise InputError("expected score tables to merge, found none")
        first, *others = tables
        names = distinct_names([t.name for t in tables], [list(t.systems) for t in tables])
        systems: dict[str, FloatArray] = dict(zip(names[0], first.systems.values(), strict=True))
        merged = first
        for table, own in zip(others, names[1:], strict=True):
            for one in (first, table):
                if not one.has_ids:
                    raise problems.no_identifiers(one.name, problems.TRIAL_BY_TRIAL)
                if one.first_occurrence is not None:
                    raise InputError(one.name, "each trial once", "duplicates")
            met, partners, *alone = paired(match(*joint_codes(first, table)), len(table))
            ordered = table.select(partners)
            label = ordered.label if merged.label is None else merged.label
            meeting = Meeting(first, table)
            meeting.add(*alone, labels=(label if label is None else label[met], ordered.label))
            meeting.check_same()
            systems |= zip(own, ordered.systems.values(), strict=True)
            sources = tuple(dict.fromkeys((*merged.sources, *table.sources)))
            speakers = (merged if merged.has_speakers else ordered)._speakers
            columns = {**ordered.columns, **merged.columns}
            merged = replace(merged, label=label, columns=columns, sources=sources, **speakers)
        return replace(merged, systems=systems)

    @cached_property
    def digest(self) -> str:
        """Eight hex digits that name the labelled trials, or scores without names, in any order."""
        if self.has_ids:
            return super().digest
        return str(Digest().add(score_hashes([*self.systems.values()]), self.label))

    def scores(self, system: str | None = None) -> FloatArray:
        """Scores of one system; the name may be left out where there is only one."""
        if system is None and len(self.systems) == 1:
            return next(iter(self.systems.values()))
        if system is None or system not in self.systems:
            asked = "no name (system=…)" if system is None else repr(system)
            raise InputError(self.name, f"one of the systems {', '.join(self.systems)}", asked)
        return self.systems[system]

    def targets(self, system: str | None = None) -> FloatArray:
        """Scores of the target trials."""
        return self.scores(system)[self.is_target]

    def nontargets(self, system: str | None = None) -> FloatArray:
        """Scores of the nontarget trials."""
        return self.scores(system)[self.is_nontarget]

    def check_classes(self) -> None:
        """Refuse a list that lacks one of the two classes."""
        counts = self.counts
        if not counts["target"] or not counts["nontarget"]:
            raise problems.no_class(self.name, counts)

    def select(self, selection: Any) -> Self:
        """Keep the trials of a mask, or those at the given positions."""
        index = base.as_index(selection, len(self))
        systems = {name: values[index] for name, values in self.systems.items()}
        return self._select(index, systems=systems)

    def select_systems(self, names: list[str] | tuple[str, ...]) -> Self:
        """Keep some of the systems, in the order asked for."""
        made = replace(self, systems={name: self.scores(name) for name in names})
        if self.has_ids:
            vars(made)["digest"] = self.digest  # of the trials alone, and slow of many
        return made

    def with_key(
        self, trials: Trials, *, missing: OnProblem = "error", duplicates: OnProblem = "error"
    ) -> Self:
        """Take labels, speakers and metadata from a key, joined by (enrol, test[, side]).

        ``missing="skip"`` leaves out trials that only one of the two has, ``duplicates="skip"``
        keeps the first of repeated trials; the counts stand in ``sources``.
        """
        self = self.without_duplicates(duplicates)
        trials = trials.without_duplicates(duplicates)
        rows, partners, *alone = paired(match(*joint_codes(self, trials)), len(trials))
        scores = self.select(rows) if alone[0].size else self
        key = trials.select(partners)
        meeting = Meeting(self, trials)
        meeting.add(*alone, labels=(scores.label, key.label))
        meeting.check_key(missing)
        scores = scores._left_out(missing=meeting.alone[0])
        key = key._left_out(missing=meeting.alone[1])
        speakers = (key if key.has_speakers else scores)._speakers
        columns, sources = {**key.columns, **scores.columns}, (*scores.sources, *key.sources)
        return replace(scores, label=key.label, columns=columns, sources=sources, **speakers)


def check_repeats(
    trials: TrialList | SpooledTrials,
    duplicates: OnProblem,
    where: Callable[[int], str],
    drop: Callable[[IntArray], object],
    *,
    cure: str = SKIP_DUPLICATES,
) -> None:
    """Refuse trials that came before, or ``drop`` them; refuse two labels of one trial, either way
    round.
    """

    def repeated() -> Iterator[Again]:
        for again, earlier in trials.repeats:
            if duplicates == "skip":
                drop(again)
            yield again, earlier

    checks = [repeated(), trials.contradictions]
    for found in checks if duplicates == "error" else checks[::-1]:
        some = [(int(rows[0]), before, rows.size) for rows, before in found if rows.size]
        if not some or (found is checks[0] and duplicates == "skip"):
            continue
        row, before, _ = min(some)
        count, trial = sum(size for *_, size in some), trials.trial(row)
        earlier = where(before).rsplit(", ", 1)[-1]
        if found is checks[0]:
            raise InputError(
                f"{where(row)}: expected each trial once, found {trial} again, first in {earlier} "
                f"({count} duplicates in all); {cure}"
            )
        expected = f"{trial}, in either order, labelled as in {earlier}"
        raise InputError(where(row), expected, f"another label ({count} such trials in all)")


def paired(partner: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Which trials have a ``partner`` among ``size`` others, and which; and those that only one
    side has.
    """
    met, alone = np.flatnonzero(partner >= 0), np.flatnonzero(partner < 0)
    others = partner[met]
    left = np.ones(size, bool)
    left[others] = False
    return met, others, alone, np.flatnonzero(left)


class Meeting:
    """How two lists fit: how many trials either has ``alone``, and how many they label unlike."""

    def __init__(self, first: TrialList | SpooledTrials, second: TrialList | SpooledTrials) -> None:
        self.lists = first, second
        self._sizes = len(first), len(second)
        self.alone, self._rows, self._conflicts = [0, 0], [1 << 62, 1 << 62], 0

    def add(self, *alone: IntArray, labels: tuple[Labels | None, Labels | None]) -> None:
        """Rows that one list has alone, and labels of those that both have, in a part of them."""
        for side, rows in enumerate(alone):
            self._rows[side] = int(rows.min(initial=self._rows[side]))
            self.alone[side] += rows.size
        if labels[0] is not None and labels[1] is not None:
            self._conflicts += int((labels[0] != labels[1]).sum())

    def _are_turned(self) -> bool:
        """Whether a trial of one list stands in the other with its sides swapped."""
        enrol, _, test = self.lists[0].trial(self._rows[0]).partition(" ")
        names = [getattr(self.lists[1], side, None) for side in ("enrol", "test")]
        if any(ids is None for ids in names):
            return False
        enrolled, tested = (set(ids.present) for ids in names if ids is not None)
        return enrol in tested and test in enrolled

    def check_key(self, missing: OnProblem) -> None:
        """Refuse scores that do not fit their key."""
        (scores, key), (lacking, surplus), (size, others) = self.lists, self.alone, self._sizes
        said = []
        if lacking and missing == "error":
            first = scores.trial(self._rows[0])
            said.append(f"{lacking} of its {size} trials are not in {key.name} (first: {first})")
        if surplus and missing == "error":
            text = f"{surplus} of the {others} trials of {key.name} have no score"
            said.append(f"{text} (first: {key.trial(self._rows[1])})")
        if said:
            if lacking == size and surplus == others and self._are_turned():
                raise InputError(
                    f"{key.name}: expected the enrolled side first as in {scores.name}, found the"
                    " tested side: the two columns are swapped"
                )
            raise InputError(
                f"{scores.name}: {'; '.join(said)}; missing='skip' goes on without them"
            )
        if lacking == size:
            raise InputError(f"{scores.name}: none of its {size} trials is in {key.name}")
        self._check_labels(scores.name, key.name)

    def check_same(self) -> None:
        """Refuse lists that are not of the same labelled trials."""
        names = [table.name for table in self.lists]
        sides = zip(self.alone, names, names[::-1], strict=True)
        said = [f"{n} trials of {own} are not in {other}" for n, own, other in sides if n]
        if said:
            raise InputError(f"expected the same trials, found that {' and '.join(said)}")
        self._check_labels(names[1], names[0])

    def _check_labels(self, name: str, reference: str) -> None:
        if self._conflicts:
            actual = f"{self._conflicts} trials labelled otherwise"
            raise InputError(name, f"the labels of {reference}", actual)
