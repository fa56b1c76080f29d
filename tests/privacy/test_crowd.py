"""Linkability among more people than there are: definitions, closed forms, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit, ndtr
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.base import Groups, Sampling
from unmask.privacy.legal.conversations import USUAL, attack_data
from unmask.privacy.legal.crowd import FittedCrowd, Strangers, Tail, linked_by_ranks
from unmask.privacy.legal.linking import Above
from unmask.run import store

Sides = tuple[um.Embeddings, um.Embeddings]


def people(number: int, *, each: int = 2, seed: int = 0, dimension: int = 12) -> Sides:
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(number, dimension))
    names = {"speaker": "s{:03}", "utterance": None}
    enrol, test = (
        named_speakers(number, each, dimension, noise=1.0, means=means, draws=rng, **names)
        for _ in "et"
    )
    return enrol, test


def test_exponential_tails_have_a_known_answer() -> None:
    """With F(z) = 1 − e^−z and own scores that are exponential from the edge on as well, F(own) is
    uniform on (0, 1), so E[F^(N − 1)] = 1/N: nobody is told from a stranger.
    """
    grid = (np.arange(20_000) + 0.5) / 20_000
    body = -np.log1p(-grid)
    below = Tail(body, float(body[0]) - 1e-12, 1e-12, 1.0).log_below(body)
    none = np.zeros(20_000)
    fitted = FittedCrowd([], body, below, Groups(np.arange(20_000)), 1.0, none, none)
    counts = np.array([2, 10, 100, 1000])
    assert fitted.links(counts).mean(axis=0) == pytest.approx(1 / counts, rel=0.02)


@pytest.mark.parametrize("shape", [-0.2, 0.2])
def test_a_pareto_tail_is_its_formula(shape: float) -> None:
    body, own = np.linspace(-1, 1, 101), np.array([0.505, 1.5, 2.0])
    share = (body > 0.5).mean()
    below = 1 - share * (1 + shape * (own - 0.5) / 0.4) ** (-1 / shape)
    assert np.exp(Tail(body, 0.5, shape, 0.4).log_below(own)) == pytest.approx(below)
    assert Tail(body, 0.5, -0.5, 0.4).log_below(np.array([9.0])).item() == 0
    assert np.exp(Tail(body, 0.5, shape, 0.4).log_below(np.array([0.0]))) == (body < 0).mean()


def test_the_fit_is_the_definition_written_out() -> None:
    enrol, test = people(48)
    data = attack_data(enrol, test, "linkability", 1, "cosine", USUAL, Sampling())
    kept = np.arange(48) % 5 != 1
    fitted = Strangers.of(data, 1.0).fit(kept)
    pooled, own, ranks, means, locations, scales = [], [], [], [], [], []
    for row, speaker in zip(data.tested.vectors, data.tested.speakers, strict=True):
        if not kept[speaker]:
            continue
        scores = data.enrolled.vectors @ row
        others = scores[kept & (np.arange(48) != speaker)]
        means.append(others.mean())
        locations.append(np.quantile(others, 0.7))
        scales.append((others[others > locations[-1]] - locations[-1]).mean())
        pooled.append(others)
        own.append(scores[speaker])
        ranks.append((others > scores[speaker]).sum())
    logs, number = np.log(scales), len(pooled[0])
    noise = 1 / (0.3 * number)
    scale = np.exp(logs.mean() + max(1 - noise / logs.var(), 0) * (logs - logs.mean()))
    every = (np.array(pooled) - np.array(locations)[:, None]) / scale[:, None]
    nearer = np.array(means) > np.median(means)
    assert fitted.own == pytest.approx((np.array(own) - locations) / scale)
    for tail, some in zip(fitted.tails, (~nearer, nearer), strict=True):
        assert tail.body == pytest.approx(np.sort(every[some].ravel()))
        assert (tail.body > tail.edge).mean() == pytest.approx(3 / kept.sum(), abs=1e-3)
        assert fitted.log_below[some] == pytest.approx(tail.log_below(fitted.own[some]))
    # Both as (n·p + ½)/(n + 1): what is measured among half of these people, and the curve there.
    half, size = kept.sum() // 2, int(kept.sum())
    chosen = [math.comb(number - rank, half - 1) / math.comb(number, half - 1) for rank in ranks]
    modelled = np.exp(fitted.log_below * (half - 1))
    odds = [logit((size * np.mean(one) + 0.5) / (size + 1)) for one in (chosen, modelled)]
    assert fitted.gap == pytest.approx(odds[0] - odds[1])
    counts = np.array([100, 1000])
    assert logit(fitted.joined(counts)) == pytest.approx(
        logit(fitted.links(counts).mean(axis=0)) + fitted.gap
    )


def test_beyond_the_people_ties_are_guessed() -> None:
    """A share f of strangers has the right person's score: against sums over how many are drawn."""
    strictly, tied, count = 0.9, 0.05, 12
    alone, own = Groups(np.zeros(1, int)), np.zeros(1)
    fitted = FittedCrowd([], own, np.log([strictly]), alone, 1.0, np.array([tied]), own)
    others = count - 1
    wanted = sum(
        math.comb(others, t) * tied**t * strictly ** (others - t) / (1 + t) for t in range(count)
    )
    assert fitted.links(np.array([count]))[0, 0] == pytest.approx(wanted)
    none = replace(fitted, tied=np.zeros(1))
    assert none.links(np.array([count]))[0, 0] == pytest.approx(strictly**others)


