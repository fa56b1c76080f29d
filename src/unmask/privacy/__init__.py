"""What anonymisation leaves of an identity."""

from unmask.privacy.inference import (
    Inference,
    inference,
)
from unmask.privacy.legal import (
    Attacker,
    default_counts,
    legal_sweep,
    with_backends,
)
from unmask.privacy.legal_config import (
    LegalConfig,
    legal_from_config,
    read_legal_config,
)
from unmask.privacy.legal_curve import (
    Curve,
    RiskCurve,
)
from unmask.privacy.legal_strongest import (
    Strongest,
    Worst,
    strongest_of,
)
from unmask.privacy.legal_sweep import (
    LegalSweep,
)
from unmask.privacy.legal_variants import (
    centred,
)
from unmask.privacy.legal_verification import (
    verification,
)
from unmask.privacy.linkability import (
    Linkability,
    linkability,
    linkability_from_scores,
)
from unmask.privacy.ranks import (
    Ranks,
    ranks_from_scores,
    ranks_of,
)
from unmask.privacy.sessions import (
    SessionAssessment,
    assess_sessions,
)
from unmask.privacy.similarity import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.privacy.similarity_assessment import (
    PrivacyAssessment,
    Safeguard,
    assess_safeguards,
)
from unmask.privacy.similarity_attackers import (
    SpeakerProtection,
    StrongestAttack,
)
from unmask.privacy.similarity_files import (
    read_matrices,
)
from unmask.privacy.similarity_matrix import (
    SimilaritySet,
)
from unmask.privacy.similarity_result import (
    Pseudonymisation,
)
from unmask.privacy.singling_out import (
    SinglingOut,
    singling_out,
    singling_out_from_scores,
)
from unmask.privacy.zebra import (
    CalibrationDistortion,
    Disclosure,
    calibration_distortion,
    disclosure_of,
    zebra_profiles,
)
from unmask.privacy.zebra_runs import (
    calibration_distortion_from_embeddings,
    calibration_distortion_from_scores,
)
from unmask.privacy.zebra_speakers import (
    SpeakerDisclosure,
    zebra_by_speaker,
)
from unmask.privacy.zoo import (
    Corner,
    Zoo,
    zoo_of_scores,
    zoo_of_set,
)

__all__ = [
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
