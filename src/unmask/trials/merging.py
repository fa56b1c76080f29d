"""Several score files on one list of trials become one table with several systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from unmask.base import Floats
from unmask.errors import InputError
from unmask.trials.join import match
from unmask.trials.messages import no_identifiers, other_labels, other_trials
from unmask.trials.scores import Scores
from unmask.trials.trial_list import joint_codes

TRIAL_BY_TRIAL = "compare systems trial by trial"


def merge_systems(*scores: Scores) -> Scores:
    """Join score tables by trial; the order of trials is that of the first.

    All must hold the same trials with the same labels. A name that two tables share is preceded by
    the folder of its file.
    """
    if not scores:
        raise InputError("expected score tables to merge, found none")
    first = scores[0]
    names = distinct_names([table.name for table in scores], [list(t.systems) for t in scores])
    systems: dict[str, Floats] = dict(zip(names[0], first.systems.values(), strict=True))
    sources = first.sources
    merged = first
    for table, own in zip(scores[1:], names[1:], strict=True):
        rows = _rows(first, table)
        ordered = table.select(rows)
        if merged.label is None and ordered.label is not None:
            merged = replace(merged, label=ordered.label)
        elif merged.label is not None and ordered.label is not None:
            conflict = int((merged.label != ordered.label).sum())
            if conflict:
                raise other_labels(table.name, first.name, conflict)
        if not merged.has_speakers and ordered.has_speakers:
            merged = replace(
                merged, enrol_speaker=ordered.enrol_speaker, test_speaker=ordered.test_speaker
            )
        merged = replace(merged, columns={**ordered.columns, **merged.columns})
        systems |= zip(own, ordered.systems.values(), strict=True)
        sources += tuple(source for source in table.sources if source not in sources)
    return replace(merged, systems=systems, sources=sources)


def _rows(first: Scores, other: Scores) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Row of ``other`` for each trial of ``first``; both must hold the same trials."""
    for table in (first, other):
        if not table.has_ids:
            raise no_identifiers(table.name, TRIAL_BY_TRIAL)
        if table.first_occurrence is not None:
            raise InputError(f"{table.name}: expected each trial once, found duplicates")
    rows = match(*joint_codes(first, other))
    lacking = int((rows < 0).sum())
    surplus = len(other) - (len(first) - lacking)
    if lacking or surplus:
        raise other_trials(first.name, other.name, lacking, surplus)
    return rows


def distinct_names(files: Sequence[str], names: list[list[str]]) -> list[list[str]]:
    """Names of systems over several files; those that two share get the folder of their file."""
    plain = [name for group in names for name in group]
    if len(set(plain)) == len(plain):
        return names
    repeated = {name for name in plain if plain.count(name) > 1}
    folders = [PurePath(file).parent.name for file in files]
    named = [
        [f"{folder}/{name}" if name in repeated and folder else name for name in group]
        for folder, group in zip(folders, names, strict=True)
    ]
    seen: dict[str, int] = {}
    return [[_numbered(name, seen) for name in group] for group in named]


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name} ({seen[name]})"
