"""Spoofing-aware numbers: definitions over all thresholds, closed forms, the organisers' values."""

import csv
import gzip
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import fsolve
from scipy.special import ndtr, ndtri
from tests.engine.test_conventions import DATA, SCORES, needs_data

import unmask as um
from unmask.engine import bootstrap, spoofing
from unmask.engine.operating import SpoofCost
from unmask.engine.spoofing import (
    SpoofRoc,
    TandemForm,
    nearest_t_eer,
    nearest_threshold,
    spoof_units,
)
from unmask.errors import InputError

FUSION = DATA / "scores/asvspoof5_fusion/dev_scores_label.csv.gz"
TANDEM = SpoofCost(0.95 * 0.99, 0.95 * 0.01, 0.05, 1.0, 10.0, 10.0)
COST = st.builds(
    lambda a, b, c, costs: SpoofCost(a / (a + b + c), b / (a + b + c), c / (a + b + c), *costs),
    *[st.floats(0.01, 1)] * 3,
    st.tuples(*[st.floats(0.1, 20)] * 3),
)


def statistic(target, nontarget, spoof, cm=None):
    rocs = (um.Roc.from_scores(target, other) for other in (nontarget, spoof))
    return SpoofRoc.of(*rocs, {} if cm is None else {"cm": um.Roc.from_scores(*cm)})


def thresholds(*classes):
    return [-np.inf, *sorted({score for one in classes for score in one}), np.inf]


def accepted(scores, at):
    return np.mean([score >= at for score in scores])


def rates_at(threshold, target, nontarget, spoof):
    return (
        1 - accepted(target, threshold),
        accepted(nontarget, threshold),
        accepted(spoof, threshold),
    )


def la_dev():
    """The trials of ASVspoof 2019 LA dev: ECAPA, AASIST and the sum of their z-scores."""
    with gzip.open(DATA / "scores/asvspoof2019_la_dev_2asv_1cm.tsv.gz") as file:
        table = pl.read_csv(file.read(), separator="\t")
    asv, cm = pl.col("ecapa_cosine"), pl.col("aasist_cm")
    z = [(one - one.mean()) / one.std(ddof=0) for one in (asv, cm)]
    return table.select(
        enrol_spk="claimed_spk", test="test", label="key", asv=asv, cm=cm, sasv=z[0] + z[1]
    )


def three_classes(seed=0, speakers=12, *, names=True):
    rng = np.random.default_rng(seed)
    who = np.arange(speakers)
    enrol, claimed = np.repeat(who, 8), np.repeat(who, 6)
    test = (enrol + rng.integers(1, speakers, enrol.size)) % speakers
    sides = [(np.repeat(who, 5),) * 2, (enrol, test), (claimed, claimed)]
    label = np.repeat(np.array([1, 0, -1], np.int8), [one.size for one, _ in sides])
    effect = rng.standard_normal((2, speakers)) * 0.4
    one, other = (np.concatenate([side[k] for side in sides]) for k in (0, 1))
    asv = rng.normal(np.select([label == 1, label == 0], [3.0, 0.0], 1.5)) + effect[0][one]
    cm = rng.normal(np.where(label < 0, 0.0, 2.5)) + effect[1][other]
    ids = [um.Ids.from_strings([f"s{k:02d}" for k in side]) for side in (one, other)]
    attack = np.where(label < 0, np.where(np.arange(label.size) % 2, "A01", "A02"), "-")
    return um.Scores(
        None,
        None,
        label,
        systems={"asv": np.round(asv, 1), "my-cm": np.round(cm, 1)},
        columns={"attack": um.Ids.from_strings(attack.tolist())},
        **({"enrol_speaker": ids[0], "test_speaker": ids[1]} if names else {}),
    )


@given(SCORES, SCORES, SCORES, COST)
def test_the_a_dcf_is_the_least_cost_over_all_thresholds(target, nontarget, spoof, cost):
    def price(at):
        return (
            cost.c_miss * cost.p_target * (1 - accepted(target, at))
            + cost.c_nontarget * cost.p_nontarget * accepted(nontarget, at)
            + cost.c_spoof * cost.p_spoof * accepted(spoof, at)
        )

    least = min(price(at) for at in thresholds(target, nontarget, spoof))
    fixed = min(price(-np.inf), price(np.inf))
    point = statistic(target, nontarget, spoof).a_dcf_point(cost)
    assert point.value == pytest.approx(least / fixed, abs=1e-12)
    assert price(point.threshold) == pytest.approx(least, abs=1e-12)


