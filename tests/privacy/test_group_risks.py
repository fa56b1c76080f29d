"""Risks by group: each group under its own strongest attack, and how far groups lie apart."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest

import unmask as um
from unmask.base import joined_interval
from unmask.privacy.group_risks import gap_between, level_of_gap, level_of_pairs, permuted_labels
from unmask.privacy.legal.conversations import Rows
from unmask.privacy.legal.groups import combined_gaps, links_by_label
from unmask.privacy.legal.linking import guessed_linkability
from unmask.privacy.similarity import by_group
from unmask.privacy.similarity.groups import grid_among
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.pairs import segments_of
from unmask.scoring import Cosine, PairGrid, Rule, Sides
from unmask.trials import Ids

HALF = np.arange(400) % 2 == 0
WOMEN = np.arange(40) % 2 == 0


def population(women: float, men: float, *, is_woman=WOMEN, seed: int = 0, utterances: int = 10):
    """Original and protected speech, of which women and men keep a share of their own voice."""
    rng = np.random.default_rng(seed)
    people = len(is_woman)
    who = np.repeat(np.arange(people), utterances)
    own, new = rng.normal(size=(2, people, 32))
    keep = np.where(is_woman, women, men)[:, None]
    sexes = {"sex": np.where(is_woman, "f", "m")[who].tolist()}
    names = [f"s{n:02}" for n in who], [f"u{n:03}" for n in range(len(who))]

    def said(voices):
        vectors = voices[who] + 0.8 * rng.normal(size=(len(who), 32))
        return um.Embeddings(vectors, *names, columns=sexes)

    return said(own), said(keep * own + np.sqrt(1 - keep**2) * new)


def by_sex(original, protected, metrics=("linkability",), **options):
    """Risks by sex of original enrolment against the other half of the release."""
    half = np.arange(len(original)) % 2 == 0
    sides = original.select(half), protected.select(~half)
    held = {"a": um.Attacker(*sides, enrols="original")}
    how = {"counts": [20], "lengths": [1], "replicates": 100, **options}
    sweep = um.assess_attackers(held, metrics=metrics, **how)
    return um.privacy.risk_gaps(sweep, held, "sex"), held


def test_every_group_has_its_own_strongest_attack(sentences):
    """Turned signs in women, voices as they are in men: one attack for all would miss half."""
    sweep, _ = by_sex(*population(-0.85, 0.8))
    (gaps,) = sweep.gaps
    found = gaps.of("linkability")
    assert found["f"].value > 0.9
    assert found["m"].value > 0.9
    attackers = {row.name: row.attacker for row in gaps.groups}
    assert "negated" in attackers["f"]
    assert "negated" not in attackers["m"]
    for name in "fm":
        assert found[name].luck.beyond
        assert found[name].chance == pytest.approx(1 / 20)
        assert found[name].n["speakers"] == 20
    assert not gaps["linkability_gap"].luck.beyond
    shown = um.render(um.document(sweep))
    assert gaps.sentence("linkability") in shown
    sentences.check(gaps.sentence("linkability"))
    assert "p = 0.005" in shown


def test_the_most_blatant_gap_has_a_p_and_an_interval_without_0():
    (gaps,) = by_sex(*population(-0.7, 0.0))[0].gaps
    gap = gaps["linkability_gap"]
    assert gap.value > 0.65
    assert gap.luck.p <= 0.01
    assert gap.luck.permutations == 1000
    assert gap.interval.low > 0.3
    assert not gaps.of("linkability")["m"].luck.beyond
    assert gaps.notices == ()
    assert gaps.figures()


def test_deid_by_group_is_that_of_each_groups_strongest_attack():
    original, protected = population(-0.7, 0.0)
    table = um.compare_safeguards(original, {"x": protected}, by="sex", replicates=50)
    (gaps,) = table.gaps
    gap = gaps["deid_gap"]
    assert gap.value > 0.65
    assert gap.luck.p <= 0.01
    assert gap.luck.permutations == 200
    assert gap.interval.low > 0.4
    for row in table:
        strongest = row.result.strongest
        assert gaps.of("deid")[row.dataset] == strongest.deid
        assert strongest.deid.luck is not None
        # Attacks fitted on everybody and attacks fitted within the group compete.
        assert {"whitened", "whitened by sex"} <= row.result.attacks.keys()
    assert "m" in gaps.sentence("deid")


def test_both_tables_tell_the_same_of_one_population():
    """DeID and Linkability by group no longer name opposite groups as protected."""
    original, protected = population(-0.85, 0.8, utterances=6)
    table = um.compare_safeguards(original, {"x": protected}, by="sex", replicates=10)
    left = {name: one.value for name, one in table.gaps[0].of("deid").items()}
    linked = by_sex(original, protected)[0].gaps[0].of("linkability")
    for name in "fm":
        assert left[name] < 0.2
        assert linked[name].value > 0.9


def brute_force(scores, true, owner, labels, count):
    """Linkability of each person within the person's label, by loops."""
    people = int(owner.max()) + 1
    made = np.zeros((people, len(labels)))
    for row, label in enumerate(labels):
        for person in range(people):
            found = []
            for c in np.flatnonzero(owner == person):
                mine = [j for j in range(len(label)) if label[j] == label[true[c]]]
                others = [scores[c, j] for j in mine if j != true[c]]
                above = sum(s > scores[c, true[c]] + 1e-9 for s in others)
                tied = sum(abs(s - scores[c, true[c]]) <= 1e-9 for s in others)
                # Among count - 1 of the others: nobody above, guess among those tied.
                total = 0.0
                for t in range(tied + 1):
                    none = len(others) - above - tied
                    if 0 <= count - 1 - t <= none:
                        total += comb(tied, t) * comb(none, count - 1 - t) / (t + 1)
                found.append(total / comb(len(others), count - 1))
            made[person, row] = np.mean(found)
    return made


