"""Runs of the attacker: safeguards under the attacker's own key, and what is embedded.

A run is kept beside the steps of the assessment, under a name made from what it is made of, and
goes on with the recordings that are missing; what is embedded is a step like any other.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from unmask.assessment.cache import Step, Work, code_digest
from unmask.assessment.config import Config, SafeguardConfig, VoicesConfig
from unmask.assessment.sound import medians
from unmask.assessment.splits import utterances
from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.run import Busy, available, current_place, scratch_folder, text_lines
from unmask.trials import Embeddings, Source, refuse_twins

if TYPE_CHECKING:
    from unmask.speech import Recording

T = TypeVar("T")
SESSIONS = "the session of every recording (folders speaker/session, a pattern, --sessions)"
_A_FILE = 0.2
"""Seconds that a recording takes, where none could be timed."""


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


class Runs:
    """Recordings of people who train and who are attacked, and runs of safeguards on both under
    keys of the attacker's own.
    """

    def __init__(self, config: Config, work: Work, *, allow_code: bool = False) -> None:
        self.config, self.work, self.allow_code = config, work, allow_code
        self.safeguards = {safeguard.name: safeguard for safeguard in config.safeguards}

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
        if config.training.given or not any(attacker.trains for attacker in config.attackers):
            return frozenset()
        order = self.by_lot(self.recordings, "apart")
        return frozenset(order[: round(config.training.share * len(order))])

    def by_lot(self, files: Iterable[Recording], what: str) -> list[str]:
        """The people of recordings in an order of their own for each seed and purpose."""
        people = {recording.speaker for recording in files}
        return sorted(people, key=lambda name: joint_digest(self.config.seed, what, name))

    @cached_property
    def training(self) -> tuple[Recording, ...]:
        """Recordings of training people."""
        if self.config.training.audio is not None:
            files = recordings_of(self.config.training)
            refuse_attacked((x.speaker for x in files), (x.speaker for x in self.recordings))
            return files
        return tuple(recording for recording in self.recordings if recording.speaker in self.apart)

    @cached_property
    def tested(self) -> tuple[Recording, ...]:
        """Recordings of those who are attacked, unprotected."""
        return tuple(one for one in self.recordings if one.speaker not in self.apart)

    def own_run(
        self, safeguard: SafeguardConfig, *, training: bool = False, make: bool = True
    ) -> tuple[Recording, ...]:
        """Recordings of those attacked, or of training people, as the safeguard makes them under
        the attacker's own key. What is there already is not made again; nothing unless ``make``.
        """
        files = self.training if training else self.tested
        key = int(joint_digest(self.config.seed, "key of the attacker", safeguard.name)[:15], 16)
        people = "training people" if training else "the people attacked"
        what = f"{safeguard.name} under the attacker's key, {people}"
        return self._made(safeguard, files, key, what, make=make)[1]

    def released(self, safeguard: SafeguardConfig) -> SafeguardConfig:
        """A safeguard that is made on the way, with the recordings that it makes of the original
        ones; in dry work with these.
        """
        part, what = self.config.original, f"making {safeguard.name}"
        assert part.audio is not None
        folder, _ = self._made(safeguard, self.recordings, self.config.seed, what)
        alike = self.work.dry or (part.audio.is_dir() and not (part.audio / "wav.scp").is_file())
        more: dict[str, Any] = {"speakers": part.speakers if alike else None}
        more |= {"encoder": part.encoder, "audio": part.audio if self.work.dry else folder}
        more["sessions"] = part.sessions
        return safeguard.model_copy(update=more)

    def _made(
        self,
        safeguard: SafeguardConfig,
        files: Sequence[Recording],
        key: int,
        what: str,
        *,
        make: bool = True,
    ) -> tuple[Path, tuple[Recording, ...]]:
        """The folder of a run under a ``key``, and its recordings."""
        from unmask.speech import External, safeguard as method_named

        if safeguard.per == "session" and not all(recording.session for recording in files):
            raise InputError(f"safeguards.{safeguard.name}", SESSIONS, "none")
        low, high = safeguard.ends or (None, None)
        if safeguard.command is not None:
            chosen: Any = External(safeguard.command.replace("{key}", str(key)))
        else:
            how: Any = {"per": safeguard.per or "speaker", "low": low, "high": high}
            chosen = method_named(str(safeguard.method), seed=key, **how)
        content = [(repr(recording), recording.digest) for recording in files]
        identity = json.dumps([chosen.describe(key=True), content])
        root = self.work.folder / "runs" / joint_digest(identity, code_digest())[:16]
        made = tuple(replace(one, path=root / f"{one.place}.flac") for one in files)
        missing = [one for one, to in zip(files, made, strict=True) if not to.path.is_file()]
        if missing and make and self.work.dry:
            rate = seconds_each(missing, partial(_protect, chosen))
            self.work.total += (rate or _A_FILE) * len(missing) / workers()
        elif missing and make:
            with self.work.doing(what):
                failures = _protected(missing, root, chosen)
            made = tuple(one for one in made if one.path.is_file())
            if failures and not made:
                raise InputError(f"{failures[0]} ({len(failures)} recordings failed)")
            if failures:
                self.work.left_out[safeguard.name, what] = failures
        return root, made

    def embedded_run(self, safeguard: SafeguardConfig, *, training: bool) -> Embeddings:
        """The same run through the encoder of the unprotected speech."""
        what = f"{safeguard.name}, {'training people' if training else 'run'} of the attacker"
        files = self.own_run(safeguard, training=training)
        return embedding_step(files, self.config.original.encoder, what, self.work)

    def allowed(self, safeguard: SafeguardConfig) -> bool:
        """Whether the safeguard can be run; a command only with leave to run code."""
        if safeguard.command is not None and not self.allow_code:
            code = "a command, which is code to run: add --allow-code if you trust it"
            raise InputError(f"safeguards.{safeguard.name}", "a method", code)
        return safeguard.method is not None or safeguard.command is not None


def _protected(files: Sequence[Recording], root: Path, safeguard: Any) -> tuple[str, ...]:
    """Make recordings, and say which fail; another run that makes the same ones is waited for."""
    from unmask.speech import anonymise

    while True:
        try:
            return anonymise(files, root, safeguard).failures
        except Busy:
            time.sleep(1.0)


def embedding_step(files: Sequence[Recording], encoder: str, what: str, work: Work) -> Embeddings:
    """Vectors of recordings by an encoder, all of which must be readable."""
    made, failures, _ = embedded(files, encoder, what, work)
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
    from unmask.speech import embed, load_encoder
    from unmask.speech.encoders import fingerprint_of

    content = joint_digest(*(recording.digest for recording in files))

    def compute() -> tuple[Embeddings, dict[str, str], FloatArray]:
        result = embed(files, encoder)
        if result.embeddings is None:
            raise InputError(f"{result.failures[0]} ({len(result.failures)} recordings failed)")
        made = result.embeddings
        read = set(utterances(made))
        unread = [recording.utterance for recording in files if recording.utterance not in read]
        named = Source(source or what, content, "audio", encoder=made.encoder)
        named = replace(named, sound=medians(result.sounds))
        failures = dict(zip(unread, result.failures, strict=True))
        return replace(made, source=named), failures, result.sounds

    names = [repr((one.utterance, one.speaker, one.session)) for one in files]
    inputs, by = [content, *names], {"depends on": fingerprint_of(encoder)}
    if work.dry and not work.rate:
        loaded = load_encoder(encoder)
        work.rate = seconds_each(files, lambda recording: embed([recording], loaded))
    weight = (work.rate or _A_FILE) * len(files) / workers()
    step = Step(f"embedding {what}", inputs, by, compute, weight, read=True)
    work.expect([step])
    if work.dry:
        people, called = [one.speaker for one in files], [one.utterance for one in files]
        named = Source(source or what, content, "audio")
        return Embeddings(np.ones((len(files), 1)), people, called, source=named), {}, {}
    made, failures, sounds = work.run(step)
    return made, failures, dict(zip((one.utterance for one in files), sounds, strict=True))


def seconds_each(files: Sequence[T], do: Callable[[T], object]) -> float:
    """How long a file takes, timed on the second that is done; 0 where that fails."""
    with suppress(Exception):
        do(files[0])
        start = time.perf_counter()
        do(files[-1])
        return time.perf_counter() - start
    return 0.0


def _protect(safeguard: Any, one: Recording) -> None:
    with scratch_folder() as folder:
        safeguard.protect(one, folder / "timed.flac")


def workers() -> int:
    """How many work on files."""
    return available(current_place().workers)


def check_names(known: Embeddings, other: Embeddings, key: str, *, whose: str = "original") -> None:
    """Every utterance of two sets is of one speaker in both, and no name of one looks like another
    of the other; ``key`` is what ``other`` is.
    """
    here, there = (
        pl.DataFrame({"utterance": utterances(voices), "speaker": voices.speakers.to_series()})
        for voices in (known, other)
    )
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
    for whose, voices in known.items():
        if voices is None or voices.dimension != other.dimension:
            continue
        if other.dimension < 2:  # Nothing was embedded.
            if voices.source and other.source and voices.source.sha256 == other.source.sha256:
                raise InputError(key, f"another run than {whose}", "the same bytes")
            continue
        same = int(np.isin(other.marks, voices.marks).sum())
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
    files = recordings(part.audio, speakers=part.speakers or "folder")
    if part.sessions is None:
        return files
    named = sessions_of(part.sessions, [recording.utterance for recording in files])
    return tuple(replace(one, session=name) for one, name in zip(files, named, strict=True))


def sessions_of(path: Path, utterances: Iterable[str]) -> list[str]:
    """The session of each utterance, which a file names."""
    known = dict(word_pairs(path, "utterance and session"))
    for name in utterances:
        if name not in known:
            raise InputError(path, "a session of every utterance", f"none of {name}")
    return [known[name] for name in utterances]


def word_pairs(path: Path, what: str) -> Iterator[tuple[str, str]]:
    """The two words of each line; ``what`` says what they are."""
    for number, line in enumerate(text_lines(path), start=1):
        words = line.split()
        if len(words) != 2:
            raise InputError(f"{path}, line {number}: expected {what}")
        yield words[0], words[1]


def joint_digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
