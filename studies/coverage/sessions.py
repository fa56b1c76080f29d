"""Intervals of pseudo-voices over sessions: each of two sessions has new voices of its own."""

from __future__ import annotations

import numpy as np

import unmask as um
from studies.coverage.similarity import KEPT_APART, POPULATIONS, Voices
from studies.coverage.study import SPEAKERS, Drawn, Study, ends

METRICS = ("g_vd_within", "unlinkability_between", "d_ece_between", "eer_between")
REPLICATES = 100
_LARGE, _TIMES = 200, 12


def studies() -> list[Study]:
    """Three laws with every number of speakers."""
    return [
        Study(voices.name, speakers, (sample, voices, speakers), (truth, voices))
        for voices in (KEPT_APART, POPULATIONS[0], POPULATIONS[2])
        for speakers in SPEAKERS
    ]


def assessed(
    voices: Voices, rng: np.random.Generator, speakers: int, *, replicates: int, seed: int = 0
) -> Drawn:
    """Numbers of a sample whose utterances are spoken in two sessions in turn."""
    original, *runs = voices.runs(rng, speakers, 2)
    session = np.arange(len(original.vectors)) % 2
    vectors = np.where(session[:, None] == 0, runs[0].vectors, runs[1].vectors)
    protected = um.Embeddings(
        vectors, original.speakers, original.utterances, sessions=[f"t{part}" for part in session]
    )
    result = um.compare_sessions(original, protected, replicates=replicates, seed=seed)
    values = {e.metric: float(e.value) for e in result.estimates if e.metric in METRICS}
    return {
        metric: ends(result.interval(metric) if replicates else None, values[metric])
        for metric in METRICS
    }


def truth(voices: Voices) -> dict[str, float]:
    """The mean of large samples, or what follows where nothing is kept from session to session."""
    rng = np.random.default_rng([2028, voices.seed])
    rows = [assessed(voices, rng, _LARGE, replicates=0) for _ in range(_TIMES)]
    result = {metric: np.array([row[metric][0] for row in rows]) for metric in METRICS}
    known = {metric: float(values.mean()) for metric, values in result.items()}
    known["g_vd_within"] = float(10 * np.log10((10 ** (result["g_vd_within"] / 10)).mean()))
    if voices.share == 0 and voices.spread == 0:
        known |= {"unlinkability_between": 1.0, "d_ece_between": 0.0, "eer_between": 0.5}
    return known


def sample(voices: Voices, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    rng = np.random.default_rng([voices.seed, speakers, number])
    return assessed(voices, rng, speakers, replicates=REPLICATES, seed=number)
