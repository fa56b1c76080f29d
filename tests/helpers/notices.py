"""What people read of a result or a refusal, made ready to be compared between runs."""

from __future__ import annotations

import re
import tempfile

_VARYING = (
    (re.escape(tempfile.gettempdir()) + r"/unmask-\d+-", "<temporary>-"),
    (r"(?<![0-9a-f])[0-9a-f]{8}…", "<digest>…"),
    (r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])", "<digest>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"(unmask|numpy|python) \d+(\.\d+)+", r"\1 <version>"),
    (r"cpython-\d+", "<python>"),
    (r"\d+ of (\d+) blocks", r"<some> of \1 blocks"),
    (r"Error opening '[^']*': [^.]*\.", "<what the library of audio says>"),
)
"""Patterns of what differs between runs and machines, and the word that stands for it."""


def lines_of(result, code: str) -> list[str]:
    """Return the lines of the notices of ``result`` that have ``code``; fail if none has."""
    codes = {notice.code for notice in result.notices}
    assert code in codes, f"expected a notice {code}, found {sorted(codes)}"
    return [notice.line for notice in result.notices if notice.code == code]


def steady(text: object) -> str:
    """Return ``text`` without what differs between runs: digests, addresses, versions."""
    told = str(text)
    for pattern, word in _VARYING:
        told = re.sub(pattern, word, told)
    return told
