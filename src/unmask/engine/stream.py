"""Every detection metric of score files larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.engine.battery import NOT_ASKED, Battery
from unmask.engine.binned import BinnedSystem, BinnedTrials, binned_bootstrap, edges_of
from unmask.engine.bootstrap import Resampled, Units, bootstrap
from unmask.engine.evaluation import Evaluation, SystemResult
from unmask.engine.first_order import Batch, FirstOrder, count_speakers
from unmask.engine.information import SummedSoftplus
from unmask.engine.metrics import negated_warnings
from unmask.engine.roc import Roc
from unmask.engine.units import AUTO_REPLICATES, AUTO_TRIALS, reason_none, said_of
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.run import advance, part
from unmask.trials import (
    NONTARGET,
    TARGET,
    OnProblem,
    ScoreBatch,
    Speakers,
    StreamedScores,
    streamed_scores,
)

HELD = 1 << 22


def stream_scores(
    path: str | Path | Sequence[str | Path],
    *,
    key: str | Path | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    format: str | None = None,
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """The table of :func:`evaluate` for text, gzip or parquet of any length.

    Files are read once. What is needed of them goes to a temporary folder, where trials are
    compared and joined by hashes of their identifiers, part by part; options and errors are those
    of :func:`read_scores`, and several files are one table of several systems as in
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
    warnings: list[str] = []
    told: list[str] = []
    drawn = AUTO_REPLICATES if replicates is None else replicates
    with ExitStack() as stack:
        with part(0, 2):
            scores = stack.enter_context(
                streamed_scores(
                    paths,
                    key=key,
                    speakers=speakers,
                    systems=systems,
                    format=format,
                    missing=missing,
                    duplicates=duplicates,
                )
            )
        rows = scores.speaker_count or 1
        options: dict[str, Any] = {"ranges": battery.ranges, "replicates": drawn, "seed": seed}
        for i, name in enumerate(scores.systems):
            with part(1, 2), part(i, len(scores.systems)):
                roc = _count(scores, name, battery)
            warnings += [f"{name}: {text}" for text in negated_warnings(roc, roc.negated())]
            intervals: dict[str, Interval] = {}
            reason = NOT_ASKED
            if drawn:
                if sum(scores.counts.values()) <= AUTO_TRIALS:
                    whole, units = _whole(scores, name, battery)
                    found = bootstrap([whole], units, battery.values, **options)
                else:
                    table = _binned(scores, name, edges_of(roc, battery.thresholds, rows=rows))
                    found = binned_bootstrap([table], [roc], battery.values, **options)
                intervals = battery.intervals(found, level=level)
                reason = reason_none(scores.speaker_count) if found.units < 2 else ""
                told = said_of(found.units, speakers=scores.speaker_count)
            estimates = battery.estimates(
                roc,
                intervals,
                trials=scores.trials,
                speakers=scores.speaker_count,
                no_interval=reason,
            )
            results.append(SystemResult(name, None, estimates, roc))
        return Evaluation(tuple(results), scores.sources, (*warnings, *told), seed)


def _whole(scores: StreamedScores, system: str, battery: Battery) -> tuple[Resampled, Units]:
    """All trials of a system, which are few enough to hold, and what is drawn of them."""
    batches = [
        (b.scores[k], b.label[k] == TARGET, *_speakers(b, k)) for b, k in _labelled(scores, system)
    ]
    values, own, enrol, test = (np.concatenate(part) for part in zip(*batches, strict=True))
    units = Units.trials(int(own.sum()), int((~own).sum()))
    if scores.speakers is not None:
        units = Units.speakers(enrol[own], enrol[~own], test[~own])
    whole = Resampled.of(values[own], values[~own], units, thresholds=battery.thresholds)
    return whole, units


def _speakers(
    batch: ScoreBatch, kept: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Speakers of both sides; nobody where they are not known."""
    nobody = np.zeros(len(kept), np.int32)
    enrol, test = batch.enrol_speaker, batch.test_speaker
    if enrol is None or test is None:
        return nobody[kept], nobody[kept]
    return enrol[kept], test[kept]


def _binned(scores: StreamedScores, system: str, edges: FloatArray) -> BinnedSystem:
    """Trials of a system in bins, by speaker where speakers are known."""
    if scores.speakers is None:
        pairs = ((b.scores[k], b.label[k] == TARGET) for b, k in _labelled(scores, system))
        return BinnedTrials.of(pairs, edges)
    batches = (
        Batch(b.scores[k], b.label[k] == TARGET, b.enrol_speaker[k], b.test_speaker[k])
        for b, k in _labelled(scores, system)
        if b.enrol_speaker is not None and b.test_speaker is not None
    )
    return FirstOrder(count_speakers(batches, edges, len(scores.speakers)).present())


def _labelled(
    scores: StreamedScores, system: str
) -> Iterator[tuple[ScoreBatch, npt.NDArray[np.bool_]]]:
    """Batches, and which of their trials belong to a class."""
    for batch in scores.batches(system, speakers=True):
        yield batch, (batch.label == TARGET) | (batch.label == NONTARGET)


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
        held.append(batch.scores[batch.label == TARGET])
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
        values = batch.scores[batch.label == NONTARGET]
        loss.add(values)
        yield values
        done += batch.label.size
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
