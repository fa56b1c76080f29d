from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.helpers.cpmap import roadmap

import unmask as um
from unmask.base import Sampling
from unmask.engine import Units
from unmask.run import progress, run_on
from unmask.stress import (
    CpConfig,
    CpMetric,
    cp_intervals,
)
from unmask.stress.cpmap.comparison import proportions, relative_change
from unmask.stress.cpmap.intervals import Listed, MapPlan, trial_times
from unmask.stress.cpmap.systems import enrolment_fixed, full_cross_pairing


@pytest.fixture
def population():
    """Two systems on one list of trials of 12 speakers; the second is the better one."""
    rng = np.random.default_rng(11)
    speakers = 12
    target_speaker = np.repeat(np.arange(speakers), 30)
    a, b = (part.ravel() for part in np.meshgrid(np.arange(speakers), np.arange(speakers)))
    pair = np.repeat(np.flatnonzero(a < b), 10)
    truth = rng.normal(2.5, 1, target_speaker.size), rng.normal(0, 1, pair.size)
    systems = {
        name: tuple(c + rng.normal(0, noise, c.size) for c in truth)
        for name, noise in (("first", 1.5), ("second", 0.3))
    }
    return systems, Units.speakers(target_speaker, a[pair], b[pair]), truth


def maps_of(population, **options):
    systems, _, truth = population
    return [
        um.cp_map(
            *scores,
            system=name,
            target_hardness=truth[0],
            nontarget_hardness=truth[1],
            **options,
        )
        for name, scores in systems.items()
    ]


def test_relative_change_at_zero():
    reference = np.array([0.5, 0.4, 0.0, 0.0, 0.2])
    test = np.array([0.25, 0.5, 0.0, 0.1, 0.2])
    rcr = relative_change(reference, test)
    np.testing.assert_allclose(rcr, [0.5, -0.25, 0.0, -np.inf, 0.0])
    assert proportions(rcr, np.ones(5, bool)) == (0.2, 0.4, 0.4)
    assert proportions(rcr, np.array([True, False, True, False, False])) == (0.5, 0.5, 0.0)


def test_a_change_within_the_tolerance_is_a_tie_and_not_a_win():
    rcr = np.array([1e-5, 1.01e-5, -1e-5, -1.01e-5])
    assert proportions(rcr, np.ones(4, bool)) == (0.25, 0.5, 0.25)


def test_a_map_against_itself_is_a_tie(population):
    first, _ = maps_of(population)
    delta = um.delta_cp_map(first, first)
    assert (delta.win, delta.tie, delta.lose) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("metric", ["eer", "min_dcf"])
def test_proportions_sum_to_one_and_turn_around(population, metric):
    first, second = maps_of(population, metric=metric, grid=30)
    there, back = um.delta_cp_map(first, second), um.delta_cp_map(second, first)
    assert there.win + there.tie + there.lose == pytest.approx(1, abs=1e-12)
    assert there.win > 0.5
    assert (there.win, there.lose) == (back.lose, back.win)
    assert there.warnings == ()
    assert there.estimates[0].value == there.win
    assert there.estimates[0].n["cells"] == first.well_defined.sum()


def test_maps_in_private_orders_are_refused(population, sentences):
    systems = population[0]
    maps = [um.cp_map(*scores, system=name, grid=5) for name, scores in systems.items()]
    with pytest.raises(um.InputError) as error:
        um.delta_cp_map(*maps)
    sentences.check(str(error.value))


@pytest.mark.parametrize("rounded", [False, True])
def test_the_order_counts_and_not_its_name(population, rounded):
    """A map by its own scores compares with a map of another system that these scores order."""
    first, second = (
        tuple(np.round(c) if rounded else c for c in pair) for pair in population[0].values()
    )
    own = um.cp_map(*first, system="first", grid=5)
    by_first = {"target_hardness": first[0], "nontarget_hardness": first[1]}
    other = um.cp_map(*second, system="second", grid=5, **by_first)
    named = um.cp_map(*first, system="first", grid=5, **by_first)
    assert own.hardness != other.hardness
    assert own.order == other.order == named.order
    result, expected = um.delta_cp_map(own, other), um.delta_cp_map(named, other)
    np.testing.assert_array_equal(result.rcr, expected.rcr)
    rescaled = {name: 7 * column**3 - 2 for name, column in by_first.items()}
    assert um.cp_map(*second, grid=5, **rescaled).order == own.order


