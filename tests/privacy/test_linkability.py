from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from tests.helpers.notices import lines_of
from tests.helpers.populations import population

import unmask as um
from unmask.base import Sampling
from unmask.errors import InputError
from unmask.privacy.legal import curve as legal_curve, linking as legal_counts, one_minus_eer
from unmask.privacy.legal.curve import mean_variance, risk_interval
from unmask.privacy.legal.from_scores import count_above_in_scores
from unmask.privacy.legal.linking import (
    LinkRows,
    count_above,
    exact_linkability,
    sampled_linkability,
)
from unmask.run import run_on
from unmask.scoring import score_matrix


def brute(scores, true, count):
    """Every subset of N' speakers that holds the true one, one after another, guessing at ties."""
    total, tolerance = 0.0, 1e-6 * np.abs(scores).max(initial=0.0)
    for i, own in enumerate(true):
        others = [j for j in range(scores.shape[1]) if j != own]
        subsets = list(itertools.combinations(others, count - 1))
        for subset in subsets:
            gaps = [scores[i, j] - scores[i, own] for j in subset]
            tied = sum(abs(gap) <= tolerance for gap in gaps)
            if max(gaps, default=0.0) <= tolerance:
                total += 1 / (1 + tied) / len(subsets)
    return total / len(true)


small = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 5), st.integers(2, 7)),
    elements=st.integers(-3, 3),
)


@settings(max_examples=60, deadline=None)
@given(small, st.randoms(use_true_random=False))
def test_closed_form_equals_all_subsets(scores, random):
    scores = scores.astype(float)
    true = [random.randrange(scores.shape[1]) for _ in scores]
    counts = range(1, scores.shape[1] + 1)
    exact = um.linkability_from_scores(scores, true, counts=list(counts))
    assert exact == pytest.approx([brute(scores, true, n) for n in counts], abs=1e-12)


def test_closed_form_equals_binomials_at_the_paper_size():
    others, counts = 22_023, np.array([2, 20, 1_000, 22_024])
    stronger = np.array([0, 1, 17, 4_000, 22_023])
    values = exact_linkability(stronger, others, counts)
    for row, r in zip(values, stronger.tolist(), strict=True):
        for value, n in zip(row, counts.tolist(), strict=True):
            truth = math.comb(others - r, n - 1) / math.comb(others, n - 1)
            assert value == pytest.approx(truth, rel=1e-10, abs=1e-300)


def test_a_tie_is_guessed_and_fails_by_the_rule_of_the_paper():
    scores = np.array([[1.0, 1.0, 0.0]])
    guessed = um.linkability_from_scores(scores, [0], counts=[1, 2, 3])
    assert guessed == pytest.approx([1, 0.75, 0.5])
    counted = count_above_in_scores(scores, [0])
    counts = np.array([1, 2, 3])
    assert counted.strict_outcomes(counts).tolist() == [[1, 0.5, 0]]
    drawn = sampled_linkability(
        counted.at_or_above, 2, counts, draws=400, seed=np.random.SeedSequence(0)
    )
    assert drawn[0] == pytest.approx([1, 0.5, 0], abs=0.1)


@pytest.mark.parametrize(("gap", "tied"), [(0.9e-6, 1), (1.1e-6, 0)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_scores_tie_within_a_millionth_of_the_largest_absolute_score(gap, tied, scale):
    scores = scale * np.array([[0.5, 0.5 - gap, 0.5 + gap, -1.0]])
    counted = count_above_in_scores(scores, [0])
    assert (counted.tied[0], counted.above[0]) == (2 * tied, 1 - tied)
    # The same four pairs as rows: two columns, whose products with (1, 0) are these scores.
    enrol = np.hstack([scores.T, np.ones((4, 1))])
    above = count_above(LinkRows(enrol, np.array([[1.0, 0.0]]), true=np.array([0])))
    assert (above.tied[0], above.above[0]) == (2 * tied, 1 - tied)
    assert above.tolerance == pytest.approx(1e-6 * scale)


def test_infinite_scores_tie_and_pairs_that_cannot_be_chosen_do_not():
    scores = np.array([[np.inf, np.inf, 0.0], [-np.inf, -np.inf, 0.0], [0.5, -np.inf, -np.inf]])
    counted = count_above_in_scores(scores, [0, 0, 0])
    assert counted.above.tolist() == [0, 1, 0]
    assert counted.tied.tolist() == [1, 1, 0]
    allowed = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1]], dtype=bool)
    counted = count_above_in_scores(scores, [0, 0, 0], matches=allowed)
    assert counted.above.tolist() == [0, 2, 0]
    assert counted.tied.tolist() == [0, 0, 0]


