"""One release attacked by itself: halves by name, both ways, what each speaker suffers averaged."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest

import unmask as um
from unmask.errors import InputError
from unmask.privacy.legal import one_minus_eer

EACH = {"a": 1, "b": 2, "c": 3, "d": 5, "e": 6, "f": 9, "g": 4, "h": 4}
QUICK = {"protocol": um.LegalProtocol(folds=3, draws=2), "replicates": 50}


def release(each=EACH, *, noise=1.2, seed=0) -> um.Embeddings:
    rng = np.random.default_rng(seed)
    people = [name for name, number in each.items() for _ in range(number)]
    voices = {name: rng.normal(size=12) for name in each}
    vectors = np.stack([voices[name] for name in people]) + noise * rng.normal(
        size=(len(people), 12)
    )
    # Rows in no order: halves go by the names of utterances.
    order = rng.permutation(len(people))
    place = [people[:i].count(name) for i, name in enumerate(people)]
    names = [f"{name}-{n}" for name, n in zip(people, place, strict=True)]
    return um.Embeddings(vectors[order], [people[i] for i in order], [names[i] for i in order])


def split(some: um.Embeddings, speaker: str) -> tuple[set[str], set[str]]:
    names = sorted(n for n in some.utterances.to_series() if n.startswith(f"{speaker}-"))
    return set(names[::2]), set(names[1::2])


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_halves_are_every_second_utterance_and_lone_ones_are_enrolled_only():
    some = release()
    attack = um.within_release(some)
    for way, (enrols, tests) in zip(attack.ways, ((0, 1), (1, 0)), strict=True):
        for speaker in EACH:
            halves = split(some, speaker)
            enrolled = {n for n in way.enrol.utterances.to_series() if n.startswith(speaker)}
            tested = {n for n in way.test.utterances.to_series() if n.startswith(speaker)}
            if speaker == "a":
                assert (enrolled, tested) == (halves[0], set())
            else:
                assert (enrolled, tested) == (halves[enrols], halves[tests])
        assert way.train is way.enrol
        assert way.is_release
    with pytest.raises(InputError, match="expected a speaker with two utterances, found none"):
        um.within_release(release({"a": 1, "b": 1}))


def test_whole_sessions_go_to_one_side():
    some = release({"a": 8, "b": 8, "c": 4})
    day = [n.split("-") for n in some.utterances.to_series()]
    sessions = um.Ids.from_strings(["one" if s == "c" or int(n) < 5 else "two" for s, n in day])
    enrol = um.within_release(replace(some, sessions=sessions)).enrol
    assert sorted(enrol.utterances.to_series().filter(enrol.speakers.to_series() == "a")) == [
        f"a-{n}" for n in range(5)
    ]
    assert sorted(enrol.utterances.to_series().filter(enrol.speakers.to_series() == "c")) == [
        "c-0",
        "c-2",
    ]


def brute(some: um.Embeddings, count: int) -> dict[str, list[float]]:
    """Outcomes of each speaker both ways: every utterance against all enrolled, all lists of N'."""
    vectors = dict(zip(some.utterances.to_series(), unit(some.vectors), strict=True))
    outcomes: dict[str, list[float]] = {name: [] for name in EACH}
    for enrols, tests in ((0, 1), (1, 0)):
        halves = {s: split(some, s) for s in EACH}
        known = {s: halves[s][0] if s == "a" else halves[s][enrols] for s in EACH}
        models = {s: unit(sum(vectors[n] for n in names)) for s, names in known.items()}
        for s in EACH:
            if s == "a":
                continue
            linked = []
            for n in halves[s][tests]:
                scores = {t: vectors[n] @ model for t, model in models.items()}
                above = sum(scores[t] >= scores[s] for t in EACH if t != s)
                linked.append(comb(7 - above, count - 1) / comb(7, count - 1))
            outcomes[s].append(float(np.mean(linked)))
    return outcomes


