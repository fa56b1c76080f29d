"""How much of an identity survives a safeguard."""

from unmask.privacy.sessions import SessionAssessment, sessions
from unmask.privacy.similarity import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.privacy.similarity_matrix import SimilaritySet
from unmask.privacy.similarity_result import Pseudonymisation, SpeakerProtection
from unmask.privacy.zebra import (
    CalibrationDistortion,
    Disclosure,
    calibration_distortion,
    disclosure_of,
    zebra_profiles,
)
from unmask.privacy.zebra_speakers import SpeakerDisclosure, zebra_by_speaker
from unmask.privacy.zoo import Corner, Zoo, zoo_of_scores, zoo_of_set

__all__ = [
    "CalibrationDistortion",
    "Corner",
    "Disclosure",
    "Pseudonymisation",
    "SessionAssessment",
    "SimilaritySet",
    "SpeakerDisclosure",
    "SpeakerProtection",
    "Zoo",
    "calibration_distortion",
    "disclosure_of",
    "pseudonymisation",
    "pseudonymisation_from_embeddings",
    "pseudonymisation_from_scores",
    "sessions",
    "zebra_by_speaker",
    "zebra_profiles",
    "zoo_of_scores",
    "zoo_of_set",
]
