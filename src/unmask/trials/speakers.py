"""Who speaks: from an ``utt2spk`` file, a mapping, or a pattern on the utterance's identifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.formats import Source
from unmask.trials.ids import Ids, lookup
from unmask.trials.readers.files import Input
from unmask.trials.readers.text import read_columns

PATTERN = "pattern:"
_LAYOUTS = {"utt2spk": "utterance speaker", "spk2gender": "speaker gender"}
Speakers = str | Path | Mapping[str, str]


@dataclass(frozen=True)
class SpeakerRule:
    """Gives utterances their speakers, by table (utterance, speaker) or by pattern."""

    name: str
    table: pl.DataFrame | None = None
    pattern: str | None = None
    source: Source | None = None

    def of(self, names: pl.Series) -> pl.Series:
        """Speaker of each name, null where the rule gives none."""
        if self.pattern is not None:
            try:
                return names.str.extract(self.pattern, 1)
            except pl.exceptions.PolarsError as error:
                actual = f"{self.pattern!r} ({error})"
                raise InputError("speakers", "a regular expression", actual) from error
        assert self.table is not None
        codes = lookup(names, self.table["utterance"])
        speaker = self.table["speaker"].gather(np.maximum(codes, 0)) if self.table.height else names
        return pl.select(pl.when(pl.Series(codes) >= 0).then(speaker)).to_series()

    def known(self, test_speakers: pl.Series) -> pl.Series:
        """Names that may stand for a speaker where an identifier of an utterance is expected."""
        return test_speakers if self.table is None else self.table["speaker"].unique()


def speaker_rule(speakers: Speakers) -> SpeakerRule:
    """Make the rule of a ``speakers`` option."""
    if isinstance(speakers, Mapping):
        sides = {"utterance": list(speakers), "speaker": list(speakers.values())}
        table = {side: Ids.from_strings(values).to_series() for side, values in sides.items()}
        return SpeakerRule("the mapping", pl.DataFrame(table))
    text = str(speakers)
    if text.startswith(PATTERN):
        pattern = text.removeprefix(PATTERN)
        rule = SpeakerRule(f"the pattern {pattern}", pattern=pattern)
        rule.of(pl.Series([""]))
        groups = len(pl.Series([""]).str.extract_groups(pattern).struct.fields)
        if groups != 1:
            raise InputError("speakers", "a pattern with one group", f"{groups} in {pattern!r}")
        return rule
    return read_pairs(text)


def read_pairs(path: str | Path, *, kind: str = "utt2spk") -> SpeakerRule:
    """Read a Kaldi table of two columns (``utt2spk``, ``spk2gender``)."""
    layout = _LAYOUTS[kind]
    with Input(path) as source:
        if source.container != "text":
            raise InputError(source.name, f"a text file ({layout})", source.container)
        (utterance, speaker), line = read_columns(source, ["utterance", "speaker"], layout=layout)
        if utterance.n_unique < len(utterance):
            series = utterance.to_series()
            row = int(np.flatnonzero(~series.is_first_distinct().to_numpy())[0])
            raise InputError(line(row), "each identifier once", f"{utterance.decode(row)} again")
        frame = pl.DataFrame({"utterance": utterance.to_series(), "speaker": speaker.to_series()})
        detected, count = f"{kind}: {layout}, {len(utterance)} lines", speaker.n_unique
        about = Source(source.name, source.sha256, kind, speakers=count, detected=detected)
    return SpeakerRule(source.name, frame, source=about)


def read_speakers(path: str | Path) -> dict[str, str]:
    """Speaker of each utterance in an ``utt2spk`` file."""
    table = read_pairs(path).table
    assert table is not None
    return dict(table.iter_rows())


def assign(column: Ids, rule: SpeakerRule, *, known: pl.Series | None = None) -> Ids:
    """Speakers of a column of identifiers.

    An identifier among the ``known`` speakers that the rule does not cover is a speaker itself
    (Kaldi enrolment models are often named so).
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
