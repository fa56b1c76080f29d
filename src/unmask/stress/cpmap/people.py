"""Who stands in the hardest tenth of a C-P map, and which groups stand there more often."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unmask.base import MetricRange, Sampling, bias_corrected, in_order
from unmask.estimate import Estimate, Interval
from unmask.stress.cpmap.kernels import ordered
from unmask.stress.cpmap.systems import reference_scores
from unmask.trials import Scores

TENTH, MOST_VALUES = 0.1, 12
"""What is hardest, and the most values of a column that make groups of people."""
ALONE, SHARE = "one person: there is nobody else to draw", MetricRange(0.0, 1.0)


def hardest_people(
    scores: Scores, *, references: Sequence[str], replicates: int, level: float, seed: int
) -> list[tuple[str, str, Estimate]]:
    """People of the tested side, and groups of them such as ``sex f``, with more than a tenth of
    their target or nontarget trials in the hardest tenth: the kind of trials, who, and the share,
    the largest first. Trials stand in the order of the map, which stays while people are drawn.
    """
    whose = scores.test_speaker
    assert whose is not None
    used, first, who = np.unique(whose.codes, return_index=True, return_inverse=True)
    names = [str(whose.names[int(code)]) for code in used]
    # By name, since people of equal shares are listed in this order, whatever that of the rows is.
    people = {names[n]: np.array([n]) for n in np.argsort(names)}
    for column, ids in scores.columns.items():
        own = ids.take(first)
        if column.startswith("test_") and 1 < own.n_unique <= min(MOST_VALUES, len(names) // 2):
            groups = {str(own.names[int(c)]): np.flatnonzero(own.codes == c) for c in own.used}
            people |= {f"{column[5:]} {value}": groups[value] for value in sorted(groups)}
    times = Sampling(replicates, level, seed).times(len(names))[:, in_order(names)]
    found = []
    for kind, here in (("target", scores.is_target), ("nontarget", scores.is_nontarget)):
        hardness = [reference_scores(scores, name)[here] for name in references or scores.systems]
        order = ordered(hardness[0], hardness, combine="rank", name=kind).hardest_first
        sets = order, order[: math.ceil(TENTH * order.size)]
        trials, inside = (np.bincount(who[here][some], minlength=len(names)) for some in sets)
        for name, some in people.items():
            n = {"trials": int(trials[some].sum()), "speakers": len(some)}
            share, ends = inside[some].sum() / max(n["trials"], 1), None
            if len(some) > 1 and replicates and share > TENTH:
                with np.errstate(invalid="ignore"):
                    drawn = (times[:, some] @ inside[some]) / (times[:, some] @ trials[some])
                both = bias_corrected(share, drawn, len(some), level=level, within=SHARE)
                ends = Interval(*both, level, "speaker,corrected", replicates, seed)
            if share > TENTH:
                why = "" if ends else ALONE
                estimate = Estimate("hardest", share, "%", ends, TENTH, n=n, no_interval=why)
                found.append((kind, name, estimate))
    return sorted(found, key=lambda one: -float(one[2].value))
