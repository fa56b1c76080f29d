from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.engine.curves import DetCurve, PavMap, reliability
from unmask.errors import InputError
from unmask.figures import (
    calibration_plot,
    det,
    difference_intervals,
    ece_profile,
    layout,
    pav_map,
    score_histograms,
    system_colours,
)
from unmask.figures.detection import HIGHEST, LOWEST, trace

CHARTS = {
    "det": (det, "det"),
    "pav_map": (pav_map, "pav"),
    "ece_profile": (ece_profile, "ece"),
    "score_histograms": (score_histograms, "histogram"),
    "calibration_plot": (calibration_plot, "reliability"),
}


def rows(spec, **chosen):
    return [
        row
        for data in spec["datasets"].values()
        for row in data
        if all(row.get(key) == value for key, value in chosen.items())
    ]


def column(drawn, name):
    return np.array([row[name] for row in drawn], dtype=float)


def every(node, key):
    if isinstance(node, dict):
        if key in node:
            yield node[key]
        for child in node.values():
            yield from every(child, key)
    elif isinstance(node, list):
        for child in node:
            yield from every(child, key)


@pytest.mark.parametrize("name", CHARTS)
def test_empty_mapping_is_refused(name, sentences):
    with pytest.raises(InputError) as error:
        CHARTS[name][0]({})
    sentences.check(str(error.value))


@pytest.mark.parametrize("width", ["column", "page"])
@pytest.mark.parametrize("name", CHARTS)
def test_specs_are_valid_and_describe_themselves(name, width, eight):
    chart, kind = CHARTS[name]
    curves = getattr(eight, kind)
    for count in (1, 8):
        with layout(width=width):
            figure = chart(dict(list(curves.items())[:count]))
        spec = figure.spec()
        assert figure.name == name
        assert spec["description"]
        assert any(every(spec, "tooltip"))
        systems = {row["system"] for row in rows(spec) if "system" in row}
        assert set(list(curves)[:count]) <= systems


@pytest.mark.parametrize("name", [n for n in CHARTS if n != "score_histograms"])
def test_colours_are_those_given(name, three):
    chart, kind = CHARTS[name]
    curves = getattr(three, kind)
    colours = system_colours(curves, original="original")
    spec = chart(curves, colours=colours).spec()
    ranges = [c["scale"]["range"] for c in every(spec, "color") if isinstance(c, dict)]
    assert ranges
    assert all(r[-3:] == ["#6b7280", "#0072B2", "#E69F00"] for r in ranges)


def test_det_holds_the_vertices_and_marks(three):
    spec = det(three.det).spec()
    curve = three.det["B3"]
    drawn = rows(spec, system="B3", line="convex hull")
    seen = (curve.hull_p_fa <= HIGHEST) & (curve.hull_p_miss <= HIGHEST)
    for fa, miss in zip(curve.hull_p_fa[seen], curve.hull_p_miss[seen], strict=True):
        assert any(
            math.isclose(r["p_fa"], fa, rel_tol=1e-5, abs_tol=1e-9)
            and math.isclose(r["p_miss"], miss, rel_tol=1e-5, abs_tol=1e-9)
            for r in drawn
        )
    [point] = rows(spec, system="B3", point="equal error rate (hull)")
    assert point["p_fa"] == point["p_miss"] == pytest.approx(curve.eer, rel=1e-5)
    [point] = rows(spec, system="B3", point="minimum DCF")
    assert point["p_fa"] == pytest.approx(curve.min_dcf_p_fa, rel=1e-5)
    assert point["p_target"] == 0.01
    entry = f"B3 (EER {100 * curve.eer:.2f} %)"
    assert entry in json.dumps(spec)
    assert spec["width"] == spec["height"]


def curve(p_fa, p_miss, eer):
    fa, miss = np.array(p_fa, float), np.array(p_miss, float)
    return DetCurve(fa, miss, fa, miss, eer, eer, fa[1], miss[1], 0.01)


