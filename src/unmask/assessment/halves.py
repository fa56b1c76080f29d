"""EER and D_ECE of an attack on halves of the attacked people, back-ends fitted on each half anew.

Nothing is drawn again here: :mod:`unmask.privacy.halves` says what the numbers are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unmask.assessment.attacks import AttackRun, Variant
from unmask.base import BoolArray, FloatArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.privacy.halves import D_ECE, EER, RiskScale, halves_of

SCALES: Mapping[str, RiskScale] = {"d_ece": D_ECE, "eer": EER}
"""Metrics by which the strongest attack is chosen, and how each tells risk."""
HalfNumbers = Mapping[str, FloatArray]
"""By metric a number for each half, NaN where the attack could not be fitted on it."""


def numbers_of_halves(
    attack: AttackRun, variants: Sequence[Variant], seed: int
) -> dict[Variant, HalfNumbers]:
    """EER and D_ECE of every variant among the people of each half.

    A variant that learns nothing from attacked people keeps its scores: those of a half are a part
    of the matrix of all. Any other is fitted on the half. Of a trained extractor only the back-end
    is fitted anew: the network has seen the people whom it was trained on, in every half.
    """
    halves = halves_of(attack.people, seed)
    numbers = {v: {metric: np.full(len(halves), np.nan) for metric in SCALES} for v in variants}
    refitted = {variant for variant in variants if attack.learns_from_attacked(variant)}
    for place, people in enumerate(halves):
        try:
            half = attack.within(people)
        except InputError:  # nobody is left to train on
            continue
        is_target = half.is_target
        models, tests = attack.places_of(half)
        for variant in variants:
            if variant in refitted:
                try:
                    scores = half.matrix(variant)
                except InputError:
                    continue
            else:
                scores = attack.matrix(variant)[np.ix_(models, tests)]
            roc = _roc_of(scores, is_target)
            numbers[variant]["eer"][place] = roc.eer()
            numbers[variant]["d_ece"][place] = roc.d_ece()
    return dict(numbers)


def strongest_of_halves(attacks: Sequence[HalfNumbers], metric: str) -> FloatArray:
    """The number of the strongest of ``attacks`` on each half; a half that none fits is left out."""
    sign = SCALES[metric].sign
    # Attacks in rows, halves in columns; larger is more risk.
    risks = sign * np.array([numbers[metric] for numbers in attacks])
    is_fitted = ~np.isnan(risks).all(axis=0)
    return np.asarray(sign * np.nanmax(risks[:, is_fitted], axis=0))


def _roc_of(scores: FloatArray, is_target: BoolArray) -> Roc:
    """The ROC statistic of a matrix, without pairs of two groups, which score −inf."""
    is_compared = np.isfinite(scores)
    return Roc.from_scores(scores[is_target & is_compared], scores[~is_target & is_compared])
