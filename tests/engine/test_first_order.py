"""Intervals of trials that were only counted, against the bootstrap of all trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.populations import named_speakers, trials_with_effects

import unmask as um
from unmask.base import BySpeaker
from unmask.engine import Battery, evaluation
from unmask.engine.binned_bootstrap import (
    BinnedTrials,
    FirstOrder,
    count_speakers,
    edges_of,
    widening_of_pairs,
)
from unmask.engine.bootstrap import SortedTrials, Units, bootstrap
from unmask.run import NUMPY
from unmask.trials import NONTARGET, TARGET, Ids, ScoreBatch

BATTERY = Battery(p_target=(0.01, 0.5))


def population(speakers, utterances, seed=0, spread=0.3):
    """Speakers who differ in how constant their voice is."""
    rng = np.random.default_rng(seed)
    scale = 1.2 * np.exp(spread * rng.normal(size=(speakers, 1))).repeat(utterances, axis=0)
    more = {"speaker": "s{:03}", "utterance": None, "dtype": np.float32}
    return named_speakers(speakers, utterances, 24, noise=scale, means=rng, **more)


def trials(embeddings, *, enrolled=None):
    """All scores in single precision with the speakers of both sides."""
    rows = um.Cosine().sides(embeddings.vectors).enrol.astype(np.float32)
    scores = (rows @ rows.T).astype(np.float64)
    code = embeddings.speakers.codes
    if enrolled is None:
        a, b = np.triu_indices(len(code), 1)
    else:
        a = np.repeat(np.flatnonzero(enrolled), (~enrolled).sum())
        b = np.tile(np.flatnonzero(~enrolled), enrolled.sum())
    return scores[a, b], code[a], code[b]


def full_bootstrap(embeddings, replicates, **which):
    scores, a, b = trials(embeddings, **which)
    same = a == b
    units = Units.speakers(a[same], a[~same], b[~same])
    system = SortedTrials.of(scores[same], scores[~same], units, thresholds=BATTERY.thresholds)
    return bootstrap([system], BATTERY.values, ranges=BATTERY.ranges, replicates=replicates)


@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_few_trials_get_the_full_bootstrap(pairs):
    embeddings = population(12, 5)
    which = {} if pairs == "all" else {"enrolled": np.tile([True, *[False] * 4], 12)}
    full = full_bootstrap(embeddings, 50, **which)
    result = um.engine.cross_pairing(
        embeddings, pairs=pairs, battery=BATTERY, replicates=50
    ).results[0]
    estimates = [e for e in result.estimates if e.metric != "tag"]
    for key, outcome in zip(BATTERY.measured(), estimates, strict=True):
        if key != "l_w":
            expected = full.interval(key, level=0.95)
            assert outcome.interval.method == "speaker,corrected"
            assert outcome.interval.low == pytest.approx(expected.low, abs=1e-5, nan_ok=True)
            assert outcome.interval.high == pytest.approx(expected.high, abs=1e-5, nan_ok=True)


def test_tables_are_counted_as_defined():
    embeddings = population(40, 6)
    scores, a, b = trials(embeddings)
    same = a == b
    edges = np.sort(np.random.default_rng(1).choice(scores, 30, replace=False))
    from unmask.scoring import CountBySpeaker, RowOrder, shards_of

    with RowOrder.of(shards_of(embeddings), pairs="all").prepared(um.Cosine()) as pairs:
        result = CountBySpeaker(pairs, edges, 40).total()
    place = np.searchsorted(edges, scores, side="right")
    target, nontarget = np.zeros((2, 40, 31), int)
    np.add.at(target, (a[same], place[same]), 1)
    for side in (a, b):
        np.add.at(nontarget, (side[~same], place[~same]), 1)
    np.testing.assert_array_equal(result.target, target)
    np.testing.assert_array_equal(result.nontarget, nontarget)
    loss = np.logaddexp(0, scores[~same])
    expected = np.bincount(a[~same], loss, 40) + np.bincount(b[~same], loss, 40)
    np.testing.assert_allclose(result.nontarget_loss, expected, rtol=1e-6)
    missed = np.bincount(a[same], np.logaddexp(0, -scores[same]), 40)
    np.testing.assert_allclose(result.target_loss, missed, rtol=1e-6)


@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_intervals_are_those_of_the_full_bootstrap(pairs, monkeypatch, sentences):
    monkeypatch.setattr("unmask.engine.pairing.AUTO_TRIALS", 1000)
    embeddings = population(150, 6)
    which = {} if pairs == "all" else {"enrolled": np.tile([True, *[False] * 5], 150)}
    full = full_bootstrap(embeddings, 300, **which)
    full = replace(full, wider=widening_of_pairs(full.units))
    result = um.engine.cross_pairing(
        embeddings, pairs=pairs, battery=BATTERY, replicates=300
    ).results[0]
    estimates = [e for e in result.estimates if e.metric != "tag"]
    for key, outcome in zip(BATTERY.measured(), estimates, strict=True):
        if key == "l_w":
            assert outcome.interval is None
            assert "number of trials" in outcome.no_interval
            continue
        expected = full.interval(key, level=0.95)
        width = expected.high - expected.low
        assert outcome.interval.method == "speaker,first order,corrected"
        assert outcome.interval.replicates == 300
        if key == "act_dcf@0.01":
            assert np.isnan(width)
            sentences.check(outcome.no_interval)
            continue
        assert outcome.interval.high - outcome.interval.low == pytest.approx(width, rel=0.12), key
        assert outcome.interval.low == pytest.approx(expected.low, abs=0.08 * width + 1e-9), key
        assert outcome.interval.high == pytest.approx(expected.high, abs=0.08 * width + 1e-9), key


def test_a_replicate_follows_its_draw():
    embeddings = population(120, 5)
    full = full_bootstrap(embeddings, 100).values
    counts, roc = counted(embeddings)
    result = bootstrap([FirstOrder(counts, roc)], BATTERY.values, replicates=100).values
    for key in ("eer", "min_cllr", "cllr", "d_ece"):
        assert np.corrcoef(full[key][0], result[key][0])[0, 1] > 0.99, key


def counted(embeddings):
    scores, a, b = trials(embeddings)
    same = a == b
    roc = um.Roc.from_scores(scores[same], scores[~same], thresholds=BATTERY.thresholds, cllr=True)
    speakers = int(a.max()) + 1
    edges = edges_of(roc, BATTERY.thresholds, rows=speakers)
    parts = np.array_split(np.arange(scores.size), 3)
    batches = [ScoreBatch(scores[part], same[part], a[part], b[part]) for part in parts]
    return count_speakers(batches, edges, speakers), roc


def test_bins_keep_the_hull():
    counts, roc = counted(population(60, 6))
    whole = FirstOrder(counts, roc).whole
    exact, coarse = BATTERY.values(roc), BATTERY.values(whole)
    for key in ("eer", "min_dcf@0.01", "act_dcf@0.5", "min_cllr", "d_ece", "l_w", "d_sys", "cllr"):
        assert coarse[key] == pytest.approx(exact[key], abs=1e-12), key
    assert whole.targets == roc.targets
    assert whole.nontargets == roc.nontargets


def test_a_draw_without_a_class_has_no_value():
    counts = BySpeaker(
        np.array([0.0]),
        np.array([[1, 2], [0, 0]]),
        np.array([[3, 1], [3, 1]]),
        np.array([3, 1]),
        np.ones(2),
        np.ones(2),
        1.0,
    )
    table = FirstOrder(counts, um.Roc.from_scores([1.0], [0.0]))
    assert next(table.replicates(NUMPY, np.array([[0.0, 2.0]]))) is None
    result = next(table.replicates(NUMPY, np.array([[2.0, 0.0]])))
    assert result.targets == 6
    assert result.nontargets == 4


def test_few_speakers_are_told_and_none_asked_for_are_none():
    embeddings = population(20, 4)
    assert "20 speakers" in um.engine.cross_pairing(embeddings, replicates=50).warnings[-1]
    plain = um.engine.cross_pairing(embeddings, replicates=0)
    assert plain.results[0]["eer"].interval is None
    assert not plain.warnings
    with pytest.raises(um.InputError, match="at least 2 replicates"):
        um.engine.cross_pairing(embeddings, replicates=1)


def test_few_speakers_of_one_class_are_told_however_many_there_are_in_all(sentences):
    vectors = np.random.default_rng(0).normal(size=(45, 4))
    embeddings = um.Embeddings(vectors, [f"s{max(n - 5, 0):02d}" for n in range(45)])
    said = um.engine.cross_pairing(embeddings.select(np.arange(3, 45)), replicates=2).warnings
    sentences.check(said[-1])
    spoken = [f"s{n % 40:02d}" for n in range(45)]
    said = um.engine.cross_pairing(um.Embeddings(vectors, spoken), replicates=2).warnings
    sentences.check(said[-1])


@pytest.mark.parametrize("counted", [False, True])
def test_replicates_that_leave_a_class_empty_are_told(counted, monkeypatch, sentences):
    if counted:
        monkeypatch.setattr("unmask.engine.pairing.AUTO_TRIALS", 1)
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    embeddings = um.Embeddings(vectors, ["a", "a", "b", "b", "c", "d"])
    said = um.engine.cross_pairing(embeddings, replicates=200).warnings
    sentences.check(*said)


def listed():
    """Some nontargets are within one speaker."""
    return trials_with_effects(0, 150, targets=6, nontargets=1, within=True)


def scores_of(target, nontarget, codes, *, systems=1, named=True):
    size = target.size + nontarget.size
    rng = np.random.default_rng(1)
    values = np.concatenate([target, nontarget])
    columns = {f"system{k}": values + 0.5 * k * rng.normal(size=size) for k in range(systems)}
    label = np.where(np.arange(size) < target.size, TARGET, NONTARGET).astype(np.int8)
    if not named:
        return um.Scores(None, None, label, systems=columns)
    both = np.concatenate([codes[0], codes[1], codes[0], codes[2]])
    speakers = Ids.from_strings([f"s{code}" for code in both])
    enrol, test = (speakers.take(np.arange(size) + start) for start in (0, size))
    trial = [Ids.from_strings([f"{side}{row}" for row in range(size)]) for side in "et"]
    return um.Scores(*trial, label, enrol_speaker=enrol, test_speaker=test, systems=columns)


@pytest.mark.parametrize("named", [True, False])
def test_many_trials_get_intervals_in_bins(named, monkeypatch):
    target, nontarget, codes = listed()
    scores = scores_of(target, nontarget, codes, named=named)
    battery = Battery(p_target=(0.1, 0.5), fpr=(0.05, 0.01))
    full = um.evaluate(scores, battery=battery, replicates=1000)
    monkeypatch.setattr(evaluation, "AUTO_TRIALS", 1000)
    binned = um.evaluate(scores, battery=battery)
    assert binned.results[0]["eer"].interval.replicates == 1000
    method = "speaker,first order,corrected" if named else "trial,corrected"
    for one, other in zip(full.results[0].estimates, binned.results[0].estimates, strict=True):
        assert one.value == other.value
        if one.metric in ("tag", "l_w"):
            continue
        assert other.interval.method == method
        width = one.interval.high - one.interval.low
        assert other.interval.low == pytest.approx(one.interval.low, abs=0.15 * width), one.metric
        assert other.interval.high == pytest.approx(one.interval.high, abs=0.15 * width), one.metric


@pytest.mark.parametrize(("speakers", "variance"), [(1, 1.5), (20, 1.5), (40, 1.25), (1000, 1.01)])
def test_pairs_widen_by_half_the_variance_at_most(speakers, variance):
    assert widening_of_pairs(speakers) ** 2 == pytest.approx(variance)


def test_many_trials_of_two_systems_share_their_draws(monkeypatch):
    scores = scores_of(*listed(), systems=2)
    full = um.compare(scores, battery=BATTERY, replicates=400)
    monkeypatch.setattr(evaluation, "AUTO_TRIALS", 1000)
    binned = um.compare(scores, battery=BATTERY)
    wider = widening_of_pairs(150)
    for metric in ("eer", "cllr", "min_cllr"):
        one, other = full[metric].interval, binned[metric].interval
        width = one.high - one.low
        assert other.high - other.low == pytest.approx(wider * width, rel=0.1), metric
    nobody = um.compare(scores_of(*listed(), systems=2, named=False))
    assert nobody["eer"].interval is None
    assert "without speakers" in nobody.warnings[0]


def test_infinite_scores_are_ordinary():
    rng = np.random.default_rng(0)
    target = np.append(rng.normal(2, 1, 200), [np.inf, -np.inf])
    nontarget = np.append(rng.normal(0, 1, 900), [-np.inf] * 5)
    roc = um.Roc.from_scores(target, nontarget, thresholds=BATTERY.thresholds, cllr=True)
    edges = edges_of(roc, BATTERY.thresholds)
    who = np.arange(202) % 40
    other = np.arange(905) % 40, np.arange(905) % 39
    batches = [
        ScoreBatch(target, np.ones(202, bool), who, who),
        ScoreBatch(nontarget, np.zeros(905, bool), *other),
    ]
    table = BinnedTrials.of(batches, edges, roc)
    result = bootstrap([table], BATTERY.values, replicates=50)
    assert np.isinf(result.values["cllr"]).any()
    assert np.isfinite(result.values["eer"]).all()
    speakers = FirstOrder(count_speakers(batches, edges, 40), roc)
    assert BATTERY.values(speakers.whole)["eer"] == pytest.approx(roc.eer(), abs=1e-9)
    again = bootstrap([speakers], BATTERY.values, replicates=50)
    assert np.isfinite(again.values["eer"]).all()


@pytest.mark.parametrize("speakers", [1, 1_000, 174_763, 10_000_000])
def test_bins_of_any_number_of_speakers(speakers):
    rng = np.random.default_rng(2)
    roc = um.Roc.from_scores(rng.normal(1, 1, 4000), rng.normal(0, 1, 40_000))
    edges = edges_of(roc, [0.5], rows=speakers)
    assert edges.size >= 8
    assert np.all(np.diff(edges) > 0)
    assert 0.5 in edges
