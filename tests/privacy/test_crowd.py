"""Linkability among more people than there are: definitions, closed forms, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.base import Groups, Sampling
from unmask.privacy.legal.conversations import USUAL, attack_data
from unmask.privacy.legal.crowd import FittedCrowd, Strangers, Tail
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
    fitted = FittedCrowd([], body, below, Groups(np.arange(20_000)), 1.0)
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
    pooled, own, spreads, means = [], [], [], []
    for row, speaker in zip(data.tested.vectors, data.tested.speakers, strict=True):
        if not kept[speaker]:
            continue
        scores = data.enrolled.vectors @ row
        others = scores[kept & (np.arange(48) != speaker)]
        means.append(others.mean())
        spreads.append(others.std(ddof=1))
        pooled.append((others - means[-1]) / spreads[-1])
        own.append((scores[speaker] - means[-1]) / spreads[-1])
    logs, every = np.log(spreads), np.array(pooled)
    noise = ((every**4).mean() - 1) / (4 * every.shape[1])
    steady = np.exp(logs.mean() + max(1 - noise / logs.var(), 0) * (logs - logs.mean()))
    scale = np.array(spreads) / steady
    every, nearer = every * scale[:, None], np.array(means) > np.median(means)
    assert fitted.own == pytest.approx(np.array(own) * scale)
    for tail, some in zip(fitted.tails, (~nearer, nearer), strict=True):
        assert tail.body == pytest.approx(np.sort(every[some].ravel()))
        assert (tail.body > tail.edge).mean() == pytest.approx(3 / kept.sum(), abs=1e-3)
        assert fitted.log_below[some] == pytest.approx(tail.log_below(fitted.own[some]))


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


@pytest.mark.parametrize(
    ("number", "counts", "said"),
    [
        (30, [30], "extrapolate: expected more people than the 30 enrolled, among whom it is"),
        (30, [], "found none"),
        (19, [190], "extrapolate: expected at least 20 enrolled people, found 19"),
    ],
)
def test_what_cannot_be_extrapolated_is_refused(number: int, counts: list[int], said: str) -> None:
    with pytest.raises(um.InputError, match=said):
        um.extrapolate_linkability(*people(number), counts=counts)


def test_side_information_and_ties_are_refused() -> None:
    enrol, test = people(30)
    sides = []
    for one in (enrol, test):
        sex = [name[-1] for name in one.speakers.to_series()]
        sides.append(um.Embeddings(one.vectors, one.speakers, columns={"sex": sex}))
    alike = um.LegalProtocol(side=("sex",))
    with pytest.raises(um.InputError, match="no side information, found sex known to match"):
        um.extrapolate_linkability(*sides, counts=[300], protocol=alike)
    same = um.Embeddings(np.ones((30, 3)), [f"s{n}" for n in range(30)])
    with pytest.raises(um.InputError, match="scores of strangers that differ"):
        um.extrapolate_linkability(same, same, counts=[300])
