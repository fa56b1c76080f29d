"""What is pinned of named numbers: it does not depend on classes, modules, the order of fields, or
the last digits, which differ between processors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

TOLERANCE = 1e-6
SINGLE = 2e-3  # of what comes from products in single precision
MOST = 300  # names that are pinned
NAMED = 5  # in a message
Numbers = Mapping[str, Any]
_GOLDEN = (np.sqrt(5) - 1) / 2


def mark(value: Any) -> list[float]:
    """How many numbers there are, how many of them are NaN, inf and −inf, and a sum of all others
    with weights between 1 and 2, which no two of them share.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"expected numbers, found {array.dtype}")
    flat = array.reshape(-1).astype(float)
    odd = np.isnan(flat), flat == np.inf, flat == -np.inf
    return [flat.size, *(int(one.sum()) for one in odd), float(f"{_sum(flat):.10g}")]


def _sum(flat: Any) -> float:
    weights = 1 + np.arange(flat.size) * _GOLDEN % 1
    return float((np.where(np.isfinite(flat), flat, 0.0) * weights).sum())


def chosen(numbers: Numbers) -> list[str]:
    """The names that are pinned: all, or evenly many of them."""
    names = sorted(numbers)
    return names[:: max(1, -(-len(names) // MOST))]


def digest(numbers: Numbers) -> dict[str, Any]:
    """How many names there are, a hash of them, and the marks of those chosen, in their order."""
    names = hashlib.sha256("\n".join(sorted(numbers)).encode()).hexdigest()[:16]
    marks = [mark(numbers[name]) for name in chosen(numbers)]
    return {"count": len(numbers), "names": names, "marks": marks}


def moved(
    numbers: Numbers, pinned: Mapping[str, Any] | None, single: tuple[str, ...] = ()
) -> str | None:
    """What differs from what is pinned, old → new; None if nothing does. ``single``: endings of
    names.
    """
    if pinned is None:
        return "not pinned"
    result = digest(numbers)
    if result["names"] != pinned["names"]:
        return f"other names: {pinned['count']} → {result['count']}"
    text = []
    for name, old, new in zip(chosen(numbers), pinned["marks"], result["marks"], strict=True):
        flat = np.asarray(numbers[name]).reshape(-1).astype(float)
        room = SINGLE if name.endswith(single) else TOLERANCE
        room *= _sum(np.abs(flat)) + 1e-6
        if old[:-1] != new[:-1] or not abs(old[-1] - new[-1]) <= room:
            text.append(f"{name}: {old[-1]:.10g} → {new[-1]:.10g}")
    more = f" and {len(text) - NAMED} more" if len(text) > NAMED else ""
    return f"{'; '.join(text[:NAMED])}{more}" if text else None