def test_linkability_is_the_mean_over_speakers_of_both_ways():
    some = release()
    sweep = um.assess_attackers(
        {"it": um.within_release(some)},
        counts=[3, 8], lengths=[1], metrics=["linkability"], variants=["plain"], **QUICK,
    )  # fmt: skip
    curve = sweep["it", "linkability", 1]
    for i, count in enumerate((3, 8)):
        outcomes = {s: np.mean(both) for s, both in brute(some, count).items() if both}
        assert curve.speakers.to_list() == list(outcomes)
        assert curve.per_speaker[:, i] == pytest.approx(list(outcomes.values()), abs=1e-12)
        assert curve.value[i] == pytest.approx(np.mean(list(outcomes.values())), abs=1e-12)
        spread = np.var(list(outcomes.values()), ddof=1) / 7
        assert curve.variance[i] == pytest.approx(spread, abs=1e-12)
        assert curve.low[i] <= curve.value[i] <= curve.high[i]
    assert curve.left_out == 1
    assert curve.attacks.tolist() == [33, 33]
    assert curve.recordings.sum() == 33
    ranks = sweep.ranks["it", 1]
    assert (len(ranks.ranks), ranks.candidates) == (33, 8)
    assert sweep.release == ("it",)
    again = um.assess_attackers(
        {"it": um.within_release(some)},
        counts=[8], lengths=[3], metrics=["linkability"], variants=["plain"], **QUICK,
    )["it", "linkability", 3]  # fmt: skip
    # d has 3 and 2, e 3 and 3, f 5 and 4: d is tested one way only.
    assert again.speakers.to_list() == ["d", "e", "f"]
    assert again.left_out == 5


def test_every_metric_and_reading_is_the_mean_of_its_two_ways():
    some = release(dict.fromkeys("abcdefgh", 8) | {"i": 1})
    attack = um.within_release(some)
    options = {"counts": [4, 8], "lengths": [1, 2], **QUICK}
    both = um.assess_attackers({"it": attack}, **options)
    ways = [
        um.assess_attackers({"it": way}, **options)
        for way in (replace(attack, reverse=None), attack.reverse)
    ]
    assert set(both.curves) == set(ways[0].curves)
    assert len(both.curves) == 4 * 3 * 2
    for key, curve in both.curves.items():
        each = [way[key] for way in ways]
        for field in ("value", "chance"):
            mean = np.mean([getattr(one, field) for one in each], axis=0)
            assert getattr(curve, field) == pytest.approx(mean, abs=1e-12), (key, field)
        assert curve.attacks.tolist() == sum(one.attacks for one in each).tolist()
        assert (curve.low <= curve.value).all()
        assert (curve.value <= curve.high).all()
        assert curve.left_out == 1
        if key[1] == "singling_out":
            widest = np.mean([np.sqrt(one.variance) for one in each], axis=0) ** 2
            assert curve.variance == pytest.approx(widest, abs=1e-12)
    one = both["it", "one_minus_eer", 2]
    alone = [
        one_minus_eer(w.enrol, w.test, counts=[4, 8], length=2, replicates=50) for w in attack.ways
    ]
    assert one.value == pytest.approx(np.mean([a.value for a in alone], axis=0))
    assert one.low == pytest.approx(np.mean([a.low for a in alone], axis=0))


def test_a_length_that_fits_one_way_is_tried_that_way():
    some = release(dict.fromkeys("abcdef", 3))
    sweep = um.assess_attackers({"it": um.within_release(some)}, counts=[6], lengths=[1], **QUICK)
    assert sweep["it", "singling_out", 1].attacks[0] == 6 * 3 * 2
    assert sweep["it", "linkability", 1].attacks[0] == 18
    assert np.isfinite(sweep["it", "singling_out", 1].value).all()


def test_people_without_a_second_conversation_have_a_worst_decile():
    """Two ways are two recordings, by which luck is told from risk."""
    some = release(dict.fromkeys("abcdefghij", 2))
    sweep = um.assess_attackers(
        {"it": um.within_release(some)}, counts=[10], lengths=[1], metrics=["linkability"], **QUICK
    )
    assert np.isfinite(sweep["it", "linkability", 1].worst_decile).all()


def test_fits_see_names_of_the_enrolled_half_only():
    some = release(dict.fromkeys("abcdefgh", 8))
    attack = um.within_release(some, "wccn")
    for way in attack.ways:
        assert way.backend == "wccn"
        trained = set(way.train.utterances.to_series())
        assert not trained & set(way.test.utterances.to_series())
