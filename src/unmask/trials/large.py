"""Scores of files, a key and speakers, none of which is held in memory: batches go to disk, where
trials are compared and joined part by part, with the options and errors of :func:`read_scores`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray, in_order
from unmask.errors import InputError
from unmask.run import advance, check_room, is_pipe, part, ranges_of, scratch_folder
from unmask.trials import formats, problems
from unmask.trials.formats import NONTARGET, OTHER, TARGET, OnProblem, Source, Units
from unmask.trials.ids import (
    Digest,
    Ids,
    NameTable,
    distinct_names,
    refuse_twins,
    repeats,
    score_hashes,
)
from unmask.trials.readers.detect import NamedColumns, Wanted, columns_of
from unmask.trials.readers.files import GZIP_MAGIC, Input
from unmask.trials.readers.tables import IDENTIFIERS, TableFile, open_table
from unmask.trials.readers.text import GZIP_EXPANSION, SPEAKERS
from unmask.trials.reading import check_format
from unmask.trials.speakers import (
    VOXCELEB,
    SpeakerRule,
    Speakers,
    side_rules,
    speakers_of,
    voxceleb_rule,
    with_rules,
)
from unmask.trials.spool import RECORD, Column, Records, TrialSpool, partners
from unmask.trials.trial_list import Again, Meeting, check_repeats, paired

LARGE = 2 << 30
ROWS = 1 << 20
DROPPED, UNLABELLED = -2, -3
CARRIED = 8
PARTITION, MOST_BUCKETS = 1 << 20, 1 << 12


def is_large(path: str | Path, limit: int = LARGE) -> bool:
    """Whether a file has more bytes than ``limit``; compressed ones count five times.

    A pipe has no size, and what is looked at there is gone.
    """
    if is_pipe(path):
        return False
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as file:
            packed = file.read(2) == GZIP_MAGIC
    except OSError:
        return False
    return size * (GZIP_EXPANSION if packed else 1) > limit


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some trials: scores, which are of targets, speakers of both sides by number (or all 0)."""

    scores: FloatArray
    is_target: BoolArray
    enrol: npt.NDArray[np.integer]
    test: npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class StreamedScores:
    """What :func:`streamed_scores` opened, to be gone through as often as needed: ``counts`` by
    class, names of all ``speakers``, the ``speaker_count`` of both classes, the digest of
    ``trials``.
    """

    counts: dict[str, int]
    sources: tuple[Source, ...]
    speakers: pl.Series | None
    speaker_count: int | None
    trials: str
    _tables: dict[str, tuple[SpooledTrials, str]]
    scores_are: Units = "ln"

    @property
    def systems(self) -> list[str]:
        """Names of the systems."""
        return list(self._tables)

    @cached_property
    def _numbers(self) -> IntArray:
        return in_order([] if self.speakers is None else self.speakers.to_list())

    def batches(self, system: str, *, speakers: bool = False) -> Iterator[ScoreBatch]:
        """Trials of a system in the order of the first file, with ``speakers`` if asked for."""
        first = next(iter(self._tables.values()))[0]
        table, column = self._tables[system]
        columns = [first.label, table.scores[column] if table is first else table.rows_of]
        columns += [first.speakers[0]] if speakers and first.speakers else []
        for start, (label, values, *spoken) in first.scan(*columns):
            kept = (label == TARGET) | (label == NONTARGET)
            scores = values[kept] if table is first else table.scores[column].map()[values[kept]]
            where = partial(_row, first.table.name, start + np.flatnonzero(kept))
            scores = formats.natural(scores, self.scores_are, where)
            sides = np.zeros((len(scores), 2), np.int64)
            if spoken:
                sides = self._numbers[spoken[0][kept]]
            yield ScoreBatch(scores, label[kept] == TARGET, *sides.T)


def _row(name: str, rows: IntArray, trial: int) -> str:
    return f"{name}, row {rows[trial] + 1}"


