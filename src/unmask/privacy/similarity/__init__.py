"""Voice similarity matrices, DeID and gain of voice distinctiveness (Noé 2020, 2022)."""

from unmask.privacy.similarity.attackers import (
    PLAIN as PLAIN,
    SpeakerProtection as SpeakerProtection,
)
from unmask.privacy.similarity.distortion import (
    CalibrationDistortion as CalibrationDistortion,
    calibration_distortion as calibration_distortion,
)
from unmask.privacy.similarity.matrix import SimilaritySet as SimilaritySet
from unmask.privacy.similarity.pseudonyms import (
    ALL as ALL,
    PrivacyAssessment as PrivacyAssessment,
    Safeguard as Safeguard,
    pseudonymisation as pseudonymisation,
    read_matrices as read_matrices,
    safeguards as safeguards,
)
from unmask.privacy.similarity.result import (
    MatrixView as MatrixView,
    Pseudonymisation as Pseudonymisation,
    quadrants as quadrants,
    single as single,
)
from unmask.privacy.similarity.session_pairs import (
    SessionAssessment as SessionAssessment,
    sessions as sessions,
)
from unmask.privacy.similarity.statistic import (
    NOT_ASKED as NOT_ASKED,
    SAME as SAME,
    WITH_TRIALS as WITH_TRIALS,
)
