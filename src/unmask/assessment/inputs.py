"""What an assessment reads: voices original and protected, score tables, and who enrols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unmask.assessment.cache import Work
from unmask.assessment.challenge import Stated, read_results, stated_eer
from unmask.assessment.config import Config, ScoreSets, ScoreTable, VoicesConfig, WordsConfig
from unmask.assessment.redact import Labels, mapped, redaction_key
from unmask.assessment.runs import (
    SESSIONS,
    Runs,
    Speech,
    check_names,
    embedded,
    recordings_of,
    refuse_attacked,
    refuse_copies,
    sessions_of,
    word_pairs,
)
from unmask.assessment.sound import (
    Sounds,
    encoder_notices,
    repeated_notices,
    run_notices,
    sound_notices,
)
from unmask.assessment.splits import enrolling, in_order_of, only, utterances
from unmask.assessment.toml import names_written, paths_of, relative
from unmask.assessment.training import Extractors, Say
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy import Words, name_notices, refuse_two_values
from unmask.privacy.legal import Attacker, of_people, within_release
from unmask.run import content_digest
from unmask.trials import (
    Embeddings,
    Ids,
    Scores,
    Source,
    read_embeddings,
    read_key,
    read_scores,
    refuse_encoders,
)
from unmask.utility import read_words

if TYPE_CHECKING:
    from unmask.speech import Recording

PARTS, GENDER = ("oo", "op", "pp"), "gender"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read.

    ``speech`` is what attackers of each safeguard hold, through the extractor as it is given;
    ``keyless`` safeguards have no key, ``renewed`` ones draw a new voice for every utterance.
    ``enrols`` are the utterances that enrol, ``listed`` where a file names them. ``released`` links
    recordings of each release to each other, also of people who are not attacked otherwise.
    ``sets`` are lists of scores (oo, op, pp) by the label of a safeguard's list, ``stated`` what
    result files say of a safeguard of which there are such.
    ``trained`` has, by safeguard and attacker, all speech through an extractor that was trained,
    ``untrained`` why there is none; ``words`` is what is said, ``labels`` stand for names where the
    report is redacted. Recordings that could not be read in some set (``not-read`` of the
    ``notices``) are left out of all, which are compared utterance by utterance.
    """

    original: Embeddings | None
    speech: Mapping[str, Speech]
    keyless: frozenset[str]
    enrols: frozenset[str]
    tables: Mapping[str, Scores]
    sets: Mapping[str, Mapping[str, Scores]]
    sources: tuple[Source, ...] = ()
    notices: tuple[Notice, ...] = ()
    renewed: frozenset[str] = frozenset()
    listed: bool = False
    released: Mapping[str, Attacker] = field(default_factory=dict)
    stated: Mapping[str, tuple[Stated, ...]] = field(default_factory=dict)
    trained: Mapping[tuple[str, str], Speech] = field(default_factory=dict)
    untrained: Mapping[tuple[str, str], str] = field(default_factory=dict)
    words: Words | None = None
    labels: Labels | None = None

    @property
    def protected(self) -> dict[str, Embeddings]:
        """What is attacked, by safeguard."""
        return {name: speech.protected for name, speech in self.speech.items()}

    @property
    def again(self) -> dict[str, Embeddings]:
        """Runs of the attacker's own, by safeguard; those without a key have none."""
        own = {name: speech.known.get("own") for name, speech in self.speech.items()}
        same = self.keyless | self.renewed
        return {n: voices for n, voices in own.items() if voices is not None and n not in same}

    @property
    def safeguards(self) -> tuple[str, ...]:
        """Names of the safeguards that are assessed, in order."""
        return tuple(dict.fromkeys([*self.protected, *self.stated]))

    @property
    def lists(self) -> dict[str, Scores]:
        """The lists of scores of all safeguards by name."""
        sets = self.sets.items()
        return {list_name(n, part): table for n, own in sets for part, table in own.items()}

    def enrolment(self, embeddings: Embeddings) -> Embeddings:
        """The utterances that enrol."""
        return only(embeddings, self.enrols, what="enrol")

    def attacked(self, embeddings: Embeddings) -> Embeddings:
        """The utterances that are attacked."""
        return only(embeddings, self.enrols, what="are attacked", inside=False)

    def _people(self, embeddings: Embeddings, *, enrolled: bool) -> set[str]:
        """Whose utterances enrol, or are attacked."""
        inside = utterances(embeddings).is_in(list(self.enrols)) == enrolled
        return set(embeddings.speakers.to_series().filter(inside))

    def attackable(self, safeguard: str, speech: Speech) -> Speech:
        """The same ``speech`` with nobody protected who is not enrolled as well in all sets that
        attackers enrol: candidates may be more, those attacked are the same to every attacker.
        """
        present = self._people(speech.protected, enrolled=False)
        for data in speech.known.keys() & {"original", "own"}:
            present &= self._people(speech.known[data], enrolled=True)
        if not present:
            wanted = "somebody with speech to enrol and protected speech to attack"
            raise InputError(f"safeguards.{safeguard}", wanted, "nobody: see split")
        protected = of_people(self._versions(speech.protected), present)
        shares = {share: self.attackable(safeguard, one) for share, one in speech.shares.items()}
        return replace(speech, protected=protected, shares=shares)

    def _versions(self, protected: Embeddings) -> Embeddings:
        """The recordings that have an original of their name; all where none has one."""
        assert self.original is not None
        kept = utterances(protected).is_in(utterances(self.original).implode()).to_numpy()
        return protected.select(kept) if kept.any() and not kept.all() else protected

    def complete(self, *, name_them: bool) -> Inputs:
        """Only those attacked who are in all sets, and a notice on the others; releases whole."""
        released: dict[str, Attacker] = {}
        lone = []
        for name, spoken in self.speech.items():
            try:
                released[name] = self._within(spoken.protected)
            except InputError:
                sentence = "nobody has two protected recordings to link to each other"
                lone.append(Notice("absent", name, sentence))
        speech = {name: self.attackable(name, spoken) for name, spoken in self.speech.items()}
        trained = {key: self.attackable(key[0], spoken) for key, spoken in self.trained.items()}
        absent = [
            notice
            for name, spoken in speech.items()
            for notice in self._absent(name, spoken.protected, name_them=name_them)
        ]
        notices = (*self.notices, *absent, *lone)
        return replace(self, speech=speech, trained=trained, released=released, notices=notices)

    def _within(self, release: Embeddings) -> Attacker:
        """The attack within a release: by the list of those that enrol, where there is one that
        leaves somebody on both sides; else in rounds, by content.
        """
        enrols = utterances(release).is_in(list(self.enrols)).to_numpy()
        speakers = release.speakers.codes
        if not self.listed or not np.intersect1d(speakers[enrols], speakers[~enrols]).size:
            return within_release(release)
        enrol = release.select(enrols)
        return Attacker(enrol, release.select(~enrols), train=enrol, release=True)

    def _absent(self, name: str, attacked: Embeddings, *, name_them: bool) -> Iterable[Notice]:
        """Who, and which recordings, have no protected version, no original or no enrolment."""
        original, given = self.original, self.speech[name].protected
        assert original is not None
        everyone, protected = (set(x.speakers.present) for x in (original, given))
        recordings = utterances(original)
        bare = recordings.filter(~recordings.is_in(utterances(given).implode()))
        if len(bare) == len(recordings):
            sentence = "no protected recording has the name of an original one: which is a version"
            yield Notice("not-matched", name, f"{sentence} of which is not known")
            bare = bare.clear()
        if len(bare):
            lost, first = len(everyone - protected), f" (first: {bare[0]})" if name_them else ""
            whose = f"{lost:,} of {len(everyone):,} people, " if lost else ""
            sentence = f"{len(bare):,} of {len(recordings):,} recordings{',' if lost else ''} have"
            sentence += f" no protected version and were not attacked{first}"
            yield Notice("absent", name, whose + sentence)
        if extra := len(given) - len(self._versions(given)):
            sentence = f"{extra:,} of {len(given):,} protected recordings have no original and were"
            yield Notice("absent", name, f"{sentence} not attacked")
        for people, why in (
            (protected - everyone, "without original speech, not attacked"),
            (
                (protected & everyone) - set(attacked.speakers.present),
                "without speech to enrol, to attack, or in the attacker's own run, not attacked",
            ),
        ):
            if people:
                first = f" (first: {min(people)})" if name_them else ""
                who = "person" if len(people) == 1 else "people"
                yield Notice("absent", name, f"{len(people):,} protected {who} {why}{first}")


