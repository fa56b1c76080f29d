"""Trials on disk: repeated ones and partners, against a dictionary."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from unmask.trials import spool
from unmask.trials.ids import NameTable, match, repeats
from unmask.trials.readers.detect import candidates, decisive
from unmask.trials.spool import Column, TrialSpool, partners
from unmask.trials.trial_list import paired

trials = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=80)
anywhere = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def spooled(folder, pairs, batch, buckets):
    """Pairs in batches."""
    shutil.rmtree(folder, ignore_errors=True)
    trials = TrialSpool(folder, buckets)
    for start in range(0, len(pairs), batch):
        part = pairs[start : start + batch]
        trials.append(start, [pl.Series([str(pair[side]) for pair in part]) for side in (0, 1)])
    return trials


@pytest.fixture(params=[64, 12, 2])
def bits(request, monkeypatch):
    """With few bits, different trials share their first hash."""
    hashes, mask = spool._hashes, np.uint64((2**request.param - 1) << (64 - request.param))
    monkeypatch.setattr(
        spool, "_hashes", lambda c, seed: hashes(c, seed) & mask if seed == 0 else hashes(c, seed)
    )


@pytest.mark.usefixtures("bits")
@anywhere
@given(pairs=trials, batch=st.integers(1, 20), buckets=st.integers(1, 9))
def test_the_first_of_repeated_trials(tmp_path, pairs, batch, buckets):
    seen: dict[tuple[int, int], int] = {}
    again = [row for row, pair in enumerate(pairs) if seen.setdefault(pair, row) != row]
    trials = spooled(tmp_path / "trials", pairs, batch, buckets)
    every = [trials.records(bucket) for bucket in trials.buckets]
    assert sorted(np.concatenate(every)["row"].tolist()) == list(range(len(pairs)))
    found = []
    for records in every:
        rows, earlier = repeats([records["a"], records["b"]])
        found += records["row"][rows].tolist()
        for row in rows[:1]:
            assert records["row"][earlier] == seen[pairs[records["row"][row]]]
    assert sorted(found) == again


@pytest.mark.usefixtures("bits")
def test_a_trial_is_its_names_and_its_side(tmp_path):
    trials = TrialSpool(tmp_path / "trials", 1)
    every = [(enrol, test, side) for enrol in "abcdef" for test in "uvwxyz" for side in "12"]
    trials.append(0, [pl.Series(column) for column in zip(*every, every[7], strict=True)])
    records = trials.records(0)
    rows, earlier = repeats([records["a"], records["b"]])
    assert (rows.tolist(), earlier) == ([len(every)], 7)


@pytest.mark.usefixtures("bits")
@anywhere
@given(pairs=trials, others=trials, batch=st.integers(1, 20), buckets=st.integers(1, 9))
def test_partners(tmp_path, pairs, others, batch, buckets):
    pairs, others = list(dict.fromkeys(pairs)), list(dict.fromkeys(others))
    wanted = {(i, others.index(pair)) for i, pair in enumerate(pairs) if pair in others}
    found = set()
    spools = [
        spooled(tmp_path / str(i), part, batch, buckets) for i, part in enumerate((pairs, others))
    ]
    for bucket in range(buckets):
        first, second = (one.records(bucket) for one in spools)
        partner = partners(first, second)
        met = partner >= 0
        rows = first["row"][met].tolist(), second["row"][partner[met]].tolist()
        found |= set(zip(*rows, strict=True))
    assert found == wanted


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True))
def test_both_sides_of_a_pairing(codes, others):
    partner = match(np.array(codes, np.int64), np.array(others, np.int64))
    met, with_, alone, left = (rows.tolist() for rows in paired(partner, len(others)))
    assert [codes[row] for row in met] == [others[row] for row in with_]
    assert [codes[row] for row in alone] == [code for code in codes if code not in others]
    assert [others[row] for row in left] == [code for code in others if code not in codes]


def test_hashes_tell_columns_and_seeds_apart():
    names = pl.Series([str(i) for i in range(1000)])
    others = pl.Series([str(i + 1) for i in range(1000)])
    first, second = (spool._hashes([names, others], seed) for seed in (0, 1))
    swapped = spool._hashes([others, names], 0)
    words = np.concatenate([first, second, swapped])
    assert len(np.unique(words)) == 3000
    assert np.array_equal(spool._hashes([names.head(10), others.head(10)], 0), first[:10])
    bits = np.unpackbits(words.view(np.uint8)).reshape(3000, 64).mean(axis=0)
    assert (abs(bits - 0.5) < 5 / np.sqrt(4 * 3000)).all()


def test_columns_on_disk(tmp_path):
    column = Column(tmp_path / "a", "f8")
    for start in range(0, 100, 30):
        column.append(np.arange(start, min(start + 30, 100), dtype=np.float64))
    column.map()[np.array([7, 99])] = [-1.0, -2.0]
    assert column.read(5, 9).tolist() == [5.0, 6.0, -1.0, 8.0]
    assert column.map()[np.array([99, 0])].tolist() == [-2.0, 0.0]
    pairs = Column(tmp_path / "b", "i4", width=2, rows=3)
    pairs.map()[[2, 0]] = [[5, 6], [7, 8]]
    assert pairs.read(0, 3).tolist() == [[7, 8], [0, 0], [5, 6]]


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
    few = [decisive(sorted(column)) for column in columns]
    assert candidates(few) == candidates(columns)
