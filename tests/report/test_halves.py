"""The interval of the strongest EER and D_ECE of models: what halves of the people show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from studies.coverage.models import attack_on
from studies.luck import Law

import unmask as um
from unmask import assessment, report
from unmask.assessment.halves import strongest_on_halves
from unmask.assessment.study import CONTENDERS, contenders, result_among, strongest, trial_step
from unmask.privacy import FEW_PEOPLE, halves_of

LAW = Law("half", 0, 6, owned=0.5, kept=0.5, dimensions=16)
BACKENDS = ("cosine", "wccn", "whitened")


def attack_of(people: int, backends=BACKENDS, *, seed: int = 1):
    """Someone who trains on original speech of attacked people and enrols it."""
    return replace(attack_on(LAW, people, seed), backends=backends)


def of_people(speech, people):
    """The recordings of some people."""
    return speech.select(np.isin(speech.speakers.to_series().to_numpy(), sorted(people)))


def brute_force(attack, people):
    """D_ECE and EER of the strongest attack, made of nothing but some people's recordings."""
    enrol, test = (of_people(side, people) for side in (attack.data.enrol, attack.data.test))
    models = enrol.speakers.present.to_numpy()
    is_target = models[:, None] == test.speakers.to_series().to_numpy()
    numbers = []
    for backend in attack.backends:
        attacker = um.Attacker(enrol, test, backend, enrol, release=False)
        for reading in attacker.readings:
            scores = attacker.read(reading).matrix()
            result = um.evaluate(scores[is_target], scores[~is_target], replicates=0)
            numbers.append([result["d_ece"].value, result["eer"].value])
    d_ece, eer = np.array(numbers).T
    return d_ece.max(), eer.min()


def test_each_half_has_the_strongest_attack_of_its_own_people():
    attack = attack_of(13)
    found = strongest_on_halves([(attack, attack.variants)], 5)
    halves = halves_of(attack.people, 5)
    assert len(halves) == 8
    expected = np.array([brute_force(attack, people) for people in halves])
    np.testing.assert_allclose(found["d_ece"], expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(found["eer"], expected[:, 1], atol=1e-12)


def test_scores_that_learn_nothing_from_attacked_people_stay():
    attack = attack_of(12)
    learns = {v.of("a"): attack.learns_from_attacked(v) for v in attack.variants}
    assert learns == {name: name not in ("a (cosine)", "a (cosine), negated") for name in learns}
    others = replace(LAW, people=30).sample(7)[0]
    named = um.Embeddings(others.vectors, [f"other {s}" for s in others.speakers.to_series()])
    taught = replace(attack, data=replace(attack.data, train=named))
    half = taught.within(halves_of(taught.people, 0)[0])
    assert half.data.train.n_speakers == 30
    models, tests = taught.places_of(half)
    for variant in taught.variants:
        if not taught.learns_from_attacked(variant):
            part = taught.matrix(variant)[np.ix_(models, tests)]
            np.testing.assert_allclose(half.matrix(variant), part, atol=1e-6)
    kept = {v.backend for v in taught.variants if not taught.learns_from_attacked(v)}
    assert kept == {"cosine", "wccn"}


def tried(attack, replicates=50):
    """All variants of an attack with their numbers."""
    from types import SimpleNamespace

    how = {"replicates": replicates, "level": 0.95, "seed": 0}
    config = SimpleNamespace(trials={"battery": um.Battery(), **how}, seed=0)
    return trial_step(attack, config).compute()


@pytest.fixture(scope="module")
def twenty():
    attack = attack_of(20)
    attacks = tried(attack)
    chosen = [(attack, [one.variant for one in contenders(attacks)])]
    return attacks, strongest_on_halves(chosen, 0)


@pytest.mark.parametrize(("metric", "sign"), [("d_ece", 1), ("eer", -1)])
def test_the_end_of_less_risk_moves_and_nothing_else(twenty, metric, sign):
    attacks, halves = twenty
    best = strongest(attacks, metric)
    gain = sign * (halves[metric].mean() - best.value(metric))
    assert gain > 0
    before = result_among(best, attacks, metric)
    after = result_among(best, attacks, metric, halves)
    for old, new in zip(before.estimates, after.estimates, strict=True):
        if old.metric != metric:
            assert new is old or new == old
            continue
        assert replace(new, interval=old.interval) == old
        one, other = old.interval, new.interval
        assert other.method == f"{one.method},8 halves"
        if sign > 0:
            assert (other.low, other.high) == (max(one.low - gain, 0.0), one.high)
            assert other.low < one.low
        else:
            assert (other.low, other.high) == (one.low, min(one.high + gain, 0.5))
            assert other.high > one.high
    for weaker in attacks:
        if weaker is not best:
            assert result_among(weaker, attacks, metric, halves) is weaker.result


def test_contenders_are_the_strongest_by_either_metric(twenty):
    attacks, _ = twenty
    few = contenders(attacks)
    for metric, sign in (("d_ece", -1), ("eer", 1)):
        ranked = sorted(attacks, key=lambda one: sign * one.value(metric))
        assert all(one in few for one in ranked[:CONTENDERS])
    assert len(few) <= 2 * CONTENDERS


def test_fewer_than_six_people_have_no_halves():
    attack = attack_of(5, ("cosine", "whitened"))
    attacks = tried(attack, 20)
    halves = strongest_on_halves([(attack, attack.variants)], 0)
    assert {metric: len(numbers) for metric, numbers in halves.items()} == {"d_ece": 0, "eer": 0}
    best = strongest(attacks, "eer")
    assert result_among(best, attacks, "eer", halves)["eer"].interval == best.result["eer"].interval


def test_an_assessment_shows_it_on_the_strongest_alone(study):
    changes = ['frameworks=["verification", "zebra"]', "intervals.replicates=5"]
    config = assessment.load_config(study / "study.toml", changes=changes)
    done = report.run_assessment(config, study / "report", cache=study / "cache")
    seen = 0
    for section in done.sections:
        metric = {"verification": "eer", "zebra": "d_ece"}[section.key]
        codes = [notice.subject for notice in section.notices if notice.code == "few-for-strongest"]
        assert codes == ["original", "weak", "strong"]
        for row in section.rows:
            for estimate in row.estimates:
                if estimate.interval is not None and "halves" in estimate.interval.method:
                    seen += 1
                    assert estimate.metric == metric
                    assert estimate.interval.method.endswith(",8 halves twice")
                    assert estimate.luck is not None
    assert seen == 6
    assert FEW_PEOPLE > 12