def check_speakers(known: Embeddings, other: Embeddings, key: str) -> None:
    """Somebody is in both sets."""
    here, there = (sorted(set(voices.speakers.present)) for voices in (known, other))
    if not set(here) & set(there):
        some = [", ".join(names[:2]) + (" …" if len(names) > 2 else "") for names in (there, here)]
        raise InputError(f"no speaker of {key} is in original ({some[0]} against {some[1]})")


def read_inputs(
    config: Config, work: Work, *, base: Path, allow_code: bool = False, say: Say | None = None
) -> Inputs:
    """Read all data sets of a config; ``base`` is what the names of files are relative to.

    ``allow_code`` lets a config name Python to import, a model to fetch or a safeguard's command.
    ``say`` hears how long training will take, before it starts.
    """
    sources: list[Source] = []
    notices: list[Notice] = []
    unread: dict[str, str] = {}
    read: dict[str, Embeddings] = {}
    sounds: dict[str, Sounds] = {}

    def voices(part: VoicesConfig, key: str) -> Embeddings:
        failures: dict[str, str] = {}
        if part.audio is None:
            speech = _embeddings(part)
        else:
            files = _recordings(part, key, allow_code=allow_code)
            made = embedded(files, part.encoder, key, work, source=str(part.audio))
            speech, failures, sounds[key] = made
        if failures:
            unread.update(failures)
            reasons = "" if config.redact else f": {'; '.join(failures.values())}"
            sentence = f"{len(failures)} recordings cannot be read and are left out everywhere"
            notices.append(Notice("not-read", key, f"{sentence}{reasons}"))
        if speech.source is not None:
            told = f"{_role(config, key)}, {len(speech):,} utterances"
            named = replace(speech.source, name=relative(speech.source.name, base), role=told)
            sources.append(replace(named, speakers=speech.n_speakers))
            speech = replace(speech, source=sources[-1])
        if speech.utterances is None:
            sentence = "utterances have no names and are matched by their order"
            notices.append(Notice("no-names", key, sentence))
            speech = replace(speech, utterances=_numbered(speech))
        read[key] = speech
        refuse_encoders(read)
        return speech

    def located(scores: Scores) -> Scores:
        named = [replace(source, name=relative(source.name, base)) for source in scores.sources]
        sources.extend(named)
        return replace(scores, sources=tuple(named))

    def source(file: Path, kind: str) -> None:
        sources.append(Source(relative(str(file), base), content_digest(file), kind))

    original = voices(config.original, "original") if config.original.given else None
    given = [safeguard for safeguard in config.safeguards if safeguard.given]
    every = {one.name: voices(one, f"safeguards.{one.name}") for one in given}
    for safeguard in given if not work.dry else ():
        if safeguard.per == "session" and every[safeguard.name].sessions is None:
            raise InputError(f"safeguards.{safeguard.name}", SESSIONS, "none")
    runs = {
        f"{safeguard.name}.{kind}": str(getattr(safeguard, kind))
        for safeguard in given
        for kind in ("again", "related")
        if getattr(safeguard, kind) is not None
    }
    for key, path in runs.items():
        if path not in every:
            every[path] = voices(VoicesConfig(embeddings=Path(path)), f"safeguards.{key}")
    if unread and original is not None:
        readable = partial(only, names=unread, what="can be read", inside=False)
        original, every = readable(original), {name: readable(one) for name, one in every.items()}
    if original is not None:
        every = {name: in_order_of(original, one) for name, one in every.items()}
    tables = {table.name: located(_table(table)) for table in config.scores}
    scored = [one for one in config.safeguards if one.scores and not one.hidden]
    sets = {
        given.label(safeguard.name): {name: located(s) for name, s in _sets(given).items()}
        for safeguard in scored
        for given in safeguard.scores
    }
    stated: dict[str, tuple[Stated, ...]] = {}
    for one in scored:
        lists = [(given, part, getattr(given, part)) for given in one.scores for part in PARTS]
        rates = [
            stated_eer(given.label(one.name), part, path) for given, part, path in lists if path
        ]
        rates += [rate for path in one.results for rate in read_results(path)]
        stated[one.name] = tuple(filter(None, rates))
        written = [path for words in one.heard for path in (words.original, words.protected)]
        said = [place / "text" for words in one.heard for place in words.data]
        for file in (*one.results, *said, *written):
            source(file, "results" if file in one.results else "transcripts")
    keyless = frozenset(safeguard.name for safeguard in config.safeguards if safeguard.keyless)
    renewed = frozenset(
        one.name for one in config.safeguards if one.per == "utterance" and one.again is None
    )
    inputs = Inputs(None, {}, keyless, frozenset(), tables, sets, renewed=renewed, stated=stated)
    if original is not None:
        shown = {one.name: every[one.name] for one in given if not one.hidden}
        compared = {**shown, **{key: every[path] for key, path in runs.items()}}
        for key, embeddings in compared.items():
            if embeddings.dimension != original.dimension and not work.dry:
                like = f"vectors of {original.dimension} dimensions like the original"
                raise InputError(f"safeguards.{key}", like, embeddings.dimension)
            check_names(original, embeddings, f"safeguards.{key}")
            check_speakers(original, embeddings, f"safeguards.{key}")
        for key, path in runs.items():
            name = key.rpartition(".")[0]
            others = {"original": original, f"safeguards.{name}": shown.get(name)}
            refuse_copies(others, every[path], f"safeguards.{key}")
        speech = {}
        for name, protected in shown.items():
            held = {"own": name if name in keyless | renewed else runs.get(f"{name}.again")}
            held["related"] = runs.get(f"{name}.related")
            known = {data: every[path] for data, path in held.items() if path is not None}
            speech[name] = Speech(protected, {"original": original, **known})
        enrols = enrolling(config, original, compared)
        if (listed := config.split.utterances) is not None:
            source(listed, "list")
            read_names = set().union(*map(utterances, (original, *compared.values())))
            if unknown := sorted(enrols - read_names):
                sentence = f"{len(unknown):,} of {len(enrols):,} listed utterances are in no set"
                notices.append(Notice("absent", "split", sentence))
        by_list = listed is not None
        inputs = replace(inputs, original=original, speech=speech, enrols=enrols, listed=by_list)
        own = Runs(config, work, allow_code=allow_code)
        inputs = _with_attackers(inputs, own, Extractors(own, say=say), voices)
        inputs = inputs.complete(name_them=not config.redact)
        try:
            inputs = _hearing(inputs, config)
        except InputError as error:
            if config.words != WordsConfig():
                raise
            notices.append(Notice("words-not-tried", "words", f"no attack by words: {error}"))
    for (name, made_in), failures in work.left_out.items():
        reasons = "" if config.redact else f": {'; '.join(failures[:3])}"
        sentence = f"{len(failures)} recordings could not be made and are left out, {made_in}"
        notices.append(Notice("not-made", name, f"{sentence}{reasons}"))
    notices += _repeated_lines(sets)
    notices += [*encoder_notices(read), *sound_notices(sounds), *run_notices(inputs.speech)]
    notices += [*repeated_notices(read, name_them=not config.redact), *inputs.notices]
    inputs = replace(inputs, sources=tuple(dict.fromkeys(sources)), notices=tuple(notices))
    refuse_two_values([*filter(None, [inputs.original]), *read.values()], config.legal.side)
    if not config.redact:
        return inputs if work.dry else _with_doubted_names(inputs)
    aliased = _redacted(inputs, config, redaction_key(work.folder))
    return aliased if work.dry else _with_doubted_names(aliased)


