"""What anonymisation leaves of an identity."""

from unmask.privacy.legal import (
    Attacker as Attacker,
    LearningCurve as LearningCurve,
    attack_scenarios as attack_scenarios,
    centred as centred,
    default_counts as default_counts,
    inference as inference,
    learning_curve as learning_curve,
    linkability as linkability,
    linkability_from_scores as linkability_from_scores,
    on_fewer as on_fewer,
    one_minus_eer as one_minus_eer,
    overlaps as overlaps,
    ranks_from_scores as ranks_from_scores,
    ranks_of as ranks_of,
    singling_out as singling_out,
    singling_out_from_scores as singling_out_from_scores,
    strongest_of as strongest_of,
    with_backends as with_backends,
)
from unmask.privacy.menagerie import Corner as Corner, Zoo as Zoo, zoo as zoo
from unmask.privacy.similarity import (
    CalibrationDistortion as CalibrationDistortion,
    PrivacyAssessment as PrivacyAssessment,
    Pseudonymisation as Pseudonymisation,
    Safeguard as Safeguard,
    SessionAssessment as SessionAssessment,
    SimilaritySet as SimilaritySet,
    SpeakerProtection as SpeakerProtection,
    calibration_distortion as calibration_distortion,
    pseudonymisation as pseudonymisation,
    read_matrices as read_matrices,
    safeguards as safeguards,
    sessions as sessions,
)
from unmask.privacy.zebra import (
    Disclosure as Disclosure,
    disclosure_of as disclosure_of,
    zebra_by_speaker as zebra_by_speaker,
    zebra_profiles as zebra_profiles,
)
