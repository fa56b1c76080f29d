from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import population

import unmask as um
from unmask.base import Sampling
from unmask.privacy import ranks_of
from unmask.privacy.legal.linking import disclosure


def test_half_of_forty_found_at_once_is_four_and_a_half_bits():
    distribution = np.full(40, (1 - 0.5662) / 39)
    distribution[0] = 0.5662
    assert disclosure(distribution)[1] == pytest.approx(4.50, abs=0.005)


def test_limits():
    certain = ranks_of(np.ones(50, dtype=int), 32)
    assert (certain.mean_d, certain.max_d, certain.identification_rate) == (5.0, 5.0, 1.0)
    for metric in ("mean_d", "max_d", "identification_rate"):
        interval = certain.intervals[metric]
        assert interval.low < interval.high, "no interval of zero width"
    several = ranks_of(np.ones(60, dtype=int), 24, speakers=np.repeat(np.arange(10), 6))
    assert several.intervals["mean_d"].low < several.mean_d == several.intervals["mean_d"].high
    uniform = ranks_of(np.tile(np.arange(1, 33), 3), 32)
    assert uniform.mean_d == pytest.approx(0, abs=1e-12)
    assert uniform.max_d == pytest.approx(0, abs=1e-12)
    assert uniform.distribution == pytest.approx(np.full(32, 1 / 32))


def test_ranks_of_scores():
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    result = um.privacy.ranks_from_scores(scores, [0, 2, 0])
    assert result.ranks.tolist() == [1, 3, 1]
    assert result.tied.tolist() == [0, 0, 1]
    assert result.distribution == pytest.approx([0.5, 1 / 6, 1 / 3]), "a tie shares its ranks"
    assert result.identification_rate == pytest.approx(0.5)
    assert result.intervals["mean_d"].high <= np.log2(3)


def test_histogram_keeps_the_probability():
    result = ranks_of([1, 1, 2, 5, 77, 100], 100)
    edges, probability = result.histogram()
    assert edges.tolist() == [1, 2, 4, 8, 16, 32, 64, 101]
    assert (probability * np.diff(edges)).sum() == pytest.approx(1)


def test_chance_and_intervals():
    rng = np.random.default_rng(0)
    result = ranks_of(rng.integers(1, 101, 300), 100)
    assert result.mean_d == pytest.approx(result.chance["mean_d"], abs=0.1)
    assert "too large" in result.warnings[0]
    value, mean, largest = result.estimates
    assert (value.metric, value.unit, value.chance) == ("identification_rate", "%", 0.01)
    assert mean.unit == largest.unit == "bit"
    assert value.interval is not None
    assert value.interval.low <= value.value <= value.interval.high
    assert not ranks_of(np.ones(500, dtype=int), 100).warnings


@pytest.mark.parametrize(("candidates", "speakers", "each"), [(20, 20, 5), (60, 60, 1)])
def test_intervals_of_uniform_ranks_hold_no_disclosure(candidates, speakers, each):
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(speakers), each)
    how = Sampling(50, 0.95, 0)
    held = 0
    for _ in range(20):
        ranks = rng.integers(1, candidates + 1, owner.size)
        made = ranks_of(ranks, candidates, speakers=owner, resampling=how)
        ends = [made.intervals[metric].low for metric in ("mean_d", "max_d")]
        assert made.mean_d > 0.01, "few ranks always seem to disclose something"
        assert ends[0] == 0 or ends[1] > 0
        held += ends == [0, 0]
    assert held >= 18


def test_linkability_of_everyone_is_the_identification_rate():
    enrol, test = (population(60, 2, noise=1.5, tag=t) for t in "et")
    result = um.linkability(enrol, test, counts=[60])
    assert result.ranks.identification_rate == pytest.approx(result.value[0])


def test_bad_ranks():
    for ranks in ([0, 1], [1, 5], []):
        with pytest.raises(um.InputError, match="from 1 to 4"):
            ranks_of(ranks, 4)