def _redacted(inputs: Inputs, config: Config, key: bytes) -> Inputs:
    """The same under aliases, and sentences that name nobody."""
    sources, written, paths = inputs.sources, names_written(config), paths_of(config)
    labels = Labels.of(inputs, sources, key, written=written, paths=paths)
    aliased = labels.aliased(inputs)
    notices = [
        replace(one, subject=labels.text(one.subject), sentence=labels.public(one.sentence))
        for one in inputs.notices
    ]
    return replace(
        aliased,
        enrols=frozenset(map(labels.alias, inputs.enrols)),
        sources=tuple(map(labels.source, sources)),
        notices=tuple(notices),
        untrained={key: labels.public(reason) for key, reason in inputs.untrained.items()},
        labels=labels,
    )


def _with_doubted_names(inputs: Inputs) -> Inputs:
    """Add notices on people and voices that may bear a wrong name, under labels if redacted."""
    if inputs.original is None:
        return inputs
    doubted = list(name_notices(inputs.original, inputs.protected))
    if inputs.labels is not None:
        doubted = [replace(one, sentence=inputs.labels.text(one.sentence)) for one in doubted]
    return replace(inputs, notices=(*inputs.notices, *doubted))


def _hearing(inputs: Inputs, config: Config) -> Inputs:
    """The same with what is said in all speech, of training people only where it is known."""
    words = read_words(*config.said, speakers=config.original.speakers)
    if words is None or inputs.original is None:
        return inputs
    for voices in (inputs.original, *inputs.protected.values()):
        words.told(voices)
    told = partial(words.told, optional=True)
    heard: Inputs = mapped(inputs, lambda one: told(one) if isinstance(one, Embeddings) else one)
    return replace(heard, words=words)


