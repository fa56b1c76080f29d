"""Who speaks: from ``utt2spk`` or ``spk2utt`` files, a mapping, or the utterance's identifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.formats import Source
from unmask.trials.ids import Ids, lookup
from unmask.trials.readers.files import Input
from unmask.trials.readers.text import read_columns

PATTERN, PATH = "pattern:", "path:"
VOXCELEB = r"^(id\d{5})/[^/]+/[^/]+$"
_LAYOUTS = {"utt2spk": "utterance speaker", "spk2gender": "speaker gender"}
Speakers = str | Path | Mapping[str, str] | Sequence[str | Path]


@dataclass(frozen=True)
class SpeakerRule:
    """Gives utterances their speakers, by table (utterance, speaker) or by pattern."""

    name: str
    table: pl.DataFrame | None = None
    pattern: str | None = None
    sources: tuple[Source, ...] = ()

    @property
    def said(self) -> str:
        """What is said of speakers that no file names."""
        return "" if self.pattern is None else f"speakers by {self.name}"

    def of(self, names: pl.Series) -> pl.Series:
        """Speaker of each name, null where the rule gives none."""
        if self.pattern is not None:
            try:
                return names.str.extract(self.pattern, 1)
            except pl.exceptions.PolarsError as error:
                reason = " ".join(str(error).partition("This error occurred")[0].split())
                reason = reason.rpartition("error: ")[2] or "not one that can be read"
                actual = f"{self.pattern!r} ({reason})"
                raise InputError("speakers", "a regular expression", actual) from error
        assert self.table is not None
        codes = lookup(names, self.table["utterance"])
        speaker = self.table["speaker"].gather(np.maximum(codes, 0)) if self.table.height else names
        return pl.select(pl.when(pl.Series(codes) >= 0).then(speaker)).to_series()

    def known(self, test_speakers: pl.Series) -> pl.Series:
        """Names that may stand for a speaker where an identifier of an utterance is expected."""
        return test_speakers if self.table is None else self.table["speaker"].unique()


def voxceleb_rule(*names: pl.Series) -> SpeakerRule | None:
    """The first part of the path, where all names are like those of VoxCeleb."""
    if all(len(some) and some.str.contains(VOXCELEB).all() for some in names):
        return SpeakerRule("path:1 (names like id10270/…/…)", pattern=VOXCELEB)
    return None


def side_rules(speakers: Speakers) -> tuple[SpeakerRule, SpeakerRule]:
    """The rules of a ``speakers`` option for both sides, one unless ``enrol=F`` and ``test=G``."""
    words = speakers if isinstance(speakers, Sequence) and not isinstance(speakers, str) else []
    sides: dict[str, list[str | Path]] = {"enrol": [], "test": [], "": []}
    for word in words:
        side, _, file = str(word).partition("=")
        if file and side in ("enrol", "test"):
            sides[side].append(file)
        else:
            sides[""].append(word)
    named, alone = (sides["enrol"], sides["test"]), sides[""]
    if any(named):
        if alone or not all(named):
            wanted = "enrol=FILE and test=FILE, or files without a side"
            raise InputError("speakers", wanted, ", ".join(map(str, words)))
        return _rule(named[0]), _rule(named[1])
    rule = _rule(alone or speakers)
    return rule, rule


def speaker_rule(speakers: Speakers) -> SpeakerRule:
    """Make the rule of a ``speakers`` option for utterances that have no side."""
    enrol, test = side_rules(speakers)
    if enrol is not test:
        raise InputError("speakers", "files without a side for embeddings", "enrol= and test=")
    return enrol


def _rule(speakers: Speakers) -> SpeakerRule:
    if isinstance(speakers, Mapping):
        sides = {"utterance": list(speakers), "speaker": list(speakers.values())}
        table = {side: Ids.from_strings(values).to_series() for side, values in sides.items()}
        return SpeakerRule("the mapping", pl.DataFrame(table))
    if not isinstance(speakers, str | Path):
        if not speakers:
            raise InputError("speakers", "a file or a rule", "none")
        return _rule(speakers[0]) if len(speakers) == 1 else _joined(map(read_pairs, speakers))
    text = str(speakers)
    if text.startswith(PATH):
        part = text.removeprefix(PATH)
        if not part.isdigit() or part == "0":
            raise InputError("speakers", "path:N, part N of the path from 1", repr(text))
        return SpeakerRule(text, pattern=rf"^/?(?:[^/]+/){{{int(part) - 1}}}([^/]+)/")
    if text.startswith(PATTERN):
        pattern = text.removeprefix(PATTERN)
        rule = SpeakerRule(f"the pattern {pattern}", pattern=pattern)
        rule.of(pl.Series([""]))
        groups = len(pl.Series([""]).str.extract_groups(pattern).struct.fields)
        if groups != 1:
            raise InputError("speakers", "a pattern with one group", f"{groups} in {pattern!r}")
        return rule
    return read_pairs(text)


def _joined(rules: Iterable[SpeakerRule]) -> SpeakerRule:
    """Several files as one; no utterance may have two speakers."""
    parts = list(rules)
    name = " and ".join(rule.name for rule in parts)
    table = pl.concat([rule.table for rule in parts if rule.table is not None]).unique(
        maintain_order=True
    )
    twice = table.filter(table["utterance"].is_duplicated())
    if twice.height:
        found = f"{twice['speaker'][0]} and another; enrol=FILE and test=FILE tell sides apart"
        raise InputError(name, f"one speaker of {twice['utterance'][0]}", found)
    return SpeakerRule(name, table, sources=tuple(s for rule in parts for s in rule.sources))


def read_pairs(path: str | Path, *, kind: str = "utt2spk") -> SpeakerRule:
    """Read a Kaldi table of two columns, or ``spk2utt``, told by name or by a third field in every
    line.
    """
    layout = _LAYOUTS[kind]
    with Input(path) as source:
        if source.container != "text":
            raise InputError(source.name, f"a text file ({layout})", source.container)
        if kind == "utt2spk" and _is_spk2utt(source):
            kind, layout = "spk2utt", "speaker utterance utterance …"
            frame = _spk2utt(source)
        else:
            ids, line = read_columns(source, ["utterance", "speaker"], layout=layout)
            names = [column.to_series() for column in ids]
            if ids[0].n_unique < len(ids[0]):
                row = int(np.flatnonzero(~names[0].is_first_distinct().to_numpy())[0])
                raise InputError(line(row), "each identifier once", f"{names[0][row]} again")
            frame = pl.DataFrame({"utterance": names[0], "speaker": names[1]})
        detected = (
            f"{kind}: {layout}, {frame.height} {'lines' if kind in _LAYOUTS else 'utterances'}"
        )
        count = frame["speaker"].n_unique()
        about = Source(source.name, source.sha256, kind, speakers=count, detected=detected)
    return SpeakerRule(source.name, frame, sources=(about,))


def _is_spk2utt(source: Input) -> bool:
    """Whether the name says so, or lines have more than two words, of which none may have two: it
    could be one of utterance and speaker.
    """
    if Path(source.name).name.split(".")[-1] == "spk2utt":
        return True
    first = source.head.split(b"\n", 1)[0].split()
    if len(first) <= 2:
        return False
    source.load()
    for number, line in enumerate(b"".join(source.blocks()).splitlines(), 1):
        if len(line.split()) == 2:
            wanted = "one layout (a file of speakers and their utterances is named spk2utt)"
            actual = f"{len(first)} words in line 1 and 2 here"
            raise InputError(f"{source.name}, line {number}", wanted, actual)
    return True


def _spk2utt(source: Input) -> pl.DataFrame:
    """Utterance and speaker of each word behind the first of a line."""
    owner: dict[str, str] = {}
    try:
        lines = b"".join(source.blocks()).decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise InputError(source.name, "UTF-8 text", "other bytes") from None
    for number, line in enumerate(lines, 1):
        speaker, *utterances = line.split() or [""]
        place = f"{source.name}, line {number}"
        if not utterances:
            raise InputError(place, "utterances behind the speaker", "none")
        for utterance in utterances:
            if owner.setdefault(utterance, speaker) != speaker:
                found = f"{owner[utterance]} and {speaker}"
                raise InputError(place, f"one speaker of {utterance}", found)
    return pl.DataFrame({"utterance": list(owner), "speaker": list(owner.values())})


def read_speakers(path: str | Path) -> dict[str, str]:
    """Speaker of each utterance in an ``utt2spk`` or ``spk2utt`` file."""
    table = read_pairs(path).table
    assert table is not None
    return dict(table.iter_rows())


def assign(column: Ids, rule: SpeakerRule, *, known: pl.Series | None = None) -> Ids:
    """Speakers of a column; a name among ``known`` speakers that the rule does not cover is a
    speaker.
    """
    used = column.used
    table = Ids.from_strings(speakers_of(column.names.gather(used), rule, known=known))
    codes = np.zeros(len(column.names), np.int32)
    codes[used] = table.codes
    return Ids(codes[column.codes], table.names)


def speakers_of(
    names: pl.Series, rule: SpeakerRule, *, known: pl.Series | None = None
) -> pl.Series:
    """Speaker of each of the identifiers that occur; see :func:`assign`."""
    speaker = rule.of(names)
    if known is not None and speaker.null_count():
        itself = speaker.is_null() & names.is_in(known.implode())
        speaker = pl.select(pl.when(itself).then(names).otherwise(speaker)).to_series()
    unknown = names.filter(speaker.fill_null("").str.strip_chars() == "")
    if len(unknown):
        actual = f"none for {len(unknown)} of {len(names)} (first: {unknown[0]})"
        raise InputError(rule.name, "a speaker for every identifier", actual)
    return speaker


def with_rules(sources: Sequence[Source], *rules: SpeakerRule) -> tuple[Source, ...]:
    """The sources of trials with what is said of their speakers."""
    said = [text for text in dict.fromkeys(rule.said for rule in rules) if text]
    first = [replace(one, detected="; ".join([one.detected, *said])) for one in sources[:1]]
    return tuple(dict.fromkeys([*first, *sources[1:], *(s for r in rules for s in r.sources)]))
