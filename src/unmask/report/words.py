"""Sentences and numbers as people read them: texts of ``sections.toml``, shares, intervals."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from math import isnan
from typing import Any

from unmask.estimate import Estimate

_NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


@cache
def words() -> dict[str, dict[str, Any]]:
    text = resources.files("unmask.report").joinpath("sections.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def title(key: str) -> str:
    """The title of a framework's section."""
    return str(words()[key]["title"])


def labels(of: str) -> dict[str, Any]:
    """What things of a kind are called, by their names here."""
    return dict(words()["labels"][of])


def note(name: str, **values: Any) -> str:
    """A sentence that tables, summaries or methods have, by its name, with ``values`` filled in."""
    return str(words()["notes"][name]).format(**values)


def in_words(number: int) -> str:
    """``seven``: a number as titles have it."""
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def one_decimal(risk: float) -> str:
    """``99.7 %``, never 0.0 or 100.0 of a risk between them."""
    return f"{min(max(100 * risk, 0.1), 99.9):.1f} %"


def shown(estimate: Estimate, digits: int, *, scale: float = 1.0) -> str:
    """Value and interval as sentences have them."""
    text = fixed(scale * float(estimate.value), digits)
    if estimate.interval is not None and not isnan(estimate.interval.low):
        low, high = scale * estimate.interval.low, scale * estimate.interval.high
        text += f" [{fixed(low, digits)}, {fixed(high, digits)}]"
    return text


def fixed(value: float, digits: int) -> str:
    """So many digits after the point; what rounds to 0 has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def whole_percent(risk: float) -> str:
    """A risk in whole percent; a little is never said to be nothing, nor nearly all to be all."""
    if 0 < risk < 0.01 or 0.995 <= risk < 1:
        return "less than 1 %" if risk < 0.5 else "more than 99 %"
    return f"{100 * risk:.0f} %"


def with_level(estimate: Estimate) -> str:
    """``65.0 % (95 % confidence interval 58.1 to 71.7)``: a number, how sure it is."""
    scale, digits = (100.0, 1) if estimate.unit == "%" else (1.0, 3)
    value = f"{fixed(scale * float(estimate.value), digits)} {estimate.unit}"
    made = estimate.interval
    if made is None or isnan(made.low):
        return value
    low, high = (fixed(scale * end, digits) for end in (made.low, made.high))
    return f"{value} ({100 * made.level:.10g} % confidence interval {low} to {high})"