def test_one_swapped_trial_is_another_order(population, sentences):
    first = population[0]["first"]
    by = np.argsort(np.argsort(first[0])).astype(float)
    swapped = by.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    tied = np.where(by == 5, 4, by)
    maps = [
        um.cp_map(*first, target_hardness=h, nontarget_hardness=first[1], grid=5)
        for h in (by, swapped, tied)
    ]
    for other in maps[1:]:
        with pytest.raises(um.InputError) as error:
            um.delta_cp_map(maps[0], other)
        sentences.check(str(error.value))


def test_a_compared_system_that_orders_is_warned_about(population):
    systems, _, truth = population
    first, second = systems.values()
    for hardness, favoured in [
        ([first], "second"),
        ([second], "first"),
        ([first, truth], "second"),
        ([tuple(2 * c + 1 for c in first)], "second"),
    ]:
        given = {
            "target_hardness": [pair[0] for pair in hardness],
            "nontarget_hardness": [pair[1] for pair in hardness],
        }
        maps = [um.cp_map(*pair, system=n, grid=5, **given) for n, pair in systems.items()]
        (warning,) = um.delta_cp_map(*maps).warnings
        assert f"favours {favoured}" in warning
        assert "87 %" in warning
    for hardness in ([first, second], [truth], [first, second, truth]):
        given = {
            "target_hardness": [pair[0] for pair in hardness],
            "nontarget_hardness": [pair[1] for pair in hardness],
        }
        maps = [um.cp_map(*pair, system=n, grid=5, **given) for n, pair in systems.items()]
        assert um.delta_cp_map(*maps).warnings == ()


def test_the_one_that_did_not_order_wins_and_mean_ranks_favour_none():
    """Exchangeable systems: 14 % EER each; the mean over populations of cells won by the second."""
    rng = np.random.default_rng(5)
    won = {"first": [], "both": []}
    for _ in range(12):
        truth = rng.normal(2.2, 0.8, 1500), rng.normal(0, 0.8, 1500)
        first, second = (tuple(c + rng.normal(0, 0.7, c.size) for c in truth) for _ in range(2))
        for name, order in (("first", [first]), ("both", [first, second])):
            given = {
                "target_hardness": [pair[0] for pair in order],
                "nontarget_hardness": [pair[1] for pair in order],
            }
            maps = [um.cp_map(*pair, grid=20, **given) for pair in (first, second)]
            won[name].append(um.delta_cp_map(*maps).win)
    assert np.mean(won["first"]) > 0.8
    assert 0.25 < np.mean(won["both"]) < 0.75


def test_many_equally_hard_trials_are_warned_about(population):
    systems, _, truth = population
    coarse = {"target_hardness": np.round(truth[0] / 2), "nontarget_hardness": truth[1]}
    maps = [um.cp_map(*pair, system=n, grid=20, **coarse) for n, pair in systems.items()]
    (warning,) = um.delta_cp_map(*maps).warnings
    assert "equally hard" in warning


@pytest.mark.parametrize("side", ["target_hardness", "nontarget_hardness"])
def test_as_many_equally_hard_trials_as_a_cell_holds_are_no_more_than_that(side):
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 1, 40), rng.normal(0, 1, 40)
    every = {"target_hardness": np.arange(40.0), "nontarget_hardness": np.arange(40.0)}
    for equal, tied in ((4, False), (5, True)):
        some = np.maximum(np.arange(40.0), equal - 1)
        assert um.cp_map(*scores, grid=10, **{**every, side: some}).tied == tied


def test_too_few_trials_leave_the_proportions_undefined(sentences):
    small = um.cp_map(np.arange(9.0), np.arange(9.0), grid=3)
    delta = um.delta_cp_map(small, small)
    assert math.isnan(delta.win)
    assert delta.notices[-1].code == "few-trials"
    sentences.check(delta.warnings[-1])


def test_roadmap_is_maps_and_successive_deltas(population):
    systems, _, truth = population
    options = {"target_hardness": truth[0], "nontarget_hardness": truth[1], "grid": 20}
    chain = {**systems, "third": truth}
    chained = roadmap(chain, **options)
    assert [m.system for m in chained.maps] == list(chain)
    assert chained.levels == (("first",), ("second",), ("third",))
    expected = um.delta_cp_map(*maps_of(population, grid=20))
    np.testing.assert_array_equal(chained.deltas[0].rcr, expected.rcr)


