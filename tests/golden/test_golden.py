"""No number moves: every golden case gives the digest that is pinned for it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tests.golden import calls
from tests.golden.cases import CASES
from tests.golden.digest import digest, moved, word

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
    message = moved(case.numbers(), PINNED.get(name), case.single)
    assert message is None, f"{name}: {message}"


def test_every_pinned_digest_has_a_case():
    assert list(PINNED) == list(CASES)


def test_a_workload_gives_the_same_numbers_at_every_place():
    result = defaultdict(set)
    for name, pinned in PINNED.items():
        result[CASES[name].workload].add(pinned["sha256"])
    assert not [workload for workload, digests in result.items() if len(digests) > 1]


def test_a_digest_is_of_names_and_numbers_alone():
    one = {"a": 1.0, "b": np.array([0.1 + 0.2, -0.0, np.nan, -np.inf])}
    same = {"b": [0.3, 0, np.nan, -np.inf], "a": np.int64(1)}
    assert digest(one) == digest(same)
    assert digest(one)["count"] == 5
    for other in ({**one, "a": 1 + 1e-9}, {**one, "c": 1}, {"a": one["b"], "b": one["a"]}):
        assert digest(other)["sha256"] != digest(one)["sha256"]
    assert [word(value) for value in (-0.0, 1 / 3, 12345678901.0)] == [
        "0.0", "0.3333333333", "12345678901.0",
    ]  # fmt: skip


def test_single_precision_is_told_to_fewer_digits():
    one, other = {"x/low": 0.1234567, "y": 1 / 3}, {"x/low": 0.12345674, "y": 1 / 3}
    assert digest(one)["sha256"] != digest(other)["sha256"]
    assert digest(one, ("low",)) == digest(other, ("low",))


def test_what_moved_is_told():
    before = {"eer": 0.25, "low": [0.1, 0.2, 0.3]}
    pinned = digest(before)
    assert moved(before, pinned) is None
    assert moved({**before, "eer": 0.26}, pinned) == "eer: 0.25 → 0.26; moved: eer"
    fewer = "4 → 1 numbers; low[1]: 0.2 → gone; 2 → 1 names"
    assert moved({"eer": 0.25}, pinned) == fewer
    assert moved({**before, "low": [0.1, 0.2, 0.4]}, pinned) == "moved: low"
    assert moved(before, None) == "not pinned"