def test_guessing_is_one_of_all_candidates_where_all_scores_are_equal():
    """Chance is exactly 1/N' whoever is tied: the mean over all candidates as the right one."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (30, 12)).astype(float)
    counts = np.arange(1, 13)
    outcomes = [
        count_above_in_scores(rows, np.full(30, column)).outcomes(counts) for column in range(12)
    ]
    assert np.mean(outcomes, axis=0) == pytest.approx(np.tile(1 / counts, (30, 1)), abs=1e-12)
    equal = count_above_in_scores(np.ones((1, 12)), [3]).outcomes(counts)
    assert equal[0] == pytest.approx(1 / counts)


def test_five_stored_voices_read_five_times_chance_as_with_a_little_noise(sentences):
    """Twenty people, each with one of five stored voices: guessing among four finds one in four."""
    rng = np.random.default_rng(3)
    stored = rng.normal(size=(5, 16))
    given = np.repeat(np.arange(5), 4)
    names = [f"s{n:02}" for n in np.repeat(np.arange(20), 4)]
    protected = np.repeat(stored[given], 4, axis=0)
    sets = {}
    for noise in (0.0, 0.03):
        voices = protected + noise * rng.normal(size=protected.shape)
        spoken = [f"u{n:02}" for n in range(80)]
        sets[noise] = um.Embeddings(voices, names, spoken)
    half = np.arange(80) % 2 == 0
    exact, noisy = (
        um.linkability(one.select(half), one.select(~half), counts=[10, 20])
        for one in sets.values()
    )
    assert exact.value[1] == pytest.approx(0.25)
    assert exact.permuted.values[0] == pytest.approx(exact.value)
    assert exact.chance == pytest.approx([1 / 10, 1 / 20])
    assert noisy.value[1] == pytest.approx(0.25, abs=0.12)
    assert not exact.at_chance.any()
    assert exact.ranks.identification_rate == pytest.approx(0.25)
    assert exact.ranks.distribution[:5] == pytest.approx([0.25] * 4 + [0])
    (told,) = lines_of(exact, "ties")
    sentences.check(told)
    strict = exact.details(1)[-1]
    assert (strict.metric, strict.value, strict.interval) == ("linkability_strict", 0.0, None)
    assert "ties" not in [one.code for one in noisy.notices]
    paper = um.linkability(sets[0.0].select(half), sets[0.0].select(~half), counts=[20], draws=5)
    assert paper.value[0] == 0
    assert paper.permuted.values[0, 0] == 0
    assert "ties" not in [one.code for one in paper.notices]
    both_ways = um.assess_attackers(
        {"r": um.within_release(sets[0.0])},
        counts=[20],
        lengths=[1],
        metrics=["linkability"],
        replicates=20,
    )
    worst = both_ways.worst("linkability")
    assert worst.estimate.value == pytest.approx(0.25)
    assert worst.estimate.chance == pytest.approx(1 / 20)
    assert worst.luck.p <= 0.05
    assert "ties" in [one.code for one in both_ways.notices]


def test_rounded_scores_keep_what_they_tell():
    """Rounding makes ties, which guessing settles without gain or loss on average."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(400, 40))
    scores[np.arange(400), np.arange(400) % 40] += 2.5
    true = np.arange(400) % 40
    exact, tenths, whole = (
        float(um.linkability_from_scores(some, true, counts=[20])[0])
        for some in (scores, scores.round(1), scores.round())
    )
    assert tenths == pytest.approx(exact, abs=0.01)
    assert whole == pytest.approx(exact, abs=0.06)
    strict = count_above_in_scores(scores.round(), true).strict_outcomes(np.array([20]))
    assert strict.mean() < exact - 0.1


def test_sampled_agrees_with_exact_within_its_error():
    rng = np.random.default_rng(3)
    stronger = rng.integers(0, 60, 4_000)
    counts = np.array([5, 20, 60])
    exact = exact_linkability(stronger, 200, counts).mean(axis=0)
    drawn = sampled_linkability(
        stronger, 200, counts, draws=5, seed=np.random.SeedSequence(0)
    ).mean(axis=0)
    assert np.abs(drawn - exact).max() < 4 * 0.5 / math.sqrt(5 * 4_000)


