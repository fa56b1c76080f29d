"""Whole tables: systems, groups, intervals, comparisons."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.notices import lines_of

import unmask as um
from unmask.base import Replicates
from unmask.engine import Battery
from unmask.engine.battery import MetricSpec
from unmask.engine.comparison import compare
from unmask.engine.evaluating import evaluate
from unmask.engine.evaluation import Analysis, group_masks
from unmask.trials import NONTARGET, TARGET, Ids, Scores, Source


def make_scores(speakers=8, sexes=True, with_speakers=True, seed=0):
    """All pairs of models and test utterances of a few speakers, by two systems."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(speakers)]
    rows, columns = (part.ravel() for part in np.indices((speakers, 3 * speakers)))
    tested = columns // 3
    label = (rows == tested).astype(np.int8)
    good = rng.normal(3.0 * label, 1)
    columns_of = {}
    if sexes:
        sex = np.array(["f", "m"] * speakers)[:speakers]
        columns_of = {
            "enrol_sex": Ids.from_strings(sex[rows]),
            "test_sex": Ids.from_strings(sex[tested]),
        }
    speaker = {}
    if with_speakers:
        both = Ids.from_strings(np.array(names)[np.concatenate([rows, tested])])
        speaker = {
            "enrol_speaker": both.take(np.arange(rows.size)),
            "test_speaker": both.take(np.arange(rows.size, 2 * rows.size)),
        }
    return Scores(
        Ids.from_strings(np.array(names)[rows]),
        Ids.from_strings([f"u{i}" for i in columns]),
        label,
        **speaker,
        columns=columns_of,
        systems={"good": good, "poor": good + rng.normal(0, 2, good.size)},
    )


def test_evaluation_agrees_with_the_single_functions():
    scores = make_scores()
    outcome = evaluate(scores, replicates=20, battery=Battery(p_target=(0.01, 0.05)))
    assert [result.system for result in outcome] == ["good", "poor"]
    for result in outcome:
        pair = scores.targets(result.system), scores.nontargets(result.system)
        assert result["eer"].value == um.eer(*pair)
        assert result["eer_raw"].value == um.eer(*pair, estimator="raw")
        assert result["cllr"].value == pytest.approx(um.cllr(*pair))
        assert result["tag"].value == um.zebra(*pair).tag
        costs = {e.params["p_target"]: e for e in result.estimates if e.metric == "min_dcf"}
        assert costs[0.05].value == um.min_dcf(*pair, p_target=0.05)
        assert result["eer"].n == {"target": 24, "nontarget": 168, "speakers": 8}
        assert result["eer"].interval.low <= result["eer"].value <= result["eer"].interval.high
        threshold = result["min_dcf"].threshold
        exact = um.Roc.from_scores(*pair).min_dcf_point().threshold
        for classes in pair:
            np.testing.assert_array_equal(classes >= threshold, classes >= exact)


def test_signature_tells_how_a_number_was_made():
    scores = make_scores()
    (good, _) = evaluate(scores, replicates=20, seed=3)
    assert good["eer"].signature == (
        f"EER|est:rocch|ci:speaker,corrected,20,95%|seed:3|trials:{scores.digest}|v:{um.__version__}"
    )


def test_order_of_trials_changes_no_value():
    scores = make_scores()
    shuffled = scores.select(np.random.default_rng(1).permutation(len(scores)))
    one, two = (evaluate(s, replicates=10) for s in (scores, shuffled))
    for a, b in zip(one, two, strict=True):
        for x, y in zip(a.estimates, b.estimates, strict=True):
            assert x.value == (y.value if x.metric == "tag" else pytest.approx(y.value, rel=1e-12))
            assert x.signature == y.signature


