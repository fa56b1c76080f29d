"""Calibration and fusion of tables: closed forms, a brute-force optimiser, and who saw whom."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import minimize

import unmask as um
from unmask.engine import fusion, read_map, save_map

FOLDS = 4


def gaussians(seed, number, variances, mean=1.0):
    rng, sign = np.random.default_rng(seed), np.repeat([1, -1], number)
    scores = {f"v{v:g}": mean * sign + np.sqrt(v) * rng.normal(size=2 * number) for v in variances}
    return um.Scores(None, None, sign > 0, systems=scores)


def table(seed=0, speakers=14, each=3, systems=("a", "b"), prefix="s"):
    """Every speaker enrolled against every test utterance; scores and duration depend on both."""
    rng = np.random.default_rng(seed)
    enrol = np.repeat(np.arange(speakers), speakers * each)
    test = np.tile(np.repeat(np.arange(speakers), each), speakers)
    number = np.tile(np.arange(speakers * each), speakers)
    easy = rng.normal(size=speakers)
    duration = np.round(np.exp(rng.normal(size=speakers * each))[number], 3)
    sound = {
        name: 2.0 * (enrol == test)
        + easy[enrol] / 2
        + 0.3 * np.log(duration)
        + rng.normal(size=enrol.size)
        for name in systems
    }
    named = [um.Ids.from_strings([f"{prefix}{i}" for i in side]) for side in (enrol, test)]
    return um.Scores(
        um.Ids.from_strings([f"{prefix}{i}-model" for i in enrol]),
        um.Ids.from_strings([f"{prefix}{i}-u" for i in number]),
        enrol == test,
        enrol_speaker=named[0],
        test_speaker=named[1],
        columns={"duration": um.Ids.from_strings(duration.astype(str))},
        systems=sound,
    )


def best(columns, own, prior):
    """Weights and offset by an optimiser that knows the loss alone."""
    log_odds = np.log(prior / (1 - prior))
    design = np.column_stack([*columns, np.ones(len(own))])

    def loss(w):
        z = design @ w + log_odds
        missed, taken = np.logaddexp(0, -z[own]).mean(), np.logaddexp(0, z[~own]).mean()
        p = 1 / (1 + np.exp(-z))
        share = np.where(own, prior * (p - 1) / own.sum(), (1 - prior) * p / (~own).sum())
        return prior * missed + (1 - prior) * taken, design.T @ share

    made = minimize(
        loss, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}
    )
    return made.x


def test_gaussian_scores_get_the_slope_and_offset_of_their_llr():
    """Classes N(±m, v): the LLR is (2m/v)·s, and an affine change of the score is undone."""
    dev, held_out = gaussians(1, 100_000, [2.0], mean=1.5), gaussians(2, 1000, [2.0], mean=1.5)
    moved = [replace(one, systems={"x": 5 * one.scores() - 3}) for one in (dev, held_out)]
    made = um.calibrate(moved[1], train=moved[0])
    assert made.map.weights == pytest.approx([1.5 / 5], rel=0.02)
    assert made.map.offset == pytest.approx(3 * 1.5 / 5, rel=0.03)
    np.testing.assert_allclose(made.scores.scores(), 1.5 * held_out.scores(), rtol=0.02, atol=0.02)


def test_independent_gaussian_systems_get_the_weights_of_their_llrs():
    """N(±1, v) each: the joint LLR is the sum of 2·s/v."""
    made = um.fuse(
        gaussians(2, 1000, [1.0, 2.0, 8.0]), train=gaussians(1, 200_000, [1.0, 2.0, 8.0])
    )
    np.testing.assert_allclose(made.map.weights, [2.0, 1.0, 0.25], rtol=0.03)
    assert made.map.offset == pytest.approx(0, abs=0.02)
    assert made.best == "v1"


@pytest.mark.parametrize("prior", [0.5, 0.03])
def test_weights_are_those_of_a_brute_force_optimiser(prior):
    scores = table()
    found = um.fuse(scores, prior=prior, quality=["log:duration"], folds=FOLDS).map
    duration = np.log([float(one) for one in scores.columns["duration"]])
    columns = [*scores.systems.values(), duration]
    expected = best(columns, scores.is_target, prior)
    np.testing.assert_allclose([*found.weights, found.offset], expected, atol=1e-6)
    assert found.quality == ("log:duration",)


@pytest.mark.parametrize("estimator", ["linear", "isotonic"])
def test_no_map_saw_a_speaker_whom_it_judges(estimator):
    """Whatever the other trials of its two speakers score, a trial's LLR keeps every bit."""
    scores = table(systems=("a",))
    made = um.calibrate(scores, estimator=estimator, folds=FOLDS)
    assert made.fits == FOLDS * (FOLDS + 1) // 2
    how = fusion.Fitting(folds=FOLDS)
    folds = fusion.fold_of(scores.enrol_speaker, scores.test_speaker, how)
    one, other = scores.enrol_speaker.codes, scores.test_speaker.codes
    met = set()
    for row in np.random.default_rng(0).permutation(len(scores)):
        pair = tuple(sorted(folds[:, row]))
        if pair in met:
            continue
        met.add(pair)
        speakers = one[row], other[row]
        touched = np.isin(one, speakers) | np.isin(other, speakers)
        touched[row] = False
        changed = np.where(touched, -7 * scores.scores() + 1, scores.scores())
        again = um.calibrate(
            replace(scores, systems={"a": changed}), estimator=estimator, folds=FOLDS
        )
        assert again.scores.scores()[row] == made.scores.scores()[row]
        assert (again.scores.scores() != made.scores.scores()).any()
    assert met == set(combinations_with_replacement(range(FOLDS), 2))