def test_sampled_agrees_with_lists_really_drawn():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(40, 30)) + 1.5 * np.eye(40, 30)
    true = np.arange(40) % 30
    won = []
    for i, own in enumerate(true):
        others = np.delete(np.arange(30), own)
        for _ in range(400):
            chosen = rng.choice(others, 9, replace=False)
            won.append(scores[i, own] > scores[i, chosen].max())
    exact = um.linkability_from_scores(scores, true, counts=[10])[0]
    assert np.mean(won) == pytest.approx(exact, abs=0.02)


def test_embeddings_equal_scores_by_hand():
    enrol = population(50, 4, noise=1.0, tag="e")
    test = population(50, 4, noise=1.0, tag="t")

    def means(embeddings):
        rows = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
        average = rows.reshape(50, 4, -1).mean(axis=1)
        return average / np.linalg.norm(average, axis=1, keepdims=True)

    scores = means(test) @ means(enrol).T
    result = um.linkability(enrol, test, counts=[2, 10, 50], length=4)
    by_hand = um.linkability_from_scores(scores, np.arange(50), counts=[2, 10, 50])
    assert result.value == pytest.approx(by_hand, abs=1e-12)
    assert result.chance == pytest.approx([1 / 2, 1 / 10, 1 / 50])
    assert (result.low <= result.value).all()
    assert (result.value <= result.high).all()
    assert result.residual == pytest.approx((result.value - result.chance) / (1 - result.chance))
    turned = um.linkability_from_scores(-scores, np.arange(50), counts=[2, 10, 50])
    assert result.negated.value == pytest.approx(turned, abs=1e-12)
    assert result.negated.variant == "negated"
    assert (result.negated.low < result.negated.high).all()
    assert result.negated.per_speaker.shape == (50, 3)


def test_separable_is_one_and_exchangeable_is_chance(sentences):
    enrol, test = (population(80, 2, noise=1e-3, tag=t) for t in "et")
    sure = um.linkability(enrol, test, counts=[2, 20, 80])
    assert sure.value == pytest.approx([1, 1, 1])
    assert not sure.warnings
    enrol, test = (population(500, 1, noise=1.0, signal=0.0, tag=t) for t in "et")
    blind = um.linkability(enrol, test, counts=[2, 20])
    assert blind.value == pytest.approx(blind.chance, abs=0.04)
    assert blind.at_chance.all()
    sentences.check(*lines_of(blind, "chance"))


def test_what_is_exactly_at_chance_is_at_chance():
    enrol, test = (population(12, 2, noise=1.0, tag=t) for t in "et")
    result = replace(um.linkability(enrol, test, counts=[2, 12], replicates=0), permuted=None)
    for moved, expected in ((0.0, True), (-0.01, True), (0.01, False)):
        at = replace(result, value=result.chance + moved).at_chance
        assert at.tolist() == [expected] * 2


@pytest.mark.parametrize("rows", [1, 7, 1280])
@pytest.mark.parametrize("strip", [1, 13, 240])
def test_blocks_do_not_matter_even_with_equal_vectors(rows, strip, monkeypatch):
    monkeypatch.setattr(legal_counts, "_STRIP", strip)
    monkeypatch.setattr(legal_counts, "_DEVICE_SCORES", 60 * strip)
    rng = np.random.default_rng(0)
    enrol = rng.normal(size=(60, 24))
    enrol[30:] = enrol[:30]
    test = enrol[:45] + 0.5 * rng.normal(size=(45, 24))
    test[40] = enrol[40]
    true = np.arange(45)
    above = count_above(LinkRows(enrol, test, true=true), rows=rows)
    exact = np.array([[math.fsum(a * b) for b in enrol] for a in test])
    expected = count_above_in_scores(exact, true)
    assert above.at_or_above.tolist() == expected.at_or_above.tolist()
    assert above.above.tolist() == expected.above.tolist()
    assert above.tolerance == pytest.approx(expected.tolerance, rel=1e-5)
    assert (above.at_or_above[:30] >= 1).all(), "a twin ties with its speaker"
    sides = rng.integers(0, 2, 45), rng.integers(0, 2, 60)
    comparison = LinkRows(enrol, test, sides[::-1], true=true)
    narrowed = count_above(comparison, rows=rows)
    matches = sides[0][:, None] == sides[1]
    expected = count_above_in_scores(exact, true, matches=matches)
    assert narrowed.at_or_above.tolist() == expected.at_or_above.tolist()
    pytest.importorskip("torch")
    with run_on("cuda", devices=["cpu"]):
        elsewhere = count_above(comparison, rows=rows)
    assert elsewhere.at_or_above.tolist() == expected.at_or_above.tolist()
    assert elsewhere.above.tolist() == expected.above.tolist()


