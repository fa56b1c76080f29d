"""``unmask worstcase``: false alarms when an adversary picks the closest of N voices."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import common
from unmask.cli.scores import load, tell
from unmask.errors import InputError
from unmask.figures import Figure, save_all, worst_case_of_systems
from unmask.report import document as document_of
from unmask.report import figures_of
from unmask.scoring import backend_named
from unmask.stress import (
    GROUPS,
    MODELS,
    PER_PAIR,
    compare_models,
    groups_of,
    pairs,
    worst_case,
)
from unmask.trials import Embeddings, Input, Scores, holds_embeddings, read_embeddings

OF_SCORES = (
    "key",
    "system",
    "proxy_system",
    "one_way",
    "min_impostors",
    "missing",
    "duplicates",
)
"""Options that embeddings have no use for."""

_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
OF_EMBEDDINGS = ("backend", "per_pair")
"""Options that score files have no use for."""


def worstcase(
    context: typer.Context,
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help="Score files with speakers (- reads stdin), or files of embeddings.",
        ),
    ],
    key: common.KeyOption = None,
    speakers: common.SpeakersOption = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="Only these systems (columns).", show_default="all"),
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
    level: common.LevelOption = 0.95,
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
    files = common.named_files(scores)
    options: dict[str, Any] = {"skip_single": skip_single, "split": split}
    data: dict[str, tuple[Scores | Embeddings, dict[str, Any]]] = {}
    other: Scores | Embeddings | None = None
    if all(map(_are_embeddings, files.values())):
        common.refuse(context, OF_SCORES, "is for score files, found embeddings")
        own = {"backend": backend_named(backend), "per_pair": per_pair}
        for name, path in files.items():
            voices = read_embeddings(path, format=input_format, speakers=speakers)
            data[name if name != path else Path(path).stem] = voices, own
        other = None if proxy is None else read_embeddings(proxy, speakers=speakers)
        inputs = tuple(e.source for e, _ in data.values() if isinstance(e, Embeddings) and e.source)
        tell(inputs, quiet=quiet)
    else:
        common.refuse(context, OF_EMBEDDINGS, "is for embeddings, found scores")
        load_scores = partial(
            load,
            key=key,
            speakers=speakers,
            missing=missing,
            duplicates=duplicates,
            quiet=quiet,
        )
        table_of = load_scores(scores, systems=system, format=input_format)
        inputs = table_of.sources
        if proxy is not None:
            other = load_scores(
                [proxy], systems=[proxy_system] if proxy_system else None, format=None
            )
            inputs = (*inputs, *other.sources)
        own = {"both_ways": not one_way, "min_impostors": min_impostors}
        data = {name: (table_of, {**own, "system": name}) for name in table_of.systems}
    studied: dict[str, tuple[Scores | Embeddings, dict[str, Any]]] = {}
    for name, (read, own) in data.items():
        parts, left_out = groups_of(read, by)
        for group in left_out:
            common.remark(f"{group}: no target trials, left out", quiet=quiet)
        for group, part in parts.items():
            told = [text for text, many in ((name, len(data)), (group, len(parts))) if many > 1]
            studied[", ".join(told) or group] = part, own
    if table:
        names = MODELS if model in (None, ["auto"]) else tuple(model)
        with common.running("models", quiet=quiet):
            tables = [
                compare_models(
                    pairs(part, skip_single=skip_single, **own),
                    models=names,
                    split=split,
                    population=group,
                )
                for group, (part, own) in studied.items()
            ]
        result: Any = tables
    else:
        with common.running("worst case", on, workers, state, quiet=quiet):
            result = {
                group: worst_case(
                    part,
                    threshold or (),
                    population=None if population is None else round(population),
                    model=(model or ["auto"])[0],
                    compare=tuple((model or [])[1:]),
                    p_target=tuple(dcf or ()),
                    target_rates=tuple(target_rate or ()),
                    proxy=other,
                    level=level,
                    groups=ci,
                    seed=seed,
                    **options,
                    **own,
                )
                for group, (part, own) in studied.items()
            }
        if figures is not None:
            drawn = [
                _named(figure, group, len(result))
                for group, study in result.items()
                for figure in figures_of(study)
            ]
            if len(data) > 1:
                drawn.append(worst_case_of_systems(result))
            save_all(drawn, figures, formats=tuple(figure_formats.split(",")))
            common.remark(f"figures in {figures}", quiet=quiet)
    common.give(document_of(result, inputs=inputs), format=format, output=output, quiet=quiet)


def _named(figure: Figure, group: str, groups: int) -> Figure:
    if groups == 1:
        return figure
    return Figure(
        f"{figure.name}_{_SAFE.sub('-', group)}",
        f"{figure.title} ({group})",
        figure.caption,
        figure.chart,
    )


def _are_embeddings(path: str) -> bool:
    """Whether a path holds embeddings and not scores."""
    if path == "-":
        return False
    if Path(path).is_dir():
        return True
    with Input(path) as source:
        if source.container != "text":
            source.load()
        return holds_embeddings(source)