def test_groups_by_a_pair_of_columns(sentences):
    scores = make_scores()
    result = evaluate(scores, by="sex", replicates=0)
    assert [r.group for r in result if r.system == "good"] == [None, "f", "m"]
    mixed = next(notice for notice in result.notices if notice.code == "group-left-out")
    assert mixed.subject == "group f-m"
    sentences.check(mixed.line)
    assert mixed.line in result.warnings
    same = scores.select(dict(group_masks(scores, "sex"))["f"])
    f = next(r for r in result if r.group == "f" and r.system == "good")
    assert f["eer"].value == um.eer(same.targets("good"), same.nontargets("good"))


def test_notices_name_the_group_and_the_system_they_are_about():
    scores = make_scores()
    turned = replace(scores, systems={"good": -scores.systems["good"]})
    result = evaluate(turned, by="sex", replicates=0)
    negated = [notice for notice in result.notices if notice.code == "inverted"]
    assert [notice.subject for notice in negated] == ["good", "group f: good", "group m: good"]
    assert all(notice.sentence.startswith("scores look inverted") for notice in negated)
    assert {notice.code for notice in result.notices} == {"inverted", "group-left-out"}
    assert result.warnings == tuple(notice.line for notice in result.notices)


def test_groups_by_one_column_and_by_none(sentences):
    scores = make_scores()
    masks = dict(group_masks(scores, "enrol_sex"))
    assert set(masks) == {"f", "m"}
    assert sum(mask.sum() for mask in masks.values()) == len(scores)
    with pytest.raises(um.InputError) as error:
        evaluate(scores, by="accent", replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        evaluate([1.0, 2.0], [0.0, 1.5], by="sex", replicates=0)
    sentences.check(str(error.value))


def test_what_is_no_data_is_refused_in_one_line(sentences):
    with pytest.raises(um.InputError) as error:
        evaluate(None)
    sentences.check(str(error.value))


def test_without_speakers_the_trial_bootstrap_is_named():
    result = evaluate(make_scores(with_speakers=False), replicates=10)
    assert result.results[0]["eer"].interval.method == "trial,corrected"
    assert [notice.code for notice in result.notices] == ["no-speakers"]


def test_one_speaker_gives_no_interval_and_no_crash():
    scores = make_scores()
    one = Ids.from_strings(["only"] * len(scores))
    alone = Scores(
        scores.enrol, scores.test, scores.label, enrol_speaker=one, test_speaker=one,
        systems=scores.systems,
    )  # fmt: skip
    result = evaluate(alone, replicates=10)
    assert math.isnan(result.results[0]["eer"].interval.low)
    (notice,) = (one for one in result.notices if one.code == "no-interval")
    assert notice.sentence.startswith("one speaker only")


@pytest.mark.parametrize("with_speakers", [True, False])
def test_one_trial_of_each_class_gives_no_interval_and_no_crash(with_speakers, sentences):
    scores = make_scores(with_speakers=with_speakers)
    two = scores.select([0, 3])
    assert two.label.tolist() == [1, 0]
    for result in evaluate(two, replicates=10):
        for estimate in result.estimates:
            assert estimate.no_interval
            assert estimate.interval is None or math.isnan(estimate.interval.low)
    sentences.check(*evaluate(two, replicates=10).warnings)
    row = compare(two, replicates=10)["eer"]
    assert math.isnan(row.interval.low)


def test_every_number_has_an_interval_or_a_reason():
    for replicates in (0, 20):
        for result in evaluate(make_scores(), replicates=replicates):
            for estimate in result.estimates:
                given = estimate.interval is not None and not math.isnan(estimate.interval.low)
                assert given != bool(estimate.no_interval), estimate
                assert not given or estimate.interval.low < estimate.interval.high
    asked = {"replicates": 20}
    for result in (evaluate(make_scores(), **asked), compare(make_scores(), **asked)):
        assert [notice.code for notice in result.notices] == ["few-speakers"]
        assert result.warnings[0].startswith("8 speakers")


def test_separated_classes_get_the_exact_bound():
    scores = make_scores()
    apart = Scores(
        scores.enrol, scores.test, scores.label, enrol_speaker=scores.enrol_speaker,
        test_speaker=scores.test_speaker, systems={"apart": 10.0 * scores.label - 5},
    )  # fmt: skip
    (result,) = evaluate(apart, replicates=20)
    bound = 1 - 0.025 ** (1 / 8)
    assert result["eer"].interval.high == pytest.approx(0.5 * bound)
    assert result["tpr_at_fpr"].interval.low == pytest.approx(1 - bound)
    assert result["d_ece"].interval.low == pytest.approx((1 - bound) / (2 * math.log(2)))


def test_a_target_trial_of_two_speakers_is_refused(sentences):
    scores = make_scores()
    swapped = Scores(
        scores.enrol, scores.test, 1 - scores.label, enrol_speaker=scores.enrol_speaker,
        test_speaker=scores.test_speaker, systems=scores.systems,
    )  # fmt: skip
    with pytest.raises(um.InputError) as error:
        evaluate(swapped, replicates=10)
    sentences.check(str(error.value))


def test_one_class_only_is_refused_with_the_counts():
    scores = make_scores()
    with pytest.raises(um.InputError, match="24 target and 0 nontarget"):
        evaluate(scores.select(scores.is_target))


def test_comparison_of_two_systems(sentences):
    scores = make_scores(speakers=12)
    result = compare(scores, replicates=50)
    row = result["eer"]
    assert row.value == pytest.approx(row.second.value - row.first.value)
    assert row.value > 0
    assert row.second_better < 0.2
    sentences.check(result.verdict)
    turned = compare(scores, "poor", "good", replicates=50)
    assert turned["eer"].value == -row.value
    assert turned["eer"].second_better == pytest.approx(1 - row.second_better)
    assert turned["d_ece"].second_better > 0.8


def test_a_safeguard_that_recognises_better_protects_less(sentences):
    scores = make_scores(speakers=12)
    plain, turned = (compare(scores, replicates=50, privacy=privacy) for privacy in (False, True))
    row = turned["eer"]
    for number in (row.value, row.interval.low, row.interval.high):
        assert f"{100 * number:.2f}" in turned.verdict
    sentences.check(turned.verdict)
    shares = {one["metric"]: one["second_protects_more"] for one in turned.rows()}
    for one in plain.rows():
        gone = one["metric"] in ("cllr", "act_dcf")
        share = None if gone else pytest.approx(1 - one["second_recognises_better"])
        assert shares[one["metric"]] == share
    sentences.check(compare(scores, replicates=0, privacy=True).verdict)
    unclear = compare(make_scores(speakers=3), replicates=50, privacy=True).verdict
    sentences.check(unclear)
    assert "includes 0" in unclear
    told = [*um.document(turned).notes, um.document(turned).title, turned.verdict]
    for text in (um.render(um.document(turned), kind) for kind in ("text", "latex", "md", "csv")):
        assert "poor protects more" in text
        told.append(text)
    assert not [text for text in told if "is better" in text or "winner" in text]
    assert "poor recognises better [%]" in um.render(um.document(plain))


SAFEGUARDS = (
    "op", "PP", "oo.txt", "b3/pp/scores.txt", "exp/asv_anon_b3/cosine_out/scores", "o-a",
    "ours a-a", "libri_test_f_anon", "anon2", "anonymised/x.txt", "anonymized", "mcadams",
    "scores_mcadams.txt",
)  # fmt: skip
OTHERS = (
    "plda", "app/scores.txt", "stop", "loop.txt", "oops", "happy", "canon", "anonymous", "demo-a",
    "ops", "a-b", "B1", "cosine_out", "anonymity", "nonanon", "op2", "pppd",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "protected"), [(n, True) for n in SAFEGUARDS] + [(n, False) for n in OTHERS]
)
def test_names_say_that_systems_are_safeguards(name, protected, sentences):
    scores = make_scores(speakers=3)
    good, poor = scores.systems.values()
    named = replace(scores, systems={name: good, "other": poor})
    filed = replace(scores, sources=(Source(name, "0" * 64, "made"),))
    for table in (named, filed):
        result = compare(table, replicates=0)
        assert result.privacy == protected
        told = [notice for notice in result.notices if notice.code == "read-as-safeguards"]
        assert len(told) == protected
        for notice in told:
            assert notice.sentence.startswith("read as safeguards: ")
            assert f"{name}; " in notice.sentence
            sentences.check(notice.sentence)
        for privacy in (False, True):
            asked = compare(table, replicates=0, privacy=privacy)
            assert asked.privacy == privacy
            assert "read as" not in " ".join(asked.warnings)


