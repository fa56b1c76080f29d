"""Every detection metric of trials that are counted and not held: all pairs of a set of embeddings,
score files of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, ceiling
from unmask.engine.binned_bootstrap import BinnedTrials, FirstOrder, count_speakers, edges_of
from unmask.engine.bootstrap import AUTO_TRIALS, SortedTrials, System, Units
from unmask.engine.evaluation import Analysis, Battery, Evaluation, SystemResult, evaluate_table
from unmask.engine.information import SummedSoftplus
from unmask.engine.metrics import negated_notices
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import advance, current_place, part, progress, run_on
from unmask.scoring import (
    BLOCK,
    UNIT,
    Backend,
    CountAmong,
    CountBySpeaker,
    PairGrid,
    RowOrder,
    Tally,
    TargetScores,
    backend_named,
    shards_of,
    sides_of,
)
from unmask.trials import (
    Embeddings,
    Speakers,
    StreamedScores,
    is_large,
    read_scores,
    streamed_scores,
)

HELD = 1 << 22


def cross_pairing(
    embeddings: Embeddings | str | Path | Sequence[str | Path],
    *,
    pairs: str = "all",
    enrolment: int = 1,
    backend: Backend | str = "cosine",
    speakers: Speakers | None = None,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    block: int = BLOCK,
) -> Evaluation:
    """Every detection metric over cross-paired embeddings (Li 2022, section 1), exactly.

    ``pairs="all"``: any two utterances are a trial, n(n − 1)/2 in all. ``"enrolment-fixed"``: the
    first ``enrolment`` utterances of each speaker against all the others. ``embeddings`` is a set
    in memory, a file, or several files that together are one set; ``speakers`` says who speaks
    where files do not. ``backend`` is as in :func:`~unmask.scoring.backend_named`, ``battery`` what
    is measured.

    Scores are float32 products of prepared vectors, in blocks of ``block`` rows and columns that
    run on the current :func:`~unmask.run.run_on`. Their counts are integers, so the result depends
    neither on the place nor on ``block`` nor on the order of arrival. With a state, prepared rows
    and what is counted lie there, and a call that failed goes on.

    Intervals, at ``level``, are of the speaker bootstrap: that of all trials up to two million of
    them, beyond that first order in the draws (:mod:`.binned_bootstrap`), from a second pass
    that counts by speaker. 1,000 ``replicates`` unless given, from ``seed``; 0 leaves them out.
    """
    analysis = Analysis.of(battery, replicates, level, seed)
    scoring, thresholds = backend_named(backend), analysis.battery.thresholds
    order = RowOrder.of(shards_of(embeddings, speakers=speakers), pairs=pairs, enrolment=enrolment)
    few = order.trials <= AUTO_TRIALS
    parts = 1 if few or replicates == 0 else 2
    drawn_from: Callable[[], Any] = partial(_trials_of_pairs, order, scoring, thresholds)
    with order.prepared(scoring) as rows:
        with part(0, parts):
            roc = _roc_of(rows, thresholds, block)
        if parts == 2:
            edges = edges_of(roc, thresholds, rows=order.speakers)
            with part(1, parts):
                counts = CountBySpeaker(rows, edges, order.speakers).total(block=block)
            drawn_from = partial(FirstOrder, counts, roc)
    with run_on(), progress(None):
        measured = analysis.of_counted(
            roc, drawn_from, trials=order.digest, speakers=order.speakers
        )
    sources = tuple(shard.source for shard in order.shards if shard.source is not None)
    notices = [*(notice.about(scoring.name) for notice in negated_notices(roc)), *measured.notices]
    return Evaluation((measured.result(scoring.name),), sources, tuple(notices), seed)


def _trials_of_pairs(
    order: RowOrder, backend: Backend, thresholds: Sequence[float]
) -> SortedTrials:
    """All trials of few rows, sorted, with the speakers of each."""
    vectors = np.concatenate([part for shard in order.shards for _, part in shard.slices()])
    sides = sides_of(backend, vectors)
    enrol = tested = np.arange(len(vectors))
    if not order.symmetric:
        enrol, tested = np.flatnonzero(order.enrolled), np.flatnonzero(~order.enrolled)
    rows, columns = sides.enrol[enrol].astype(np.float32), sides.test[tested].astype(np.float32)
    scores = (rows @ columns.T).astype(np.float64)
    one, other = order.speaker[enrol][:, None], order.speaker[tested][None, :]
    trial = enrol[:, None] < tested[None, :] if order.symmetric else np.full(scores.shape, True)
    own, others = trial & (one == other), trial & (one != other)
    one, other = np.broadcast_arrays(one, other)
    units = Units.speakers(one[own], one[others], other[others])
    return SortedTrials.of(scores[own], scores[others], units, thresholds=thresholds)


def roc_of_pairs(
    embeddings: Embeddings, backend: Backend, *, thresholds: Sequence[float] = ()
) -> Roc:
    """The ROC statistic of all pairs of a set under a back-end, at ``thresholds`` as well."""
    with RowOrder.of(shards_of(embeddings), pairs="all").prepared(backend) as rows:
        return _roc_of(rows, thresholds, BLOCK)


def _roc_of(pairs: PairGrid, thresholds: Sequence[float], block: int) -> Roc:
    """The statistic at target scores, which come from processors everywhere, and thresholds."""
    with progress(None), run_on() if current_place().on == "cuda" else nullcontext():
        targets = TargetScores.of(pairs)
    knots = targets.knots(thresholds)
    tally = CountAmong(pairs, knots).total(targets=targets.scores.size, block=block)
    if not tally.total:
        raise InputError("pairs", "nontarget trials", "none")
    return statistic(targets, thresholds, knots, tally)


def statistic(
    targets: TargetScores, thresholds: Sequence[float], knots: npt.NDArray[Any], tally: Tally
) -> Roc:
    """From counts at float32 knots to those at the target scores and thresholds themselves."""
    exact = targets.scores.astype(np.float64)
    scores = np.unique(np.concatenate([exact, np.asarray(tuple(thresholds), np.float64)]))
    index = np.searchsorted(knots, ceiling(tuple(scores)))
    equal = np.where(knots[index] == scores, tally.equal[index], 0)
    target = np.zeros(scores.size, np.int64)
    target[np.searchsorted(scores, exact)] = targets.counts
    missed = float(targets.counts @ np.logaddexp(0.0, -exact))
    loss = missed, tally.loss * UNIT
    return Roc.from_counts(scores, target, tally.below[index], equal, tally.total, loss)


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
