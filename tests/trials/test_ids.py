from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from unmask.trials import Ids, lookup
from unmask.trials.ids import CodeBuilder, share

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=40)


@given(texts)
def test_strings_come_back(values: list[str]) -> None:
    ids = Ids.from_strings(values)
    assert ids.to_series().to_list() == values
    assert [ids.decode(i) for i in range(len(ids))] == values
    assert ids.names.n_unique() == len(ids.names)
    assert ids.codes.dtype == np.int32
    assert ids.n_unique == len(set(values))


@pytest.mark.parametrize("more", [0, 3000])
def test_what_is_not_among_names_is_at_minus_one(more: int) -> None:
    names = pl.Series(["a", "b", *(f"n{i}" for i in range(more))])
    assert lookup(pl.Series(["b", "x", "a"]), names).tolist() == [1, -1, 0]


@given(st.lists(texts, max_size=6), st.integers(1, 30))
def test_blocks_encode_like_the_whole(blocks: list[list[str]], longest: int) -> None:
    encoder = CodeBuilder()
    encoder.LONGEST = longest
    for block in blocks:
        encoder.add(pl.Series(block, dtype=pl.String))
    ids = encoder.finish()
    assert ids.to_series().to_list() == [value for block in blocks for value in block]
    assert ids.names.n_unique() == len(ids.names)


@given(texts, texts)
def test_share_gives_one_table(a: list[str], b: list[str]) -> None:
    first, second = share(Ids.from_strings(a), Ids.from_strings(b))
    assert first.names is second.names
    assert (first.to_series().to_list(), second.to_series().to_list()) == (a, b)


def test_take_shares_names_and_takes_masks() -> None:
    ids = Ids.from_strings(["a", "b", "a", "c"])
    assert ids.take(np.array([True, False, True, False])).to_series().to_list() == ["a", "a"]
    assert ids.take(np.array([3, 0])).names is ids.names
    assert ids.take(np.array([3, 0])).n_unique == 2


def test_numbers_and_bytes_become_text() -> None:
    assert Ids.from_strings(np.array([3, 4])).to_series().to_list() == ["3", "4"]
    assert Ids.from_strings(np.array([b"x", b"y"])).to_series().to_list() == ["x", "y"]


def test_ids_are_frozen_and_checked() -> None:
    ids = Ids.from_strings(["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        ids.codes[0] = 1
    with pytest.raises(ValueError, match="codes must lie"):
        Ids(np.array([2], np.int32), ids.names)
    for missing in (None, float("nan"), np.float32("nan"), np.datetime64("NaT")):
        for values in (["a", missing], np.array(["a", missing], object)):
            assert Ids.from_strings(values).to_series().to_list() == ["a", ""]
    numbers = pl.Series([1.5, None]), np.array([1.5, np.nan]), np.ma.masked_array([1.5, 2], [0, 1])
    for values in (*numbers, pl.Series([1.5, float("nan")])):
        assert Ids.from_strings(values).to_series().to_list() == ["1.5", ""]
    assert Ids.from_strings(["nan", "None"]).to_series().to_list() == ["nan", "None"]
