"""Trial bias: one system's scores on two trial configs, on one axis (Li 2022, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, as_scores
from unmask.engine import Roc
from unmask.errors import InputError


@dataclass(frozen=True, eq=False)
class ConfigScores:
    """Scores of one trial config: densities of both classes over ``edges``, and their raw EER."""

    name: str
    edges: FloatArray
    target: FloatArray
    nontarget: FloatArray
    eer: float
    threshold: float
    targets: int
    nontargets: int


def trial_bias(
    configs: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, bins: int = 60
) -> tuple[ConfigScores, ...]:
    """Densities of the scores of every config over the same bins (Li 2022, Figure 1).

    ``configs`` gives (target, nontarget) scores of one system by the name of the trial config. The
    system is the same in all: what differs is which trials were put to it. Infinite scores lie in
    no bin, but count in the densities.
    """
    if not configs:
        raise InputError("trial bias: expected at least one trial config, found none")
    scores = {
        name: (as_scores(pair[0], f"{name} target"), as_scores(pair[1], f"{name} nontarget"))
        for name, pair in configs.items()
    }
    every = np.concatenate([part for pair in scores.values() for part in pair])
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if every.size else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    width = edges[1] - edges[0]
    found = []
    for name, (target, nontarget) in scores.items():
        point = Roc.from_scores(target, nontarget).eer_point(estimator="raw")
        found.append(
            ConfigScores(
                name,
                edges,
                np.histogram(target, edges)[0] / (target.size * width),
                np.histogram(nontarget, edges)[0] / (nontarget.size * width),
                point.value,
                point.threshold,
                target.size,
                nontarget.size,
            )
        )
    return tuple(found)
