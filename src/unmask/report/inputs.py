"""What an assessment reads: voices original and protected, score tables, and who enrols."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.report.cache import Step, Work
from unmask.report.config import Config, Safeguard, ScoreSets, ScoreTable, Voices
from unmask.report.redact import Labels, redaction_key
from unmask.trials import (
    Embeddings,
    Scores,
    Source,
    read_embeddings,
    read_key,
    read_scores,
)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read.

    By safeguard, ``again`` holds another run under other keys, ``related`` speech protected by a
    related safeguard; ``keyless`` ones have no key. ``lost`` tells of recordings that could not be
    read in some set and are left out of all, which are compared utterance by utterance.
    """

    original: Embeddings | None
    protected: Mapping[str, Embeddings]
    again: Mapping[str, Embeddings]
    related: Mapping[str, Embeddings]
    keyless: frozenset[str]
    enrols: frozenset[str]
    tables: Mapping[str, Scores]
    sets: Mapping[str, Mapping[str, Scores]]
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def safeguards(self) -> tuple[str, ...]:
        """Names of the safeguards that are assessed, in order."""
        return tuple(dict.fromkeys([*self.protected, *self.sets]))

    def enrolment(self, embeddings: Embeddings) -> Embeddings:
        """The utterances that enrol."""
        return embeddings.select(self._mask(embeddings, enrols=True))

    def attacked(self, embeddings: Embeddings) -> Embeddings:
        """The utterances that are attacked."""
        return embeddings.select(self._mask(embeddings, enrols=False))

    def _mask(self, embeddings: Embeddings, *, enrols: bool) -> BoolArray:
        assert embeddings.utterances is not None
        chosen = embeddings.utterances.names.is_in(list(self.enrols)).to_numpy()
        mask = chosen[embeddings.utterances.codes] == enrols
        if not mask.any():
            what = "enrol" if enrols else "are attacked"
            name = embeddings.source.name if embeddings.source else "embeddings"
            raise InputError(f"{name}: expected utterances that {what}, found none: see split")
        return np.asarray(mask)


def read_inputs(config: Config, work: Work, *, base: Path, allow_code: bool = False) -> Inputs:
    """Read all data sets of a config; ``base`` is what the names of files are relative to.

    ``allow_code`` lets a config name Python to import, or a model to fetch, as its encoder.
    """
    sources: list[Source] = []
    notes: list[str] = []
    unread: dict[str, str] = {}
    lost: list[str] = []

    def voices(part: Voices, key: str) -> Embeddings:
        found, failures = _voices(part, key, work, allow_code=allow_code)
        if failures:
            unread.update(failures)
            told = "" if config.redact else f": {'; '.join(failures.values())}"
            lost.append(
                f"{key}: {len(failures)} recordings cannot be read, left out everywhere{told}"
            )
        if found.source is not None:
            source = replace(found.source, name=_relative(found.source.name, base))
            sources.append(source)
            found = _with(found, source=source)
        if found.utterances is None:
            notes.append(f"{key}: utterances have no names and are matched by their order")
            found = _with(found, utterances=_numbered(found))
        return found

    original = voices(config.original, "original") if config.original.given else None
    every = {
        one.name: voices(one, f"safeguards.{one.name}") for one in config.safeguards if one.given
    }
    others: dict[str, dict[str, Embeddings]] = {"again": {}, "related": {}}
    files: dict[str, Embeddings] = {}
    for one in config.safeguards:
        for kind, found in others.items():
            given = getattr(one, kind)
            if given is None or not one.given:
                continue
            if given not in every and given not in files:
                part = Voices(embeddings=Path(given))
                files[given] = voices(part, f"safeguards.{one.name}.{kind}")
            found[one.name] = every[given] if given in every else files[given]
    if unread and original is not None:
        original = _without(original, unread)
        every = {name: _without(found, unread) for name, found in every.items()}
        others = {
            kind: {name: _without(one, unread) for name, one in found.items()}
            for kind, found in others.items()
        }
    tables = {one.name: _table(one) for one in config.scores}
    sets = {
        one.name: _sets(one.scores)
        for one in config.safeguards
        if one.scores is not None and not one.hidden
    }
    for scores in [*tables.values(), *(s for three in sets.values() for s in three.values())]:
        sources += [replace(s, name=_relative(s.name, base)) for s in scores.sources]
    tables = {name: replace(s, sources=_named(s.sources, base)) for name, s in tables.items()}
    assessed = {one.name: every[one.name] for one in config.safeguards if _shown(one, every)}
    runs = {f"{name}.{kind}": v for kind, found in others.items() for name, v in found.items()}
    for name, embeddings in {**assessed, **runs}.items():
        assert original is not None
        if embeddings.dimension != original.dimension:
            raise InputError(
                f"safeguards.{name}: expected vectors of {original.dimension} dimensions like the"
                f" original, found {embeddings.dimension}"
            )
    enrols = frozenset() if original is None else _enrolling(config, original)
    inputs = Inputs(
        original,
        assessed,
        others["again"],
        others["related"],
        frozenset(one.name for one in config.safeguards if one.keyless),
        enrols,
        tables,
        sets,
        tuple(dict.fromkeys(sources)),
        tuple(notes),
        tuple(lost),
    )
    return redacted(inputs, redaction_key(work.cache.folder)) if config.redact else inputs


