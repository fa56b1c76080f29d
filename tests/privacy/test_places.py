"""Linkability counted elsewhere is the same Linkability."""

from __future__ import annotations

import numpy as np
import pytest

import unmask as um
from unmask.privacy import legal_counts


@pytest.fixture
def sets(monkeypatch):
    monkeypatch.setattr(legal_counts, "ROWS", 40)
    rng = np.random.default_rng(0)
    means = rng.normal(size=(150, 12))
    names = [f"s{i}" for i in range(150)]
    sex = {"sex": [("f", "m")[i % 2] for i in range(150)]}
    return [
        um.Embeddings(
            means + 1.3 * rng.normal(size=means.shape),
            names,
            [f"{side}{name}" for name in names],
            columns=sex,
        )
        for side in "et"
    ]


@pytest.mark.parametrize("options", [{"workers": 1}, {"workers": 3}])
@pytest.mark.parametrize("side", [(), ("sex",)])
def test_workers_change_nothing(sets, options, side):
    wanted = um.linkability(*sets, counts=[2, 20, 150], side=side, replicates=50)
    told = []
    found = um.linkability(
        *sets, counts=[2, 20, 150], side=side, replicates=50, **options,
        progress=lambda *numbers: told.append(numbers),
    )  # fmt: skip
    assert found.value.tolist() == wanted.value.tolist()
    assert found.low.tolist() == wanted.low.tolist()
    assert found.above.at_or_above.tolist() == wanted.above.at_or_above.tolist()
    assert found.above.above.tolist() == wanted.above.above.tolist()
    assert told[-1] == (4, 4)


def test_places_that_cannot(sets):
    with pytest.raises(um.InputError, match="no CUDA device"):
        um.linkability(*sets, counts=[2], on="cuda")
    with pytest.raises(um.InputError, match="found moon"):
        um.linkability(*sets, counts=[2], on="moon")


def test_a_sweep_elsewhere_is_the_same_sweep(sets):
    attackers = {"original": um.Attacker(*sets)}
    options = {"metrics": ["linkability"], "lengths": [1], "counts": [20], "replicates": 0}
    wanted = um.legal_sweep(attackers, **options)
    found = um.legal_sweep(attackers, **options, workers=2)
    key = ("original", "linkability", 1)
    assert found.curves[key].value.tolist() == wanted.curves[key].value.tolist()
    with pytest.raises(um.InputError, match="found moon"):
        um.legal_sweep(attackers, **options, on="moon")