def _with_attackers(
    inputs: Inputs,
    runs: Runs,
    extractors: Extractors,
    voices: Callable[[VoicesConfig, str], Embeddings],
) -> Inputs:
    """The same with what attackers make themselves: runs of the safeguards under their own
    keys, speech of training people, and all speech through extractors that were trained.

    ``voices`` reads a set. Whoever is set apart to train on is not attacked.
    """
    config, training, original = runs.config, runs.config.training, inputs.original
    given = {name: runs.safeguards[name] for name in inputs.speech}
    recorded = [n for n, safeguard in given.items() if safeguard.audio and config.original.audio]
    runnable = [name for name in recorded if runs.allowed(given[name])]
    trains = [attacker for attacker in config.attackers if attacker.trains]
    pairs = [(safeguard, attacker) for safeguard in given.values() for attacker in trains]
    why = {(a.name, b.name): extractors.why_not(a, b) for a, b in pairs}
    able = [(a, b) for a, b in pairs if why[a.name, b.name] is None]
    for pair in able:
        extractors.announce(*pair)
    assert original is not None
    held = dict(inputs.speech)
    others = voices(training, "training") if training.given else None
    if others is not None:
        check_names(original, others, "training")
        refuse_attacked(others.speakers.to_series(), original.speakers.to_series())
        attacked = {f"safeguards.{n}": spoken.protected for n, spoken in inputs.speech.items()}
        refuse_copies({"original": original, **attacked}, others, "training")
    for name in runnable:
        known = held[name].known
        if "own" not in known:
            own = runs.embedded_run(given[name], training=False)
            own_too = {"original": known["original"], "own": own, **known}
            held[name] = replace(held[name], known=own_too)
    if others is not None:
        made = {
            name: voices(VoicesConfig(embeddings=safeguard.training), f"safeguards.{name}.training")
            for name, safeguard in given.items()
            if safeguard.training is not None
        }
        for name, protected in made.items():
            check_names(others, protected, f"safeguards.{name}.training", whose="training")
        for name in runnable if training.audio is not None else ():
            if name not in made:
                made[name] = runs.embedded_run(given[name], training=True)
        for name, safeguard in given.items():
            which = {"own": name, "related": str(safeguard.related)}
            learnt = {data: made[run] for data, run in which.items() if run in made}
            held[name] = replace(held[name], learnt={"original": others, **learnt})
    elif trains and config.original.audio is not None:
        rest = partial(of_people, people=runs.apart, inside=False)
        for name, speech in held.items():
            sets = dict(speech.known)
            if name in runnable and given[name].again is None:
                sets["own"] = runs.embedded_run(given[name], training=True)
            learnt = {data: of_people(some, runs.apart) for data, some in sets.items()}
            known = {data: rest(some) for data, some in speech.known.items()}
            held[name] = Speech(rest(speech.protected), known, learnt)
        original = rest(original)
    trained = {(a.name, b.name): extractors.trained(a, b) for a, b in able}
    untrained = {key: reason for key, reason in why.items() if reason is not None}
    return replace(inputs, original=original, speech=held, trained=trained, untrained=untrained)