def test_a_cross_fitted_trial_has_the_map_of_all_trials_without_its_folds():
    scores = table()
    made = um.fuse(scores, folds=FOLDS)
    folds = fusion.fold_of(scores.enrol_speaker, scores.test_speaker, fusion.Fitting(folds=FOLDS))
    for row in (0, 100, 400):
        seen = ~np.isin(folds, folds[:, row]).any(axis=0)
        columns = [one[seen] for one in scores.systems.values()]
        *weights, offset = best(columns, scores.is_target[seen], 0.5)
        llr = (
            sum(w * s[row] for w, s in zip(weights, scores.systems.values(), strict=True)) + offset
        )
        assert made.scores.scores()[row] == pytest.approx(llr, abs=1e-5)


def test_trials_of_neither_class_get_an_llr_and_train_nothing():
    scores = table(systems=("a",))
    label = scores.label.copy()
    label[:7] = -1
    with_spoof = replace(scores, label=label)
    made = um.calibrate(with_spoof, train=table(1, systems=("a",), prefix="d"))
    same = um.calibrate(scores, train=table(1, systems=("a",), prefix="d"))
    np.testing.assert_array_equal(made.scores.scores(), same.scores.scores())


def test_numbers_before_and_after_are_those_of_compare():
    scores = table(systems=("a",))
    made = um.calibrate(scores, train=table(1, systems=("a",), prefix="d"))
    shown = made.against_raw(replicates=20)
    assert [one.first.metric for one in shown.differences] == list(fusion.SHOWN)
    own, llr = scores.is_target, made.scores.scores()
    assert shown["cllr"].second.value == pytest.approx(um.cllr(llr[own], llr[~own]))
    assert shown["cllr"].first.value == pytest.approx(
        um.cllr(scores.scores()[own], scores.scores()[~own])
    )
    difference = shown["cllr"]
    assert difference.value == pytest.approx(difference.second.value - difference.first.value)
    assert difference.interval.low < difference.value < difference.interval.high
    assert shown["eer"].value == 0


