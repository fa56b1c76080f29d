"""Voice similarity matrices, DeID and gain of voice distinctiveness (Noé 2020, 2022)."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.privacy.similarity.attackers import SpeakerProtection
    from unmask.privacy.similarity.distortion import CalibrationDistortion, calibration_distortion
    from unmask.privacy.similarity.distortion import distortions
    from unmask.privacy.similarity.lists import safeguard_differences, speaker_trials
    from unmask.privacy.similarity.matrix import MatrixView, SimilaritySet, single
    from unmask.privacy.similarity.api import ALL, PrivacyAssessment, SafeguardRow
    from unmask.privacy.similarity.api import compare_safeguards, pseudonymisation, read_matrices
    from unmask.privacy.similarity.renamed import lucks_of_trials, renamed_trials
    from unmask.privacy.similarity.result import GIVEN, Pseudonymisation, quadrants
    from unmask.privacy.similarity.distortion import LEAST_PEOPLE, UNTAUGHT, Retrained
    from unmask.privacy.similarity.distortion import retrained
    from unmask.privacy.similarity.session_pairs import SessionAssessment, compare_sessions
    from unmask.privacy.similarity.groups import GroupedPseudonymisation, by_group
    from unmask.privacy.similarity.intervals import NOT_ASKED, UNDEFINED, WITH_TRIALS, Setup

open_door(__name__)
