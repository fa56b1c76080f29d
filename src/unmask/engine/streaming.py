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
from unmask.engine.bootstrap import AUTO_TRIALS, SortedTrials, System, Units, counted
from unmask.engine.evaluation import (
    Analysis,
    Evaluation,
    SystemResult,
    evaluate_table,
    nearest_of,
)
from unmask.engine.information import SummedSoftplus, histogram_edges
from unmask.engine.metrics import inverted_notices
from unmask.engine.operating import as_read, far_marks
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import advance, part
from unmask.trials import (
    ScoreBatch,
    StreamedScores,
    is_large,
    read_scores,
    streamed_scores,
)

HELD = 1 << 22
_DRAWN = 1 << 16


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
        in_memory = by is not None or analysis.equalise is not None
        stream = not in_memory and any(is_large(file) for file in paths)
    if not stream:
        return evaluate_table(read_scores(files, **options), analysis, by=by)
    if by is not None:
        raise InputError("by", f"all scores in memory to group by {by}", "a stream")
    if analysis.spoof or analysis.role is not None:
        raise InputError("spoof", "all scores in memory", "a stream")
    if analysis.equalise is not None or analysis.battery.eer == "speechbrain":
        name = "equalise" if analysis.equalise is not None else "eer"
        raise InputError(name, "all scores in memory", "a stream")
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
                roc = _count(scores, system, analysis, name)
            measured = analysis.of_counted(
                roc,
                partial(_trials_of_files, scores, system, roc, analysis),
                trials=scores.trials,
                speakers=scores.speaker_count,
                around=partial(_around, scores, system, roc, analysis),
            )
            results.append(measured.result(name))
            notices += [notice.about(name) for notice in inverted_notices(roc)]
        more = measured.notices if measured else ()
        return Evaluation(tuple(results), scores.sources, (*notices, *more), analysis.seed)


def _trials_of_files(scores: StreamedScores, system: str, roc: Roc, analysis: Analysis) -> System:
    """Trials of a system, in bins where they are too many to hold."""
    batches = _batches(scores, system, analysis, speakers=True)
    thresholds = analysis.battery.thresholds
    if sum(scores.counts.values()) > AUTO_TRIALS:
        edges = edges_of(roc, thresholds, rows=scores.speaker_count or 1)
        if scores.speakers is None:
            return BinnedTrials.of(batches, edges, roc)
        return FirstOrder(count_speakers(batches, edges, len(scores.speakers)).present(), roc)
    parts = [(batch.scores, batch.is_target, batch.enrol, batch.test) for batch in batches]
    values, own, enrol, test = (np.concatenate(part) for part in zip(*parts, strict=True))
    units = Units.trials(int(own.sum()), int((~own).sum()))
    if scores.speakers is not None:
        units = Units.speakers(enrol[own], enrol[~own], test[~own])
    both = values[own], values[~own]
    return SortedTrials.of(*both, units, roc=counted(*both, thresholds, roc.marks))


def _around(
    scores: StreamedScores, system: str, roc: Roc, analysis: Analysis, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The scores of trials next to thresholds, from one more pass."""
    batches = _batches(scores, system, analysis)
    return nearest_of(roc, (batch.scores[~batch.is_target] for batch in batches))(thresholds)


def _batches(
    scores: StreamedScores, system: str, analysis: Analysis, *, speakers: bool = False
) -> Iterator[ScoreBatch]:
    for batch in scores.batches(system, speakers=speakers):
        yield replace(batch, scores=as_read(batch.scores, analysis.battery.eer))


def _count(scores: StreamedScores, system: str, analysis: Analysis, name: str) -> Roc:
    """The statistic of a system: its distinct target scores, then the nontargets among them.

    A demanded false-alarm rate takes two more passes. Nontargets that were drawn evenly tell about
    where its threshold lies; those between the two scores around it are then looked at one by one.
    """
    missed, accepted = SummedSoftplus(), SummedSoftplus()
    distinct, counts = np.zeros((2, 0))
    held: list[FloatArray] = []
    some: list[FloatArray] = []
    lowest, highest = np.inf, -np.inf
    battery, every = analysis.battery, max(scores.counts["nontarget"] // _DRAWN, 1)
    for batch in _batches(scores, system, analysis):
        held.append(batch.scores[batch.is_target])
        missed.add(-held[-1])
        some += [batch.scores[~batch.is_target][::every]] if battery.far else []
        lowest = min(lowest, batch.scores.min(initial=np.inf))
        highest = max(highest, batch.scores.max(initial=-np.inf))
        if sum(part.size for part in held) > HELD:
            distinct, counts = _merged(distinct, counts, held)
            held = []
    distinct, counts = _merged(distinct, counts, held)
    marks = {f"far@{far}": far_marks(np.concatenate(some), far) for far in battery.far}
    marks |= analysis.set_for(name)
    if battery.d_sys == "histogram":
        marks["histogram"] = histogram_edges(int(counts.sum()), lowest, highest)

    def nontargets() -> Iterator[FloatArray]:
        total, done = sum(scores.counts.values()), 0
        for batch in _batches(scores, system, analysis):
            yield batch.scores[~batch.is_target]
            done += batch.scores.size
            advance(done, total)

    def counted(blocks: Iterator[FloatArray]) -> Roc:
        given = battery.thresholds
        return Roc.from_blocks(
            distinct, blocks, target_weights=counts, thresholds=given, marks=marks
        )

    roc = counted(accepted.added(nontargets()))
    for far in battery.far:
        marks[f"far@{far}"] = _exact(roc, far, nontargets())
    if battery.far:
        roc = counted(nontargets())
    return replace(roc, loss=(missed.total, accepted.total))


def _exact(roc: Roc, far: float, nontargets: Iterator[FloatArray]) -> FloatArray:
    """The marks of a demanded false-alarm rate, with the smallest threshold that keeps it."""
    marks = roc.marks[f"far@{far}"]
    high = roc.far_point(far).threshold
    if np.isnan(high):
        return marks  # no threshold keeps the demand
    row = int(np.searchsorted(roc.scores, high))
    low = roc.scores[row - 1] if row else -np.inf
    within = np.concatenate([part[(part >= low) & (part < high)] for part in nontargets])
    allowed = int(far * (1 + 1e-12) * roc.nontargets)
    accepted = int(roc.nontargets - (roc.below[row] if row < roc.scores.size else roc.nontargets))
    exact = np.nextafter(np.sort(within)[within.size - 1 - (allowed - accepted)], np.inf)
    at = int(np.argmin(np.abs(marks - exact)))
    return np.sort(np.concatenate([marks[:at], [exact], marks[at + 1 :]]))


def _merged(
    scores: FloatArray, counts: FloatArray, more: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and their counts, with further scores put in."""
    added = np.concatenate([np.zeros(0), *more])
    distinct, index = np.unique(np.concatenate([scores, added]), return_inverse=True)
    weights = np.concatenate([counts, np.ones(added.size)])
    total: FloatArray = np.bincount(index, weights, minlength=distinct.size).astype(np.float64)
    return distinct, total
