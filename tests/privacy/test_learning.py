"""Learning curves: the rule for "still rises", by definition and by simulation; overlaps."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

from unmask.errors import InputError
from unmask.privacy import LearningCurve, learning_curve, linkability, on_fewer, overlaps
from unmask.privacy.legal import Attacker

SPEAKERS, PER, D = 40, 6, 20


def voices(seed, prefix="s", *, noisy=12, speakers=SPEAKERS):
    """Speakers who differ in few directions; all vary much in others, which WCCN learns."""
    spread = np.where(np.arange(D) < noisy, 4.0, 0.3)
    return named_speakers(speakers, PER, D, noise=spread, means=seed, speaker=f"{prefix}{{:02}}")


def attack(backend="wccn", seed=0):
    result = voices(seed)
    first = np.arange(len(result)) % PER < 3
    return Attacker(result.select(first), result.select(~first), backend, voices(seed + 99, "t"))


def test_training_groups_are_nested_in_size_and_never_attacked():
    series = on_fewer(attack(), steps=4, draws=3)
    assert list(series) == [5, 10, 20, 40]
    assert [len(group) for group in series.values()] == [3, 3, 3, 1]
    for size, group in series.items():
        for one in group:
            assert one.train.n_speakers == size
            assert not set(one.train.speakers.to_series()) & set(one.test.speakers.to_series())
    shared = attack()
    own = Attacker(shared.enrol, shared.test, "wccn", shared.enrol)
    halved = on_fewer(own)
    assert max(halved) == SPEAKERS // 2
    for one in halved[max(halved)]:
        assert one.test.n_speakers == SPEAKERS // 2
        assert not set(one.train.speakers.to_series()) & set(one.test.speakers.to_series())


def test_values_are_linkability_at_each_size():
    series = on_fewer(attack(), steps=2, draws=2)
    curve = learning_curve(series, candidates=10)
    for i, (size, group) in enumerate(series.items()):
        assert curve.people[i] == size
        expected = [
            linkability(one.enrol, one.test, counts=[10], backend=one.ready().backend_in_use).value[
                0
            ]
            for one in group
        ]
        assert curve.value[i] == pytest.approx(np.mean(expected), abs=1e-12)
    assert [e.params["trained_on"] for e in curve.estimates] == [20, 40, 40]
    assert curve.estimates[-1].value == pytest.approx(curve.value[1] - curve.value[0])
    assert len(curve.rows()) == 3


def test_an_attacker_that_has_learnt_too_little_is_told():
    curve = learning_curve(on_fewer(attack("plda"), steps=4), candidates=20)
    assert curve.value[-1] > curve.value[0]
    untrained = learning_curve(on_fewer(attack("cosine"), steps=3), candidates=20)
    assert untrained.rise == (0.0, 0.0, 0.0)
    assert untrained.verdict == "steady"
    assert untrained.notices == ()


def simulated(gain, rng, speakers=40, recordings=5):
    """Speakers of unlike risk; the last doubling adds ``gain`` to everybody's."""
    risk = rng.beta(2, 2, size=speakers)
    rows = [
        rng.binomial(recordings, np.clip(risk + more, 0, 1)) / recordings for more in (0.0, gain)
    ]
    return LearningCurve(
        np.array([20, 40]), np.stack(rows), np.zeros(2), candidates=20, length=1, level=0.95
    )


def test_the_rule_names_a_growing_curve_and_leaves_a_flat_one():
    rng = np.random.default_rng(0)
    flat = [simulated(0.0, rng).verdict for _ in range(800)]
    growing = [simulated(0.15, rng).verdict for _ in range(300)]
    assert np.mean([v == "rises" for v in flat]) < 0.04
    assert np.mean([v == "rises" for v in growing]) > 0.7
    assert np.mean([v == "steady" for v in growing]) < 0.01
    ends = [simulated(0.1, rng).rise[1:] for _ in range(400)]
    assert 0.9 < np.mean([low < 0.1 < high for low, high in ends]) <= 1.0


@pytest.mark.parametrize(
    ("gain", "noise", "verdict"),
    [(0.0, 0.01, "steady"), (0.0, 0.1, "unclear"), (0.03, 0.3, "unclear"), (0.03, 0.01, "rises")],
)
def test_a_curve_is_steady_only_where_its_last_gain_is_small(gain, noise, verdict):
    gains = gain + noise * np.tile([-1.0, 1.0], 20)
    curve = LearningCurve(
        np.array([20, 40]),
        np.stack([np.full(40, 0.5), 0.5 + gains]),
        np.zeros(2),
        candidates=20,
        length=1,
        level=0.95,
    )
    assert curve.verdict == verdict
    assert bool(curve.notices) == (verdict != "steady")


