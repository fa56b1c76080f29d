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


def test_bad_groups_are_named(sentences):
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
    with pytest.raises(um.InputError) as error:
        um.group_gaps(scores, "accent")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="alpha"):
        um.group_gaps(scores, "group", alpha=2.0)
    with pytest.raises(um.InputError, match="speakers are known"):
        um.group_gaps(replace(scores, enrol_speaker=None, test_speaker=None), "group")


def a_small_group(seed):
    """Everybody is of one law; the eight people of group c rarely have a false alarm."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(["a", "c"], [52, 8])
    one, two = np.tril_indices(60, -1)
    speaker = np.repeat(np.arange(60), 5)
    names = np.array([f"s{k:02}" for k in range(60)])
    sides = [np.concatenate([speaker, side]) for side in (one, two)]
    ids = [Ids.from_strings(names[side]) for side in sides]
    column = [Ids.from_strings(groups[side]) for side in sides]
    scores = np.concatenate([rng.normal(3, 1, speaker.size), rng.normal(0, 1, one.size)])
    return um.Scores(
        *ids,
        np.repeat(np.array([1, 0], np.int8), [speaker.size, one.size]),
        enrol_speaker=ids[0],
        test_speaker=ids[1],
        columns={"enrol_group": column[0], "test_group": column[1]},
        systems={"system": scores},
    )


def test_a_group_without_errors_is_not_said_to_differ():
    """Of these equal groups 75 in 100 were said to have fewer false alarms than all."""
    excluded = without = 0
    for seed in range(40):
        result = shown(a_small_group(seed), far=0.01)
        row = next(one for one in result.groups if one.name == "c")
        rate = next(one for one in row.estimates if one.metric == "fmr")
        delta = next(one for one in row.estimates if one.metric == "fmr_difference")
        low, high = delta.interval.low, delta.interval.high
        excluded += not low <= 0 <= high
        if rate.value == 0:
            without += 1
            of_all = result.of("fmr")["all"]
            assert low == pytest.approx(-of_all.interval.high, abs=1e-12)
            reach = rate.interval.high, of_all.value - of_all.interval.low
            assert high == pytest.approx(delta.value + np.hypot(*reach))
    assert without >= 20
    assert excluded <= 4


def test_a_difference_of_groups_joins_their_intervals():
    """Newcombe's method 10 written out, with the square of the correlation of the draws."""
    result = shown(drawn(law=1), threshold=THRESHOLD)
    grouped = GroupedTrials.of(drawn(law=1), "group")
    scores = drawn(law=1)
    how = Sampling(50)
    spreads = grouped.spreads(scores.targets(), scores.nontargets(), THRESHOLD, how)
    for metric in ("fnmr", "fmr"):
        rates, spread = result.of(metric), spreads[metric][0]
        for i, row in enumerate(result.groups[1:3]):
            found = next(e for e in row.estimates if e.metric == f"{metric}_difference").interval
            group, every = rates[row.name], rates["all"]
            r = np.corrcoef(spread.drawn[[i, len(grouped.names)]])[0, 1]
            down, up = group.value - group.interval.low, group.interval.high - group.value
            below, above = every.value - every.interval.low, every.interval.high - every.value
            apart, square = group.value - every.value, r * abs(r)
            low = apart - np.sqrt(down**2 - 2 * square * down * above + above**2)
            high = apart + np.sqrt(up**2 - 2 * square * up * below + below**2)
            assert (found.low, found.high) == pytest.approx((low, high))


def voices_of_groups(speakers=16, each=4):
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(speakers), each)
    vectors = rng.normal(size=(speakers, 8))[owner] + 0.7 * rng.normal(size=(owner.size, 8))
    sex = np.where(owner < speakers // 2, "f", "m")
    names = [f"s{k:02}" for k in owner]
    utterances = [f"u{k:03}" for k in range(owner.size)]
    return um.Embeddings(
        vectors.astype(np.float32), names, utterances, columns={"sex": list(map(str, sex))}
    )


@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_pairs_that_are_counted_have_the_groups_of_those_that_are_held(
    monkeypatch, pairs, sentences
):
    voices, battery = voices_of_groups(), um.Battery(far=(0.05,))
    how = {"by": "sex", "battery": battery, "replicates": 30, "pairs": pairs}
    held = um.evaluate(voices, **how)
    monkeypatch.setattr("unmask.engine.pairing.AUTO_TRIALS", 10)
    counted = um.evaluate(voices, **how)
    assert [r.group for r in counted] == [None, "f", "m"]
    for name in (None, "f", "m"):
        one, other = (
            next(r for r in result if r.group == name)["eer"].value for result in (held, counted)
        )
        assert one == pytest.approx(other)
    one, other = held.gaps[0], counted.gaps[0]
    for first, second in zip(one.estimates, other.estimates, strict=True):
        assert (first.metric, dict(first.n)) == (second.metric, dict(second.n))
        assert first.value == pytest.approx(second.value)
        if first.metric == "fnmr":
            ends = (first.interval.low, first.interval.high)
            assert ends == pytest.approx((second.interval.low, second.interval.high))
    with pytest.raises(um.InputError) as error:
        um.evaluate(voices, by="age", replicates=0)
    sentences.check(str(error.value))


def test_a_key_is_scored_with_shards_and_their_columns_make_groups(tmp_path, sentences):
    voices = voices_of_groups()
    key = um.make_trials(voices).trials
    um.write(key, tmp_path / "trials", format="kaldi-trials")
    whole = um.evaluate(voices, key=key, by="sex", replicates=20)
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(len(voices)), 3)):
        shards.append(tmp_path / f"part{number}.npz")
        um.write(voices.select(rows), shards[-1])
    assert {"f", "m"} <= set(whole.gaps[0].of("fnmr"))
    for files in (shards, [str(one) for one in shards]):
        parts = um.evaluate(files, key=tmp_path / "trials", replicates=20)
        assert parts["eer"].value == whole[whole.results[0].system]["eer"].value
        assert [source.name for source in parts.sources][-3:] == [str(one) for one in shards]
    torn = replace(voices, columns={"sex": Ids.from_strings(["f", "m"] * (len(voices) // 2))})
    with pytest.raises(um.InputError) as error:
        um.evaluate(torn, key=key, by="sex", replicates=0)
    sentences.check(str(error.value))
