"""Linkability and Singling Out of groups of people, each attacked among its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unmask.base import in_order
from unmask.engine import GroupGaps, GroupRow, Spread, gaps_between, replicates_of
from unmask.privacy.attack import Attacker, Reading, with_groups
from unmask.privacy.legal.assessing import curve_of, ready_rounds
from unmask.privacy.legal.conversations import USUAL, LegalProtocol
from unmask.privacy.legal.curve import RiskCurve, base_name, mean_variance, spoken
from unmask.privacy.legal.sweep import HEADLINE, LegalSweep
from unmask.privacy.recordings import people_by_group


def risk_gaps(
    sweep: LegalSweep,
    attackers: Mapping[str, Attacker],
    by: str,
    *,
    protocol: LegalProtocol = USUAL,
) -> LegalSweep:
    """The ``sweep`` of ``attackers`` with the largest risk of each metric by groups of a column.

    One attack, fitted as on everybody, is run within each group of the test speech, among as many
    candidates of the group's own people: 20, or as many as the smallest group of two or more has.
    So chance is alike for all.
    """
    attackers, made = with_groups(attackers, protocol.side, original=sweep.original), []
    for metric in (one for one in sweep.metrics if one in ("linkability", "singling_out")):
        worst = sweep.worst(metric)
        own = sweep.curves[worst.attacker, metric, worst.length]
        reading, tested = Reading(own.variant), set(own.speakers)
        point, attacker = (worst.length, metric), attackers[base_name(worst.attacker, own)]
        made_ready = ready_rounds(attacker, reading, [point], sweep.seed)
        assert made_ready is not None  # it was read so
        ways = made_ready[point]
        parted = {name: some & tested for name, some in people_by_group(ways[0].test, by).items()}
        groups = {"all": tested} | {name: some for name, some in parted.items() if len(some) > 1}
        count, curves = min(HEADLINE, *map(len, groups.values())), {}
        for name, people in groups.items():
            among = ways if name == "all" else [way.among(people) for way in ways]
            how = vars(own.resampling)
            curve, _ = curve_of(among, metric, worst.length, [count], protocol, how)
            one = curve if reading == reading.scored else curve.negated
            assert isinstance(one, RiskCurve)
            curves[name] = one
        rows = [GroupRow(n, len(risk.speakers), (risk.estimate(0),)) for n, risk in curves.items()]
        del curves["all"]
        gaps, told = gaps_between({metric: _spread(curves)}, own.resampling, params={"by": by})
        at = f"{spoken(worst.length)}, {count} candidates"
        made.append(GroupGaps(worst.attacker, by, at, tuple(rows), gaps, told, sweep.seed))
    return replace(sweep, gaps=tuple(made))


def _spread(curves: Mapping[str, RiskCurve]) -> Spread:
    """Risks of the groups, and replicates of them that vary as much as their curves say."""
    every = list(curves.values())
    people = np.array([len(curve.speakers) for curve in every])
    member = np.repeat(np.arange(len(every)), people)
    adds = np.zeros((len(every), len(member)))
    for group, curve in enumerate(every):
        more = curve.variance[0] / max(mean_variance(curve.per_speaker)[0], 1e-300)
        away = (curve.per_speaker[:, 0] - curve.value[0]) / len(curve.speakers)
        adds[group, member == group] = np.sqrt(max(more, 1.0)) * away
    order = np.argsort(in_order([name for curve in every for name in curve.speakers]))
    value = np.array([curve.value[0] for curve in every])
    drawn = replicates_of(value, adds[:, order], member[order], every[0].resampling)
    cases = np.array([curve.recordings @ curve.per_speaker[:, 0] for curve in every])
    return Spread(value, *drawn, cases, people)
