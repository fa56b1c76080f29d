"""Intervals of C_ECE and of the C_llr beside it: one run of a safeguard read by another's map."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.coverage.similarity import KEPT_APART, POPULATIONS, Voices
from benchmarks.coverage.tally import Tally, header, line
from unmask import privacy
from unmask.privacy.similarity.distortion import cross_scores

SPEAKERS = (20, 40, 60)
METHODS = ("linear", "isotonic")
REPLICATES = 100
_LARGE, _TIMES = 120, 8


def distorted(
    voices: Voices, rng: np.random.Generator, speakers: int, *, replicates: int, seed: int = 0
) -> list[privacy.CalibrationDistortion]:
    """C_ECE of a sample by every method."""
    original, *runs = voices.runs(rng, speakers, 2)
    scores = [cross_scores(original, run) for run in runs]
    return [
        privacy.calibration_distortion(*scores, method=method, replicates=replicates, seed=seed)
        for method in METHODS
    ]


@cache
def truth(voices: Voices, *, large: int = _LARGE, times: int = _TIMES) -> dict[str, float]:
    """The mean of large samples."""
    rng = np.random.default_rng([2027, voices.seed])
    rows = [distorted(voices, rng, large, replicates=0) for _ in range(times)]
    means = np.mean([[(one.c_ece, one.cllr) for one in row] for row in rows], axis=0)
    return dict(zip(names(), means.ravel().tolist(), strict=True))


def names() -> list[str]:
    """The numbers, method by method."""
    return [f"{number} {method}" for method in METHODS for number in ("C_ECE", "C_llr")]


def covered(
    voices: Voices, speakers: int, *, samples: int, replicates: int = REPLICATES
) -> dict[str, Tally]:
    """Tallies of all samples of so many speakers."""
    known = truth(voices)
    tallies = {name: Tally(known[name]) for name in names()}
    for number in range(samples):
        rng = np.random.default_rng([voices.seed, speakers, number])
        found = distorted(voices, rng, speakers, replicates=replicates, seed=number)
        intervals = [interval for one in found for interval in one.intervals]
        for tally, interval in zip(tallies.values(), intervals, strict=True):
            tally.add_interval(interval)
    return tallies


def run(*, samples: int = 200) -> None:
    """Print coverage for every population, number of speakers and number."""
    header()
    for voices in (KEPT_APART, POPULATIONS[0], POPULATIONS[2]):
        for speakers in SPEAKERS:
            for name, tally in covered(voices, speakers, samples=samples).items():
                line(voices.name, speakers, name, tally)
