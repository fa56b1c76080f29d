"""What an assessment reads: voices original and protected, score tables, and who enrols."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.privacy.legal import of_people
from unmask.report.cache import Work
from unmask.report.config import Config, Safeguard, ScoreSets, ScoreTable, Voices
from unmask.report.extractors import (
    Extractors,
    Say,
    Speech,
    allowed,
    embedded,
    embedding_step,
    recordings_of,
)
from unmask.report.redact import Labels, redaction_key
from unmask.report.toml import relative
from unmask.run import text_lines
from unmask.speech import Recording
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
    related safeguard; ``keyless`` ones have no key. ``learnt`` is speech of training people by
    safeguard and what it is. ``trained`` has, by safeguard and attacker, all speech through an
    extractor that was trained, ``untrained`` why there is none. ``lost`` tells of recordings that
    could not be read in some set and are left out of all, which are compared utterance by
    utterance.
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
    learnt: Mapping[str, Mapping[str, Embeddings]] = field(default_factory=dict)
    trained: Mapping[tuple[str, str], Speech] = field(default_factory=dict)
    untrained: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def speech(self, safeguard: str) -> Speech:
        """What attackers of a safeguard hold, through the extractor as it is given."""
        assert self.original is not None
        known = {"original": self.original}
        if safeguard in self.keyless:
            known["own"] = self.protected[safeguard]
        elif safeguard in self.again:
            known["own"] = self.again[safeguard]
        if safeguard in self.related:
            known["related"] = self.related[safeguard]
        return Speech(self.protected[safeguard], known, self.learnt.get(safeguard, {}))

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


def counterpart(original: Embeddings, protected: Embeddings) -> Embeddings:
    """The original of those utterances that a safeguard has."""
    assert original.utterances is not None
    assert protected.utterances is not None
    names = protected.utterances.to_series().implode()
    kept = original.utterances.to_series().is_in(names).to_numpy()
    return original if kept.all() else original.select(kept)


def read_inputs(
    config: Config,
    work: Work,
    *,
    base: Path,
    allow_code: bool = False,
    say: Say | None = None,
) -> Inputs:
    """Read all data sets of a config; ``base`` is what the names of files are relative to.

    ``allow_code`` lets a config name Python to import, a model to fetch or a safeguard's command.
    ``say`` hears how long training will take, before it starts.
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
                f"{key}: {len(failures)} recordings cannot be read and are left out"
                f" everywhere{told}"
            )
        if found.source is not None:
            source = replace(found.source, name=relative(found.source.name, base))
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
        set_label(one.name, given.set): _sets(given)
        for one in config.safeguards
        if not one.hidden
        for given in one.scores
    }
    for scores in [*tables.values(), *(s for three in sets.values() for s in three.values())]:
        sources += [replace(s, name=relative(s.name, base)) for s in scores.sources]
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
    enrols = frozenset() if original is None else enrolling(config, original, {**assessed, **runs})
    inputs = Inputs(
        original,
        assessed,
        others["again"],
        others["related"],
        frozenset(one.name for one in config.safeguards if one.keyless),
        enrols,
        tables,
        sets,
        (),
        tuple(notes),
        tuple(lost),
    )
    if original is not None:
        extractors = Extractors(config, work, allow_code=allow_code, say=say)
        inputs = with_training(inputs, extractors, voices)
    inputs = replace(inputs, sources=tuple(dict.fromkeys(sources)))
    return redacted(inputs, redaction_key(work.cache.folder)) if config.redact else inputs


