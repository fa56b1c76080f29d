"""Intervals of pseudo-voices over sessions: each of two sessions has new voices of its own."""

from __future__ import annotations

from functools import cache

import numpy as np

import unmask as um
from benchmarks.coverage.similarity import KEPT_APART, POPULATIONS, Voices
from benchmarks.coverage.tally import Tally, header, line

SPEAKERS = (20, 40, 60)
METRICS = ("g_vd_within", "unlinkability_between", "d_ece_between", "eer_between")
REPLICATES = 100
_LARGE, _TIMES = 200, 12


def assessed(
    voices: Voices, rng: np.random.Generator, speakers: int, *, replicates: int, seed: int = 0
) -> um.privacy.SessionAssessment:
    """A sample whose utterances are spoken in two sessions in turn."""
    original, *runs = voices.runs(rng, speakers, 2)
    session = np.arange(len(original.vectors)) % 2
    vectors = np.where(session[:, None] == 0, runs[0].vectors, runs[1].vectors)
    protected = um.Embeddings(
        vectors, original.speakers, original.utterances, sessions=[f"t{part}" for part in session]
    )
    return um.sessions(original, protected, replicates=replicates, seed=seed)


@cache
def truth(voices: Voices, *, large: int = _LARGE, times: int = _TIMES) -> dict[str, float]:
    """The mean of large samples, or what follows where nothing is kept from session to session."""
    rng = np.random.default_rng([2028, voices.seed])
    rows = [assessed(voices, rng, large, replicates=0).estimates for _ in range(times)]
    found = {
        metric: np.array([e.value for row in rows for e in row if e.metric == metric], float)
        for metric in METRICS
    }
    known = {metric: float(values.mean()) for metric, values in found.items()}
    known["g_vd_within"] = float(10 * np.log10((10 ** (found["g_vd_within"] / 10)).mean()))
    if voices.share == 0 and voices.spread == 0:
        known |= {"unlinkability_between": 1.0, "d_ece_between": 0.0, "eer_between": 0.5}
    return known


def covered(
    voices: Voices, speakers: int, *, samples: int, replicates: int = REPLICATES
) -> dict[str, Tally]:
    """Tallies of all samples of so many speakers."""
    known = truth(voices)
    tallies = {metric: Tally(known[metric]) for metric in METRICS}
    for number in range(samples):
        rng = np.random.default_rng([voices.seed, speakers, number])
        found = assessed(voices, rng, speakers, replicates=replicates, seed=number)
        for metric, tally in tallies.items():
            tally.add_interval(found.interval(metric))
    return tallies


def run(*, samples: int = 200) -> None:
    """Print coverage for every population, number of speakers and number."""
    header()
    for voices in (KEPT_APART, POPULATIONS[0], POPULATIONS[2]):
        for speakers in SPEAKERS:
            for metric, tally in covered(voices, speakers, samples=samples).items():
                line(voices.name, speakers, metric, tally)
