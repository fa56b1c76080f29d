"""A digest of named numbers that does not depend on classes, modules or the order of fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

DIGITS = 10
SINGLE = 6  # of what comes from products in single precision
SAMPLES = 3
NAMED = 5  # in a message
Numbers = Mapping[str, Any]


def word(value: float, digits: int = DIGITS) -> str:
    """A number in plain text: whole numbers in full, others to so many significant digits."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}.0"
    return f"{value:.{digits}g}"


def words(
    numbers: Numbers, single: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[int, ...], list[str]]]:
    """Name, shape and text of all numbers, by name; ``single``: endings of names."""
    for name in sorted(numbers):
        digits = SINGLE if name.endswith(single) else DIGITS
        array = np.asarray(numbers[name])
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name}: expected numbers, found {array.dtype}")
        yield name, array.shape, [word(float(value), digits) for value in array.reshape(-1)]


def digest(numbers: Numbers, single: tuple[str, ...] = ()) -> dict[str, Any]:
    """SHA-256, how many numbers there are, and a few of them: the middle ones of some names.

    ``trace`` is two letters for each name, in order: it tells which names moved.
    """
    total = hashlib.sha256()
    trace = ""
    count = 0
    shown: list[tuple[str, str]] = []
    for name, shape, texts in words(numbers, single):
        line = f"{name} {list(shape)} {' '.join(texts)}\n".encode()
        total.update(line)
        trace += hashlib.sha256(line).hexdigest()[:2]
        count += len(texts)
        if texts:
            middle = len(texts) // 2
            shown.append((f"{name}[{middle}]" if shape else name, texts[middle]))
    broken = [pair for pair in shown if not pair[1].endswith(".0")] or shown
    chosen = broken[:: max(1, -(-len(broken) // SAMPLES))][:SAMPLES]
    return {
        "sha256": total.hexdigest(),
        "count": count,
        "samples": dict(chosen),
        "trace": trace,
    }


def sample(numbers: Numbers, name: str, single: tuple[str, ...] = ()) -> str:
    """The text of one number that a pinned digest names."""
    plain, _, place = name.partition("[")
    if plain not in numbers:
        return "gone"
    flat = np.asarray(numbers[plain]).reshape(-1)
    index = int(place[:-1]) if place else 0
    digits = SINGLE if plain.endswith(single) else DIGITS
    return word(float(flat[index]), digits) if index < flat.size else "gone"


def moved(
    numbers: Numbers, pinned: Mapping[str, Any] | None, single: tuple[str, ...] = ()
) -> str | None:
    """What differs from the pinned digest, old → new; None if nothing does."""
    if pinned is None:
        return "not pinned"
    result = digest(numbers, single)
    if result["sha256"] == pinned["sha256"]:
        return None
    text = []
    if result["count"] != pinned["count"]:
        text.append(f"{pinned['count']} → {result['count']} numbers")
    for name, old in pinned["samples"].items():
        new = sample(numbers, name, single)
        if new != old:
            text.append(f"{name}: {old} → {new}")
    if len(result["trace"]) != len(pinned["trace"]):
        text.append(f"{len(pinned['trace']) // 2} → {len(result['trace']) // 2} names")
    else:
        old, new = (_pairs(made["trace"]) for made in (pinned, result))
        changed = [n for n, a, b in zip(sorted(numbers), old, new, strict=True) if a != b]
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        text.append(f"moved: {', '.join(changed[:NAMED])}{more}")
    return "; ".join(text)


def _pairs(trace: str) -> list[str]:
    return [trace[i : i + 2] for i in range(0, len(trace), 2)]
