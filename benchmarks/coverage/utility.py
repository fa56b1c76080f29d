"""Intervals of utility: word errors, means over utterances, differences from the original, and
means over sets of different people and of the same.
"""

from __future__ import annotations

import numpy as np

from benchmarks.coverage.tally import Tally, header, line
from unmask.estimate import Estimate
from unmask.report.overview import mean
from unmask.utility import COLUMNS, ORIGINAL, Measurements, utility_of

SPEAKERS = (20, 40, 60)
SAMPLES = 200
UTTERANCES, WORDS = 4, 5
# Shares of words wrong, unprotected and protected, and spread of their log-odds over speakers.
POPULATIONS = {
    "few errors": ((0.04, 0.05), 0.8),
    "many errors": ((0.04, 0.35), 0.8),
    "uneven": ((0.04, 0.15), 1.6),
}
_LARGE = 200_000


def run(*, samples: int = SAMPLES) -> None:
    """Print coverage for every population and number of speakers."""
    header()
    for name in POPULATIONS:
        for speakers in SPEAKERS:
            for number, tally in covered(name, speakers, samples=samples).items():
                line(name, speakers, number, tally)


def covered(
    population: str, speakers: int, *, samples: int = SAMPLES, replicates: int = 200
) -> dict[str, Tally]:
    """Tallies of the word error rate, its difference, means of melody and quality, and means over
    sets: of three samples of people, and of two conditions of the same people.
    """
    rates, _ = _people(population, np.random.default_rng(1), _LARGE)
    plain, protected = rates.mean(axis=0)
    tallies = {
        "wer": Tally(protected),
        "wer_difference": Tally(protected - plain),
        "rho_f0": Tally(0.8),
        "dnsmos_ovrl": Tally(3.0),
        "dnsmos_ovrl_difference": Tally(-0.4),
        "wer, mean of 3 sets": Tally(protected),
        "wer, same people": Tally((plain + protected) / 2),
    }
    sets: list[Estimate] = []
    seed = list(POPULATIONS).index(population)
    for number in range(samples):
        measured = _measured(population, np.random.default_rng([seed, speakers, number]), speakers)
        found = utility_of(measured, replicates=replicates)
        of = {one.metric: one for one in found.estimates_of["safeguard"]}
        for metric in tallies.keys() & of:
            tallies[metric].add_interval(of[metric].interval)
        both = mean([of["wer"], of["wer_unprotected"]], independent=False)
        tallies["wer, same people"].add_interval(both.interval)
        sets.append(of["wer"])
        if len(sets) == 3:
            tallies["wer, mean of 3 sets"].add_interval(mean(sets, independent=True).interval)
            sets.clear()
    return tallies


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