def with_training(
    inputs: Inputs, extractors: Extractors, voices: Callable[[Voices, str], Embeddings]
) -> Inputs:
    """The same with what attackers make themselves: runs of the safeguards under their own keys,
    speech of training people, and all speech through extractors that were trained.

    ``voices`` reads a set. Whoever is set apart to train on is not attacked.
    """
    config = extractors.config
    given = {one.name: one for one in config.safeguards if one.name in inputs.protected}
    runnable = {
        name: one
        for name, one in given.items()
        if one.audio is not None
        and config.original.audio is not None
        and allowed(one, allow_code=extractors.allow_code)
    }
    trains = [one for one in config.attackers if one.trains]
    pairs = [(one, attacker) for one in given.values() for attacker in trains]
    why = {(a.name, b.name): extractors.why_not(a, b) for a, b in pairs}
    able = [(a, b) for a, b in pairs if why[a.name, b.name] is None]
    for pair in able:
        extractors.announce(*pair)
    encoder, work = config.original.encoder, extractors.work
    training = config.training
    speech = voices(training, "training") if training.given else None
    if speech is not None:
        _refuse_attacked(speech, inputs.original)
    again = dict(inputs.again)
    for name, one in runnable.items():
        if name not in again and not one.keyless:
            found = extractors.own_run(one)
            again[name] = embedding_step(found, encoder, f"{name}, run of the attacker", work)
    learnt: dict[str, dict[str, Embeddings]] = {}
    if speech is not None:
        made = {
            name: voices(Voices(embeddings=one.training), f"safeguards.{name}.training")
            for name, one in given.items()
            if one.training is not None
        }
        if training.audio is not None:
            for name in runnable.keys() - made.keys():
                found = extractors.own_run(runnable[name], training=True)
                what = f"{name}, training people of the attacker"
                made[name] = embedding_step(found, encoder, what, work)
        for name, one in given.items():
            learnt[name] = {"original": speech}
            for data, which in (("own", name), ("related", str(one.related))):
                if which in made:
                    learnt[name][data] = made[which]
    inputs = replace(inputs, again=again)
    if trains and not training.given and config.original.audio is not None:
        apart = extractors.apart
        for name in inputs.protected:
            sets = dict(inputs.speech(name).known)
            if name in runnable and runnable[name].again is None:
                found = extractors.own_run(runnable[name], training=True)
                what = f"{name}, training people of the attacker"
                sets["own"] = embedding_step(found, encoder, what, work)
            learnt[name] = {data: of_people(some, apart) for data, some in sets.items()}
        inputs = _without_people(inputs, extractors.apart)
    trained = {(a.name, b.name): extractors.trained(a, b) for a, b in able}
    untrained = {key: reason for key, reason in why.items() if reason is not None}
    return replace(inputs, learnt=learnt, trained=trained, untrained=untrained)


def _refuse_attacked(training: Embeddings, original: Embeddings | None) -> None:
    assert original is not None
    shared = set(training.speakers.to_series()) & set(original.speakers.to_series())
    if shared:
        raise InputError(
            f"training: expected other people than those attacked, found {len(shared)} of them"
            f" (first: {min(shared)})"
        )


def _without_people(inputs: Inputs, people: frozenset[str]) -> Inputs:
    """The same without some people, who are not attacked."""

    def rest(sets: Mapping[str, Embeddings]) -> dict[str, Embeddings]:
        return {name: of_people(one, people, inside=False) for name, one in sets.items()}

    assert inputs.original is not None
    return replace(
        inputs,
        original=of_people(inputs.original, people, inside=False),
        protected=rest(inputs.protected),
        again=rest(inputs.again),
        related=rest(inputs.related),
    )


def check_inputs(config: Config, *, allow_code: bool = False) -> list[str]:
    """Read what a config names as an assessment would, short of embedding recordings, and say what
    was found; whatever would fail fails here. ``allow_code`` is that of :func:`read_inputs`.
    """
    from unmask.speech.encoders import load_encoder

    said = []
    parts: dict[str, Voices] = {"original": config.original} if config.original.given else {}
    parts |= {f"safeguards.{one.name}": one for one in config.safeguards if one.given}
    for key, part in parts.items():
        if part.audio is not None:
            files = _recordings(part, key, allow_code=allow_code)
            load_encoder(part.encoder)
            people = len({one.speaker for one in files})
            said.append(f"{key}: {len(files):,} recordings of {people:,} speakers")
        else:
            assert part.embeddings is not None
            found = _in_sessions(read_embeddings(part.embeddings, speakers=part.speakers), part)
            for name in config.legal.attributes:
                if "legal" in (config.frameworks or ("legal",)) and name not in found.columns:
                    known = ", ".join(found.columns) or "none"
                    raise InputError(f"legal.attributes: {key}: no column {name}, found {known}")
            said.append(f"{key}: {len(found):,} vectors of {found.n_speakers:,} speakers")
    tables = {one.name: _table(one) for one in config.scores}
    sets = {
        set_label(one.name, given.set): _sets(given)
        for one in config.safeguards
        for given in one.scores
    }
    for name, scores in {**tables, **set_tables(sets)}.items():
        counts = scores.counts
        said.append(f"{name}: {counts['target']:,} target and {counts['nontarget']:,} nontarget")
    return said