def test_det_draws_a_perfect_system_along_the_edges():
    figure = det({"perfect": curve([0, 0, 1], [1, 0, 0], 0.0)})
    drawn = rows(figure.spec(), line="measured (ROC polygon)")
    assert {(0.0, 0.0), (0.0, HIGHEST), (HIGHEST, 0.0)} <= {(r["p_fa"], r["p_miss"]) for r in drawn}
    assert "EER 0" in figure.caption
    assert f"clamp(datum.p_fa, {LOWEST}, {HIGHEST})" in "".join(every(figure.spec(), "calculate"))


def test_det_draws_a_system_outside_the_panel_on_its_edge():
    figure = det({"reversed": curve([0, 1, 1], [1, 1, 0], 1.0)})
    assert rows(figure.spec(), line="measured (ROC polygon)")
    assert "EER above 60.00 %" in figure.caption


def test_trace_stays_on_the_polygon():
    at = np.linspace(0, 1, 11)
    fa, miss = trace(np.array([0.0, 0.2, 1.0]), np.array([1.0, 0.1, 0.0]), at_fa=at, at_miss=at)
    expected = np.interp(fa, [0, 0.2, 1], [1, 0.1, 0])
    assert miss == pytest.approx(expected)
    assert np.all(np.diff(fa) >= 0)
    assert np.all(np.diff(miss) <= 1e-12)
    assert set(at.round(9)) <= set(fa.round(9))
    assert set(at.round(9)) <= set(miss.round(9))


def test_pav_holds_finite_steps_and_marks_infinite_blocks(three):
    figure = pav_map(three.pav)
    spec = figure.spec()
    curve = three.pav["B3"]
    finite = np.isfinite(curve.llr)
    steps = [r for r in rows(spec, system="B3") if "step" in r]
    assert column(steps, "llr") == pytest.approx(np.repeat(curve.llr[finite], 2), rel=1e-5)
    assert column(steps, "score")[::2] == pytest.approx(curve.low[finite], rel=1e-5)
    assert column(steps, "score")[1::2] == pytest.approx(curve.high[finite], rel=1e-5)
    [top] = rows(spec, system="B3", sign="+∞")
    [bottom] = rows(spec, system="B3", sign="−∞")
    assert top["score"] == pytest.approx(curve.low[-1], rel=1e-5)
    assert bottom["score"] == pytest.approx(curve.high[0], rel=1e-5)
    assert top["llr"] > curve.llr[finite].max()
    assert "Triangles" in figure.caption


def test_pav_of_perfect_separation_has_only_triangles():
    blocks = PavMap(
        low=np.array([-np.inf, 1.0]),
        high=np.array([0.0, 2.0]),
        llr=np.array([-np.inf, np.inf]),
        targets=np.array([0.0, 3.0]),
        nontargets=np.array([4.0, 0.0]),
    )
    drawn = rows(pav_map({"perfect": blocks}).spec(), system="perfect")
    assert {(r["sign"], r["natural"], r["targets"]) for r in drawn} == {
        ("−∞", "−∞", 0.0),
        ("+∞", "+∞", 3.0),
    }


def test_ece_holds_the_three_curves_and_tells_of_the_cut(three, sentences):
    figure = ece_profile(three.ece)
    spec = figure.spec()
    curve = three.ece["B3"]
    for line, bits in (
        ("oracle (calibrated)", curve.oracle),
        ("actual (scores as LLRs)", curve.actual),
    ):
        drawn = rows(spec, system="B3", line=line)
        assert column(drawn, "bits") == pytest.approx(bits, rel=1e-5)
    prior = rows(spec, system="prior alone, no scores")
    assert column(prior, "bits").max() == pytest.approx(1)
    huge = dataclasses.replace(curve, actual=40 * curve.actual)
    cut = ece_profile({"B3": huge}).caption
    assert "B3" not in figure.caption
    assert "B3" in cut
    sentences.check(figure.caption, cut)


