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
from unmask.report import document as document_of
from unmask.report import figures_of
from unmask.run import Where
from unmask.scoring import Plda
from unmask.stress import PER_PAIR, WorstCaseStudy, worst_case_study, worst_case_study_of_embeddings
from unmask.stress.extrapolation import MODELS, ModelComparison, compare_models
from unmask.stress.worst_case import GROUPS, PairScores, pairs_of_embeddings, pairs_of_scores
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
        list[str] | None,
        typer.Option(
            "--model",
            help="auto, or a model's name such as ls-target+ or plda+; more of them are compared.",
            show_default="auto",
        ),
    ] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table", help="Compare models: train on two thirds of the counts, judge on the rest."
        ),
    ] = False,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy",
            help="Scores (or embeddings) of the system by which the adversary chooses.",
        ),
    ] = None,
    proxy_system: Annotated[
        str | None, typer.Option("--proxy-system", help="Its column, where there are several.")
    ] = None,
    split: Annotated[
        bool,
        typer.Option(
            "--split/--no-split",
            help="Keep the scores that choose the closest voice apart from those that attack.",
        ),
    ] = True,
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
    ci: Annotated[
        int,
        typer.Option(
            "--ci",
            min=0,
            help="Groups of speakers that leave in turn for all intervals; 0 for none.",
        ),
    ] = GROUPS,
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
        "model": (model or ["auto"])[0],
        "compare": tuple((model or [])[1:]),
        "thresholds": tuple(threshold or ()),
        "p_target": tuple(dcf or ()),
        "target_rates": tuple(target_rate or ()),
        "level": level,
        "groups": ci,
        "split": split,
        "seed": seed,
        "on": on,
        "workers": workers,
        "state": state,
    }
    Where(on, workers, state)
    tables: list[ModelComparison] = []
    studies: dict[str, WorstCaseStudy] = {}
    sources: tuple[Source, ...]
    if are_embeddings(scores):
        refuse(context, OF_SCORES, "is for score files, found embeddings")
        voices = read_embeddings(scores, format=input_format, speakers=speakers)
        sources = () if voices.source is None else (voices.source,)
        for source in sources:
            common.remark(f"{source.name}: {source.detected}", quiet=quiet)
        scorer = backend if backend == "cosine" else Plda.load(backend)
        other = None if proxy is None else read_embeddings(proxy, speakers=speakers)
        for group, some in groups_of_embeddings(voices, by):
            if table:
                pairs = pairs_of_embeddings(some, backend=scorer, per_pair=per_pair)
                pairs = pairs.without_single_scores() if skip_single else pairs
                tables.append(_compared(pairs, model, group, split=split, quiet=quiet))
                continue
            with common.progress("worst case", quiet=quiet) as bar:
                studies[group] = worst_case_study_of_embeddings(
                    some,
                    backend=scorer,
                    per_pair=per_pair,
                    skip_single=skip_single,
                    proxy=other,
                    progress=bar,
                    **asked,
                )
    else:
        refuse(context, OF_EMBEDDINGS, "is for embeddings, found scores")
        trials = load(
            [scores],
            key=key,
            speakers=speakers,
            systems=[system] if system else None,
            format=input_format,
            missing=missing,
            duplicates=duplicates,
            quiet=quiet,
        )
        sources = trials.sources
        name = system or only_system(trials)
        chosen = None
        if proxy is not None:
            others = load(
                [proxy],
                key=key,
                speakers=speakers,
                systems=[proxy_system] if proxy_system else None,
                format=None,
                missing=missing,
                duplicates=duplicates,
                quiet=quiet,
            )
            sources = (*sources, *others.sources)
            chosen = pairs_of_scores(
                others, system=proxy_system or only_system(others), both_ways=not one_way
            )
        for group, part in groups_of_scores(trials, by, quiet=quiet).items():
            pairs = pairs_of_scores(part, system=name, both_ways=not one_way)
            if skip_single:
                pairs = pairs.without_single_scores()
            if table:
                some_pairs = pairs.with_impostors(min_impostors)
                tables.append(_compared(some_pairs, model, group, split=split, quiet=quiet))
                continue
            with common.progress("fitting", quiet=quiet) as bar:
                studies[group] = worst_case_study(
                    pairs.with_impostors(min_impostors),
                    part.targets(name),
                    proxy=chosen,
                    progress=bar,
                    **asked,
                )
    if table:
        common.give(document_of(tables, inputs=sources), format=format, output=output, quiet=quiet)
        return
    if figures is not None:
        for group, found in studies.items():
            drawn = [_named(figure, group, len(studies)) for figure in figures_of(found)]
            save_all(drawn, Path(figures), formats=tuple(figure_formats.split(",")))
    document = document_of(studies, inputs=sources)
    common.give(document, format=format, output=output, quiet=quiet)
    if figures is not None:
        common.remark(f"figures in {figures}", quiet=quiet)


def _compared(
    pairs: PairScores, models: list[str] | None, group: str, *, split: bool, quiet: bool
) -> ModelComparison:
    """The comparison of Table 1 of the paper for one group."""
    if models == ["auto"]:
        models = None
    with common.progress("models", quiet=quiet) as bar:
        return compare_models(
            pairs, models=models or MODELS, split=split, population=group, progress=bar
        )


def _named(figure: Figure, group: str, groups: int) -> Figure:
    if groups == 1:
        return figure
    return Figure(
        f"{figure.name}_{group}", f"{figure.title} ({group})", figure.caption, figure.chart
    )
