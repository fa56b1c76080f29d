from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from unmask import InputError, cllr, zebra
from unmask.engine import Roc
from unmask.engine.information import z
from unmask.privacy import calibration_distortion, disclosure_of, zebra_by_speaker, zebra_profiles
from unmask.trials import Ids, Scores


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return rng.normal(1.5, 1.5, 400), rng.normal(-1.0, 1.5, 900)


def test_the_cross_entropy_at_even_odds_is_cllr(scores):
    result = zebra_profiles({"a": scores}, points=81)["a"]
    middle = 40
    assert result.log_odds[middle] == 0
    assert result.actual[middle] == pytest.approx(cllr(*scores))
    assert result.oracle[middle] == pytest.approx(result.min_cllr)
    assert result.prior[middle] == pytest.approx(1.0)
    assert result.cllr == pytest.approx(cllr(*scores))


def test_the_area_between_prior_and_oracle_is_d_ece(scores):
    result = zebra_profiles({"a": scores}, limit=25.0, points=20001)["a"]
    prior = expit(result.log_odds)
    area = np.trapezoid(result.prior - result.oracle, prior)
    assert result.zebra.d_ece == pytest.approx(area, abs=1e-6)


def test_the_statistic_gives_the_same_profile_without_the_scores(scores):
    whole = zebra_profiles({"a": scores})["a"]
    counted = disclosure_of(Roc.from_scores(*scores), system="a")
    np.testing.assert_allclose(counted.oracle, whole.oracle)
    assert counted.actual is None
    assert counted.label == whole.label
    assert [e.metric for e in counted.estimates] == ["d_ece", "l_w", "tag", "min_cllr"]
    assert whole.estimates[-1].metric == "cllr"
    assert [e.chance for e in whole.estimates] == [0.0, 0.0, None, 1.0, 1.0]


def test_systems_of_a_table_are_those_of_their_scores(scores):
    table = Scores.from_arrays(*scores, system="a")
    result = zebra_profiles(table)["a"]
    expected = zebra(*scores)
    assert (result.zebra.d_ece, result.zebra.tag) == (expected.d_ece, expected.tag)
    assert result.label == f"a ({expected.d_ece:.3f}, {expected.l_w:.3f}, {expected.tag})"
    assert result.trials == table.digest


def test_distortion_by_the_same_run_is_the_disclosure(scores):
    result = calibration_distortion(scores, scores, method="isotonic", laplace=False)
    assert result.c_ece == pytest.approx(result.second.zebra.d_ece)
    assert result.cllr == pytest.approx(result.second.min_cllr)


@pytest.mark.parametrize("method", ["linear", "isotonic"])
def test_distortion_is_the_formula_on_the_calibrated_scores(scores, method):
    rng = np.random.default_rng(1)
    second = rng.normal(0.5, 1.0, 300), rng.normal(-0.5, 1.0, 700)
    result = calibration_distortion(scores, second, method=method)
    a, b = (result.calibration.apply(part) for part in second)
    assert result.c_ece == pytest.approx((z(a).mean() + z(-b).mean()) / (2 * np.log(2)))
    assert result.cllr == pytest.approx(cllr(a, b))
    assert result.raw_cllr == pytest.approx(cllr(*second))
    assert result.c_ece <= result.second.zebra.d_ece
    assert result.actual[80] == pytest.approx(result.cllr)
    c_ece, cost = result.estimates
    name = {"linear": "c_ece", "isotonic": "c_ece_isotonic"}[method]
    assert (c_ece.metric, c_ece.unit, c_ece.params["calibration"]) == (name, "bit", method)
    assert cost.metric == f"cllr_{method}"
    assert cost.value == result.cllr


def test_a_safeguard_that_changes_between_runs_misleads_the_attacker():
    rng = np.random.default_rng(2)
    first = rng.normal(3, 1, 500), rng.normal(0, 1, 2000)
    second = rng.normal(0, 1, 500), rng.normal(3, 1, 2000)
    assert calibration_distortion(first, second).c_ece < -0.5
    assert calibration_distortion(first, second, method="isotonic").c_ece < 0


def test_without_laplace_one_target_in_a_pure_block_costs_everything():
    first = [1.0, 2.0], [-3.0, -2.0, 0.0, 1.5]
    second = [-2.5, 2.0], [-1.0, -2.0]
    assert calibration_distortion(first, second, method="isotonic", laplace=False).c_ece == -np.inf
    assert np.isfinite(calibration_distortion(first, second, method="isotonic").c_ece)


def test_a_linear_map_that_says_little_is_told():
    apart = [5.0, 6.0], [1.0, 2.0]
    assert "do not overlap" in calibration_distortion(apart, apart).warnings[0]
    turned = [0.0, 1.0, 2.0], [1.5, 3.0, 4.0]
    assert "inverts the scores" in calibration_distortion(turned, turned).warnings[0]
    with pytest.raises(InputError, match="linear or isotonic"):
        calibration_distortion(apart, apart, method="deep")


def table(rng, counts):
    """All ordered pairs of segments of speakers with the given numbers of segments."""
    codes = np.repeat(np.arange(len(counts)), counts)
    k, m = np.nonzero(~np.eye(codes.size, dtype=bool))
    same = codes[k] == codes[m]
    names = np.array([f"s{i}" for i in range(len(counts))])
    return Scores(
        Ids.from_strings(k.astype(str)),
        Ids.from_strings(m.astype(str)),
        same.astype(np.int8),
        enrol_speaker=Ids.from_strings(names[codes[k]]),
        test_speaker=Ids.from_strings(names[codes[m]]),
        systems={"a": rng.normal(size=k.size) + same * (0.5 + codes[k])},
    )


def test_speakers_with_equal_trials_average_to_the_whole():
    scores = table(np.random.default_rng(3), [4] * 5)
    result = zebra_by_speaker(scores)
    whole = zebra(scores.targets(), scores.nontargets())
    assert result.d_ece.mean() == pytest.approx(whole.d_ece)
    assert result.l_w.max() == pytest.approx(whole.l_w)
    assert result.tags[int(result.l_w.argmax())] == whole.tag
    assert result.targets.tolist() == [12] * 5
    assert result.nontargets.tolist() == [128] * 5
    assert result.worst(1) == (result.speakers[int(result.d_ece.argmax())],)


def test_speakers_from_the_definition():
    scores = table(np.random.default_rng(4), [2, 3, 5])
    result = zebra_by_speaker(scores)
    pav = Roc.from_scores(scores.targets(), scores.nontargets()).pav
    llr = pav.apply(scores.scores())
    enrol = scores.enrol_speaker.to_series().to_numpy()
    test = scores.test_speaker.to_series().to_numpy()
    for i, name in enumerate(result.speakers):
        own = llr[(enrol == name) & (test == name)]
        sides = [llr[(a == name) & (enrol != test)] for a in (enrol, test)]
        other = np.concatenate(sides)
        expected = (z(own).mean() + z(-other).mean()) / (2 * np.log(2))
        assert result.d_ece[i] == pytest.approx(expected)


def test_a_speaker_without_target_trials_is_told(sentences):
    scores = table(np.random.default_rng(5), [2, 3, 1])
    result = zebra_by_speaker(scores)
    assert [notice.code for notice in result.notices] == ["few-trials"]
    sentences.check(*result.warnings)
    assert np.isnan(result.d_ece[result.speakers.index("s2")])
    assert result.worst(3)[-1] == "s2"
    bare = Scores.from_arrays([1.0, 2.0], [0.0])
    with pytest.raises(InputError) as error:
        zebra_by_speaker(bare)
    sentences.check(str(error.value))