def _role(config: Config, key: str) -> str:
    """What the set of this key is to an assessment."""
    name = key.removeprefix("safeguards.")
    for safeguard in config.safeguards:
        if name in (f"{safeguard.name}.again", safeguard.again):
            return f"attacker's own run of {safeguard.name}"
        if name in (f"{safeguard.name}.related", safeguard.related):
            return f"related to {safeguard.name}"
    return f"protected by {name}" if name != key else key


def _recordings(part: VoicesConfig, key: str, *, allow_code: bool) -> Sequence[Recording]:
    """The recordings of a folder, once it is known that its encoder may run."""
    from unmask.speech.encoders import runs_code

    if runs_code(part.encoder) and not allow_code:
        code = f"{part.encoder}, which is code to run: add --allow-code if you trust it"
        raise InputError(f"{key}, encoder", "a built-in one or an ONNX file", code)
    return recordings_of(part)


def _embeddings(part: VoicesConfig) -> Embeddings:
    assert part.embeddings is not None
    speech = read_embeddings(part.embeddings, speakers=part.speakers)
    if part.sessions is None:
        return speech
    named = sessions_of(part.sessions, utterances(speech))
    return replace(speech, sessions=Ids.from_strings(named))


def _table(one: ScoreTable) -> Scores:
    systems = one.systems or None
    table = read_scores(one.files, key=one.key, speakers=one.speakers, systems=systems)
    table.check_classes()
    return table


