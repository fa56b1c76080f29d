"""``unmask worstcase``: false alarms when an adversary picks the closest of N voices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import common
from unmask.cli.scores import load
from unmask.cli.worstcase_inputs import (
    OF_EMBEDDINGS,
    OF_SCORES,
    are_embeddings,
    groups_of_embeddings,
    groups_of_scores,
    only_system,
    refuse,
)
from unmask.errors import InputError
from unmask.figures import Figure, save_all
from unmask.figures.worst_case import worst_case_figures
from unmask.report.worst_case import document_of_worst_case
from unmask.scoring import Plda
from unmask.scoring.job import Where
from unmask.stress.worst_case_embeddings_study import PER_PAIR, worst_case_study_of_embeddings
from unmask.stress.worst_case_input import pairs_of_scores
from unmask.stress.worst_case_study import WorstCaseStudy, worst_case_study
from unmask.trials import Source, read_embeddings


def worstcase(
    context: typer.Context,
    scores: Annotated[
        str,
        typer.Argument(help="Score file with speakers (- reads stdin), or a file of embeddings."),
    ],
    key: common.KeyOption = None,
    speakers: common.SpeakersOption = None,
    system: Annotated[
        str | None, typer.Option("--system", help="The system (column), where there are several.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Within groups of this column, such as sex.")
    ] = None,
    population: Annotated[
        float | None,
        typer.Option(
            "--population",
            help="Voices the adversary may choose from, such as 1e5.",
            show_default="100 times the impostors at hand",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="auto, or a model's name such as ls-target+ or plda+.")
    ] = "auto",
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            "--threshold",
            help="Accept scores above this; may be repeated.",
            show_default="three detection costs",
        ),
    ] = None,
    dcf: Annotated[
        list[float] | None,
        typer.Option("--dcf", help="Threshold of the least detection cost at this target prior."),
    ] = None,
    target_rate: Annotated[
        list[float] | None,
        typer.Option("--target-rate", help="Which threshold keeps the worst case at this rate."),
    ] = None,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Only enrolled speakers are targets.")
    ] = False,
    skip_single: Annotated[
        bool, typer.Option("--skip-single", help="Leave out pairs of speakers with one score.")
    ] = False,
    min_impostors: Annotated[
        int, typer.Option("--min-impostors", min=3, help="Leave out targets with fewer.")
    ] = 3,
    backend: Annotated[
        str, typer.Option("--backend", help="Embeddings: cosine, or the file of a trained PLDA.")
    ] = "cosine",
    per_pair: Annotated[
        int,
        typer.Option(
            "--per-pair",
            min=2,
            help="Embeddings: scores of a pair of speakers that the extrapolation is fitted to.",
        ),
    ] = PER_PAIR,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    ci: common.ReplicatesOption = None,
    level: common.LevelOption = 0.99,
    seed: common.SeedOption = 0,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
    input_format: common.InputFormatOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    quiet: common.QuietOption = False,
) -> None:
    """False alarms when an adversary picks the closest of N voices, measured and extrapolated."""
    if population is not None and not population >= 1:
        raise InputError(f"population: expected at least 1, found {population:g}")
    asked: dict[str, Any] = {
        "population": None if population is None else round(population),
        "model": model,
        "thresholds": tuple(threshold or ()),
        "p_target": tuple(dcf or ()),
        "target_rates": tuple(target_rate or ()),
        "level": level,
        "replicates": 1000 if ci is None else max(ci, 2),
        "seed": seed,
        "on": on,
        "workers": workers,
        "state": state,
    }
    Where(on, workers, state)
    studies: dict[str, WorstCaseStudy] = {}
    sources: tuple[Source, ...]
    if are_embeddings(scores):
        refuse(context, OF_SCORES, "is for score files, found embeddings")
        voices = read_embeddings(scores, format=input_format, speakers=speakers)
        sources = () if voices.source is None else (voices.source,)
        for source in sources:
            common.remark(f"{source.name}: {source.detected}", quiet=quiet)
        scorer = backend if backend == "cosine" else Plda.load(backend)
        for group, some in groups_of_embeddings(voices, by):
            with common.progress("worst case", quiet=quiet) as bar:
                studies[group] = worst_case_study_of_embeddings(
                    some,
                    backend=scorer,
                    per_pair=per_pair,
                    skip_single=skip_single,
                    progress=bar,
                    **asked,
                )
    else:
        refuse(context, OF_EMBEDDINGS, "is for embeddings, found scores")
        table = load(
            [scores],
            key=key,
            speakers=speakers,
            systems=[system] if system else None,
            format=input_format,
            missing=missing,
            duplicates=duplicates,
            quiet=quiet,
        )
        sources = table.sources
        name = system or only_system(table)
        for group, part in groups_of_scores(table, by, quiet=quiet).items():
            pairs = pairs_of_scores(part, system=name, both_ways=not one_way)
            if skip_single:
                pairs = pairs.without_single_scores()
            with common.progress("fitting", quiet=quiet) as bar:
                studies[group] = worst_case_study(
                    pairs.with_impostors(min_impostors), part.targets(name), progress=bar, **asked
                )
    if figures is not None:
        for group, found in studies.items():
            drawn = [_named(figure, group, len(studies)) for figure in worst_case_figures(found)]
            save_all(drawn, Path(figures), formats=tuple(figure_formats.split(",")))
    document = document_of_worst_case(studies, inputs=sources)
    common.give(document, format=format, output=output, quiet=quiet)
    if figures is not None:
        common.remark(f"figures in {figures}", quiet=quiet)


def _named(figure: Figure, group: str, groups: int) -> Figure:
    if groups == 1:
        return figure
    return Figure(
        f"{figure.name}_{group}", f"{figure.title} ({group})", figure.caption, figure.chart
    )