@pytest.mark.parametrize("laplace", [True, False])
def test_maps_are_saved_and_applied_again_to_the_same_bits(tmp_path, laplace):
    scores, dev = table(), table(1, prefix="d")
    one, one_dev = scores.select_systems(["a"]), dev.select_systems(["a"])
    made = [
        (scores, um.fuse(scores, train=dev, quality=["duration"])),
        (one, um.calibrate(one, train=one_dev)),
        (one, um.calibrate(one, estimator="isotonic", train=one_dev, laplace=laplace)),
    ]
    for given, result in made:
        save_map(result.map, tmp_path / "map.json")
        json.loads((tmp_path / "map.json").read_text(), parse_constant=pytest.fail)
        back = read_map(tmp_path / "map.json")
        assert type(back) is type(result.map)
        again = (um.fuse if len(given.systems) > 1 else um.calibrate)(given, train=back)
        np.testing.assert_array_equal(again.scores.scores(), result.scores.scores())


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": "other"}',
        '{"format": "unmask calibration 1", "kind": "Fusion", "systems": "a"}',
        '{"format": "unmask calibration 1", "kind": "Fusion", "systems": ["a"], "quality": [],'
        ' "weights": [1, 2], "offset": 0, "separable": false}',
        '{"format": "unmask calibration 1", "kind": "IsotonicCalibration", "score": [1, 0],'
        ' "llr": [0, 1], "laplace": true}',
    ],
)
def test_files_that_are_no_maps_are_refused(tmp_path, text):
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(um.InputError, match=r"map\.json: expected a map"):
        read_map(tmp_path / "map.json")


def refused(match, function, *args, **options):
    with pytest.raises(um.InputError, match=match) as error:
        function(*args, **options)
    assert "\n" not in str(error.value)


def test_what_cannot_be_fitted_is_one_line():
    scores, dev = table(), table(1, prefix="d")
    one, one_dev = scores.select_systems(["a"]), dev.select_systems(["a"])
    refused("of both classes", um.calibrate, one, train=one_dev.select(one_dev.is_target))
    refused("other speakers.*14 of both", um.calibrate, one, train=one)
    unnamed = replace(one, enrol_speaker=None, test_speaker=None)
    refused("other utterances or models", um.calibrate, one, train=unnamed)
    refused("speakers to cross-fit by", um.calibrate, unnamed)
    refused("one system to calibrate", um.calibrate, scores)
    refused("two systems or more", um.fuse, one)
    refused("the same trials", um.fuse, [one, dev.select_systems(["b"])])
    refused("systems of the map", um.fuse, scores, train=table(1, systems="abc", prefix="d"))
    refused("a column snr", um.calibrate, one, train=one_dev, quality=["snr"])
    refused("no effect on the isotonic", um.calibrate, one, estimator="isotonic", quality=["x"])
    durations = [*one.columns["duration"]]
    for bad, name in (("nan", "duration"), ("", "duration"), ("-1.0", "log:duration")):
        column = {"duration": um.Ids.from_strings([*durations[:4], bad, *durations[5:]])}
        gaps = replace(one, columns=column)
        refused("row 5: expected a", um.calibrate, gaps, train=one_dev, quality=[name])
    refused(
        "finite scores",
        um.fuse,
        replace(scores, systems={**scores.systems, "b": np.full(len(scores), np.inf)}),
        train=dev,
    )
    few = table(systems=("a",), speakers=3)
    refused("both classes without the speakers of folds", um.calibrate, few, folds=3)
    refused("between 0 and 1|prior", um.calibrate, one, train=one_dev, prior=0.0)
    refused("3 or more", um.calibrate, one, folds=2)


def test_systems_by_other_names_are_taken_in_order_and_that_is_said():
    scores, dev = table(), table(1, prefix="d")
    renamed = replace(dev, systems={f"dev-{name}": s for name, s in dev.systems.items()})
    made, same = um.fuse(scores, train=renamed), um.fuse(scores, train=dev)
    np.testing.assert_array_equal(made.scores.scores(), same.scores.scores())
    assert any("a as dev-a, b as dev-b" in notice.sentence for notice in made.notices)
