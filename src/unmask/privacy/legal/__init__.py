"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from unmask.privacy.attack import CENTRED, CENTRED_NEGATED, NEGATED, PLAIN, READINGS, Attacker
from unmask.privacy.attack import (
    RELEASE,
    SCENARIOS,
    HeldOut,
    Reading,
    attack_scenarios,
    centred,
    every_second,
    of_people,
)
from unmask.privacy.attack import pooled, with_backends, with_groups, within_release
from unmask.privacy.legal.curve import TITLES, Curve, RiskCurve, notice, spoken
from unmask.privacy.legal.linking import Linkability, Ranks, linkability, ranks_of
from unmask.privacy.legal.from_scores import (
    count_above_in_scores,
    linkability_from_scores,
    matrix_risks,
)
from unmask.privacy.legal.from_scores import ranks_from_scores, singling_out_from_scores
from unmask.privacy.legal.probe import Inference, inference
from unmask.privacy.legal.isolating import SinglingOut, singling_out
from unmask.privacy.legal.strongest import SPLITS, STRONG_ENOUGH, LearningCurve, Overlap, Strongest
from unmask.privacy.legal.strongest import extent, learning_curve, linked, on_fewer, overlaps
from unmask.privacy.legal.strongest import strongest_of
from unmask.privacy.legal.sweep import (
    METRICS,
    LegalSweep,
    default_counts,
    fitting_lengths,
    legal,
)
from unmask.privacy.legal.verification import one_minus_eer
from unmask.scoring import BACKENDS, known_backend
