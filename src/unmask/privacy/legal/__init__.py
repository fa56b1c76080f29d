"""Singling Out, Linkability and Inference: the legally validated risks (Vauquier 2025)."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.privacy.attack import CENTRED, CENTRED_NEGATED, NEGATED, PLAIN, READINGS, RELEASE
    from unmask.privacy.attack import SCENARIOS, Attacker, HeldOut, Reading, attack_scenarios
    from unmask.privacy.attack import centred, with_backends, with_groups, within_release
    from unmask.privacy.recordings import ExchangedPeople, Parts, ReleaseSplit, half_by_content
    from unmask.privacy.recordings import halves_by_content, of_people, people_by_group, pooled
    from unmask.privacy.recordings import rows_by_content
    from unmask.privacy.legal.curve import TITLES, Curve, RiskCurve, spoken
    from unmask.privacy.legal.comparing import linked_scores, with_linkability
    from unmask.privacy.legal.linking import Linkability, Ranks, linkability, ranks_of
    from unmask.privacy.legal.crowd import FAR, LEAST_PEOPLE, ExtrapolatedLinkability
    from unmask.privacy.legal.crowd import crowd_of, extrapolate_linkability
    from unmask.privacy.legal.from_scores import count_above_in_scores, linkability_from_scores
    from unmask.privacy.legal.from_scores import linkability_difference, matrix_risks
    from unmask.privacy.legal.from_scores import why_no_matrix
    from unmask.privacy.legal.from_scores import ranks_from_scores
    from unmask.privacy.legal.from_scores import singling_out_from_scores
    from unmask.privacy.legal.probe import Inference, attribute_inference
    from unmask.privacy.legal.isolating import SinglingOut, singling_out
    from unmask.privacy.legal.strongest import SPLITS, STRONG_ENOUGH, LearningCurve, Overlap
    from unmask.privacy.legal.strongest import Strongest, extent, learning_curve, linked, on_fewer
    from unmask.privacy.legal.strongest import overlaps, strongest_of
    from unmask.privacy.legal.assessing import METRICS, assess_attackers, default_counts
    from unmask.privacy.legal.assessing import fitting_lengths
    from unmask.privacy.legal.groups import LegalRiskGaps, combined_gaps, risk_gaps
    from unmask.privacy.legal.conversations import EnrolLength, LegalProtocol
    from unmask.privacy.legal.sweep import LegalSweep
    from unmask.privacy.legal.verification import one_minus_eer
    from unmask.privacy.attack import BACKENDS, BESIDE, LENGTH, NO_VOICE, WORDS, known_backend
    from unmask.privacy.channels import lengths_vary, with_length
    from unmask.privacy.words import with_words

open_door(__name__)
