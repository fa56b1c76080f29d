"""``unmask privacy``: pseudonymisation and disclosure of one safeguard or many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from unmask.cli import common
from unmask.cli.scores import tell
from unmask.errors import InputError
from unmask.privacy.similarity import read_matrices, safeguards
from unmask.report import document as document_of
from unmask.scoring import backend_named
from unmask.trials import Embeddings, Scores, Source, read_embeddings, read_scores


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


_PLACES = ("on", "workers", "state")


def privacy(
    context: typer.Context,
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
    embeddings = original is not None or bool(protected)
    if embeddings + bool(scores) + bool(matrices) != 1:
        raise InputError("expected --original with --protected, or --scores, or --matrices")
    if embeddings and (original is None or not protected):
        raise InputError("--original and --protected belong together: one of them is missing")
    if matrices and again:
        raise InputError("--again needs embeddings or score files, found --matrices")
    if not embeddings and (train or backend != "cosine"):
        raise InputError("--backend and --train need embeddings, found scores")
    if backend in ("wccn", "plda") and train is None:
        raise InputError(f"--backend {backend} needs --train: embeddings to train it on")
    if not embeddings and (by is not None or sessions):
        raise InputError("--by and --sessions need embeddings, found scores")
    if scores:
        common.refuse(context, _PLACES, "is for embeddings and matrices, found --scores")
    options: dict[str, Any] = {
        "mean": mean.value,
        "pairs": pairs.value,
        "replicates": ci,
        "level": level,
        "seed": seed,
    }
    with common.running("pairs of segments", on, workers, state, quiet=quiet):
        data: tuple[Any, ...] = ()
        more: dict[str, Any] = {}
        if matrices:
            data = (_read(matrices, "--matrices", read_matrices),)
        elif scores:
            read = partial(read_scores, speakers=speakers)
            lists = _read(scores, "--scores", _three)
            data = ({name: tuple(map(read, paths)) for name, paths in lists.items()},)
            more["again"] = _read(again, "--again", read)
        elif original is not None:
            load = partial(read_embeddings, speakers=speakers)
            data = load(original), _read(protected, "--protected", load)
            more["again"] = _read(again, "--again", load)
            training = None if train is None else load(train)
            more["backend"] = backend_named(backend, training, **({"lda": lda} if lda else {}))
            more |= {"by": by, "with_sessions": sessions}
        more |= {**options, "laplace": laplace}
        assessment = safeguards(*data, **more)
    sources = _sources((*data, more.get("again")))
    tell(sources, quiet=quiet)
    document = document_of(assessment, inputs=sources, details=details)
    common.draw(assessment, figures, formats=figure_formats, quiet=quiet, order=order.value)
    common.give(document, format=format, output=output, quiet=quiet)


def _read(values: Sequence[str] | None, option: str, read: Callable[[str], Any]) -> dict[str, Any]:
    """What ``NAME=FILE`` options name, read."""
    files = common.named_files(values or (), option)
    return {name: read(path) for name, path in files.items()}


def _three(paths: str) -> list[str]:
    files = paths.split(",")
    if len(files) != 3:
        raise InputError(f"--scores: expected three files OO,OP,PP, found {len(files)}: {paths}")
    return files


def _sources(data: Any) -> tuple[Source, ...]:
    """The files behind the data, each once, in the order read."""
    if isinstance(data, Embeddings):
        return () if data.source is None else (data.source,)
    if isinstance(data, Scores):
        return data.sources
    if isinstance(data, Mapping):
        return _sources(tuple(data.values()))
    if isinstance(data, tuple):
        return tuple(dict.fromkeys(source for part in data for source in _sources(part)))
    return ()