@pytest.mark.parametrize("ties", [False, True])
def test_permuted_groups_are_ranked_again_among_themselves(ties):
    rng = np.random.default_rng(3)
    enrol, test = rng.normal(size=(9, 4)), rng.normal(size=(20, 4))
    if ties:
        enrol, test = np.round(enrol), np.round(test)
    owner = np.sort(np.append(rng.integers(0, 9, 11), np.arange(9)))
    labels = permuted_labels(np.array([0, 0, 0, 0, 1, 1, 1, 1, 1]), 6, 0)
    made = links_by_label(Rows(enrol, test), owner, owner, labels, 3)
    scores = test @ enrol.T
    np.testing.assert_allclose(made[0], brute_force(scores, owner, owner, labels, 3), atol=1e-12)
    np.testing.assert_allclose(made[1], brute_force(-scores, owner, owner, labels, 3), atol=1e-12)


def test_side_information_rules_people_out():
    rng = np.random.default_rng(4)
    enrol, test = rng.normal(size=(8, 4)), rng.normal(size=(8, 4))
    owner = np.arange(8)
    language = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    labels = np.array([[0, 1, 0, 1, 0, 1, 0, 1]])
    made = links_by_label(Rows(enrol, test, (language, language)), owner, owner, labels, 4)
    both = labels[0] + 2 * language
    scores = np.where(both[:, None] == both, test @ enrol.T, -np.inf)
    for sign in (0, 1):
        own = np.diag(scores)[:, None]
        beaten = (scores > own if sign == 0 else (scores < own) & np.isfinite(scores)).any(axis=1)
        np.testing.assert_allclose(made[sign, :, 0], ~beaten)


def test_guessing_among_the_tied_is_the_closed_form():
    above, tied = np.indices((5, 4)).reshape(2, -1)
    made = guessed_linkability(above, tied, 8, np.array([5]))
    for r, t, (link,) in zip(above, tied, made, strict=True):
        wanted = (comb(8 - r + 1, 5) - comb(8 - r - t, 5)) / ((t + 1) * comb(8, 4))
        assert link == pytest.approx(wanted)
    everybody = guessed_linkability(np.array([0]), np.array([8]), 8, np.array([5]))
    assert everybody == pytest.approx(1 / 5)