def _recordings(part: Voices, key: str, *, allow_code: bool) -> Sequence[Recording]:
    """The recordings of a folder, once it is known that its encoder may run."""
    from unmask.speech.encoders import runs_code

    if runs_code(part.encoder) and not allow_code:
        raise InputError(
            f"{key}: expected a built-in encoder or an ONNX file, found {part.encoder}, which names"
            " code to run: --allow-code lets a config do so"
        )
    return recordings_of(part)


def _shown(one: Safeguard, every: Mapping[str, Embeddings]) -> bool:
    return one.name in every and not one.hidden


def _voices(
    part: Voices, key: str, work: Work, *, allow_code: bool
) -> tuple[Embeddings, dict[str, str]]:
    """Embeddings of a part, and what is wrong with utterances that could not be read."""
    failures: dict[str, str] = {}
    if part.audio is not None:
        files = _recordings(part, key, allow_code=allow_code)
        found, failures = embedded(files, part.encoder, key, work, source=str(part.audio))
    else:
        assert part.embeddings is not None
        found = read_embeddings(part.embeddings, speakers=part.speakers)
    return _in_sessions(found, part), failures


def _in_sessions(found: Embeddings, part: Voices) -> Embeddings:
    """Embeddings in the sessions that another file names, where there is one."""
    if part.sessions is None:
        return found
    return _with(found, sessions=_sessions(part.sessions, found))


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
    """The lists of trials that there are, each with its one system named after it: OO, OP, PP."""
    key = read_key(given.key) if given.key is not None else None
    files = {name: getattr(given, name) for name in ("oo", "op", "pp")}
    sets = {}
    for name, path in files.items():
        if path is not None:
            systems = [given.system] if given.system else None
            scores = read_scores(path, key=key, speakers=given.speakers, systems=systems)
            scores.check_classes()
            sets[name] = replace(scores, systems={name.upper(): scores.scores(given.system)})
    return sets


def set_label(safeguard: str, name: str | None) -> str:
    """What a list of trials of a safeguard is called."""
    return safeguard if name is None else f"{safeguard}, {name}"


def set_tables(sets: Mapping[str, Mapping[str, Scores]]) -> dict[str, Scores]:
    """A table of systems OO, OP, PP for each safeguard and set; apart where trials differ."""
    tables: dict[str, Scores] = {}
    for label, lists in sets.items():
        try:
            tables[label] = Scores.merged(*lists.values())
        except InputError:
            tables |= {f"{label} {part.upper()}": one for part, one in lists.items()}
    return tables


def _sessions(path: Path, embeddings: Embeddings) -> list[str]:
    assert embeddings.utterances is not None
    known = {}
    for number, line in enumerate(text_lines(path), start=1):
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


def enrolling(
    config: Config, original: Embeddings, others: Mapping[str, Embeddings]
) -> frozenset[str]:
    """Names of the utterances that enrol: those listed, or a part of each speaker's, by seed.

    A speaker's utterances are ordered by a hash of seed and name, so the choice of one speaker
    depends on nobody else; where some of ``others`` have fewer utterances, the same part of these
    enrols as of the rest. With one utterance a speaker can only be attacked.
    """
    assert original.utterances is not None
    if config.split.utterances is not None:
        lines = text_lines(config.split.utterances)
        return frozenset(line.strip() for line in lines if line.strip())
    share = config.split.enrol
    names = original.utterances.to_series().to_list()
    order = [hashlib.sha256(f"{config.seed}\0{name}".encode()).digest() for name in names]
    held = np.zeros(len(names), dtype=np.int64)
    for one in others.values():
        assert one.utterances is not None
        held += (
            original.utterances.to_series().is_in(one.utterances.to_series().implode()).to_numpy()
        )
    alike = ("speaker", "held")
    rows = pl.DataFrame(
        {"name": names, "order": order, "speaker": original.speakers.codes, "held": held}
    ).sort(*alike, "order")
    within = (pl.int_range(pl.len()) + 0.5) / pl.len()
    rows = rows.with_columns(at=within.over(*alike)).sort("speaker", "at", "order")
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


def _named(sources: tuple[Source, ...], base: Path) -> tuple[Source, ...]:
    return tuple(replace(source, name=relative(source.name, base)) for source in sources)