@contextmanager
def streamed_scores(
    paths: Sequence[str | Path],
    *,
    key: str | Path | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    columns: NamedColumns | None = None,
    format: str | None = None,
    scores_are: Units = "ln",
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
) -> Iterator[StreamedScores]:
    """Read files once, into a temporary folder that lasts as long as the context, where they are
    checked and joined with the options and errors of :func:`read_scores`.
    """
    formats.check_choice("missing", missing)
    formats.check_choice("duplicates", duplicates)
    role = "scores" if key is None else "scores for a key"
    own, of_key = columns_of(columns, key)
    streams = [_open(path, Wanted(role, format, systems, own)) for path in paths]
    keys = [] if key is None else [_open(key, Wanted("a key", columns=of_key))]
    rules = _voxceleb([*streams, *keys]) if speakers is None else side_rules(speakers)
    for stream in streams:
        if not stream.has_ids and (keys or rules):
            raise problems.no_identifiers(stream.name)
        if not stream.has_ids and len(streams) > 1:
            raise problems.no_identifiers(stream.name, problems.TRIAL_BY_TRIAL)
    if not keys and not any(stream.has_label for stream in streams):
        raise problems.unlabelled(streams[0].name)
    opened = [*streams, *keys]
    one_sided = len({"side" in table.columns for table in opened}) > 1
    buckets = 1 + min(max(table.rows.expected() for table in opened) // PARTITION, MOST_BUCKETS)
    with scratch_folder() as folder:
        tables = []
        for i, table in enumerate(opened):
            named = SPEAKERS if table.has_speakers else ()
            if rules and table not in keys:
                named = IDENTIFIERS[:2] if i == 0 else ()
            names = [] if table in keys else list(table.systems)
            tables.append(SpooledTrials(table, folder / str(i), names, named, one_sided, buckets))
        carried = CARRIED if len(tables) > 1 else 0
        needed = sum((one.row_bytes + carried) * one.table.rows.expected() for one in tables)
        check_room(folder, needed, "temporary files", named=folder.parent)
        for i, spooled in enumerate(tables):
            with part(i, len(tables)):
                spooled.read()
            spooled.drop_absent(missing)
            spooled.drop_repeats(duplicates)
        labels = tables.pop() if keys else None
        yield replace(_joined(tables, labels, rules, missing), scores_are=scores_are)


def _voxceleb(tables: Sequence[TableFile]) -> tuple[SpeakerRule, ...]:
    """The rule of VoxCeleb's names, twice, where the first are such; later all are looked at."""
    first = tables[0]
    if not first.has_ids or any(table.has_speakers for table in tables):
        return ()
    columns = [first.columns[role] for role in IDENTIFIERS[:2]]
    _, frame = next(first.rows.frames(columns))
    rule = voxceleb_rule(*(frame[column].cast(pl.String, strict=False) for column in columns))
    return (rule, rule) if rule else ()


def _open(path: str | Path, wanted: Wanted) -> TableFile:
    if str(path) == "-":
        raise InputError("-", "a file that can be read twice", "standard input")
    if is_pipe(path):
        raise InputError(path, "a file that can be read twice", "a pipe")
    with Input(path) as source:
        check_format(source, wanted.format)
        table = open_table(source, wanted, again=True)
        if table is None:
            raise InputError(path, "text, gzip or parquet to be read in batches", source.container)
    if wanted.as_key:
        problems.check_key(table.name, table.format, table.has_label, table.has_ids)
    elif not table.systems:
        raise problems.only_a_key(table.name, table.format)
    return table


@dataclass(eq=False)
class SpooledTrials:
    """A file in a folder; ``codes`` are of names in both roles ``named``."""

    table: TableFile
    folder: Path
    systems: list[str]
    named: tuple[str, ...]
    one_sided: bool
    buckets: int

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.name, columns = self.table.name, self.table.columns
        self.has_label, self.has_side = self.table.has_label, "side" in columns
        self.rows = self.dropped = self.missing = self.duplicates = 0
        self.label = Column(self.folder / "label", "i1")
        places = {name: self.folder / f"score {i}" for i, name in enumerate(self.systems)}
        self.scores = {name: Column(place, "f8") for name, place in places.items()}
        self.codes = Column(self.folder / "names", "i4", width=2)
        ids = [role for role in IDENTIFIERS if role in columns and self.table.has_ids]
        kinds = [ids, ids[:2]] if self.one_sided and self.has_side else [ids] if ids else []
        spools = (TrialSpool(self.folder / f"trials {len(ids)}", self.buckets) for ids in kinds)
        self._spools = list(zip(spools, kinds, strict=True))
        self._absent = dict.fromkeys(self.systems, 0)
        self._remarks: tuple[str, ...] = ()
        self._names = NameTable()
        self.speakers: tuple[Column, pl.Series] | None = None  # codes of both sides, their names
        self.rows_of: Column

    @property
    def row_bytes(self) -> int:
        """Bytes on disk for each row."""
        trials = RECORD.itemsize * len(self._spools)
        return trials + 1 + 8 * len(self.scores) + 4 * len(self.named)

    def __len__(self) -> int:
        return self.rows - self.dropped

    def read(self) -> None:
        """Go through the file; everything wrong with its rows is refused here."""
        size, columns = max(os.stat(self.name).st_size, 1), self.table.columns
        for batch in self.table.batches():
            for spool, roles in self._spools:
                spool.append(batch.first, [batch.names[columns[role]] for role in roles])
            if self.named:
                sides = [self._names.codes(batch.names[columns[role]]) for role in self.named]
                self.codes.append(np.stack(sides, axis=1))
            for system in self.systems:
                values = batch.scores[system]
                self.scores[system].append(values)
                self._absent[system] += int(np.count_nonzero(np.isnan(values)))
            label = batch.label
            self.label.append(np.full(batch.rows, UNLABELLED, "i1") if label is None else label)
            self.rows += batch.rows
            advance(batch.done, size)
        if self.named == SPEAKERS:
            refuse_twins(self._names.names, "speakers", self.name)
            self.speakers = self.codes, self._names.names

    def drop_absent(self, missing: OnProblem) -> None:
        """Leave out, or refuse, trials that lack a score; forget systems that have none at all."""
        if not self.systems:
            return
        empty = {system: count == self.rows for system, count in self._absent.items()}
        self.systems, self._remarks = problems.check_scored(self.name, empty)
        gaps = [self.scores[system] for system in self.systems if self._absent[system]]
        first = self.rows
        for start, scores in self.scan(*gaps) if gaps else ():
            rows = start + np.flatnonzero(np.isnan(scores).any(axis=0))
            first = int(rows.min(initial=first))
            self.drop(rows)
        self.missing = self.dropped
        if missing == "error" and self.missing:
            raise problems.no_score(self.table.rows.where(first), self.missing)

    def drop_repeats(self, duplicates: OnProblem) -> None:
        """Leave out, or refuse, trials that came before."""
        left = self.rows - self.dropped
        if self._spools:
            check_repeats(self, duplicates, self.table.rows.where, self.drop)
        self.duplicates = left - len(self)

    def trial(self, row: int) -> str:
        return self.table.trial(row)

    @property
    def repeats(self) -> Iterator[Again]:
        """Rows whose trial came before, bucket by bucket."""
        return self._alike(self._spools[0][0])

    @property
    def contradictions(self) -> Iterator[Again]:
        """Rows labelled unlike the same trial before, either way round."""
        return self._alike(self._spools[0][0], labelled=True) if self.has_label else iter(())

    def _alike(self, spool: TrialSpool, *, labelled: bool = False) -> Iterator[Again]:
        turned = np.uint64(1 if labelled and not self.has_side else 0)
        for records in self.parts(spool):
            rows, keys = records["row"], [records[name] >> turned for name in "ab"]
            again, earlier = repeats(keys, self.label.map()[rows] if labelled else None)
            yield rows[again], int(rows[earlier]) if again.size else 0

    def digest(self) -> str:
        """What names the trials that are kept, as in memory."""
        digest = Digest()
        if not self._spools:
            for _, (label, *scores) in self.scan(self.label, *self.scores.values()):
                kept = label != DROPPED
                digest.add(score_hashes([values[kept] for values in scores]), label[kept])
        for spool, _ in self._spools[:1]:
            for records in self.parts(spool):
                digest.add(records["a"], self.label.map()[records["row"]])
        return str(digest)

    def spool(self, *, side: bool) -> TrialSpool:
        """Trials with or without their side; without it, they must still be different."""
        if side or not self.has_side:
            return self._spools[0][0]
        sideless = self._spools[1][0]
        if any(len(again) for again, _ in self._alike(sideless)):
            raise problems.side_in_one(self.name)
        return sideless

    def parts(self, spool: TrialSpool) -> Iterator[Records]:
        """Hashes and rows of trials, those left out excepted, part by part."""
        for bucket in spool.buckets:
            records = spool.records(bucket)
            kept = self.label.map()[records["row"]] != DROPPED if self.dropped else slice(None)
            yield records[kept]

    def drop(self, rows: IntArray) -> None:
        """Leave out rows."""
        self.label.map()[rows] = DROPPED
        self.dropped += len(rows)

    def scan(self, *columns: Column) -> Iterator[tuple[int, list[npt.NDArray[Any]]]]:
        """Some successive rows of columns at a time, after the number of the first."""
        for start, stop in ranges_of(self.rows, ROWS):
            yield start, [column.read(start, stop) for column in columns]

    def name_speakers(self, enrol_rule: SpeakerRule, test_rule: SpeakerRule) -> bool:
        """Speakers by rules on the trials that are kept; False where not all are VoxCeleb's."""
        names = self._names.names
        used = np.zeros((2, len(names)), bool)
        for _, (label, codes) in self.scan(self.label, self.codes):
            used[[0, 1], codes[label != DROPPED]] = True
        sides = [names.filter(side) for side in used]
        if test_rule.pattern == VOXCELEB and not voxceleb_rule(*sides):
            return False
        test = speakers_of(sides[1], test_rule)
        enrol = speakers_of(sides[0], enrol_rule, known=enrol_rule.known(test.unique()))
        ids = Ids.from_strings(pl.concat([enrol, test]))
        refuse_twins(ids.names, "speakers", self.name)
        speaker = np.zeros(used.shape, np.int32)
        speaker[used] = ids.codes
        for start, (codes,) in self.scan(self.codes):
            self.codes.map()[start : start + len(codes)] = speaker[[0, 1], codes]
        self.speakers = self.codes, ids.names
        return True

    def tally(self, *, check: bool = False) -> tuple[dict[str, int], int | None, int | None]:
        """Trials by class, speakers of both classes and of all; ``check`` refuses what is wrong."""
        columns, names = ([self.speakers[0]], self.speakers[1]) if self.speakers else ([], ())
        total, two = np.zeros(TARGET - UNLABELLED + 1, np.int64), 0
        first: tuple[int, ...] = ()
        in_classes, in_all = np.zeros((2, len(names)), bool)
        for _, (label, *spoken) in self.scan(self.label, *columns):
            total += np.bincount(label.astype(np.int64) - UNLABELLED, minlength=len(total))
            for codes in spoken:
                wrong = codes[(label == TARGET) & (codes[:, 0] != codes[:, 1])]
                first = tuple(wrong[0]) if len(wrong) and not two else first
                two += len(wrong)
                in_classes[codes[(label == TARGET) | (label == NONTARGET)]] = True
                in_all[codes[label != DROPPED]] = True
        kinds = {"target": TARGET, "nontarget": NONTARGET, "other": OTHER}
        counts = {name: int(total[label - UNLABELLED]) for name, label in kinds.items()}
        if check and not (counts["target"] and counts["nontarget"]):
            raise problems.no_class(self.name, counts)
        if check and two:
            raise problems.two_speakers(self.name, two, *(names[int(code)] for code in first))
        people = [int(seen.sum()) if columns else None for seen in (in_classes, in_all)]
        return counts, people[0], people[1]

    def source(self, counts: Mapping[str, int], speakers: int | None) -> Source:
        """What the result says about this file."""
        remarks = (*self.table.remarks, *self._remarks, "read in batches")
        source = self.table.format.said_of(self.name, self.table.rows.sha256, remarks)
        source = replace(source, missing=self.missing, duplicates=self.duplicates)
        return source.counted(counts, speakers)


def _joined(
    tables: list[SpooledTrials],
    key: SpooledTrials | None,
    rules: tuple[SpeakerRule, ...],
    missing: OnProblem,
) -> StreamedScores:
    """Give all scores their labels and speakers."""
    unscored = [0] * len(tables)
    for i, table in enumerate(tables):
        if key is not None:
            meeting = _matched(table, key, speakers=not rules, drop=True)
            meeting.check_key(missing)
            unscored[i] = meeting.alone[1]
    first, *others = tables
    if rules and not first.name_speakers(*rules):
        rules = ()
    known = [first.tally()[2]] * len(tables) if rules else [table.tally()[2] for table in tables]
    for other in others:
        _matched(first, other, speakers=first.speakers is None, drop=False).check_same()
    counts, spoken, _ = first.tally(check=True)
    labels = [key.source(*key.tally()[::2])] if key else []
    sources: list[Source] = []
    for table, speakers, without in zip(tables, known, unscored, strict=True):
        own = [table.source(counts, speakers)]
        own += [replace(label, missing=without) for label in labels]
        sources += with_rules(own, *rules)
    names = distinct_names([table.name for table in tables], [table.systems for table in tables])
    systems = {
        name: (table, system)
        for table, group in zip(tables, names, strict=True)
        for name, system in zip(group, table.systems, strict=True)
    }
    named = first.speakers[1] if first.speakers else None
    unique = tuple(dict.fromkeys(sources))
    return StreamedScores(counts, unique, named, spoken, first.digest(), systems)


def _matched(first: SpooledTrials, other: SpooledTrials, *, speakers: bool, drop: bool) -> Meeting:
    """Take labels that ``first`` lacks, and ``speakers``, from ``other``; ``drop`` leaves out what
    ``first`` has alone, else ``other`` notes its rows.
    """
    known = new = other.speakers if speakers else None
    if known:
        new = Column(first.folder / "speakers", "i4", width=2, rows=first.rows), known[1]
    other.rows_of = Column(other.folder / "rows", "i8", rows=0 if drop else first.rows)
    meeting, side = Meeting(first, other), first.has_side and other.has_side
    parts = [table.parts(table.spool(side=side)) for table in (first, other)]
    for one, two in zip(*parts, strict=True):
        met, with_, alone, left = paired(partners(one, two), len(two))
        rows, others = one["row"][met], two["row"][with_]
        labels = [
            table.label.map()[at] if table.has_label else None
            for table, at in ((first, rows), (other, others))
        ]
        meeting.add(one["row"][alone], two["row"][left], labels=(labels[0], labels[1]))
        if labels[0] is None and labels[1] is not None:
            first.label.map()[rows] = labels[1]
        if known and new:
            new[0].map()[rows] = known[0].map()[others]
        if drop:
            first.drop(one["row"][alone])
        else:
            other.rows_of.map()[rows] = others
    first.missing += meeting.alone[0] if drop else 0
    first.has_label |= other.has_label
    first.speakers = new or first.speakers
    return meeting