def test_stored_voices_link_one_of_all_who_have_the_same() -> None:
    """Each of 60 people has one of five stored voices: of N' people N'/5 have it."""
    rng = np.random.default_rng(0)
    stored = rng.normal(size=(5, 12))[np.arange(60) % 5]
    sides = [um.Embeddings(stored, [f"s{n:02}" for n in range(60)]) for _ in "et"]
    found = um.extrapolate_linkability(*sides, counts=[100, 600])
    measured = um.linkability(*sides)
    assert measured.value[0] == pytest.approx(1 / 12)
    assert found.value == pytest.approx([5 / 100, 5 / 600], rel=0.2)
    assert found.low[1] < 5 / 600 < found.high[1]


def test_ranks_alone_tell_a_normal_law_of_probits() -> None:
    rng = np.random.default_rng(1)
    others, size = 400, 20_000
    below = ndtr(2.2 + 0.8 * rng.normal(size=size))
    ranks = rng.binomial(others, 1 - below)
    curve = um.linkability(*people(30))
    counted = Above(ranks, ranks, others)
    known = replace(curve, above=counted, owner=np.arange(size))
    counts = np.array([600, 5000])
    wanted = [(below ** (count - 1)).mean() for count in counts]
    assert linked_by_ranks(known, counts) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("apart", [0.0, 6.0])
def test_two_groups_of_strangers_are_not_read_too_low(apart: float) -> None:
    """One dimension tells two sexes: by all strangers, 16 points too low at this distance."""
    rng = np.random.default_rng(4)
    voices = rng.normal(size=(1200, 24))
    voices[:, 0] += apart * (rng.random(1200) < 0.5)
    names = [f"s{n:04}" for n in range(1200)]
    sides = [um.Embeddings(voices + 0.8 * rng.normal(size=voices.shape), names) for _ in "et"]
    truth = float(um.linkability(*sides, counts=[640], replicates=0).value[0])
    errors = []
    for seed in range(3):
        some = np.random.default_rng(seed).choice(1200, 150, replace=False)
        found = um.extrapolate_linkability(*(one.select(some) for one in sides), counts=[640])
        errors.append(found.value[0] - truth)
        assert found.low[0] < truth < found.high[0]
    assert abs(np.mean(errors)) < 0.06


def test_the_sentence_says_of_whom_where_only_some_are_tested(sentences) -> None:
    enrol, test = people(40, each=4)
    some = test.select((test.speakers.codes < 25) | (np.arange(160) % 4 == 0))
    long = um.extrapolate_linkability(enrol, some, counts=[400], length=3)
    sentences.check(long.sentence)
    assert long.estimates[0].params["tested"] == 25
    short = um.extrapolate_linkability(enrol, some, counts=[400])
    assert "measured on" not in short.sentence


def test_hidden_people_are_found_again() -> None:
    """Fitted on 150 of 1,500 people, asked for all: the closed form of all of them is the truth."""
    enrol, test = people(1500, each=1)
    truth = float(um.linkability(enrol, test).value[0])
    some = np.arange(150)
    found = um.extrapolate_linkability(enrol.select(some), test.select(some), counts=[1500])
    assert found.low[0] < truth < found.high[0]
    assert abs(found.value[0] - truth) < 0.1
    assert found.gaussian[0] < truth
    assert found.chance[0] == pytest.approx(1 / 1500)
    assert [one.code for one in found.notices] == ["conditions"]


