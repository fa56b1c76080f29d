"""Trials on disk: repeated ones and partners, against a dictionary."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmask.trials import trial_spool
from unmask.trials.detect import candidates, decisive
from unmask.trials.ids import NameTable
from unmask.trials.scratch import Column, Scratch
from unmask.trials.trial_spool import (
    Repeats,
    TrialSpool,
    hash_trials,
    paired,
    partitions,
    repeated_rows,
)

trials = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=80)
anywhere = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(trial_spool, "PARTITION", 9)
    monkeypatch.setattr(trial_spool, "LONGEST", 4)


def spool(scratch, pairs, batch, *, bits=64):
    """Hashes of pairs in batches; with few bits, different trials share their first hash."""
    found = TrialSpool(scratch)
    for start in range(0, len(pairs), batch):
        part = pairs[start : start + batch]
        columns = [pl.Series([str(pair[side]) for pair in part]) for side in (0, 1)]
        first, second = hash_trials(columns, seed=0)
        found.append(start, (first & np.uint64((2**bits - 1) << (64 - bits)), second))
    return found


@anywhere
@given(pairs=trials, batch=st.integers(1, 20), bits=st.sampled_from([64, 12, 2]))
def test_the_first_of_repeated_trials(pairs, batch, bits):
    seen: dict[tuple[int, int], int] = {}
    again = [row for row, pair in enumerate(pairs) if seen.setdefault(pair, row) != row]
    repeats = Repeats()
    dropped = []
    with Scratch() as scratch:
        found = spool(scratch, pairs, batch, bits=bits)
        assert found.counts.sum() == len(pairs)
        for buckets in partitions(found):
            for rows in repeated_rows(found.blocks(buckets), repeats):
                dropped += rows.tolist()
    assert sorted(dropped) == again
    assert repeats.count == len(again)
    if again:
        assert (repeats.again, repeats.earlier) == (again[0], seen[pairs[again[0]]])


@anywhere
@given(pairs=trials, others=trials, batch=st.integers(1, 20), bits=st.sampled_from([64, 12, 2]))
def test_partners(pairs, others, batch, bits):
    pairs, others = list(dict.fromkeys(pairs)), list(dict.fromkeys(others))
    found = [[], [], [], []]
    with Scratch() as scratch:
        spools = [spool(scratch, part, batch, bits=bits) for part in (pairs, others)]
        for buckets in partitions(*spools):
            records = [
                np.concatenate([np.zeros((0, 2), np.uint64), *part.blocks(buckets)])
                for part in spools
            ]
            for rows, more in zip(found, paired(*records), strict=True):
                rows += more.tolist()
    wanted = {(i, others.index(pair)) for i, pair in enumerate(pairs) if pair in others}
    assert set(zip(found[0], found[1], strict=True)) == wanted
    assert sorted(found[2]) == [i for i, pair in enumerate(pairs) if pair not in others]
    assert sorted(found[3]) == [i for i, pair in enumerate(others) if pair not in pairs]


def test_hashes_tell_columns_and_seeds_apart():
    names = pl.Series([str(i) for i in range(1000)])
    others = pl.Series([str(i + 1) for i in range(1000)])
    first, second = hash_trials([names, others], seed=0)
    swapped, _ = hash_trials([others, names], seed=0)
    other, _ = hash_trials([names, others], seed=1)
    words = np.concatenate([first, second, swapped, other])
    assert len(np.unique(words)) == 4000
    again, _ = hash_trials([names.head(10), others.head(10)], seed=0)
    assert np.array_equal(again, first[:10])
    bits = np.unpackbits(words.view(np.uint8)).reshape(4000, 64).mean(axis=0)
    assert (abs(bits - 0.5) < 5 / np.sqrt(4 * 4000)).all()


def test_columns_on_disk():
    with Scratch() as scratch:
        column = Column(scratch, np.float64)
        for start in range(0, 100, 30):
            column.append(np.arange(start, min(start + 30, 100), dtype=np.float64))
        column.put(np.array([7, 99]), [-1.0, -2.0])
        assert len(column) == 100
        assert column.read(5, 9).tolist() == [5.0, 6.0, -1.0, 8.0]
        assert column.at(np.array([99, 0])).tolist() == [-2.0, 0.0]
        filled = Column.filled(scratch, np.int8, 3, 5)
        assert filled.read(0, 5).tolist() == [3] * 5


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=6))
def test_a_name_keeps_its_code(blocks):
    table, codes = NameTable(), []
    for block in blocks:
        codes += table.codes(pl.Series(block, dtype=pl.String)).tolist()
    words = [word for block in blocks for word in block]
    assert [table.names[code] for code in codes] == words
    assert table.names.to_list() == list(dict.fromkeys(words))


values = st.sets(
    st.sampled_from(
        [
            "0",
            "1",
            "7",
            "+3",
            "0.5",
            "-1e3",
            "nan",
            "target",
            "Imp",
            "TRUE",
            "spoof",
            "a.wav",
            "-",
            "",
        ]
    ),
    min_size=1,
)


@given(st.lists(values, min_size=2, max_size=4))
def test_few_values_decide_as_all_do(columns):
    all_of_them = dict(enumerate(columns))
    few = {i: decisive(sorted(column)) for i, column in all_of_them.items()}
    assert candidates(few) == candidates(all_of_them)
