"""A worst-case study straight from embeddings: measured on all scores, fitted to some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unmask.detection.bootstrap import Progress
from unmask.detection.cross_pairing import roc_of_counts
from unmask.errors import InputError
from unmask.scoring import Backend, count_pairs, resolve
from unmask.scoring.layout import Layout
from unmask.scoring.shards import shards_of
from unmask.stress.extrapolation.choose import REPLICATES
from unmask.stress.extrapolation.fitted import LEVEL
from unmask.stress.worst_case_embeddings import SpeakerOrder, worst_case_of_embeddings
from unmask.stress.worst_case_input import pairs_of_embeddings
from unmask.stress.worst_case_pairs import PairScores
from unmask.stress.worst_case_study import Asked, Sample, WorstCaseStudy, measured_counts
from unmask.stress.worst_case_thresholds import counted_at, thresholds_of_roc
from unmask.trials import Embeddings

PER_PAIR = 20
_FITTED = 1 << 24
_LEAST_TARGETS = 50


def worst_case_study_of_embeddings(
    embeddings: Embeddings,
    *,
    backend: Backend | str = "cosine",
    per_pair: int = PER_PAIR,
    skip_single: bool = False,
    population: int | None = None,
    model: str = "auto",
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    level: float = LEVEL,
    replicates: int = 1000,
    refits: int = REPLICATES,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCaseStudy:
    """As :func:`worst_case_study`, of all pairs of utterances, without ever holding their scores.

    Thresholds and misses come from the detection statistic over all pairs, rates up to the
    impostors at hand from :func:`worst_case_of_embeddings`: both from every score, on any place.
    Beyond, a model is fitted to at most ``per_pair`` scores of a pair, and to as many targets as
    make 16 million scores, which ``sample`` tells.
    """
    asked = Asked(population, model, tuple(target_rates), level, refits, seed)
    if per_pair < 2:
        raise InputError(f"per_pair: expected at least 2, found {per_pair}")
    order = SpeakerOrder.of(embeddings)
    order.check(skip_single=skip_single)
    scorer = resolve(backend)
    layout = Layout.of(shards_of(embeddings), pairs="all")
    kept = None if state is None else Path(state) / f"pairs-{layout.key(scorer)}"
    counted = count_pairs(
        layout,
        scorer,
        thresholds=counted_at(thresholds),
        on=on,
        workers=workers,
        state=kept,
        progress=progress,
    )
    roc = roc_of_counts(counted)
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    empirical = worst_case_of_embeddings(
        embeddings,
        [point.threshold for point in points],
        counts=measured_counts(int(order.impostors.min())),
        backend=scorer,
        skip_single=skip_single,
        replicates=replicates,
        level=level,
        seed=seed,
        on=on,
        workers=workers,
        state=state,
        progress=progress,
    )
    pairs, sample = sampled_pairs(embeddings, order, scorer, per_pair)
    return asked.study(points, roc, empirical, pairs, sample=sample, progress=progress)


def sampled_pairs(
    embeddings: Embeddings, order: SpeakerOrder, backend: Backend, per_pair: int
) -> tuple[PairScores, Sample | None]:
    """At most ``per_pair`` scores of a pair, and as many targets as fit; all scores if they do."""
    sizes = np.diff(order.edges)
    speakers = len(order.names)
    of_target = np.minimum(np.median(sizes) * sizes, per_pair).sum()
    targets = min(max(int(_FITTED / of_target), _LEAST_TARGETS), speakers)
    pairs = pairs_of_embeddings(embeddings, backend=backend, per_pair=per_pair, targets=targets)
    pairs = replace(pairs.without_single_scores(), skipped=order.skipped)
    if targets == speakers and sizes.max() ** 2 <= per_pair:
        return pairs, None
    return pairs, Sample(targets, per_pair)
