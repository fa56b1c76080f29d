"""``unmask anonymise``: protect recordings with a safeguard."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Literal

import typer

from unmask import speech
from unmask.cli.common import whole_number
from unmask.cli.embed import Recorded
from unmask.cli.options import argument, option
from unmask.errors import InputError
from unmask.trials import read_embeddings


def anonymise(
    recorded: Recorded,
    source: Path = argument("A folder of audio, a Kaldi directory, or a list of files."),
    output: Path = option("Folder for the audio.", "--output", "-o", default=...),
    method: Literal["b2", "b2r", "b2w", "b1", "pitch"] | None = option(
        "McAdams coefficient: b2 0.8, b2r 0.7–0.9, b2w 0.5–0.9; pitch: 4 semitones up; b1:"
        " B1's pooled voices, WORLD in place of its neural vocoder.",
        "--method",
        "-m",
    ),
    command: str | None = option("Any anonymiser: 'tool {input} {output} {speaker}'."),
    seed: str = option("Seed of the coefficients, or 'random' for a secret one.", default="0"),
    per: Literal["speaker", "session", "utterance"] = option(
        "What shares one coefficient.", default="speaker"
    ),
    low: float | None = option("Lowest coefficient, or semitones."),
    high: float | None = option("Highest coefficient, or semitones."),
    keep_key: bool = option(
        "Write seed and coefficients too: they undo the disguise.", default=False
    ),
    pool: Path | None = option("Recordings whose voices b1 draws from."),
    pool_speakers: str | None = option("Whose the pool's files are."),
    pool_embeddings: Path | None = option(
        "Embeddings of the pool by CAM++.", show_default="made anew"
    ),
    gender: tuple[Path, ...] = option(
        "Speaker and gender, of both sides; b1 draws from the same one."
    ),
    audio: Literal["flac", "wav"] = option("Audio format.", default="flac"),
) -> None:
    """Protect recordings; assess them: b2, b2r and b2w hide hardly anyone."""
    if (method is None) == (command is None):
        raise typer.BadParameter("give either --method or --command")
    if (method == "b1") != (pool is not None):
        raise typer.BadParameter("--method b1 and --pool belong together")
    number = (
        secrets.randbits(64)
        if seed == "random"
        else whole_number(seed, "--seed", "a whole number or random")
    )
    files = recorded.read(source)
    if per == "session" and any(one.session is None for one in files):
        raise InputError(f"{source}: --per session needs a session for every recording")
    with recorded.running("anonymising"):
        chosen: speech.Safeguard
        if command is not None:
            chosen = speech.External(command)
        elif pool is not None:
            if per != "speaker":
                raise typer.BadParameter("--method b1: expected --per speaker")
            chosen = speech.pooled_voices(
                files,
                speech.recordings(pool, speakers=pool_speakers),
                gender={k: v for path in gender for k, v in speech.read_gender(path).items()}
                or None,
                embeddings=None if pool_embeddings is None else read_embeddings(pool_embeddings),
                seed=number,
            )
            for notice in chosen.notices:
                recorded.remark(f"note: {notice.sentence}")
        else:
            assert method is not None
            chosen = speech.safeguard(method, seed=number, per=per, low=low, high=high)
        result = speech.anonymise(files, output, chosen, suffix=f".{audio}", keep_key=keep_key)
    recorded.problems(result)
    if result.guarded:
        recorded.remark(
            f"{result.guarded} files stay below the input's level, by up to"
            f" {result.lowest_db:.1f} dB, for their peaks to fit"
        )
    recorded.remark(
        f"{result.done} of {len(files)} files, {result.seconds / 60:.1f} minutes; wrote {output}"
    )
    if result.failures:
        raise typer.Exit(1)
