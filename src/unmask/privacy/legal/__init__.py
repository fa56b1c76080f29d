"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from unmask.privacy.legal.alignments import LEARNT, UNLABELLED, Pairs
from unmask.privacy.legal.attack import (
    BACKENDS,
    FREE,
    Attacker,
    HeldOut,
    attack_scenarios,
    centred,
    pooled,
    with_backends,
)
from unmask.privacy.legal.curve import (
    CENTRED,
    CENTRED_NEGATED,
    NEGATED,
    PLAIN,
    TITLES,
    VARIANTS,
    Curve,
    RiskCurve,
    variant_name,
)
from unmask.privacy.legal.learning import (
    LearningCurve,
    among,
    learning_curve,
    linked,
    of_people,
    on_fewer,
    trained_on,
)
from unmask.privacy.legal.links import (
    Linkability,
    count_above_in_scores,
    linkability,
    linkability_from_scores,
    ranks_from_scores,
)
from unmask.privacy.legal.matrix import matrix_risks
from unmask.privacy.legal.overlap import Overlap, overlaps
from unmask.privacy.legal.probe import Inference, inference
from unmask.privacy.legal.ranks import Ranks, ranks_of
from unmask.privacy.legal.singling import SinglingOut, singling_out, singling_out_from_scores
from unmask.privacy.legal.strength import (
    SPLITS,
    STRONG_ENOUGH,
    Strongest,
    Worst,
    extent,
    strongest_of,
    sweep_notices,
)
from unmask.privacy.legal.sweep import METRICS, LegalSweep, default_counts, legal
from unmask.privacy.legal.verification import one_minus_eer

__all__ = [
    "BACKENDS",
    "CENTRED",
    "CENTRED_NEGATED",
    "FREE",
    "LEARNT",
    "METRICS",
    "NEGATED",
    "PLAIN",
    "SPLITS",
    "STRONG_ENOUGH",
    "TITLES",
    "UNLABELLED",
    "VARIANTS",
    "Attacker",
    "Curve",
    "HeldOut",
    "Inference",
    "LearningCurve",
    "LegalSweep",
    "Linkability",
    "Overlap",
    "Pairs",
    "Ranks",
    "RiskCurve",
    "SinglingOut",
    "Strongest",
    "Worst",
    "among",
    "attack_scenarios",
    "centred",
    "count_above_in_scores",
    "default_counts",
    "extent",
    "inference",
    "learning_curve",
    "legal",
    "linkability",
    "linkability_from_scores",
    "linked",
    "matrix_risks",
    "of_people",
    "on_fewer",
    "one_minus_eer",
    "overlaps",
    "pooled",
    "ranks_from_scores",
    "ranks_of",
    "singling_out",
    "singling_out_from_scores",
    "strongest_of",
    "sweep_notices",
    "trained_on",
    "variant_name",
    "with_backends",
]
