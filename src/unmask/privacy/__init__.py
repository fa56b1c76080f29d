"""What anonymisation leaves of an identity."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.privacy.attack import BACKENDS, PLAIN, READINGS, RELEASE, SCENARIOS, WORDS, Attack
    from unmask.privacy.attack import Attacker, HeldOut, Reading, attack_scenarios, centred
    from unmask.privacy.attack import known_backend, with_backends, within_release
    from unmask.privacy.channels import TwoCovariance, with_length
    from unmask.privacy.halves import D_ECE, EER, FEW_PEOPLE, RiskScale, halves_of, stretched
    from unmask.privacy.legal import Curve, EnrolLength, Inference, LearningCurve, LegalProtocol
    from unmask.privacy.legal import LegalSweep, Linkability, Overlap, Ranks, RiskCurve
    from unmask.privacy.legal import SinglingOut, Strongest, assess_attackers, attribute_inference
    from unmask.privacy.legal import default_counts, extrapolate_linkability, learning_curve
    from unmask.privacy.legal import linkability
    from unmask.privacy.legal import linkability_from_scores, on_fewer, one_minus_eer, overlaps
    from unmask.privacy.legal import ranks_from_scores, ranks_of, risk_gaps, singling_out
    from unmask.privacy.legal import singling_out_from_scores, strongest_of
    from unmask.privacy.luck import Permuted
    from unmask.privacy.menagerie import Corner, Zoo, zoo
    from unmask.privacy.names import NAMES_DOUBTED, AlikePeople, MisplacedVoices, alike_people
    from unmask.privacy.names import misplaced_voices, name_notices, refuse_two_values
    from unmask.privacy.similarity import CalibrationDistortion, PrivacyAssessment, Pseudonymisation
    from unmask.privacy.similarity import SafeguardRow, SessionAssessment, SimilaritySet
    from unmask.privacy.similarity import SpeakerProtection, calibration_distortion
    from unmask.privacy.similarity import (
        compare_safeguards,
        compare_sessions,
        pseudonymisation,
        read_matrices,
    )
    from unmask.privacy.words import Words, with_words
    from unmask.privacy.zebra import Disclosure, disclosure_of, zebra_by_speaker, zebra_profiles

open_door(__name__)
