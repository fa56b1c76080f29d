"""Other programs: a command with places for names, run without a shell."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from unmask.errors import InputError


def command_words(command: str) -> list[str]:
    """A command split into words, before any name is filled in."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"command {command!r}: expected quotes that are closed: {error}") from None


def run_command(path: str, command: str, fields: Mapping[str, str], timeout: float) -> str:
    """What a command writes, its ``fields`` filled in after it was split into words; at its time
    limit all it started is ended. A failure is one line that begins with ``path``.
    """
    place = re.compile("|".join(map(re.escape, fields)))
    words = [place.sub(lambda m: fields[m[0]], word) for word in command_words(command)]
    try:
        code, output, errors = _ended(words, timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{path}: {words[0]}: {error}") from None
    if code:
        said = (errors.strip().splitlines() or ["nothing on stderr"])[-1]
        raise InputError(f"{path}: exit code {code}: {said}")
    return output


def _ended(words: list[str], timeout: float) -> tuple[int, str, str]:
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
        return process.returncode, output, errors