def test_bands_of_misses_fall_with_more_false_alarms():
    for band in um.engine.det_bands(make_scores(), replicates=60).values():
        assert (np.diff(band.low) <= 0).all()
        assert (np.diff(band.high) <= 0).all()
        assert (band.low <= band.high).all()


def test_a_share_that_the_interval_contradicts_is_explained(sentences):
    result = compare(make_scores(), replicates=50)
    eer, *others = result.differences
    wide = replace(eer.interval, low=-0.4, high=0.4)
    for share, said in ((1.0, True), (0.9, False)):
        row = replace(eer, interval=wide, second_better=share if eer.value < 0 else 1 - share)
        verdict = replace(result, differences=(row, *others)).verdict
        assert "includes 0" in verdict
        assert ("which resamples" in verdict) == said
        sentences.check(verdict)


def test_comparison_needs_two_names(sentences):
    scores = make_scores()
    with pytest.raises(um.InputError) as error:
        compare(scores, "good", "good")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="found 'best'"):
        compare(scores, "good", "best")


def test_results_show_themselves():
    rng = np.random.default_rng(3)
    label = np.repeat(np.array([TARGET, NONTARGET], np.int8), [40, 200])
    systems = {name: rng.normal(label == TARGET) for name in ("plda", "cosine")}
    scores = Scores(None, None, label, systems=systems)
    result = evaluate(scores, replicates=0)
    assert result["plda"]["eer"] is result.results[0]["eer"]
    assert result["cosine", None] is result.results[1]
    with pytest.raises(KeyError):
        result["wccn"]
    shown = f"{100 * result['plda']['eer'].value:.4g}"
    lines = repr(result).splitlines()
    assert lines[:2] == ["Evaluation", lines[1]]
    assert lines[1].split() == [
        "system",
        "metric",
        "params",
        "value",
        "unit",
        "chance",
        "threshold",
    ]
    assert lines[2].split()[:5] == ["plda", "eer", "est=rocch", shown, "%"]
    assert f"<td>{shown}</td>" in result._repr_html_()
    frame = result.to_polars()
    assert frame.height == len(result.rows()) == 2 * len(result["plda"].estimates)
    assert frame["value"][0] == result["plda"]["eer"].value
    assert frame.filter(frame["metric"] == "tag")["text"].to_list() == [
        one["tag"].value for one in result
    ]


