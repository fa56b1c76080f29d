"""Coverage of the intervals of 1 − EER on the laws of the legal metrics.

The truth is that of very many speakers: a hull through few trials lies too far out.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import unmask as um
from benchmarks.coverage.legal import ENROL, KEPT_APART, LAWS, Array, Law, header, line

_PEOPLE, _TESTED, _OTHERS = 20_000, 4, 10


@cache
def truth(law: Law) -> float:
    """1 − EER of very many speakers, each against ten others."""
    rng = np.random.default_rng(99)
    enrol, test = law.sample(rng, _PEOPLE, _TESTED)
    rows = _unit(test.vectors)
    known = _unit(_unit(enrol.vectors).reshape(_PEOPLE, ENROL, -1).mean(axis=1))
    owner = np.repeat(np.arange(_PEOPLE), _TESTED)[:, None]
    others = (owner + rng.integers(1, _PEOPLE, (len(owner), _OTHERS))) % _PEOPLE
    same, differ = (np.einsum("id,ijd->ij", rows, known[j]) for j in (owner, others))
    return float(1 - um.eer(same.ravel(), differ.ravel()))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def sampled(law: Law, speakers: int, times: int, seed: int = 0) -> Array:
    """Value, low and high end in each sample."""
    rng = np.random.default_rng([seed, speakers])
    rows = []
    for _ in range(times):
        curve = um.privacy.one_minus_eer(
            *law.sample(rng, speakers), counts=[speakers], replicates=300
        )
        rows.append([curve.value[0], curve.low[0], curve.high[0]])
    return np.array(rows)


def run(*, samples: int = 200) -> None:
    """Print a table."""
    header()
    for law in (KEPT_APART, *LAWS):
        for speakers in (20, 40, 60):
            rows = sampled(law, speakers, samples, law.seed)
            line(law.name, speakers, f"one_minus_eer N={speakers}", rows, truth(law))
