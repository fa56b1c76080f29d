"""``unmask demo``: the case study of the papers, from data bundled with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.assess import run
from unmask.report import demo_config


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path(
        "unmask-demo"
    ),
    ci: common.ReplicatesOption = None,
    seed: common.SeedOption = 0,
    quiet: common.QuietOption = False,
) -> None:
    """Assess four safeguards on sixty real voices with every framework; some minutes."""
    run(demo_config(output, seed=seed, replicates=ci), output, quiet=quiet)
