"""Charts of results that no section of a report is made of: a comparison, one map, one curve."""

from __future__ import annotations

from typing import Any

from unmask.engine import Comparison, curves, det_bands
from unmask.errors import InputError
from unmask.figures import (
    Figure,
    RiskLine,
    cp_map_figure,
    delta_cp_map_figure,
    det_with_bands,
    difference_intervals,
    risk_comparison,
    system_colours,
    worst_case_of_systems,
)
from unmask.privacy import PrivacyAssessment, Pseudonymisation, Safeguard
from unmask.privacy.legal import RiskCurve
from unmask.report.documents import figures_of
from unmask.stress import CpMap, DeltaCpMap, cp_maps, worst_case

POPULATION = 100_000
_GRID = 50


@figures_of.register
def _(
    comparison: Comparison, *, p_target: float = 0.01, population: int = POPULATION
) -> list[Figure]:
    """Both DETs with bands, all differences, the delta C-P map, the worst case of both.

    What the trials do not allow, such as a worst case without speakers, is left out.
    """
    scores = comparison.scores
    found = [difference_intervals(comparison)]
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
    found.insert(0, det_with_bands(lines, det_bands(scores, **drawn) if drawn else {}))
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
        found.append(worst_case_of_systems(studies))
    return found


def _allowed(compute: Any) -> Any:
    """What a function gives, or None where the data do not allow it."""
    try:
        return compute()
    except InputError:
        return None


@figures_of.register
def _(result: CpMap) -> list[Figure]:
    return [cp_map_figure({"system": result})]


@figures_of.register
def _(result: DeltaCpMap) -> list[Figure]:
    return [delta_cp_map_figure([result])]


@figures_of.register
def _(result: Pseudonymisation, *, order: str = "given") -> list[Figure]:
    whole = PrivacyAssessment((Safeguard("protected", "all", result),), 0)
    return figures_of(whole, order=order)


@figures_of.register
def _(curve: RiskCurve) -> list[Figure]:
    line = RiskLine("attacked", "attacker", curve.metric, 1, curve)
    return [risk_comparison([line], colours=system_colours(["attacked"]), name=curve.metric)]
