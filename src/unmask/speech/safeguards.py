"""Safeguards: B2 and its random versions, a shift of the pitch, words spoken again, any command,
sets of files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unmask import run
from unmask._extras import MissingExtra
from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp
from unmask.speech.audio import (
    SUFFIXES,
    as_file,
    failure,
    file_workers,
    needed,
    read_audio,
    write_audio,
)
from unmask.speech.corpus import Recording
from unmask.speech.vocoding import analysed, mcadams, shifted, synthesised

RANGES = {"b2": (0.8, 0.8), "b2r": (0.7, 0.9), "b2w": (0.5, 0.9)}
"""Ranges of the McAdams coefficient: B2 and B2r of Patino et al., B2w of later challenges."""
PITCH, RESTATE = "pitch", "restate"
SEMITONES = 4.0
"""How far the pitch is moved unless somebody says otherwise: for all alike, so without a key."""
SCOPES = ("global", "speaker", "session", "utterance")
METADATA = "unmask-anonymise.json"


class Safeguard(Protocol):
    """Turns one recording into a protected one, written to ``output``, and tells what it did to the
    level; ``key`` asks for what undoes it. :func:`anonymise` takes it.
    """

    @property
    def name(self) -> str: ...

    def protect(self, recording: Recording, output: Path) -> Protected: ...

    def describe(self, *, key: bool = False) -> dict[str, object]: ...


@dataclass(frozen=True)
class Protected:
    """How long a recording was, what the peak guard took off its level (None where the level is not
    that of the input), remarks about it, and whether silence stands for it.
    """

    seconds: float
    guarded_db: float | None = None
    remarks: tuple[str, ...] = ()
    silenced: bool = False


def keyed(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for these names, whoever else there is and in what order."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


@dataclass(frozen=True)
class DrawnChange:
    """One number drawn uniformly from [low, high], once per ``per`` and seed, and done to a voice.

    The number is a McAdams coefficient, to which pole angles of the vocal tract filter are raised;
    where the ``name`` is pitch, semitones by which the pitch is moved with the WORLD vocoder and
    nothing else: what everybody tries first, and weak. It depends on the seed and on the names of
    the speaker and the session alone: not on which other recordings there are, their order, or the
    number of workers. Who knows the seed and the names knows the numbers: to protect real voices,
    keep the seed secret.
    """

    name: str
    low: float
    high: float
    seed: int = 0
    per: str = "speaker"

    def __post_init__(self) -> None:
        ends = f"found {self.low} to {self.high}"
        if self.name != PITCH and not 0.0 < self.low <= self.high:
            raise InputError(f"McAdams coefficients: expected 0 < low ≤ high, {ends}")
        if not self.low <= self.high:
            raise InputError(f"{self.name}: expected low ≤ high, {ends}")
        if self.per not in SCOPES:
            raise InputError(f"coefficient per: expected {', '.join(SCOPES)}, found {self.per}")

    def coefficient(self, recording: Recording) -> float:
        """The number of a recording."""
        if self.low == self.high:
            return self.low
        within = {"session": [recording.session or ""], "utterance": [recording.utterance]}
        whose = [] if self.per == "global" else [recording.speaker, *within.get(self.per, [])]
        drawn = keyed(self.seed, *whose)
        return float(drawn.uniform(self.low, self.high))

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Write the transformed recording to ``output``, 16 kHz mono."""
        audio = read_audio(recording.path)
        samples, number = audio.samples.astype(np.float64), self.coefficient(recording)
        if self.name == PITCH:
            done = synthesised(shifted(analysed(samples), number), samples)
        else:
            done = mcadams(samples, number)
        write_audio(output, done.samples)
        return Protected(audio.seconds, done.guarded_db, audio.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """What was done; the seed of a random safeguard only where ``key`` asks for it."""
        what = "semitones" if self.name == PITCH else "coefficient"
        if self.low == self.high:
            return {"method": self.name, what: self.low}
        secret = {"seed": self.seed} if key else {}
        drawn = {what: [self.low, self.high], "drawn": "uniform", "per": self.per}
        return {"method": self.name, **drawn, **secret}


def command_words(command: str) -> list[str]:
    """A command split into words, before any name is filled in."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"command {command!r}: expected quotes that are closed: {error}") from None


def command_content(command: str) -> str:
    """Names what a command does by the content of its program and of all files among its words,
    those of ``--option=FILE`` too; not by what these load themselves.
    """
    first, *words = command_words(command)
    named = [shutil.which(first) or first, *words, *(word.partition("=")[2] for word in words)]
    files = [run.content_digest(word) for word in named if os.path.isfile(word)]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


def run_command(path: str, command: str, fields: Mapping[str, str], timeout: float) -> str:
    """What a command writes, its ``fields`` filled in after it was split into words; at its time
    limit all it started is ended. A failure is one line that begins with ``path``.
    """
    place = re.compile("|".join(map(re.escape, fields)))
    words = [place.sub(lambda m: fields[m[0]], word) for word in command_words(command)]
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        with subprocess.Popen(
            words, stdin=none, stdout=pipe, stderr=pipe, start_new_session=True, errors="replace"
        ) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except BaseException:
                with suppress(OSError, AttributeError):  # Windows has no groups
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                raise
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{path}: {words[0]}: {error}") from None
    if process.returncode:
        said = (errors.strip().splitlines() or ["nothing on stderr"])[-1]
        raise InputError(f"{path}: exit code {process.returncode}: {said}")
    return output


@dataclass(frozen=True)
class External:
    """Any anonymiser as a command, with ``{input}``, ``{output}`` and ``{speaker}`` filled in.

    The command is split into words first and run without a shell, so that no file or speaker
    name can be read as anything but itself.
    """

    command: str
    name: str = "external"
    timeout: float = 600.0
    content: str = field(init=False)

    def __post_init__(self) -> None:
        for place in ("{input}", "{output}"):
            if place not in self.command:
                raise InputError(f"command {self.command!r}: expected {place} in it")
        if shutil.which(tool := command_words(self.command)[0]) is None:
            raise InputError(f"command {self.command!r}: expected a program, found no {tool}")
        object.__setattr__(self, "content", command_content(self.command))

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Run the command on a ``recording``; its output must be readable audio to get its name."""
        if recording.speaker.startswith("-") and "{speaker}" in command_words(self.command):
            raise InputError(
                recording.path, "a speaker that is no option of the command", recording.speaker
            )
        original = read_audio(recording.path)
        with run.atomic_path(output) as partial, as_file(recording.path, original) as path:
            fields = {"{input}": path, "{output}": str(partial), "{speaker}": recording.speaker}
            run_command(str(recording.path), self.command, fields, self.timeout)
            if not partial.is_file():
                raise InputError(f"{recording.path}: the command wrote no output")
            read_audio(partial)
        return Protected(original.seconds, None, original.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """What was done, with the SHA-256 of the command's files; there is no ``key``."""
        return {"method": self.name, "command": self.command, "sha256": self.content}


def safeguard(
    method: str,
    *,
    seed: int = 0,
    per: str = "speaker",
    low: float | None = None,
    high: float | None = None,
) -> Safeguard:
    """The safeguard whose ``method`` is b2, b2r or b2w (:data:`RANGES`), pitch or restate.

    ``seed`` and ``per`` (global, speaker, session or utterance) say how coefficients are drawn, as
    in :class:`DrawnChange`; ``low`` and ``high`` replace the ends of the method's range. That of
    pitch is one of semitones, four up for all unless ends are given. Restate has no key and takes
    none of them; ``restate:GRAMMAR`` hears the words of a grammar of
    :func:`~unmask.speech.recogniser` alone, such as ``restate:digits``.
    """
    name, _, grammar = method.partition(":")
    if name == RESTATE:
        from unmask.speech.recognisers import recogniser
        from unmask.speech.restating import Restated

        needed("pocketsphinx", "pocketsphinx", RESTATE)
        return Restated(recogniser(grammar=grammar or None))
    if method not in (*RANGES, PITCH):
        known = ", ".join((*RANGES, PITCH, RESTATE))
        raise InputError(f"method {method}: expected one of {known}")
    usual_low, usual_high = RANGES.get(method, (SEMITONES, SEMITONES))
    ends = usual_low if low is None else low, usual_high if high is None else high
    return DrawnChange(method, *ends, seed, per)


@dataclass(frozen=True)
class Anonymised:
    """What became of each recording.

    ``failures`` are the lines of those that could not be protected, ``remarks`` those of files
    that were but have something to know about. ``guarded`` counts files whose level had to stay
    below the input's for their peaks to fit, ``lowest_db`` is the largest such difference;
    ``silenced`` counts those in whose place stands silence.
    """

    done: int
    failures: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float
    guarded: int
    lowest_db: float
    silenced: int


def anonymise(
    recordings: Sequence[Recording],
    output: str | os.PathLike[str],
    safeguard: Safeguard,
    *,
    suffix: str = ".flac",
    keep_key: bool = False,
) -> Anonymised:
    """Write the protected version of every recording below ``output``, as speaker/…/utterance.

    ``recordings`` are those of :func:`~unmask.speech.recordings`. ``safeguard`` is a
    :class:`DrawnChange`, an :class:`External` command or another object that protects one
    recording; ``suffix`` is ``.flac`` or ``.wav``. Recordings are shared among the workers of the
    current place, processes of this machine unless that is a cluster.

    A recording that fails is reported and the rest goes on; nothing half-written stays.
    ``unmask-anonymise.json`` beside the audio says what was done. The coefficients of the
    speakers and the seed they come from undo the disguise: they are written, to the same file,
    only with ``keep_key``.
    """
    root = Path(output)
    targets = [root / f"{recording.place}{suffix}" for recording in recordings]
    first: dict[Path, Recording] = {}
    for recording, target in zip(recordings, targets, strict=True):
        other = first.setdefault(target, recording)
        if other is not recording:
            raise InputError(
                f"{target}: expected one recording, found two that would be written there:"
                f" {other.path} and {recording.path}"
            )
        if target.resolve() == recording.path.resolve():
            raise InputError(f"{target}: expected another output folder, found the input's")
    run.check_output_folder(root, signs=[METADATA])
    given = {run.identity(recording.file): recording.file for recording in recordings}
    for target in targets:
        if (which := run.identity(target)) is not None and which in given:
            raise InputError(f"{target}: is an input ({given[which]}), which is never overwritten")
    with run.locked(run.make_folder(root)):
        return _anonymise(recordings, root, targets, safeguard, suffix, keep_key=keep_key)


def _anonymise(
    recordings: Sequence[Recording],
    root: Path,
    targets: Sequence[Path],
    safeguard: Safeguard,
    suffix: str,
    *,
    keep_key: bool,
) -> Anonymised:
    """Write into a folder that this run holds."""
    tool: dict[str, object] = {"tool": f"unmask {__version__}"}
    # A run that is killed leaves a folder that says whose it is, and that it is not finished.
    unfinished = {**tool, "finished": False}
    run.write_whole(root / METADATA, (json.dumps(unfinished) + "\n").encode())
    for folder in sorted({target.parent for target in targets}):
        run.make_folder(folder)
    files = tuple(
        (str(one.path), one.utterance, one.speaker, one.session, str(target), one.digest)
        for one, target in zip(recordings, targets, strict=True)
    )

    def made(some: tuple[_File, ...], run_of: str = "") -> list[dict[str, Any]]:
        parts = run.run(partial(_protect, safeguard), (some, run_of), run.ranges_of(len(some), 1))
        return [json.loads(str(part["done"])) for part in parts]

    with file_workers(alone=len(recordings) < 2):
        rows = made(files)
        # What an earlier run has done may have been removed or replaced since.
        there = [replace(one, path=to).digest for one, to in zip(recordings, targets, strict=True)]
        lost = [n for n, row in enumerate(rows) if row.get("made", there[n]) != there[n]]
        again = made(tuple(files[n] for n in lost), secrets.token_hex(8)) if lost else []
        for n, row in zip(lost, again, strict=True):
            rows[n] = row
    done = [
        (recording, Protected(**row["protected"]))
        for recording, row in zip(recordings, rows, strict=True)
        if "failure" not in row
    ]
    audio = (p for p in run.files_below(root) if p.suffix.lower() in SUFFIXES and p.name[0] != ".")
    older = sorted(set(audio) - set(targets))
    levels = [result.guarded_db for _, result in done if result.guarded_db is not None]
    guarded = [below for below in levels if below > 0.0]
    summary = Anonymised(
        done=len(done),
        failures=tuple(row["failure"] for row in rows if "failure" in row),
        remarks=(
            *(f"{recording.path}: {text}" for recording, result in done for text in result.remarks),
            *(f"{one}: of no recording of this run ({len(older)} such files)" for one in older[:1]),
        ),
        seconds=sum(result.seconds for _, result in done),
        guarded=len(guarded),
        lowest_db=max(guarded, default=0.0),
        silenced=sum(result.silenced for _, result in done),
    )
    metadata: dict[str, object] = {
        **tool,
        **safeguard.describe(key=keep_key),
        "files": summary.done,
        "failed": len(summary.failures),
        "silenced": summary.silenced,
        "seconds": round(summary.seconds, 3),
    }
    if levels:
        metadata["level"] = {
            "restored": "root mean square of the input",
            "files below it for their peaks to fit": summary.guarded,
            "largest difference in dB": round(summary.lowest_db, 2),
        }
    if keep_key and isinstance(safeguard, DrawnChange):
        metadata["coefficients"] = {
            one.utterance: round(safeguard.coefficient(one), 6) for one in recordings
        }
    run.write_whole(root / METADATA, (json.dumps(metadata, indent=1) + "\n").encode())
    return summary


_File = tuple[str, str, str, str | None, str, str]


def _protect(
    safeguard: Safeguard, xp: Xp, shared: tuple[tuple[_File, ...], str], rows: Range
) -> Arrays:
    """Protect one recording: what was done and made, or the line of its failure."""
    path, utterance, speaker, session, target, _ = shared[0][rows[0]]
    recording = Recording(Path(path), utterance, speaker, session)
    done: dict[str, Any]
    try:
        with run.overwriting():  # The folder is unmask's; inputs were told apart before.
            done = {"protected": asdict(safeguard.protect(recording, Path(target)))}
        done["made"] = run.content_digest(target)
    except MissingExtra:
        raise
    except Exception as error:
        kept = f"; {target} is of an earlier run" if os.path.exists(target) else ""
        done = {"failure": failure(path, error) + kept}
    return {"done": np.array(json.dumps(done))}
