"""Scores of one or several files, a key and speakers, none of which is held in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from unmask.base import Codes, Floats, Labels
from unmask.errors import InputError
from unmask.trials.duplicates import OnProblem, check_choice
from unmask.trials.merging import TRIAL_BY_TRIAL, distinct_names
from unmask.trials.messages import no_class, no_identifiers, two_speakers
from unmask.trials.scratch import Scratch
from unmask.trials.source import Source
from unmask.trials.speakers import SpeakerRule, Speakers, speaker_rule
from unmask.trials.spooled import CollisionError, Fraction, Spooled, within
from unmask.trials.streamed_join import join_key, join_systems
from unmask.trials.streamed_speakers import SpeakerCodes, count_speakers
from unmask.trials.streaming import IDENTIFIERS, SPEAKERS, Stream

CARRIED = 8


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some trials: scores of a system, labels, and codes of the speakers where they are known."""

    scores: Floats
    label: Labels
    enrol_speaker: Codes | None = None
    test_speaker: Codes | None = None


@dataclass(frozen=True, eq=False)
class StreamedScores:
    """What :func:`streamed_scores` opened: to be gone through as often as needed.

    ``counts`` are of the trials by class, ``speaker_count`` is over both classes. ``speakers`` are
    the names that the codes of a batch stand for, the same for all systems. ``trials`` is the
    digest of the first file.
    """

    counts: dict[str, int]
    sources: tuple[Source, ...]
    speakers: pl.Series | None
    speaker_count: int | None
    trials: str
    _tables: dict[str, tuple[Spooled, str]]

    @property
    def systems(self) -> list[str]:
        """Names of the systems."""
        return list(self._tables)

    def batches(self, system: str, *, speakers: bool = False) -> Iterator[ScoreBatch]:
        """The trials of a system in batches, in the order of its file."""
        table, column = self._tables[system]
        for start, stop in table.ranges():
            label, kept = table.labels(start, stop)
            parts: list[Any] = [table.scores[column].read(start, stop), label]
            if speakers and table.speakers is not None:
                parts += table.speakers.read(start, stop)
            if kept is not None:
                parts = [part[kept] for part in parts]
            yield ScoreBatch(*parts)


@contextmanager
def streamed_scores(
    paths: Sequence[str | Path],
    *,
    key: str | Path | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    format: str | None = None,
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
    tell: Fraction = lambda done: None,
) -> Iterator[StreamedScores]:
    """Read files once, into a temporary folder that lasts as long as the context.

    Everything is checked and joined there as :func:`read_scores` and :func:`merge_systems` do it:
    the same options, the same errors.
    """
    check_choice("missing", missing)
    check_choice("duplicates", duplicates)
    role = "scores" if key is None else "scores for a key"
    streams = [Stream(path, role=role, format=format, systems=systems) for path in paths]
    labels = None if key is None else Stream(key, role="a key")
    rule = None if speakers is None else speaker_rule(speakers)
    _check(streams, labels, rule)
    for seed in count():
        with Scratch() as scratch:
            tables, trials = _tables(streams, labels, rule, scratch)
            every = [*tables, trials] if trials else tables
            try:
                _read(every, scratch, seed, missing, duplicates, within(tell, 0.0, 0.9))
            except CollisionError:
                continue
            yield _joined(tables, trials, rule, scratch, missing, within(tell, 0.9, 1.0))
            return


def _check(streams: Sequence[Stream], key: Stream | None, rule: SpeakerRule | None) -> None:
    """Refuse what the columns alone rule out, before anything is read."""
    for stream in streams:
        if not stream.has_ids and (key or rule):
            raise no_identifiers(stream.name)
        if not stream.has_ids and len(streams) > 1:
            raise no_identifiers(stream.name, TRIAL_BY_TRIAL)
    if not key and not any("label" in stream.columns for stream in streams):
        raise InputError(f"{streams[0].name}: the trials have no labels; give a key (--key)")


def _tables(
    streams: Sequence[Stream], key: Stream | None, rule: SpeakerRule | None, scratch: Scratch
) -> tuple[list[Spooled], Spooled | None]:
    """Room for what is needed of each file."""
    every = [*streams, key] if key else list(streams)
    one_sided = len({"side" in stream.columns for stream in every}) > 1

    def table(stream: Stream) -> Spooled:
        named = SPEAKERS if stream.has_speakers else ()
        if rule and stream is not key:
            named = IDENTIFIERS[:2] if stream is streams[0] else ()
        sideless = one_sided and "side" in stream.columns
        return Spooled(stream, scratch, sideless=sideless, named=named)

    return [table(stream) for stream in streams], table(key) if key else None


def _read(
    tables: Sequence[Spooled],
    scratch: Scratch,
    seed: int,
    missing: OnProblem,
    duplicates: OnProblem,
    tell: Fraction,
) -> None:
    """Bring files to disk, each trial once and with all its scores."""
    carried = CARRIED if len(tables) > 1 and any(table.names for table in tables) else 0
    scratch.check_room(sum((t.row_bytes + carried) * t.stream.expected_rows for t in tables))
    total = sum(table.stream.size for table in tables)
    begin = 0.0
    for table in tables:
        share = table.stream.size / total
        table.read(seed=seed, tell=within(tell, begin, begin + 0.9 * share))
        table.drop_absent(missing)
        table.drop_repeats(duplicates, within(tell, begin + 0.9 * share, begin + share))
        begin += share


def _joined(
    tables: list[Spooled],
    key: Spooled | None,
    rule: SpeakerRule | None,
    scratch: Scratch,
    missing: OnProblem,
    tell: Fraction,
) -> StreamedScores:
    """Give all scores their labels and speakers."""
    for table in [*tables, key] if key else tables:
        if table.names.keys() == set(SPEAKERS):
            table.speakers = SpeakerCodes.of_columns(table)
    steps = [within(tell, i / len(tables), (i + 1) / len(tables)) for i in range(len(tables))]
    unscored = [
        join_key(table, key, scratch, speakers=not rule, missing=missing, tell=step) if key else 0
        for table, step in zip(tables, steps, strict=True)
    ]
    first = tables[0]
    if rule:
        first.speakers = SpeakerCodes.by_rule(first, rule)
    known = [rule is not None or table.speakers is not None for table in tables]
    join_systems(tables, scratch)
    tell(1.0)
    counts = first.counts()
    if not counts["target"] or not counts["nontarget"]:
        raise no_class(first.name, counts)
    spoken = count_speakers(first, first.speakers) if first.speakers else None
    if spoken and spoken.torn:
        raise two_speakers(first.name, spoken.torn, *spoken.first)
    sources: dict[Source, None] = {}
    for table, knows, without in zip(tables, known, unscored, strict=True):
        sources[_source(table, knows)] = None
        if key:
            sources[replace(_source(key, key.speakers is not None), missing=without)] = None
        if rule and rule.source:
            sources[rule.source] = None
    names = distinct_names([table.name for table in tables], [table.systems for table in tables])
    return StreamedScores(
        counts,
        tuple(sources),
        first.speakers.names if first.speakers else None,
        spoken.of_classes if spoken else None,
        first.stream.sha256[:8],
        {
            name: (table, system)
            for table, group in zip(tables, names, strict=True)
            for name, system in zip(group, table.systems, strict=True)
        },
    )


def _source(table: Spooled, has_speakers: bool) -> Source:
    speakers = None
    if has_speakers and table.speakers:
        speakers = count_speakers(table, table.speakers).of_all
    return table.source(table.counts(), speakers)
