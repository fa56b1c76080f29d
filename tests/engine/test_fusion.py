"""Calibration and fusion of tables: closed forms, a brute-force optimiser, and who saw whom."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.engine.test_conventions import DATA, needs_data
from tests.helpers.notices import lines_of

import unmask as um
from unmask.engine import fusion, read_map, save_map
from unmask.engine.calibration import logistic, steady_logistic

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
def test_files_that_are_no_maps_are_refused(tmp_path, text, sentences):
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(um.InputError) as error:
        read_map(tmp_path / "map.json")
    sentences.check(str(error.value).partition(" (")[0])  # in brackets: what the parser says


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


def test_systems_by_other_names_are_taken_in_order_and_that_is_said(sentences):
    scores, dev = table(), table(1, prefix="d")
    renamed = replace(dev, systems={f"dev-{name}": s for name, s in dev.systems.items()})
    made, same = um.fuse(scores, train=renamed), um.fuse(scores, train=dev)
    np.testing.assert_array_equal(made.scores.scores(), same.scores.scores())
    sentences.check(*lines_of(made, "by-order"))


def firth(columns, is_target, prior):
    """Slopes and offset that maximise Σ w log p + ½ log det X'WX, by an optimiser without slopes.

    The weights of both classes add up to twice the rarer class, shared as the prior says.
    """
    design = np.column_stack([*columns, np.ones(len(is_target))])
    scale = np.append(design[:, :-1].std(axis=0), 1.0)
    design = design / scale
    targets, nontargets = is_target.sum(), (~is_target).sum()
    shares = np.where(is_target, prior / targets, (1 - prior) / nontargets)
    weight = 2 * min(targets, nontargets) * shares
    log_odds = np.log(prior / (1 - prior))

    def loss(parameters):
        logit = design @ parameters + log_odds
        p = 1 / (1 + np.exp(-logit))
        likelihood = -np.dot(weight, np.logaddexp(0, np.where(is_target, -logit, logit)))
        information = (design * (weight * p * (1 - p))[:, None]).T @ design
        return -likelihood - np.linalg.slogdet(information)[1] / 2

    found = np.zeros(design.shape[1])
    for _ in range(4):
        options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000}
        found = minimize(loss, found, method="Nelder-Mead", options=options).x
    return found / scale


@pytest.mark.parametrize("prior", [0.5, 0.1])
@pytest.mark.parametrize("number", [1, 2])
def test_separable_trials_get_the_map_of_firths_penalty(prior, number):
    rng = np.random.default_rng(number)
    is_target = np.arange(60) < 12
    columns = [np.where(is_target, 3.0, 0.0) + rng.uniform(-1.4, 1.4, 60) for _ in range(number)]
    slopes, offset, is_penalised = steady_logistic(columns, is_target, ~is_target, prior=prior)
    assert is_penalised
    np.testing.assert_allclose([*slopes, offset], firth(columns, is_target, prior), atol=1e-5)


def test_firths_penalty_adds_half_a_trial_to_each_cell():
    """Scores of 0 and 1, classes of one size: the LLR is that of counts with ½ added."""
    score = np.repeat([1.0, 0.0, 0.0], [7, 3, 10])
    is_target = np.arange(20) < 10
    slopes, offset, is_penalised = steady_logistic([score], is_target, ~is_target, prior=0.5)
    assert is_penalised  # 13 trials in the overlap, 20 are needed
    assert offset == pytest.approx(np.log(3.5 / 10.5))
    assert slopes[0] + offset == pytest.approx(np.log(7.5 / 0.5))


def test_maps_of_trials_that_overlap_keep_every_bit():
    scores = table(speakers=20, each=4)
    made = um.fuse(scores, folds=FOLDS)
    is_target = scores.is_target.astype(float)
    slopes, offset, _ = logistic([*scores.systems.values()], is_target, 1 - is_target, prior=0.5)
    assert made.map.weights == tuple(slopes.tolist())
    assert made.map.offset == offset
    assert not made.map.is_penalised
    assert made.notices == ()
    assert made.penalised_fits == made.penalised_trials == 0


def separable_in_a_fold():
    """Two speakers carry all overlap, so maps without them have separable trials to learn from."""
    scores = table(seed=3, speakers=20, systems=("a", "b"))
    hard = (scores.enrol_speaker.codes < 2) | (scores.test_speaker.codes < 2)
    gap = np.where(scores.is_target, 6.0, -6.0)
    spread = np.random.default_rng(0).normal(size=(2, len(scores)))
    systems = {
        name: np.where(hard, 0.3 * gap, gap) + noise
        for name, noise in zip("ab", spread, strict=True)
    }
    return replace(scores, systems=systems)


@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_separable_fold_gives_no_absurd_llr_and_is_counted(names):
    scores = separable_in_a_fold().select_systems(list(names))
    costs = []
    for seed in range(4):
        made = (um.fuse if len(names) > 1 else um.calibrate)(scores, seed=seed)
        llr = made.scores.scores()
        assert np.abs(llr).max() < 100
        costs.append(um.cllr(llr[scores.is_target], llr[scores.is_nontarget]))
        (notice,) = made.notices
        assert notice.code == "penalised-maps"
        assert 0 < made.penalised_fits <= made.fits == 15
        assert 0 < made.penalised_trials <= len(scores)
        for number in (made.penalised_fits, made.penalised_trials, len(scores)):
            assert f"{number:,}" in notice.sentence
    assert max(costs) < 2 * np.median(costs)
    assert np.median(costs) < 2 * min(costs)


@needs_data
def test_cross_fitted_llrs_of_few_good_speakers_do_not_depend_on_the_draw():
    """Ten speakers, of whom most draws leave separable folds; ``studies.crossfits`` has more."""
    scores = um.read_scores(DATA / "scores/librispeech_test-other_pairs_3systems.tsv.gz")
    for names in (["ecapa_cosine"], ["campplus_cosine", "ecapa_cosine"]):
        chosen = scores.select_systems(names)
        eers, costs = [], []
        for seed in range(8):
            made = (um.fuse if len(names) > 1 else um.calibrate)(chosen, seed=seed)
            llr = made.scores.scores()
            assert np.abs(llr).max() < 100
            pair = llr[scores.is_target], llr[scores.is_nontarget]
            eers.append(um.eer(*pair))
            costs.append(um.cllr(*pair))
            assert [notice.code for notice in made.notices] == ["penalised-maps"]
        raw = min(um.eer(scores.targets(name), scores.nontargets(name)) for name in names)
        assert max(eers) <= raw + 1 / scores.is_target.sum()
        assert max(costs) < 2 * np.median(costs) < 4 * min(costs)


def test_a_fusion_that_is_applied_is_compared_with_the_best_where_it_was_fitted(tmp_path):
    dev, scores = table(1, prefix="d"), table()
    noise = np.random.default_rng(0).normal(size=len(dev))
    dev = replace(dev, systems={"a": dev.scores("a") + 3 * noise, "b": dev.scores("b")})
    made = um.fuse(scores, train=dev)
    assert made.best == made.map.best == "b"
    save_map(made.map, tmp_path / "map.json")
    again = um.fuse(scores, train=read_map(tmp_path / "map.json"))
    assert again.best == "b"
    renamed = replace(scores, systems={f"x{name}": s for name, s in scores.systems.items()})
    assert um.fuse(renamed, train=made.map).best == "xb"
    unknown = um.fuse(scores, train=replace(made.map, best=""))
    least = min("ab", key=lambda name: um.min_cllr(scores.targets(name), scores.nontargets(name)))
    assert unknown.best == least
    assert [notice.code for notice in unknown.notices] == ["best-of-these"]


@pytest.mark.parametrize("estimator", ["linear", "isotonic"])
def test_the_map_of_another_system_is_applied_with_a_notice(tmp_path, estimator, sentences):
    scores, dev = table(), table(1, prefix="d")
    made = um.calibrate(
        scores.select_systems(["a"]), estimator=estimator, train=dev.select_systems(["a"])
    )
    save_map(made.map, tmp_path / "map.json")
    map = read_map(tmp_path / "map.json")
    assert um.calibrate(scores.select_systems(["a"]), train=map).notices == ()
    (notice,) = um.calibrate(scores.select_systems(["b"]), train=map).notices
    assert notice.code == "another-system"
    sentences.check(notice.sentence)


def test_the_estimator_in_the_place_of_nontarget_scores_is_named():
    refused("estimator='isotonic'", um.calibrate, table(systems=("a",)), "isotonic")
