"""``unmask demo``: the case study of the papers, from data bundled with the package."""

from __future__ import annotations

from pathlib import Path

from unmask.cli.assess import run
from unmask.cli.common import Intervals, Terminal
from unmask.cli.options import group, option
from unmask.report import demo_config


def demo(
    terminal: Terminal,
    output: Path = option("Folder to write.", "--output", "-o", default="unmask-demo"),
    intervals: Intervals = group(level=0.95),
) -> None:
    """Assess four safeguards on sixty real voices with every framework; some minutes."""
    config = demo_config(output, seed=intervals.seed, replicates=intervals.ci)
    run(config, output, terminal)