def _sets(given: ScoreSets) -> dict[str, Scores]:
    """The lists of trials that there are, each with its one system named after it: OO, OP, PP."""
    # The challenges' scorers keep trials in a dictionary: a line that is repeated counts once.
    key = read_key(given.key, duplicates="skip") if given.key is not None else None
    files = {name: getattr(given, name) for name in PARTS}
    sets = {}
    for name, path in files.items():
        if path is not None:
            systems = [given.system] if given.system else None
            scores = read_scores(path, key=key, speakers=given.speakers, systems=systems)
            scores.check_classes()
            scores = replace(scores, systems={name.upper(): scores.scores(given.system)})
            sets[name] = scores if given.genders is None else _of_sexes(scores, given.genders)
    return sets


def _of_sexes(scores: Scores, path: Path) -> Scores:
    """The scores with the column gender of both sides, from a Kaldi ``spk2gender``."""
    known = dict(word_pairs(path, "speaker and gender"))
    columns = dict(scores.columns)
    for side in ("enrol", "test"):
        ids: Ids | None = getattr(scores, f"{side}_speaker")
        if ids is None:
            raise InputError(path, f"scores with the speakers of the {side} side", "none")
        names = ids.names.to_list()
        if lost := [names[code] for code in ids.used if names[code] not in known]:
            raise InputError(path, "the gender of every speaker", f"none of {lost[0]}")
        columns[f"{side}_{GENDER}"] = Ids.from_strings(ids.to_series().replace_strict(known))
    return replace(scores, columns=columns)


def _repeated_lines(sets: Mapping[str, Mapping[str, Scores]]) -> Iterator[Notice]:
    """How many lines of each list of trials repeat another one, with the same label."""
    for label, lists in sets.items():
        first = next(iter(lists.values()))
        repeated = max(source.duplicates for source in first.sources)
        if repeated:
            sentence = (
                f"{repeated:,} of {len(first) + repeated:,} lines of the list repeat a trial with"
                " the same label: each trial counts once, as in the challenge's own scorer"
            )
            yield Notice("repeated-trials", label, sentence)


def list_name(label: str, part: str) -> str:
    """What a list (oo, op, pp) of a safeguard's set is called."""
    return f"{label} {part.upper()}"


def _numbered(embeddings: Embeddings) -> Ids:
    """A name for each utterance from its speaker and its place among the speaker's utterances."""
    table = pl.DataFrame({"speaker": embeddings.speakers.to_series()})
    place = table.select(pl.int_range(pl.len()).over("speaker") + 1).to_series()
    named = zip(table["speaker"], place, strict=True)
    return Ids.from_strings([f"{name}-{n:04d}" for name, n in named])
