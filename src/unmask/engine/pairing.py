"""Every detection metric of all pairs of a set of embeddings, which are counted and not held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, BySpeaker, FloatArray, IntArray, ceiling
from unmask.engine.battery import Battery
from unmask.engine.binned_bootstrap import FirstOrder, edges_of
from unmask.engine.bootstrap import AUTO_TRIALS, SortedTrials, Units, counted
from unmask.engine.evaluation import Analysis, Evaluation, evaluate_table, group_masks
from unmask.engine.groups import GroupedCounts, gaps_at, points_of
from unmask.engine.metrics import inverted_notices
from unmask.engine.operating import MARKS
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import current_place, part, progress, run_on
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
    Ids,
    Scores,
    Source,
    Speakers,
    joined_embeddings,
    read_embeddings,
)

_TRIED = 4096
_GRID = np.linspace(-1, 1, _TRIED + 1, dtype=np.float32)
"""Where scores of cosines are counted as well, so that few passes find a demanded rate."""
_LARGEST = 0x7F7FFFFF
"""The place of the largest finite float32."""


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
    by: str | None = None,
    alpha: float = 0.5,
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
    Demanded false-alarm rates take one to three passes more (:func:`_thresholds_for`).

    ``by`` groups speakers by a column of the embeddings, which then are all in memory: each group's
    pairs are a table of their own, and gaps between groups, of which ``alpha`` weighs FMR, come
    from counts by speaker.
    """
    analysis = replace(Analysis.of(battery, replicates, level, seed), alpha=alpha)
    if needed := replace(analysis.battery, far=()).of_scores:
        raise InputError(needed, "scores that are kept", "pairs, which are counted and forgotten")
    scoring, thresholds = backend_named(backend), analysis.battery.thresholds
    if by is not None:
        chosen = {"pairs": pairs, "enrolment": enrolment}
        voices, sources = _in_memory(embeddings, speakers)
        table = _by_group(voices, scoring, analysis, by, block, chosen)
        return replace(table, sources=sources)
    order = RowOrder.of(shards_of(embeddings, speakers=speakers), pairs=pairs, enrolment=enrolment)
    few = order.trials <= AUTO_TRIALS
    parts = 1 if few or replicates == 0 else 2
    with order.prepared(scoring) as rows:
        with part(0, parts):
            roc = _roc_of(rows, thresholds, block, analysis.battery.far)
        drawn_from: Callable[[], Any] = partial(_trials_of_pairs, order, scoring, thresholds, roc)
        if parts == 2:
            edges = edges_of(roc, thresholds, rows=order.speakers)
            with part(1, parts):
                counts = CountBySpeaker(rows, edges, order.speakers).total(block=block)
            drawn_from = partial(FirstOrder, counts, roc)
    with run_on(), progress(None):
        measured = analysis.of_counted(
            roc, drawn_from, trials=order.digest, speakers=order.speakers, around=_around
        )
    sources = tuple(shard.source for shard in order.shards if shard.source is not None)
    notices = [*(notice.about(scoring.name) for notice in inverted_notices(roc)), *measured.notices]
    return Evaluation((measured.result(scoring.name),), sources, tuple(notices), seed)


