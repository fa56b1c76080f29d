"""Numbers of a forensic validation against their definitions, written out trial by trial."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from tests.engine.test_fusion import table
from tests.helpers.notices import lines_of
from tests.helpers.populations import speakers_with_noise

import unmask as um
from unmask.engine import CalibratedScores, curves, weighted_line
from unmask.engine.validation import TEN, _standard_error
from unmask.errors import InputError

LOG2 = float(np.log10(2))


def value(target, nontarget, metric, unit="log10"):
    return um.forensic((target, nontarget), scores_are=unit, replicates=0)[metric].value


def brute_dev_pav(target, nontarget):
    """PAV over all trials, a point for each, and the area summed over a fine grid (log10 LRs)."""
    scores = np.concatenate([target, nontarget])
    label = np.repeat([1.0, 0.0], [len(target), len(nontarget)])
    x, group = np.unique(scores, return_inverse=True)
    weight = np.bincount(group)
    share = np.bincount(group, label) / weight
    fitted = isotonic_regression(share, weights=weight).x
    with np.errstate(divide="ignore"):
        y = np.log10(fitted / (1 - fitted)) - np.log10(len(target) / len(nontarget))
    kept = np.isfinite(y)
    x, y = x[kept], y[kept]
    area = 0.0
    for (a, b), (c, d) in zip(pairwise(x), pairwise(y), strict=True):
        share = (np.arange(4000) + 0.5) / 4000
        area += np.abs(c + (d - c) * share - a - (b - a) * share).mean() * (b - a)
    return area / (x[-1] - x[0])


def brute_bounds(target, nontarget):
    """ELUB by evaluating P_miss + θ·P_fa at one threshold after another (log10 LRs)."""
    target, nontarget = np.append(target, -np.inf), np.append(nontarget, np.inf)

    def supported(step):
        odds = 10 ** (step / 100)
        llr = step * 0.01 * TEN / TEN
        p_miss, p_fa = (target < llr - 1e-12).mean(), (nontarget >= llr - 1e-12).mean()
        return p_miss + odds * p_fa <= min(1.0, odds)

    ends = []
    for sign in (-1, 1):
        step = 0
        while supported(step + sign) and supported(0):
            step += sign
        ends.append(step / 100)
    return ends


def drawn(seed, tied=False):
    rng = np.random.default_rng(seed)
    target, nontarget = rng.normal(1.2, 1, 60), rng.normal(-1.4, 1.1, 170)
    return (target.round(1), nontarget.round(1)) if tied else (target, nontarget)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_dev_pav_and_bounds_equal_their_definitions(seed, tied):
    target, nontarget = drawn(seed, tied)
    result = um.forensic((target, nontarget), scores_are="log10", replicates=0)
    assert result["dev_pav"].value == pytest.approx(brute_dev_pav(target, nontarget), abs=2e-5)
    found = [result[name].value for name in ("lr_smallest", "lr_largest")]
    assert found == pytest.approx(brute_bounds(target, nontarget), abs=1e-9)


def test_dev_pav_of_calibrated_lrs_is_0_and_of_shifted_ones_the_shift():
    # LRs ½ and 2 that are what they say: 1 target and 2 nontargets, 2 targets and 1 nontarget.
    target, nontarget = np.array([-1, 1, 1]) * LOG2, np.array([-1, -1, 1]) * LOG2
    assert value(target, nontarget, "dev_pav") == pytest.approx(0.0, abs=1e-12)
    for shift in (0.7, -2.0):
        moved = value(target + shift, nontarget + shift, "dev_pav")
        assert moved == pytest.approx(abs(shift))
    # Overstated twice: |d| falls from LOG2 to 0 and rises again, half of it on average.
    assert value(2 * target, 2 * nontarget, "dev_pav") == pytest.approx(LOG2 / 2)


def test_dev_pav_of_one_point_of_none_and_of_infinite_lrs():
    assert value([0.4, 3.0], [0.4, -2.0], "dev_pav") == pytest.approx(0.4)
    assert np.isnan(value([1.0, 2.0], [-1.0, -2.0], "dev_pav"))
    assert value([-np.inf, 1.0], [-1.0, 0.5], "dev_pav") == np.inf
    assert value([0.2, 1.0], [np.inf, -1.0], "dev_pav") == np.inf
    # Infinite LRs that PAV agrees with are left out.
    assert value([0.4, np.inf], [0.4, -np.inf], "dev_pav") == pytest.approx(0.4)


def test_c_llr_splits_and_misleading_evidence_is_counted():
    target, nontarget = [1.5, 0.0, -0.3, -1.1], [0.0, -1.0, -2.0, 0.9, 0.2]
    result = um.forensic((target, nontarget), scores_are="log10", replicates=0)
    natural = np.multiply(target, TEN), np.multiply(nontarget, TEN)
    assert result["cllr"].value == pytest.approx(um.cllr(*natural))
    assert result["cllr_cal"].value == pytest.approx(um.cllr(*natural) - um.min_cllr(*natural))
    assert result["misleading_same"].value == 2 / 4
    assert result["misleading_different"].value == 2 / 5
    assert result["strongest_same"].value == pytest.approx(-1.1)
    assert result["strongest_different"].value == pytest.approx(0.9)
    perfect = um.forensic(([1.0, 2.0], [-1.0, -2.0]), scores_are="ln", replicates=0)
    assert np.isnan(perfect["strongest_same"].value)
    assert perfect["strongest_same"].no_interval == "no trial misleads"


def test_lrs_beyond_the_bounds_are_counted(sentences):
    target, nontarget = drawn(2)
    result = um.forensic((target, nontarget), scores_are="log10", replicates=0)
    low, high = (result[name].value for name in ("lr_smallest", "lr_largest"))
    every = np.concatenate([target, nontarget])
    expected = int((every < low - 0.01).sum() + (every > high + 0.01).sum())
    assert result.beyond_bounds == expected > 0
    (note,) = [note for note in um.document(result).notes if "ELUB" in note]
    assert f"{expected} of 230 " in note
    sentences.check(note)
    within = um.forensic(([LOG2] * 30, [-LOG2] * 30), scores_are="log10", replicates=0)
    assert within.beyond_bounds == 0
    assert any("none of 60 here" in note for note in um.document(within).notes)
    infinite = um.forensic(([np.inf, 2.0, 3.0], [-1.0, -2.0]), scores_are="log10", replicates=0)
    assert infinite.beyond_bounds >= 1
    assert any("∞" in note for note in um.document(infinite).notes)


def test_comparisons_are_counted_by_speaker(sentences):
    sides = [um.Ids.from_strings(list(names)) for names in ("aabbc", "abbca")]
    scores = um.Scores(
        None,
        None,
        np.array([1, 0, 1, 0, 0], np.int8),
        enrol_speaker=sides[0],
        test_speaker=sides[1],
        systems={"column": np.array([1.0, -1.0, 2.0, -0.5, 0.5])},
    )
    result = um.forensic(scores, scores_are="ln", replicates=0)
    assert result.by_speaker == [("a", 1, 2), ("b", 1, 2), ("c", 0, 2)]
    assert (result.column, result.scores_are) == ("column", "ln")
    sentences.check(*(note for note in um.document(result).notes if "column column" in note))
    unnamed = um.forensic(([1.0, 2.0], [-1.0]), scores_are="ln", replicates=0)
    assert unnamed.by_speaker == []


def test_a_calibration_loss_at_the_top_of_its_interval_is_explained():
    for seed, is_at_the_top in ((2, True), (1, False)):
        scores = table(seed, systems=("a",))
        result = um.forensic(scores, calibrate=True, replicates=60)
        made, value = result["cllr_cal"].interval, result["cllr_cal"].value
        assert (value >= made.low + 0.9 * (made.high - made.low)) == is_at_the_top
        notes = um.document(result).notes
        assert any("the top of" in note for note in notes) == is_at_the_top


def test_lrs_that_say_nothing_support_no_lr():
    result = um.forensic(([1.0, -1.0], [1.0, -1.0]), scores_are="ln", replicates=0)
    ends = result["lr_smallest"].value, result["lr_largest"].value
    assert ends == (0.0, 0.0)
    assert not np.signbit(ends).any()
    # Separated: one more trial would be needed on either side.
    many = um.forensic((np.full(99, 9.0), np.full(999, -9.0)), scores_are="log10", replicates=0)
    limits = many["lr_smallest"].value, many["lr_largest"].value
    assert limits == pytest.approx((-1.99, 2.99), abs=0.011)


@pytest.mark.parametrize("above", [False, True])
def test_tippett_counts(above):
    target, nontarget = drawn(1, tied=True)
    target = np.append(target, [-np.inf, np.inf])
    made = curves.tippett(target * TEN, nontarget * TEN, above=above)
    assert np.allclose(made.same, np.unique(target[np.isfinite(target)]))
    for i, x in enumerate(made.same):
        below = (target <= x + 1e-9).mean()
        from_above = (target >= x - 1e-9).mean()
        assert made.same_share[i if above else i + 1] == pytest.approx(
            from_above if above else below
        )
    for i, x in enumerate(made.different):
        assert made.different_share[i] == pytest.approx((nontarget >= x - 1e-9).mean())
    assert made.same_share[-1 if above else 0] == pytest.approx(1 / 62)
    assert made.different_share[-1] == 0
    assert made.infinite == 2


def test_a_tippett_plot_of_many_lrs_keeps_its_ends():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(2, 1, 30_000), rng.normal(-2, 1, 90_000)
    made = curves.tippett(target, nontarget)
    assert made.same.size <= 1001
    assert made.same[[0, -1]] == pytest.approx(np.array([target.min(), target.max()]) / TEN)
    assert made.same_share[[0, -1]].tolist() == [0, 1]
    assert made.same_share[1] == 1 / 30_000


def people(count, seed=0):
    """All pairs of four utterances of some people."""
    rng = np.random.default_rng(seed)
    voice, speaker = speakers_with_noise(count, 4, 3, noise=0.6, means=rng)
    one, other = np.triu_indices(speaker.size, 1)
    names = np.array([f"s{k:02d}" for k in range(count)])[speaker]
    both = um.Ids.from_strings(np.concatenate([names[one], names[other]]))
    return um.Scores(
        None,
        None,
        (speaker[one] == speaker[other]).astype(np.int8),
        enrol_speaker=both.take(np.arange(one.size)),
        test_speaker=both.take(np.arange(one.size, 2 * one.size)),
        systems={"system": -((voice[one] - voice[other]) ** 2).sum(axis=1)},
    )


def test_the_error_of_a_case_follows_from_how_each_speaker_moves_its_lr():
    scores = people(9)
    made = um.calibrate(scores)
    assert isinstance(made, CalibratedScores)
    at, enrol, test = -2.0, scores.enrol_speaker.codes, scores.test_speaker.codes

    def llr(times):
        weight = np.where(enrol == test, times[enrol], times[enrol] * times[test])
        own = weight * scores.is_target
        return weighted_line(scores.scores(), own, weight - own).apply(np.array([at]))[0]

    step, moved = 1e-4, []
    for k in range(9):
        more = np.ones(9)
        more[k] += step
        moved.append((llr(more) - llr(np.ones(9))) / step)
    error, units, method = _standard_error(scores, made.map, at)
    assert error == pytest.approx(np.sqrt(np.sum(np.square(moved)) * 9 / 8), rel=1e-3)
    assert (units, method) == (9, "speaker")
    case = um.forensic(scores, calibrate=True, case=at)["case_lr"]
    assert case.value == pytest.approx(llr(np.ones(9)) / TEN)
    assert case.interval.low < case.value < case.interval.high


def test_a_case_beyond_the_data_is_said_and_lrs_as_given_have_no_interval(sentences):
    with pytest.warns(um.UnmaskWarning):
        result = um.forensic(people(9), calibrate=True, case=9.0, replicates=20)
    sentences.check(*lines_of(result, "beyond-bounds"))
    given = um.forensic(drawn(0), scores_are="log10", case=1.5, replicates=0)["case_lr"]
    assert (given.value, given.interval) == (pytest.approx(1.5), None)


def test_inverted_lrs_are_said_first_and_in_the_words_of_the_field(sentences):
    target, nontarget = drawn(1)
    result = um.forensic((nontarget, target), scores_are="ln", replicates=0)
    turned = 100 * um.eer(target, nontarget)
    assert result.notices[0].code == "inverted"
    assert f"EER {turned:.2f} %" in result.warnings[0]
    sentences.check(result.warnings[0])
    assert um.render(um.document(result)).startswith(f"warning: {result.warnings[0]}")


def test_lrs_are_told_and_drawn_in_the_words_of_the_field(sentences):
    result = um.forensic(drawn(1), scores_are="ln", replicates=0)
    sentences.check(um.document(result).notes[0].partition(",")[0])  # then a digest
    figures = result.figures()
    said = " ".join(f"{one.title} {one.caption}" for one in figures.values())
    for word in ("Oracle", "oracle", "nontarget", "{"):
        assert word not in said
    drawn_rows = figures["ece_profile"].spec()["datasets"].values()
    lines = {row.get("line") for rows in drawn_rows for row in rows}
    assert lines == {"after PAV", "LRs as they are"}


def test_units_are_the_same_lrs_and_wrong_ones_are_said(sentences):
    target, nontarget = drawn(3)
    numbers = [
        um.forensic(pair, scores_are=unit, replicates=0)
        for unit, pair in (
            ("log10", (target, nontarget)),
            ("ln", (target * TEN, nontarget * TEN)),
            ("lr", (10**target, 10**nontarget)),
        )
    ]
    for one in numbers[1:]:
        for a, b in zip(numbers[0].estimates, one.estimates, strict=True):
            assert a.value == pytest.approx(b.value, abs=1e-9)
    rng = np.random.default_rng(0)  # natural-log LRs of N(±2, 4), which are calibrated
    llrs = rng.normal(2, 2, 4000), rng.normal(-2, 2, 4000)
    assert not um.forensic(llrs, scores_are="ln", replicates=0).notices
    with pytest.warns(um.UnmaskWarning, match="--scores-are ln") as warned:
        um.forensic(llrs, scores_are="log10", replicates=0)
    sentences.check(*(str(one.message) for one in warned))
    with pytest.warns(um.UnmaskWarning, match="--scores-are log10") as warned:
        um.forensic((llrs[0] / TEN, llrs[1] / TEN), scores_are="ln", replicates=0)
    sentences.check(*(str(one.message) for one in warned))


def test_what_is_no_lr_is_refused(sentences):
    with pytest.raises(InputError) as error:
        um.forensic(drawn(0))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.forensic(([3.0, -1.0], [0.5, 0.0]), scores_are="lr")
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="NaN"):
        um.forensic(([3.0, np.nan], [0.5, 0.0]), scores_are="ln")
    with pytest.raises(InputError) as error:
        um.forensic(drawn(0), scores_are="nat")
    sentences.check(str(error.value))


def test_intervals_hold_their_numbers_and_stay_in_range():
    result = um.forensic(people(12), calibrate=True, replicates=60)
    for one in result.estimates:
        if one.interval is not None:
            assert one.interval.low <= one.value <= one.interval.high
            assert one.interval.low < one.interval.high
    assert result["lr_smallest"].interval.high <= 0 <= result["lr_largest"].interval.low
    assert "cross-fitted" in result.calibration
