"""Lists of trials made of utterances and who speaks them: all pairs, or drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import Codes, IntArray
from unmask.errors import InputError
from unmask.run import ranges_of
from unmask.trials.embeddings import Embeddings, refuse_repeated
from unmask.trials.formats import NONTARGET, TARGET, format_named
from unmask.trials.ids import MULTIPLIER, Ids, mixed, text_ids
from unmask.trials.readers import kaldi
from unmask.trials.readers.detect import embedding_columns, normalise
from unmask.trials.readers.files import Input
from unmask.trials.readers.text import Dialect, TextTable, sample_lines
from unmask.trials.reading import holds_embeddings, read_embeddings
from unmask.trials.speakers import speaker_rule
from unmask.trials.trial_list import Trials
from unmask.trials.writing import write_blocks

BLOCK = 1 << 20
Voices = Embeddings | pl.DataFrame | Mapping[str, str] | str | Path
Ranges = tuple[IntArray, IntArray, IntArray]
"""Rows on the enrolment side, and from where to where their partners go on the test side."""


@dataclass(frozen=True, eq=False, repr=False)
class MadeTrials:
    """Trials of :func:`make_trials`, drawn up when asked for; ``models`` are the utterances of each
    enrolled model, ``None`` where single utterances enrol.
    """

    counts: dict[str, int]
    models: dict[str, list[str]] | None
    _enrol: Ids
    _test: Ids
    _speakers: tuple[Ids, Ids]
    _ranges: dict[str, Ranges]
    _seed: int

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        return f"MadeTrials({counts}; {self._speakers[1].n_unique:,} speakers)"

    @cached_property
    def trials(self) -> Trials:
        """All of them in memory, targets first."""
        enrol, test = np.concatenate([self._rows(*part) for part in self._parts()], axis=1)
        return self._taken(enrol, test, np.repeat([TARGET, NONTARGET], [*self.counts.values()]))

    def write(self, path: str | Path, *, format: str = "kaldi-trials") -> None:
        """Write the list to ``path``, targets first; ``format`` is one of keys in text."""
        target = format_named(format)
        if target.kind != "key" or not target.roles:
            raise InputError(path, "kaldi-trials or voxceleb", format)
        labels = {"target": TARGET, "nontarget": NONTARGET}
        blocks = (
            self._taken(*self._rows(kind, start, stop), np.full(stop - start, labels[kind]))
            for kind, start, stop in self._parts()
        )
        write_blocks(blocks, path, target)

    def _taken(self, enrol: IntArray, test: IntArray, label: IntArray) -> Trials:
        return Trials(
            self._enrol.take(enrol),
            self._test.take(test),
            label.astype(np.int8),
            enrol_speaker=self._speakers[0].take(enrol),
            test_speaker=self._speakers[1].take(test),
        )

    def _parts(self) -> Iterator[tuple[str, int, int]]:
        for kind, count in self.counts.items():
            for start, stop in ranges_of(count, BLOCK):
                yield kind, start, stop

    def _rows(self, kind: str, start: int, stop: int) -> tuple[IntArray, IntArray]:
        rows, low, high = self._ranges[kind]
        ends = np.cumsum(high - low)
        ranks = np.arange(start, stop)
        if self.counts[kind] < ends[-1]:
            ranks = np.sort(_drawn(ranks, int(ends[-1]), [self._seed, len(kind)]))
        at = np.searchsorted(ends, ranks, side="right")
        first, second = rows[at], high[at] - ends[at] + ranks
        if self.models is None:  # either side enrols in turn, not always the first of the alphabet
            turned = (first + second) % 2 == 1
            first, second = np.where(turned, second, first), np.where(turned, first, second)
        return first, second


def _drawn(numbers: IntArray, size: int, seed: list[int]) -> IntArray:
    """Where a permutation of 0 … ``size`` - 1 takes some of these numbers: a Feistel network, gone
    through again where it leads beyond, so that none is drawn twice and none has to be held.
    """
    keys = np.random.default_rng(seed).integers(2**63, size=8, dtype=np.uint64)
    half = np.uint64(max(-(-(size - 1).bit_length() // 2), 1))
    mask = (np.uint64(1) << half) - np.uint64(1)
    words, out = numbers.astype(np.uint64), np.ones(len(numbers), bool)
    while out.any():
        left, right = words[out] >> half, words[out] & mask
        for key in keys:
            left, right = right, left ^ (mixed((right + key) * MULTIPLIER) & mask)
        words[out] = (left << half) | right
        out = words >= size
    return words.astype(np.int64)


def make_trials(
    voices: Voices,
    *,
    same: str | None = None,
    cross_session: str | None = None,
    per_speaker: int | None = None,
    enrol: int | None = None,
    balanced: bool = False,
    nontargets: int | None = None,
    seed: int = 0,
) -> MadeTrials:
    """Make a list of trials: which utterances are compared, and which pairs are of one speaker.

    All pairs of different utterances, each once, unless options leave some out.

    Parameters
    ----------
    voices : Embeddings, DataFrame, mapping or path
        Utterances with their speakers: ``utt2spk`` or ``spk2utt``, a table with such columns, a
        mapping, or embeddings.
    same : str, optional
        Column in which both sides agree, such as ``sex``; ``spk2gender`` beside a file serves.
    cross_session : str, optional
        Column in which the two sides of a target trial differ.
    per_speaker : int, optional
        Use at most as many utterances of a speaker, drawn.
    enrol : int, optional
        Enrol a model of as many utterances for each speaker who has more, drawn (of one session
        with ``cross_session``); the others are tested against all models.
    balanced : bool
        Draw as many trials of the larger class as the smaller one has.
    nontargets : int, optional
        Draw as many nontarget trials in all. A false-alarm rate of 1 in 10,000 takes some hundred
        thousand of them.
    seed : int
        Seed of all draws; the order of ``voices`` does not matter.

    Returns
    -------
    MadeTrials
        Its ``counts``, its ``trials`` in memory, and ``write``, which needs little memory.

    Examples
    --------
    >>> import unmask as um
    >>> made = um.make_trials({"a1": "ann", "a2": "ann", "b1": "bob", "b2": "bob"})
    >>> made.counts
    {'target': 2, 'nontarget': 4}
    >>> um.make_trials({"a1": "ann", "a2": "ann", "b1": "bob"}, enrol=1, seed=3).models
    {'ann': ['a2']}
    """
    least = {"per_speaker": per_speaker, "enrol": enrol, "nontargets": nontargets}
    for option, value in least.items():
        if value is not None and value < 1:
            raise InputError(option, "at least 1", value)
    if balanced and nontargets is not None:
        raise InputError("nontargets", "a number, or balanced classes", "both")
    name, ids = _voices(voices)
    ids = {what: column.alphabetical() for what, column in ids.items()}
    row = np.argsort(ids["utterances"].codes)
    chance = np.random.default_rng(seed).permutation(len(row))
    columns = {"speaker": "speakers", "group": same, "session": cross_session}
    codes = {kind: _codes(ids, column, name)[row] for kind, column in columns.items()}
    every = pl.DataFrame({"row": row, "chance": chance, **codes})
    if per_speaker is not None:
        every = every.filter(pl.col("chance").rank("ordinal").over("speaker") <= per_speaker)
    table = every.sort("group", "speaker", "session", maintain_order=True).with_columns(
        pl.struct("group", "speaker").rle_id().alias("voice"),
        pl.struct("group", "speaker", "session").rle_id().alias("part"),
    )
    crossed = cross_session is not None
    models = None if enrol is None else _enrolled(table, enrol, crossed)
    test = table if models is None else table.join(models, on="row", how="anti")
    first = test if models is None else models.unique("voice", keep="first", maintain_order=True)
    ranges = _ranges(first, test, crossed, pairs=models is None)
    counts = {kind: int((high - low).sum()) for kind, (_, low, high) in ranges.items()}
    if not all(counts.values()):
        found = " and ".join(f"{count} {kind}" for kind, count in counts.items())
        raise InputError(name, "pairs of one speaker and of two, with these options", found)
    if balanced:
        counts = dict.fromkeys(counts, min(counts.values()))
    if nontargets is not None:
        if nontargets > counts["nontarget"]:
            wanted = f"at most the {counts['nontarget']:,} pairs of two speakers that there are"
            raise InputError("nontargets", wanted, f"{nontargets:,}")
        counts["nontarget"] = nontargets
    at = [first["row"].to_numpy(), test["row"].to_numpy()]
    speakers = ids["speakers"].take(at[0]), ids["speakers"].take(at[1])
    utterances = ids["utterances"]
    enrolled, named = utterances.take(at[0]), None
    if models is not None:
        enrolled = _model_names(first, ids, same)
        spoken = models.group_by("voice", maintain_order=True).agg("row")["row"]
        lists = [utterances.take(rows.to_numpy()).to_series().to_list() for rows in spoken]
        named = dict(zip(enrolled, lists, strict=True))
    return MadeTrials(counts, named, enrolled, utterances.take(at[1]), speakers, ranges, seed)


def _voices(voices: Voices) -> tuple[str, dict[str, Ids]]:
    """What utterances are called, in messages, and their names, speakers and columns."""
    if isinstance(voices, str | Path):
        path, gender = Path(voices), {}
        if path.is_dir():
            known = [path / name for name in ("utt2spk", "spk2utt") if (path / name).is_file()]
            voices = path = known[0] if known else path
        if path.is_dir():
            return _voices(read_embeddings(path))
        with Input(voices) as source:
            if holds_embeddings(source):
                return _voices(read_embeddings(voices))
            table = _table(source)
        if table is None:
            table = speaker_rule(voices).table
            assert table is not None
            speakers = text_ids(table["speaker"], "speakers", str(voices))
            gender = kaldi.directory_gender(path.parent, speakers)
        ids = _voices(table)[1]
        return str(voices), ids | gender | ({"sex": gender["gender"]} if gender else {})
    if isinstance(voices, Mapping):
        return _voices(speaker_rule(voices).table)  # type: ignore[arg-type]
    if isinstance(voices, Embeddings):
        if voices.utterances is None:
            raise InputError(voices.name, "names of utterances", "none")
        ids = {"utterances": voices.utterances, "speakers": voices.speakers, **voices.columns}
        return voices.name, ids | ({"session": voices.sessions} if voices.sessions else {})
    roles = {column: role for role, column in embedding_columns(voices.columns).items()}
    if not {"utterances", "speakers"} <= set(roles.values()):
        raise InputError("table", "columns utterance and speaker", ", ".join(voices.columns))
    names = {role: roles[role] if roles.get(role) != "sessions" else "session" for role in roles}
    ids = {
        names.get(column, normalise(column)): text_ids(voices[column], column, "table")
        for column in voices.columns
    }
    refuse_repeated(ids["utterances"], "table")
    return "voices", ids


def _table(source: Input) -> pl.DataFrame | None:
    """A table with a header that names utterances and speakers."""
    first = sample_lines(source)[0]
    for dialect in (Dialect("\t"), Dialect(",", quoted=True), Dialect(";", quoted=True)):
        fields = dialect.split(first)
        if {"utterances", "speakers"} <= embedding_columns(fields).keys():
            rows = TextTable(source, dialect, fields, " ".join(fields), header=True)
            return pl.concat([frame for _, frame in rows.frames(fields)])
    return None


def _codes(ids: Mapping[str, Ids], column: str | None, name: str) -> Codes:
    if column is None:
        return np.zeros(len(ids["speakers"]), np.int32)
    if normalise(column) not in ids:
        others = [known for known in ids if known not in ("utterances", "speakers")]
        raise InputError(name, f"a column {column!r}", ", ".join(others) or "none")
    return ids[normalise(column)].codes


def _enrolled(table: pl.DataFrame, size: int, crossed: bool) -> pl.DataFrame:
    """Utterances that enrol: ``size`` of each voice that has more, of one part of it, which others
    must be left beside, where sessions are ``crossed``.
    """
    part, rest = ("part", pl.len().over("part")) if crossed else ("voice", pl.lit(size))
    able = table.filter((pl.len().over(part) >= size) & (pl.len().over("voice") > rest))
    drawn = pl.col("chance").min().over(part) == pl.col("chance").min().over("voice")
    return able.filter(drawn).filter(pl.col("chance").rank("ordinal").over("voice") <= size)


def _ranges(
    first: pl.DataFrame, test: pl.DataFrame, crossed: bool, *, pairs: bool
) -> dict[str, Ranges]:
    """Rows of ``test``, sorted, that each of ``first`` meets; of ``pairs``, later ones alone."""

    def ends(column: str) -> tuple[IntArray, IntArray]:
        known, own = test[column].to_numpy(), first[column].to_numpy()
        return np.searchsorted(known, own), np.searchsorted(known, own, side="right")

    rows = np.arange(first.height)
    groups, voices = ends("group"), ends("voice")
    own = ends("part") if crossed else (rows, rows + 1) if pairs else (voices[0], voices[0])
    made = {}
    for kind, outer, inner in (("target", voices, own), ("nontarget", groups, voices)):
        before = np.zeros_like(rows) if pairs else inner[0] - outer[0]
        low = np.stack([inner[0] - before, inner[1]], axis=1).ravel()
        high = np.stack([inner[0], outer[1]], axis=1).ravel()
        made[kind] = np.repeat(rows, 2), low, high
    return made


def _model_names(models: pl.DataFrame, ids: Mapping[str, Ids], same: str | None) -> Ids:
    """Models are called by their speaker; where one has several, with the group behind."""
    speakers = ids["speakers"].take(models["row"].to_numpy())
    if same is None or speakers.n_unique == len(speakers):
        return speakers
    groups = ids[normalise(same)].take(models["row"].to_numpy())
    return Ids.from_strings(f"{one}-{group}" for one, group in zip(speakers, groups, strict=True))
