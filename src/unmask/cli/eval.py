"""``unmask eval``: the detection and disclosure table of one system or several."""

from __future__ import annotations

from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.counted import counted
from unmask.cli.scores import load
from unmask.engine import Battery
from unmask.engine import evaluate as evaluate_scores
from unmask.report import document
from unmask.run import Place


def evaluate(
    scores: Annotated[
        list[str], typer.Argument(help="Score files; - reads stdin, .gz is read as it is.")
    ],
    key: common.KeyOption = None,
    speakers: common.SpeakersOption = None,
    system: Annotated[
        list[str] | None, typer.Option("--system", help="Only these systems (columns).")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Also by groups of this column, such as sex.")
    ] = None,
    p_target: Annotated[
        list[float] | None,
        typer.Option("--p-target", help="Prior of the detection costs.", show_default="0.01"),
    ] = None,
    c_miss: Annotated[float, typer.Option("--c-miss", help="Cost of a miss.")] = 1.0,
    c_fa: Annotated[float, typer.Option("--c-fa", help="Cost of a false alarm.")] = 1.0,
    fpr: Annotated[
        list[float] | None,
        typer.Option(
            "--fpr",
            help="False-positive rates at which to give the true-positive rate.",
            show_default="0.01, 0.001",
        ),
    ] = None,
    ci: common.ReplicatesOption = None,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
    input_format: common.InputFormatOption = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs", help="Cross-pair embeddings instead: all, or enrolment-fixed.", metavar="HOW"
        ),
    ] = None,
    enrolment: Annotated[
        int, typer.Option("--enrolment", min=1, help="Utterances enrolled, where that is fixed.")
    ] = 1,
    backend: Annotated[
        str, typer.Option("--backend", help="cosine, or the file of a trained PLDA.")
    ] = "cosine",
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read scores in batches, in bounded memory.",
            show_default="files over 2 GB",
        ),
    ] = None,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    quiet: common.QuietOption = False,
) -> None:
    """Detection and ZEBRA table of one system or several, with intervals."""
    Place(on, workers)
    battery = Battery(
        p_target=tuple(p_target or (0.01,)),
        c_miss=c_miss,
        c_fa=c_fa,
        fpr=tuple(fpr or (1e-2, 1e-3)),
    )
    found = counted(
        scores,
        pairs=pairs,
        enrolment=enrolment,
        backend=backend,
        stream=stream,
        key=key,
        speakers=speakers,
        systems=system,
        format=input_format,
        missing=missing.value,
        duplicates=duplicates.value,
        battery=battery,
        replicates=ci,
        level=level,
        seed=seed,
        needs_table={"--by": by is not None},
        on=on,
        workers=workers,
        state=state,
        quiet=quiet,
    )
    table = None
    if found is None:
        table = load(
            scores,
            key=key,
            speakers=speakers,
            systems=system,
            format=input_format,
            missing=missing,
            duplicates=duplicates,
            quiet=quiet,
        )
        with common.running("bootstrap", on, workers, state, quiet=quiet):
            found = evaluate_scores(
                table, by=by, battery=battery, replicates=ci, level=level, seed=seed
            )
    options = {"scores": table, "p_target": battery.p_target[0]}
    common.draw(found, figures, formats=figure_formats, quiet=quiet, **options)
    common.give(document(found), format=format, output=output, quiet=quiet)
