"""How much of an identity survives a safeguard."""

from unmask.privacy.sessions import SessionAssessment, assess_sessions
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
from unmask.privacy.similarity_files import read_matrices
from unmask.privacy.similarity_matrix import SimilaritySet
from unmask.privacy.similarity_result import Pseudonymisation, SpeakerProtection
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
from unmask.privacy.zebra_speakers import SpeakerDisclosure, zebra_by_speaker
from unmask.privacy.zoo import Corner, Zoo, zoo_of_scores, zoo_of_set

__all__ = [
    "CalibrationDistortion",
    "Corner",
    "Disclosure",
    "PrivacyAssessment",
    "Pseudonymisation",
    "Safeguard",
    "SessionAssessment",
    "SimilaritySet",
    "SpeakerDisclosure",
    "SpeakerProtection",
    "Zoo",
    "assess_safeguards",
    "assess_sessions",
    "calibration_distortion",
    "calibration_distortion_from_embeddings",
    "calibration_distortion_from_scores",
    "disclosure_of",
    "pseudonymisation",
    "pseudonymisation_from_embeddings",
    "pseudonymisation_from_scores",
    "read_matrices",
    "zebra_by_speaker",
    "zebra_profiles",
    "zoo_of_scores",
    "zoo_of_set",
]
