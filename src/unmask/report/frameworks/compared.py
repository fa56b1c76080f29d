"""Charts of results that no section of a report is made of: a comparison, one map, one curve."""

from __future__ import annotations

from typing import Any

from unmask import figures as charts
from unmask.engine import Comparison, curves, det_bands
from unmask.errors import InputError
from unmask.privacy import PrivacyAssessment, Pseudonymisation, Safeguard
from unmask.privacy.legal import RiskCurve
from unmask.report.documents import figures_of
from unmask.stress import CpMap, DeltaCpMap, cp_maps, worst_case

POPULATION = 100_000
_GRID = 50


@figures_of.register(Comparison)
def _(
    comparison: Comparison, *, p_target: float = 0.01, population: int = POPULATION
) -> list[charts.Figure]:
    """Both DETs with bands, all differences, the delta C-P map, the worst case of both.

    What the trials do not allow, such as a worst case without speakers, is left out.
    """
    scores = comparison.scores
    found = [charts.difference_intervals(comparison)]
    if scores is None:
        return found
    names = list(scores.systems)
    lines = {
        name: curves.det_curve(roc, p_target=p_target)
        for name, roc in zip(names, comparison.rocs, strict=True)
    }
    interval = comparison.differences[0].difference.interval
    drawn: dict[str, Any] = (
        {} if interval is None else {"level": interval.level, "seed": comparison.seed}
    )
    bands = det_bands(scores, **drawn) if drawn else {}
    found.insert(0, charts.det(lines, bands=bands, hull=False, name="compare_det"))
    delta = _allowed(lambda: cp_maps(scores, systems=names, grid=_GRID, replicates=0))
    if delta is not None:
        found += [f for f in figures_of(delta) if f.name.startswith("delta")]
    studies = _allowed(
        lambda: {
            name: worst_case(scores, population=population, system=name, skip_single=True, **drawn)
            for name in names
        }
    )
    if studies is not None:
        found.append(charts.worst_case_of_systems(studies))
    return found


def _allowed(compute: Any) -> Any:
    """What a function gives, or None where the data do not allow it."""
    try:
        return compute()
    except InputError:
        return None


@figures_of.register(CpMap)
def _(result: CpMap) -> list[charts.Figure]:
    return [charts.cp_map_figure({"system": result})]


@figures_of.register(DeltaCpMap)
def _(result: DeltaCpMap) -> list[charts.Figure]:
    return [charts.delta_cp_map_figure([result])]


@figures_of.register(Pseudonymisation)
def _(result: Pseudonymisation, *, order: str = "given") -> list[charts.Figure]:
    whole = PrivacyAssessment((Safeguard("protected", "all", result),), 0)
    return figures_of(whole, order=order)


@figures_of.register(RiskCurve)
def _(curve: RiskCurve) -> list[charts.Figure]:
    line = charts.RiskLine("attacked", "attacker", curve.metric, 1, curve)
    return [
        charts.risk_comparison(
            [line], colours=charts.system_colours(["attacked"]), name=curve.metric
        )
    ]
