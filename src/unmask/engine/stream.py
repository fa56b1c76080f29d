"""Every detection metric of score files, in memory or, where they are large, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.engine.binned import (
    BinnedSystem,
    BinnedTrials,
    FirstOrder,
    count_speakers,
    edges_of,
)
from unmask.engine.bootstrap import AUTO_TRIALS, Units
from unmask.engine.evaluation import Battery, Evaluation, SystemResult, evaluate, measure
from unmask.engine.information import SummedSoftplus
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import advance, part
from unmask.trials import StreamedScores, is_large, read_scores, streamed_scores

HELD = 1 << 22


def evaluate_files(
    path: str | Path | Sequence[str | Path] | Mapping[str, str | Path],
    *,
    by: str | None = None,
    stream: bool | None = None,
    battery: Battery,
    replicates: int | None,
    level: float,
    seed: int,
    **options: Any,
) -> Evaluation:
    """The table of :func:`evaluate` for one or several score files.

    With ``stream`` they are read in batches (:func:`stream_scores`), as files over 2 GB are unless
    it is False; groups of ``by`` need all scores in memory. A mapping names its files' systems.
    ``options`` are those of :func:`read_scores`, the rest those of :func:`evaluate`.
    """
    named = path if isinstance(path, Mapping) else None
    files = [path] if isinstance(path, str | Path) else path
    paths = list(files.values() if isinstance(files, Mapping) else files)
    numbers: dict[str, Any] = {"replicates": replicates, "level": level, "seed": seed}
    if stream is None:
        stream = by is None and any(is_large(one) for one in paths)
    if stream and by is not None:
        raise InputError(f"by: expected all scores in memory to group by {by}, found a stream")
    if stream:
        evaluation = stream_scores(paths, battery=battery, **numbers, **options)
        return evaluation if named is None else _renamed(evaluation, list(named))
    table = read_scores(paths if named is None else named, **options)
    return evaluate(table, by=by, battery=battery, **numbers)


def _renamed(evaluation: Evaluation, names: Sequence[str]) -> Evaluation:
    """Systems by the names of their files."""
    if len(evaluation.results) != len(names):
        raise InputError(
            f"names: expected one system in each of {len(names)} files that are read in batches,"
            f" found {len(evaluation.results)} in all"
        )
    results = zip(evaluation.results, names, strict=True)
    return replace(evaluation, results=tuple(replace(one, system=name) for one, name in results))


def stream_scores(
    path: str | Path | Sequence[str | Path],
    *,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """The table of :func:`evaluate` for text, gzip or parquet of any length.

    Files are read once. What is needed of them goes to a temporary folder, where trials are
    compared and joined by hashes of their identifiers, part by part; ``options`` and errors are
    those of :func:`read_scores`, and several files are one table of several systems as in
    :meth:`Scores.merged`. Memory grows with the distinct target scores (and, where speakers are
    named, with the names) and not with the files. The trials of the signature are named by the
    digest of the first file.

    Intervals are those of :func:`evaluate` up to two million trials. Beyond that they come from
    trials in bins (:mod:`.binned`): over speakers, first order in the draws, or over trials where
    no speakers are known. There are 1,000 ``replicates`` unless given, 0 leaves them out.
    """
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    if not paths:
        raise InputError("expected score files, found none")
    battery = battery or Battery()
    results: list[SystemResult] = []
    notices: list[Notice] = []
    more: list[Notice] = []
    with ExitStack() as stack:
        with part(0, 2):
            scores = stack.enter_context(streamed_scores(paths, **options))
        for i, name in enumerate(scores.systems):
            with part(1, 2), part(i, len(scores.systems)):
                roc = _count(scores, name, battery)
            result, negated, more = measure(
                name,
                roc,
                partial(_trials, scores, name, roc, battery),
                battery=battery,
                replicates=replicates,
                level=level,
                seed=seed,
                trials=scores.trials,
                speakers=scores.speaker_count,
            )
            results.append(result)
            notices += negated
        return Evaluation(tuple(results), scores.sources, (*notices, *more), seed)


def _trials(
    scores: StreamedScores, system: str, roc: Roc, battery: Battery
) -> tuple[FloatArray, FloatArray, Units] | BinnedSystem:
    """Trials of a system and what is drawn of them, or in bins where they are too many to hold; by
    speaker where speakers are known.
    """
    batches = scores.batches(system, speakers=True)
    if sum(scores.counts.values()) > AUTO_TRIALS:
        edges = edges_of(roc, battery.thresholds, rows=scores.speaker_count or 1)
        if scores.speakers is None:
            return BinnedTrials.of(batches, edges)
        return FirstOrder(count_speakers(batches, edges, len(scores.speakers)).present())
    parts = [(batch.scores, batch.is_target, batch.enrol, batch.test) for batch in batches]
    values, own, enrol, test = (np.concatenate(part) for part in zip(*parts, strict=True))
    units = Units.trials(int(own.sum()), int((~own).sum()))
    if scores.speakers is not None:
        units = Units.speakers(enrol[own], enrol[~own], test[~own])
    return values[own], values[~own], units


def _count(scores: StreamedScores, system: str, battery: Battery) -> Roc:
    """The statistic of a system: its distinct target scores, then the nontargets among them."""
    losses = SummedSoftplus(), SummedSoftplus()
    targets, counts = _targets(scores, system, losses[0])
    roc = Roc.from_blocks(
        targets,
        _nontargets(scores, system, losses[1]),
        target_weights=counts,
        thresholds=battery.thresholds,
    )
    return replace(roc, loss=(losses[0].total, losses[1].total))


def _targets(
    scores: StreamedScores, system: str, loss: SummedSoftplus
) -> tuple[FloatArray, FloatArray]:
    """Distinct target scores and how often each occurs."""
    distinct, counts = np.zeros(0), np.zeros(0)
    held: list[FloatArray] = []
    waiting = 0
    for batch in scores.batches(system):
        held.append(batch.scores[batch.is_target])
        loss.add(-held[-1])
        waiting += held[-1].size
        if waiting > HELD:
            distinct, counts = _merged(distinct, counts, held)
            held, waiting = [], 0
    return _merged(distinct, counts, held)


def _nontargets(scores: StreamedScores, system: str, loss: SummedSoftplus) -> Iterator[FloatArray]:
    """Nontarget scores, batch by batch."""
    total, done = sum(scores.counts.values()), 0
    for batch in scores.batches(system):
        values = batch.scores[~batch.is_target]
        loss.add(values)
        yield values
        done += batch.scores.size
        advance(done, total)


def _merged(
    scores: FloatArray, counts: FloatArray, more: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and their counts, with further scores put in."""
    added = np.concatenate([np.zeros(0), *more])
    distinct, place = np.unique(np.concatenate([scores, added]), return_inverse=True)
    weights = np.concatenate([counts, np.ones(added.size)])
    total: FloatArray = np.bincount(place, weights, minlength=distinct.size).astype(np.float64)
    return distinct, total
