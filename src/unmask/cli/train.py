"""``unmask train``: a speaker encoder from recordings."""

from __future__ import annotations

import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.embed import SpeakersOption, WorkersOption
from unmask.run import place, reporting
from unmask.speech import Recipe, Status, export_onnx, recordings
from unmask.speech import train as train_encoder

_LINE_SECONDS = 10.0


class Network(StrEnum):
    """What is trained."""

    campplus = "campplus"
    tdnn = "tdnn"
    resnet34 = "resnet34"
    ecapa = "ecapa"
    ivector = "ivector"


class Pooling(StrEnum):
    """From frames to one vector."""

    tsp = "tsp"
    asp = "asp"


class Loss(StrEnum):
    """What training lowers."""

    softmax = "softmax"
    am = "am"
    aam = "aam"


class Precision(StrEnum):
    """Numbers of the network."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"


_USUAL = Recipe()


def train(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDINGS", help="Folders of audio, Kaldi directories, lists of files."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the encoder.")],
    network: Annotated[
        Network, typer.Option("--network", "-n", help="ivector is trained by EM.")
    ] = Network.campplus,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Weights to begin with: campplus, or the folder of an encoder.",
            show_default="random ones",
        ),
    ] = None,
    pooling: Annotated[
        Pooling | None,
        typer.Option("--pooling", help="Statistics over time.", show_default="the network's"),
    ] = None,
    loss: Annotated[Loss, typer.Option("--loss", help="am, aam: with a margin.")] = Loss.aam,
    margin: Annotated[float, typer.Option("--margin", help="Of am and aam.")] = _USUAL.margin,
    scale: Annotated[float, typer.Option("--scale", help="Of am and aam.")] = _USUAL.scale,
    margin_steps: Annotated[
        int | None,
        typer.Option(
            "--margin-steps", help="Steps in which the margin rises.", show_default="a fifth"
        ),
    ] = None,
    crop: Annotated[float, typer.Option("--crop", help="Seconds of a crop.")] = _USUAL.crop,
    batch: Annotated[int, typer.Option("--batch", help="Crops in a step.")] = _USUAL.batch,
    epochs: Annotated[
        int, typer.Option("--epochs", help="Times that each recording is taken.")
    ] = _USUAL.epochs,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Steps, instead of --epochs.")
    ] = None,
    rate: Annotated[float, typer.Option("--rate", help="Highest learning rate.")] = _USUAL.rate,
    decay: Annotated[float, typer.Option("--decay", help="Weight decay.")] = _USUAL.decay,
    warm_up: Annotated[
        int | None,
        typer.Option("--warm-up", help="Steps to the highest rate.", show_default="a twentieth"),
    ] = None,
    speeds: Annotated[
        list[float] | None,
        typer.Option("--speed", help="Also at this speed, as new speakers; may be repeated."),
    ] = None,
    same: Annotated[
        bool, typer.Option("--same-speakers", help="Other speeds are the same speakers.")
    ] = False,
    noise: Annotated[
        str | None, typer.Option("--noise", help="Folder of noise to add, 0 to 15 dB below.")
    ] = None,
    responses: Annotated[
        str | None, typer.Option("--responses", help="Folder of room impulse responses.")
    ] = None,
    augmented: Annotated[
        float, typer.Option("--augmented", help="Share of crops with noise or in a room.")
    ] = _USUAL.augmented,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="Recordings of other speakers.")
    ] = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            "--held-out",
            help="Speakers kept apart for a validation EER.",
            show_default="5 %, 2 to 50; none of fewer than 20",
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            "--every", help="Steps between validations and checkpoints.", show_default="an epoch"
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", help="End after so many validations without a better EER."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, or cuda for a GPU.")] = "cpu",
    precision: Annotated[
        Precision, typer.Option("--precision", help="auto: bf16 on a GPU.")
    ] = Precision.auto,
    bins: Annotated[
        int | None, typer.Option("--bins", help="Filterbanks.", show_default="80, tdnn 30")
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension",
            help="Of the vectors.",
            show_default="192, resnet34 256, tdnn 512, ivector 400",
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels", help="Of the layers.", show_default="tdnn, ecapa 512, resnet34 32"
        ),
    ] = None,
    components: Annotated[
        int, typer.Option("--components", help="Gaussians of ivector.")
    ] = _USUAL.components,
    iterations: Annotated[
        int, typer.Option("--iterations", help="Of EM, for ivector.")
    ] = _USUAL.iterations,
    full: Annotated[bool, typer.Option("--full", help="Full covariances of ivector.")] = False,
    onnx: Annotated[
        Path | None, typer.Option("--onnx", help="Write the network there as ONNX, too.")
    ] = None,
    seed: common.SeedOption = 0,
    speakers: SpeakersOption = None,
    workers: WorkersOption = None,
    quiet: common.QuietOption = False,
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
    quiet = quiet or not first
    recipe = Recipe(
        network=network.value,
        pooling=pooling.value if pooling is not None else "",
        loss=loss.value,
        margin=margin,
        scale=scale,
        margin_steps=margin_steps,
        bins=bins,
        dimension=dimension,
        channels=channels,
        crop=crop,
        batch=batch,
        epochs=epochs,
        steps=steps,
        rate=rate,
        decay=decay,
        warm_up=warm_up,
        speeds=tuple(speeds or ()),
        speeds_are_speakers=not same,
        noise=noise,
        responses=responses,
        augmented=augmented,
        held_out=held_out,
        every=every,
        patience=patience,
        precision=precision.value,
        seed=seed,
        components=components,
        iterations=iterations,
        full=full,
    )
    found = [one for source in sources for one in recordings(source, speakers=speakers)]
    apart = None if validation is None else recordings(validation, speakers=speakers)
    here = place(workers=workers)
    with here, common.progress("training", quiet=quiet) as bar, reporting(bar):
        made = train_encoder(
            found,
            output,
            recipe=recipe,
            start=start,
            validation=apart,
            device=device,
            watch=_Lines(quiet=quiet),
        )
    for line in made.remarks:
        common.remark(f"remark: {line}", quiet=quiet)
    for line in made.failures:
        common.remark(f"unmask: {line}")
    if onnx is not None and first:
        common.remark(f"wrote {export_onnx(made.folder, onnx)}", quiet=quiet)
    rate_text = "" if made.eer is None else f", validation EER {100 * made.eer:.2f} %"
    common.remark(
        f"{recipe.network}: {made.speakers} speakers, {made.steps} steps in"
        f" {made.seconds / 60:.1f} minutes{rate_text}; wrote {made.folder}",
        quiet=quiet,
    )
    if made.failures:
        raise typer.Exit(1)


class _Lines:
    """A line with loss, speed and remaining time, every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet or sys.stderr is None
        self.last = 0.0

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        if self.quiet or (now - self.last < _LINE_SECONDS and status.step < status.steps):
            return
        self.last = now
        eer = "" if status.eer is None else f", validation EER {100 * status.eer:.2f} %"
        common.remark(
            f"step {status.step} of {status.steps}: loss {status.loss:.3f}, {status.speed:.0f}"
            f" crops a second, {status.remaining / 60:.1f} minutes left{eer}"
        )
