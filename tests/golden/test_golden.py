"""No number moves: every golden case gives the digest that is pinned for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.golden import calls
from tests.golden.cases import CASES
from tests.golden.digest import digest, moved

PINNED = json.loads(Path(__file__).with_name("digests.json").read_text(encoding="utf-8"))
TESTED = [name for name, case in CASES.items() if case.place not in ("processes", "dask")]
"""Tests of places compare the others with these bit by bit; ``make golden`` runs all."""


@pytest.fixture(scope="module", autouse=True)
def opened():
    with calls.places():
        yield


@pytest.mark.parametrize("name", TESTED)
def test_no_number_moved(name):
    case = CASES[name]
    if case.place == "cuda":
        pytest.importorskip("torch")
    message = moved(case.numbers(), PINNED.get(case.workload), case.single)
    assert message is None, f"{name}: {message}"


def test_every_pinned_workload_has_a_case():
    assert list(PINNED) == list(dict.fromkeys(case.workload for case in CASES.values()))


def test_marks_are_of_names_and_numbers_alone():
    one = {"a": 1.0, "b": np.array([0.1 + 0.2, -0.0, np.nan, -np.inf])}
    same = {"b": [0.3, 0, np.nan, -np.inf], "a": np.int64(1)}
    pinned = digest(one)
    assert moved(same, pinned) is None
    assert moved({**one, "a": 1 + 1e-9}, pinned) is None
    assert moved({**one, "a": 1 + 1e-5}, pinned) == "a: 1 → 1.00001"
    assert moved({**one, "a": 1 + 1e-5}, pinned, ("a",)) is None
    assert moved({**one, "c": 1}, pinned) == "other names: 2 → 3"
    assert moved({"a": one["b"], "b": one["a"]}, pinned) is not None
    assert moved({**one, "b": [0.0, 0.3, np.nan, -np.inf]}, pinned) is not None
    assert moved({**one, "b": [0.3, 0, np.nan, np.inf]}, pinned) is not None
    assert moved(one, None) == "not pinned"


def test_of_many_names_some_are_pinned():
    numbers = {f"{i:04d}": float(i) for i in range(1000)}
    pinned = digest(numbers)
    assert len(pinned["marks"]) == 250
    assert moved({**numbers, "0004": 5.0}, pinned) == "0004: 4 → 5"
