"""Reading scores and keys, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unmask.errors import InputError
from unmask.trials.detect import take_sample
from unmask.trials.duplicates import OnProblem
from unmask.trials.embedding_reading import (
    embeddings_from,
    holds_embeddings,
    read_embeddings,
)
from unmask.trials.embeddings import Embeddings
from unmask.trials.files import Input
from unmask.trials.formats import check_format, format_named
from unmask.trials.hdf5 import parse_bosaris
from unmask.trials.messages import unknown_systems
from unmask.trials.npz import parse_npz
from unmask.trials.parquet import parse_parquet
from unmask.trials.parsed import Parsed, counted, only_a_key, to_scores, to_trials
from unmask.trials.plain import layout_of, parse_plain
from unmask.trials.scores import Scores
from unmask.trials.speakers import Speakers, assign_speakers, speaker_rule
from unmask.trials.tables import parse_table
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
    with Input(path) as source:
        parsed = _parse(source, format=format, role=role, systems=systems)
    if not parsed.systems:
        raise only_a_key(parsed.name, parsed.format)
    scores = to_scores(parsed, missing=missing, duplicates=duplicates)
    return _finish(scores, key, speakers, missing, duplicates)


def read_key(
    path: str | Path,
    *,
    format: str | None = None,
    speakers: Speakers | None = None,
    duplicates: OnProblem = "error",
) -> Trials:
    """Read a key: trials with labels. A labelled score file serves as well."""
    with Input(path) as source:
        parsed = _parse(source, format=format, role="a key")
    return _named(to_trials(parsed, duplicates=duplicates), speakers)


def read_any(
    path: str | Path,
    *,
    format: str | None = None,
    key: str | Path | Trials | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
) -> Scores | Trials | Embeddings:
    """Read a file of any kind: scores, a key or embeddings."""
    named = None if format is None else format_named(format)
    if str(path) != "-" and Path(path).is_dir():
        return read_embeddings(path, format=format, speakers=speakers)
    with Input(path) as source:
        if source.container != "text":
            source.load()
        if named.kind == "embedding" if named else holds_embeddings(source):
            return embeddings_from(source, format=format, speakers=speakers)
        parsed = _parse(source, format=format, role="scores or a key", systems=systems)
    if parsed.systems:
        scores = to_scores(parsed, missing=missing, duplicates=duplicates)
        return _finish(scores, key, speakers, missing, duplicates)
    if key is not None:
        raise InputError(f"{parsed.name}: expected scores for the key, found {parsed.format.name}")
    return _named(to_trials(parsed, duplicates=duplicates), speakers)


def _finish(
    scores: Scores,
    key: str | Path | Trials | None,
    speakers: Speakers | None,
    missing: OnProblem,
    duplicates: OnProblem,
) -> Scores:
    """Join the key, name the speakers, count."""
    if key is not None:
        trials = key if isinstance(key, Trials) else read_key(key, duplicates=duplicates)
        scores = scores.with_key(trials, missing=missing, duplicates=duplicates)
    if speakers is not None:
        scores = scores.with_speakers(speakers)
    return replace(scores, sources=(counted(scores.sources[0], scores), *scores.sources[1:]))


def _named(trials: Trials, speakers: Speakers | None) -> Trials:
    if speakers is None or trials.source is None:
        return trials
    named = assign_speakers(trials, speaker_rule(speakers))
    return replace(named, source=counted(trials.source, named))


def _parse(
    source: Input, *, format: str | None, role: str, systems: Sequence[str] | None = None
) -> Parsed:
    as_key = role == "a key"
    if format is not None:
        check_format(source, format)
    match source.container:
        case "text":
            parsed = _parse_text(source, format=format, role=role, systems=systems)
        case "npz":
            parsed = parse_npz(source, as_key=as_key, systems=systems)
        case "parquet":
            parsed = parse_parquet(source, as_key=as_key, systems=systems)
        case "hdf5":
            parsed = parse_bosaris(source, as_key=as_key)
        case container:
            raise InputError(f"{source.name}: expected {role}, found a file of kind {container}")
    if systems is not None:
        unknown = [name for name in systems if name not in parsed.systems]
        if unknown and parsed.systems:
            raise unknown_systems(source.name, list(parsed.systems), unknown)
    return replace(parsed, sha256=source.sha256)


def _parse_text(
    source: Input, *, format: str | None, role: str, systems: Sequence[str] | None
) -> Parsed:
    sample = take_sample(source.name, sample_lines(source))
    chosen = layout_of(source, sample, format=format, role=role)
    if chosen is None:
        return parse_table(source, sample, as_key=role == "a key", systems=systems)
    layout, remark = chosen
    return parse_plain(source, sample, layout, remark=remark)
