"""Scores of one or several systems on a list of trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unmask.base import BoolArray, FloatArray, IntArray, as_index, read_only
from unmask.errors import InputError
from unmask.trials import problems
from unmask.trials.ids import digest_of_scores, distinct_names, match
from unmask.trials.speakers import Speakers, assign_speakers, speaker_rule
from unmask.trials.trial_list import NONTARGET, TARGET, OnProblem, TrialList, Trials, joint_codes


@dataclass(frozen=True, eq=False)
class Scores(TrialList):
    """Trials with the scores of one or several systems; higher means more likely one speaker.

    :func:`read_scores` makes them, every metric takes them. Labels may be absent until a key is
    joined. Scores are finite or infinite, never NaN.
    """

    systems: Mapping[str, FloatArray] = field(default_factory=dict, kw_only=True)
    _unnamed = "scores"

    def __post_init__(self) -> None:
        systems = {}
        for name, values in self.systems.items():
            array = np.ascontiguousarray(values, dtype=np.float64)
            nan = np.isnan(array)
            if array.ndim != 1:
                raise InputError(self.name, "one score per trial", f"{array.ndim} axes")
            if nan.any():
                raise InputError(
                    f"{self.name}, row {int(np.flatnonzero(nan)[0]) + 1}: expected a score of "
                    f"{name}, found NaN ({int(nan.sum())} in all)"
                )
            systems[name] = read_only(array)
        if not systems:
            raise InputError(self.name, "the scores of a system", "none")
        object.__setattr__(self, "systems", MappingProxyType(systems))
        super().__post_init__()

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | {f"system {name}": s for name, s in self.systems.items()}

    @classmethod
    def from_arrays(
        cls, target: ArrayLike, nontarget: ArrayLike, *, system: str = "system"
    ) -> Self:
        """Scores of the two classes without identifiers of trials."""
        parts = [np.asarray(values, dtype=np.float64).ravel() for values in (target, nontarget)]
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
            ordered = table.select(_rows(first, table))
            label = ordered.label if merged.label is None else merged.label
            if label is not None and ordered.label is not None:
                conflict = int((label != ordered.label).sum())
                if conflict:
                    raise problems.other_labels(table.name, first.name, conflict)
            systems |= zip(own, ordered.systems.values(), strict=True)
            sources = tuple(dict.fromkeys((*merged.sources, *table.sources)))
            speakers = (merged if merged.has_speakers else ordered)._speakers
            columns = {**ordered.columns, **merged.columns}
            merged = replace(merged, label=label, columns=columns, sources=sources, **speakers)
        return replace(merged, systems=systems)

    @cached_property
    def digest(self) -> str:
        """Eight hex digits that name the labelled trials, whatever their order.

        Without identifiers of trials, the scores themselves take their place.
        """
        if self.has_ids:
            return super().digest
        return digest_of_scores(self.label, list(self.systems.values()))

    def scores(self, system: str | None = None) -> FloatArray:
        """Scores of one system; the name may be left out where there is only one."""
        if system is None and len(self.systems) == 1:
            return next(iter(self.systems.values()))
        if system is None or system not in self.systems:
            asked = "no name" if system is None else repr(system)
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
        index = as_index(selection, len(self))
        systems = {name: values[index] for name, values in self.systems.items()}
        return self._select(index, systems=systems)

    def select_systems(self, names: list[str] | tuple[str, ...]) -> Self:
        """Keep some of the systems, in the order asked for."""
        return replace(self, systems={name: self.scores(name) for name in names})

    def with_key(
        self, trials: Trials, *, missing: OnProblem = "error", duplicates: OnProblem = "error"
    ) -> Self:
        """Take labels, speakers and metadata from a key, joined by (enrol, test[, side]).

        ``missing="skip"`` leaves out trials that only one of the two has, ``duplicates="skip"``
        keeps the first of repeated trials; the counts stand in ``sources``.
        """
        self = self.without_duplicates(duplicates)
        trials = trials.without_duplicates(duplicates)
        codes = joint_codes(self, trials)
        rows = match(*codes)
        without_label = rows < 0
        n_unlabelled = int(without_label.sum())
        n_unscored = len(trials) - (len(rows) - n_unlabelled)
        if missing == "error" and (n_unlabelled or n_unscored):
            sides = _first(self, without_label), _first(trials, match(*codes[::-1]) < 0)
            raise problems.mismatch(self.name, trials.name, *sides)
        scores = self.select(~without_label) if n_unlabelled else self
        key = trials.select(rows[rows >= 0])
        if not len(scores):
            raise problems.nothing_in_common(self.name, len(self), trials.name)
        if scores.label is not None:
            conflict = int((scores.label != key.label).sum())
            if conflict:
                raise problems.other_labels(self.name, trials.name, conflict)
        scores, key = scores._left_out(missing=n_unlabelled), key._left_out(missing=n_unscored)
        speakers = (key if key.has_speakers else scores)._speakers
        columns, sources = {**key.columns, **scores.columns}, (*scores.sources, *key.sources)
        return replace(scores, label=key.label, columns=columns, sources=sources, **speakers)

    def with_speakers(self, speakers: Speakers) -> Self:
        """Name the speakers: an ``utt2spk`` file, ``"pattern:REGEX"`` or a mapping."""
        rule = speaker_rule(speakers)
        sources = self.sources if rule.source is None else (*self.sources, rule.source)
        return replace(assign_speakers(self, rule), sources=sources)


def _first(trials: TrialList, bad: BoolArray) -> tuple[int, int, str]:
    """How many trials a mask marks, of how many, and the first of them."""
    if not bad.any():
        return 0, len(trials), ""
    return int(bad.sum()), len(trials), trials.trial(int(np.flatnonzero(bad)[0]))


def _rows(first: Scores, other: Scores) -> IntArray:
    """Row of ``other`` for each trial of ``first``; both must hold the same trials."""
    for table in (first, other):
        if not table.has_ids:
            raise problems.no_identifiers(table.name, problems.TRIAL_BY_TRIAL)
        if table.first_occurrence is not None:
            raise InputError(table.name, "each trial once", "duplicates")
    rows = match(*joint_codes(first, other))
    lacking = int((rows < 0).sum())
    surplus = len(other) - (len(first) - lacking)
    if lacking or surplus:
        raise problems.other_trials(first.name, other.name, lacking, surplus)
    return rows
