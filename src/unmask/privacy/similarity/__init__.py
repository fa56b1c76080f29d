"""Voice similarity matrices, DeID and gain of voice distinctiveness (Noé 2020, 2022)."""

from unmask.privacy.similarity.attackers import PLAIN, SpeakerProtection, StrongestAttack
from unmask.privacy.similarity.distortion import calibration_distortion
from unmask.privacy.similarity.matrix import SimilaritySet
from unmask.privacy.similarity.pseudonyms import (
    ALL,
    PrivacyAssessment,
    Safeguard,
    pseudonymisation,
    read_matrices,
    safeguards,
)
from unmask.privacy.similarity.resampling import NOT_ASKED, SAME, WITH_TRIALS
from unmask.privacy.similarity.result import Pseudonymisation
from unmask.privacy.similarity.session_pairs import SessionAssessment, sessions
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
    "StrongestAttack",
    "calibration_distortion",
    "pseudonymisation",
    "quadrants",
    "read_matrices",
    "safeguards",
    "sessions",
    "single",
]
