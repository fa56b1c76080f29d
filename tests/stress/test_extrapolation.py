from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtr
from scipy.stats import genpareto
from studies.coverage.known_voices import Population
from studies.sholokhov2020 import Cells, fit_paper, training_cells

from unmask.base import pareto_tail
from unmask.errors import InputError
from unmask.run import progress
from unmask.stress import (
    Extrapolation,
    PairScores,
    compare_models,
    extrapolate,
    truth_of,
    worst_case_false_alarms,
)
from unmask.stress.extrapolation.base import (
    EDGES,
    FIT_EDGES,
    MeasuredFloor,
    Model,
    StartValues,
    Warp,
    closest_mass,
    eliminate,
    training_surface,
)
from unmask.stress.extrapolation.choose import CANDIDATES
from unmask.stress.extrapolation.models import (
    MODELS,
    Parametric,
    fit_model,
    location_table,
    plda_table,
    score_moments,
)
from unmask.stress.impostors.rates import Rates
from unmask.stress.impostors.uncertainty import CrossFitted


@pytest.fixture(scope="module")
def pairs() -> PairScores:
    return Population.synthetic(120, utterances=10, seed=3).pairs()


@pytest.fixture(scope="module")
def surface(pairs: PairScores) -> Rates:
    return training_surface(CrossFitted.of(pairs, split=False), pairs.max_count)


@pytest.fixture(scope="module")
def moments(pairs: PairScores) -> StartValues:
    return StartValues.of(pairs)


@pytest.fixture(scope="module")
def fitted(pairs: PairScores) -> Extrapolation:
    return extrapolate(pairs, model="ls-target+", groups=6, split=False)


def test_the_mass_of_the_closest_sums_to_one_for_any_count() -> None:
    mass = closest_mass([1, 1000, 10**9])
    np.testing.assert_allclose(mass.sum(axis=1), 1.0)
    middle = (EDGES[1:] + EDGES[:-1]) / 2
    # Mean of the largest of 1000 standard normal draws: 3.2414 (tables of order statistics).
    assert mass[1] @ middle == pytest.approx(3.2414, abs=2e-3)


def test_a_gaussian_location_scale_model_has_a_closed_form_at_one_impostor() -> None:
    given = {"log_scale": np.log(0.7), "log_scale_spread": -9.0}
    axis = np.linspace(-3, 3, 13)
    table = location_table(given, np.array([1]), axis)
    np.testing.assert_allclose(table[0], ndtr(-axis / np.sqrt(1 + 0.49)), atol=2e-4)


def test_the_grid_of_the_fit_is_as_good_as_that_of_predictions() -> None:
    given = {"log_scale": -0.3, "log_scale_spread": -2.0, "target_spread": 0.1, "bend": -0.05}
    axis = np.linspace(-3, 6, 30)
    counts = np.array([1, 30, 1000])
    fine = location_table(given, counts, axis)
    coarse = location_table(given, counts, axis, FIT_EDGES)
    assert np.abs(fine - coarse).max() < 5e-4


def test_plda_by_saddle_point_agrees_with_drawn_impostors() -> None:
    rng = np.random.default_rng(0)
    within = np.full(10, 1.5)
    t = 1 + within
    a = 1 / (t**2 - 1)
    b = a / t
    draws, count = 3000, 50
    enrolled = rng.normal(size=(draws, 10))
    test = rng.normal(size=(draws, count, 10))
    similarity = np.einsum("id,ijd->ij", a * enrolled, test) - 0.5 * (test**2 @ b)
    closest = test[np.arange(draws), similarity.argmax(axis=1)]
    noise = np.sqrt(within)
    left = enrolled[:, None] + noise * rng.normal(size=(draws, 40, 10))
    right = closest[:, None] + noise * rng.normal(size=(draws, 40, 10))
    scores = (left * right) @ a - 0.5 * (left**2 + right**2) @ b
    centre, unit = score_moments(within)
    axis = np.linspace(-2, 3, 11)
    drawn = (scores[:, :, None] > centre + unit * axis).mean(axis=(0, 1))
    table = plda_table(within, np.array([count]), axis, EDGES)[0]
    assert np.abs(drawn - table).max() < 0.015