@given(SCORES, SCORES, SCORES, st.sampled_from(["rocch", "raw", "asvspoof"]))
def test_three_equal_error_rates(target, nontarget, spoof, estimator):
    made = statistic(target, nontarget, spoof)
    others = {"sv_eer": nontarget, "spf_eer": spoof, "sasv_eer": nontarget + spoof}
    for metric, other in others.items():
        found = made.spoof_eer_point(metric, estimator).value
        assert found == pytest.approx(um.Roc.from_scores(target, other).eer(estimator=estimator))


@given(SCORES, SCORES, SCORES, SCORES, SCORES, COST)
def test_the_t_dcf_is_the_least_cost_over_thresholds_of_the_countermeasure(
    target, nontarget, spoof, genuine, fake, cost
):
    made = statistic(target, nontarget, spoof, (genuine, fake))
    own = rates_at(made.eer_point(estimator="raw").threshold, target, nontarget, spoof)
    nearest = nearest_threshold(np.array(target), np.array(nontarget))
    marks = {"asv at its EER": np.array([nearest])}
    sv, spf = (
        um.Roc.from_scores(target, other, marks=marks, thresholds=[nearest])
        for other in (nontarget, spoof)
    )
    made = SpoofRoc.of(sv, spf, made.cm, np.flatnonzero(sv.target))
    for form, rates in (
        (TandemForm.USUAL, own),
        (TandemForm.ASVSPOOF_2019, rates_at(nearest, target, nontarget, spoof)),
        (TandemForm.ASVSPOOF_5, (0.018801, 0.018810, 0.460708)),
    ):
        x, a, b = rates
        c0 = cost.p_target * cost.c_miss * x + cost.p_nontarget * cost.c_nontarget * a
        c1, c2 = cost.p_target * cost.c_miss - c0, cost.p_spoof * cost.c_spoof * b
        c0 = 0.0 if form is TandemForm.ASVSPOOF_2019 else c0
        costs = [
            c0 + c1 * (1 - accepted(genuine, s)) + c2 * accepted(fake, s)
            for s in thresholds(genuine, fake)
        ]
        found = made.min_t_dcf("cm", cost, form)
        if c0 + min(c1, c2) > 0:
            assert found == pytest.approx(min(costs) / (c0 + min(c1, c2)), abs=1e-9)
        else:
            assert np.isnan(found)


@given(SCORES, SCORES)
def test_the_organisers_eer_threshold_is_that_of_their_loop(target, nontarget):
    trials = sorted([(s, 0) for s in target] + [(s, 1) for s in nontarget])
    gaps = []
    for rejected in range(len(trials) + 1):
        frr = sum(kind == 0 for _, kind in trials[:rejected]) / len(target)
        far = sum(kind == 1 for _, kind in trials[rejected:]) / len(nontarget)
        gaps.append(abs(frr - far))
    last = min(range(len(gaps)), key=lambda i: (round(gaps[i], 12), i))
    found = nearest_threshold(np.array(target), np.array(nontarget))
    assert found == trials[last - 1][0] if last else found < trials[0][0]


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_t_eer_is_that_of_a_loop_over_all_pairs_of_thresholds(seed):
    rng = np.random.default_rng(seed)
    asv = [rng.normal(mean, 1, 60) for mean in (2.5, 0.0, 1.2)]
    cm = [rng.normal(mean, 1, size) for mean, size in ((2, 120), (0, 60))]
    curves = []
    for classes in (asv, cm):
        at = np.append(-np.inf, np.sort(np.concatenate(classes)))
        curves.append([(one > at[:, None]).mean(axis=1) for one in classes])
    (hit, a, b), (good, q) = curves
    best, value = np.inf, np.nan
    for x, non, spf in zip(1 - hit, a, b, strict=True):
        misses, alarms = 1 - good * (1 - x), (good * non + q * spf) / 2
        j = int(np.abs(misses - alarms).argmin())
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = abs(non / spf - q[j] / good[j])
        if x < (non + spf) / 2 and apart < best:
            best, value = apart, spf * q[j]
    assert nearest_t_eer(asv, *cm) == pytest.approx(value, abs=1e-12)


