"""``unmask train``: a speaker encoder from recordings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import typer

from unmask.cli.common import remark
from unmask.cli.embed import Recorded
from unmask.cli.options import argument, group, option
from unmask.speech import Recipe, Status, export_onnx, train as train_encoder

_LINE_SECONDS = 10.0


def train(
    recorded: Recorded,
    sources: list[Path] = argument(
        "Folders of audio, Kaldi directories, lists of files.", "RECORDINGS"
    ),
    output: Path = option("Folder for the encoder.", "--output", "-o", default=...),
    start: str | None = option(
        "Weights to begin with: campplus, or the folder of an encoder.",
        "--from",
        show_default="random ones",
    ),
    recipe: Recipe = group(
        network=option(
            "ivector is trained by EM.",
            "--network",
            "-n",
            metavar="<campplus|tdnn|resnet34|ecapa|ivector>",
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
        made = train_encoder(
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
        recorded.remark(f"wrote {export_onnx(made.folder, onnx)}")
    rate = "" if made.eer is None else f", validation EER {100 * made.eer:.2f} %"
    recorded.remark(
        f"{recipe.network}: {made.speakers} speakers, {made.steps} steps in"
        f" {made.seconds / 60:.1f} minutes{rate}; wrote {made.folder}"
    )
    if made.failures:
        raise typer.Exit(1)


def _watch(*, quiet: bool) -> Callable[[Status], None]:
    """A line with loss, speed and remaining time, every few seconds."""
    last = 0.0

    def line(status: Status) -> None:
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
