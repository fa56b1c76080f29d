"""``unmask eval`` and ``compare``: detection and disclosure of systems, and of two on one list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from unmask import engine
from unmask.cli.common import Intervals, Output, Ratios, Tables, Where, given, refuse, score_files
from unmask.cli.options import argument, group, option
from unmask.engine import Battery
from unmask.errors import InputError
from unmask.report import document

_OF_SCORES = (
    "key", "system", "format_in", "columns", "scores_are", "stream", "missing", "duplicates",
)  # fmt: skip


def evaluate(
    context: typer.Context,
    tables: Ratios,
    intervals: Intervals,
    output: Output,
    scores: list[str] = argument(
        "Score files; - reads stdin, .gz is read as it is. Or embeddings, with --key or --pairs.",
        "[NAME=]FILE...",
    ),
    system: tuple[str, ...] = option("Only these systems (columns)."),
    by: str | None = option("Also by groups of this column, such as sex."),
    battery: Battery = group(
        p_target=option("Prior of the detection costs."),
        c_miss=option("Cost of a miss."),
        c_fa=option("Cost of a false alarm."),
        fpr=option("False-positive rates at which to give the true-positive rate."),
    ),
    pairs: str | None = option(
        "Cross-pair embeddings instead: all, or enrolment-fixed.", metavar="HOW"
    ),
    enrolment: int = option("Utterances enrolled, where that is fixed.", default=1, min=1),
    backend: str = option("Of embeddings: cosine, or the file of a PLDA.", default="cosine"),
    stream: bool | None = option(
        "Read scores in batches, in bounded memory.", show_default="files over 2 GB"
    ),
) -> None:
    if pairs is not None:
        refuse(context, ["by"], "needs all scores in memory, which --pairs does not keep")
        refuse(context, _OF_SCORES, "is for score files")
        with output.running("blocks"):
            evaluation = engine.cross_pairing(
                scores,
                pairs=pairs,
                enrolment=enrolment,
                backend=backend,
                battery=battery,
                speakers=tables.speakers,
                **intervals.options,
            )
    else:
        refuse(context, ["enrolment"], "is for embeddings, with --pairs")
        chosen: dict[str, Any] = {"backend": backend} if given(context, ["backend"]) else {}
        if stream:
            refuse(context, Where.__annotations__, "is not for files that are read in batches")
            refuse(context, ["by"], "needs all scores in memory (--no-stream)")
        with output.running("bootstrap"):
            evaluation = engine.evaluate(
                score_files(scores),
                systems=list(system) or None,
                by=by,
                stream=stream,
                battery=battery,
                **chosen,
                **tables.options,
                **intervals.options,
            )
        if tables.scores_are and evaluation.scores is not None:
            rocs = {one.system: one.roc for one in evaluation if one.group is None}
            more = engine.unit_notices(evaluation.scores, rocs, tables.scores_are)
            evaluation = replace(evaluation, notices=(*evaluation.notices, *more))
    output.sources(evaluation.sources)
    output.draw(evaluation, p_target=battery.p_target[0])
    output.give(document(evaluation))


def compare(
    tables: Tables,
    intervals: Intervals,
    output: Output,
    scores: list[str] = argument(
        "Two score files, or one file with several systems.", "[NAME=]FILE..."
    ),
    system: tuple[str, ...] = option("The two systems, where the files have more."),
    privacy: bool | None = option(
        "Safeguards: who recognises speakers better protects less.",
        show_default="where names say oo, op, pp, o-a, a-a or anon",
    ),
    battery: Battery = group(p_target=option("Prior of the detection costs.")),
) -> None:
    if len(scores) > 2:
        raise InputError(f"compare takes one or two score files, found {len(scores)}")
    table = tables.scores(scores, output)
    names = system or tuple(table.systems)
    if len(names) != 2:
        raise InputError(
            "compare needs two systems: name them with --system; "
            f"there are {', '.join(table.systems)}"
        )
    with output.running("bootstrap"):
        comparison = engine.compare(
            table, *names, battery=battery, privacy=privacy, **intervals.options
        )
    if output.figures is not None:
        with output.running("charts"):
            output.draw(comparison)
    output.give(document(comparison))