@needs_data
def test_asvspoof_5_as_its_evaluation_package_prints_it():
    """The challenge's layout of data/scores, judged by ``evaluation.py`` in modes t2_tandem, t1."""
    table = la_dev()
    scores = um.read_scores(table.rename({"enrol_spk": "enrol"}))
    made = um.evaluate(scores, convention="asvspoof5", replicates=0)
    assert made["sasv"]["a_dcf"].value == pytest.approx(0.045595, abs=5e-7)
    assert made["asv"]["min_t_dcf"].value == pytest.approx(0.102424, abs=1.1e-6)
    assert made["asv"]["t_eer_nearest"].value == pytest.approx(0.0198970, abs=5e-8)
    assert made["asv"]["t_eer_nearest"].no_interval
    assert made["asv"]["t_eer"].value == pytest.approx(0.019732, abs=1e-6)
    # Track 1: one row a file, 24,844 of the 29,548 trials.
    assert made["cm"]["cm_eer"].n == {"bona_fide": 2548, "spoof": 22296}
    for metric, value in (("min_dcf", 0.013478), ("act_dcf", 0.015182), ("cllr", 0.024038)):
        assert made["cm"][metric].value == pytest.approx(value, abs=5e-7), metric
    assert made["cm"]["min_dcf"].params["p_target"] == 0.95
    assert any(notice.code == "recordings-once" for notice in made.notices)
    # The tools of 2019 and 2021 take the ASV at its nearest point: with C0 0.10865.
    sasv = um.evaluate(scores, convention="asvspoof2019", replicates=0)["asv"]
    x, a, b = sasv.roc.asv_rates(TandemForm.ASVSPOOF_2019)
    errors, (miss, non, spf) = sasv.roc.cm["cm"].polygon, TANDEM.weights
    c0 = miss * x + non * a
    costs = c0 + (miss - c0) * errors.p_miss + spf * b * errors.p_fa
    assert costs.min() / (c0 + min(miss - c0, spf * b)) == pytest.approx(0.10865, abs=5e-6)
    least = ((miss - c0) * errors.p_miss + spf * b * errors.p_fa).min()
    assert sasv["min_t_dcf"].value == pytest.approx(least / min(miss - c0, spf * b), abs=1e-12)


def test_a_recording_of_a_countermeasure_counts_once():
    scores = three_classes()
    numbers = [f"u{k // 3}" for k in range(len(scores))]
    named = replace(
        scores,
        enrol=um.Ids.from_strings([f"e{k}" for k in range(len(scores))]),
        test=um.Ids.from_strings(numbers),
    )
    kind = [label == -1 for label in scores.label]
    recordings = {key: i for i, key in enumerate(dict.fromkeys(zip(numbers, kind, strict=True)))}
    number = np.array([recordings[key] for key in zip(numbers, kind, strict=True)])
    same = replace(named, systems={**scores.systems, "my-cm": scores.scores("my-cm")[number]})
    first = np.array([number.tolist().index(i) for i in range(number.max() + 1)])
    chosen = np.isin(np.arange(len(scores)), first)
    made = um.evaluate(same, replicates=20)
    alone = um.evaluate(same.select(chosen), replicates=20)["my-cm"]
    for metric in ("cm_eer", "min_dcf", "cllr"):
        assert made["my-cm"][metric].value == alone[metric].value
    low, high = (made["my-cm"]["cm_eer"].interval.low, made["my-cm"]["cm_eer"].interval.high)
    assert low < made["my-cm"]["cm_eer"].value < high
    assert made["my-cm"]["cm_eer"].n["spoof"] == (scores.label[chosen] == -1).sum()
    # In tandem every trial counts, and a column that differs between trials judges trials.
    assert made["asv"].roc.cm["my-cm"].targets == 156
    differing = um.evaluate(named, replicates=0)
    assert differing["my-cm"].roc.targets == 156
    assert not any(notice.code == "recordings-once" for notice in differing.notices)


def test_the_costs_of_a_convention_are_its_own(sentences):
    scores = three_classes()
    made = um.evaluate(scores, convention="asvspoof5", replicates=0)["asv"]
    cost = SpoofCost(0.9405, 0.0095, 0.05, 1, 10, 10)
    assert made["a_dcf"].value == made.roc.a_dcf_point(cost).value
    assert made["min_t_dcf"].params["asv"] == "organisers"
    usual = um.evaluate(scores, replicates=0)["asv"]
    assert usual["a_dcf"].value == usual.roc.a_dcf_point(SpoofCost()).value
    for name in ("a_dcf", "t_dcf"):
        with pytest.raises(InputError, match=f"no {name} beside asvspoof5"):
            um.evaluate(scores, convention="asvspoof5", replicates=0, **{name: tuple(cost)})
    with pytest.raises(InputError) as error:
        um.evaluate(scores, convention="asvspoof2019", replicates=0, t_dcf=tuple(cost))
    sentences.check(str(error.value))
    for convention in ("asvspoof2019", "asvspoof5"):
        drawn = um.evaluate(scores, convention=convention, replicates=20)["asv"]["min_t_dcf"]
        assert drawn.interval.low < drawn.value < drawn.interval.high