def _around(thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores of 32 bits next to thresholds, whether a trial has them or not: nobody kept any."""
    above = ceiling(thresholds)
    return np.nextafter(above, np.float32(-np.inf)).astype(float), above.astype(float)


class FewPairs(NamedTuple):
    """Scores of pairs that are few enough to be held, their rows, and which are of one speaker."""

    scores: FloatArray
    enrol: IntArray
    test: IntArray
    is_target: BoolArray

    @classmethod
    def of(cls, order: RowOrder, backend: Backend) -> FewPairs:
        """Score all pairs of some rows at once."""
        vectors = np.concatenate([part for shard in order.shards for _, part in shard.slices()])
        sides = sides_of(backend, vectors)
        enrol = tested = np.arange(len(vectors))
        if not order.symmetric:
            enrol, tested = np.flatnonzero(order.enrolled), np.flatnonzero(~order.enrolled)
        rows = sides.enrol[enrol].astype(np.float32)
        columns = sides.test[tested].astype(np.float32)
        scores = (rows @ columns.T).astype(np.float64)
        trial = enrol[:, None] < tested[None, :] if order.symmetric else np.full(scores.shape, True)
        first, second = np.nonzero(trial)
        first, second = enrol[first], tested[second]
        return cls(scores[trial], first, second, order.speaker[first] == order.speaker[second])


def _trials_of_pairs(
    order: RowOrder, backend: Backend, thresholds: Sequence[float], roc: Roc
) -> SortedTrials:
    few = FewPairs.of(order, backend)
    enrol, test = order.speaker[few.enrol], order.speaker[few.test]
    units = Units.speakers(enrol[few.is_target], enrol[~few.is_target], test[~few.is_target])
    classes = few.scores[few.is_target], few.scores[~few.is_target]
    # The same scores counted once more, since a product of other shape may differ in its last bit.
    return SortedTrials.of(*classes, units, roc=counted(*classes, thresholds, roc.marks))


def _in_memory(
    embeddings: Embeddings | str | Path | Sequence[str | Path], speakers: Speakers | None
) -> tuple[Embeddings, tuple[Source, ...]]:
    """A set in memory with its columns, of one file or of several, and where it comes from."""
    if isinstance(embeddings, Embeddings):
        return embeddings, () if embeddings.source is None else (embeddings.source,)
    paths = [embeddings] if isinstance(embeddings, str | Path) else list(embeddings)
    if not paths:
        raise InputError("expected files of embeddings, found none")
    sets = [read_embeddings(path, speakers=speakers) for path in paths]
    sources = tuple(voices.source for voices in sets if voices.source is not None)
    return joined_embeddings(sets), sources


def _by_group(
    voices: Embeddings,
    backend: Backend,
    analysis: Analysis,
    by: str,
    block: int,
    chosen: Mapping[str, Any],
) -> Evaluation:
    """The table of all pairs and of those within each group, and the gaps between groups."""
    named = dict(group_masks(voices, by))
    order = RowOrder.of(shards_of(voices), **chosen)
    if order.trials <= AUTO_TRIALS:
        return evaluate_table(_table_of_pairs(order, backend, voices, by), analysis, by=by)
    about: dict[str, Any] = {"battery": analysis.battery, "backend": backend, "block": block}
    about |= {"level": analysis.level, "seed": analysis.seed, **chosen}
    about["replicates"] = None if analysis.auto else analysis.replicates
    whole = cross_pairing(voices, **about)
    results, notices = [*whole.results], [*whole.notices]
    groups = {name: voices.select(rows) for name, rows in named.items()}
    for name, some in groups.items():
        try:
            table = cross_pairing(some, **about)
        except InputError as error:
            notices.append(Notice("group-left-out", f"group {name}", f"left out, {error}"))
            continue
        results += [replace(result, group=name) for result in table.results]
        notices += [notice.about(f"group {name}") for notice in table.notices]
    thresholds = list(points_of(whole.results[0], analysis).values())
    count = partial(_count_at, backend=backend, thresholds=thresholds, block=block, chosen=chosen)
    grouped = GroupedCounts.of(voices, by, thresholds, count)
    gaps = gaps_at(grouped, (np.empty(0), np.empty(0)), analysis, by, whole.results[0])
    return replace(whole, results=tuple(results), notices=tuple(notices), gaps=gaps)


def _count_at(
    voices: Embeddings,
    *,
    backend: Backend,
    thresholds: Sequence[float],
    block: int,
    chosen: Mapping[str, Any],
) -> BySpeaker:
    """Pairs of a set by speaker, in the order of names, between some thresholds."""
    order = RowOrder.of(shards_of(voices), **chosen)
    with order.prepared(backend) as rows:
        edges = np.unique(thresholds)
        return CountBySpeaker(rows, edges, order.speakers).total(block=block)


def _table_of_pairs(order: RowOrder, backend: Backend, voices: Embeddings, by: str) -> Scores:
    """All pairs as a list of scores, with the groups of both speakers."""
    few = FewPairs.of(order, backend)
    uttered = voices.utterances
    if uttered is None:
        uttered = Ids.from_strings([f"row {row + 1}" for row in range(len(voices))])
    sides = {"enrol": few.enrol, "test": few.test}
    return Scores(
        uttered.take(few.enrol),
        uttered.take(few.test),
        few.is_target.astype(np.int8),
        enrol_speaker=voices.speakers.take(few.enrol),
        test_speaker=voices.speakers.take(few.test),
        columns={f"{side}_{by}": voices.columns[by].take(rows) for side, rows in sides.items()},
        systems={backend.name: few.scores},
    )


def roc_of_pairs(
    embeddings: Embeddings, backend: Backend, *, thresholds: Sequence[float] = ()
) -> Roc:
    """The ROC statistic of all pairs of a set under a back-end, at ``thresholds`` as well."""
    with RowOrder.of(shards_of(embeddings), pairs="all").prepared(backend) as rows:
        return _roc_of(rows, thresholds, BLOCK)


def _roc_of(
    pairs: PairGrid, thresholds: Sequence[float], block: int, demands: Sequence[float] = ()
) -> Roc:
    """The statistic at target scores, which come from processors everywhere, and thresholds, those
    of demanded false-alarm rates among them.
    """
    with progress(None), run_on() if current_place().on == "cuda" else nullcontext():
        targets = TargetScores.of(pairs)
    knots = targets.knots(thresholds)
    if demands and not pairs.wide:
        knots = np.unique(np.concatenate([knots, _GRID]))
    tally = CountAmong(pairs, knots).total(targets=targets.scores.size, block=block)
    if not tally.total:
        raise InputError("pairs", "nontarget trials", "none")
    if not demands:
        return statistic(targets, thresholds, knots, tally)
    counts = TailCounts(knots, tally.below, tally.equal, tally.total)
    counts = _with_exact(counts, demands, pairs, block)
    marks = {f"far@{far}": _thresholds_for(far, counts) for far in demands}
    every = np.concatenate([np.asarray(tuple(thresholds), np.float64), *marks.values()])
    whole = replace(tally, below=counts.below, equal=counts.equal)
    roc = statistic(targets, every.tolist(), counts.knots, whole)
    return replace(roc, marks=marks)


@dataclass(frozen=True, eq=False)
class TailCounts:
    """Nontargets below and at ascending float32 knots, of a total: the tail of all pairs."""

    knots: npt.NDArray[np.float32]
    below: IntArray
    equal: IntArray
    total: int

    def row_of(self, far: float) -> int:
        """The first knot from which on at most this share is accepted; their number if none is."""
        accepted = self.total - self.below
        return int(np.searchsorted(-accepted, -int(far * (1 + 1e-12) * self.total)))

    def bracket(self, far: float) -> tuple[int, int]:
        """Numbers of 32 bits between which the smallest accepted score of that rate lies: more is
        accepted from the first, not from the second on.
        """
        row, ordinals = self.row_of(far), _ordinal(self.knots)
        low = int(ordinals[row - 1]) if row else -_LARGEST
        high = int(ordinals[row]) if row < ordinals.size else _LARGEST
        return low, high

    def merged(self, knots: npt.NDArray[np.float32], tally: Tally) -> TailCounts:
        """The same with further knots."""
        every, first = np.unique(np.concatenate([self.knots, knots]), return_index=True)
        below = np.concatenate([self.below, tally.below])[first]
        equal = np.concatenate([self.equal, tally.equal])[first]
        return TailCounts(every, below, equal, self.total)


def _with_exact(
    counts: TailCounts, demands: Sequence[float], pairs: PairGrid, block: int
) -> TailCounts:
    """Counts with the smallest float32 from which on each demand is kept.

    Each pass looks at many numbers between the two that are known to enclose it: by their order, of
    which there are 2³², at most three passes reach the number itself.
    """
    while True:
        added = [_between(*counts.bracket(far)) for far in demands]
        knots = np.unique(np.concatenate(added))
        if not knots.size:
            return counts
        more = CountAmong(pairs, knots, with_loss=False).total(targets=knots.size, block=block)
        counts = counts.merged(knots, more)


def _between(low: int, high: int) -> npt.NDArray[np.float32]:
    """Up to 4,096 numbers of 32 bits between two, evenly in their order; none of neighbours."""
    steps = np.linspace(low, high, min(high - low, _TRIED) + 1)[1:-1]
    return _number(np.unique(np.round(steps).astype(np.int64)))


def _thresholds_for(far: float, counts: TailCounts) -> FloatArray:
    """Thresholds around a demanded false-alarm rate, as :func:`~.operating.far_marks` has them, at
    knots: their rates are exact, and as near as knots lie to those wanted.
    """
    high = counts.knots[min(counts.row_of(far), counts.knots.size - 1)]
    exact = np.nextafter(float(np.nextafter(high, np.float32(-np.inf))), np.inf)
    rates = far * np.geomspace(16.0, 1 / 32, MARKS - 1)
    rows = [min(counts.row_of(rate), counts.knots.size - 1) for rate in rates]
    return np.sort(np.append(counts.knots[rows].astype(np.float64), exact))


def _ordinal(numbers: npt.NDArray[np.float32]) -> IntArray:
    """The place of finite float32 numbers in their order; 0 is that of zero."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def _number(ordinals: IntArray) -> npt.NDArray[np.float32]:
    """The float32 numbers of some places."""
    size = np.abs(ordinals).astype(np.int32).view(np.float32)
    return np.where(ordinals < 0, -size, size)


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
