"""Every primitive does on a device what it does on a processor."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from unmask.base import Lookup
from unmask.run import NUMPY, Torch, narrow

pytest.importorskip("torch")
SCORES = np.random.default_rng(0).normal(size=(7, 12)).round(1)
EDGES = np.array([0, 2, 3, 7]), np.array([0, 5, 12])
NUMBERS = np.array([3, 0, 2, 1])


def fold(how):
    return lambda xp, scores: xp.fold(*EDGES)(scores, how)


CASES = {
    "product": lambda xp, scores: xp.product(scores, scores[:3]),
    "fill": lambda xp, scores: xp.fill(scores + 0, scores > 0.5, -np.inf),
    "where": lambda xp, scores: xp.where(scores > 0, scores, -scores),
    "left": lambda xp, scores: xp.among(Lookup(np.array([-0.5, 0.1, 0.1]), "left"), scores),
    "right": lambda xp, scores: xp.among(Lookup(np.array([-0.5, 0.1, 0.1])), scores),
    "both": lambda xp, scores: xp.among(Lookup(np.array([-0.5, 0.1, 0.3]), "both"), scores),
    "bincount": lambda xp, scores: xp.bincount(xp.put(NUMBERS), 6),
    "weights": lambda xp, scores: xp.bincount(xp.put(NUMBERS), 6, scores[0, :4]),
    "column_sums": lambda xp, scores: xp.column_sums(scores > 0),
    "cumulate": lambda xp, scores: xp.cumulate(scores),
    "weighted_sum": lambda xp, scores: xp.weighted_sum(
        xp.where(scores[0] > 0, scores[0], np.inf), xp.fill(scores[0] + 0, scores[0] <= 0, 0.0)
    ),
    "softplus": lambda xp, scores: xp.softplus(scores, wide=True),
    "narrow softplus": lambda xp, scores: xp.softplus(scores, wide=False),
    "repeat": lambda xp, scores: xp.repeat(xp.put(NUMBERS)),
    "arange": lambda xp, scores: xp.arange(2, 5),
    "isnan": lambda xp, scores: xp.isnan(scores / 0 * 0),
    "sum": fold("sum"),
    "min": fold("min"),
    "max": fold("max"),
}


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("name", CASES)
def test_both_bodies_agree(name):
    wanted = CASES[name](NUMPY, SCORES)
    xp = Torch("cpu")
    result = xp.host(CASES[name](xp, xp.put(SCORES)))
    np.testing.assert_allclose(result, wanted, rtol=1e-13)


def test_products_of_factors_that_torch_would_cut_short_are_taken_in_double(monkeypatch):
    import torch

    xp = Torch("cpu")
    rows = torch.from_numpy(SCORES.astype(np.float32))
    assert xp.product(rows, rows).dtype == torch.float32
    monkeypatch.setattr(Torch, "_cuts_short", True)
    assert xp.product(rows, rows).dtype == torch.float64


def test_indices_come_home():
    xp = Torch("cpu")
    for one, other in zip(xp.nonzero(xp.put(SCORES) > 0), NUMPY.nonzero(SCORES > 0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_shared_is_put_once_and_goes_with_its_array():
    xp = Torch("cpu")
    array = np.arange(5.0)
    array.flags.writeable = False
    assert xp.put(array) is xp.put(array)
    assert xp.put(array[:3]) is not xp.put(array[:3])
    del array
    gc.collect()
    assert not xp._kept


def test_many_rows_are_summed_beyond_a_byte():
    flags = np.ones((300, 2), bool)
    assert NUMPY.column_sums(flags).tolist() == [300, 300]
    assert NUMPY.column_sums(flags[:255]).dtype == np.uint8


@pytest.mark.parametrize(
    ("most", "kind"), [(0, "u1"), (255, "u1"), (256, "u2"), (2**32 - 1, "u4"), (2**32, "i8")]
)
def test_counts_keep_their_values_in_fewer_bytes(most, kind):
    counts = np.array([[0, most]])
    assert narrow(counts).dtype == kind
    assert narrow(counts).tolist() == counts.tolist()


def test_no_counts_stay_none():
    assert narrow(np.zeros((0, 2), np.int64)).shape == (0, 2)
