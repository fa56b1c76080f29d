"""What anonymisation leaves of an identity."""

from unmask.privacy.held_out import Attack, AttackModel, attack_models
from unmask.privacy.legal.attackers import (
    Attacker,
    default_counts,
    legal_sweep,
    with_backends,
)
from unmask.privacy.legal.attributes import (
    Inference,
    inference,
)
from unmask.privacy.legal.config import (
    LegalConfig,
    legal_from_config,
    read_legal_config,
)
from unmask.privacy.legal.curve import (
    Curve,
    RiskCurve,
)
from unmask.privacy.legal.isolated import (
    SinglingOut,
    singling_out,
    singling_out_from_scores,
)
from unmask.privacy.legal.links import (
    Linkability,
    linkability,
    linkability_from_scores,
)
from unmask.privacy.legal.lists_eer import (
    verification,
)
from unmask.privacy.legal.ranks import (
    Ranks,
    ranks_from_scores,
    ranks_of,
)
from unmask.privacy.legal.strongest import (
    Strongest,
    Worst,
    strongest_of,
)
from unmask.privacy.legal.sweep import (
    LegalSweep,
)
from unmask.privacy.legal.variants import (
    centred,
)
from unmask.privacy.menagerie import Corner, Zoo, zoo
from unmask.privacy.similarity import (
    PrivacyAssessment,
    Pseudonymisation,
    Safeguard,
    SessionAssessment,
    SimilaritySet,
    SpeakerProtection,
    StrongestAttack,
    calibration_distortion,
    pseudonymisation,
    read_matrices,
    safeguards,
    sessions,
)
from unmask.privacy.zebra import (
    CalibrationDistortion,
    Disclosure,
    SpeakerDisclosure,
    disclosure_of,
    zebra_by_speaker,
    zebra_profiles,
)

__all__ = [
    "Attack",
    "AttackModel",
    "Attacker",
    "CalibrationDistortion",
    "Corner",
    "Curve",
    "Disclosure",
    "Inference",
    "LegalConfig",
    "LegalSweep",
    "Linkability",
    "PrivacyAssessment",
    "Pseudonymisation",
    "Ranks",
    "RiskCurve",
    "Safeguard",
    "SessionAssessment",
    "SimilaritySet",
    "SinglingOut",
    "SpeakerDisclosure",
    "SpeakerProtection",
    "Strongest",
    "StrongestAttack",
    "Worst",
    "Zoo",
    "attack_models",
    "calibration_distortion",
    "centred",
    "default_counts",
    "disclosure_of",
    "inference",
    "legal_from_config",
    "legal_sweep",
    "linkability",
    "linkability_from_scores",
    "pseudonymisation",
    "ranks_from_scores",
    "ranks_of",
    "read_legal_config",
    "read_matrices",
    "safeguards",
    "sessions",
    "singling_out",
    "singling_out_from_scores",
    "strongest_of",
    "verification",
    "with_backends",
    "zebra_by_speaker",
    "zebra_profiles",
    "zoo",
]
