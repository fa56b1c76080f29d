"""False alarms when the closest of N impostors tries (Sholokhov 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.engine import Roc
from unmask.figures import GrowthLine
from unmask.figures.worst_case import worst_case_growth
from unmask.report.cache import Progress, Step, digest_of_scores
from unmask.report.config import Config
from unmask.report.document import Row
from unmask.report.section import SHOLOKHOV_2020, Method, Section, TableBlock
from unmask.stress.worst_case import (
    GROUPS,
    LEAST_SPEAKERS,
    PairScores,
    WorstCase,
    measure_worst_case,
)
from unmask.trials import Scores

RATES = (0.01, 0.001)
_STEPS = (1, 2, 5)


@dataclass(frozen=True, eq=False)
class SystemGrowth:
    """One system: false alarms at thresholds whose false-alarm rates over trials are ``rates``."""

    system: str
    rates: tuple[float, ...]
    found: WorstCase


@dataclass(frozen=True, eq=False)
class Growth:
    """All systems of one table; ``note`` says which impostors count."""

    systems: tuple[SystemGrowth, ...]
    warnings: tuple[str, ...]


def default_counts(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … below the number of impostors, and that number."""
    steps = (step * 10**power for power in range(8) for step in _STEPS)
    return (*(n for n in steps if n < most), most)


def worst_case_step(name: str, scores: Scores, config: Config) -> Step:
    """All systems of a table."""
    how = config.worst_case
    params = {
        "counts": how.counts,
        "level": how.level,
        "by": how.by,
        "replicates": config.intervals.replicates,
        "seed": config.seed,
        "systems": list(scores.systems),
        "rates": RATES,
    }

    def compute(progress: Progress) -> Growth:
        told: list[str] = []
        systems = []
        chosen = scores.is_nontarget & _same_group(scores, how.by, told)
        assert scores.enrol_speaker is not None
        assert scores.test_speaker is not None
        target = scores.enrol_speaker.take(chosen)
        impostor = scores.test_speaker.take(chosen)
        for done, system in enumerate(scores.systems, start=1):
            pairs = _usable_pairs(
                PairScores.from_trials(target, impostor, scores.scores(system)[chosen])
                if chosen.any()
                else None,
                system,
                told,
            )
            progress(done, len(scores.systems))
            if pairs is None:
                continue
            roc = Roc.from_scores(scores.targets(system), scores.nontargets(system))
            thresholds = [float(_threshold(scores.nontargets(system), rate)) for rate in RATES]
            counts = [
                n for n in how.counts or default_counts(pairs.max_count) if n <= pairs.max_count
            ]
            # The ROC accepts scores of at least its threshold, a false alarm lies above it.
            thresholds.append(float(np.nextafter(roc.eer_point().threshold, -np.inf)))
            found = measure_worst_case(
                pairs,
                thresholds,
                counts=counts,
                level=how.level,
                groups=GROUPS if config.intervals.replicates else 0,
                seed=config.seed,
            )
            rates = (*RATES, roc.eer())
            systems.append(SystemGrowth(system, rates, found))
            told += [f"{system}: {line}" for line in found.warnings]
        return Growth(tuple(systems), tuple(told))

    weight = 0.5 * len(scores.systems)
    return Step(f"worst case of {name}", [digest_of_scores(scores)], params, compute, weight=weight)


def _usable_pairs(pairs: PairScores | None, system: str, told: list[str]) -> PairScores | None:
    """Pairs from which a worst case can be told, the others counted; none if too few remain."""
    if pairs is None:
        told.append(f"{system}: no impostor trials within the groups, left out")
        return None
    kept = pairs.without_single_scores()
    if kept.skipped:
        told.append(f"{system}: {kept.skipped} of {len(pairs)} pairs have one score, left out")
    several = kept.with_impostors(LEAST_SPEAKERS)
    gone = len(pairs.target_names) - len(several.target_names)
    if gone:
        told.append(
            f"{system}: {gone} of {len(pairs.target_names)} targets have fewer than"
            f" {LEAST_SPEAKERS} impostors, left out"
        )
    if len(several.target_names) < LEAST_SPEAKERS:
        told.append(
            f"{system}: {len(several.target_names)} targets remain, too few for a worst case"
        )
        return None
    return several