def test_side_information_narrows():
    enrol, test = (population(60, 1, noise=1.5, tag=t, columns=True) for t in "et")
    plain = um.linkability(enrol, test, counts=[60])
    known = um.linkability(enrol, test, counts=[60], protocol=um.LegalProtocol(side=["gender"]))
    assert known.value[0] >= plain.value[0]
    assert known.estimates[0].params["side"] == "gender"


def test_side_information_narrows_the_negated_score_as_well(sentences):
    """Where every voice is turned round the negated score is what the score was; a person whose
    gender is another on the other side is refused by name.
    """
    enrol, test = (population(60, 2, noise=1.5, tag=t, columns=True) for t in "et")
    turned = replace(test, vectors=-test.vectors)
    known, other = (
        um.linkability(enrol, one, counts=[2, 20, 60], protocol=um.LegalProtocol(side=["gender"]))
        for one in (test, turned)
    )
    assert other.negated is not None
    assert other.negated.value.tolist() == known.value.tolist()
    swapped = {"f": "m", "m": "f"}
    genders = [swapped[one] for one in test.columns["gender"].to_series()]
    wrong = um.Embeddings(turned.vectors, turned.speakers, columns={"gender": genders})
    with pytest.raises(InputError) as error:
        um.linkability(enrol, wrong, counts=[60], protocol=um.LegalProtocol(side=["gender"]))
    sentences.check(str(error.value))


def test_longer_conversations_and_more_enrolment_link_more():
    enrol, test = (population(60, 6, noise=2.0, tag=t) for t in "et")
    short = um.linkability(
        enrol, test, counts=[60], protocol=um.LegalProtocol(linkability_enrol=1)
    ).value[0]
    every = um.linkability(enrol, test, counts=[60]).value[0]
    long = um.linkability(enrol, test, counts=[60], length=6).value[0]
    assert short < every < long


def test_plda_finds_what_cosine_misses():
    rng = np.random.default_rng(0)
    mixing = np.diag([1.0] * 16)
    noise = np.diag([6.0] * 8 + [0.5] * 8)

    def made(count, first):
        centres = np.random.default_rng(5).normal(size=(first + count, 16))[first:] @ mixing
        vectors = centres[:, None] + rng.normal(size=(count, 6, 16)) @ noise
        return um.Embeddings(vectors.reshape(-1, 16), np.repeat(np.arange(count), 6).astype(str))

    enrol, test, train = made(100, 0), made(100, 0), made(300, 100)
    cosine = um.linkability(enrol, test, counts=[100]).value[0]
    plda = um.Plda.fit(train.normalised())
    informed = um.linkability(enrol, test, counts=[100], backend=plda)
    assert informed.value[0] > 2 * cosine
    assert informed.backend == "plda"
    one = [e.select(np.arange(0, 600, 6)) for e in (enrol, test)]
    scores = score_matrix(plda, *(e.normalised().vectors for e in one))
    result = um.linkability(*one, counts=[7, 100], backend=plda)
    by_hand = um.linkability_from_scores(scores.T, np.arange(100), counts=[7, 100])
    assert result.value == pytest.approx(by_hand, abs=1e-12)


def test_all_conversations_of_a_speaker_count_and_speakers_count_alike():
    enrol = population(40, 2, noise=1.5, tag="e")
    test = population(40, [1, 3, 6, 9] * 10, noise=1.5, tag="t")
    result = um.linkability(enrol, test, counts=[5, 40], length=2)
    assert result.speakers.is_sorted()
    assert result.recordings.tolist() == [
        (0, 1, 3, 4)[int(name[1:]) % 4] for name in result.speakers
    ]
    assert result.left_out == 10
    assert result.per_speaker.mean(axis=0) == pytest.approx(result.value)
    outcomes = exact_linkability(result.above.at_or_above, 39, result.counts)
    for i in range(30):
        assert result.per_speaker[i] == pytest.approx(outcomes[result.owner == i].mean(axis=0))
    once = um.linkability(
        enrol, test, counts=[5, 40], length=2, protocol=um.LegalProtocol(max_conversations=1)
    )
    assert once.attacks.tolist() == [30, 30]
    assert set(once.per_speaker[:, 1]) <= {0, 1}


