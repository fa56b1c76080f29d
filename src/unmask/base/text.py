"""Names from data as text that a terminal, an image or a spreadsheet only shows."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_FORMULA = ("=", "+", "-", "@", "\t")


def visible(text: str) -> str:
    """The text with control characters, which move cursors and end images, replaced by a mark."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """The same without line ends and tabs, for a cell or a message."""
    return " ".join(visible(text).split())


def no_formula(text: str) -> str:
    """A cell that a spreadsheet shows and does not compute: a quote goes before a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
