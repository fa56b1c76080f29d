"""``unmask anonymise``: protect recordings with a safeguard."""

from __future__ import annotations

import secrets
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.embed import SpeakersOption, WorkersOption
from unmask.errors import InputError
from unmask.run import place, reporting
from unmask.speech import External, Safeguard, recordings, safeguard
from unmask.speech import anonymise as anonymise_recordings


class Method(StrEnum):
    """Built-in safeguards."""

    b2 = "b2"
    b2r = "b2r"
    b2w = "b2w"


class Scope(StrEnum):
    """What shares one coefficient."""

    speaker = "speaker"
    session = "session"
    utterance = "utterance"


class AudioFormat(StrEnum):
    """How audio is written."""

    flac = "flac"
    wav = "wav"


def anonymise(
    source: Annotated[
        Path, typer.Argument(help="A folder of audio, a Kaldi directory, or a list of files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the audio.")],
    method: Annotated[
        Method | None,
        typer.Option(
            "--method", "-m", help="McAdams coefficient: b2 0.8, b2r 0.7–0.9, b2w 0.5–0.9."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", help="Any anonymiser: 'tool {input} {output} {speaker}'."),
    ] = None,
    seed: Annotated[
        str,
        typer.Option("--seed", help="Seed of the coefficients, or 'random' for a secret one."),
    ] = "0",
    per: Annotated[Scope, typer.Option("--per", help="What shares one coefficient.")] = (
        Scope.speaker
    ),
    low: Annotated[float | None, typer.Option("--low", help="Lowest coefficient.")] = None,
    high: Annotated[float | None, typer.Option("--high", help="Highest coefficient.")] = None,
    keep_key: Annotated[
        bool,
        typer.Option("--keep-key", help="Write seed and coefficients too: they undo the disguise."),
    ] = False,
    speakers: SpeakersOption = None,
    audio: Annotated[AudioFormat, typer.Option("--audio", help="Audio format.")] = AudioFormat.flac,
    workers: WorkersOption = None,
    quiet: common.QuietOption = False,
) -> None:
    """Protect recordings; the same folders and names below the output folder."""
    if (method is None) == (command is None):
        raise typer.BadParameter("give either --method or --command")
    chosen: Safeguard
    if command is not None:
        chosen = External(command)
    else:
        assert method is not None
        number = secrets.randbits(64) if seed == "random" else _number(seed)
        chosen = safeguard(method.value, seed=number, per=per.value, low=low, high=high)
    found = recordings(source, speakers=speakers)
    if per is Scope.session and any(one.session is None for one in found):
        raise InputError(f"{source}: --per session needs a session for every recording")
    here = place(workers=workers)
    with here, common.progress("anonymising", quiet=quiet) as bar, reporting(bar):
        result = anonymise_recordings(
            found, output, chosen, suffix=f".{audio.value}", keep_key=keep_key
        )
    for line in result.remarks:
        common.remark(f"remark: {line}", quiet=quiet)
    for line in result.failures:
        common.remark(f"unmask: {line}")
    if result.guarded:
        common.remark(
            f"{result.guarded} files stay below the input's level, by up to"
            f" {result.lowest_db:.1f} dB, for their peaks to fit",
            quiet=quiet,
        )
    common.remark(
        f"{result.done} of {len(found)} files, {result.seconds / 60:.1f} minutes; wrote {output}",
        quiet=quiet,
    )
    if result.failures:
        raise typer.Exit(1)


def _number(seed: str) -> int:
    if not seed.isdigit():
        raise typer.BadParameter(f"--seed: expected a whole number or random, found {seed}")
    return int(seed)