def test_worst_decile_of_persons(sentences):
    enrol, test = (population(60, 10, noise=1.5, tag=t) for t in "et")
    result = um.linkability(enrol, test, counts=[20])
    naive = np.sort(result.per_speaker[:, 0])[-6:].mean()
    assert result.value[0] < result.worst_decile[0] < naive
    low, high = result.worst_decile_limits(0)
    assert low <= result.worst_decile[0] <= high
    assert result.details(0)[-1].metric == "linkability_worst_decile"
    assert result.sorted_speakers(0)[0] in result.speakers.to_list()
    alone = um.linkability(enrol, test, counts=[20], protocol=um.LegalProtocol(max_conversations=1))
    assert np.isnan(alone.worst_decile).all()
    assert alone.worst_decile_limits(0) is None
    assert not any("worst_decile" in e.metric for e in alone.details(0))
    sentences.check(*lines_of(alone, "no-worst-decile"))


def test_alike_speakers_have_no_worst_decile_of_their_own():
    rng = np.random.default_rng(0)
    shares = rng.binomial(10, 0.3, (500, 1)) / 10
    curve = um.linkability(*(population(30, 4, noise=1.0, tag=t) for t in "et"), counts=[20])
    alike = replace(
        curve,
        counts=np.array([20]),
        per_speaker=shares,
        recordings=np.full(500, 10),
        noise=np.array([0.21]),
    )
    assert alike.worst_decile[0] == pytest.approx(0.3, abs=0.05)
    assert np.sort(shares[:, 0])[-50:].mean() > 0.5


