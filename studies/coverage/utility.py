"""Intervals of utility: word errors, means over utterances, differences from the original, and
means over sets of different people and of the same.
"""

from __future__ import annotations

import numpy as np

from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask.estimate import Estimate
from unmask.report.overview import mean
from unmask.utility import COLUMNS, ORIGINAL, Measurements, utility_of

REPLICATES = 100
UTTERANCES, WORDS = 4, 5
# Shares of words wrong, unprotected and protected, and spread of their log-odds over speakers.
POPULATIONS = {
    "few errors": ((0.04, 0.05), 0.8),
    "many errors": ((0.04, 0.35), 0.8),
    "uneven": ((0.04, 0.15), 1.6),
}
_LARGE = 200_000
_SINGLE = ("wer", "wer_difference", "rho_f0", "dnsmos_ovrl", "dnsmos_ovrl_difference")


def studies() -> list[Study]:
    """Every population with every number of speakers."""
    return [
        Study(name, speakers, (sample, name, speakers), (truth, name))
        for name in POPULATIONS
        for speakers in SPEAKERS
    ]


def truth(population: str) -> dict[str, float]:
    """Word errors of very many people, and what the laws of melody and quality say."""
    rates, _ = _people(population, np.random.default_rng(1), _LARGE)
    plain, protected = map(float, rates.mean(axis=0))
    return {
        "wer": protected,
        "wer_difference": protected - plain,
        "rho_f0": 0.8,
        "dnsmos_ovrl": 3.0,
        "dnsmos_ovrl_difference": -0.4,
        "wer, mean of 3 sets": protected,
        "wer, same people": (plain + protected) / 2,
    }


def sample(population: str, speakers: int, number: int) -> Drawn:
    """Word error rate, its difference, means of melody and quality, and means over sets: of three
    samples of people, and of two conditions of the same people.
    """
    seed = list(POPULATIONS).index(population)

    def measured(part: int) -> dict[str, Estimate]:
        rng = np.random.default_rng([seed, speakers, number, part])
        result = utility_of(_measured(population, rng, speakers), replicates=REPLICATES)
        return {one.metric: one for one in result.estimates_of["safeguard"]}

    of, *others = (measured(part) for part in range(3))
    shown = {name: of[name] for name in _SINGLE}
    shown["wer, mean of 3 sets"] = mean(
        [of["wer"], *(one["wer"] for one in others)], independent=True
    )
    shown["wer, same people"] = mean([of["wer"], of["wer_unprotected"]], independent=False)
    return {name: ends(one.interval, float(one.value)) for name, one in shown.items()}


def _people(
    population: str, rng: np.random.Generator, speakers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each speaker's shares of wrong words in both conditions, and a voice's own quality."""
    shares, spread = POPULATIONS[population]
    odds = np.log(np.array(shares) / (1 - np.array(shares)))
    own = spread * rng.normal(size=(speakers, 2)) @ np.array([[1.0, 0.7], [0.0, 0.7]])
    return 1 / (1 + np.exp(-(odds + own))), rng.normal(size=speakers)


def _measured(population: str, rng: np.random.Generator, speakers: int) -> Measurements:
    rates, quality = _people(population, rng, speakers)
    owner = np.repeat(np.arange(speakers), UTTERANCES)
    values = {}
    for n, (name, mos, rho) in enumerate(((ORIGINAL, 3.4, 1.0), ("safeguard", 3.0, 0.8))):
        columns = {column: np.full(owner.size, np.nan) for column in COLUMNS}
        columns["words"][:] = WORDS
        columns["word_errors"] = rng.binomial(WORDS, rates[owner, n]).astype(float)
        columns["ovrl"] = mos + 0.3 * quality[owner] + 0.2 * rng.normal(size=owner.size)
        columns["rho_f0"] = rho - n * 0.2 * (rng.gamma(1.0, size=owner.size) - 1.0)
        values[name] = columns
    names = tuple(f"s{code:03d}" for code in owner)
    return Measurements(tuple(f"u{n}" for n in range(owner.size)), names, values)
