"""Every cell against the plain metric on its own subset, which is what a C-P map means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtr, ndtri

import unmask as um
from unmask.stress.cpmap.kernels import Listed, combined, eer, prefix_sizes


def brute_force(target, nontarget, target_hardness, nontarget_hardness, grid, metric):
    """Python's own stable sort of (hardness, score) and the plain metric, cell by cell."""
    targets = [s for _, s in sorted(zip(target_hardness, target, strict=True))]
    nontargets = [
        -s for _, s in sorted((-h, -s) for h, s in zip(nontarget_hardness, nontarget, strict=True))
    ]
    values = np.empty((grid, grid))
    for j in range(grid):
        for i in range(grid):
            a = math.ceil(Fraction(i + 1, grid) * len(targets))
            b = math.ceil(Fraction(j + 1, grid) * len(nontargets))
            values[j, i] = metric(targets[:a], nontargets[:b])
    return values


def raw_eer(target, nontarget):
    return um.Roc.from_scores(target, nontarget).eer(estimator="raw")


few = st.integers(-3, 3).map(float)
many = st.floats(-5, 5, width=16)


@st.composite
def trials(draw):
    """Scores and hardness of both classes, with few values (many ties) or many."""
    value, hard = draw(st.sampled_from([(few, few), (few, many), (many, few), (many, many)]))
    sizes = draw(st.tuples(st.integers(1, 25), st.integers(1, 25)))
    return tuple(
        np.array(draw(st.lists(kind, min_size=size, max_size=size)))
        for kind, size in zip((value, value, hard, hard), sizes + sizes, strict=True)
    )


