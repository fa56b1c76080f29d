"""``unmask cpmap``: performance on every mixture of easy and hard trials."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.scores import load
from unmask.errors import InputError
from unmask.report import document
from unmask.run import write_whole
from unmask.stress import cells_table, cp_maps
from unmask.trials import Scores, read_key


class Metric(StrEnum):
    """What is measured in each cell."""

    eer = "eer"
    min_dcf = "min_dcf"


class Combine(StrEnum):
    """How several references become one."""

    rank = "rank"
    mean = "mean"


def cpmap(
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...", help="Score files of one trial list, one system or more each."
        ),
    ],
    key: common.KeyOption = None,
    speakers: common.SpeakersOption = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="Systems in the order of the roadmap.", show_default="all"),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            "-r",
            help="What tells hard trials from easy: a system, a numeric column, or a score file; "
            "may be repeated. A compared system that orders alone is at a disadvantage.",
            show_default="all compared systems; a single system's own scores",
        ),
    ] = None,
    combine: Annotated[
        Combine, typer.Option("--combine", help="Several references: mean of ranks or of scores.")
    ] = Combine.rank,
    grid: Annotated[int, typer.Option("--grid", help="Cells along each axis, up to 1000.")] = 100,
    metric: Annotated[
        list[Metric] | None,
        typer.Option(
            "--metric", help="Value of a cell; twice for both, side by side.", show_default="eer"
        ),
    ] = None,
    p_target: Annotated[
        float, typer.Option("--p-target", help="Prior of the detection cost.")
    ] = 0.01,
    delta: Annotated[
        list[str] | None,
        typer.Option(
            "--delta",
            metavar="A:B",
            help="Compare B with A; may be repeated. A tree of comparisons makes the roadmap.",
            show_default="each system with the one before",
        ),
    ] = None,
    subset: Annotated[
        str | None,
        typer.Option("--subset", help="Trials of your deployment (a key), placed on the maps."),
    ] = None,
    below: Annotated[
        float, typer.Option("--below", help="Give the share of cells under this value.")
    ] = 0.05,
    cells: Annotated[
        Path | None, typer.Option("--cells", help="Write the cells of all maps as CSV there.")
    ] = None,
    ci: Annotated[
        int | None,
        typer.Option(
            "--ci",
            min=0,
            help="Bootstrap replicates of the intervals; 0 for none.",
            show_default="1000, none beyond 200,000 trials",
        ),
    ] = None,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
    input_format: common.InputFormatOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    quiet: common.QuietOption = False,
) -> None:
    """C-P maps, delta maps and roadmap: how systems perform on hard and easy trials."""
    read = partial(
        load,
        key=key,
        speakers=speakers,
        systems=None,
        format=input_format,
        missing=missing,
        duplicates=duplicates,
        quiet=quiet,
    )
    table = read(scores)
    mapped = len(table.systems)
    named, files = _references(reference or [], table)
    if files:
        table = Scores.merged(table, read(files))
    names = list(table.systems)
    assessments = []
    for one in dict.fromkeys(metric or [Metric.eer]):
        with common.running("bootstrap", on, workers, state, quiet=quiet):
            assessment = cp_maps(
                table,
                systems=system or names[:mapped],
                references=[*named, *names[mapped:]],
                combine=combine.value,
                grid=grid,
                metric=one.value,
                p_target=p_target,
                deltas=None if delta is None else [_pair(text, names) for text in delta],
                subset=None if subset is None else read_key(subset, duplicates=duplicates.value),
                subset_name="deployment" if subset is None else Path(subset).name,
                below=below,
                replicates=ci,
                level=level,
                seed=seed,
            )
        assessments.append(assessment)
    if cells is not None:
        write_whole(cells, cells_table(assessments).write_csv().encode())
        common.remark(f"cells in {cells}", quiet=quiet)
    further = {"further": assessments[1:]}
    common.draw(assessments[0], figures, formats=figure_formats, quiet=quiet, **further)
    found = document(assessments[0], **further)
    common.give(found, format=format, output=output, quiet=quiet)


def _references(given: list[str], table: Scores) -> tuple[list[str], list[str]]:
    """Names of columns of the table, and paths of further score files."""
    columns = {*table.systems, *table.columns}
    files = [name for name in given if name not in columns and Path(name).is_file()]
    return [name for name in given if name not in files], files


def _pair(text: str, names: list[str]) -> tuple[str, str]:
    """``A:B`` as two systems, whose names may hold colons themselves."""
    cuts = [i for i, letter in enumerate(text) if letter == ":"]
    pairs = [(text[:cut], text[cut + 1 :]) for cut in cuts]
    known = [pair for pair in pairs if set(pair) <= set(names)]
    if known or len(pairs) == 1:
        return (known or pairs)[0]
    raise InputError(f"--delta: expected A:B with two of {', '.join(names)}, found {text}")
