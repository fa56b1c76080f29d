"""Safeguards: B2 and its random versions, and any other anonymiser as a command."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from unmask.errors import InputError
from unmask.speech.audio import read_audio, write_audio
from unmask.speech.corpus import Recording
from unmask.speech.poles import mcadams

RANGES = {"b2": (0.8, 0.8), "b2r": (0.7, 0.9), "b2w": (0.5, 0.9)}
"""Ranges of the McAdams coefficient: B2 and B2r of Patino et al., B2w of later challenges."""
SCOPES = ("speaker", "session", "utterance")
_FIELD = re.compile(r"\{(?:input|output|speaker)\}")


class Safeguard(Protocol):
    """Turns one recording into a protected one and tells what it did to the level."""

    @property
    def name(self) -> str: ...

    def protect(self, recording: Recording, output: Path) -> Protected: ...

    def describe(self, *, key: bool = False) -> dict[str, object]: ...


@dataclass(frozen=True)
class Protected:
    """How long a recording was, what the peak guard took off its level, and remarks about it."""

    seconds: float
    guarded_db: float = 0.0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class McAdams:
    """The McAdams coefficient drawn uniformly from [low, high], once per ``per`` and seed.

    A coefficient depends on the seed and on the names of the speaker and the session alone: not
    on which other recordings there are, their order, or the number of workers. Who knows the
    seed and the names knows the coefficients: to protect real voices, keep the seed secret.
    """

    name: str
    low: float
    high: float
    seed: int = 0
    per: str = "speaker"

    def __post_init__(self) -> None:
        if not 0.0 < self.low <= self.high:
            raise InputError(
                f"McAdams coefficients: expected 0 < low ≤ high, found {self.low} to {self.high}"
            )
        if self.per not in SCOPES:
            raise InputError(f"coefficient per: expected {', '.join(SCOPES)}, found {self.per}")

    def coefficient(self, recording: Recording) -> float:
        """α of a recording."""
        if self.low == self.high:
            return self.low
        scope = [recording.speaker]
        if self.per == "session":
            scope.append(recording.session or "")
        elif self.per == "utterance":
            scope.append(recording.utterance)
        digest = hashlib.sha256("\0".join(scope).encode()).digest()
        words = np.frombuffer(digest, dtype="<u4").tolist()
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, *words]))
        return float(generator.uniform(self.low, self.high))

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Write the transformed recording, 16 kHz mono."""
        audio = read_audio(recording.path)
        try:
            transformed = mcadams(audio.samples, self.coefficient(recording))
        except InputError as error:
            raise InputError(f"{recording.path}: {error}") from None
        write_audio(output, transformed.samples)
        return Protected(audio.seconds, transformed.guarded_db, audio.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """What was done; the seed of a random safeguard only where ``key`` asks for it."""
        known: dict[str, object] = {
            "method": self.name,
            "coefficient": self.low if self.low == self.high else [self.low, self.high],
        }
        if self.low != self.high:
            known |= {"drawn": "uniform", "per": self.per}
            known |= {"seed": self.seed} if key else {}
        return known


@dataclass(frozen=True)
class External:
    """Any anonymiser as a command, with ``{input}``, ``{output}`` and ``{speaker}`` filled in.

    The command is split into words first and run without a shell, so that no file or speaker
    name can be read as anything but itself.
    """

    command: str
    name: str = "external"
    timeout: float = 600.0

    def __post_init__(self) -> None:
        for field in ("{input}", "{output}"):
            if field not in self.command:
                raise InputError(f"command {self.command!r}: expected {field} in it")
        self._words()

    def _words(self) -> list[str]:
        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise InputError(
                f"command {self.command!r}: expected quotes that are closed: {error}"
            ) from None

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Run the command; what it wrote must be readable audio before it gets its name."""
        partial = output.with_name(f".part-{output.name}")
        values = {
            "{input}": str(recording.path),
            "{output}": str(partial),
            "{speaker}": recording.speaker,
        }
        words = [_FIELD.sub(lambda m: values[m[0]], word) for word in self._words()]
        if recording.speaker.startswith("-") and "{speaker}" in self._words():
            raise InputError(
                f"{recording.path}: expected a speaker that is no option of the command, found"
                f" {recording.speaker}"
            )
        original = read_audio(recording.path)
        try:
            code, errors = _run(words, self.timeout)
            if code:
                said = (errors.strip().splitlines() or ["nothing on stderr"])[-1]
                raise InputError(f"{recording.path}: exit code {code}: {said}")
            if not partial.is_file():
                raise InputError(f"{recording.path}: the command wrote no output")
            read_audio(partial)
            partial.replace(output)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{recording.path}: {words[0]}: {error}") from None
        finally:
            partial.unlink(missing_ok=True)
        return Protected(original.seconds, 0.0, original.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """What was done."""
        return {"method": self.name, "command": self.command}


def _run(words: list[str], timeout: float) -> tuple[int, str]:
    """Exit code and standard error of a command; at its time limit all it started is ended."""
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    ) as process:
        try:
            _, errors = process.communicate(timeout=timeout)
        except BaseException:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
        return process.returncode, errors


def safeguard(
    method: str,
    *,
    seed: int = 0,
    per: str = "speaker",
    low: float | None = None,
    high: float | None = None,
) -> McAdams:
    """B2, B2r or B2w by name; ``low`` and ``high`` replace the ends of its range."""
    if method not in RANGES:
        raise InputError(f"method {method}: expected one of {', '.join(RANGES)}")
    usual_low, usual_high = RANGES[method]
    return McAdams(
        method,
        usual_low if low is None else low,
        usual_high if high is None else high,
        seed,
        per,
    )