def test_comparisons_print_what_they_rest_on_and_the_verdict():
    result = compare(make_scores(), replicates=50)
    for text in (repr(result), result._repr_html_()):
        assert result.verdict in text
        assert "8 speakers" in text
        assert "50 bootstrap replicates" in text


def test_comparisons_show_themselves():
    rng = np.random.default_rng(4)
    label = np.repeat(np.array([TARGET, NONTARGET], np.int8), [40, 200])
    systems = {name: rng.normal(2.0 * (label == TARGET)) for name in ("a", "b")}
    result = compare(Scores(None, None, label, systems=systems), replicates=30)
    row = result.rows()[0]
    assert (row["first"], row["second"]) == (result["eer"].first.value, result["eer"].second.value)
    assert row["second_recognises_better"] == result["eer"].second_better
    assert "of=b − a" in repr(result)
    assert result.to_polars().height == len(result.differences)


def test_a_new_metric_is_in_tables_files_and_comparisons(monkeypatch):
    """What CONTRIBUTING says: one entry of the battery, and all else follows."""
    measured = Battery.measured
    share = Battery().measured()["min_dcf@0.01"].range
    new = MetricSpec("fnmr", lambda roc: 1 - roc.tpr_at_fpr(0.1), "%", 0.9, share, {"fmr": 0.1})
    monkeypatch.setattr(Battery, "measured", lambda self: measured(self) | {"fnmr": new})
    scores = make_scores()
    result = evaluate(scores, replicates=20)
    estimate = result["poor"]["fnmr"]
    pair = scores.targets("poor"), scores.nontargets("poor")
    assert estimate.value == 1 - um.tpr_at_fpr(*pair, fpr=0.1)
    assert estimate.interval.low <= estimate.value <= estimate.interval.high
    document = um.document(result)
    assert "FNMR [%]" in um.render(document)
    rows = json.loads(um.render(document, "json"))["results"]
    assert [row["value"] for row in rows if row["metric"] == "fnmr"][1] == estimate.value
    compared = um.compare(scores, "good", "poor", replicates=20)
    assert "fnmr" in {row["metric"] for row in compared.rows()}