def test_a_roadmap_may_branch(population):
    """Figure 11 of the paper: two systems grow from one."""
    systems, _, truth = population
    tree = roadmap(
        {**systems, "third": truth}, edges=[("first", "second"), ("first", "third")], grid=10
    )
    assert [(d.reference, d.test) for d in tree.deltas] == [("first", "second"), ("first", "third")]
    assert tree.levels == (("first",), ("second", "third"))
    assert tree.deltas[0].warnings == ()


@pytest.mark.parametrize(
    "edges",
    [
        [("first", "second")],
        [("first", "second"), ("third", "second")],
        [("first", "second"), ("second", "first")],
        [("second", "third"), ("third", "second")],
        [("first", "second"), ("first", "second"), ("first", "third")],
        [],
    ],
)
def test_steps_that_are_no_tree_are_refused(population, edges, sentences):
    systems, _, truth = population
    with pytest.raises(um.InputError) as error:
        roadmap({**systems, "third": truth}, edges=edges, grid=4)
    sentences.check(str(error.value))


def test_different_lists_are_refused_with_counts(population, sentences):
    systems, _, _ = population
    first, second = systems.values()
    maps = um.cp_map(*first, grid=5, system="a"), um.cp_map(second[0][1:], second[1], grid=5)
    with pytest.raises(um.InputError) as error:
        um.delta_cp_map(*maps)
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    "options",
    [
        {"grid": 6},
        {"grid": 5, "metric": "min_dcf"},
        {"grid": 5, "target_hardness": np.arange(360.0)},
    ],
)
def test_maps_that_do_not_compare_are_refused(population, options, sentences):
    first = next(iter(population[0].values()))
    with pytest.raises(um.InputError) as error:
        um.delta_cp_map(um.cp_map(*first, grid=5), um.cp_map(*first, **options))
    sentences.check(str(error.value))


def compared(reference, test, units, **options):
    (delta,) = cp_intervals([reference, test], units, compared=[(0, 1)], **options).deltas
    return delta


def intervals(population, *, replicates=60, level=0.95, seed=3, **options):
    systems, units, truth = population
    sampling = Sampling(replicates, level, seed)
    given = {"grid": 8, "hardness": truth, "sampling": sampling} | options
    return compared(*systems.values(), units, **given)


def test_intervals_hold_the_proportions(population):
    delta = um.delta_cp_map(*maps_of(population, grid=8))
    result = intervals(population)
    for outcome in ("win", "tie", "lose"):
        interval = getattr(result, outcome)
        assert interval.low <= getattr(delta, outcome) <= interval.high
        assert interval.method == "speaker,bands of cells"
    assert result.grid == (8, 8)
    with_intervals = replace(delta, intervals=result)
    assert with_intervals.estimates[0].interval == result.win
    assert "ci_grid:8x8" in with_intervals.estimates[0].signature


def test_a_wider_tolerance_leaves_less_that_is_surely_won_or_lost(population):
    narrow, wide = (intervals(population, tolerance=tolerance) for tolerance in (0.05, 0.2))
    assert wide.win.low < narrow.win.low
    assert wide.lose.low < narrow.lose.low
    assert wide.tie.high > narrow.tie.high


@pytest.mark.parametrize("options", [{"workers": 1}, {"on": "processes", "workers": 2}])
def test_intervals_do_not_depend_on_the_place(population, options):
    seen = []
    with run_on(**options), progress(lambda *numbers: seen.append(numbers)):
        result = intervals(population)
    assert result == intervals(population)
    assert seen[-1] == (15, 15)
    assert intervals(population, metric=CpMetric("min_dcf")) != result


def test_a_replicate_is_the_map_of_the_repeated_trials(population):
    """One replicate by hand: trials repeated by their weights, mapped by the public function."""
    systems, units, truth = population
    times = units.draw(3, 0).astype(int)
    t = times[units.target]
    n = times[units.nontarget_first] * times[units.nontarget_second]
    half = CpConfig("half", np.arange(t.size) % 2 == 0, np.arange(n.size) % 3 == 0)
    listed = tuple(Listed.of(pair, truth, "rank") for pair in systems.values())
    plan = MapPlan(listed, ((0, 1),), (half,), (8, 8), CpMetric(), 1e-5)
    result = plan.of((t, n))
    for i, (target, nontarget) in enumerate(systems.values()):
        repeated = np.repeat(target, t), np.repeat(nontarget, n)
        by_hand = um.cp_map(
            *repeated,
            target_hardness=np.repeat(truth[0], t),
            nontarget_hardness=np.repeat(truth[1], n),
            grid=8,
        )
        np.testing.assert_array_equal(result["cells"][i, :-1], by_hand.values.ravel())
        assert result["cells"][i, -1] == by_hand.hardest_decile
        position = um.stress.cp_position(
            by_hand, *repeated, np.repeat(half.target, t), np.repeat(half.nontarget, n)
        )
        assert np.minimum(result["positions"][i, 0], 1) == pytest.approx(
            [position.x, position.y, position.value]
        )