def _threshold(nontargets: np.ndarray, rate: float) -> float:
    """The lowest threshold that at most ``rate`` of the nontargets exceed."""
    return float(np.quantile(nontargets, 1 - rate, method="higher"))


def _same_group(scores: Scores, by: str | None, told: list[str]) -> np.ndarray:
    """Trials within one group (one gender), if the table knows groups."""
    if by is None:
        return np.ones(len(scores), dtype=bool)
    sides = [scores.columns.get(f"{side}_{by}") for side in ("enrol", "test")]
    if sides[0] is None or sides[1] is None:
        told.append(f"no column {by}: impostors of all groups are taken together")
        return np.ones(len(scores), dtype=bool)
    first, second = (ids.to_series().to_numpy() for ids in sides if ids is not None)
    return np.asarray(first == second)


def usable(scores: Scores) -> bool:
    """Whether the table names its speakers."""
    return scores.enrol_speaker is not None


def section(found: Mapping[str, Growth], colours: Mapping[str, str]) -> Section:
    """Growth of false alarms with the number of impostors."""
    figures = []
    rows = []
    answers = []
    for number, (name, growth) in enumerate(found.items(), start=1):
        lines = [
            GrowthLine(one.system, rate, one.found, place)
            for one in growth.systems
            for place, rate in enumerate(one.rates[: len(RATES)])
        ]
        if not lines:
            continue
        figures.append(
            worst_case_growth(
                lines,
                colours=colours if all(x.system in colours for x in growth.systems) else None,
                name=f"worst_case_{number}",
                title=f"{name}: false alarms when the one closest of N impostors tries once",
            )
        )
        for one in growth.systems:
            most = int(one.found.counts[-1])
            answers.append(
                f"{one.system}: at a threshold of {100 * one.rates[0]:g} % false alarms, the"
                f" one closest of {most:,} impostors passes, in one attempt,"
                f" {100 * float(one.found.values[-1, 0]):.0f} % of the time."
            )
            width = len(one.found.thresholds)
            for c, count in enumerate(one.found.counts):
                at = one.found.estimates[c * width : (c + 1) * width]
                rows += [
                    Row(
                        {
                            "table": name,
                            "system": one.system,
                            "threshold": _told(place, one.rates[place]),
                            "impostors": f"{int(count):,}",
                        },
                        (estimate,),
                    )
                    for place, estimate in enumerate(at)
                ]
    largest = [
        row
        for row in rows
        if row.conditions["impostors"]
        == [r for r in rows if r.conditions["system"] == row.conditions["system"]][-1].conditions[
            "impostors"
        ]
    ]
    rest = [row for row in rows if row not in largest]
    return Section(
        key="worst_case",
        title="Worst case with many impostors",
        question="If an adversary searches N people for the one who sounds most like the target,"
        " how often is that person, trying once, accepted?",
        answer=tuple(answers),
        figures=tuple(figures),
        tables=(
            TableBlock("All impostors at hand", tuple(largest)),
            TableBlock("Fewer impostors", tuple(rest), folded=True),
        ),
        warnings=tuple(f"{n}: {line}" for n, g in found.items() for line in g.warnings),
        method=(
            Method(
                "Worst-case false alarms",
                "P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), w_r(N) = C(M−r, N−1)/C(M, N)",
                "F_r is the rate of the r-th closest impostor's scores above τ. The expectation"
                " over all subsets of N impostors is exact; N = 1 is the rate of an impostor"
                " whom nobody chose, all pairs of speakers weighed alike. Scores that choose the"
                " closest are kept apart from those that attack. Intervals: speakers leave in"
                " groups, as targets and as impostors.",
            ),
        ),
        citation=SHOLOKHOV_2020,
    )


def _told(place: int, rate: float) -> str:
    return f"{100 * rate:g} % false alarms" if place < len(RATES) else "equal error rate"
