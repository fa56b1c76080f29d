from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from unmask.trials.ids import match, repeats

small = st.lists(st.integers(-1, 30), max_size=40)


@given(small, st.lists(st.integers(0, 30), unique=True, max_size=31), st.booleans())
def test_match_equals_a_dictionary(codes: list[int], others: list[int], wide: bool) -> None:
    scale = 2**57 if wide else 1
    others = [*others, -1]
    rows = {code: row for row, code in enumerate(others) if code >= 0}
    expected = [rows.get(code, -1) for code in codes]
    stretched = [
        np.array([c * scale if c > 0 else c for c in x], np.int64) for x in (codes, others)
    ]
    assert match(*stretched).tolist() == expected


@given(st.permutations(range(20)))
def test_match_of_a_permutation(order: list[int]) -> None:
    codes = np.array(order, np.int64)
    assert match(np.arange(20), codes).tolist() == np.argsort(codes).tolist()


@given(small)
def test_repeats(codes: list[int]) -> None:
    rows, earlier = repeats([np.array(codes, np.int64)])
    again = [row for row, code in enumerate(codes) if code in codes[:row]]
    assert rows.tolist() == again
    assert not again or earlier == codes.index(codes[again[0]])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 1)), min_size=1))
def test_other_labels_of_two_keys(trials: list[tuple[int, int, int]]) -> None:
    *keys, label = (np.array(column, np.int64) for column in zip(*trials, strict=True))
    first = {trial[:2]: trial for trial in trials[::-1]}
    wrong = [row for row, trial in enumerate(trials) if trial[2] != first[trial[:2]][2]]
    rows, earlier = repeats(keys, label.astype(np.int8))
    assert rows.tolist() == wrong
    assert not wrong or earlier == trials.index(first[trials[wrong[0]][:2]])