@settings(max_examples=75, deadline=None)
@given(trials(), st.integers(1, 7), st.sampled_from([0.01, 0.3, 0.5, 0.9]))
def test_every_cell_is_the_plain_metric_on_its_subset(data, grid, p_target):
    target, nontarget, target_hardness, nontarget_hardness = data
    hardness = {"target_hardness": target_hardness, "nontarget_hardness": nontarget_hardness}
    eer = um.cp_map(target, nontarget, grid=grid, **hardness)
    expected = brute_force(*data, grid, raw_eer)
    np.testing.assert_allclose(eer.values, expected, atol=1e-12)
    cost = um.CpMetric("min_dcf", p_target)
    dcf = um.cp_map(target, nontarget, grid=grid, metric=cost, **hardness)
    expected = brute_force(
        *data, grid, lambda t, n: um.Roc.from_scores(t, n).min_dcf(p_target=p_target)
    )
    np.testing.assert_allclose(dcf.values, expected, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(trials(), st.integers(1, 9))
def test_without_reference_the_own_score_is_the_hardness(data, grid):
    target, nontarget = data[:2]
    own = um.cp_map(target, nontarget, grid=grid)
    expected = brute_force(target, nontarget, target, nontarget, grid, raw_eer)
    np.testing.assert_allclose(own.values, expected, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(trials(), st.integers(0, 1000))
def test_the_order_of_the_input_does_not_matter(data, seed):
    rng = np.random.default_rng(seed)
    t, n = rng.permutation(data[0].size), rng.permutation(data[1].size)
    maps = [
        um.cp_map(
            data[0][a],
            data[1][b],
            target_hardness=data[2][a],
            nontarget_hardness=data[3][b],
            grid=7,
        )
        for a, b in ((slice(None), slice(None)), (t, n))
    ]
    np.testing.assert_array_equal(maps[0].values, maps[1].values)
    np.testing.assert_array_equal(maps[0].target_place[t], maps[1].target_place)


@settings(max_examples=30, deadline=None)
@given(trials())
def test_strictly_rising_maps_of_score_and_hardness_change_nothing(data):
    plain = um.cp_map(data[0], data[1], target_hardness=data[2], nontarget_hardness=data[3], grid=6)
    bent = um.cp_map(
        np.exp(data[0]),
        np.exp(data[1]),
        target_hardness=data[2] ** 3,
        nontarget_hardness=data[3] ** 3,
        grid=6,
    )
    np.testing.assert_array_equal(plain.values, bent.values)


@pytest.fixture
def systems():
    rng = np.random.default_rng(5)
    truth = rng.normal(2, 1, 700), rng.normal(0, 1, 900)
    return [tuple(c + rng.normal(0, s, c.size) for c in truth) for s in (0.2, 0.8)]


def test_cell_one_one_is_the_plain_metric(systems):
    target, nontarget = systems[0]
    assert um.cp_map(target, nontarget).full == pytest.approx(raw_eer(target, nontarget), abs=1e-14)
    for p in (0.01, 0.2):
        cost = um.CpMetric("min_dcf", p, c_miss=2.0)
        cp = um.cp_map(target, nontarget, metric=cost)
        expected = um.min_dcf(target, nontarget, p_target=p, c_miss=2.0)
        assert cp.full == pytest.approx(expected, abs=1e-14)


def test_inverted_systems_reach_one_hundred_percent():
    target, nontarget = np.arange(50.0), np.arange(50.0) + 60
    np.testing.assert_array_equal(um.cp_map(target, nontarget, grid=10).values, 1.0)
    np.testing.assert_array_equal(um.cp_map(target, nontarget, grid=10, metric="min_dcf").values, 1)
    np.testing.assert_array_equal(um.cp_map(nontarget, target, grid=10).values, 0.0)


def test_hard_cells_of_a_good_system_pass_one_half(systems):
    cp = um.cp_map(*systems[0], grid=20)
    assert cp.values[0, 0] == 1.0
    assert cp.full < 0.2


def test_one_score_for_all_gives_one_half():
    np.testing.assert_array_equal(um.cp_map(np.zeros(40), np.zeros(50), grid=5).values, 0.5)


def test_own_hardness_of_gaussian_scores_follows_the_closed_form():
    """The hardest x of N(d, 1) misses min(1, Φ(τ − d)/x), nontargets likewise."""
    quantiles = (np.arange(200_000) + 0.5) / 200_000
    cp = um.cp_map(ndtri(quantiles) + 2.0, ndtri(quantiles), grid=10)
    tau = np.linspace(-6, 8, 200_001)
    for i, j in ((9, 9), (4, 9), (9, 4), (2, 6), (4, 4)):
        miss = np.minimum(1, ndtr(tau - 2.0) / cp.x[i])
        alarm = np.minimum(1, ndtr(-tau) / cp.y[j])
        expected = miss[np.argmin(np.abs(miss - alarm))]
        assert cp.values[j, i] == pytest.approx(expected, abs=2e-4)


def test_axes_and_counts_are_exact():
    cp = um.cp_map(np.arange(70.0), np.arange(33.0), grid=(7, 100))
    assert cp.values.shape == (100, 7)
    np.testing.assert_array_equal(cp.targets, np.arange(10, 71, 10))
    np.testing.assert_array_equal(cp.nontargets, [math.ceil(33 * i / 100) for i in range(1, 101)])
    np.testing.assert_allclose(cp.x, np.arange(1, 8) / 7)
    assert not cp.well_defined[:, :2].any()
    assert cp.well_defined[-1, 2:].all()
    np.testing.assert_array_equal(cp.well_defined[:, -1], cp.nontargets >= 30)


def test_prefix_sizes_do_not_round_up():
    assert prefix_sizes(100, 100).tolist() == list(range(1, 101))
    assert prefix_sizes(10**9, 1000)[6] == 7 * 10**6
    assert prefix_sizes(3, 10).tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]


def test_several_references_are_combined_by_mean_or_rank(systems):
    (target, nontarget), (t2, n2) = systems
    t3, n3 = 100 * t2 + 3, 100 * n2 + 3
    by_mean = um.cp_map(
        target,
        nontarget,
        target_hardness=[t2, t3],
        nontarget_hardness=[n2, n3],
        combine="mean",
    )
    one = um.cp_map(target, nontarget, target_hardness=t2, nontarget_hardness=n2)
    np.testing.assert_array_equal(by_mean.values, one.values)
    by_rank = um.cp_map(
        target,
        nontarget,
        target_hardness=[t2, 1000 * target],
        nontarget_hardness=np.stack([n2, 1000 * nontarget]),
        combine="rank",
    )
    ranks = [
        (np.argsort(np.argsort(a)) + np.argsort(np.argsort(b))).astype(float)
        for a, b in ((t2, target), (n2, nontarget))
    ]
    expected = um.cp_map(target, nontarget, target_hardness=ranks[0], nontarget_hardness=ranks[1])
    np.testing.assert_array_equal(by_rank.values, expected.values)
    assert (one.hardness, by_rank.hardness) == ("reference", "rank(references)")


def test_equal_reference_scores_share_their_mean_rank():
    rows = [np.array([3.0, 1, 1, 2]), np.array([0.0, 0, 5, 5])]
    hardness = combined(rows, combine="rank", name="target")
    np.testing.assert_array_equal(hardness, [(4 + 1.5) / 2, 1.5, (1.5 + 3.5) / 2, (3 + 3.5) / 2])


def test_hardness_may_be_a_list_of_numbers():
    cp = um.cp_map([1.0, 2.0], [0.0], target_hardness=[2, 1], nontarget_hardness=[0], grid=2)
    assert cp.targets.tolist() == [1, 2]


def test_infinite_scores_are_ordinary_scores():
    target, nontarget = np.array([-np.inf, 1.0, np.inf]), np.array([-np.inf, 0.0, np.inf])
    cp = um.cp_map(target, nontarget, grid=3)
    assert cp.full == pytest.approx(raw_eer(target, nontarget))


def test_summary_numbers(systems):
    cp = um.cp_map(*systems[0], grid=50, system="a")
    summary = cp.summary(below=0.2)
    values = cp.values[cp.well_defined]
    assert summary.full == cp.values[-1, -1]
    assert summary.mean == pytest.approx(values.mean())
    assert summary.share_below == pytest.approx(np.mean(values < 0.2))
    assert summary.hardest_decile == cp.at(0.1, 0.1)
    assert (summary.cells, summary.well_defined) == (2500, values.size)
    names = [e.metric for e in cp.estimates_below(0.2)]
    assert names == ["eer", "cp_mean", "cp_share_below", "cp_hardest_decile"]
    assert "hardness:own|grid:50x50" in cp.estimates[1].signature
    assert dict(cp.estimates[3].n) == {"target": 70, "nontarget": 90}


def test_hardest_decile_does_not_depend_on_the_grid(systems):
    deciles = {um.cp_map(*systems[0], grid=g).hardest_decile for g in (3, 10, 100)}
    assert len(deciles) == 1


def test_no_well_defined_cell_gives_nan():
    summary = um.cp_map(np.arange(5.0), np.arange(5.0), grid=2).summary()
    assert math.isnan(summary.mean)
    assert math.isnan(summary.share_below)


def test_cells_as_a_table(systems):
    cp = um.cp_map(*systems[0], grid=(4, 3))
    cells = cp.cells()
    assert cells.columns == ["x", "y", "targets", "nontargets", "eer", "well_defined"]
    assert cells.row(5)[:5] == (0.5, 2 / 3, 350, 600, cp.values[1, 1])


def test_a_large_grid_matches_a_small_one(systems):
    small, large = (um.cp_map(*systems[0], grid=g, metric="min_dcf") for g in (10, 200))
    np.testing.assert_array_equal(large.values[19::20, 19::20], small.values)


@pytest.mark.parametrize(
    "change",
    [
        {"grid": 0},
        {"grid": 1001},
        {"grid": 2.5},
        {"grid": (3, 4, 5)},
        {"metric": "cllr"},
        {"combine": "median"},
        {"target_hardness": np.zeros(3)},
        {"nontarget_hardness": [np.zeros(5), np.zeros(4)]},
        {"nontarget_hardness": [np.nan] * 5},
        {"target_hardness": ["a"] * 4},
        {"target_hardness": []},
        {"target_hardness": [[np.inf] * 4, [-np.inf] * 4]},
        {"target": []},
        {"nontarget": []},
    ],
)
def test_bad_input_is_told_in_one_line(change, sentences):
    given = {"target": np.arange(4.0), "nontarget": np.arange(5.0), "combine": "mean"}
    given["target_hardness"] = given["target"] if "combine" in change else None
    given |= change
    with pytest.raises(um.InputError) as caught:
        um.cp_map(given.pop("target"), given.pop("nontarget"), **given)
    sentences.check(str(caught.value))
    assert "\n" not in str(caught.value)
    with pytest.raises(um.InputError, match="p_target"):
        um.CpMetric("min_dcf", p_target=1.0)


@pytest.mark.parametrize("digits", [0, 1, 3])
def test_tables_of_prefixes_count_as_wavelets_do(digits):
    rng = np.random.default_rng(digits)
    target, nontarget = (rng.normal(m, 1, n).round(digits) for m, n in ((1.5, 40), (0, 900)))
    listed = Listed.of((target, nontarget), (rng.normal(size=40), None), "rank")
    for times in (None, (rng.poisson(1.0, 40), rng.poisson(1.0, 900))):
        sizes = listed.sizes if times is None else tuple(int(one.sum()) for one in times)
        cells = [rng.integers(1, size + 1, 300) for size in sizes]
        assert listed.is_tabular(cells[0][:20], cells[1][:20])
        wavelets = eer(listed.trials(times), *cells)
        assert listed.eer(*cells, times).tolist() == wavelets.tolist()
