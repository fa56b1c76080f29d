"""Attackers that train the extractor: protect training speech, train, embed, resume at any stage.

Everything is kept beside the steps of the assessment, under names made from what it is made of: a
run of the safeguard goes on with the recordings that are missing, training goes on from its
checkpoint, and what is embedded is a step like any other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.privacy.legal import of_people
from unmask.report.cache import Step, Work, code_digest
from unmask.report.config import AttackerConfig, Config, SafeguardConfig, VoicesConfig
from unmask.report.sound import medians
from unmask.trials import Embeddings, Source, refuse_twins

if TYPE_CHECKING:
    from unmask.report.inputs import Inputs
    from unmask.speech import Recording

Say = Callable[[str], None]
NO_RECORDINGS = "its extractor is trained on recordings, and embeddings were given"
NOT_RUNNABLE = "its extractor is trained on protected speech, and no method or command makes such"
_NO_RUN = {
    "own": NOT_RUNNABLE,
    "related": "its extractor is trained on a related safeguard, and none was given that can be"
    " run",
}


@dataclass(frozen=True, eq=False)
class Speech:
    """What attackers of one safeguard hold, through one extractor.

    ``protected`` is attacked. ``known`` is speech of the people in the list, by what it is:
    ``original``, ``own`` (protected under keys of the attacker's own) or ``related``; ``learnt`` is
    that of training people, none of whom is attacked. ``shares`` are the same through extractors
    trained on a share of them, ``people`` is the number of all.
    """

    protected: Embeddings
    known: Mapping[str, Embeddings]
    learnt: Mapping[str, Embeddings] = field(default_factory=dict)
    shares: Mapping[float, Speech] = field(default_factory=dict)
    people: int = 0


class Extractors:
    """Runs of safeguards under keys of the attacker's own, and extractors trained on them.

    ``say`` hears before training starts how long it will take.
    """

    def __init__(
        self, config: Config, work: Work, *, allow_code: bool = False, say: Say | None = None
    ) -> None:
        self.config, self.work, self.allow_code = config, work, allow_code
        self.say = say or (lambda line: None)
        self.shares = sorted({*config.training.curve, 1.0})
        self.safeguards = {one.name: one for one in config.safeguards}

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        """Recordings of the unprotected speech."""
        return recordings_of(self.config.original)

    @cached_property
    def apart(self) -> frozenset[str]:
        """Those of the people who train and are not attacked, a share of all; none where others
        train. Their order is a hash of seed and name, so that whoever is added moves few.
        """
        config = self.config
        if config.training.given or not any(one.trains for one in config.attackers):
            return frozenset()
        order = self._by_lot(self.recordings, "apart")
        return frozenset(order[: round(config.training.share * len(order))])

    def _by_lot(self, files: Iterable[Recording], what: str) -> list[str]:
        """The people of recordings in an order of their own for each seed and purpose."""
        people = {one.speaker for one in files}
        return sorted(people, key=lambda name: _digest(self.config.seed, what, name))

    @cached_property
    def training(self) -> tuple[Recording, ...]:
        """Recordings of training people."""
        if self.config.training.audio is not None:
            files = recordings_of(self.config.training)
            refuse_attacked((x.speaker for x in files), (x.speaker for x in self.recordings))
            return files
        return tuple(one for one in self.recordings if one.speaker in self.apart)

    @cached_property
    def tested(self) -> tuple[Recording, ...]:
        """Recordings of those who are attacked, unprotected."""
        return tuple(one for one in self.recordings if one.speaker not in self.apart)

    @property
    def device(self) -> str:
        """Where extractors are trained."""
        if self.config.training.device != "auto":
            return self.config.training.device
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def own_run(
        self, safeguard: SafeguardConfig, *, training: bool = False, make: bool = True
    ) -> tuple[Recording, ...]:
        """Recordings of those attacked, or of training people, as the safeguard makes them under
        the attacker's own key. What is there already is not made again; nothing unless ``make``.
        """
        from unmask.speech import External, anonymise, safeguard as method_named

        files = self.training if training else self.tested
        key = int(_digest(self.config.seed, "key of the attacker", safeguard.name)[:15], 16)
        if safeguard.command is not None:
            chosen: Any = External(safeguard.command.replace("{key}", str(key)))
        else:
            per = safeguard.per or "speaker"
            chosen = method_named(str(safeguard.method), seed=key, per=per)
        content = [(repr(one), one.digest) for one in files]
        identity = json.dumps([chosen.describe(key=True), content])
        root = self.work.folder / "runs" / _digest(identity, code_digest())[:16]
        made = tuple(replace(one, path=root / f"{one.place}.flac") for one in files)
        missing = [one for one, to in zip(files, made, strict=True) if not to.path.is_file()]
        if missing and make and not self.work.dry:
            people = "training people" if training else "the people attacked"
            with self.work.doing(f"{safeguard.name} under the attacker's key, {people}"):
                result = anonymise(missing, root, chosen)
            if result.failures:
                raise InputError(f"{result.failures[0]} ({len(result.failures)} recordings failed)")
        return made

    def allowed(self, safeguard: SafeguardConfig) -> bool:
        """Whether the safeguard can be run; a command only with leave to run code."""
        if safeguard.command is not None and not self.allow_code:
            code = "a command, which is code to run: --allow-code lets a config do so"
            raise InputError(f"safeguards.{safeguard.name}", "a method", code)
        return safeguard.method is not None or safeguard.command is not None

    def why_not(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> str | None:
        """Why an attacker's extractor cannot be trained; None if it can."""
        training = self.config.training if self.config.training.given else self.config.original
        if any(one.audio is None for one in (self.config.original, safeguard, training)):
            return NO_RECORDINGS
        runs = {"own": safeguard, "related": self.safeguards.get(safeguard.related or "")}
        for data in sorted(runs.keys() & {*attacker.train, attacker.enrol}):
            run = runs[data]
            if run is None or not self.allowed(run):
                return _NO_RUN[data]
        return None

    def _sets(
        self, safeguard: SafeguardConfig, attacker: AttackerConfig, *, make: bool = True
    ) -> dict[str, tuple[Recording, ...]]:
        """Recordings that an extractor is trained on, by what they are."""
        runs = {"own": safeguard.name, "related": str(safeguard.related)}
        return {
            data: self.own_run(self.safeguards[runs[data]], training=True, make=make)
            if data in runs
            else self.training
            for data in dict.fromkeys(attacker.train)
        }

    def _taught(self, sets: Mapping[str, Sequence[Recording]], share: float) -> list[Recording]:
        """What an extractor is trained on: the recordings of a share of the people."""
        people = self._by_lot(self.training, "share")
        chosen = set(people[: max(2, round(share * len(people)))])
        return [
            replace(one, utterance=f"{data} {one.utterance}")
            for data, some in sets.items()
            for one in some
            if one.speaker in chosen
        ]

    def trained(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> Speech:
        """All speech of an attack through an extractor of the attacker's own making."""
        from unmask.speech import train

        sets = self._sets(safeguard, attacker)
        speech = {"original": self.tested}
        if self.allowed(safeguard):
            speech["own"] = self.own_run(safeguard)
        attacked = tuple(one for one in recordings_of(safeguard) if one.speaker not in self.apart)
        name = f"{attacker.name} on {safeguard.name}"

        def through(share: float) -> Speech:
            taught = self._taught(sets, share)
            chosen = {one.speaker for one in taught}
            place, start = self._place(name, taught), self._start
            what = f"training the extractor of {name}, {share:.0%} of the people"
            if not self.work.dry:
                with self.work.doing(what):
                    train(taught, place, recipe=self._recipe, start=start, device=self.device)

            def vectors(files: Sequence[Recording], what: str) -> Embeddings:
                step = f"{what} for {name}, {share:.0%}"
                return embedding_step(files, str(place), step, self.work)

            known = {data: vectors(files, f"{data} speech") for data, files in speech.items()}
            protected = vectors(attacked, "protected speech")
            people_of = {d: [x for x in files if x.speaker in chosen] for d, files in sets.items()}
            learnt = {d: vectors(files, f"{d} training speech") for d, files in people_of.items()}
            return Speech(protected, known, learnt, people=len(chosen))

        parts = {share: through(share) for share in self.shares}
        return replace(parts.pop(1.0), shares=parts)

    def added(self, inputs: Inputs, voices: Callable[[VoicesConfig, str], Embeddings]) -> Inputs:
        """The same with what attackers make themselves: runs of the safeguards under their own
        keys, speech of training people, and all speech through extractors that were trained.

        ``voices`` reads a set. Whoever is set apart to train on is not attacked.
        """
        config, training, original = self.config, self.config.training, inputs.original
        given = {name: self.safeguards[name] for name in inputs.speech}
        recorded = [n for n, one in given.items() if one.audio and config.original.audio]
        runnable = [name for name in recorded if self.allowed(given[name])]
        trains = [one for one in config.attackers if one.trains]
        pairs = [(one, attacker) for one in given.values() for attacker in trains]
        why = {(a.name, b.name): self.why_not(a, b) for a, b in pairs}
        able = [(a, b) for a, b in pairs if why[a.name, b.name] is None]
        for pair in () if self.work.dry else able:
            self.announce(*pair)

        def own_run(name: str, *, training: bool) -> Embeddings:
            what = f"{name}, {'training people' if training else 'run'} of the attacker"
            files = self.own_run(given[name], training=training)
            return embedding_step(files, config.original.encoder, what, self.work)

        assert original is not None
        held = dict(inputs.speech)
        others = voices(training, "training") if training.given else None
        if others is not None:
            check_names(original, others, "training")
            refuse_attacked(others.speakers.to_series(), original.speakers.to_series())
            attacked = {f"safeguards.{n}": one.protected for n, one in inputs.speech.items()}
            refuse_copies({"original": original, **attacked}, others, "training")
        for name in runnable:
            known = held[name].known
            if "own" not in known:
                own = own_run(name, training=False)
                own_too = {"original": known["original"], "own": own, **known}
                held[name] = replace(held[name], known=own_too)
        if others is not None:
            made = {
                name: voices(VoicesConfig(embeddings=one.training), f"safeguards.{name}.training")
                for name, one in given.items()
                if one.training is not None
            }
            for name, protected in made.items():
                check_names(others, protected, f"safeguards.{name}.training", whose="training")
            for name in runnable if training.audio is not None else ():
                if name not in made:
                    made[name] = own_run(name, training=True)
            for name, one in given.items():
                which = {"own": name, "related": str(one.related)}
                learnt = {data: made[run] for data, run in which.items() if run in made}
                held[name] = replace(held[name], learnt={"original": others, **learnt})
        elif trains and config.original.audio is not None:
            rest = partial(of_people, people=self.apart, inside=False)
            for name, speech in held.items():
                sets = dict(speech.known)
                if name in runnable and given[name].again is None:
                    sets["own"] = own_run(name, training=True)
                learnt = {data: of_people(some, self.apart) for data, some in sets.items()}
                known = {data: rest(some) for data, some in speech.known.items()}
                held[name] = Speech(rest(speech.protected), known, learnt)
            original = rest(original)
        trained = {(a.name, b.name): self.trained(a, b) for a, b in able}
        untrained = {key: reason for key, reason in why.items() if reason is not None}
        return replace(inputs, original=original, speech=held, trained=trained, untrained=untrained)

    def announce(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> None:
        """How long training will take, measured by a few steps; nothing where all is there."""
        from unmask.speech import is_encoder, training_seconds

        sets = self._sets(safeguard, attacker, make=False)
        name = f"{attacker.name} on {safeguard.name}"
        left = sum(not one.path.is_file() for files in sets.values() for one in files)
        waiting = [
            share
            for share in self.shares
            if left or not is_encoder(self._place(name, self._taught(sets, share)))
        ]
        if not waiting:
            return
        people = len({one.speaker for one in self.training})
        rows = sum(map(len, sets.values()))
        seconds = sum(
            training_seconds(
                self._recipe,
                speakers=max(2, round(share * people)),
                utterances=max(2, round(share * rows)),
                device=self.device,
                start=self._start,
            )
            for share in waiting
        )
        first = f" after {left:,} of them are protected" if left else ""
        self.say(
            f"training the extractor of {name} on {people} people, {rows:,} recordings"
            f" ({', '.join(f'{share:.0%}' for share in waiting)} of them), takes about"
            f" {_duration(seconds)} on {self.device}{first}"
        )

    @cached_property
    def _recipe(self) -> Any:
        from unmask.speech import Recipe

        return Recipe.from_dict({"seed": self.config.seed, **self.config.training.recipe})

    @property
    def _start(self) -> str | None:
        start = self.config.training.start
        fits = self.config.training.recipe.get("network", "campplus") == "campplus"
        return None if start == "scratch" or (start == "campplus" and not fits) else start

    def _place(self, name: str, taught: Sequence[Recording]) -> Path:
        from unmask.speech import run_name

        identity = json.dumps(run_name(self._recipe, taught, start=self._start))
        return self.work.folder / "extractors" / _digest(name, identity, code_digest())[:16]


def embedding_step(
    files: Sequence[Recording], encoder: str, what: str, work: Work, *, source: str | None = None
) -> Embeddings:
    """Vectors of recordings by an encoder, all of which must be readable; ``source`` names them."""
    made, failures, _ = embedded(files, encoder, what, work, source=source)
    if failures:
        first = next(iter(failures.values()))
        raise InputError(f"{first} ({len(failures)} recordings failed)")
    return made


def embedded(
    files: Sequence[Recording], encoder: str, what: str, work: Work, *, source: str | None = None
) -> tuple[Embeddings, dict[str, str], dict[str, FloatArray]]:
    """Vectors of recordings by an encoder, computed once, by utterance what is wrong with those
    that cannot be read, and what each sounds like; ``source`` names their set. In dry work all
    vectors are alike.
    """
    from unmask.speech import embed
    from unmask.speech.encoders import fingerprint_of

    if work.dry:
        people, names = [one.speaker for one in files], [one.utterance for one in files]
        return Embeddings(np.ones((len(files), 1)), people, names), {}, {}
    content = _digest(*(one.digest for one in files))

    def compute() -> tuple[Embeddings, dict[str, str], FloatArray]:
        result = embed(files, encoder)
        if result.embeddings is None:
            raise InputError(f"{result.failures[0]} ({len(result.failures)} recordings failed)")
        made = result.embeddings
        assert made.utterances is not None
        read = set(made.utterances.to_series())
        unread = [one.utterance for one in files if one.utterance not in read]
        named = Source(source or what, content, "audio", encoder=made.encoder)
        named = replace(named, sound=medians(result.sounds))
        failures = dict(zip(unread, result.failures, strict=True))
        return replace(made, source=named), failures, result.sounds

    names = [repr((one.utterance, one.speaker, one.session)) for one in files]
    inputs, by = [content, *names], {"depends on": fingerprint_of(encoder)}
    step = Step(f"embedding {what}", inputs, by, compute, weight=0.1 * len(files))
    work.expect([step])
    made, failures, sounds = work.run(step)
    return made, failures, dict(zip((one.utterance for one in files), sounds, strict=True))


def check_names(known: Embeddings, other: Embeddings, key: str, *, whose: str = "original") -> None:
    """Every utterance of two sets is of one speaker in both, and no name of one looks like another
    of the other; ``key`` is what ``other`` is.
    """
    names = (
        pl.DataFrame({"utterance": one.utterances.to_series(), "speaker": one.speakers.to_series()})
        for one in (known, other)
        if one.utterances is not None
    )
    here, there = names
    for what in here.columns:
        refuse_twins(pl.concat([here[what], there[what]]), f"{what}s", f"{whose} and {key}")
    both = there.with_row_index("row", 1).join(here, on="utterance", maintain_order="left")
    apart = both.filter(pl.col("speaker") != pl.col("speaker_right"))
    if len(apart):
        row, name, found, wanted = apart.row(0)
        raise InputError(
            f"{key}, row {row}: expected utterance {name} of speaker {wanted} as in {whose},"
            f" found speaker {found} ({len(apart):,} such rows)"
        )


def refuse_copies(known: Mapping[str, Embeddings | None], other: Embeddings, key: str) -> None:
    """A run of the attacker's own, a related one or training speech is none of the ``known`` sets:
    few of its vectors, if any, are vectors of theirs.
    """
    for whose, one in known.items():
        if one is None or one.dimension != other.dimension or other.dimension < 2:
            continue
        same = int(np.isin(other.marks, one.marks).sum())
        if 2 * same > len(other):
            wanted = "other vectors than those of " + whose
            raise InputError(key, wanted, f"the same in {same:,} of {len(other):,} rows")


def refuse_attacked(training: Iterable[str], attacked: Iterable[str]) -> None:
    """Nobody on whom attackers train is attacked."""
    shared = set(training) & set(attacked)
    if shared:
        some = f"{len(shared)} of them (first: {min(shared)})"
        raise InputError("training", "other people than those attacked", some)


def recordings_of(part: VoicesConfig) -> tuple[Recording, ...]:
    from unmask.speech import recordings

    assert part.audio is not None
    return recordings(part.audio, speakers=part.speakers or "folder")


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