@pytest.mark.parametrize("seed", range(6))
def test_the_t_eer_is_where_all_shares_of_spoofs_err_alike(seed):
    """Among all pairs of thresholds that at which three errors differ least; both are steps of
    1/150 apart at most.
    """
    rng = np.random.default_rng(seed)
    target, nontarget, spoof = (rng.normal(mean, 1, 150) for mean in (2.5, 0.0, 1.2))
    genuine, fake = rng.normal(2, 1, 150), rng.normal(0, 1, 150)
    asv = [[accepted(one, at) for at in thresholds(target, nontarget, spoof)]
           for one in (target, nontarget, spoof)]  # fmt: skip
    hit, a, b = (np.array(one)[:, None] for one in asv)
    good, q = (
        np.array([accepted(one, at) for at in thresholds(genuine, fake)]) for one in (genuine, fake)
    )
    errors = np.stack([1 - good * hit, good * a, q * b])
    away = errors.max(axis=0) - errors.min(axis=0)
    best = errors[:, *np.unravel_index(away.argmin(), away.shape)]
    made = statistic(target, nontarget, spoof, (genuine, fake)).t_eer("cm")
    assert made == pytest.approx(best.mean(), abs=0.01)


def test_the_t_eer_of_normal_scores():
    at = ndtri((np.arange(20_000) + 0.5) / 20_000)
    made = statistic(at + 2.5, at, at + 1.2, (at + 2, at)).t_eer("cm")

    def equations(pair):
        s, t = pair
        p, q = ndtr(s - 2), 1 - ndtr(s)
        x, a, b = ndtr(t - 2.5), 1 - ndtr(t), 1 - ndtr(t - 1.2)
        return p + (1 - p) * x - (1 - p) * a, (1 - p) * a - q * b

    s, t = fsolve(equations, (0.5, 1.2))
    assert made == pytest.approx((1 - ndtr(s - 2)) * (1 - ndtr(t)), abs=2e-5)


def test_a_perfect_countermeasure_leaves_the_errors_of_verification():
    target, nontarget, spoof = [1.0, 2, 3, 4], [0.0, 1.5, -1, 2.5, 0.2], [2.0, 3.5, 0.3]
    made = statistic(target, nontarget, spoof, ([1.0, 2.0], [-1.0, 0.0]))
    assert made.t_eer("cm") == pytest.approx(made.eer(estimator="raw"))
    x, a, _ = (0.018801, 0.018810, 0.460708)
    c0 = TANDEM.weights[0] * x + TANDEM.weights[1] * a
    c2 = TANDEM.weights[2] * 0.460708
    least = made.min_t_dcf("cm", TANDEM, TandemForm.ASVSPOOF_5)
    assert least == pytest.approx(c0 / (c0 + min(TANDEM.weights[0] - c0, c2)))
    harmless = statistic(target, nontarget, [-5.0, -6.0], ([1.0, 2.0], [-1.0, 0.0]))
    assert np.isnan(harmless.t_eer("cm"))
    fooled = statistic(target, nontarget, spoof, ([1.0, 1.0], [1.0, 1.0]))
    assert 0 <= fooled.t_eer("cm") <= 0.5 or np.isnan(fooled.t_eer("cm"))


@given(st.integers(0, 50))
def test_only_the_order_of_scores_matters(seed):
    scores = three_classes(seed)
    cubed = replace(scores, systems={n: (x - 1) ** 3 for n, x in scores.systems.items()})
    one, other = (um.evaluate(table, replicates=0)["asv"] for table in (scores, cubed))
    for metric in spoofing.SPOOF_METRICS[:6]:
        assert one[metric].value == pytest.approx(other[metric].value, nan_ok=True), metric