def _shown(one: Safeguard, every: Mapping[str, Embeddings]) -> bool:
    return one.name in every and not one.hidden


def _voices(
    part: Voices, key: str, work: Work, *, allow_code: bool
) -> tuple[Embeddings, dict[str, str]]:
    """Embeddings of a part, and what is wrong with utterances that could not be read."""
    failures: dict[str, str] = {}
    if part.audio is not None:
        found, failures = _embedded(part, key, work, allow_code=allow_code)
    else:
        assert part.embeddings is not None
        found = read_embeddings(part.embeddings, speakers=part.speakers)
    if part.sessions is not None:
        found = _with(found, sessions=_sessions(part.sessions, found))
    return found, failures


def _embedded(
    part: Voices, key: str, work: Work, *, allow_code: bool
) -> tuple[Embeddings, dict[str, str]]:
    from unmask.speech import embed, recordings
    from unmask.speech.encoders import fingerprint_of, runs_code

    if runs_code(part.encoder) and not allow_code:
        raise InputError(
            f"{key}: expected a built-in encoder or an ONNX file, found {part.encoder}, which names"
            " code to run: --allow-code lets a config do so"
        )

    assert part.audio is not None
    files = recordings(part.audio, speakers=part.speakers or "folder")
    total = hashlib.sha256()
    for one in files:
        with suppress(OSError):
            total.update(one.path.read_bytes())

    def compute() -> tuple[Embeddings, dict[str, str]]:
        result = embed(files, part.encoder)
        if result.embeddings is None:
            raise InputError(f"{result.failures[0]} ({len(result.failures)} recordings failed)")
        source = Source(str(part.audio), total.hexdigest(), "audio")
        assert result.embeddings.utterances is not None
        read = set(result.embeddings.utterances.to_series())
        unread = [one.utterance for one in files if one.utterance not in read]
        failures = dict(zip(unread, result.failures, strict=True))
        return _with(result.embeddings, source=source), failures

    names = [f"{one.utterance} {one.speaker}" for one in files]
    step = Step(
        f"embedding {key}",
        [total.hexdigest(), *names],
        {"encoder": part.encoder, "depends on": fingerprint_of(part.encoder)},
        compute,
        weight=0.1 * len(files),
    )
    work.expect([step])
    made: tuple[Embeddings, dict[str, str]] = work.run(step)
    return made


def _table(one: ScoreTable) -> Scores:
    key = read_key(one.key) if one.key is not None else None
    found = [
        read_scores(
            path, key=key, speakers=one.speakers, systems=list(one.systems) if one.systems else None
        )
        for path in one.files
    ]
    merged = found[0] if len(found) == 1 else Scores.merged(*found)
    merged.check_classes()
    return merged


