"""Numbers by the rules of other toolkits: written out, and against what was published."""

import csv
import gzip
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import unmask as um
from unmask.engine import CONVENTIONS, Battery
from unmask.errors import InputError

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="published lists are not at hand")
SCORES = st.lists(
    st.sampled_from([-1.0, 0.0, 0.1, 0.1 + 1e-9, 0.2, 1 / 3, 2.0]), min_size=1, max_size=9
)


def kaldi(target, nontarget):
    target, nontarget = np.sort(np.float32(target)), np.sort(np.float32(nontarget))
    size, others = len(target), len(nontarget)
    for p in range(size):
        if nontarget[max(0, others - 1 - others * p // size)] < target[p]:
            return p / size
    return (size - 1) / size


def speechbrain(target, nontarget):
    seen = np.unique([*target, *nontarget])
    nearest = 2, 0
    for at in np.unique([*seen, *(seen[1:] + seen[:-1]) / 2]):
        frr = Fraction(int((np.array(target) <= at).sum()), len(target))
        far = Fraction(int((np.array(nontarget) > at).sum()), len(nontarget))
        nearest = min(nearest, (abs(far - frr), (far + frr) / 2), key=lambda one: one[0])
    return float(nearest[1])


def asvspoof(target, nontarget):
    trials = sorted([(score, 0) for score in target] + [(score, 1) for score in nontarget])
    nearest, missed, rejected = (1, Fraction(1, 2)), 0, 0
    for _, kind in trials:
        missed, rejected = missed + (kind == 0), rejected + (kind == 1)
        frr, far = Fraction(missed, len(target)), 1 - Fraction(rejected, len(nontarget))
        nearest = min(nearest, (abs(far - frr), (far + frr) / 2), key=lambda one: one[0])
    return float(nearest[1])


@pytest.mark.filterwarnings("ignore")
@given(SCORES, SCORES)
def test_equal_error_rates_follow_the_rules_of_the_toolkits(target, nontarget):
    for rule in (kaldi, speechbrain, asvspoof):
        found = um.eer(target, nontarget, estimator=rule.__name__)
        assert found == pytest.approx(rule(target, nontarget), abs=1e-12), rule.__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule", [kaldi, speechbrain, asvspoof])
def test_a_draw_of_trials_counts_them_as_often_as_they_were_drawn(rule):
    rng = np.random.default_rng(3)
    target, nontarget = rng.normal(1, 1, 30).round(1), rng.normal(0, 1, 200).round(1)
    times = [rng.integers(1, 4, scores.size) for scores in (target, nontarget)]
    weights = dict(zip(("target_weights", "nontarget_weights"), times, strict=True))
    roc = um.Roc.from_scores(target, nontarget, thresholds=nontarget, **weights)
    repeated = [np.repeat(scores, n) for scores, n in zip((target, nontarget), times, strict=True)]
    assert roc.eer(estimator=rule.__name__) == pytest.approx(rule(*repeated))


def test_d_sys_by_histogram_is_that_of_numpys_histogram():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, 345), rng.normal(0, 1, 2000)
    edges = np.linspace(min(target.min(), nontarget.min()), max(target.max(), nontarget.max()), 35)
    mated, other = (np.histogram(scores, edges, density=True)[0] for scores in (target, nontarget))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(other > 0, mated / other, np.where(mated > 0, np.inf, 1.0))
        local = np.where(np.isinf(ratio), 1.0, np.maximum(0, 2 * ratio / (1 + ratio) - 1))
    expected = np.trapezoid(local * mated, (edges[1:] + edges[:-1]) / 2)
    assert um.d_sys(target, nontarget, estimator="histogram") == pytest.approx(expected, abs=1e-14)
    table = um.evaluate(target, nontarget, battery=Battery(d_sys="histogram"), replicates=0)
    assert table["d_sys"].value == pytest.approx(expected, abs=1e-14)


def test_a_convention_sets_all_numbers_and_says_so():
    rng = np.random.default_rng(1)
    pair = rng.normal(1, 1, 50), rng.normal(0, 1, 400)
    for name in CONVENTIONS:
        result = um.evaluate(*pair, convention=name, replicates=20)
        battery = Battery.named(name)
        assert result["eer"].params["est"] == battery.eer
        assert result["eer"].value == um.eer(*pair, estimator=battery.eer)
        assert result["eer"].interval.low <= result["eer"].value <= result["eer"].interval.high
        assert f"convention:{name}" in result["cllr"].signature
        assert f"By the convention {name}." in um.document(result).notes
        assert um.compare({"a": pair, "b": pair}, convention=name, replicates=5)["eer"].value == 0


def test_where_a_tool_computes_differently_the_table_says_so():
    pair = np.arange(25.0), np.arange(30.0) - 12
    for name, words in {
        "speechbrain": "does not divide its minDCF",
        "voxsrc": "the order of ties moves minDCF",
        "voiceprivacy-2024": "Tied scores are pooled in D_ECE and l_w",
        "asvspoof5": "priors 0.9405, 0.0095, 0.05 and costs 1, 10, 10",
    }.items():
        notes = um.document(um.evaluate(*pair, convention=name, replicates=0)).notes
        assert sum(words in note for note in notes) == 1, name
    plain = um.document(um.evaluate(*pair, convention="kaldi", replicates=0)).notes
    assert not any(words in note for note in plain for words in ("pooled", "divide its", "0.9405"))


def test_nist_costs_as_they_were_printed_and_divided():
    """C_det of 2008 by its definition, minimum over all thresholds; C_primary of 2016 as a mean."""
    rng = np.random.default_rng(4)
    target, nontarget = rng.normal(2, 2, 60), rng.normal(-2, 2, 80)
    at = np.array([-np.inf, *np.sort([*target, *nontarget]), np.inf])
    miss = (target < at[:, None]).mean(1)
    alarm = (nontarget >= at[:, None]).mean(1)
    result = um.evaluate(target, nontarget, convention="nist-sre08", replicates=0)
    least = (10 * 0.01 * miss + 0.99 * alarm).min()
    assert float(result["min_c_det"].value) == pytest.approx(least, abs=1e-15)
    assert float(result["min_dcf"].value) == pytest.approx(least / 0.1, abs=1e-14)
    bayes = np.log(0.99 / 0.1)
    actual = 0.1 * (target < bayes).mean() + 0.99 * (nontarget >= bayes).mean()
    assert float(result["act_c_det"].value) == pytest.approx(actual, abs=1e-15)
    result = um.evaluate(target, nontarget, convention="nist-sre16", replicates=0)
    minima = [(p * miss + (1 - p) * alarm).min() / p for p in (0.01, 0.005)]
    assert float(result["min_c_primary"].value) == pytest.approx(np.mean(minima), abs=1e-14)


def test_what_contradicts_a_convention_is_refused(sentences):
    with pytest.raises(InputError) as error:
        um.evaluate([1.0], [0.0], convention="vox")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Battery.named("kaldi", p_target=(0.5,))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate([1.0], [0.0], convention="kaldi", battery=Battery())
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="takes no weights"):
        um.evaluate([1.0], [0.0], convention="kaldi", equalise="sex")