def test_shares_are_those_of_the_ends_of_every_cell(population):
    """The band of each cell from replicates kept one by one."""
    systems, units, truth = population
    result = intervals(population, replicates=40)
    listed = tuple(Listed.of(pair, truth, "rank") for pair in systems.values())
    plan = MapPlan(listed, (), (), (8, 8), CpMetric(), 1e-5)
    fields = []
    for index in range(40):
        times = units.draw(3, index).astype(int)
        cells = plan.of(trial_times(units, times))["cells"][:, :-1]
        fields.append(cells[0] - cells[1])
    centre = np.subtract(*(cp.values.ravel() for cp in maps_of(population, grid=8)))
    away = stats.t.ppf(0.975, 11) * np.sqrt(12 / 11) * np.std(fields, axis=0, ddof=1)
    assert result.win.low == pytest.approx((centre - away > 1e-6).mean())
    assert result.win.high == pytest.approx((centre + away > 1e-6).mean())
    assert result.lose.low == pytest.approx((centre + away < -1e-6).mean())


def test_no_interval_of_a_share_has_zero_width():
    """A system far better in every cell, and a system against itself."""
    rng = np.random.default_rng(1)
    speaker = np.repeat(np.arange(10), 12)
    a, b = (np.repeat(part, 6) for part in np.triu_indices(10, 1))
    poor = rng.normal(1, 1, speaker.size), rng.normal(0, 1, a.size)
    good = poor[0] + 1.5, poor[1]
    units = Units.speakers(speaker, a, b)
    result = compared(poor, good, units, grid=5, sampling=Sampling(30))
    assert result.win.low < result.win.high == 1.0
    assert result.lose.low == 0.0 < result.lose.high
    clear = compared(poor, (poor[0] + 0.8, poor[1]), units, grid=2, sampling=Sampling(30))
    assert (clear.win.low, clear.win.high) == (0.75, 1.0)
    same = compared(poor, poor, units, grid=5, sampling=Sampling(30))
    assert 0.5 < same.tie.low < same.tie.high == 1.0
    assert 0.0 == same.win.low < same.win.high < 0.5


def test_without_speakers_trials_are_drawn(population):
    systems, _, truth = population
    result = intervals((systems, Units.trials(truth[0].size, truth[1].size), truth))
    assert result.win.method == "trial,bands of cells"


def test_one_speaker_has_no_interval():
    scores = np.arange(40.0), np.arange(40.0)
    zeros = np.zeros(40, int)
    result = cp_intervals([scores, scores], Units.speakers(zeros, zeros, zeros), compared=[(0, 1)])
    assert math.isnan(result.deltas[0].win.low)
    assert result.undefined == 1000


def test_a_pair_within_one_speaker_weighs_once(population):
    systems, _, truth = population
    t, n = truth[0].size, truth[1].size
    same = Units.speakers(np.arange(t) % 6, np.arange(n) % 6, np.arange(n) % 6)
    one = Units("speaker", same.target, same.nontarget_first, None, same.strata)
    assert intervals((systems, same, truth)) == intervals((systems, one, truth))


def test_units_must_fit_the_trials(population, sentences):
    systems, _, truth = population
    with pytest.raises(um.InputError) as error:
        intervals((systems, Units.trials(5, 6), truth))
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        intervals(population, replicates=1)
    sentences.check(str(error.value))


def test_the_ranks_of_both_systems_order_a_comparison(population):
    systems, units, _ = population
    both = list(systems.values())
    asked = {"compared": [(0, 1)], "grid": 4, "sampling": Sampling(5)}
    hardness = tuple([pair[k] for pair in both] for k in (0, 1))
    named = cp_intervals(both, units, **asked, hardness=hardness)
    assert cp_intervals(both, units, **asked) == named
    alone = cp_intervals([systems["first"]], units, grid=4, sampling=Sampling(5))
    assert alone.deltas == ()
    assert alone.maps[0].full.low < alone.maps[0].full.high


