from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from unmask.trials.ids import first_occurrences, match

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
def test_first_occurrences(codes: list[int]) -> None:
    result = first_occurrences(np.array(codes, np.int64))
    expected = [code not in codes[:row] for row, code in enumerate(codes)]
    assert (result is None) == all(expected)
    if result is not None:
        assert result.tolist() == expected
