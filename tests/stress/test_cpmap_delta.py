from __future__ import annotations

import math

import numpy as np
import pytest

import unmask as um
from unmask.detection.bootstrap import Units
from unmask.stress import enrolment_fixed, full_cross_pairing
from unmask.stress.cpmap_delta import proportions, relative_change


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


def test_own_order_is_warned_about(population):
    systems = population[0]
    maps = [um.cp_map(*scores, system=name, grid=5) for name, scores in systems.items()]
    assert "ordered by their own scores" in um.delta_cp_map(*maps).warnings[0]


def test_too_few_trials_leave_the_proportions_undefined():
    small = um.cp_map(np.arange(9.0), np.arange(9.0), grid=3)
    delta = um.delta_cp_map(small, small)
    assert math.isnan(delta.win)
    assert "no cell has 30 trials" in delta.warnings[-1]


def test_roadmap_is_maps_and_successive_deltas(population):
    systems, _, truth = population
    options = {"target_hardness": truth[0], "nontarget_hardness": truth[1], "grid": 20}
    chain = {**systems, "third": truth}
    roadmap = um.cp_roadmap(chain, **options)
    assert [m.system for m in roadmap.maps] == list(chain)
    assert [(d.reference, d.test) for d in roadmap.deltas] == [
        ("first", "second"),
        ("second", "third"),
    ]
    expected = um.delta_cp_map(*maps_of(population, grid=20))
    np.testing.assert_array_equal(roadmap.deltas[0].rcr, expected.rcr)


def test_different_lists_are_refused_with_counts(population):
    systems, _, _ = population
    first, second = systems.values()
    with pytest.raises(um.InputError, match="b 360 target and 659 nontarget trials"):
        um.cp_roadmap({"a": first, "b": (second[0], second[1][1:])})
    maps = um.cp_map(*first, grid=5, system="a"), um.cp_map(second[0][1:], second[1], grid=5)
    with pytest.raises(um.InputError, match=r"different trial lists: a 360 target .* 359 target"):
        um.delta_cp_map(*maps)
    with pytest.raises(um.InputError, match="expected at least one system"):
        um.cp_roadmap({})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": 6}, "one grid, found 5 x 5 and 6 x 6"),
        ({"grid": 5, "metric": "min_dcf"}, "one metric"),
        ({"grid": 5, "target_hardness": np.arange(360.0)}, "one order of trials"),
    ],
)
def test_maps_that_do_not_compare_are_refused(population, options, message):
    first = next(iter(population[0].values()))
    with pytest.raises(um.InputError, match=message):
        um.delta_cp_map(um.cp_map(*first, grid=5), um.cp_map(*first, **options))


def intervals(population, **options):
    systems, units, truth = population
    given = {"grid": 8, "replicates": 60, "seed": 3} | options
    return um.delta_cp_intervals(
        *systems.values(), units, target_hardness=truth[0], nontarget_hardness=truth[1], **given
    )


def test_intervals_hold_the_proportions(population):
    delta = um.delta_cp_map(*maps_of(population, grid=8))
    found = intervals(population)
    for outcome in ("win", "tie", "lose"):
        interval = getattr(found, outcome)
        assert interval.low <= getattr(delta, outcome) <= interval.high
        assert interval.method == "speaker"
    assert (found.grid, found.undefined) == ((8, 8), 0)
    with_intervals = delta.with_intervals(found)
    assert with_intervals.estimates[0].interval == found.win
    assert "ci_grid:8x8" in with_intervals.estimates[0].signature


def test_intervals_do_not_depend_on_the_workers(population):
    assert intervals(population, workers=1) == intervals(population, workers=3)
    assert intervals(population, metric="min_dcf") != intervals(population)


def test_a_replicate_is_the_map_of_the_repeated_trials(population):
    """One replicate by hand: trials repeated by their weights, mapped by the public function."""
    systems, units, truth = population
    times = units.draw(np.random.default_rng(np.random.SeedSequence(3).spawn(2)[0])).astype(int)
    t = times[units.target]
    n = times[units.nontarget_first] * times[units.nontarget_second]
    maps = [
        um.cp_map(
            np.repeat(target, t),
            np.repeat(nontarget, n),
            target_hardness=np.repeat(truth[0], t),
            nontarget_hardness=np.repeat(truth[1], n),
            grid=8,
        )
        for target, nontarget in systems.values()
    ]
    by_hand = um.delta_cp_map(*maps)
    found = intervals(population, replicates=2)
    assert by_hand.win in (found.win.low, found.win.high)
    assert by_hand.lose in (found.lose.low, found.lose.high)


def test_without_speakers_trials_are_drawn(population):
    systems, _, truth = population
    found = intervals((systems, Units.trials(truth[0].size, truth[1].size), truth))
    assert found.win.method == "trial"


def test_one_speaker_has_no_interval():
    scores = np.arange(40.0), np.arange(40.0)
    zeros = np.zeros(40, int)
    found = um.delta_cp_intervals(scores, scores, Units.speakers(zeros, zeros, zeros))
    assert math.isnan(found.win.low)
    assert found.undefined == 1000


def test_a_pair_within_one_speaker_weighs_once(population):
    systems, _, truth = population
    t, n = truth[0].size, truth[1].size
    same = Units.speakers(np.arange(t) % 6, np.arange(n) % 6, np.arange(n) % 6)
    one = Units("speaker", same.target, same.nontarget_first, None, same.strata)
    assert intervals((systems, same, truth)) == intervals((systems, one, truth))


def test_units_must_fit_the_trials(population):
    systems, _, truth = population
    with pytest.raises(um.InputError, match="known for 5 target and 6 nontarget trials"):
        intervals((systems, Units.trials(5, 6), truth))
    with pytest.raises(um.InputError, match="at least 2 replicates, found 1"):
        intervals(population, replicates=1)


def test_a_prefix_lands_on_its_own_cell(population):
    first, _ = maps_of(population, grid=10)
    systems, _, truth = population
    hard_t = np.argsort(np.argsort(truth[0])) < first.targets[2]
    hard_n = np.argsort(np.argsort(-truth[1])) < first.nontargets[6]
    position = um.cp_position(first, *systems["first"], hard_t, hard_n, name="deployment")
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
    position = um.cp_position(first, *scores, *(np.ones(c.size, bool) for c in scores))
    assert (position.x, position.y) == pytest.approx((1.0, 1.0))
    assert position.cell == first.full
    assert position.value == pytest.approx(first.full, abs=1e-14)
    assert not position.easier


def test_easier_subsets_are_put_at_the_edge_and_marked(population):
    first, _ = maps_of(population, grid=10)
    scores, truth = population[0]["first"], population[2]
    easy = truth[0] > np.median(truth[0])
    position = um.cp_position(first, *scores, easy, np.ones(truth[1].size, bool))
    assert position.easier
    assert position.x == 1.0


def test_bad_subsets_are_refused(population):
    first, _ = maps_of(population, grid=10)
    scores = population[0]["first"]
    every = [np.ones(c.size, bool) for c in scores]
    with pytest.raises(um.InputError, match="no mine target trials"):
        um.cp_position(first, *scores, ~every[0], every[1], name="mine")
    with pytest.raises(um.InputError, match="expected a boolean per trial of the map"):
        um.cp_position(first, *scores, every[0], np.arange(3))


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


def test_the_enrolment_with_most_trials_is_fixed():
    enrol, test = np.array([0, 1, 1, 2]), np.array([5, 5, 6, 5])
    assert enrolment_fixed(enrol, test, np.array([0, 0, 0, 1])).tolist() == [
        False,
        True,
        True,
        True,
    ]
