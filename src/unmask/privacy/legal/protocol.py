"""How attacks are run, whoever attacks: what is enrolled, drawn, known and allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unmask.errors import InputError

EnrolLength = int | Literal["all"] | None
"""Utterances averaged in enrolment; None is the depth of Vauquier 2025, 3.4."""
Metric = Literal["singling_out", "linkability", "one_minus_eer"]


@dataclass(frozen=True, kw_only=True)
class LegalProtocol:
    """The protocol of Singling Out, Linkability and 1 − EER; defaults are the paper's.

    Parameters
    ----------
    linkability_enrol, singling_out_enrol, one_minus_eer_enrol
        Utterances averaged in enrolment, or ``"all"``. By default all for Linkability, 30 (or what
        there is) for Singling Out, and for 1 − EER as for Linkability.
    linkability_draws
        Lists of N' to sample; None is the expectation over all lists.
    folds, draws, max_enrol
        Folds, draws of N test speakers and most enrolment speakers of Singling Out.
    max_conversations
        Most conversations of one test speaker.
    swap
        Singling Out enrols the test set and tests the enrolment set, as the paper does with its
        sets A and B. An attacker that enrols original speech keeps its sides.
    side
        Columns that the attacker knows to match as well.
    allow_shared_utterances
        Let utterances be on both sides, which is a leak.

    Examples
    --------
    >>> import unmask as um
    >>> um.LegalProtocol(folds=5, side=("gender",)).folds
    5
    """

    linkability_enrol: EnrolLength = None
    singling_out_enrol: EnrolLength = None
    one_minus_eer_enrol: EnrolLength = None
    linkability_draws: int | None = None
    folds: int = 10
    draws: int = 5
    max_enrol: int = 495
    max_conversations: int = 10
    swap: bool = False
    side: tuple[str, ...] = ()
    allow_shared_utterances: bool = False

    def __post_init__(self) -> None:
        for name in ("folds", "draws", "max_enrol", "max_conversations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, found {getattr(self, name)}")
        object.__setattr__(self, "side", tuple(self.side))

    def depth(self, metric: Metric) -> EnrolLength:
        """Utterances averaged in enrolment for a metric, None where that is not said."""
        if metric == "one_minus_eer" and self.one_minus_eer_enrol is None:
            return self.linkability_enrol
        asked: EnrolLength = getattr(self, f"{metric}_enrol")
        return asked


USUAL = LegalProtocol()
