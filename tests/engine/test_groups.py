"""Groups of speakers at one threshold: rates, gaps, and what equal groups read."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from studies.coverage.groups import LAWS, THRESHOLD, trials

import unmask as um
from unmask.base import Sampling
from unmask.engine import Roc
from unmask.engine.groups import ACROSS, GroupedTrials, fdr, gap_of, garbe, gini, ratio_of
from unmask.trials import Ids


def drawn(law=2, speakers=30, seed=0):
    return trials(LAWS[law], speakers, np.random.default_rng(seed))


def shown(scores, **options):
    return um.group_gaps(scores, "group", replicates=50, **options)


def numbers(result):
    return {(row["group"], row["metric"]): (row["value"], row["low"]) for row in result.rows()}


def test_rates_are_those_of_the_definition():
    scores, at = drawn(), 1.2
    result = shown(scores, threshold=at)
    group = dict(zip(scores.enrol_speaker, scores.columns["enrol_group"], strict=True))
    group |= dict(zip(scores.test_speaker, scores.columns["test_group"], strict=True))
    missed, passed = {}, {}
    score = scores.scores()
    for one, two, label, s in zip(
        scores.enrol_speaker, scores.test_speaker, scores.label, score, strict=True
    ):
        if label == 1:
            missed.setdefault(group[one], []).append(s < at)
        else:
            same = group[one] if group[one] == group[two] else ACROSS
            passed.setdefault(same, []).append(s >= at)
    for name, errors in missed.items():
        assert result.of("fnmr")[name].value == pytest.approx(np.mean(errors))
        assert result.of("fnmr")[name].n["errors"] == sum(errors)
    for name, errors in passed.items():
        row = next(one for one in result.groups if one.name == name)
        found = next(one for one in row.estimates if one.metric == "fmr")
        assert found.value == pytest.approx(np.mean(errors))
        assert found.n["trials"] == len(errors)
    roc = Roc.from_scores(scores.targets(), scores.nontargets(), thresholds=[at])
    point = roc.at_threshold(at)
    assert result.of("fnmr")["all"].value == pytest.approx(point.p_miss)
    assert result.of("fmr")["all"].value == pytest.approx(point.p_fa)
    for metric in ("fnmr", "fmr"):
        rates = result.of(metric)
        for row in result.groups[1:4]:
            delta = next(one for one in row.estimates if one.metric == f"{metric}_difference")
            assert delta.value == pytest.approx(rates[row.name].value - rates["all"].value)


def test_gaps_are_those_of_the_papers():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n, alpha = int(rng.integers(2, 6)), float(rng.random())
        fmr, fnmr = rng.random(n) * (rng.random(n) > 0.2), rng.random(n)

        def largest(x):
            return max(abs(a - b) for a, b in itertools.product(x, x))

        def gini_of(x):
            mean = sum(x) / len(x)
            if mean == 0:
                return 0.0
            apart = sum(abs(a - b) for a in x for b in x)
            return len(x) / (len(x) - 1) * apart / (2 * len(x) ** 2 * mean)

        want = 1 - (alpha * largest(fmr) + (1 - alpha) * largest(fnmr))
        assert fdr(fmr, fnmr, alpha) == pytest.approx(want)
        want = alpha * gini_of(fmr) + (1 - alpha) * gini_of(fnmr)
        assert garbe(fmr, fnmr, alpha) == pytest.approx(want)
        assert ratio_of(fnmr) == pytest.approx(max(fnmr) / min(fnmr))
        assert gap_of(fnmr) == pytest.approx(largest(fnmr))
    zero = np.zeros(3)
    assert (gini(zero), fdr(zero, zero), garbe(zero, zero)) == (0, 1, 0)
    assert gini(np.array([0.2, 0.0, 0.0])) == pytest.approx(1)
    assert np.isinf(ratio_of(np.array([0.2, 0.0])))


def test_the_result_has_the_gaps_of_its_rates():
    result = shown(drawn(), threshold=THRESHOLD, alpha=0.3)
    fmr, fnmr = (
        np.array([e.value for n, e in result.of(m).items() if n != "all"]) for m in ("fmr", "fnmr")
    )
    assert result["fdr"].value == pytest.approx(fdr(fmr, fnmr, 0.3))
    assert result["garbe"].value == pytest.approx(garbe(fmr, fnmr, 0.3))
    assert result["garbe"].params["alpha"] == 0.3
    assert result["fnmr_ratio"].value == pytest.approx(fnmr.max() / fnmr.min())
    assert "alpha:0.3" in result["fdr"].signature
    for one in result.estimates:
        assert one.interval.low <= one.value <= one.interval.high


def test_the_level_is_the_bootstrap_within_groups():
    """Written out: groups drawn on their own, moved to the mean of the groups, not below 0."""
    scores, at = drawn(law=0, speakers=24), 2.6
    grouped, how = GroupedTrials.of(scores, "group"), Sampling(40)
    spread = grouped.spreads(scores.targets(), scores.nontargets(), at, how)["fnmr"][0]
    missed = np.bincount(grouped.target, scores.targets() < at)
    tried = np.bincount(grouped.target)
    sizes, rates = np.bincount(grouped.member), spread.value[:2]
    ratios = []
    for index in range(40):
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(index,)))
        moved = []
        for group, size in enumerate(sizes):
            own = np.flatnonzero(grouped.member == group)
            times = np.bincount(rng.integers(0, size, size), minlength=size)
            add = (times - 1) @ (missed[own] - rates[group] * tried[own]) / tried[own].sum()
            drawn_rate = np.clip(rates[group] + add, 0, 1)
            assert drawn_rate == pytest.approx(spread.within[group, index])
            moved.append(max(drawn_rate - rates[group] + rates.mean(), 0))
        ratios.append(max(moved) / min(moved) if min(moved) else np.inf)
    luck = um.group_gaps(scores, "group", threshold=at, replicates=40)["fnmr_ratio"].luck
    assert luck.value == pytest.approx(np.median(ratios))
    reached = sum(one >= max(rates) / min(rates) for one in ratios)
    assert luck.p == pytest.approx((1 + reached) / 41)


def test_equal_groups_reach_their_level():
    found, levels, p = [], [], []
    for seed in range(40):
        ratio = shown(drawn(law=0, speakers=80, seed=seed), threshold=1.8)["fnmr_ratio"]
        found.append(ratio.value)
        levels.append(ratio.luck.value)
        p.append(ratio.luck.p)
    assert np.median(found) == pytest.approx(np.median(levels), rel=0.1)
    assert 0.3 < np.mean(p) < 0.7
    assert np.mean(np.array(p) <= 0.05) <= 0.15


def test_names_and_order_change_nothing():
    scores = drawn()
    first = numbers(shown(scores, threshold=THRESHOLD))
    order = np.random.default_rng(1).permutation(len(scores))
    other = numbers(shown(scores.select(order), threshold=THRESHOLD))
    assert all(other[key] == pytest.approx(first[key]) for key in first)
    called = {"0": "z", "1": "y", "2": "x"}
    columns = {
        name: Ids.from_strings([called[value] for value in ids])
        for name, ids in scores.columns.items()
    }
    other = numbers(shown(replace(scores, columns=columns), threshold=THRESHOLD))
    for group, metric in first:
        value, low = first[group, metric]
        assert other[called.get(group, group), metric][0] == pytest.approx(value)
        if group != "gap":
            assert other[called.get(group, group), metric][1] == pytest.approx(low)


def test_no_errors_no_ratio():
    scores = drawn(law=0)
    low = float(scores.targets().min())
    result = shown(scores, threshold=low)
    assert np.isnan(result["fnmr_ratio"].value)
    own = scores.scores().copy()
    hurt = np.flatnonzero(scores.is_target & (scores.columns["enrol_group"].codes == 0))[:4]
    own[hurt] = low - 1
    ratio = shown(replace(scores, systems={"system": own}), threshold=low)["fnmr_ratio"]
    bound = 1 - 0.025 ** (1 / 15)
    assert ratio.value == f"> {max(1, 4 / 75 / bound):.3g}"
    assert ratio.luck is None
    assert ratio.interval is None


@pytest.mark.parametrize(("options", "name"), [({}, "EER"), ({"far": 0.1}, "FAR ≤ 10 %")])
def test_the_threshold_is_common(options, name):
    scores, dev = drawn(), drawn(seed=5)
    whole = um.evaluate(scores, battery=um.Battery(far=(0.1,)), replicates=0)
    at = whole["eer"].threshold if name == "EER" else whole["threshold"].value
    result = shown(scores, **options)
    assert result.point == name
    assert {one.threshold for row in result.groups for one in row.estimates} == {at}
    renamed = {
        side: Ids.from_strings([f"d{s}" for s in getattr(dev, side)])
        for side in ("enrol_speaker", "test_speaker")
    }
    dev = replace(dev, **renamed)
    other = um.evaluate(dev, battery=um.Battery(far=(0.1,)), replicates=0)
    at = other["eer"].threshold if name == "EER" else other["threshold"].value
    judged = shown(scores, dev=dev, **options)
    assert {one.threshold for row in judged.groups for one in row.estimates} == {at}


def test_evaluate_and_compare_have_the_same_gaps():
    scores = drawn()
    table = replace(scores, systems={"a": scores.scores(), "b": scores.scores() / 2})
    alone = um.group_gaps(table, "group", system="a", replicates=50)
    for made in (
        um.evaluate(table, by="group", replicates=50).gaps,
        um.compare(table, by="group", replicates=50).gaps,
    ):
        assert [one.system for one in made] == ["a", "b"]
        assert numbers(made[0]) == numbers(alone)
    text = um.render(um.document(um.compare(table, by="group", replicates=50)))
    assert "across groups" in text
    assert "GARBE (alpha 0.5)" in text


def test_small_groups_are_shown_and_marked():
    text = um.render(um.document(shown(drawn(speakers=20), threshold=THRESHOLD)))
    assert "6, few" in text
    assert "7, few" in text


def test_a_condition_of_trials_makes_no_gaps_and_says_so():
    scores = drawn()
    rooms = Ids.from_strings(np.arange(len(scores)) % 2)
    result = um.evaluate(replace(scores, columns={"room": rooms}), by="room", replicates=0)
    assert result.gaps == ()
    assert [one.code for one in result.notices if "gaps" in one.subject] == ["conditions"]


def test_bad_groups_are_named():
    scores = drawn(law=0)

    def refused(match, **changed):
        columns = {
            side: Ids.from_strings([changed.get("give", lambda s: "f")(s) for s in speakers])
            for side, speakers in (
                ("enrol_group", scores.enrol_speaker),
                ("test_group", scores.test_speaker),
            )
        }
        with pytest.raises(um.InputError, match=match):
            um.group_gaps(replace(scores, columns=columns), "group")

    refused("expected two groups or more, found one: f")
    refused(
        r"expected a group of every speaker, found none of 1 \(first: s007\)",
        give=lambda s: "" if s == "s007" else "fm"[int(s[1:]) % 2],
    )
    given = iter(itertools.count())
    refused("one group of each speaker", give=lambda s: "fm"[next(given) % 2])
    with pytest.raises(um.InputError, match="no column accent to group by"):
        um.group_gaps(scores, "accent")
    with pytest.raises(um.InputError, match="alpha"):
        um.group_gaps(scores, "group", alpha=2.0)
    with pytest.raises(um.InputError, match="speakers are known"):
        um.group_gaps(replace(scores, enrol_speaker=None, test_speaker=None), "group")