def test_a_prefix_lands_on_its_own_cell(population):
    first, _ = maps_of(population, grid=10)
    systems, _, truth = population
    hard_t = np.argsort(np.argsort(truth[0])) < first.targets[2]
    hard_n = np.argsort(np.argsort(-truth[1])) < first.nontargets[6]
    position = um.stress.cp_position(first, *systems["first"], hard_t, hard_n, name="deployment")
    assert (position.x, position.y) == pytest.approx((0.3, 0.7))
    assert position.value == pytest.approx(first.values[6, 2])
    assert position.cell == first.values[6, 2]
    assert position.gap == pytest.approx(position.value - first.full)
    assert (position.targets, position.nontargets) == (108, 462)
    assert not position.easier


@pytest.mark.parametrize("metric", ["eer", "min_dcf"])
def test_all_trials_stand_in_the_corner(population, metric):
    first, _ = maps_of(population, grid=10, metric=metric)
    scores = population[0]["first"]
    position = um.stress.cp_position(first, *scores, *(np.ones(c.size, bool) for c in scores))
    assert (position.x, position.y) == pytest.approx((1.0, 1.0))
    assert position.cell == first.full
    assert position.value == pytest.approx(first.full, abs=1e-14)
    assert not position.easier


def test_easier_subsets_are_put_at_the_edge_and_marked(population):
    first, _ = maps_of(population, grid=10)
    scores, truth = population[0]["first"], population[2]
    easy = truth[0] > np.quantile(truth[0], 0.1)
    position = um.stress.cp_position(first, *scores, easy, np.ones(truth[1].size, bool))
    assert position.easier
    assert position.placed
    assert position.x == 1.0


@pytest.mark.parametrize(("low", "high"), [(0.4, 0.6), (0.5, 1.0), (0.3, 0.5)])
def test_a_band_of_trials_has_no_position(population, low, high):
    """The mean hardness of a middle band is that of all trials, which it does not resemble."""
    first, _ = maps_of(population, grid=10)
    scores = population[0]["first"]
    band = (first.target_place > low) & (first.target_place < high)
    position = um.stress.cp_position(first, *scores, band, np.ones(scores[1].size, bool))
    assert not position.placed
    assert math.isnan(position.x)
    assert math.isnan(position.cell)
    share = min(1.0, low + high)
    assert position.misfit == pytest.approx(max(low / share, 1 - high / share), abs=0.02)
    assert position.gap == position.value - first.full


def test_bad_subsets_are_refused(population, sentences):
    first, _ = maps_of(population, grid=10)
    scores = population[0]["first"]
    every = [np.ones(c.size, bool) for c in scores]
    with pytest.raises(um.InputError) as error:
        um.stress.cp_position(first, *scores, ~every[0], every[1], name="mine")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.stress.cp_position(first, *scores, every[0], np.arange(3))
    sentences.check(str(error.value))


def test_enrolment_fixed_cross_pairing():
    """Two speakers with utterances 0, 1, 2 and 3, 4, 5: every ordered pair is a trial."""
    enrol, test = (part.ravel() for part in np.meshgrid(np.arange(6), np.arange(6)))
    different = enrol != test
    enrol, test = enrol[different], test[different]
    chosen = enrolment_fixed(enrol, test, enrol // 3)
    kept = {(int(e), int(t)) for e, t in zip(enrol[chosen], test[chosen], strict=True)}
    assert kept == {(e, t) for e in (0, 3) for t in (1, 2, 4, 5)}
    assert full_cross_pairing(enrol, test)
    assert not full_cross_pairing(enrol[chosen], test[chosen])


@pytest.mark.parametrize("turned", [False, True])
def test_enrolment_fixed_in_one_order(turned):
    """6 speakers x 5 utterances, each pair once: the trials of a list in both orders."""
    enrol, test = np.triu_indices(30, 1)
    if turned:
        swap = np.random.default_rng(0).random(enrol.size) < 0.5
        enrol, test = np.where(swap, test, enrol), np.where(swap, enrol, test)
    chosen = enrolment_fixed(enrol, test, enrol // 5)
    same = enrol // 5 == test // 5
    assert (chosen & same).sum() == 6 * 4
    assert (chosen & ~same).sum() == 6 * 5 * 4
    both = np.append(enrol, test), np.append(test, enrol)
    twice = enrolment_fixed(*both, both[0] // 5)
    assert twice.sum() == 6 * 4 + 6 * 5 * 4


def test_the_enrolment_with_most_trials_is_fixed():
    enrol, test = np.array([0, 1, 1, 2]), np.array([5, 5, 6, 5])
    assert enrolment_fixed(enrol, test, np.array([0, 0, 0, 1])).tolist() == [
        False,
        True,
        True,
        True,
    ]
