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
from unmask.speech import (
    External,
    Safeguard,
    pooled_voices,
    read_gender,
    recordings,
    safeguard,
)
from unmask.speech import anonymise as anonymise_recordings
from unmask.trials import read_embeddings


class Method(StrEnum):
    """Built-in safeguards."""

    b2 = "b2"
    b2r = "b2r"
    b2w = "b2w"
    b1 = "b1"
    pitch = "pitch"


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
            "--method",
            "-m",
            help="McAdams coefficient: b2 0.8, b2r 0.7–0.9, b2w 0.5–0.9; pitch: 4 semitones up; b1:"
            " B1's pooled voices, WORLD in place of its neural vocoder.",
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
    low: Annotated[
        float | None, typer.Option("--low", help="Lowest coefficient, or semitones.")
    ] = None,
    high: Annotated[
        float | None, typer.Option("--high", help="Highest coefficient, or semitones.")
    ] = None,
    keep_key: Annotated[
        bool,
        typer.Option("--keep-key", help="Write seed and coefficients too: they undo the disguise."),
    ] = False,
    pool: Annotated[
        Path | None, typer.Option("--pool", help="Recordings whose voices b1 draws from.")
    ] = None,
    pool_speakers: Annotated[
        str | None, typer.Option("--pool-speakers", help="Whose the pool's files are.")
    ] = None,
    pool_embeddings: Annotated[
        Path | None,
        typer.Option(
            "--pool-embeddings",
            help="Embeddings of the pool by CAM++.",
            show_default="made anew",
        ),
    ] = None,
    gender: Annotated[
        list[Path] | None,
        typer.Option(
            "--gender", help="Speaker and gender, of both sides; b1 draws from the same one."
        ),
    ] = None,
    speakers: SpeakersOption = None,
    audio: Annotated[AudioFormat, typer.Option("--audio", help="Audio format.")] = AudioFormat.flac,
    workers: WorkersOption = None,
    quiet: common.QuietOption = False,
) -> None:
    """Protect recordings; the same folders and names below the output folder."""
    if (method is None) == (command is None):
        raise typer.BadParameter("give either --method or --command")
    if (method is Method.b1) != (pool is not None):
        raise typer.BadParameter("--method b1 and --pool belong together")
    number = secrets.randbits(64) if seed == "random" else _number(seed)
    found = recordings(source, speakers=speakers)
    if per is Scope.session and any(one.session is None for one in found):
        raise InputError(f"{source}: --per session needs a session for every recording")
    here = place(workers=workers)
    with here, common.progress("anonymising", quiet=quiet) as bar, reporting(bar):
        chosen: Safeguard
        if command is not None:
            chosen = External(command)
        elif pool is not None:
            if per is not Scope.speaker:
                raise typer.BadParameter("--method b1: expected --per speaker")
            chosen = pooled_voices(
                found,
                recordings(pool, speakers=pool_speakers),
                gender={k: v for path in gender for k, v in read_gender(path).items()}
                if gender
                else None,
                embeddings=None if pool_embeddings is None else read_embeddings(pool_embeddings),
                seed=number,
            )
            for notice in chosen.notices:
                common.remark(f"note: {notice.sentence}", quiet=quiet)
        else:
            assert method is not None
            chosen = safeguard(method.value, seed=number, per=per.value, low=low, high=high)
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
