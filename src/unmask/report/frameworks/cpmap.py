"""C-P maps of the attacks and of the score tables (Li 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from unmask.estimate import Interval
from unmask.figures import Figure, cp_map_figure, delta_cp_map_figure
from unmask.report.cache import Progress, Step, digest_of_scores
from unmask.report.config import ORIGINAL, Config
from unmask.report.cpmap_figures import LEVELS
from unmask.report.document import Row
from unmask.report.section import LI_2022, Method, Section, TableBlock
from unmask.stress.cpmap import CpAssessment, assess_cp_maps, contour
from unmask.trials import Scores


def cpmap_step(
    name: str, scores: Scores, config: Config, *, references: Sequence[str] = ()
) -> Step:
    """Maps of all systems of a table; with the original among them, each safeguard against it.

    Without references all compared systems order the trials alike, by the mean of their ranks.
    """
    how = config.cpmap
    against = ORIGINAL if ORIGINAL in scores.systems else None
    deltas = None if against is None else [(against, n) for n in scores.systems if n != against]
    reference = list(references)
    params = {
        "grid": how.grid,
        "metric": how.metric,
        "replicates": how.replicates,
        "level": config.intervals.level,
        "seed": config.seed,
        "references": reference,
        "deltas": deltas,
        "systems": list(scores.systems),
    }

    def compute(progress: Progress) -> CpAssessment:
        return assess_cp_maps(
            scores,
            references=reference,
            grid=how.grid,
            metric=how.metric,
            deltas=deltas,
            replicates=how.replicates,
            level=config.intervals.level,
            seed=config.seed,
            progress=progress,
        )

    weight = 1 + len(scores) * len(scores.systems) * how.replicates / 3e6
    return Step(f"C-P maps of {name}", [digest_of_scores(scores)], params, compute, weight=weight)


def _percent(value: float, interval: Interval | None) -> str:
    if interval is None or isnan(interval.low):
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def section(found: Mapping[str, CpAssessment]) -> Section:
    """Maps and delta maps of every table."""
    figures: list[Figure] = []
    rows: list[Row] = []
    deltas: list[Row] = []
    for number, (name, result) in enumerate(found.items(), start=1):
        lines = {
            system: [contour(cp, level) for level in LEVELS[cp.metric.name]]
            for system, cp in result.maps.items()
        }
        figures.append(
            cp_map_figure(
                result.maps,
                contours=lines,
                name=f"cp_map_{number}",
                title=f"{name}: errors on every mixture of hard and easy trials",
            )
        )
        if result.deltas:
            figures.append(
                delta_cp_map_figure(
                    result.deltas,
                    name=f"delta_cp_map_{number}",
                    title=f"{name}: where one system errs less than another",
                )
            )
        rows += [
            Row({"table": name, "system": system}, result.estimates(system))
            for system in result.maps
        ]
        deltas += [
            Row({"table": name, "systems": f"{d.reference} → {d.test}"}, result.delta_estimates(d))
            for d in result.deltas
        ]
    blocks = [TableBlock("C-P maps in numbers", tuple(rows))]
    if deltas:
        blocks.append(TableBlock("Who errs less", tuple(deltas), folded=True))
    return Section(
        key="cpmap",
        title="Hard and easy trials (C-P maps)",
        question="Does one error rate hide that the recogniser still succeeds on easy voices, or"
        " fails on hard ones?",
        answer=tuple(
            f"{system}: {_percent(cp.full, getattr(cp.intervals, 'full', None))} on all trials,"
            f" {_percent(cp.hardest_decile, getattr(cp.intervals, 'hardest_decile', None))}"
            " on the hardest tenth of each kind."
            for result in found.values()
            for system, cp in result.maps.items()
            if cp.metric.name == "eer"
        ),
        figures=tuple(figures),
        tables=tuple(blocks),
        warnings=tuple(
            f"{name}: {line}" for name, result in found.items() for line in result.warnings
        ),
        method=(
            Method(
                "C-P map",
                "cell (x, y): the error on the hardest x of targets and y of nontargets",
                "Targets are ordered from the lowest reference score, nontargets from the highest."
                " Without references given, all systems of a table order its trials alike, by the"
                " mean of their ranks: a system that ordered alone would be put at a disadvantage."
                " Cells with fewer than 30 trials of either kind are not well-defined.",
            ),
            Method(
                "Delta map",
                "RCR = (CP_ref − CP_test)/CP_ref",
                "Cells won, tied and lost are counted over the well-defined ones (eq. 2).",
            ),
        ),
        citation=LI_2022,
    )