def test_it_falls_with_the_crowd_and_is_never_more_than_measured() -> None:
    enrol, test = people(30)
    measured = um.linkability(enrol, test)
    found = um.extrapolate_linkability(enrol, test, counts=[31, 100, 1000, 100_000])
    for ends in (found.value, found.low, found.high):
        assert (np.diff(ends) <= 0).all()
    assert found.value[0] <= measured.value[0]
    assert found.high[0] <= measured.high[0]
    alone = um.extrapolate_linkability(enrol, test, counts=[100_000])
    assert alone.estimates[0] == found.estimates[-1]
    assert "far-beyond" in [one.code for one in found.notices]
    assert store.from_bytes(store.to_bytes(found)).estimates == found.estimates


def test_a_move_beyond_its_own_error_is_told() -> None:
    found = um.extrapolate_linkability(*people(40), counts=[100, 400])
    assert found.moved.shape == found.moved_error.shape == (2,)
    for moved, is_told in ((0.04, False), (-0.06, True)):
        other = replace(found, moved=np.full(2, moved), moved_error=np.full(2, 0.05))
        lines = [one.sentence for one in other.notices if one.code == "moved"]
        assert bool(lines) == is_told
        if is_told:
            said = "not one group; the curve was moved by −6.0 points with 400 people"
            assert said in lines[0]


def test_voices_that_are_close_to_everybody_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    names = [f"s{n:03}" for n in range(60)]
    voices = rng.normal(size=(60, 12))
    pull = np.where(np.arange(60) < 4, 6.0, 0.0)[:, None] * np.eye(12)[:1]
    recorded = voices + 0.4 * rng.normal(size=voices.shape)
    drawn = um.Embeddings(recorded + 3 * np.eye(12)[:1], names)
    hubs = um.extrapolate_linkability(um.Embeddings(voices + pull, names), drawn, counts=[600])
    plain = um.Embeddings(voices, names), um.Embeddings(recorded, names)
    none = um.extrapolate_linkability(*plain, counts=[600])
    assert hubs.carriers < 0.5 * none.carriers
    assert "hubs" in [one.code for one in hubs.notices]
    assert "hubs" not in [one.code for one in none.notices]


def test_a_sweep_continues_its_strongest_attack() -> None:
    enrol, test = people(30)
    worse = um.Embeddings(np.random.default_rng(5).normal(size=test.vectors.shape), test.speakers)
    attackers = {
        "weak": um.Attacker(enrol, worse),
        "turned": um.Attacker(um.Embeddings(-enrol.vectors, enrol.speakers), test),
    }
    protocol = um.LegalProtocol(extrapolate=300)
    how = {"metrics": ["linkability"], "lengths": [1], "protocol": protocol}
    sweep = um.assess_attackers(attackers, **how)
    best = sweep.strongest("linkability", 1).attacker
    crowd = sweep.crowds[1]
    assert crowd.attacker == best
    assert best.startswith("turned")
    assert crowd.counts.tolist() == [50, 100, 200, 300]
    assert crowd.value[-1] > 0.2
    told = um.document(sweep)
    assert any(e.metric == "linkability_extrapolated" for row in told.rows for e in row.estimates)
    assert any("300 people: about" in line for line in told.notes)
    within = um.assess_attackers({"release": um.within_release(test)}, **how)
    assert within.crowds[1].value[-1] <= within.crowds[1].value[0]


@pytest.mark.parametrize(("number", "counts"), [(30, [30]), (30, []), (19, [190])])
def test_what_cannot_be_extrapolated_is_refused(number: int, counts: list[int], sentences) -> None:
    with pytest.raises(um.InputError) as error:
        um.extrapolate_linkability(*people(number), counts=counts)
    sentences.check(str(error.value))


def test_side_information_and_strangers_who_are_all_alike_are_refused(sentences) -> None:
    enrol, test = people(30)
    sides = []
    for one in (enrol, test):
        sex = [name[-1] for name in one.speakers.to_series()]
        sides.append(um.Embeddings(one.vectors, one.speakers, columns={"sex": sex}))
    alike = um.LegalProtocol(side=("sex",))
    with pytest.raises(um.InputError) as error:
        um.extrapolate_linkability(*sides, counts=[300], protocol=alike)
    sentences.check(str(error.value))
    # Strangers all alike, and right persons who are not: there is no tail to continue.
    mean, own = np.ones((30, 1)), 3 * np.eye(30)
    alike = um.Embeddings(np.hstack([mean, own]), [f"s{n}" for n in range(30)])
    with pytest.raises(um.InputError) as error:
        um.extrapolate_linkability(alike, alike, counts=[300])
    sentences.check(str(error.value))
