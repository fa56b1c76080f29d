"""Every detection metric of score files of any length, whose trials are counted and not held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.engine.binned_bootstrap import BinnedTrials, FirstOrder, count_speakers, edges_of
from unmask.engine.bootstrap import AUTO_TRIALS, SortedTrials, System, Units
from unmask.engine.evaluation import Analysis, Battery, Evaluation, SystemResult, evaluate_table
from unmask.engine.information import SummedSoftplus
from unmask.engine.metrics import negated_notices
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import advance, part
from unmask.trials import (
    StreamedScores,
    is_large,
    read_scores,
    streamed_scores,
)

HELD = 1 << 22


def evaluate_files(
    path: str | Path | Sequence[str | Path] | Mapping[str, str | Path],
    analysis: Analysis,
    *,
    by: str | None = None,
    stream: bool | None = None,
    **options: Any,
) -> Evaluation:
    """The table of :func:`evaluate` for one or several score files.

    With ``stream`` they are read in batches, as files over 2 GB are unless it is False; groups of
    ``by`` need all scores in memory. A mapping names its files' systems. ``options`` are those of
    :func:`read_scores`, ``analysis`` the rest of :func:`evaluate`.

    A stream is text, gzip or parquet of any length, read once. What is needed of it goes to a
    temporary folder, where trials are compared and joined by hashes of their identifiers, part by
    part; errors are those of :func:`read_scores`, and several files are one table of several
    systems as in :meth:`Scores.merged`. Memory grows with the distinct target scores (and, where
    speakers are named, with the names) and not with the files. Beyond two million trials intervals
    come from trials in bins (:mod:`.binned_bootstrap`): over speakers, first order in the draws,
    or over trials where no speakers are known.
    """
    files = [path] if isinstance(path, str | Path) else path
    paths = list(files.values() if isinstance(files, Mapping) else files)
    if stream is None:
        stream = by is None and any(is_large(one) for one in paths)
    if not stream:
        return evaluate_table(read_scores(files, **options), analysis, by=by)
    if by is not None:
        raise InputError("by", f"all scores in memory to group by {by}", "a stream")
    if not paths:
        raise InputError("expected score files, found none")
    results: list[SystemResult] = []
    notices: list[Notice] = []
    measured = None
    with ExitStack() as stack:
        with part(0, 2):
            scores = stack.enter_context(streamed_scores(paths, **options))
        names = list(files) if isinstance(files, Mapping) else scores.systems
        if len(names) != len(scores.systems):
            wanted = f"one system in each of {len(names)} files that are read in batches"
            raise InputError("names", wanted, f"{len(scores.systems)} in all")
        for i, (name, system) in enumerate(zip(names, scores.systems, strict=True)):
            with part(1, 2), part(i, len(names)):
                roc = _count(scores, system, analysis.battery)
            measured = analysis.of_counted(
                roc,
                partial(_trials_of_files, scores, system, roc, analysis.battery),
                trials=scores.trials,
                speakers=scores.speaker_count,
            )
            results.append(measured.result(name))
            notices += [notice.about(name) for notice in negated_notices(roc)]
        more = measured.notices if measured else ()
        return Evaluation(tuple(results), scores.sources, (*notices, *more), analysis.seed)


def _trials_of_files(scores: StreamedScores, system: str, roc: Roc, battery: Battery) -> System:
    """Trials of a system, in bins where they are too many to hold."""
    batches = scores.batches(system, speakers=True)
    if sum(scores.counts.values()) > AUTO_TRIALS:
        edges = edges_of(roc, battery.thresholds, rows=scores.speaker_count or 1)
        if scores.speakers is None:
            return BinnedTrials.of(batches, edges, roc)
        return FirstOrder(count_speakers(batches, edges, len(scores.speakers)).present(), roc)
    parts = [(batch.scores, batch.is_target, batch.enrol, batch.test) for batch in batches]
    values, own, enrol, test = (np.concatenate(part) for part in zip(*parts, strict=True))
    units = Units.trials(int(own.sum()), int((~own).sum()))
    if scores.speakers is not None:
        units = Units.speakers(enrol[own], enrol[~own], test[~own])
    return SortedTrials.of(values[own], values[~own], units, thresholds=battery.thresholds)


def _count(scores: StreamedScores, system: str, battery: Battery) -> Roc:
    """The statistic of a system: its distinct target scores, then the nontargets among them."""
    missed, accepted = SummedSoftplus(), SummedSoftplus()
    distinct, counts = np.zeros((2, 0))
    held: list[FloatArray] = []
    for batch in scores.batches(system):
        held.append(batch.scores[batch.is_target])
        missed.add(-held[-1])
        if sum(part.size for part in held) > HELD:
            distinct, counts = _merged(distinct, counts, held)
            held = []
    distinct, counts = _merged(distinct, counts, held)

    def nontargets() -> Iterator[FloatArray]:
        total, done = sum(scores.counts.values()), 0
        for batch in scores.batches(system):
            values = batch.scores[~batch.is_target]
            accepted.add(values)
            yield values
            done += batch.scores.size
            advance(done, total)

    thresholds = battery.thresholds
    roc = Roc.from_blocks(distinct, nontargets(), target_weights=counts, thresholds=thresholds)
    return replace(roc, loss=(missed.total, accepted.total))


def _merged(
    scores: FloatArray, counts: FloatArray, more: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and their counts, with further scores put in."""
    added = np.concatenate([np.zeros(0), *more])
    distinct, index = np.unique(np.concatenate([scores, added]), return_inverse=True)
    weights = np.concatenate([counts, np.ones(added.size)])
    total: FloatArray = np.bincount(index, weights, minlength=distinct.size).astype(np.float64)
    return distinct, total
