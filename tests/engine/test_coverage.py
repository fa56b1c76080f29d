"""95 % intervals hold the truth about as often as they say: a short run of the simulations."""

import numpy as np
import pytest
from benchmarks.coverage.populations import Population, calibrated_limit
from benchmarks.coverage.tally import Tally

import unmask as um

BATTERY = um.Battery(fpr=(1e-2,))
SAMPLES = 40


@pytest.mark.parametrize(
    "population",
    [
        Population("homogeneous", 1.2),
        Population("heterogeneous", 1.4, heterogeneity=0.5),
        Population("heavy tails", 1.6, freedom=3.0),
    ],
    ids=lambda population: population.name,
)
def test_intervals_of_twenty_speakers_hold_the_truth(population):
    limit = calibrated_limit(population)[0]
    truth = BATTERY.values(um.Roc.from_scores(*limit, thresholds=BATTERY.thresholds, cllr=True))
    tallies = {
        key: Tally(truth[key]) for key, about in BATTERY.measured().items() if not about.no_interval
    }
    for number in range(SAMPLES):
        sample = population.scores(np.random.default_rng(number), 20, 4)
        found = um.evaluate(sample, systems=["better"], battery=BATTERY, replicates=50)
        numbers = [e for e in found.results[0].estimates if e.metric != "tag"]
        for key, estimate in zip(BATTERY.measured(), numbers, strict=True):
            if key in tallies:
                interval = estimate.interval
                assert interval.low <= estimate.value <= interval.high
                assert interval.low < interval.high
                tallies[key].add(interval.low, interval.high)
    # 40 samples of a true 95 % fall below 85 % once in 70 runs; percentiles reach 70 to 80 %, and
    # numbers of one sample err together: their mean has a standard error of 3 %.
    for key, tally in tallies.items():
        assert tally.coverage >= 0.85, (key, tally.coverage, tally.missed)
    assert np.mean([tally.coverage for tally in tallies.values()]) >= 0.92
