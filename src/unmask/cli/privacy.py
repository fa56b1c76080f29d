"""``unmask privacy``: pseudonymisation and disclosure of one safeguard or many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import typer

from unmask.cli.common import THOUSAND, WHOSE, Intervals, Output, Tables, Where, read_named, refuse
from unmask.cli.options import option
from unmask.errors import InputError
from unmask.privacy.similarity import read_matrices, safeguards
from unmask.report import document
from unmask.scoring import backend_named
from unmask.trials import Embeddings, Scores, Source, read_embeddings, read_scores


def privacy(
    context: typer.Context,
    where: Where,
    output: Output,
    intervals: Intervals = THOUSAND,
    tables: Tables = WHOSE,
    original: str | None = option("Embeddings of the original speech, or a Kaldi folder."),
    protected: tuple[str, ...] = option("NAME=FILE: those of the protected speech; repeat."),
    scores: tuple[str, ...] = option("NAME=OO,OP,PP: three score files instead; repeat."),
    matrices: tuple[str, ...] = option("NAME=FILE.npz: matrices oo, op, pp and speakers; repeat."),
    again: tuple[str, ...] = option("NAME=FILE: a second run of a safeguard, for C_ECE; repeat."),
    laplace: bool = option("Whether C_ECE's isotonic map is trained with Laplace.", default=True),
    by: str | None = option("Assess each value of this column, such as gender."),
    sessions: bool = option("Also within and between sessions.", default=False),
    backend: str = option("cosine, wccn, plda, or a saved PLDA (FILE.npz).", default="cosine"),
    train: str | None = option("Embeddings that wccn or plda is trained on."),
    lda: int | None = option("LDA directions before PLDA."),
    mean: Literal["geometric", "arithmetic"] = option(
        "geometric as in 2022, arithmetic as in 2020.", default="geometric"
    ),
    pairs: Literal["all", "upper"] = option(
        "upper: one order only, for old tables.", default="all"
    ),
    details: bool = option("Also the normalised twins and D_diag.", default=False),
    order: Literal["given", "cluster"] = option(
        "Speakers in the figures: as given, or by likeness.", default="given"
    ),
) -> None:
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
        refuse(context, Where.__annotations__, "is for embeddings and matrices, found --scores")
    with where.running("pairs of segments", quiet=output.quiet):
        data: tuple[Any, ...] = ()
        more: dict[str, Any] = {}
        if matrices:
            data = (read_named(matrices, "--matrices", read_matrices),)
        elif scores:
            read = partial(read_scores, speakers=tables.speakers)
            lists = read_named(scores, "--scores", _three)
            data = ({name: tuple(map(read, paths)) for name, paths in lists.items()},)
            more["again"] = read_named(again, "--again", read)
        elif original is not None:
            load = partial(read_embeddings, speakers=tables.speakers)
            data = load(original), read_named(protected, "--protected", load)
            more["again"] = read_named(again, "--again", load)
            training = None if train is None else load(train)
            more["backend"] = backend_named(backend, training, **({"lda": lda} if lda else {}))
            more |= {"by": by, "with_sessions": sessions}
        options = {"mean": mean, "pairs": pairs, "laplace": laplace, **intervals.options}
        assessment = safeguards(*data, **more, **options)
    sources = _sources((*data, more.get("again")))
    output.sources(sources)
    output.draw(assessment, order=order)
    output.give(document(assessment, inputs=sources, details=details))


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
