"""Other programs: a command with places for names, run without a shell."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from typing import NamedTuple

from unmask.errors import InputError


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    output: str
    errors: str


def command_words(command: str) -> list[str]:
    """A command split into words, before any name is filled in."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"command {command!r}: expected quotes that are closed: {error}") from None


def run_command(words: list[str], timeout: float) -> Ended:
    """Run a command; at its time limit all it started is ended."""
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
        return Ended(process.returncode, output, errors)