@pytest.mark.parametrize("option", [{"equalise": "sex"}, {"systems": ["plda"]}])
def test_options_of_tables_are_refused_for_embeddings(option, sentences):
    embeddings = um.Embeddings(np.eye(4), ["a", "a", "b", "b"])
    with pytest.raises(um.InputError) as error:
        evaluate(embeddings, **option)
    sentences.check(str(error.value))


def test_margins_are_paired_differences_from_the_lowest_eer_at_95_percent():
    scores = make_scores()
    worst = scores.systems["poor"] + np.random.default_rng(9).normal(0, 9, len(scores))
    scores = replace(scores, systems={**scores.systems, "worst": worst})
    outcome = evaluate(scores, by="sex", replicates=30, level=0.5)
    assert list(outcome.margins) == ["poor", "worst"]
    for name, margin in outcome.margins.items():
        same = compare(scores, "good", name, replicates=30)["eer"]
        assert margin.metric == "eer_difference"
        assert (margin.value, margin.interval) == (same.value, same.interval)
        assert margin.params["of"] == f"{name} − good"
    assert not evaluate(make_scores(), systems=["good"], replicates=5).margins
    bare = evaluate(make_scores(), replicates=0).margins["poor"]
    assert bare.interval is None
    assert bare.no_interval


def test_draws_of_bins_of_trials_are_not_paired(monkeypatch, sentences):
    monkeypatch.setattr("unmask.engine.evaluation.AUTO_TRIALS", 10)
    margin = evaluate(make_scores(with_speakers=False)).margins["poor"]
    assert margin.interval is None
    sentences.check(margin.no_interval)


def skewed_speakers(seed=0, hard=1):
    """Sixteen speakers, of whom ``hard`` are mostly rejected and all others never."""
    rng = np.random.default_rng(seed)
    speaker = np.repeat(np.arange(16), 30)
    target = rng.normal(5, 0.5, speaker.size) - 4.2 * (speaker < hard)
    one, two = np.triu_indices(16, 1)
    one, two = np.repeat(one, 20), np.repeat(two, 20)
    names = np.array([f"s{k:02}" for k in range(16)])
    ids = [um.Ids.from_strings(names[np.concatenate([speaker, side])]) for side in (one, two)]
    label = np.repeat(np.array([1, 0], np.int8), [speaker.size, one.size])
    scores = np.concatenate([target, rng.normal(0, 0.5, one.size)])
    about = {"enrol_speaker": ids[0], "test_speaker": ids[1], "systems": {"system": scores}}
    return um.Scores(*ids, label, **about)