def test_the_pareto_tail_finds_shape_and_scale() -> None:
    share = (np.arange(20_000) + 0.5) / 20_000
    for shape in (-0.2, 0.0, 0.15):
        excess = genpareto.ppf(share, shape, scale=2.0)
        outcome = pareto_tail(excess)
        assert outcome == pytest.approx((shape, 2.0), abs=0.03)


def test_the_warping_is_found_and_stays_monotone() -> None:
    axis = np.linspace(-6, 6, 100)
    shifts = np.array([0.0, 1.0, 2.0])[:, None]
    table = ndtr(shifts - axis)
    thresholds = np.linspace(-1, 1, 9)
    true = thresholds**3 + thresholds
    values, rates = eliminate(table, axis, ndtr(shifts - true), np.ones(3))
    np.testing.assert_allclose(values, true, atol=1e-4)
    np.testing.assert_allclose(rates, ndtr(shifts - true), atol=1e-5)
    warp = Warp.through(thresholds, values[::-1], np.ones(9))
    wide = warp(np.linspace(-3, 3, 50))
    assert (np.diff(wide) > 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_monotone_bounded_and_survives_a_file(
    name: str,
    pairs: PairScores,
    surface: Rates,
    moments: StartValues,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unmask.stress.extrapolation.models._ENROLLED", 16)
    slow = name.startswith(("plda", "ls-target", "ls-family"))
    start = Parametric(name, {}, None) if slow else None
    model = fit_model(name, surface, moments, start=start, brief=slow)
    seen = (float(pairs.scores.min()), float(pairs.scores.max()))
    nothing = MeasuredFloor(np.array(seen), np.zeros(2), np.zeros((0, 2)), 1.0)
    result = Extrapolation(model, nothing, 119, seen, 0)
    counts = [1, 2, 10, 119, 1000, 10**5, 10**9]
    thresholds = np.linspace(seen[0] - 0.2, 1.2, 40)
    rates = result.predict(counts, thresholds)
    assert rates.shape == (7, 40)
    assert (np.diff(rates, axis=0) >= 0).all()
    assert (np.diff(rates, axis=1) <= 0).all()
    assert rates.min() >= 0
    assert rates.max() <= 1
    again = Extrapolation.load(result.save(tmp_path / "model.npz"))
    assert again.name == name
    np.testing.assert_array_equal(again.predict(counts, thresholds), rates)


def test_a_location_scale_population_is_recovered() -> None:
    rng = np.random.default_rng(5)
    effect = np.exp(0.15 * rng.normal(size=(150, 1)))
    locations = effect * rng.normal(size=(150, 150))
    scores = locations[:, :, None] + 0.6 * rng.normal(size=(150, 150, 12))
    pairs = PairScores.from_array(scores)
    table = compare_models(pairs, models=("ls+", "ls-target+"))
    assert table["ls-target+"].mae_hard < 0.004
    assert table["ls-target+"].mae_hard < table["carry-forward"].mae_hard / 4


def test_a_plda_population_is_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unmask.stress.extrapolation.models._ENROLLED", 32)
    rng = np.random.default_rng(6)
    within = np.full(10, 1.2)
    t = 1 + within
    a = 1 / (t**2 - 1)
    b = a / t
    speakers = rng.normal(size=(200, 10))
    noisy = speakers[:, None] + np.sqrt(within) * rng.normal(size=(200, 12, 10))
    own = -0.5 * (noisy**2 @ b)
    scores = np.einsum("ikd,jkd->ijk", a * noisy, noisy) + own[:, None] + own[None]
    pairs = PairScores.from_array(scores, present=~np.eye(200, dtype=bool))
    table = compare_models(pairs, models=("plda+",))
    assert table["plda+"].mae_hard < 0.005
    assert table["plda+"].mae_hard < table["carry-forward"].mae_hard / 2


def test_one_impostor_is_the_false_alarm_rate_within_the_fit(
    pairs: PairScores, fitted: Extrapolation
) -> None:
    thresholds = np.linspace(-0.5, 0.9, 30)
    exact = worst_case_false_alarms(pairs, thresholds, counts=[1, 119])
    assert np.abs(fitted.predict([1, 119], thresholds) - exact).max() < 0.015


def test_a_fit_repeats_itself_and_brings_intervals(
    pairs: PairScores, fitted: Extrapolation
) -> None:
    seen: list[tuple[int, int]] = []
    with progress(lambda *now: seen.append(now)):
        again = extrapolate(pairs, model="ls-target+", groups=0, split=False)
    counts, thresholds = [10, 10**4], [0.4, 0.5, 0.6]
    first = fitted.predict_interval(counts, thresholds)
    np.testing.assert_array_equal(first.values, again.predict(counts, thresholds))
    assert (first.low < first.values).all()
    assert (first.values < first.high).all()
    assert first.level == 0.95
    assert len(first.estimates) == 6
    assert seen[-1][0] == seen[-1][1]


def test_the_threshold_for_a_rate_gives_that_rate(fitted: Extrapolation) -> None:
    threshold = fitted.threshold_for(0.01, 10**5)
    rate = fitted.predict([10**5], [threshold])[0, 0]
    assert rate <= 0.01
    assert rate == pytest.approx(0.01, rel=0.02)


def test_auto_is_the_mean_of_the_models_that_fit_about_as_well(
    pairs: PairScores, tmp_path: Path
) -> None:
    chosen = extrapolate(pairs, groups=0, split=False)
    assert set(chosen.errors) == set(CANDIDATES)
    levels = np.linspace(0.5, 0.8, 7)
    far = chosen.predict_interval([10**7], levels)
    assert set(far.rivals) <= set(CANDIDATES)
    if len(far.rivals) > 1:
        np.testing.assert_allclose(far.values, np.mean(list(far.rivals.values()), axis=0))
    assert (far.spread_low <= far.values).all()
    assert (far.values <= far.spread_high).all()
    assert np.isnan(far.low).all()
    again = Extrapolation.load(chosen.save(tmp_path / "auto.npz"))
    assert again.name == chosen.name
    np.testing.assert_array_equal(again.measured.rates(levels), chosen.measured.rates(levels))
    np.testing.assert_array_equal(again.predict([10**7], levels), far.values)


def test_the_reach_is_told_for_named_models_and_only_where_it_is_far(
    fitted: Extrapolation,
    sentences,
) -> None:
    near = fitted.predict_interval([119, 1190], [0.4, 0.5])
    assert near.warnings == ()
    (warning,) = fitted.predict_interval([1200], [0.4, 0.5]).warnings
    sentences.check(warning)


def test_the_interval_grows_with_the_reach_and_holds_the_models(fitted: Extrapolation) -> None:
    far = fitted.predict_interval([119, 1190, 11_900], [0.45])
    odds = np.log([far.low, far.values, far.high]) - np.log1p(
        -np.array([far.low, far.values, far.high])
    )
    width = (odds[2] - odds[0])[:, 0]
    assert width[0] < width[1] < width[2]
    assert (far.low <= far.spread_low).all()
    assert (far.spread_high <= far.high).all()
    narrower = fitted.predict_interval([1190], [0.45], level=0.9)
    assert narrower.high[0, 0] < far.high[1, 0]


def test_ends_rise_with_the_voices_and_fall_with_the_threshold(fitted: Extrapolation) -> None:
    counts, levels = [30, 119, 1000, 10**5], np.linspace(0.0, 1.5, 40)
    outcome = fitted.predict_interval(counts, levels)
    for end in (outcome.low, outcome.values, outcome.high):
        assert (np.diff(end, axis=0) >= 0).all()
        assert (np.diff(end, axis=1) <= 0).all()
    some = fitted.predict_interval(counts, levels[10:20])
    assert (outcome.high[:, 10:20] <= some.high + 1e-12).all()
    assert ((outcome.low <= outcome.values) & (outcome.values <= outcome.high)).all()


@given(
    seed=st.integers(0, 10**6),
    cases=st.floats(5, 500),
    level=st.sampled_from([0.9, 0.95, 0.99]),
    most=st.integers(3, 400),
)
def test_no_end_of_more_voices_lies_below_the_measured_one(
    seed: int, cases: float, level: float, most: int
) -> None:
    """P_FA^N rises with N: so do both ends, whatever the model says."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-3, 5, 20)

    def drawn(scale: float) -> Parametric:
        numbers = {
            "location": scale * rng.normal(),
            "log_spread": scale * rng.normal(),
            "log_scale": -0.5 + scale * rng.normal(),
            "log_scale_spread": -2.0,
        }
        return Parametric("ls", numbers, None)

    measured = MeasuredFloor(
        axis,
        ndtr(rng.normal(1, 1) - axis) * rng.choice([0.0, 0.05, 1.0]),
        ndtr(rng.normal(1, 1, (8, 1)) - axis),
        cases,
    )
    models = tuple(drawn(0.1) for _ in range(8))
    known = drawn(0.8), measured, most, (-3.0, 5.0), 0
    fitted = Extrapolation(*known, replicates=models, rivals=(drawn(0.3),))
    counts = np.array([1, most - 1, most, most + 1, 2 * most, 10**6])
    levels = np.sort(rng.uniform(-4, 6, 9))
    outcome = fitted.predict_interval(counts, levels, level=level)
    for end in (outcome.low, outcome.values, outcome.high):
        assert (np.diff(end, axis=0) >= 0).all()
        assert (np.diff(end, axis=1) <= 0).all()
    assert ((outcome.low <= outcome.values) & (outcome.values <= outcome.high)).all()
    low, high = measured.ends(levels, level)
    assert (outcome.low[2:] >= low - 1e-15).all()
    assert (outcome.values[2:] >= measured.rates(levels) - 1e-15).all()
    assert (outcome.high[2:] >= high - 1e-15).all()


def test_above_every_score_the_upper_end_is_that_of_no_case_in_so_many(
    fitted: Extrapolation,
) -> None:
    top = fitted.thresholds[1]
    low, high = fitted.measured.ends(np.array([top, top + 1]), 0.99)
    np.testing.assert_array_equal(low, 0.0)
    np.testing.assert_allclose(high, 1 - 0.005 ** (1 / 120), rtol=1e-6)
    far = fitted.predict_interval([119, 10**5], [50.0], level=0.99)
    assert far.high.min() >= high[1] - 1e-12
    assert fitted.threshold_for(0.01, 1000, level=0.99) == np.inf


def test_the_safe_threshold_keeps_the_upper_end_to_the_rate(fitted: Extrapolation) -> None:
    plain = fitted.threshold_for(0.1, 1000)
    safe = fitted.threshold_for(0.1, 1000, level=0.95)
    assert safe > plain
    there = fitted.predict_interval([1000], [safe], level=0.95)
    assert there.high[0, 0] == pytest.approx(0.1, rel=0.05)


def test_families_of_voices_are_found_and_raise_the_far_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unmask.stress.extrapolation.choose.CANDIDATES", ("ls-target+",))
    fits: dict[tuple[str, int], Model] = {}

    def fit_once(name: str, surface: Rates, *rest: Any, **start: Any) -> Model:
        key = name, surface.counts.size
        return fits.get(key) or fits.setdefault(key, fit_model(name, surface, *rest, **start))

    monkeypatch.setattr("unmask.stress.extrapolation.choose.fit_model", fit_once)
    rng = np.random.default_rng(4)
    speakers, dimension = 160, 24
    family = rng.normal(size=(speakers // 2, dimension))[np.arange(speakers) % (speakers // 2)]
    centres = np.sqrt(0.8) * family + np.sqrt(0.2) * rng.normal(size=(speakers, dimension))
    alone = rng.normal(size=(speakers, dimension))
    kept = np.arange(speakers) % (speakers // 2) < 12
    centres = np.where(kept[:, None], centres, alone)
    noisy = centres[:, None] + 0.8 * rng.normal(size=(speakers, 10, dimension))
    unit = noisy / np.linalg.norm(noisy, axis=-1, keepdims=True)
    scores = np.einsum("ild,jld->ijl", unit, unit)
    pairs = PairScores.from_array(scores, present=~np.eye(speakers, dtype=bool))
    outcome = extrapolate(pairs, groups=0)
    assert outcome.name == "ls-family+"
    assert any(note.code == "families" for note in outcome.notices)
    plain = extrapolate(pairs, groups=0, model="ls-target+")
    assert any(note.code == "families" for note in plain.notices)


def test_the_truth_of_a_population_is_the_exact_surface_of_all_its_pairs() -> None:
    population = Population.synthetic(60, utterances=4, seed=1)
    thresholds = np.linspace(-0.5, 0.9, 11)
    truth = population.truth(thresholds, counts=[6, 59], targets=60)
    exact = worst_case_false_alarms(population.pairs(), thresholds, counts=[6, 59])
    np.testing.assert_allclose(truth, exact, atol=1e-6)


def test_the_generative_model_is_consistent_on_its_own_family() -> None:
    rng = np.random.default_rng(8)
    for size in (4, 18, 324):
        speakers = 60 if size == 324 else 200
        place = rng.normal(1.0, 0.5, (speakers, speakers, 1))
        scale = np.exp(-0.7 + 0.4 * rng.normal(size=place.shape))
        scores = place + scale * rng.normal(size=(speakers, speakers, size))
        outcome = fit_model(
            "ls-generative",
            Rates(np.array([1]), np.zeros(1), np.zeros((1, 1))),
            StartValues.of(PairScores.from_array(scores)),
        )
        assert isinstance(outcome, Parametric)
        given = outcome.given
        assert given["location"] == pytest.approx(1.0, abs=0.03)
        assert given["log_spread"] == pytest.approx(np.log(0.5), abs=0.04)
        assert given["log_scale"] + given["log_spread"] == pytest.approx(-0.7, abs=0.03)
        assert given["log_scale_spread"] == pytest.approx(np.log(0.4), abs=0.06)


def test_a_proxy_chooses_for_the_extrapolation_too(
    pairs: PairScores,
    monkeypatch: pytest.MonkeyPatch,
    sentences,
) -> None:
    monkeypatch.setattr("unmask.stress.extrapolation.choose.CANDIDATES", ("ls+",))
    monkeypatch.setattr("unmask.stress.extrapolation.choose.FAMILY", "ls+")
    rng = np.random.default_rng(3)
    noisy = np.zeros((120, 120))
    noisy[pairs.target, pairs.impostor] = pairs.similarity
    noisy += pairs.similarity.std() * rng.normal(size=noisy.shape)
    own, weak = (
        extrapolate(pairs, model="ls+", groups=0, proxy=proxy).predict([1000], [0.5])[0, 0]
        for proxy in (None, noisy)
    )
    ordinary = worst_case_false_alarms(pairs, [0.5], counts=[1])[0, 0]
    assert 2 * ordinary < weak < own / 1.5
    with pytest.raises(InputError) as error:
        extrapolate(pairs, model="gpd", proxy=noisy)
    sentences.check(str(error.value))


def test_far_extrapolation_is_close_to_a_known_population() -> None:
    population = Population.synthetic(6000, utterances=8, seed=2)
    seen = population.pairs(300)
    thresholds = np.linspace(seen.scores.min(), seen.scores.max(), 60)
    values = population.truth(thresholds, counts=[5999], targets=300)
    judged = truth_of(seen, thresholds, [5999], values)
    table = compare_models(seen, models=("ls-target+",), truth=judged, split=False)
    assert table.train_count == 299
    assert table["ls-target+"].mae < 0.01
    assert table["carry-forward"].mae_hard > 5 * table["ls-target+"].mae_hard
    assert "ls-target+" in str(table)


def test_bad_requests_are_told_in_one_line(
    pairs: PairScores,
    fitted: Extrapolation,
    tmp_path: Path,
    sentences,
) -> None:
    with pytest.raises(InputError) as error:
        extrapolate(pairs, model="magic")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        extrapolate(pairs, max_count=200)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        fitted.predict([0], [0.5])
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="target rate"):
        fitted.threshold_for(1.5, 100)
    other = tmp_path / "other.npz"
    np.savez(other, a=np.ones(2))
    with pytest.raises(InputError, match="expected a saved extrapolation"):
        Extrapolation.load(other)
    with pytest.raises(InputError, match="expected a saved extrapolation"):
        Extrapolation.load(tmp_path / "none.npz")


@pytest.fixture(scope="module")
def papers_cells(pairs: PairScores) -> Iterator[Cells]:
    """Drawn once for all trainings of the paper."""
    cells = training_cells(CrossFitted.of(pairs, split=False), 119, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.sholokhov2020.training_cells", lambda *_: cells)
        yield cells


def trained(surface: Rates, moments: StartValues, name: str, steps: int) -> np.ndarray:
    unused = CrossFitted.of(Population.synthetic(4, utterances=2).pairs(), split=False)
    model = fit_paper(unused, surface, moments, model=name, seed=0, steps=steps)
    return model.rates(np.array([30, 119]), np.linspace(0.0, 0.7, 15))


@pytest.mark.usefixtures("papers_cells")
@pytest.mark.parametrize("name", ["ls+", "ls-cdf"])
def test_the_papers_training_reduces_its_error(
    name: str, pairs: PairScores, surface: Rates, moments: StartValues
) -> None:
    pytest.importorskip("torch")
    exact = worst_case_false_alarms(pairs, np.linspace(0.0, 0.7, 15), counts=[30, 119])
    first, again, last = (trained(surface, moments, name, steps) for steps in (2, 2, 80))
    assert np.abs(last - exact).mean() < np.abs(first - exact).mean()
    np.testing.assert_array_equal(first, again)


def test_the_papers_cells_are_drawn_evenly_with_their_rates(
    pairs: PairScores, papers_cells: Cells
) -> None:
    counts, thresholds, rates = papers_cells
    assert counts.min() == 1
    assert counts.max() == 119
    assert counts.mean() == pytest.approx(60, abs=1)
    span = pairs.scores.min(), pairs.scores.max()
    assert thresholds.mean() == pytest.approx(np.mean(span), abs=0.02)
    some = slice(0, 6)
    wanted = [
        worst_case_false_alarms(pairs, [t], counts=[n])[0, 0]
        for n, t in zip(counts[some], thresholds[some], strict=True)
    ]
    np.testing.assert_allclose(rates[some], wanted, atol=0.01)


@pytest.mark.usefixtures("papers_cells")
def test_the_general_base_starts_as_the_gaussian_one(surface: Rates, moments: StartValues) -> None:
    pytest.importorskip("torch")
    general, plain = (trained(surface, moments, name, 1) for name in ("ls-cdf", "ls"))
    np.testing.assert_allclose(general, plain, atol=0.03)


def test_the_papers_training_needs_torch_and_a_model_it_knows(
    pairs: PairScores,
    surface: Rates,
    moments: StartValues,
    monkeypatch: pytest.MonkeyPatch,
    sentences,
) -> None:
    crossed = CrossFitted.of(pairs, split=False)
    with pytest.raises(InputError) as error:
        fit_paper(crossed, surface, moments, model="plda+", seed=0)
    sentences.check(str(error.value))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as error:
        fit_paper(crossed, surface, moments, model="ls", seed=0)
    sentences.check(str(error.value))
