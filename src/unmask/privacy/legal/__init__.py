"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from unmask.privacy.legal.attackers import Attacker, legal_sweep
from unmask.privacy.legal.attributes import Inference, inference
from unmask.privacy.legal.backends import train_backend
from unmask.privacy.legal.config import (
    AttackerFiles,
    LegalConfig,
    legal_from_config,
    read_legal_config,
)
from unmask.privacy.legal.counts import count_above_in_scores
from unmask.privacy.legal.curve import Curve, RiskCurve
from unmask.privacy.legal.flags import STRONG_ENOUGH, sweep_warnings
from unmask.privacy.legal.ranks import Ranks
from unmask.privacy.legal.strongest import SPLITS, Strongest, strongest_of
from unmask.privacy.legal.sweep import TITLES, LegalSweep
from unmask.privacy.legal.variants import (
    CENTRED,
    CENTRED_NEGATED,
    NEGATED,
    PLAIN,
    VARIANTS,
    centred,
    variant_name,
)

__all__ = [
    "CENTRED",
    "CENTRED_NEGATED",
    "NEGATED",
    "PLAIN",
    "SPLITS",
    "STRONG_ENOUGH",
    "TITLES",
    "VARIANTS",
    "Attacker",
    "AttackerFiles",
    "Curve",
    "Inference",
    "LegalConfig",
    "LegalSweep",
    "Ranks",
    "RiskCurve",
    "Strongest",
    "centred",
    "count_above_in_scores",
    "inference",
    "legal_from_config",
    "legal_sweep",
    "read_legal_config",
    "strongest_of",
    "sweep_warnings",
    "train_backend",
    "variant_name",
]
