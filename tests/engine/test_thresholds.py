"""Operating points: errors at a threshold, thresholds for a demanded rate, how sure both are."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.engine.streams import make_batches_tiny
from tests.helpers.populations import population

import unmask as um
from unmask.base import widening
from unmask.engine import pairing, streaming
from unmask.engine.bootstrap import NOT_ASKED, SortedTrials, Units, bootstrap, equalised
from unmask.errors import InputError
from unmask.run import NUMPY
from unmask.scoring import Sides

SCORES = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 0.75, 2.0]), min_size=1, max_size=12)


def trials(speakers=12, each=3, *, shift=0.0, prefix="s", seed=0):
    """All pairs of utterances with their speakers; a column tells two conditions apart."""
    rng = np.random.default_rng(seed)
    enrol, test = np.triu_indices(speakers * each, 1)
    own = enrol // each == test // each
    names = [f"{prefix}{i // each:02d}" for i in range(speakers * each)]
    rows = {
        "enrol": [f"u{i}" for i in enrol],
        "test": [f"v{i}" for i in test],
        "label": own.astype(int),
        "cosine": (rng.normal(shift, 1, own.size) + 2 * own).round(3),
        "enrol_speaker": [names[i] for i in enrol],
        "test_speaker": [names[i] for i in test],
        "channel": np.where(rng.random(own.size) < 0.2, "a", np.where(enrol % 2, "b", "c")),
    }
    return um.read_scores(frame(rows))


def frame(rows):
    import polars as pl

    return pl.DataFrame(rows)


@given(SCORES, SCORES, st.sets(st.sampled_from([-2.0, -0.5, 0.1, 0.2, 0.5, 0.6, 3.0])))
def test_the_threshold_of_the_eer_does_not_depend_on_what_else_is_asked(target, nontarget, at):
    plain = um.Roc.from_scores(target, nontarget)
    more = um.Roc.from_scores(target, nontarget, thresholds=at)
    for estimator in ("rocch", "raw"):
        first, second = (one.eer_point(estimator=estimator) for one in (plain, more))
        np.testing.assert_allclose(second, first, rtol=1e-12)
        np.testing.assert_equal(second.threshold, first.threshold)


def test_a_demanded_rate_leaves_the_threshold_of_the_eer():
    rng = np.random.default_rng(1)
    lists = rng.normal(2, 1, 40), rng.normal(0, 1, 4000)
    batteries = um.Battery(), um.Battery(far=(0.01, 0.1, 0.2), threshold=(0.9, 1.0, 1.1))
    points = [um.evaluate(*lists, battery=one, replicates=0)["eer"].threshold for one in batteries]
    assert points[0] == points[1]


@given(SCORES, SCORES, st.sampled_from([-1.0, 0.5, 0.6, 3.0]))
@pytest.mark.filterwarnings("ignore")
def test_errors_at_a_threshold_accept_scores_that_equal_it(target, nontarget, at):
    target, nontarget = np.array(target), np.array(nontarget)
    result = um.operating_point(target, nontarget, threshold=at, replicates=0, p_target=0.2)
    far, frr = (nontarget >= at).mean(), (target < at).mean()
    assert result["far"].value == pytest.approx(far)
    assert result["frr"].value == pytest.approx(frr)
    assert result["cost"].value == pytest.approx((0.2 * frr + 0.8 * far) / 0.2)


@given(SCORES, SCORES, st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 0.5, 0.99]))
@pytest.mark.filterwarnings("ignore")
def test_a_demanded_rate_gets_the_smallest_threshold_that_keeps_it(target, nontarget, demand):
    target, nontarget = np.array(target), np.array(nontarget)
    result = um.operating_point(target, nontarget, far=demand, replicates=0)
    at = result["threshold"].value
    assert (nontarget >= at).mean() <= demand
    # The next lower decision accepts the highest nontarget that was rejected.
    assert (nontarget >= nontarget[nontarget < at].max()).mean() > demand
    assert result["frr"].value == pytest.approx((target < at).mean())
    assert math.isnan(result["safe_threshold"].value)
    assert result["safe_threshold"].no_interval == NOT_ASKED


def test_at_the_safe_threshold_the_interval_of_far_keeps_the_demand(sentences):
    scores = trials(30)
    demanded = um.operating_point(scores, far=(0.05, 1e-4), replicates=100)
    threshold, safe = demanded["threshold"], demanded["safe_threshold"]
    assert threshold.interval.low < threshold.value < threshold.interval.high == safe.value
    judged = um.operating_point(scores, threshold=safe.value, replicates=100)
    assert judged["far"].interval.high <= 0.05
    misses = [one for one in demanded.estimates if one.metric == "frr" and "safe" in one.params]
    assert misses[0].value == judged["frr"].value
    nothing = [one for one in demanded.estimates if one.metric == "safe_threshold"][1]
    assert math.isnan(nothing.value)
    sentences.check(nothing.no_interval)
    assert demanded.evaluation.results[0]["eer"].threshold is not None


def test_thresholds_and_their_intervals_follow_the_scores():
    scores = trials()
    stretched = dataclasses.replace(scores, systems={"cosine": np.exp(scores.scores("cosine"))})
    plain, other = (
        um.operating_point(one, far=0.05, replicates=60)["threshold"] for one in (scores, stretched)
    )
    before = [plain.value, plain.interval.low, plain.interval.high]
    after = [other.value, other.interval.low, other.interval.high]
    for one, same in zip(before, after, strict=True):
        values = scores.scores("cosine")
        np.testing.assert_array_equal(values >= one, np.exp(values) >= same)


@pytest.mark.parametrize("shift", [0.0, -40.0])
def test_a_stream_finds_the_same_thresholds(tmp_path, monkeypatch, shift, sentences):
    make_batches_tiny(monkeypatch)
    monkeypatch.setattr(streaming, "_DRAWN", 40)
    path = tmp_path / "scores.csv"
    scores = trials()
    values = np.where(scores.is_target, scores.scores("cosine"), scores.scores("cosine") + shift)
    scores = dataclasses.replace(scores, systems={"cosine": values})
    um.write(scores, path)
    battery = um.Battery(threshold=(0.5,), far=(0.02, 0.1), eer="kaldi", d_sys="histogram")
    whole, parts = (
        um.evaluate(str(path), battery=battery, replicates=20, stream=stream)
        for stream in (False, True)
    )
    for one, other in zip(whole.estimates, parts.estimates, strict=True):
        if not one.params.get("safe"):
            assert (one.metric, one.params) == (other.metric, other.params)
            assert one.value == other.value, one
    with pytest.raises(InputError) as error:
        um.evaluate(str(path), battery=um.Battery(eer="speechbrain"), stream=True)
    sentences.check(str(error.value))


def test_bins_of_trials_keep_thresholds_exact(monkeypatch):
    scores = trials(20)
    battery = um.Battery(threshold=(0.5,), far=(0.05,), d_sys="histogram")
    exact = um.evaluate(scores, battery=battery, replicates=200)
    monkeypatch.setattr("unmask.engine.evaluation.AUTO_TRIALS", 10)
    monkeypatch.setattr("unmask.engine.evaluation.AUTO_REPLICATES", 200)
    binned = um.evaluate(scores, battery=battery)
    for metric in ("far", "frr", "threshold"):
        one, other = exact[metric], binned[metric]
        assert one.value == other.value
        width = one.interval.high - one.interval.low
        assert other.interval.low == pytest.approx(one.interval.low, abs=0.6 * width)
        assert other.interval.high == pytest.approx(one.interval.high, abs=0.6 * width)


def test_thresholds_set_on_one_list_are_judged_on_another():
    here, there = trials(shift=0.3), trials(prefix="d", seed=1)
    result = um.operating_point(here, far=0.05, dev=there, replicates=20)
    set_there = um.operating_point(there, far=0.05, replicates=0)
    rules = {"EER": "eer", "minDCF (0.01)": "min_dcf", "FAR ≤ 5 %": "threshold"}
    target, nontarget = here.targets("cosine"), here.nontargets("cosine")
    for rule, metric in rules.items():
        at = set_there[metric].threshold
        far, frr = (
            next(e for e in result.estimates if e.metric == name and e.params.get("set_by") == rule)
            for name in ("far", "frr")
        )
        assert far.threshold == frr.threshold == at
        assert far.value == pytest.approx((nontarget >= at).mean())
        assert frr.value == pytest.approx((target < at).mean())
        assert far.interval.low <= far.value <= far.interval.high
    lists = {row["list"] for row in result.rows()}
    assert lists == {"evaluation", "development"}
    dev = result.evaluation.dev["cosine"]
    judged = [e for e in dev.estimates if e.metric == "far" and e.params["set_by"] == "FAR ≤ 5 %"]
    assert judged[0].value <= 0.05


def test_a_development_list_has_other_speakers(sentences):
    with pytest.raises(InputError) as error:
        um.operating_point(trials(), dev=trials(seed=1), replicates=0)
    sentences.check(str(error.value))
    with pytest.warns(um.UnmaskWarning, match="not known"):
        um.operating_point([1.0, 2.0], [0.0], dev=([1.0, 2.0], [0.0]), replicates=0)
    both = trials(prefix="d")
    both = dataclasses.replace(both, systems=dict.fromkeys("abc", both.scores("cosine")))
    with pytest.raises(InputError) as error:
        um.operating_point(trials(), dev=both, replicates=0)
    sentences.check(str(error.value))


def test_pairs_are_judged_at_a_threshold(sentences):
    voices = population(6, 4, noise=0.5, tag="p")
    result = um.evaluate(voices, battery=um.Battery(threshold=(0.5,)), replicates=10)
    vectors = np.array(voices.vectors, float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    owner = voices.speakers.codes
    one, other = np.triu_indices(len(owner), 1)
    cosine = (vectors[one] * vectors[other]).sum(axis=1)
    own = owner[one] == owner[other]
    assert result["far"].value == pytest.approx((cosine[~own] >= 0.5).mean())
    assert result["frr"].value == pytest.approx((cosine[own] < 0.5).mean())
    with pytest.raises(InputError) as error:
        um.evaluate(voices, battery=um.Battery(d_sys="histogram"))
    sentences.check(str(error.value))


@pytest.mark.parametrize("back_end", ["cosine", "mahalanobis"])
def test_pairs_get_the_smallest_threshold_that_keeps_a_demanded_rate(back_end):
    """Against all scores, of cosines and of scores of any size: counted passes find the number."""

    class Wide:
        name = "wide"

        def sides(self, vectors):
            return Sides(np.asarray(vectors) * 300, np.asarray(vectors))

    scoring = um.Cosine() if back_end == "cosine" else Wide()
    voices = population(9, 5, noise=0.9, tag="p")
    sides = scoring.sides(np.asarray(voices.vectors, np.float64))
    rows, columns = sides.enrol.astype(np.float32), sides.test.astype(np.float32)
    one, other = np.triu_indices(len(rows), 1)
    scores, owner = (rows @ columns.T).astype(float)[one, other], voices.speakers.codes
    target, nontarget = scores[owner[one] == owner[other]], scores[owner[one] != owner[other]]
    demands = (0.2, 0.05, 0.01, 1e-9)
    result = um.evaluate(
        voices, battery=um.Battery(far=demands), replicates=20, backend=scoring, pairs="all"
    )
    listed = um.operating_point(target, nontarget, far=demands, replicates=0)
    found = [one for one in result.estimates if one.metric in ("threshold", "frr")]
    found = [one for one in found if not one.params.get("safe")]
    expected = [one for one in listed.estimates if one.metric in ("threshold", "frr")]
    expected = [one for one in expected if not one.params.get("safe")]
    assert len(found) == len(expected) == 2 * len(demands)
    for one, same in zip(found, expected, strict=True):
        assert one.params == same.params
        for values in (target, nontarget):
            assert ((values >= one.threshold) == (values >= same.threshold)).all()
        if one.metric == "frr":
            assert one.value == pytest.approx(same.value)
    assert found[0].interval.low < found[0].value < found[0].interval.high


def test_numbers_of_32_bits_keep_their_order():
    numbers = np.array([-3e38, -1.5, -1e-45, 0.0, 1e-45, 0.25, 1.0, 3e38], np.float32)
    ordinals = pairing._ordinal(numbers)
    assert (np.diff(ordinals) > 0).all()
    np.testing.assert_array_equal(pairing._number(ordinals), numbers)
    beside = pairing._number(ordinals[1:-1] + 1)
    np.testing.assert_array_equal(beside, np.nextafter(numbers[1:-1], np.float32(np.inf)))


def test_conditions_weigh_alike_within_each_class():
    scores = trials()
    channel = np.array(scores.columns["channel"].to_series().to_list())
    values = scores.scores("cosine")
    equal = um.evaluate(
        scores, equalise="channel", battery=um.Battery(threshold=(0.8,)), replicates=0
    )
    rates = [
        np.mean([(values[kind & (channel == c)] >= 0.8).mean() for c in "abc"])
        for kind in (scores.is_target, scores.is_nontarget)
    ]
    assert equal["frr"].value == pytest.approx(1 - rates[0])
    assert equal["far"].value == pytest.approx(rates[1])
    assert equal["eer"].n == um.evaluate(scores, replicates=0)["eer"].n
    assert "equalise:channel" in equal["eer"].signature
    once = um.evaluate(scores, equalise="channel", replicates=20)
    assert once["eer"].interval.low < once["eer"].value < once["eer"].interval.high


def test_conditions_weigh_alike_anew_in_each_draw():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, 20), rng.normal(0, 1, 90)
    units = Units.trials(20, 90)
    conditions = rng.integers(0, 3, 20), rng.integers(0, 3, 90)
    system = SortedTrials.of(target, nontarget, units, conditions=conditions)
    drawn = units.draw(0, 0)
    drawn[:20][conditions[0] == 2] = 0
    made = system.weighted(NUMPY, drawn)
    expected = []
    for scores, times, of in (
        (target, drawn[:20], conditions[0]),
        (nontarget, drawn[20:], conditions[1]),
    ):
        there = [c for c in range(3) if times[of == c].any()]
        weight = sum(
            (of == c) * times * times.sum() / len(there) / times[of == c].sum() for c in there
        )
        np.testing.assert_allclose(equalised(times, of), weight)
        expected.append((scores, weight))
    at = float(np.sort(target)[9])
    (own, mine), (others, theirs) = expected
    assert made.at_threshold(at).p_miss == pytest.approx(mine[own < at].sum() / mine.sum())
    assert made.at_threshold(at).p_fa == pytest.approx(theirs[others >= at].sum() / theirs.sum())


def test_conditions_without_a_class_are_named():
    scores = trials()
    channel = np.array(scores.columns["channel"].to_series().to_list())
    channel = um.Ids.from_strings(np.where(scores.is_target, "b", channel))
    scores = dataclasses.replace(scores, columns={"channel": channel})
    with pytest.warns(um.UnmaskWarning, match="of a, c"):
        um.evaluate(scores, equalise="channel", replicates=0)
    with pytest.raises(InputError, match="no column room"):
        um.evaluate(scores, equalise="room", replicates=0)


def test_c_primary_is_the_mean_of_normalised_costs(sentences):
    rng = np.random.default_rng(0)
    pair = rng.normal(4, 3, 200), rng.normal(-4, 3, 900)
    battery = um.Battery(p_target=(0.01, 0.005), c_primary=True)
    result = um.evaluate(*pair, battery=battery, replicates=0)
    for name, cost in (("act_c_primary", um.act_dcf), ("min_c_primary", um.min_dcf)):
        mean = np.mean([cost(*pair, p_target=p) for p in (0.01, 0.005)])
        assert result[name].value == pytest.approx(mean)
    with pytest.raises(InputError) as error:
        um.Battery(c_primary=True)
    sentences.check(str(error.value))


def test_what_is_no_rate_and_no_threshold_is_refused(sentences):
    for options in ({"far": 0.0}, {"far": 1.0}, {"threshold": math.nan}):
        with pytest.raises(InputError) as error:
            um.operating_point([1.0], [0.0], **options)
        sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.compare({"a": ([1.0], [0.0]), "b": ([1.0], [0.0])}, battery=um.Battery(far=(0.1,)))
    sentences.check(str(error.value))


def test_the_spread_of_false_alarms_is_that_of_pairs_of_speakers():
    """Where pairs are independent, resampled speakers spread a rate √3 times too much."""
    rng = np.random.default_rng(5)
    one, other = np.triu_indices(40, 1)
    scores = rng.normal(size=one.size)
    units = Units.speakers(np.arange(40), one, other)
    system = SortedTrials.of(np.full(40, 9.0), scores, units, thresholds=[0.5, 1.0])
    accepted = scores >= 1.0
    more = accepted - accepted.mean()
    of_speakers = [more[(one == k) | (other == k)].sum() for k in range(40)]
    added = system.first_order(np.array([0.5, 1.0]))[:, 1]
    first = np.square(added).sum()
    assert first == pytest.approx(np.square(of_speakers).sum() / one.size**2)
    plain, mended = (
        bootstrap(
            [system],
            lambda roc: {"far": roc.at_threshold(1.0).p_fa},
            replicates=400,
            false_alarms=false_alarms,
        ).values["far"][0]
        for false_alarms in (None, lambda _: {"far": 1.0})
    )
    part = first / plain.var()
    carriers = first**2 / (added**4).sum()
    wider = widening(carriers + 1, 0.95) / widening(40, 0.95)
    few = carriers / min(40 / 3, accepted.sum())
    wider = 1 + (wider - 1) * min(max(2 - few / 0.3, 0), 1)
    expected = max(2 * part - 1, 1 - part) * wider**2
    assert mended.var() / plain.var() == pytest.approx(expected, rel=0.02)
    assert mended.var() < 0.6 * plain.var()
