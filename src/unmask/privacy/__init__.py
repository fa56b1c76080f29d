"""What anonymisation leaves of an identity."""

from unmask.privacy.legal import (
    Attacker,
    Curve,
    HeldOut,
    Inference,
    LegalSweep,
    Linkability,
    Ranks,
    RiskCurve,
    SinglingOut,
    Strongest,
    Worst,
    attack_scenarios,
    centred,
    default_counts,
    inference,
    linkability,
    linkability_from_scores,
    one_minus_eer,
    ranks_from_scores,
    ranks_of,
    singling_out,
    singling_out_from_scores,
    strongest_of,
    with_backends,
)
from unmask.privacy.menagerie import Corner, Zoo, zoo_of_scores, zoo_of_set
from unmask.privacy.similarity.attackers import SpeakerProtection, StrongestAttack
from unmask.privacy.similarity.distortion import (
    calibration_distortion_from_embeddings,
    calibration_distortion_from_scores,
)
from unmask.privacy.similarity.files import read_matrices
from unmask.privacy.similarity.matrix import SimilaritySet
from unmask.privacy.similarity.pseudonyms import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.privacy.similarity.result import Pseudonymisation
from unmask.privacy.similarity.safeguards import PrivacyAssessment, Safeguard, assess_safeguards
from unmask.privacy.similarity.session_pairs import SessionAssessment, assess_sessions
from unmask.privacy.zebra.profiles import (
    CalibrationDistortion,
    Disclosure,
    calibration_distortion,
    disclosure_of,
    zebra_profiles,
)
from unmask.privacy.zebra.speakers import SpeakerDisclosure, zebra_by_speaker

__all__ = [
    "Attacker",
    "CalibrationDistortion",
    "Corner",
    "Curve",
    "Disclosure",
    "HeldOut",
    "Inference",
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
    "attack_scenarios",
    "calibration_distortion",
    "calibration_distortion_from_embeddings",
    "calibration_distortion_from_scores",
    "centred",
    "default_counts",
    "disclosure_of",
    "inference",
    "linkability",
    "linkability_from_scores",
    "one_minus_eer",
    "pseudonymisation",
    "pseudonymisation_from_embeddings",
    "pseudonymisation_from_scores",
    "ranks_from_scores",
    "ranks_of",
    "read_matrices",
    "singling_out",
    "singling_out_from_scores",
    "strongest_of",
    "with_backends",
    "zebra_by_speaker",
    "zebra_profiles",
    "zoo_of_scores",
    "zoo_of_set",
]