def test_labels_move_with_people_and_sizes_stay():
    member = np.array([0, 1, 1, 2, 2, 2])
    labels = permuted_labels(member, 50, 7)
    np.testing.assert_array_equal(labels[0], member)
    assert len(labels) == 51
    for row in labels:
        np.testing.assert_array_equal(np.bincount(row), [1, 2, 3])
    assert len(np.unique(labels, axis=0)) > 20
    np.testing.assert_array_equal(labels, permuted_labels(member, 50, 7))


def test_the_level_of_a_gap():
    table = np.array([[0.9, 0.2], [0.5, 0.4], [0.1, 0.8], [0.3, 0.3]])
    luck = level_of_gap(table, 3, 12)
    assert luck.value == pytest.approx((0.1 + 0.7 + 0.0) / 3)
    assert luck.p == pytest.approx(2 / 4)
    assert level_of_gap(np.append(table, [[-np.inf, 1]], axis=0), 3, 12) is None


def test_square_and_add():
    """Of two shares the interval is Newcombe's method 10."""
    assert joined_interval((0.3, (0.2, 0.5)), (0.8, (0.6, 0.9))) == pytest.approx(
        (0.5 - np.sqrt(0.2**2 + 0.2**2), 0.5 + np.sqrt(0.1**2 + 0.1**2))
    )
    assert level_of_pairs(0.95, 2) == pytest.approx(0.95)
    assert level_of_pairs(0.95, 4) == pytest.approx(1 - 0.05 / 6)


def test_an_interval_of_a_gap_is_cut_and_may_be_missing():
    about = {"n": {"speakers": 10}, "params": {"N": 5}}
    drawn = [
        um.Interval(low, high, 0.95, "speaker,score", 0, 0) for low, high in ((0.9, 1), (0, 0.1))
    ]
    risks = {
        "a": um.Estimate("linkability", 0.99, "%", drawn[0], **about),
        "b": um.Estimate("linkability", 0.0, "%", drawn[1], **about),
    }
    gap = gap_between("linkability", risks, None, "sex", 0.95)
    assert gap.interval.high <= 1
    assert gap.interval.method == "speaker,score,square and add"
    assert gap.n == {"groups": 2, "speakers": 20}
    bare = {name: replace(one, interval=None) for name, one in risks.items()}
    assert gap_between("linkability", bare, None, "sex", 0.95).interval is None


def test_fewer_than_four_people_in_a_group_have_no_p(sentences):
    is_woman = np.arange(12) < 3
    original, protected = population(0.9, 0.0, is_woman=is_woman)
    sweep, _ = by_sex(original, protected, counts=[3], metrics=("linkability", "singling_out"))
    linked, isolated = sweep.gaps
    assert linked["linkability_gap"].luck is None
    assert linked["linkability_gap"].interval is not None
    sentences.check(linked.sentence("linkability"))
    assert [notice.code for notice in linked.notices] == ["no-level"]
    assert isolated.gaps == ()
    sentences.check(isolated.sentence("singling_out"))
    table = um.compare_safeguards(original, {"x": protected}, by="sex", replicates=20)
    assert table.gaps[0]["deid_gap"].luck is None
    assert "fewer than 4 people" in um.render(um.document(table))


def test_a_group_of_one_person_is_left_out_and_told(sentences):
    is_woman = np.arange(9) < 4
    original, protected = population(0.9, 0.0, is_woman=is_woman)
    sexes = np.array(protected.columns["sex"].to_series().to_list())
    sexes[:10] = "x"
    both = [replace(one, columns={"sex": Ids.from_strings(sexes)}) for one in (original, protected)]
    (gaps,) = by_sex(*both, counts=[3])[0].gaps
    assert [row.name for row in gaps.groups] == ["all", "f", "m"]
    assert gaps.notices[0].code == "group-left-out"
    sentences.check(gaps.notices[0].sentence)


