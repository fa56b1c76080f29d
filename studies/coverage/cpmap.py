"""How often the intervals of C-P maps hold the truth: many samples of speakers from known laws.

A score is an offset of its class, what speakers share over systems, what a system makes of each
speaker, and noise. A map rests on the distribution of scores alone, so the truth is a map of very
many trials with fresh speakers each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import unmask as um
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask.base import Sampling
from unmask.engine import Units
from unmask.stress import CpConfig, cp_intervals

REPLICATES = 100
GRID = 20
BELOW = 0.2
Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Law:
    """Offsets of the targets and sizes of the noise, of an old and of a new system."""

    name: str
    offsets: tuple[float, float]
    noises: tuple[float, float]
    seed: int = 7


LAWS = (
    Law("new clearly better", (2.6, 3.0), (1.0, 0.9)),
    Law("new slightly better", (2.8, 2.95), (1.0, 1.0)),
    Law("each better somewhere", (2.8, 3.1), (0.9, 1.3)),
)
# No constant of an interval was chosen on samples of this law.
KEPT_APART = Law("kept apart", (2.2, 2.5), (1.4, 1.1), seed=74)


def studies() -> list[Study]:
    """Every law with every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law, speakers))
        for law in (KEPT_APART, *LAWS)
        for speakers in SPEAKERS
    ]


def scores(
    law: Law, rng: np.random.Generator, target: np.ndarray, enrol: np.ndarray, test: np.ndarray
) -> tuple[Pair, Pair, Pair]:
    """The old and the new system and an outsider, from effects (6, trials) of the speakers."""
    size = 0.6
    t, n = target.shape[1], enrol.shape[1]
    same = 0.6 * target[0] + rng.normal(0, size, t)
    other = 0.45 * (enrol[1] + test[1]) + rng.normal(0, size, n)
    pairs = [
        (
            offset + same + 0.35 * target[2 + i] + noise * rng.normal(0, size, t),
            other + 0.25 * (enrol[4 + i] + test[4 + i]) + noise * rng.normal(0, size, n),
        )
        for i, (offset, noise) in enumerate(zip(law.offsets, law.noises, strict=True))
    ]
    outsider = 2.7 + same + rng.normal(0, size, t), other + rng.normal(0, size, n)
    return pairs[0], pairs[1], outsider


def speak(
    law: Law, rng: np.random.Generator, speakers: int, utterances: int = 4
) -> tuple[tuple[Pair, Pair, Pair], Units]:
    """All pairs of utterances of some speakers."""
    target = np.repeat(np.arange(speakers), utterances * (utterances - 1) // 2)
    enrol, test = (np.repeat(part, utterances**2) for part in np.triu_indices(speakers, 1))
    effects = rng.normal(0, 1, (6, speakers))
    systems = scores(law, rng, effects[:, target], effects[:, enrol], effects[:, test])
    return systems, Units.speakers(target, enrol, test)


def hard(target: np.ndarray, nontarget: np.ndarray, by: np.ndarray) -> float:
    """EER of all targets against the nontargets that an outsider scores above 0."""
    return um.eer(target, nontarget[by > 0], estimator="raw")


def truth(law: Law, speakers: int, trials: int = 1_000_000) -> dict[str, float]:
    """The numbers of the law itself, over the cells that are well-defined in a sample."""
    rng = np.random.default_rng(1)
    *systems, by = scores(law, rng, *(rng.normal(0, 1, (6, trials)) for _ in range(3)))
    order = {"target_hardness": by[0], "nontarget_hardness": by[1]}
    maps = [um.cp_map(*pair, grid=GRID, **order) for pair in systems]
    (first, *_), _ = speak(law, rng, speakers)
    cells = um.cp_map(*first, grid=GRID).well_defined
    old, new = (cp.values[cells] for cp in maps)
    config = hard(*systems[1], by[1])
    return {
        "EER, all trials": maps[1].full,
        "mean of cells": float(new.mean()),
        "cells under 20 %": float((new < BELOW).mean()),
        "hardest tenth": maps[1].hardest_decile,
        "EER of a config": config,
        "gap of a config": config - maps[1].full,
        "win": float((new < old).mean()),
        "tie": 0.0,
        "lose": float((new > old).mean()),
    }


def sample(law: Law, speakers: int, number: int, replicates: int = REPLICATES) -> Drawn:
    """Intervals of the same numbers from one sample."""
    systems, units = speak(law, np.random.default_rng([law.seed, speakers, number]), speakers)
    old, new, by = systems
    made = cp_intervals(
        [old, new],
        units,
        compared=[(0, 1)],
        configs=[CpConfig("hard", np.ones(old[0].size, bool), by[1] > 0)],
        hardness=by,
        grid=GRID,
        below=BELOW,
        sampling=Sampling(replicates, seed=number),
    )
    summary, delta, placed = made.maps[1], made.deltas[0], made.positions[1][0]
    result = {
        "EER, all trials": summary.full,
        "mean of cells": summary.mean,
        "cells under 20 %": summary.share_below,
        "hardest tenth": summary.hardest_decile,
        "EER of a config": placed.value,
        "gap of a config": placed.gap,
        "win": delta.win,
        "tie": delta.tie,
        "lose": delta.lose,
    }
    return {name: ends(interval) for name, interval in result.items()}
