"""``unmask compare``: two systems on the same trials."""

from __future__ import annotations

from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.scores import load
from unmask.engine import Battery
from unmask.engine import compare as compare_systems
from unmask.errors import InputError
from unmask.report import document
from unmask.run import Place


def compare(
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...", help="Two score files, or one file with several systems."
        ),
    ],
    key: common.KeyOption = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="The two systems, where the files have more."),
    ] = None,
    speakers: common.SpeakersOption = None,
    p_target: Annotated[
        list[float] | None,
        typer.Option("--p-target", help="Prior of the detection costs.", show_default="0.01"),
    ] = None,
    ci: common.ReplicatesOption = None,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
    input_format: common.InputFormatOption = None,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    quiet: common.QuietOption = False,
) -> None:
    """Two systems on the same trials: differences with intervals, which is better, how sure."""
    if len(scores) > 2:
        raise InputError(f"compare takes one or two score files, found {len(scores)}")
    Place(on, workers)
    table = load(
        scores,
        key=key,
        speakers=speakers,
        systems=None,
        format=input_format,
        missing=missing,
        duplicates=duplicates,
        quiet=quiet,
    )
    names = list(system or table.systems)
    if len(names) != 2:
        raise InputError(
            "compare needs two systems: name them with --system; "
            f"there are {', '.join(table.systems)}"
        )
    with common.running("bootstrap", on, workers, state, quiet=quiet):
        comparison = compare_systems(
            table,
            *names,
            battery=Battery(p_target=tuple(p_target or (0.01,))),
            replicates=ci,
            level=level,
            seed=seed,
        )
    if figures is not None:
        with common.running("charts", on, workers, quiet=quiet):
            common.draw(comparison, figures, formats=figure_formats, quiet=quiet)
    common.give(document(comparison), format=format, output=output, quiet=quiet)
