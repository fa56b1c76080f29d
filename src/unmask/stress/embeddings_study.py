"""A worst-case study straight from embeddings: measured on all scores, fitted to some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unmask.base import BoolArray
from unmask.engine import Progress, roc_of_pairs
from unmask.errors import InputError
from unmask.run import place, reporting
from unmask.scoring import Backend, resolve
from unmask.stress.extrapolation.fitted import LEVEL
from unmask.stress.study import Asked, Sample, WorstCaseStudy, measured_counts
from unmask.stress.worst_case.embeddings import (
    SpeakerOrder,
    attacking,
    worst_case_of_embeddings,
)
from unmask.stress.worst_case.inputs import pairs_of_embeddings
from unmask.stress.worst_case.jackknife import GROUPS
from unmask.stress.worst_case.pairs import PairScores
from unmask.stress.worst_case.split import Crossed, proxied
from unmask.stress.worst_case.thresholds import counted_at, thresholds_of_roc
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
    compare: Sequence[str] = (),
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    proxy: Embeddings | None = None,
    proxy_backend: Backend | str = "cosine",
    split: bool = True,
    level: float = LEVEL,
    groups: int = GROUPS,
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
    make 16 million scores, which ``sample`` tells. ``proxy`` holds the same speakers through the
    encoder by which the adversary chooses; ``split`` is that of :func:`worst_case_of_embeddings`.
    """
    asked = Asked(population, model, tuple(target_rates), level, groups, seed, tuple(compare))
    if per_pair < 2:
        raise InputError(f"per_pair: expected at least 2, found {per_pair}")
    order = SpeakerOrder.of(embeddings)
    order.check(skip_single=skip_single)
    scorer = resolve(backend)
    with place(on, workers=workers, state=state), reporting(progress):
        roc = roc_of_pairs(embeddings, scorer, thresholds=counted_at(thresholds))
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    empirical = worst_case_of_embeddings(
        embeddings,
        [point.threshold for point in points],
        counts=measured_counts(int(order.impostors.min())),
        backend=scorer,
        proxy=proxy,
        proxy_backend=proxy_backend,
        split=split,
        skip_single=skip_single,
        groups=groups,
        level=level,
        seed=seed,
        on=on,
        workers=workers,
        state=state,
        progress=progress,
    )
    crossed, pairs, sample = sampled_pairs(
        embeddings, order, scorer, per_pair, split=split and proxy is None
    )
    if proxy is not None:
        chosen = pairs_of_embeddings(proxy, backend=proxy_backend, per_pair=1)
        crossed = Crossed(proxied(pairs, pairs.similarity_of(chosen)))
    return asked.study(
        points,
        roc,
        empirical,
        crossed,
        pairs,
        proxied=proxy is not None,
        sample=sample,
        progress=progress,
    )


def sampled_pairs(
    embeddings: Embeddings, order: SpeakerOrder, backend: Backend, per_pair: int, *, split: bool
) -> tuple[Crossed, PairScores, Sample | None]:
    """At most ``per_pair`` scores of a pair, and as many targets as fit; all scores if they do.

    First with the utterances that choose apart from those that attack, then as they are.
    """
    sizes = order.sizes
    speakers = len(order.names)
    of_target = np.minimum(np.median(sizes) * sizes, per_pair).sum()
    targets = min(max(int(_FITTED / of_target), _LEAST_TARGETS), speakers)
    everything = targets == speakers and sizes.max() ** 2 <= per_pair

    def pairs_of(attack: BoolArray | None) -> PairScores:
        return pairs_of_embeddings(
            embeddings,
            backend=backend,
            per_pair=None if everything else per_pair,
            targets=targets,
            attack=attack,
        )

    whole = pairs_of(None)
    several = order.paired(whole)
    pairs = replace(whole.select(several), skipped=order.skipped)
    folds: tuple[PairScores, ...] = ()
    if split:
        place = order.place
        folds = tuple(pairs_of(mask[place]).select(several) for mask in attacking(sizes))
    sample = None if everything else Sample(targets, per_pair)
    return Crossed(pairs, folds), pairs, sample