def test_histograms_hold_the_densities_and_tell_what_is_missing(three, sentences):
    figure = score_histograms(three.histogram)
    curve = three.histogram["B3"]
    bins = [r for r in rows(figure.spec(), system="B3") if "end" in r]
    assert column(bins, "target") == pytest.approx(curve.target, rel=1e-5)
    assert column(bins, "nontarget") == pytest.approx(curve.nontarget, rel=1e-5)
    assert column(bins, "score") == pytest.approx(curve.edges[:-1], rel=1e-5)
    assert "3 (B3)" in figure.caption
    nowhere = dataclasses.replace(curve, eer_threshold=math.inf)
    sentences.check(figure.caption, score_histograms({"B3": nowhere}).caption)


def test_calibration_holds_shares_and_intervals(three):
    curve = three.reliability["T10-2"]
    drawn = rows(calibration_plot(three.reliability).spec(), system="T10-2")
    for name in ("predicted", "observed", "low", "high", "count"):
        assert column(drawn, name) == pytest.approx(getattr(curve, name), rel=1e-5)


def test_overconfident_scores_lie_where_the_caption_says(three, sentences):
    rng = np.random.default_rng(0)
    llrs = rng.normal(2, 2, 4000), rng.normal(-2, 2, 12000)  # calibrated: the mean is σ²/2
    curve = reliability(*(3 * one for one in llrs), bins=8)
    bins = rows(calibration_plot({"system": curve}).spec(), system="system")
    left, right = ([r for r in bins if (r["predicted"] < 0.25) == side] for side in (True, False))
    assert all(row["observed"] > row["predicted"] for row in left)
    assert all(row["observed"] < row["predicted"] for row in right)
    caption = calibration_plot(three.reliability).caption.partition("Overconfident")[2]
    assert caption.index("above") < caption.index("left") < caption.index("below")
    sentences.check(caption)


def test_differences_beyond_the_edge_are_named():
    rng = np.random.default_rng(2)
    scores = np.concatenate([rng.normal(2, 1, 60), rng.normal(0, 1, 90)])
    frame = pl.DataFrame(
        {
            "enrol": [f"a{i}" for i in range(150)],
            "test": [f"b{i}" for i in range(150)],
            "label": ["target"] * 60 + ["nontarget"] * 90,
            "calibrated": 2 * scores - 2,
            "raw": 40 * (scores + rng.normal(0, 0.4, 150)),
        }
    )
    comparison = um.compare(frame, replicates=20)
    # One name a row, as two rates share one metric.
    labels = list(um.Battery().measured())
    figure = difference_intervals(comparison, labels)
    assert "cllr (−" in figure.caption
    assert figure.title.endswith("raw against calibrated")
    [axis] = [one for one in every(figure.spec(), "axis") if one and "values" in one]
    assert axis["values"][0] == -150
    assert 0 in axis["values"]
    shapes = {row["metric"]: row["where"] for row in rows(figure.spec()) if "where" in row}
    assert shapes["cllr"] == "left"
    assert shapes["eer"] == "within"
    assert figure.caption.endswith(": l_w, tpr@0.01, tpr@0.001.")
    turned = difference_intervals(dataclasses.replace(comparison, privacy=True), labels)
    assert turned.caption.endswith(": act_dcf@0.01, cllr.")
    assert "raw protects more" in turned.caption
    assert "recognises better" not in turned.caption + turned.title
    values, mirrored = (
        {row["metric"]: row["value"] for row in rows if "value" in row}
        for one in (figure, turned)
        for rows in next(every(one.spec(), "datasets")).values()
        if "metric" in rows[0]
    )
    assert mirrored["eer"] == pytest.approx(-values["eer"])
    assert not {"cllr", "act_dcf@0.01"} & set(mirrored)
    zero = dataclasses.replace(comparison.differences[0].first, value=0.0)
    nothing = dataclasses.replace(comparison.differences[0], first=zero)
    without = dataclasses.replace(comparison, differences=(nothing, *comparison.differences[1:]))
    left_out = difference_intervals(without, ["EER", *labels[1:]]).caption
    assert left_out.endswith("no interval: EER, l_w, tpr@0.01, tpr@0.001.")
