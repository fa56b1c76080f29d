"""A printed threshold keeps its demand: one string everywhere, which decides all trials alike."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.engine.streams import make_batches_tiny
from tests.engine.test_spoofing import three_classes
from tests.engine.test_thresholds import SCORES, trials

import unmask as um
from unmask.engine.operating import SpoofCost, decimal_from, scores_around, shortest_decimal
from unmask.estimate import Estimate
from unmask.report.table import cell, latex, rate_digits

DEMANDS = (0.2, 0.1, 0.05, 0.01, 0.001)
OF_TRIALS = ("eer", "eer_raw", "min_dcf", "tpr_at_fpr", "threshold", "safe_threshold")


def shortest_by_hand(below, above):
    """The fewest decimals, from none on, of which a multiple lies in (below, above]."""
    for places in range(400):
        step = Fraction(1, 10**places)
        highest = math.floor(Fraction(above) / step) * step
        for multiple in (highest, highest - step, highest + step):
            if below < float(multiple) <= above:
                return places
    raise AssertionError("every number has a decimal")


@given(st.floats(-9.9, 9.9), st.floats(0, 3))
def test_it_is_the_shortest_decimal_between_two_scores(below, width):
    above = max(below + width, math.nextafter(below, math.inf))
    for exact in (math.nextafter(below, math.inf), above):
        shown = shortest_decimal(exact, below, above)
        assert below < shown <= above
        places = shortest_by_hand(below, above)
        assert float(f"{shown:.{places}f}") == shown


@pytest.mark.parametrize(
    ("exact", "below", "above", "shown"),
    [
        (math.nextafter(0.464, 1), 0.464, 0.4661, "0.465"),
        (0.4171, 0.417, 0.4171, "0.4171"),
        (math.nextafter(-1.25, 0), -1.25, -1.21, "-1.24"),
        (1e-12, -0.3, 0.2, "0.0"),
        (math.nextafter(12345.0, 1e9), 12345.0, 12399.0, "12350.0"),
        (math.nextafter(1e300, math.inf), 1e300, math.inf, "2e+300"),
        (math.nextafter(0.1, 1), 0.1, math.nextafter(0.1, 1), "0.10000000000000002"),
        (math.inf, 0.0, math.inf, "inf"),
    ],
)
def test_some_by_hand(exact, below, above, shown):
    assert str(shortest_decimal(exact, below, above)) == shown


@pytest.mark.parametrize(
    ("exact", "next_target", "shown"),
    [
        (0.41237, math.inf, "0.4124"),
        (0.4, 0.41, "0.4"),
        (0.41237, 0.41239, "0.41238"),
        (0.41237, math.nextafter(0.41237, 1), "0.41237"),
        (-3.14159, -3.0, "-3.141"),
        (0.9999999, 2.0, "1.0"),
        (23.0004, 90.0, "23.01"),
        (23.004, 23.01, "23.005"),
        (123456.7, 123458.0, "123457.0"),
        (123456.7, math.inf, "123500.0"),
        (0.0, 1.0, "0.0"),
        (1e-12, 1.0, "1e-12"),
        (math.inf, math.inf, "inf"),
        (-math.inf, 0.0, "-inf"),
    ],
)
def test_a_threshold_of_a_model_is_rounded_towards_fewer_acceptances(exact, next_target, shown):
    assert str(decimal_from(exact, next_target)) == shown


@given(SCORES, SCORES)
def test_the_scores_next_to_a_threshold(target, nontarget):
    every = np.array([*target, *nontarget])
    thresholds = np.unique(every[np.isfinite(every)])
    blocks = np.array_split(np.array(nontarget), 2)
    below, above = scores_around(thresholds, np.unique(target), blocks)
    for threshold, low, high in zip(thresholds, below, above, strict=True):
        assert low == max([s for s in every if s < threshold], default=-math.inf)
        assert high == min([s for s in every if s >= threshold], default=math.inf)


def systems():
    """Thirteen systems, of scores that are fine, rounded, whole, single-precision or tied."""
    rng = np.random.default_rng(7)
    for number in range(13):
        target = rng.normal(2, 1, 300) * 10.0 ** (number % 5 - 2)
        nontarget = rng.normal(0, 1, 5000) * 10.0 ** (number % 5 - 2)
        if number % 3 == 1:
            target, nontarget = (np.round(one, 1 + number % 2) for one in (target, nontarget))
        elif number % 3 == 2:
            target, nontarget = (
                one.astype(np.float32).astype(float) for one in (target, nontarget)
            )
        yield target, nontarget


@pytest.mark.parametrize("number", range(13))
def test_what_is_printed_has_the_printed_errors(number):
    """13 systems × 5 demands: with four digits 34 of 65 broke their demand."""
    target, nontarget = list(systems())[number]
    found = um.operating_point(target, nontarget, far=DEMANDS, replicates=0)
    shown = um.render(um.document(found))
    for demand in DEMANDS:
        at, frr = (
            next(e for e in found.estimates if (e.metric, e.params.get("far")) == (name, demand))
            for name in ("threshold", "frr")
        )
        row = next(
            line
            for line in shown.splitlines()
            if line.startswith(f"Threshold (FAR ≤ {100 * demand:g} %)")
        )
        printed = row.split()[-1]
        assert printed == str(at.value) == str(at.threshold) == str(frr.threshold)
        back = um.operating_point(target, nontarget, threshold=float(printed), replicates=0)
        assert back["far"].value <= demand
        assert back["frr"].value == frr.value
        # Trial by trial the decisions of the smallest threshold that keeps the demand.
        allowed = math.floor(demand * (1 + 1e-12) * nontarget.size)
        rejected = np.sort(nontarget)[-allowed - 1]
        for scores in (target, nontarget):
            np.testing.assert_array_equal(scores >= float(printed), scores > rejected)
        assert len(printed.strip("-0.")) <= 9


@given(SCORES, SCORES)
@pytest.mark.filterwarnings("ignore")
def test_thresholds_of_eer_and_costs_have_their_errors_on_ties(target, nontarget):
    result = um.detection(target, nontarget)
    target, nontarget = np.array(target), np.array(nontarget)
    for name, point in result.points.items():
        metric = name.partition("@")[0]
        if metric not in ("eer", "eer_raw", "min_dcf", "tpr") or np.isnan(point.threshold):
            continue
        key = "tpr_at_fpr" if metric == "tpr" else metric
        row = next(
            e
            for e in result.estimates
            if e.metric == key and (metric != "tpr" or f"tpr@{e.params['fpr']:g}" == name)
        )
        for scores in (target, nontarget):
            np.testing.assert_array_equal(scores >= row.threshold, scores >= point.threshold)
        assert len(str(row.threshold)) <= len(str(point.threshold))


def test_thresholds_with_spoofs_are_short_and_decide_all_trials_alike():
    rng = np.random.default_rng(5)
    scores = three_classes(3)
    # Finer than a tenth, so that a threshold has something to be rounded.
    fine = {name: made + rng.normal(0, 1e-3, len(made)) for name, made in scores.systems.items()}
    scores = replace(scores, systems=fine)
    result = um.evaluate(scores, replicates=0)
    asv, cm = result["asv"], result["my-cm"]
    exact = {
        name: asv.roc.spoof_eer_point(name, "rocch").threshold
        for name in ("sv_eer", "spf_eer", "sasv_eer")
    }
    exact["a_dcf"] = asv.roc.a_dcf_point(SpoofCost()).threshold
    points = [(asv[name], "asv", at) for name, at in exact.items()]
    points.append((cm["cm_eer"], "my-cm", cm.roc.eer_point(estimator="rocch").threshold))
    for estimate, system, threshold in points:
        trials_of, shown = scores.scores(system), estimate.threshold
        np.testing.assert_array_equal(trials_of >= shown, trials_of >= threshold)
        rejected, accepted = trials_of[trials_of < shown], trials_of[trials_of >= shown]
        places = shortest_by_hand(rejected.max(), accepted.min())
        assert float(f"{shown:.{places}f}") == shown
        assert len(str(shown)) <= 7 < len(str(threshold)), estimate.metric


def test_one_string_in_table_csv_json_markdown_and_frame():
    scores = trials(30, shift=-3.0)
    found = um.operating_point(scores, far=0.05, replicates=50)
    document = um.document(found)
    safe = str(found["safe_threshold"].value)
    estimate = found["threshold"]
    ends = f"{estimate.value} [{estimate.interval.low}, {estimate.interval.high}]"
    assert estimate.value < 0
    rows = list(csv.DictReader(io.StringIO(um.render(document, "csv"))))
    listed = {row["metric"]: row for row in rows}
    assert listed["threshold"]["value"] == str(estimate.value)
    assert listed["safe_threshold"]["value"] == safe
    assert listed["threshold"]["high"] == safe
    made = json.loads(um.render(document, "json"), parse_float=str)
    values = {one["metric"]: one for one in made["results"]}
    assert values["threshold"]["value"] == str(estimate.value)
    assert values["safe_threshold"]["value"] == safe
    assert values["threshold"]["interval"] == [str(estimate.interval.low), safe]
    for format in ("text", "md"):
        shown = um.render(document, format)
        assert ends in shown
        assert f" {safe}" in shown
    assert repr(estimate) == f"threshold {ends} (95 %)"
    assert ends.split()[0] in repr(found)
    assert ends.replace("-", "$-$") in latex(document)


def test_the_safe_threshold_and_ends_are_rounded_towards_fewer_acceptances():
    scores = trials(30)
    nontarget = scores.nontargets("cosine")
    estimate = um.operating_point(scores, far=0.05, replicates=50)["threshold"]
    for end in (estimate.interval.low, estimate.value, estimate.interval.high):
        rejected = nontarget[nontarget < end].max()
        assert rejected < end
        assert not ((nontarget > rejected) & (nontarget < end)).any()
        assert end - rejected < 0.02
    judged = um.operating_point(scores, threshold=estimate.interval.high, replicates=50)
    assert judged["far"].interval.high <= 0.05


def test_a_stream_prints_the_same(tmp_path, monkeypatch):
    make_batches_tiny(monkeypatch)
    path = tmp_path / "scores.csv"
    um.write(trials(), path)
    whole, parts = (
        um.evaluate(str(path), battery=um.Battery(far=(0.02,)), replicates=0, stream=stream)
        for stream in (False, True)
    )
    for one, other in zip(whole.estimates, parts.estimates, strict=True):
        assert str(one.threshold) == str(other.threshold)
        assert one.metric not in OF_TRIALS or len(str(one.threshold)) < 9


def test_pairs_print_thresholds_of_32_bits():
    voices = um.Embeddings(
        np.random.default_rng(0).normal(size=(60, 8)), [f"s{i // 4:02}" for i in range(60)]
    )
    rows = um.Cosine().sides(voices.vectors).enrol.astype(np.float32)
    cosine, code = (rows @ rows.T).astype(float), voices.speakers.codes
    one, other = np.triu_indices(60, 1)
    own = code[one] == code[other]
    result = um.evaluate(voices, replicates=0)
    at = result["eer"].threshold
    exact = result.results[0].roc.eer_point().threshold
    scores = cosine[one, other]
    np.testing.assert_array_equal(scores >= at, scores >= exact)
    assert len(str(at)) <= 12
    assert own.any()


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (0.0, 0.0, 5e-5, "0.0000 [0.0000, 0.0050]"),
        (1e-4, 9.2e-5, 1.1e-4, "0.010 [0.009, 0.011]"),
        (5e-6, 1e-6, 2e-5, "0.00050 [0.00010, 0.00200]"),
        (0.0, 0.0, 0.37, "0.00 [0.00, 37.00]"),
        (0.012, 0.0, 0.02, "1.20 [0.00, 2.00]"),
        (-3e-5, -6e-5, 1e-5, "−0.0030 [−0.0060, 0.0010]"),
        (1e-17, -0.01, 0.01, "0.00 [−1.00, 1.00]"),
        (-1.6e-6, -2e-4, 3e-4, "−0.0002 [−0.0200, 0.0300]"),
        (4e-4, 0.0, 0.03, "0.04 [0.00, 3.00]"),
    ],
)
def test_rates_near_0_have_two_digits(value, low, high, shown):
    interval = um.Interval(low, high, 0.95, "speaker", 100, 0)
    estimate = Estimate("far", value, "%", interval, params={"threshold": 0.9})
    assert cell(estimate) == shown
    assert rate_digits("", value, low, high) is None
    assert rate_digits("%", math.nan, low, high) is None