def significant(value, digits=4):
    return float(f"{value:.{digits}g}")


@needs_data
@pytest.mark.parametrize("baseline", ["b1", "b1_retrained"])
def test_voiceprivacy_2020_to_every_printed_digit(baseline):
    published = json.loads((DATA / f"vpc2020/published_{baseline}.json").read_text())
    with np.load(DATA / f"vpc2020/scores_{baseline}.npz") as lists:
        for name, expected in published.items():
            pair = lists[f"{name}.target"], lists[f"{name}.nontarget"]
            result = um.evaluate(*pair, convention="voiceprivacy-2020", replicates=0)
            first, second = (e.value for e in result.estimates if e.metric == "min_dcf")
            assert significant(100 * result["eer"].value) == expected["eer_kaldi"], name
            assert round(100 * result["eer_rocch"].value, 3) == expected["eer_rocch"], name
            assert round(first, 4) == expected["min_dcf_001"], name
            assert round(second, 4) == expected["min_dcf_0001"], name
            assert round(result["min_cllr"].value, 3) == expected["min_cllr"], name
            assert round(result["cllr"].value, 3) == expected["cllr"], name
            assert round(result["d_sys"].value, 6) == expected["linkability"], name
            kaldis = um.evaluate(*pair, convention="kaldi", replicates=0)
            assert kaldis["eer"].value == result["eer"].value


@needs_data
def test_voxsrc_as_published():
    with gzip.open(DATA / "scores/voxsrc_layout/scores.txt.gz", "rt") as lines:
        score = {tuple(line.split()[1:]): float(line.split()[0]) for line in lines}
    with gzip.open(DATA / "scores/voxsrc_layout/veri_test.txt.gz", "rt") as lines:
        key = [(line.split()[0] == "1", score[tuple(line.split()[1:])]) for line in lines]
    pair = ([s for own, s in key if own == which] for which in (True, False))
    result = um.evaluate(*pair, convention="voxsrc", replicates=0)
    assert round(100 * result["eer"].value, 4) == 1.5642
    assert round(result["eer"].threshold, 4) == 0.2881
    assert round(result["min_dcf"].value, 4) == 0.1043
    assert round(result["min_dcf"].threshold, 4) == 0.3907
    scores = um.read_scores(DATA / "scores/voxsrc2021_val_baseline.tsv.gz")
    result = um.evaluate(scores, convention="voxsrc", replicates=0)
    assert round(100 * result["eer"].value, 3) == 5.177


@needs_data
def test_asvspoof_5_as_the_organisers_compute_it():
    with gzip.open(DATA / "scores/asvspoof5_fusion/dev_scores_label.csv.gz", "rt") as lines:
        rows = list(csv.DictReader(lines))
    label = np.array([int(float(row["sasv_label"])) for row in rows])
    asv, cm = (np.array([float(row[name]) for row in rows]) for name in ("asv_score", "cm_score"))
    both = sum((scores - scores.mean()) / scores.std() for scores in (asv, cm))
    expected = {
        "asv": (asv, [1.855, 20.283, 17.371, 68.257]),
        "cm": (cm, [47.035, 0.067, 15.992, 0.621]),
        "sum": (both, [2.291, 1.819, 1.954, 24.214]),
    }
    kinds = [((1,), (2,)), ((1,), (0,)), ((1,), (0, 2)), ((1, 2), (0,))]
    for name, (scores, rates) in expected.items():
        for (own, others), rate in zip(kinds, rates, strict=True):
            pair = (scores[np.isin(label, which)] for which in (own, others))
            result = um.evaluate(*pair, convention="asvspoof5", replicates=0)
            assert result["eer"].params["est"] == "raw"
            assert round(100 * result["eer"].value, 3) == rate, (name, own, others)
