"""EER and D_ECE of the strongest attacks on halves of the people, back-ends fitted anew.

Nothing is drawn again here: :mod:`unmask.privacy.halves` says what the numbers are for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from unmask.assessment.attacks import AttackRun, Variant
from unmask.base import BoolArray, FloatArray
from unmask.engine import LARGEST_D_ECE, Roc
from unmask.errors import InputError
from unmask.privacy import D_ECE, EER, RiskScale, halves_of

SCALES: Mapping[str, RiskScale] = {"d_ece": D_ECE, "eer": EER}
"""Metrics by which the strongest attack is chosen, and how each tells risk."""
_MOST: Mapping[str, float] = {"d_ece": LARGEST_D_ECE, "eer": 0.0}
"""The most risk that each can show."""
_ALL = 1e-12

HalfNumbers = Mapping[str, FloatArray]
"""By metric the number of the strongest attack on each half."""
Chosen = Sequence[tuple[AttackRun, Sequence[Variant]]]
"""Attacks on one safeguard, each with some of its variants."""


def strongest_on_halves(chosen: Chosen, seed: int) -> HalfNumbers:
    """EER and D_ECE of the strongest of the ``chosen`` attacks among the people of each half.

    A variant that learns nothing from attacked people keeps its scores: those of a half are a part
    of the matrix of all. Any other is fitted on the half. Of a trained extractor only the back-end
    is fitted anew: the network has seen the people whom it was trained on, in every half. A half
    on which nothing can be fitted is left out.
    """
    found: dict[str, list[float]] = {metric: [] for metric in SCALES}
    for people in halves_of(chosen[0][0].people, seed):
        strongest = _strongest_among(chosen, people)
        for metric, value in strongest.items():
            found[metric].append(value)
    return {metric: np.array(values) for metric, values in found.items()}


def _strongest_among(chosen: Chosen, people: set[str]) -> dict[str, float]:
    """EER and D_ECE of the strongest attack on some of the people, empty if none can be fitted."""
    strongest: dict[str, float] = {}
    for attack, variants in chosen:
        for roc in _rocs(attack, variants, people):
            numbers = {"eer": roc.eer(), "d_ece": roc.d_ece()}
            for metric, value in numbers.items():
                sign = SCALES[metric].sign
                if metric not in strongest or sign * value > sign * strongest[metric]:
                    strongest[metric] = value
            # No attack can do better than one that separates everybody.
            if all(abs(strongest[metric] - most) < _ALL for metric, most in _MOST.items()):
                return strongest
    return strongest


def _rocs(attack: AttackRun, variants: Sequence[Variant], people: set[str]) -> Iterator[Roc]:
    """The ROC statistic of each variant on some of the people, where it can be fitted on them."""
    try:
        half = attack.within(people)
    except InputError:  # nobody is left to train on
        return
    models, tests = attack.places_of(half)
    is_target = half.is_target
    for variant in variants:
        if attack.learns_from_attacked(variant):
            try:
                scores = half.matrix(variant)
            except InputError:
                continue
        else:
            scores = attack.matrix(variant)[np.ix_(models, tests)]
        yield _roc_of(scores, is_target)


def _roc_of(scores: FloatArray, is_target: BoolArray) -> Roc:
    """The ROC statistic of a matrix, without pairs of two groups, which score −inf."""
    is_compared = np.isfinite(scores)
    return Roc.from_scores(scores[is_target & is_compared], scores[~is_target & is_compared])
