"""Intervals of C_ECE and of the C_llr beside it: one run of a safeguard read by another's map."""

from __future__ import annotations

import numpy as np

from studies.coverage.similarity import KEPT_APART, POPULATIONS, Voices
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask import privacy
from unmask.privacy.similarity.distortion import cross_scores

METHODS = ("linear", "isotonic")
REPLICATES = 100
_LARGE, _TIMES = 120, 8


def studies() -> list[Study]:
    """Three laws with every number of speakers."""
    return [
        Study(voices.name, speakers, (sample, voices, speakers), (truth, voices))
        for voices in (KEPT_APART, POPULATIONS[0], POPULATIONS[2])
        for speakers in SPEAKERS
    ]


def distorted(
    voices: Voices, rng: np.random.Generator, speakers: int, *, replicates: int, seed: int = 0
) -> Drawn:
    """C_ECE and C_llr of a sample by every method, with their intervals."""
    original, *runs = voices.runs(rng, speakers, 2)
    scores = [cross_scores(original, run) for run in runs]
    result: dict[str, tuple[float, float, float]] = {}
    for method in METHODS:
        one = privacy.calibration_distortion(
            *scores, method=method, replicates=replicates, seed=seed
        )
        intervals = one.intervals or (None, None)
        for name, value, interval in zip(
            ("C_ECE", "C_llr"), (one.c_ece, one.cllr), intervals, strict=True
        ):
            result[f"{name} {method}"] = ends(interval, value)
    return result


def truth(voices: Voices) -> dict[str, float]:
    """The mean of large samples."""
    rng = np.random.default_rng([2027, voices.seed])
    rows = [distorted(voices, rng, _LARGE, replicates=0) for _ in range(_TIMES)]
    return {name: float(np.mean([row[name][0] for row in rows])) for name in rows[0]}


def sample(voices: Voices, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    rng = np.random.default_rng([voices.seed, speakers, number])
    return distorted(voices, rng, speakers, replicates=REPLICATES, seed=number)