def test_the_interval_is_that_of_paired_differences():
    curve = simulated(0.1, np.random.default_rng(3))
    gain = curve.outcomes[1] - curve.outcomes[0]
    error = gain.std(ddof=1) / np.sqrt(40)
    value, low, high = curve.rise
    assert value == pytest.approx(gain.mean())
    assert (high - low) / 2 == pytest.approx(2.0226909 * error, rel=1e-6)


def test_bad_curves_are_refused(sentences):
    with pytest.raises(InputError, match="attackers by number"):
        learning_curve({})
    bare = attack()
    with pytest.raises(InputError, match="with training speech"):
        on_fewer(Attacker(bare.enrol, bare.test))
    with pytest.raises(InputError) as error:
        on_fewer(Attacker(bare.enrol, bare.test, "wccn", voices(5, "t", speakers=3)))
    sentences.check(str(error.value))
    other = voices(7, "u")
    first = np.arange(len(other)) % PER < 3
    with pytest.raises(InputError, match="same attacked speakers"):
        learning_curve(
            {
                4: [bare],
                8: [Attacker(other.select(first), other.select(~first), "wccn", bare.train)],
            }
        )


def curve_of(seed, spread=1.0, *, speakers=SPEAKERS):
    noise = np.repeat(np.linspace(0.1, 3 * spread, speakers), PER)[:, None]
    result = named_speakers(speakers, PER, 8, noise=noise, means=seed, utterance=None)
    first = np.arange(len(result)) % PER < 3
    return linkability(result.select(first), result.select(~first), counts=[5, 20], replicates=0)


def test_overlap_is_counted_and_its_chance_is_exact():
    risks = {"a": curve_of(1, 0.6), "b": curve_of(2, 0.6), "c": curve_of(1, 0.6)}
    result = overlaps(risks, share=0.2)
    assert len(result) == 2 * len(list(combinations(risks, 2)))
    one = next(o for o in result if (o.first, o.second, o.which) == ("a", "b", "hardest"))
    assert (one.size, one.speakers, one.chance) == (8, 40, 0.2)
    tail = sum(comb(8, k) * comb(32, 8 - k) for k in range(one.shared, 9)) / comb(40, 8)
    assert one.probability == pytest.approx(tail, rel=1e-12)
    assert one.drawn == 0
    hardest = [
        set(risks[n].speakers.gather(np.argsort(risks[n].per_speaker.mean(axis=1))[:8]))
        for n in ("a", "b")
    ]
    assert one.shared == len(hardest[0] & hardest[1])
    same = next(o for o in result if (o.first, o.second, o.which) == ("a", "c", "hardest"))
    assert same.shared >= 8 - same.drawn
    assert one.estimate.chance == 0.2
    assert one.estimate.n["speakers"] == 40


def test_equals_are_drawn_by_lot_and_create_no_overlap():
    equal = curve_of(1, spread=0.0)
    assert (equal.per_speaker == 1).all()
    shares = []
    for n in range(200):
        (easiest, _) = overlaps({f"a{n}": equal, f"b{n}": equal})
        assert easiest.drawn == 2 * easiest.size
        shares.append(easiest.shared / easiest.size)
    assert abs(np.mean(shares) - 0.1) < 0.03


def test_halves_of_the_people_are_compared():
    result = overlaps({"a": curve_of(1), "b": curve_of(2)}, share=0.5)
    assert [(one.which, one.size) for one in result] == [("easiest", 20), ("hardest", 20)]


def test_a_share_beyond_half_is_refused(sentences):
    with pytest.raises(InputError) as error:
        overlaps({"a": curve_of(1), "b": curve_of(2)}, share=0.6)
    sentences.check(str(error.value))


def test_a_number_of_people_too_few_to_fit_is_left_out():
    one = attack("asnorm")
    few = Attacker(one.enrol, one.test, "procrustes", one.train)
    curve = learning_curve({5: [few], 20: [one], 40: [one]})
    assert curve.people.tolist() == [20, 40]
    with pytest.raises(InputError):
        learning_curve({20: [one], 40: [few]})
