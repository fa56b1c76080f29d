"""What anonymisation leaves of an identity."""

from unmask.privacy.attack import PLAIN, Attack, Attacker, HeldOut, Reading, attack_scenarios
from unmask.privacy.attack import centred, with_backends, within_release
from unmask.privacy.legal import Curve, Inference, LearningCurve, LegalSweep, Linkability, Overlap
from unmask.privacy.legal import Ranks, RiskCurve, SinglingOut, Strongest, default_counts, inference
from unmask.privacy.legal import learning_curve, linkability, linkability_from_scores, on_fewer
from unmask.privacy.legal import one_minus_eer, overlaps, ranks_from_scores, ranks_of, singling_out
from unmask.privacy.legal import singling_out_from_scores, strongest_of
from unmask.privacy.luck import Permuted
from unmask.privacy.menagerie import Corner, Zoo, zoo
from unmask.privacy.similarity import CalibrationDistortion, PrivacyAssessment, Pseudonymisation
from unmask.privacy.similarity import (
    SafeguardRow,
    SessionAssessment,
    SimilaritySet,
    SpeakerProtection,
)
from unmask.privacy.similarity import calibration_distortion, pseudonymisation, read_matrices
from unmask.privacy.similarity import safeguards, sessions
from unmask.privacy.zebra import Disclosure, disclosure_of, zebra_by_speaker, zebra_profiles
