"""How false alarms grow with the impostors of a table (Sholokhov 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask import stress
from unmask.assessment.study import Framework, Plan, Study
from unmask.base import grouped
from unmask.engine import Roc
from unmask.estimate import Notice, Noticed
from unmask.run import part
from unmask.trials import Scores

_STEPS = (1, 2, 5)


@dataclass(frozen=True, eq=False)
class SystemGrowth:
    """One system at the thresholds of a study; ``predicted`` is None where no model was fitted."""

    system: str
    operating: tuple[stress.Operating, ...]
    measured: stress.WorstCase
    predicted: stress.Prediction | None = None


@dataclass(frozen=True, eq=False)
class Growth(Noticed):
    """All systems of one table."""

    systems: tuple[SystemGrowth, ...]
    notices: tuple[Notice, ...]


def default_counts(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … below the number of impostors, and that number."""
    steps = (step * 10**power for power in range(8) for step in _STEPS)
    return (*(n for n in steps if n < most), most)


def growth_of(
    scores: Scores,
    *,
    counts: Sequence[int] | None,
    by: str | None,
    far: bool,
    population: int | None,
    model: str,
    **options: Any,
) -> Growth:
    """False alarms of every system of a table; what its data do not allow is left out and noted.

    ``counts`` are numbers of impostors, by default 1, 2, 5, 10, …; ``by`` names a column within
    whose groups impostors are taken. ``far`` asks for a study, which goes on to ``population`` by
    ``model``; further options are those of :func:`unmask.worst_case`.
    """
    notices: list[Notice] = []
    systems = []
    chosen = scores.is_nontarget & _same_group(scores, by, notices)
    impostors = scores.select(chosen) if chosen.any() else None
    for index, system in enumerate(scores.systems):
        if impostors is None:
            sentence = "no impostor trials within the groups, left out"
            notices.append(Notice("no-impostors", system, sentence))
            continue
        every = stress.speaker_pairs(impostors, system=system, both_ways=False)
        pairs = _usable_pairs(every, system, notices)
        if pairs is None:
            continue
        most, own = pairs.max_count, scores.targets(system)
        with part(index, len(scores.systems)):
            if far:
                reach: dict[str, Any] = {"population": population, "model": model}
                study = stress.worst_case_study(pairs, target=own, **reach, **options)
                growth = SystemGrowth(system, study.operating, study.empirical, study.predicted)
            else:
                points = stress.thresholds_of_roc(Roc.from_scores(own, pairs.scores))
                wanted = [n for n in counts or default_counts(most) if n <= most]
                levels = [point.threshold for point in points]
                measured = stress.worst_case(pairs, levels, counts=wanted, **options)
                growth = SystemGrowth(system, points, measured)
        systems.append(growth)
        both = (growth.measured, growth.predicted) if growth.predicted else (growth.measured,)
        notices += [notice.about(system) for rates in both for notice in rates.notices]
    return Growth(tuple(systems), tuple(notices))


def by_table(parts: Mapping[tuple[str, str], Growth]) -> dict[str, Growth]:
    """All systems of each table, from the growth of every system of it."""
    tables = grouped((name, growth) for (name, _), growth in parts.items())
    return {
        name: Growth(
            tuple(system for growth in some for system in growth.systems),
            tuple(dict.fromkeys(notice for growth in some for notice in growth.notices)),
        )
        for name, some in tables.items()
    }


def _usable_pairs(
    pairs: stress.PairScores, system: str, notices: list[Notice]
) -> stress.PairScores | None:
    """Pairs that allow a worst case, the others counted; none if too few remain."""
    kept = pairs.without_single_scores()
    least = stress.LEAST_SPEAKERS
    several = kept.with_impostors(least)
    every, left = len(pairs.target_names), len(several.target_names)
    lone = f"{kept.skipped} of {len(pairs)} pairs have one score, left out"
    gone = f"{every - left} of {every} targets have fewer than {least} impostors, left out"
    few = f"{left} targets remain, too few for a worst case"
    for code, holds, sentence in (
        ("pairs-left-out", kept.skipped, lone),
        ("targets-left-out", left < every, gone),
        ("few-speakers", left < least, few),
    ):
        notices += [Notice(code, system, sentence)] if holds else []
    return None if left < least else several


def _same_group(scores: Scores, by: str | None, notices: list[Notice]) -> np.ndarray:
    """Trials within one group, by default one sex, if the table knows groups."""
    by = by or stress.sex_column(scores)
    if by == stress.POOLED:
        return np.ones(len(scores), dtype=bool)
    columns = [scores.columns.get(f"{side}_{by}") for side in ("enrol", "test")]
    sides = [ids.to_series().to_numpy() for ids in columns if ids is not None]
    if len(sides) == 2:
        return np.asarray(sides[0] == sides[1])
    sentence = f"no column {by or 'of sex'}: impostors of all groups are taken together"
    notices.append(Notice("no-column", "", sentence))
    return np.ones(len(scores), dtype=bool)


def _later(study: Study) -> Plan:
    config, steps = study.config, {}
    for table in (one for one in study.compared() if one.speakers):
        options = {
            **config.worst_case.model_dump(),
            "level": config.intervals.level,
            "groups": stress.GROUPS if config.intervals.replicates else 0,
            "seed": config.seed,
            "far": table.name in study.tables,
        }
        for system in table.systems:
            weight = 6.0 if options["far"] else 0.1 + 8e-7 * table.size
            one = table.alone(system).step(f"worst case of {system}", growth_of, options, weight)
            steps[table.name, system] = one
    return {"growth": steps}


FRAMEWORK = Framework("worst_case", later=_later, trials=True, main="growth")
