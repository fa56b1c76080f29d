"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from unmask.privacy.legal.attack import (
    BACKENDS,
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
    VARIANTS,
    Curve,
    RiskCurve,
    variant_name,
)
from unmask.privacy.legal.links import (
    Linkability,
    count_above_in_scores,
    linkability,
    linkability_from_scores,
    ranks_from_scores,
)
from unmask.privacy.legal.matrix import matrix_linkability
from unmask.privacy.legal.probe import Inference, inference
from unmask.privacy.legal.ranks import Ranks, ranks_of
from unmask.privacy.legal.singling import SinglingOut, singling_out, singling_out_from_scores
from unmask.privacy.legal.strength import (
    SPLITS,
    STRONG_ENOUGH,
    Strongest,
    Worst,
    strongest_of,
    sweep_notices,
)
from unmask.privacy.legal.sweep import METRICS, TITLES, LegalSweep, default_counts, legal
from unmask.privacy.legal.verification import one_minus_eer

__all__ = [
    "BACKENDS",
    "CENTRED",
    "CENTRED_NEGATED",
    "METRICS",
    "NEGATED",
    "PLAIN",
    "SPLITS",
    "STRONG_ENOUGH",
    "TITLES",
    "VARIANTS",
    "Attacker",
    "Curve",
    "HeldOut",
    "Inference",
    "LegalSweep",
    "Linkability",
    "Ranks",
    "RiskCurve",
    "SinglingOut",
    "Strongest",
    "Worst",
    "attack_scenarios",
    "centred",
    "count_above_in_scores",
    "default_counts",
    "inference",
    "legal",
    "linkability",
    "linkability_from_scores",
    "matrix_linkability",
    "one_minus_eer",
    "pooled",
    "ranks_from_scores",
    "ranks_of",
    "singling_out",
    "singling_out_from_scores",
    "strongest_of",
    "sweep_notices",
    "variant_name",
    "with_backends",
]