def test_attacks_fitted_within_groups_compete_for_the_risk_and_not_for_the_gap():
    original, protected = population(0.3, 0.3)
    half = np.arange(len(original)) % 2 == 0
    sides = original.select(half), protected.select(~half)
    held = {"a": um.Attacker(*sides, "whitened", enrols="original")}
    protocol = um.LegalProtocol(side=("sex",))
    how = {"counts": [20], "lengths": [1], "metrics": ["linkability"], "replicates": 20}
    sweep = um.assess_attackers(held, protocol=protocol, **how)
    found = um.privacy.risk_gaps(sweep, held, "sex", protocol=protocol)
    (gaps,) = found.gaps
    assert gaps.within_groups == ("a (whitened by sex)",)
    for group in "fm":
        competing = gaps.sweeps[group].attackers
        assert competing == ("a", "a (whitened by sex)")
    alone = {name: s.worst("linkability", ["a"]).estimate for name, s in gaps.sweeps.items()}
    apart = abs(alone["f"].value - alone["m"].value)
    assert gaps["linkability_gap"].value == pytest.approx(apart)


def test_attackers_of_several_sweeps_compete():
    original, protected = population(-0.85, 0.8)
    sweeps = []
    for variants in (("plain",), ("negated",)):
        sweep, _ = by_sex(original, protected, variants=variants)
        sweeps.append(sweep)
    plain, turned = (sweep.gaps[0] for sweep in sweeps)
    assert plain.of("linkability")["f"].value < 0.2
    both = combined_gaps([plain, turned])
    assert both.of("linkability")["f"].value > 0.9
    assert both.of("linkability")["m"].value > 0.9
    np.testing.assert_array_equal(both.labelled, np.maximum(plain.labelled, turned.labelled))


def test_comparisons_of_some_people_are_those_of_their_rows():
    original, _ = population(0.5, 0.5, is_woman=np.arange(6) % 2 == 0, utterances=4)
    people = {"s01", "s04"}
    rows = original.normalised().vectors
    segments = segments_of(original.speakers)
    grid = segments.pairs(Sides(rows, rows), Rule(np.arange(24), "<"))
    some = grid_among(grid, people)
    chosen = np.isin(original.speakers.to_series().to_numpy(), sorted(people))
    assert some.enrol.names == ("s01", "s04")
    np.testing.assert_array_equal(some.enrol.codes, np.repeat([0, 1], 4))
    np.testing.assert_allclose(some.source.enrol, rows[chosen])
    assert some.source.test is some.source.enrol
    np.testing.assert_array_equal(some.which.codes, np.flatnonzero(chosen))
    assert isinstance(some, PairGrid)


def test_deid_of_permuted_groups_is_made_of_their_own_people():
    """The first labelling is the true one: what the groups read alone, but for the bins."""
    original, protected = population(0.6, 0.1, is_woman=np.arange(24) % 2 == 0, utterances=6)
    sexes = {"f": {f"s{k:02}" for k in range(0, 24, 2)}, "m": {f"s{k:02}" for k in range(1, 24, 2)}}
    how = {"system": "x", "by": "sex", "backend": Cosine(), "attackers": {}}
    setup = Setup(replicates=20)
    made = by_group(original, protected, sexes, setup=setup, **how)
    for column, name in enumerate("fm"):
        attacks = made.results[name].attacks
        everywhere = min(left for attack, left in attacks.items() if "by sex" not in attack)
        assert made.gaps.labelled[0, column] == pytest.approx(everywhere, abs=0.02)
    # A permuted group assessed alone, by the attacks that were fitted on everybody.
    labels = permuted_labels(np.arange(24) % 2, 200, 0)[5]
    people = {
        name: {f"s{k:02}" for k in np.flatnonzero(labels == g)} for g, name in enumerate("ab")
    }
    again = by_group(original, protected, people, setup=Setup(replicates=2), **how)
    for column, name in enumerate("ab"):
        attacks = again.results[name].attacks
        everywhere = min(left for attack, left in attacks.items() if "by sex" not in attack)
        assert made.gaps.labelled[5, column] == pytest.approx(everywhere, abs=0.02)


def test_equal_groups_rarely_stand_out():
    """A dozen small samples: the level itself is simulated in studies."""
    found = []
    for seed in range(12):
        is_woman = np.arange(20) < 10
        data = population(0.4, 0.4, is_woman=is_woman, seed=seed, utterances=4)
        (gaps,) = by_sex(*data, counts=[10], replicates=0)[0].gaps
        assert gaps["linkability_gap"].interval is None
        found.append(gaps["linkability_gap"].luck.p)
    assert np.mean(np.array(found) <= 0.05) <= 0.25