@needs_data
def test_asvspoof_5_from_its_file():
    with gzip.open(FUSION, "rt") as lines:
        rows = list(csv.DictReader(lines))
    label = np.array([{1: 1, 2: 0, 0: -1}[int(float(row["sasv_label"]))] for row in rows], np.int8)
    asv, cm = (np.array([float(row[name]) for row in rows]) for name in ("asv_score", "cm_score"))
    both = sum((scores - scores.mean()) / scores.std() for scores in (asv, cm))
    fused = um.Scores(None, None, label, systems={"asv": asv, "cm column": cm, "sum": both})
    roles = {"asv": "asv", "cm column": "asv", "sum": "asv"}
    made = um.evaluate(fused, role=roles, battery=um.Battery(eer="raw"), replicates=0)
    expected = {
        "asv": (0.37955, 0.57807, 1.855, 20.283, 17.371),
        "cm column": (0.52993, 5.85293, 47.035, 0.067, 15.992),
        "sum": (0.03820, 2.02073, 2.291, 1.819, 1.954),
    }
    for name, (cost, at, *rates) in expected.items():
        assert round(made[name]["a_dcf"].value, 5) == cost
        found, column = made[name]["a_dcf"].threshold, fused.scores(name)
        assert not ((column > at + 1e-5) & (column < found)).any()  # the same trials are accepted
        for metric, rate in zip(("sv_eer", "spf_eer", "sasv_eer"), rates, strict=True):
            assert round(100 * made[name][metric].value, 3) == rate, (name, metric)
    read = um.evaluate(FUSION, convention="asvspoof5", replicates=20)
    assert round(100 * read["cm_score"]["cm_eer"].value, 3) == 0.620  # the package's nearest point
    assert round(100 * read["cm_score"]["eer_raw"].value, 3) == 0.621  # its a_dcf.py
    assert read["asv_score"]["a_dcf"].n == {"target": 1484, "nontarget": 5768, "spoof": 22296}
    assert read["asv_score"]["a_dcf"].interval.method == "trial,corrected"
    assert any("no speaker ids" in line for line in read.warnings)
    assert not any("set aside" in line for line in read.to_dict()["warnings"])


def test_a_demanded_rate_has_a_threshold_beside_spoofs():
    """Its interval asks who carries the false alarms, as that of two classes does."""
    made = um.evaluate(three_classes(), battery=um.Battery(far=(0.2,)), replicates=30)
    plain = um.evaluate(three_classes(), battery=um.Battery(far=(0.2,)), replicates=30, spoof=False)
    assert made["asv"]["threshold"].value == plain["asv"]["threshold"].value
    assert made["asv"]["threshold"].interval is not None


def test_two_classes_stay_as_they_are_and_share_draws():
    for names in (True, False):
        scores = three_classes(names=names)
        made = um.evaluate(scores, replicates=50)
        plain = um.evaluate(scores, replicates=50, spoof=False)
        for one in plain["asv"].estimates:
            assert one in made["asv"].estimates
        assert made["asv"]["sv_eer"].interval == plain["asv"]["eer"].interval
        over = "speakers" if names else "trials"
        assert {one.interval.over for one in made["asv"].estimates if one.interval} == {over}
    assert "a_dcf" not in {one.metric for one in plain["asv"].estimates}


def test_a_countermeasure_hears_one_speaker():
    scores = three_classes()
    made = um.evaluate(scores, replicates=30)["my-cm"]
    bona_fide = np.isin(scores.label, (0, 1))
    heard = um.Scores(
        None,
        None,
        bona_fide.astype(np.int8),
        systems={"my-cm": scores.scores("my-cm")},
        enrol_speaker=scores.test_speaker,
        test_speaker=scores.test_speaker,
    )
    alone = um.evaluate(heard, replicates=30, role="asv")
    assert made["cm_eer"].value == alone["eer"].value
    assert made["cm_eer"].interval == alone["eer"].interval
    assert [one.value for one in made.estimates[1:]] == [one.value for one in alone.estimates]


def test_attacks_are_judged_beside_all_bona_fide_trials():
    scores = three_classes()
    made = um.evaluate(scores, by="attack", replicates=20)
    groups = {result.group for result in made}
    assert groups == {None, "A01", "A02"}
    codes = scores.columns["attack"].to_series().to_numpy()
    only = um.evaluate(scores.select(np.isin(codes, ("-", "A01"))), replicates=20)
    for metric in ("a_dcf", "spf_eer", "t_eer", "min_t_dcf"):
        assert made["asv", "A01"][metric].value == only["asv"][metric].value
        assert made["asv", "A01"][metric].interval == only["asv"][metric].interval
    assert made["my-cm", "A01"]["cm_eer"].value == only["my-cm"]["cm_eer"].value