@pytest.mark.parametrize("speakers", [20, 60])
def test_worst_decile_holds_people_whom_the_sample_lacks(speakers, monkeypatch):
    """One person in twenty is unprotected (risk 1), all others have risk 0.1: the decile is 0.55.

    Drawn with replacement, one more person of n + 1 is there up to three or four times of n + 1.
    """
    monkeypatch.setattr(legal_curve.base, "draws", cache(legal_curve.base.draws))
    rng = np.random.default_rng(5)
    curve = um.linkability(*(population(30, 4, noise=1.0, tag=t) for t in "et"), counts=[20])
    curve = replace(
        curve,
        counts=np.array([20]),
        recordings=np.full(speakers, 10),
        noise=np.zeros(1),
        speakers=pl.Series([f"s{i:02d}" for i in range(speakers)]),
    )
    nobody = replace(curve, per_speaker=np.full((speakers, 1), 0.1)).worst_decile_limits(0)
    decile = -(-(speakers + 1) // 10)
    unseen = [min(times, decile) / decile for times in (3, 4)]
    assert nobody[0] == pytest.approx(0.1)
    assert nobody[1] in [pytest.approx(share + 0.1 * (1 - share)) for share in unseen]
    held = 0
    for _ in range(200):
        risks = np.where(rng.random((speakers, 1)) < 0.05, 1.0, 0.1)
        low, high = replace(curve, per_speaker=risks).worst_decile_limits(0)
        held += bool(low <= 0.55 <= high)
    assert held / 200 >= 0.92


def test_no_interval_of_zero_width_where_nobody_is_linked():
    held = 0
    rng = np.random.default_rng(3)
    for _ in range(400):
        outcomes = (rng.random((60, 1)) < 0.01).astype(float)
        how = Sampling()
        low, high = risk_interval(outcomes.mean(axis=0), mean_variance(outcomes), 60, how)
        assert high[0] > low[0]
        held += bool(low[0] <= 0.01 <= high[0])
    assert held / 400 > 0.92


def test_same_seed_same_result():
    enrol, test = (population(30, 5, noise=1.5, tag=t) for t in "et")
    first, again, other = (
        um.linkability(enrol, test, counts=[30], draws=5, length=2, seed=s) for s in (3, 3, 4)
    )
    assert first.value == again.value
    assert first.low == again.low
    assert (first.per_speaker != other.per_speaker).any()


def test_few_utterances_are_counted(sentences):
    test = population(30, [1] * 10 + [4] * 20, noise=1.0, tag="t")
    enrol = population(30, [2] * 5 + [4] * 25, noise=1.0, tag="e")
    result = um.linkability(enrol, test, counts=[30], length=3)
    assert (result.left_out, result.short, len(result.speakers)) == (10, 0, 20)
    assert result.enrol_length == "all"
    asked = um.linkability(
        enrol, test, counts=[30], length=3, protocol=um.LegalProtocol(linkability_enrol=3)
    )
    assert asked.short == 5
    assert result.attacks.tolist() == [20]
    sentences.check(*lines_of(result, "left-out"))


def test_one_speaker_has_no_interval():
    enrol, test = population(5, 1, noise=1.0, tag="e"), population(1, 1, noise=1.0, tag="t")
    result = um.linkability(enrol, test, counts=[5])
    assert np.isnan(result.low[0])
    assert "one speaker only" in " ".join(result.warnings)


def test_people_who_are_not_enrolled_are_left_out_and_counted(sentences):
    enrol = population(20, 3, noise=1.0, tag="e")
    test = population(24, 3, noise=1.0, tag="t")
    enrolled = enrol.speakers.to_series().to_list()
    own = test.select(test.speakers.to_series().is_in(enrolled).to_numpy())
    assert own.n_speakers == 20
    for metric in (um.linkability, one_minus_eer):
        with_others, alone = (metric(enrol, some, counts=[5, 20]) for some in (test, own))
        assert np.array_equal(with_others.value, alone.value)
        assert np.array_equal(with_others.low, alone.low)
        (said,) = [one for one in with_others.notices if one.code == "not-enrolled"]
        sentences.check(said.sentence)
        assert with_others.estimates[0].n["not_enrolled"] == 4
        assert "not_enrolled" not in alone.estimates[0].n
    # Those who are enrolled and not tested are among the N'.
    fewer = um.linkability(enrol, own.select(own.speakers.codes < 16), counts=[20])
    assert fewer.above.others == 19


def refused(match, **changes):
    options = {"counts": [10], **changes}
    enrol = options.pop("enrol", population(20, 3, noise=1.0, tag="e"))
    test = options.pop("test", population(20, 3, noise=1.0, tag="t"))
    with pytest.raises(um.InputError, match=match) as error:
        um.linkability(enrol, test, **options)
    assert "\n" not in str(error.value)


def test_bad_input_is_told_in_one_line():
    people = population(24, 1, noise=1.0, tag="t")
    others = people.select(people.speakers.to_series().is_in(["s20", "s21", "s23"]).to_numpy())
    refused("one who is enrolled, found none of 3 .first: s20", test=others)
    refused("at most the 20 speakers in enrolment, found 21", counts=[10, 21])
    refused("length 9: .* at least 9 utterances, found at most 3 .all 20", length=9)
    refused(
        "20 in enrolment and 16 in test", enrol=population(20, 1, noise=1, tag="e", dimension=20)
    )
    zeros = um.Embeddings(np.zeros((2, 16)), ["s1", "s2"])
    refused("2 zero vectors .first: row 1", test=zeros)
    refused("60 in enrolment and in test .first: e-0", test=population(20, 3, noise=1.0, tag="e"))
    refused("whole numbers of at least 1, found 0", counts=[0])
    refused("expected a column gender, found none", protocol=um.LegalProtocol(side=["gender"]))
    refused("expected cosine, centred, wccn, .* or a file .npz., found svm", backend="svm")
    refused("training|train", backend="plda")
    refused("draws: expected at least 1", draws=0)


def test_shared_utterances_pass_by_name():
    both = population(20, 3, noise=1.0, tag="x")
    result = um.linkability(
        both, both, counts=[20], length=3, protocol=um.LegalProtocol(allow_shared_utterances=True)
    )
    assert result.value == pytest.approx([1.0])


def test_scores_are_checked(sentences):
    with pytest.raises(um.InputError, match="NaN"):
        um.linkability_from_scores([[np.nan, 1.0]], [0], counts=[2])
    with pytest.raises(um.InputError) as error:
        um.linkability_from_scores([[0.0, 1.0]], [2], counts=[2])
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="expected a matrix"):
        um.linkability_from_scores([0.0, 1.0], [0], counts=[2])
    with pytest.raises(um.InputError, match="expected 1 column numbers"):
        um.linkability_from_scores([[0.0, 1.0]], [0, 1], counts=[2])
