"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from unmask.privacy.legal.attack import (
    BACKENDS as BACKENDS,
    FREE as FREE,
    LEARNT as LEARNT,
    UNLABELLED as UNLABELLED,
    Attacker as Attacker,
    HeldOut as HeldOut,
    Pairs as Pairs,
    attack_scenarios as attack_scenarios,
    centred as centred,
    every_second as every_second,
    of_people as of_people,
    pooled as pooled,
    with_backends as with_backends,
)
from unmask.privacy.legal.curve import (
    CENTRED as CENTRED,
    CENTRED_NEGATED as CENTRED_NEGATED,
    NEGATED as NEGATED,
    PLAIN as PLAIN,
    TITLES as TITLES,
    VARIANTS as VARIANTS,
    Curve as Curve,
    RiskCurve as RiskCurve,
    spoken as spoken,
    variant_name as variant_name,
)
from unmask.privacy.legal.links import (
    Linkability as Linkability,
    Ranks as Ranks,
    linkability as linkability,
    ranks_of as ranks_of,
)
from unmask.privacy.legal.matrix import (
    count_above_in_scores as count_above_in_scores,
    linkability_from_scores as linkability_from_scores,
    matrix_risks as matrix_risks,
    ranks_from_scores as ranks_from_scores,
    singling_out_from_scores as singling_out_from_scores,
)
from unmask.privacy.legal.probe import Inference as Inference, inference as inference
from unmask.privacy.legal.singling import SinglingOut as SinglingOut, singling_out as singling_out
from unmask.privacy.legal.strength import (
    SPLITS as SPLITS,
    STRONG_ENOUGH as STRONG_ENOUGH,
    LearningCurve as LearningCurve,
    Overlap as Overlap,
    Strongest as Strongest,
    among as among,
    extent as extent,
    learning_curve as learning_curve,
    linked as linked,
    on_fewer as on_fewer,
    overlaps as overlaps,
    strongest_of as strongest_of,
    trained_on as trained_on,
)
from unmask.privacy.legal.sweep import (
    METRICS as METRICS,
    LegalSweep as LegalSweep,
    default_counts as default_counts,
    legal as legal,
)
from unmask.privacy.legal.verification import one_minus_eer as one_minus_eer
