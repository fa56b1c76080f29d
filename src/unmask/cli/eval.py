"""``unmask eval``: the detection and disclosure table of one system or several."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unmask.cli import common
from unmask.cli.scores import sources, tell
from unmask.engine import Battery, cross_pairing
from unmask.engine import evaluate as evaluate_scores
from unmask.report import document
from unmask.run import Place
from unmask.scoring import Plda

_OF_SCORES = ("key", "system", "input_format", "stream", "missing", "duplicates")
_PLACES = ("on", "workers", "state")


def evaluate(
    context: typer.Context,
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...", help="Score files; - reads stdin, .gz is read as it is."
        ),
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
    numbers: dict[str, Any] = {
        "battery": battery,
        "replicates": ci,
        "level": level,
        "seed": seed,
        "speakers": speakers,
    }
    if pairs is not None:
        common.refuse(context, ["by"], "needs all scores in memory, which --pairs does not keep")
        common.refuse(context, _OF_SCORES, "is for score files")
        with common.running("blocks", on, workers, state, quiet=quiet):
            found = cross_pairing(
                scores,
                pairs=pairs,
                enrolment=enrolment,
                backend=backend if backend == "cosine" else Plda.load(backend),
                **numbers,
            )
    else:
        common.refuse(context, ["backend", "enrolment"], "is for embeddings, with --pairs")
        if stream:
            common.refuse(context, _PLACES, "is not for files that are read in batches")
            common.refuse(context, ["by"], "needs all scores in memory (--no-stream)")
        with common.running("bootstrap", on, workers, state, quiet=quiet):
            found = evaluate_scores(
                sources(scores),
                systems=system,
                by=by,
                key=key,
                format=input_format,
                missing=missing.value,
                duplicates=duplicates.value,
                stream=stream,
                **numbers,
            )
    tell(found.sources, quiet=quiet)
    drawn = {"p_target": battery.p_target[0]}
    common.draw(found, figures, formats=figure_formats, quiet=quiet, **drawn)
    common.give(document(found), format=format, output=output, quiet=quiet)
