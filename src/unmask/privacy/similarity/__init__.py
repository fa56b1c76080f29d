"""Voice similarity matrices, DeID and gain of voice distinctiveness (Noé 2020, 2022)."""

from unmask.privacy.similarity.attackers import PLAIN, SpeakerProtection
from unmask.privacy.similarity.distortion import calibration_distortion_from_scores, distortions
from unmask.privacy.similarity.files import read_matrices
from unmask.privacy.similarity.intervals import NOT_ASKED, SAME, WITH_TRIALS
from unmask.privacy.similarity.lists import speaker_trials
from unmask.privacy.similarity.matrix import SimilaritySet
from unmask.privacy.similarity.pseudonyms import pseudonymisation, pseudonymisation_from_scores
from unmask.privacy.similarity.result import Pseudonymisation
from unmask.privacy.similarity.safeguards import (
    ALL,
    PrivacyAssessment,
    Safeguard,
    assess_safeguards,
    share,
)
from unmask.privacy.similarity.session_pairs import SessionAssessment, assess_sessions
from unmask.privacy.similarity.view import MatrixView, quadrants, single

__all__ = [
    "ALL",
    "NOT_ASKED",
    "PLAIN",
    "SAME",
    "WITH_TRIALS",
    "MatrixView",
    "PrivacyAssessment",
    "Pseudonymisation",
    "Safeguard",
    "SessionAssessment",
    "SimilaritySet",
    "SpeakerProtection",
    "assess_safeguards",
    "assess_sessions",
    "calibration_distortion_from_scores",
    "distortions",
    "pseudonymisation",
    "pseudonymisation_from_scores",
    "quadrants",
    "read_matrices",
    "share",
    "single",
    "speaker_trials",
]
