"""``unmask worstcase``: false alarms when an adversary picks the closest of N voices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.scores import load
from unmask.detection.evaluate import group_masks
from unmask.errors import InputError
from unmask.figures import Figure, save_all
from unmask.figures.worst_case import worst_case_figures
from unmask.report.worst_case import document_of_worst_case
from unmask.stress.worst_case_input import pairs_of_scores
from unmask.stress.worst_case_study import WorstCaseStudy, worst_case_study
from unmask.trials import Scores


def worstcase(
    scores: Annotated[str, typer.Argument(help="Score file with speakers; - reads stdin.")],
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
    name = system or _only_system(table)

    def study(part: Scores) -> WorstCaseStudy:
        pairs = pairs_of_scores(part, system=name, both_ways=not one_way)
        if skip_single:
            pairs = pairs.without_single_scores()
        with common.progress("fitting", quiet=quiet) as bar:
            return worst_case_study(
                pairs.with_impostors(min_impostors),
                part.targets(name),
                population=None if population is None else round(population),
                model=model,
                thresholds=tuple(threshold or ()),
                p_target=tuple(dcf or ()),
                target_rates=tuple(target_rate or ()),
                level=level,
                replicates=1000 if ci is None else max(ci, 2),
                seed=seed,
                progress=bar,
            )

    parts = {"all": table}
    if by is not None:
        groups = {group: table.select(mask) for group, mask in group_masks(table, by)}
        parts = {group: part for group, part in groups.items() if part.is_target.any()}
        for group in sorted(set(groups) - set(parts)):
            common.remark(f"{group}: no target trials, left out", quiet=quiet)
        if not parts:
            raise InputError(f"by {by}: expected a group with target trials, found none")
    studies = {group: study(part) for group, part in parts.items()}
    if figures is not None:
        for group, found in studies.items():
            drawn = [_named(figure, group, len(studies)) for figure in worst_case_figures(found)]
            save_all(drawn, Path(figures), formats=tuple(figure_formats.split(",")))
    document = document_of_worst_case(studies, inputs=table.sources)
    common.give(document, format=format, output=output, quiet=quiet)
    if figures is not None:
        common.remark(f"figures in {figures}", quiet=quiet)


def _only_system(table: Scores) -> str:
    if len(table.systems) > 1:
        raise InputError(
            f"system: expected one of {', '.join(table.systems)}, found none (--system)"
        )
    return next(iter(table.systems))


def _named(figure: Figure, group: str, groups: int) -> Figure:
    if groups == 1:
        return figure
    return Figure(
        f"{figure.name}_{group}", f"{figure.title} ({group})", figure.caption, figure.chart
    )
