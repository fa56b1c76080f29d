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
from unmask.privacy.menagerie import (
    Corner,
    Zoo,
    zoo_of_scores,
    zoo_of_set,
)
from unmask.privacy.similarity.attackers import (
    SpeakerProtection,
    StrongestAttack,
)
from unmask.privacy.similarity.distortion import (
    calibration_distortion_from_embeddings,
    calibration_distortion_from_scores,
)
from unmask.privacy.similarity.files import (
    read_matrices,
)
from unmask.privacy.similarity.matrix import (
    SimilaritySet,
)
from unmask.privacy.similarity.pseudonyms import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.privacy.similarity.result import (
    Pseudonymisation,
)
from unmask.privacy.similarity.safeguards import (
    PrivacyAssessment,
    Safeguard,
    assess_safeguards,
)
from unmask.privacy.similarity.session_pairs import (
    SessionAssessment,
    assess_sessions,
)
from unmask.privacy.zebra.profiles import (
    CalibrationDistortion,
    Disclosure,
    calibration_distortion,
    disclosure_of,
    zebra_profiles,
)
from unmask.privacy.zebra.speakers import (
    SpeakerDisclosure,
    zebra_by_speaker,
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
    "assess_safeguards",
    "assess_sessions",
    "attack_models",
    "calibration_distortion",
    "calibration_distortion_from_embeddings",
    "calibration_distortion_from_scores",
    "centred",
    "default_counts",
    "disclosure_of",
    "inference",
    "legal_from_config",
    "legal_sweep",
    "linkability",
    "linkability_from_scores",
    "pseudonymisation",
    "pseudonymisation_from_embeddings",
    "pseudonymisation_from_scores",
    "ranks_from_scores",
    "ranks_of",
    "read_legal_config",
    "read_matrices",
    "singling_out",
    "singling_out_from_scores",
    "strongest_of",
    "verification",
    "with_backends",
    "zebra_by_speaker",
    "zebra_profiles",
    "zoo_of_scores",
    "zoo_of_set",
]
