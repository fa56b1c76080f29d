"""Reading scores and keys, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unmask.errors import InputError
from unmask.trials.detect import take_sample
from unmask.trials.duplicates import OnProblem
from unmask.trials.files import Input
from unmask.trials.layouts import LAYOUTS
from unmask.trials.parsed import Parsed, counted, to_scores, to_trials
from unmask.trials.plain import detect_layout, layout_named, parse_plain
from unmask.trials.scores import Scores
from unmask.trials.speakers import Speakers, assign_speakers, speaker_rule
from unmask.trials.tables import TABLES, parse_table
from unmask.trials.text import sample_lines
from unmask.trials.trial_list import Trials


def read_scores(
    path: str | Path,
    *,
    format: str | None = None,
    key: str | Path | Trials | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
) -> Scores:
    """Read a score file.

    ``path`` may be ``-`` (standard input) and may be compressed with gzip. ``format`` is needed
    only where two layouts fit. ``key`` (a path or `Trials`) gives labels, joined by trial.
    ``speakers`` is an ``utt2spk`` file, ``"pattern:REGEX"`` with a group on the identifier, or a
    mapping; without it, speaker columns of the file are used. ``systems`` selects columns.
    ``missing="skip"`` goes on without trials that lack a score or a label, ``duplicates="skip"``
    keeps the first of repeated trials; the counts stand in ``Scores.sources``.
    """
    role = "scores" if key is None else "scores for a key"
    parsed = _parse(path, format=format, role=role, systems=systems)
    if not parsed.systems:
        raise InputError(
            f"{parsed.name}: expected scores, found a key ({parsed.format.name}: "
            f"{parsed.format.layout}) without scores"
        )
    scores = to_scores(parsed, missing=missing, duplicates=duplicates)
    if systems is not None:
        scores = scores.select_systems(list(systems))
    if key is not None:
        trials = key if isinstance(key, Trials) else read_key(key, duplicates=duplicates)
        scores = scores.with_key(trials, missing=missing, duplicates=duplicates)
    if speakers is not None:
        scores = scores.with_speakers(speakers)
    return replace(scores, sources=(counted(scores.sources[0], scores), *scores.sources[1:]))


def read_key(
    path: str | Path,
    *,
    format: str | None = None,
    speakers: Speakers | None = None,
    duplicates: OnProblem = "error",
) -> Trials:
    """Read a key: trials with labels. A labelled score file serves as well."""
    trials = to_trials(_parse(path, format=format, role="a key"), duplicates=duplicates)
    if speakers is not None:
        trials = assign_speakers(trials, speaker_rule(speakers))
        assert trials.source is not None
        trials = replace(trials, source=counted(trials.source, trials))
    return trials


def _parse(
    path: str | Path, *, format: str | None, role: str, systems: Sequence[str] | None = None
) -> Parsed:
    with Input(path) as source:
        if source.container == "text":
            parsed = _parse_text(source, format=format, role=role, systems=systems)
        else:
            raise InputError(f"{source.name}: expected text")
        return replace(parsed, sha256=source.sha256)


def _parse_text(
    source: Input, *, format: str | None, role: str, systems: Sequence[str] | None
) -> Parsed:
    sample = take_sample(source.name, sample_lines(source))
    named = None if format is None else layout_named(format)
    as_key = role == "a key"
    if format is not None and named is None:
        if format not in {table.name for table in TABLES}:
            known = ", ".join(entry.name for entry in (*LAYOUTS, *TABLES))
            raise InputError(f"{source.name}: expected a format among {known}, found {format!r}")
        if sample.header is None:
            raise InputError(f"{source.name}, line 1: expected a header ({format}), found none")
    if sample.header is not None and named is None:
        return parse_table(source, sample, as_key=as_key, systems=systems)
    if named is not None:
        layout, remark = named, "format given"
    else:
        allowed = [
            layout
            for layout in LAYOUTS
            if role == "scores" or (layout.has_labels if as_key else layout.has_scores)
        ]
        layout, remark = detect_layout(source, sample, allowed=allowed, role=role)
    if sample.width != len(layout.roles):
        raise InputError(
            f"{source.name}, line 1: expected {len(layout.roles)} columns ({layout.layout}), "
            f"found {sample.width}"
        )
    return parse_plain(source, sample, layout, remark=remark)
