"""Named arrays of what tasks share, narrow counts, and arrays on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from unmask.base.places import Places
from unmask.run.shared import ArrayFields, narrow


@dataclass(frozen=True, eq=False)
class Held(ArrayFields):
    rows: np.ndarray
    side: np.ndarray | None = None


def test_fields_are_arrays_by_name_and_back_again():
    held = Held(np.arange(3))
    assert list(held.arrays()) == ["rows"]
    again = Held.from_arrays({**held.arrays(), "another": np.zeros(1)})
    assert again.rows is held.rows
    assert again.side is None


@pytest.mark.parametrize(
    ("most", "kind"), [(0, "u1"), (255, "u1"), (256, "u2"), (2**32 - 1, "u4"), (2**32, "i8")]
)
def test_counts_keep_their_values_in_fewer_bytes(most, kind):
    counts = np.array([[0, most]])
    assert narrow(counts).dtype == kind
    assert narrow(counts).tolist() == counts.tolist()


def test_no_counts_stay_none():
    assert narrow(np.zeros((0, 2), np.int64)).shape == (0, 2)


def test_codes_on_a_device_are_those_of_places():
    pytest.importorskip("torch")
    from unmask.run.tensors import code_among, tensor

    knots, scores = np.array([-np.inf, 0.0, 0.5]), np.array([[-np.inf, -1.0], [0.5, 2.0]])
    knots.flags.writeable = False
    found = code_among(tensor(knots, "cpu"), tensor(scores, "cpu"))
    assert found.tolist() == Places(knots, "both")(scores).tolist()
