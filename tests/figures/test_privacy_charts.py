from __future__ import annotations

import json

import numpy as np
import pytest
from tests.helpers.populations import score_matrices

from unmask import InputError, pseudonymisation, zoo
from unmask.estimate import Interval
from unmask.figures import save
from unmask.figures.evidence import calibration_profiles, disclosure_profiles
from unmask.figures.privacy import (
    Point,
    distinctiveness,
    similarity_matrices,
    speaker_protection,
    zoo_plots,
)
from unmask.privacy import calibration_distortion, zebra_profiles
from unmask.privacy.similarity import PrivacyAssessment, SafeguardRow, quadrants, single
from unmask.report import figures_of


@pytest.fixture(scope="module")
def result():
    speakers = np.repeat([f"s{i}" for i in range(12)], 3)
    return pseudonymisation(*score_matrices(0, speakers, 3.0, 1.0, 2.0), speakers, replicates=50)


def test_quadrants_hold_the_three_matrices(result):
    view = quadrants(result)
    np.testing.assert_array_equal(view.values[:12, :12], result.matrices["oo"])
    np.testing.assert_array_equal(view.values[:12, 12:], result.matrices["op"])
    read = view.values[12:, :12].T
    assert view.read_by == result.attacker
    off = ~np.eye(12, dtype=bool)
    left = 1 - abs(np.diag(read).mean() - read[off].mean()) / result.d_diag["oo"]
    assert left == pytest.approx(result.strongest.deid.value)
    np.testing.assert_array_equal(view.values[12:, 12:], result.matrices["pp"])
    assert view.labels == result.speakers
    figure = similarity_matrices({"a": view})
    text = json.dumps(figure.spec())
    assert '"domain": [0.0, 1.0]' in text
    assert "binned" not in figure.caption


def test_clustered_speakers_are_the_same_speakers(result, sentences):
    view = quadrants(result, order="cluster")
    assert sorted(view.labels) == sorted(result.speakers)
    place = [result.speakers.index(name) for name in view.labels]
    expected = result.matrices["op"][np.ix_(place, place)]
    np.testing.assert_array_equal(view.values[:12, 12:], expected)
    with pytest.raises(InputError, match=r"order: .* name") as error:
        quadrants(result, order="name")
    sentences.check(str(error.value))


def test_large_matrices_are_binned_and_say_so(result, sentences):
    view = single(result.sets["oo"], most=5)
    matrix = result.matrices["oo"]
    assert view.per_bin == 3
    assert view.values.shape == (4, 4)
    assert view.labels[0] == "s0 … s2"
    assert view.values[0, 0] == pytest.approx(np.diag(matrix)[:3].mean())
    assert view.values[0, 1] == pytest.approx(matrix[:3, 3:6].mean())
    caption = similarity_matrices({"a": view}).caption
    assert "binned" in caption
    assert " 3 speakers" in caption
    sentences.check(caption)


def test_scatter_draws_intervals_and_tells_what_it_leaves_out():
    interval = Interval(0.8, 0.9, 0.95, "speaker", 100, 0)
    points = [
        Point("a", "one", 0.85, -3.0, interval, None),
        Point("b", "two", 1.0, -np.inf),
        Point("a", "two", 0.5, -1.0),
    ]
    figure = distinctiveness(points)
    text = json.dumps(figure.spec())
    assert "80.0" in text
    assert "Not drawn" in figure.caption
    assert figure.caption.endswith(": b.")
    beaten = distinctiveness([Point("a", "one", 1.0, 0.0, strongest=-0.03)])
    assert "Hollow" in beaten.caption
    with pytest.raises(InputError, match="finite G_VD"):
        distinctiveness(points[1:2])


def test_profiles_have_the_disclosure_in_the_legend():
    rng = np.random.default_rng(1)
    runs = [(rng.normal(2, 1, 50), rng.normal(0, 1, 100)) for _ in range(2)]
    profiles = zebra_profiles({"a": runs[0]})
    text = json.dumps(disclosure_profiles(profiles).spec(), ensure_ascii=False)
    assert f"{profiles['a'].zebra.d_ece:.3f}, {profiles['a'].zebra.l_w:.3f}" in text
    both = disclosure_profiles(profiles, negated=profiles)
    assert "a, negated" in json.dumps(both.spec())
    assert "Dotted" in both.caption
    made = [calibration_distortion(*runs, method=m) for m in ("linear", "isotonic")]
    text = json.dumps(calibration_profiles(made).spec(), ensure_ascii=False)
    assert f"C_ECE {made[1].c_ece:.3f}, C_llr {made[1].cllr:.2f}" in text


def test_zoo_names_speakers_and_tests_the_corners(result):
    zoos = {"OP": zoo(result.sets["op"])}
    figure = zoo_plots(zoos, matrices={"OP": single(result.sets["op"])})
    assert "dove (by chance" in figure.caption
    assert figure.title.startswith("OP: ")
    assert '"speaker": "s3"' in json.dumps(figure.spec())
    assert "concat" in figure.spec()


def test_bars_stand_in_the_order_of_protection(result):
    figure = speaker_protection({"a": result.per_speaker})
    spec = figure.spec()
    rows = spec["datasets"][spec["vconcat"][0]["layer"][0]["data"]["name"]]
    values = [row["deid"] for row in rows]
    assert values == sorted(values)
    assert rows[0]["speaker"] == result.per_speaker.worst(1)[0]
    assert np.mean(values) == pytest.approx(100 * result.strongest.deid.value, abs=1e-3)


def test_all_figures_of_an_assessment_are_written(result, tmp_path):
    assessment = PrivacyAssessment(
        (
            SafeguardRow("B 1", "f", result),
            SafeguardRow("B2", "f", result),
            SafeguardRow("B2", "m", result),
        )
    )
    figures = figures_of(assessment)
    names = [figure.name for figure in figures]
    assert names == [
        "g_vd_deid",
        "similarity_matrices_f",
        "zebra_profiles_f",
        "speaker_protection_f",
        "zoo_original_f",
        "zoo_B-1_f",
        "zoo_B2_f",
        "similarity_matrices_m",
        "zebra_profiles_m",
        "speaker_protection_m",
        "zoo_original_m",
        "zoo_B2_m",
    ]
    for figure in figures[:2]:
        assert save(figure, tmp_path / f"{figure.name}.png").stat().st_size > 1000


def test_nothing_is_refused():
    for chart in (similarity_matrices, disclosure_profiles, zoo_plots):
        with pytest.raises(InputError, match="found none"):
            chart({})
    with pytest.raises(InputError, match="found none"):
        speaker_protection({})
