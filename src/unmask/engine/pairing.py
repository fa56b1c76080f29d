"""Detection over all pairs of a set of embeddings, without ever holding the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unmask.base import FloatArray
from unmask.engine.binned import FirstOrder, edges_of
from unmask.engine.bootstrap import AUTO_TRIALS, Resampled, Units
from unmask.engine.evaluation import Battery, Evaluation, SystemResult, measure
from unmask.engine.metrics import negated_warnings
from unmask.engine.roc import Roc
from unmask.run import Progress
from unmask.scoring import BLOCK, Backend, CrossCounts, Layout, count_pairs, resolve, shards_of
from unmask.trials import Embeddings, Speakers


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
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> Evaluation:
    """Every detection metric over cross-paired embeddings (Li 2022, section 1), exactly.

    ``pairs="all"``: any two utterances are a trial, n(n − 1)/2 in all. ``"enrolment-fixed"``: the
    first ``enrolment`` utterances of each speaker against all the others. ``embeddings`` is a set
    in memory, a file, or several files that together are one set.

    ``on`` is where blocks run: ``local``, ``processes``, ``dask``, ``dask://HOST:PORT`` or
    ``cuda``. Scores are float32 products of prepared vectors; their counts are integers, so the
    result depends neither on ``workers`` nor on ``block`` nor on the order of arrival. ``state`` is
    a folder for prepared rows and finished blocks, from which a call that failed goes on.

    Intervals are of the speaker bootstrap: that of all trials up to two million of them, beyond
    that first order in the draws (:mod:`.first_order`), from a second pass that counts by speaker.
    1,000 ``replicates`` unless given, 0 leaves them out.
    """
    battery = battery or Battery()
    scoring = resolve(backend)
    layout = Layout.of(shards_of(embeddings, speakers=speakers), pairs=pairs, enrolment=enrolment)
    few = layout.trials <= AUTO_TRIALS

    def edges(counts: CrossCounts) -> FloatArray:
        roc = roc_of_counts(counts)
        return edges_of(roc, battery.thresholds, rows=layout.speakers)

    counts = count_pairs(
        layout,
        scoring,
        thresholds=battery.thresholds,
        edges=edges if replicates != 0 and not few else None,
        on=on,
        workers=workers,
        state=state,
        block=block,
        progress=progress,
    )
    roc = roc_of_counts(counts)

    def whole() -> tuple[Resampled, Units]:
        target, nontarget, units = _trials(layout, scoring)
        return Resampled.of(target, nontarget, units, thresholds=battery.thresholds), units

    def bins(_: FloatArray) -> FirstOrder:
        assert counts.by_speaker is not None
        return FirstOrder(counts.by_speaker)

    measured, messages = measure(
        roc,
        battery,
        replicates=replicates,
        seed=seed,
        speakers=layout.speakers,
        whole=whole if few else None,
        bins=bins,
    )
    warnings = [f"{scoring.name}: {text}" for text in negated_warnings(roc, roc.negated())]
    estimates = measured.estimates(
        battery, level=level, trials=layout.digest, speakers=layout.speakers
    )
    sources = tuple(shard.source for shard in layout.shards if shard.source is not None)
    result = SystemResult(scoring.name, None, estimates, roc)
    return Evaluation((result,), sources, (*warnings, *messages), seed)


def _trials(layout: Layout, backend: Backend) -> tuple[FloatArray, FloatArray, Units]:
    """Scores of both classes of a small layout, and the speakers of each."""
    vectors = np.concatenate([part for shard in layout.shards for _, part in shard.slices()])
    rows = backend.prepare(vectors).astype(np.float32)
    enrol = tested = np.arange(len(rows))
    if not layout.symmetric:
        enrol, tested = np.flatnonzero(layout.enrolled), np.flatnonzero(~layout.enrolled)
    scores = backend.score_block(rows[enrol], rows[tested]).astype(np.float64)
    one, other = layout.speaker[enrol][:, None], layout.speaker[tested][None, :]
    trial = enrol[:, None] < tested[None, :] if layout.symmetric else np.full(scores.shape, True)
    own, others = trial & (one == other), trial & (one != other)
    one, other = np.broadcast_arrays(one, other)
    return scores[own], scores[others], Units.speakers(one[own], one[others], other[others])


def roc_of_counts(counts: CrossCounts) -> Roc:
    """The ROC statistic of counts that were taken in blocks."""
    return Roc(
        counts.scores,
        counts.target.astype(np.float64),
        counts.equal.astype(np.float64),
        counts.between.astype(np.float64),
        counts.loss,
    )
