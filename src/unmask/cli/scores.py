"""``unmask score``, ``calibrate`` and ``fuse``: from embeddings to scores, from scores to LLRs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from unmask import engine, scoring
from unmask.cli import common
from unmask.cli.common import Intervals, Output, Ratios, Tables, Where, Whose
from unmask.cli.options import argument, group, option, output_file
from unmask.engine import Battery, CalibratedScores
from unmask.errors import InputError
from unmask.report import document, render
from unmask.trials import Scores, read_scores, score_format, write

_FITTED = ("estimator", "prior", "quality", "folds", "train_key", "train_speakers")
_LLRS = group(
    output=output_file("-o", callback=common.writable_file),
    figures=None,
    figure_formats="",
)


def score(
    context: typer.Context,
    whose: Whose,
    where: Where,
    enrol: str = argument(),
    test: str | None = argument(default=None),
    trials: str = option("-t", default=...),
    backend: str = "cosine",
    train: str | None = None,
    cohort: str | None = None,
    top: int = option(default=200, min=2),
    models: str | None = None,
    output: Path = output_file("-o", default=..., callback=common.writable_file),
    to: str | None = None,
) -> None:
    """Score a list of trials with embeddings.

    Back-ends: cosine; wccn, lda, plda and centred, which need --train;
    asnorm, which needs --cohort (any other back-end may have one too).
    An enrolment name is a model, an utterance or a speaker. Speakers are
    enrolled with the average of all their normalised utterances.
    """
    written = score_format(output, to)
    if cohort is None:
        common.refuse(context, ["top"], "is for --cohort")
    with where.running("blocks"):
        scores = scoring.score(
            enrol,
            test,
            trials=trials,
            backend=backend,
            train=train,
            cohort=cohort,
            top=top,
            models=models,
            speakers=whose.speakers,
        )
    where.sources(scores.sources)
    write(scores, output, format=written)
    where.remark(f"wrote {output}: {len(scores):,} scores of {next(iter(scores.systems))}")


@dataclass(frozen=True)
class Fitted:
    """How a map is fitted, kept and applied again."""

    system: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    train_key: str | None = None
    train_speakers: str | None = None
    apply: Path | None = None
    save: Path | None = output_file(callback=common.writable_file)
    quality: tuple[str, ...] = ()
    prior: float = 0.5
    folds: int = option(default=5, min=3)

    def source(self, context: typer.Context, tables: Tables) -> Scores | engine.Map | None:
        """What the map comes from; None to cross-fit."""
        if self.apply is not None:
            common.refuse(context, ("train", "save", *_FITTED), "has no effect with --apply")
            return engine.read_map(self.apply)
        if not self.train:
            common.refuse(context, ["train_key", "train_speakers"], "is for --train")
            return None
        common.refuse(context, ["folds"], "has no effect with --train")
        whose = self.train_speakers or tables.speakers
        options = {**tables.options, "key": self.train_key, "speakers": whose}
        return self.read(self.train, options)

    def read(self, paths: Sequence[str], options: dict[str, Any]) -> Scores:
        """One table of the systems of files."""
        return read_scores(common.score_files(paths), systems=list(self.system) or None, **options)


def calibrate(
    context: typer.Context,
    tables: Ratios,
    intervals: Intervals,
    fitted: Fitted,
    scores: list[str] = argument(),
    estimator: Literal["linear", "isotonic"] = "linear",
    battery: Battery = group(),
    output: Output = _LLRS,
    to: str | None = None,
) -> None:
    """Turn scores into log-likelihood ratios.

    The map is fitted on --train, read from a file (--apply), or cross-fitted
    by speaker: no trial is calibrated by a map fitted on one of its speakers.
    With a key, the metrics are shown before and after.
    """
    make = partial(engine.calibrate, estimator=estimator)
    _run(make, context, scores, tables, intervals, fitted, battery, output, to)


def fuse(
    context: typer.Context,
    tables: Tables,
    intervals: Intervals,
    fitted: Fitted,
    scores: list[str] = argument(),
    battery: Battery = group(),
    output: Output = _LLRS,
    to: str | None = None,
) -> None:
    """Fuse several systems into one log-likelihood ratio.

    Weights are fitted on --train (once for each system), read from a file
    (--apply), or cross-fitted by speaker. With a key, the fusion is compared
    with the best single system.
    """
    _run(engine.fuse, context, scores, tables, intervals, fitted, battery, output, to)


def _run(
    make: Callable[..., CalibratedScores],
    context: typer.Context,
    paths: Sequence[str],
    tables: Tables,
    intervals: Intervals,
    fitted: Fitted,
    battery: Battery,
    output: Output,
    to: str | None,
) -> None:
    """Make LLRs; show the numbers before and after where there are labels; then write the files."""
    written = None if output.output is None else score_format(output.output, to)
    train = fitted.source(context, tables)
    table = fitted.read(paths, tables.options)
    output.sources(table.sources)
    if written is None and table.label is None:
        raise InputError(table.name, "labels (--key) or a file to write (-o)", "neither")
    how = {"quality": fitted.quality, "prior": fitted.prior, "folds": fitted.folds}
    with output.running("bootstrap"):
        made = make(table, train=train, seed=intervals.seed, **how)
        compared = None
        if table.label is not None:
            compared = made.against_raw(battery=battery, **intervals.options)
    if output.output is not None:
        write(made.scores, output.output, format=written)
        output.remark(f"wrote {output.output}")
    if fitted.save is not None:
        engine.save_map(made.map, fitted.save)
        output.remark(f"wrote {fitted.save}")
    if compared is not None:
        shown = document(compared)
        notes = (*shown.notes[:-1], f"{made.sentence}.")
        shown = replace(shown, notes=notes)
        if output.output is not None and str(output.output) == "-":
            # Standard output has the scores: a table between them would be read as trials.
            common.remark(render(shown, output.format).rstrip("\n"))
        else:
            replace(output, output=None).give(shown)
        return
    for notice in made.notices:
        output.remark(f"{notice.severity}: {notice.line}")
