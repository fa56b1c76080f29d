from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.helpers.populations import score_matrices

from unmask import InputError, pseudonymisation, zoo
from unmask.privacy import Zoo
from unmask.trials import Ids, Scores


def animals(target, impostor, **more):
    target, impostor = np.asarray(target, float), np.asarray(impostor, float)
    names = tuple(f"s{i}" for i in range(target.size))
    return Zoo(names, target, impostor, impostor, impostor, **more)


def test_corners_hold_the_outer_quartiles_of_both_axes():
    made = animals([9, 8, 5, 5, 4, 5, 1, 2], [0, 9, 5, 4, 5, 4, 8, 1])
    names = {kind: corner.speakers for kind, corner in made.corners.items()}
    assert names == {
        "doves": ("s0",),
        "chameleons": ("s1",),
        "phantoms": ("s7",),
        "worms": ("s6",),
    }
    assert made.corner_of() == ("doves", "chameleons", "", "", "", "", "worms", "phantoms")
    assert made.corners["doves"].expected == pytest.approx(0.5)


def test_the_p_value_counts_the_ways_to_draw_a_quartile():
    made = animals(np.arange(8), np.arange(8))
    corner = made.corners["chameleons"]
    assert corner.count == 2
    ways = [len(set(pair) & {6, 7}) for pair in combinations(range(8), 2)]
    assert corner.p_value == pytest.approx(np.mean([w >= 2 for w in ways]))
    assert made.corners["doves"].p_value == 1.0


def test_goats_lambs_and_wolves_are_the_tails_and_sheep_the_rest():
    target = np.arange(20.0)
    rng = np.random.default_rng(0)
    enrolled, probing = rng.normal(size=20), rng.normal(size=20)
    names = tuple(f"s{i}" for i in range(20))
    made = Zoo(names, target, enrolled + probing, enrolled, probing)
    assert made.animals["goats"] == ("s0", "s1")
    assert set(made.animals["lambs"]) == {names[i] for i in np.argsort(enrolled)[-2:]}
    assert set(made.animals["wolves"]) == {names[i] for i in np.argsort(probing)[-2:]}
    others = {n for kind in ("goats", "lambs", "wolves") for n in made.animals[kind]}
    assert set(made.animals["sheep"]) == set(names) - others


def test_means_are_those_of_the_trials():
    rng = np.random.default_rng(1)
    speakers = np.array(list("aabbbcc"))
    same = np.equal.outer(speakers, speakers)
    matrix = rng.normal(size=same.shape) + same
    k, m = np.nonzero(~np.eye(7, dtype=bool))
    scores = Scores(
        None,
        None,
        None,
        enrol_speaker=Ids.from_strings(speakers[k]),
        test_speaker=Ids.from_strings(speakers[m]),
        systems={"x": matrix[k, m]},
    )
    result = zoo(scores)
    assert result.speakers == ("a", "b", "c")
    for i, name in enumerate("abc"):
        mine, other = speakers == name, speakers != name
        inside = matrix[np.ix_(mine, mine)]
        own = inside[~np.eye(mine.sum(), dtype=bool)]
        assert result.target[i] == pytest.approx(own.mean())
        rows, columns = matrix[np.ix_(mine, other)], matrix[np.ix_(other, mine)]
        assert result.enrolled[i] == pytest.approx(rows.mean())
        assert result.probing[i] == pytest.approx(columns.mean())
        both = np.concatenate([rows.ravel(), columns.ravel()])
        assert result.impostor[i] == pytest.approx(both.mean())


def test_the_zoo_of_a_matrix_holds_oracle_llrs():
    speakers = np.repeat(list("abcd"), 3)
    result = pseudonymisation(*score_matrices(2, speakers, 3.0, 0.0, 2.0), speakers)
    outcome, sums = zoo(result.sets["op"]), result.sets["op"].sums
    np.testing.assert_allclose(outcome.target, np.diag(sums.llr / sums.count))
    assert outcome.score == "oracle LLR"


def test_bad_zoos_are_refused(sentences):
    with pytest.raises(InputError, match="share"):
        animals([1.0, 2.0], [1.0, 2.0], share=0.9)
    with pytest.raises(InputError) as error:
        animals([1.0, np.nan], [1.0, 2.0])
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        zoo(Scores.from_arrays([1.0], [0.0]))
    sentences.check(str(error.value))


def test_speakers_who_are_all_alike_are_in_no_corner():
    values = np.zeros(8)
    alike = Zoo(tuple("abcdefgh"), values, values, values, values)
    assert set(alike.corner_of()) == {""}
    apart = np.array([-1.0, 0, 0, 0, 0, 0, 0, 1])
    some = Zoo(tuple("abcdefgh"), apart, -apart, apart, apart)
    assert some.corners["doves"].speakers == ("h",)
    assert some.corners["worms"].speakers == ("a",)