@pytest.mark.parametrize("names", [True, False])
def test_trials_in_bins_have_nearly_the_same_intervals(monkeypatch, names):
    scores = three_classes(3, 40, names=names)
    exact = um.evaluate(scores, replicates=300)["asv"]
    for module in (bootstrap, spoofing):
        monkeypatch.setattr(module, "AUTO_TRIALS", 10)
    binned = um.evaluate(scores)["asv"]
    for metric in spoofing.SPOOF_METRICS[:6]:
        one, other = exact[metric], binned[metric]
        assert one.value == other.value
        spans = [made.interval.high - made.interval.low for made in (one, other)]
        assert spans[1] == pytest.approx(spans[0], rel=0.4), metric


def test_units_of_three_classes():
    label = np.array([-1, 1, 0, -1, 1], np.int8)
    plain = um.Scores(None, None, label, systems={"asv": np.arange(5.0)})
    sv, spf, cm = spoof_units(plain)
    assert sv.strata == spf.strata == cm.strata == (2, 1, 2)
    assert [sv.target.tolist(), sv.nontarget_first.tolist()] == [[0, 1], [2]]
    assert [spf.nontarget_first.tolist(), cm.target.tolist()] == [[3, 4], [0, 2, 1]]
    sides = [um.Ids.from_strings(list(names)) for names in ("abbcb", "aacdb")]
    named = replace(plain, enrol_speaker=sides[0], test_speaker=sides[1])
    sv, spf, cm = spoof_units(named)
    assert sv.strata == (4,)
    assert [sv.nontarget_first.tolist(), sv.nontarget_second.tolist()] == [[1], [2]]
    assert spf.nontarget_first.tolist() == [0, 2]  # who is claimed
    assert cm.nontarget_first.tolist() == [0, 3]  # who is heard


def test_speakers_that_are_claimed_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    kinds = ["target", "nontarget", "spoof"]
    rows = [(f"E_{k % 9}", f"F_{k}", kinds[k % 3], rng.normal(2 - k % 3)) for k in range(270)]
    lines = ["spk\tfilename\tasv-score\tcm-score"]
    lines += [f"{spk}\t{name}\t{score}\t{score + rng.normal()}" for spk, name, _, score in rows]
    (tmp_path / "s.tsv").write_text("\n".join(lines))
    key = ["spk\tfilename\tcm-label\tasv-label", *("\t".join(r[:2]) + f"\t-\t{r[2]}" for r in rows)]
    (tmp_path / "k.tsv").write_text("\n".join(key))
    made = um.evaluate(tmp_path / "s.tsv", key=tmp_path / "k.tsv", replicates=20)
    assert made["asv-score"]["a_dcf"].interval.method == "speaker,corrected"
    assert made["asv-score"]["a_dcf"].n["speakers"] == 9
    assert "claimed-speakers" in {one.code for one in made.notices}


def test_what_cannot_be(sentences):
    scores = three_classes()
    two = scores.select(scores.label >= 0)
    for options in ({"spoof": True}, {"role": "cm"}, {"role": {"asv": "cm"}}):
        with pytest.raises(InputError) as error:
            um.evaluate(two, replicates=0, **options)
        sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate(scores, systems=["asv"], t_dcf=TANDEM, replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate(scores, role="pad", replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate(scores, role={"b": "cm"}, replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate(scores, a_dcf=(0.9, 0.5, 0.5, 1, 1, 1), replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.evaluate(scores, t_dcf=(0.9, 0.5), replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="equalise"):
        um.evaluate(scores, spoof=True, equalise="attack", replicates=0)
    assert "a_dcf" not in um.evaluate(scores, equalise="attack", replicates=0).to_dict()["notes"]


def test_one_speaker_or_none_drawn_has_no_interval(sentences):
    scores = three_classes(speakers=2)
    alone = scores.select(scores.enrol_speaker.codes == 0)
    made = um.evaluate(alone, replicates=10)["asv"]["a_dcf"]
    sentences.check(made.no_interval)
    assert um.evaluate(scores, replicates=0)["asv"]["a_dcf"].no_interval


def test_compare_refuses_a_countermeasure(sentences):
    rng = np.random.default_rng(0)
    label = ["target"] * 20 + ["nontarget"] * 20 + ["spoof"] * 20
    scores = {"asv": rng.normal(size=60), "cm_score": rng.normal(size=60)}
    frame = pl.DataFrame(
        {"enrol": ["e"] * 60, "test": [f"t{n}" for n in range(60)], "label": label, **scores}
    )
    with pytest.raises(InputError) as error:
        um.compare(frame, "asv", "cm_score", replicates=0)
    sentences.check(str(error.value))
