"""Detection over all pairs of a set of embeddings, without ever holding the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unmask.detection.battery import Battery
from unmask.detection.bootstrap import Progress
from unmask.detection.evaluate import Evaluation, SystemResult
from unmask.detection.metrics import negated_warnings
from unmask.detection.roc import Roc
from unmask.scoring.backend import Backend
from unmask.scoring.blocks import resolve
from unmask.scoring.cross import CrossCounts, count_pairs
from unmask.scoring.layout import Layout
from unmask.scoring.plan import BLOCK
from unmask.scoring.shards import shards_of
from unmask.trials import Embeddings
from unmask.trials.speakers import Speakers


def cross_pairing(
    embeddings: Embeddings | str | Path | Sequence[str | Path],
    *,
    pairs: str = "all",
    enrolment: int = 1,
    backend: Backend | str = "cosine",
    speakers: Speakers | None = None,
    battery: Battery | None = None,
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
    """
    battery = battery or Battery()
    scoring = resolve(backend)
    layout = Layout.of(shards_of(embeddings, speakers=speakers), pairs=pairs, enrolment=enrolment)
    counts = count_pairs(
        layout,
        scoring,
        thresholds=battery.thresholds,
        on=on,
        workers=workers,
        state=state,
        block=block,
        progress=progress,
    )
    roc = roc_of_counts(counts)
    estimates = battery.estimates(roc, {}, trials=layout.digest, speakers=layout.speakers)
    warnings = [f"{scoring.name}: {text}" for text in negated_warnings(roc, roc.negated())]
    warnings.append("no intervals: cross-paired trials are counted and not kept")
    sources = tuple(shard.source for shard in layout.shards if shard.source is not None)
    result = SystemResult(scoring.name, None, estimates, roc)
    return Evaluation((result,), sources, tuple(warnings), 0)


def roc_of_counts(counts: CrossCounts) -> Roc:
    """The ROC statistic of counts that were taken in blocks."""
    return Roc(
        counts.scores,
        counts.target.astype(np.float64),
        counts.equal.astype(np.float64),
        counts.between.astype(np.float64),
        counts.loss,
    )