def test_one_speaker_carries_no_interval_to_chance_and_is_told(sentences):
    """An EER of 7 % in a paper had [0.26, 50], and its raw one an end of 57 %."""
    scores = skewed_speakers()
    analysis = Analysis.of(None, 300, 0.95, 0)
    with pytest.warns(um.UnmaskWarning, match="one of 16 speakers"):
        result = um.evaluate(scores, replicates=300)
    drawn = analysis.of_scores(scores).replicates
    for key in ("eer", "eer_raw"):
        estimate, resampled = result[key], np.nanmax(drawn.values[key])
        assert estimate.value < estimate.interval.high < 1.5 * resampled
        assert estimate.interval.high < 0.5
    (told,) = lines_of(result, "one-speaker")
    others = scores.select(np.array([name != "s00" for name in scores.enrol_speaker]))
    others = others.select(np.array([name != "s00" for name in others.test_speaker]))
    without = um.evaluate(others, replicates=0)["eer"].value
    assert f" {100 * without:.2f} %" in told
    sentences.check(told)
    assert "s00" not in told
    even = um.evaluate(skewed_speakers(hard=16), replicates=20)
    assert not [one for one in even.notices if one.code == "one-speaker"]


def test_a_raw_eer_ends_at_one_half_unless_it_lies_beyond():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(0.02, 1, 60), rng.normal(0, 1, 60)
    for sign in (1, -1):
        made = um.evaluate(sign * target, sign * nontarget, replicates=50)["eer_raw"]
        assert (made.interval.high <= 0.5) == (made.value <= 0.5)
        assert made.interval.low <= made.value <= made.interval.high


def test_false_alarms_that_few_speakers_carry_are_told(sentences):
    rng = np.random.default_rng(0)
    one, two = np.triu_indices(40, 1)
    near = (one < 3).astype(float) + (two < 3)
    names = np.array([f"s{k:02}" for k in range(40)])
    ids = [um.Ids.from_strings(names[np.concatenate([np.arange(40), side])]) for side in (one, two)]
    label = np.repeat(np.array([1, 0], np.int8), [40, one.size])
    about = {"enrol_speaker": ids[0], "test_speaker": ids[1]}
    noise = rng.normal(size=label.size) + 6 * label
    codes = {}
    for name, wolves in (("wolves", 2.0), ("even", 0.0)):
        moved = noise + wolves * np.concatenate([np.zeros(40), near])
        table = um.Scores(*ids, label, **about, systems={name: moved})
        result = um.evaluate(table, battery=Battery(far=(0.05,)), replicates=30)
        codes[name] = [one.line for one in result.notices if one.code == "few-carriers"]
    assert not codes["even"]
    sentences.check(codes["wolves"][0])


def test_a_difference_holds_what_its_resamples_hold():
    """Where a third of resamples said the opposite, an interval excluded 0 and a build failed."""
    drawn = np.random.default_rng(0).normal(-0.5, 1.6, 1000)
    values = {"tpr": np.stack([np.zeros(1000), drawn])}
    sample = {"tpr": np.array([0.0, -2.4])}
    replicates = Replicates(values, sample, 40, "speaker", 0, 1000)
    made = replicates.difference("tpr", level=0.95, first=0, second=1)
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    assert made.low <= low
    assert made.high == high > 0


def test_a_difference_below_one_false_alarm_has_no_interval_and_fails_no_build(sentences):
    scores = make_scores()
    result = um.compare(scores, "good", "poor", replicates=20)
    rows = {row.params["fpr"]: row for row in result.differences if row.metric == "tpr_at_fpr"}
    assert rows[0.01].interval is not None
    assert rows[0.001].interval is None
    sentences.check(rows[0.001].no_interval)
    with pytest.raises(um.InputError) as error:
        result.worsens("tpr_at_fpr@0.001")
    sentences.check(str(error.value))
