"""``unmask privacy``: pseudonymisation and disclosure of one safeguard or many."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.privacy_inputs import Inputs, assess
from unmask.figures import save_all
from unmask.report import document as document_of
from unmask.report import figures_of
from unmask.run import Where


class Mean(StrEnum):
    """How the LLRs of two speakers are averaged."""

    geometric = "geometric"
    arithmetic = "arithmetic"


class PairChoice(StrEnum):
    """Which pairs of segments count."""

    every = "all"
    one_order = "upper"


class Order(StrEnum):
    """Order of the speakers in the drawn matrices."""

    given = "given"
    cluster = "cluster"


def privacy(
    original: Annotated[
        str | None,
        typer.Option("--original", help="Embeddings of the original speech, or a Kaldi folder."),
    ] = None,
    protected: Annotated[
        list[str] | None,
        typer.Option("--protected", help="NAME=FILE: those of the protected speech; repeat."),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option("--scores", help="NAME=OO,OP,PP: three score files instead; repeat."),
    ] = None,
    matrices: Annotated[
        list[str] | None,
        typer.Option("--matrices", help="NAME=FILE.npz: matrices oo, op, pp and speakers; repeat."),
    ] = None,
    again: Annotated[
        list[str] | None,
        typer.Option("--again", help="NAME=FILE: a second run of a safeguard, for C_ECE; repeat."),
    ] = None,
    laplace: Annotated[
        bool,
        typer.Option(
            "--laplace/--no-laplace", help="Whether C_ECE's isotonic map is trained with Laplace."
        ),
    ] = True,
    by: Annotated[
        str | None, typer.Option("--by", help="Assess each value of this column, such as gender.")
    ] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Also within and between sessions.")
    ] = False,
    backend: Annotated[
        str, typer.Option("--backend", help="cosine, wccn, plda, or a saved PLDA (FILE.npz).")
    ] = "cosine",
    train: Annotated[
        str | None, typer.Option("--train", help="Embeddings that wccn or plda is trained on.")
    ] = None,
    lda: Annotated[int | None, typer.Option("--lda", help="LDA directions before PLDA.")] = None,
    speakers: common.SpeakersOption = None,
    mean: Annotated[
        Mean, typer.Option("--mean", help="geometric as in 2022, arithmetic as in 2020.")
    ] = Mean.geometric,
    pairs: Annotated[
        PairChoice, typer.Option("--pairs", help="upper: one order only, for old tables.")
    ] = PairChoice.every,
    details: Annotated[
        bool, typer.Option("--details", help="Also the normalised twins and D_diag.")
    ] = False,
    ci: Annotated[
        int, typer.Option("--ci", min=0, help="Bootstrap replicates; 0 for no intervals.")
    ] = 1000,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    order: Annotated[
        Order, typer.Option("--order", help="Speakers in the figures: as given, or by likeness.")
    ] = Order.given,
    quiet: common.QuietOption = False,
) -> None:
    """Pseudonymisation and privacy disclosure: DeID, G_VD, D_ECE, C_ECE, l_w and tag."""
    inputs = Inputs(
        original,
        tuple(protected or ()),
        tuple(scores or ()),
        tuple(matrices or ()),
        tuple(again or ()),
        backend,
        train,
        lda,
        speakers,
    )
    where = Where(on, workers, state)
    with common.progress("pairs of segments", quiet=quiet) as bar:
        assessment, sources = assess(
            inputs,
            by=by,
            sessions=sessions,
            mean=mean.value,
            pairs=pairs.value,
            laplace=laplace,
            replicates=ci,
            level=level,
            seed=seed,
            where=where,
            progress=bar,
        )
    for source in sources:
        if source.detected:
            common.remark(f"{source.name}: {source.detected}", quiet=quiet)
    document = document_of(assessment, inputs=sources, details=details)
    if figures is not None:
        drawn = figures_of(assessment, order=order.value)
        save_all(drawn, Path(figures), formats=tuple(figure_formats.split(",")))
    common.give(document, format=format, output=output, quiet=quiet)
    if figures is not None:
        common.remark(f"figures in {figures}", quiet=quiet)
