"""Which trials of a table belong to a trial config: cross-pairing designs, a user's own list."""

from __future__ import annotations

import numpy as np

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.stress.cpmap.positions import enrolment_fixed, full_cross_pairing
from unmask.trials import Scores, TrialList, codes_like, match, share


def trial_configs(
    scores: Scores, subset: TrialList | None, subset_name: str
) -> tuple[dict[str, BoolArray], list[str]]:
    """Masks of the trial configs that can be told from the table, and of the user's subset.

    The first is all trials, by the name "full cross-pairing" where no pair of utterances lacks.
    """
    counted = np.asarray(scores.is_target | scores.is_nontarget)
    configs: dict[str, BoolArray] = {"all trials": counted}
    warnings: list[str] = []
    if scores.enrol is not None and scores.test is not None:
        enrol, test = share(scores.enrol, scores.test)
        rank = np.empty(len(enrol.names), np.int64)
        rank[enrol.names.arg_sort().to_numpy()] = np.arange(rank.size)
        codes = rank[enrol.codes], rank[test.codes]
        if full_cross_pairing(codes[0][counted], codes[1][counted]):
            configs = {"full cross-pairing": counted}
        if scores.enrol_speaker is not None:
            fixed = np.zeros(counted.size, bool)
            fixed[counted] = enrolment_fixed(
                codes[0][counted], codes[1][counted], scores.enrol_speaker.codes[counted]
            )
            if _has_both(scores, fixed):
                configs["enrolment-fixed"] = fixed
            else:
                warnings.append("enrolment-fixed cross-pairing leaves a class empty: not placed")
    if subset is not None:
        configs[subset_name] = _chosen(scores, subset, subset_name)
    return configs, warnings


def _has_both(scores: Scores, mask: BoolArray) -> bool:
    return bool((mask & scores.is_target).any() and (mask & scores.is_nontarget).any())


def _chosen(scores: Scores, subset: TrialList, name: str) -> BoolArray:
    """The trials of the table that the subset names; all of the subset must be there."""
    rows = match(codes_like(subset.ids, scores.ids), scores.codes)
    unknown = np.flatnonzero(rows < 0)
    if unknown.size:
        enrol, test, _ = subset.ids
        raise InputError(
            f"{name}: {unknown.size} of its {len(subset)} trials have no score "
            f"(first: {enrol.decode(int(unknown[0]))} {test.decode(int(unknown[0]))})"
        )
    if subset.label is not None and scores.label is not None:
        conflict = int((subset.label != scores.label[rows]).sum())
        if conflict:
            raise InputError(f"{name}: {conflict} trials are labelled otherwise than in the scores")
    mask = np.zeros(len(scores), bool)
    mask[rows] = True
    if not _has_both(scores, mask):
        raise InputError(f"{name}: expected trials of both classes, found one of them only")
    return mask
