"""``unmask demo``: three speaker encoders on real trials, from data bundled with the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from unmask.atomic import write_whole
from unmask.cli import common
from unmask.data import demo_scores
from unmask.detection.evaluate import evaluate
from unmask.figures import save_all
from unmask.report import document_of_evaluation, render
from unmask.report.detection_figures import detection_figures
from unmask.trials import read_scores


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path(
        "unmask-demo"
    ),
    ci: common.ReplicatesOption = None,
    seed: common.SeedOption = 0,
    quiet: common.QuietOption = False,
) -> None:
    """Compare three speaker encoders on real trials of 60 voices; table and figures."""
    with demo_scores() as path:
        scores = read_scores(path)
    with common.progress("bootstrap", quiet=quiet) as bar:
        evaluation = evaluate(scores, replicates=ci, seed=seed, progress=bar)
    document = document_of_evaluation(evaluation)
    output.mkdir(parents=True, exist_ok=True)
    save_all(detection_figures(scores, evaluation), output)
    for name, format in (("results.json", "json"), ("table.md", "md"), ("table.tex", "latex")):
        write_whole(output / name, render(document, format).encode())
    sys.stdout.write(render(document))
    sys.stdout.write(
        f"\nSpeech: AudioMNIST (MIT), one session and room per speaker, so errors are optimistic.\n"
        f"Figures, table and JSON in {output}/ — open {output / 'det.html'} first.\n"
    )