def _sets(given: ScoreSets) -> dict[str, Scores]:
    key = read_key(given.key) if given.key is not None else None
    sets = {}
    for name in ("oo", "op", "pp"):
        systems = [given.system] if given.system else None
        scores = read_scores(
            getattr(given, name), key=key, speakers=given.speakers, systems=systems
        )
        scores.check_classes()
        sets[name] = scores
    return sets


def _sessions(path: Path, embeddings: Embeddings) -> list[str]:
    assert embeddings.utterances is not None
    known = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.split()
        if len(parts) != 2:
            raise InputError(f"{path}, line {number}: expected utterance and session")
        known[parts[0]] = parts[1]
    found = []
    for name in embeddings.utterances.to_series():
        if name not in known:
            raise InputError(f"{path}: expected a session of every utterance, found none of {name}")
        found.append(known[name])
    return found


def _enrolling(config: Config, original: Embeddings) -> frozenset[str]:
    """Names of the utterances that enrol: those listed, or a part of each speaker's, by seed.

    A speaker's utterances are ordered by a hash of seed and name, so the choice of one speaker
    depends on nobody else. With one utterance a speaker can only be attacked.
    """
    assert original.utterances is not None
    if config.split.utterances is not None:
        text = config.split.utterances.read_text(encoding="utf-8")
        return frozenset(line.strip() for line in text.splitlines() if line.strip())
    share = config.split.enrol
    names = original.utterances.to_series().to_list()
    order = [hashlib.sha256(f"{config.seed}\0{name}".encode()).digest() for name in names]
    rows = pl.DataFrame({"name": names, "order": order, "speaker": original.speakers.codes}).sort(
        "speaker", "order"
    )
    size = pl.len().over("speaker")
    wanted = (
        (pl.lit(share) * size).round().cast(pl.Int64).clip(1)
        if isinstance(share, float) and share < 1
        else pl.lit(int(share))
    )
    place = pl.int_range(pl.len()).over("speaker")
    chosen = rows.filter((place < wanted) & (place < size - 1))["name"]
    if not len(chosen):
        raise InputError("split: expected speakers with two utterances or more, found none")
    return frozenset(chosen)


def _numbered(embeddings: Embeddings) -> list[str]:
    """A name for each utterance from its speaker and its place among the speaker's utterances."""
    table = pl.DataFrame({"speaker": embeddings.speakers.to_series()})
    place = table.select(pl.int_range(pl.len()).over("speaker") + 1).to_series()
    return [f"{name}-{n:04d}" for name, n in zip(table["speaker"], place, strict=True)]


def redacted(inputs: Inputs, key: bytes) -> Inputs:
    """The same with neutral labels for speakers, utterances and files, one table for all."""
    labels = Labels.of(inputs, inputs.sources, key)
    return replace(
        labels.redacted(inputs),
        enrols=frozenset(labels.utterances.get(name, name) for name in inputs.enrols),
        sources=tuple(map(labels.source, inputs.sources)),
    )


def _without(embeddings: Embeddings, unread: Mapping[str, str]) -> Embeddings:
    """The same without utterances that could not be read in some set."""
    assert embeddings.utterances is not None
    kept = ~embeddings.utterances.to_series().is_in(list(unread)).to_numpy()
    return embeddings if kept.all() else embeddings.select(kept)


def _with(embeddings: Embeddings, **changes: object) -> Embeddings:
    names = ("vectors", "speakers", "utterances", "sessions", "columns", "source")
    values = {name: getattr(embeddings, name) for name in names} | changes
    return Embeddings(**values)


def _relative(name: str, base: Path) -> str:
    return Path(os.path.relpath(name, base)).as_posix() if os.path.isabs(name) else name


def _named(sources: tuple[Source, ...], base: Path) -> tuple[Source, ...]:
    return tuple(replace(source, name=_relative(source.name, base)) for source in sources)
