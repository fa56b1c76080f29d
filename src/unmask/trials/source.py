"""Where data came from: what the ``inputs`` entry of a result says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """One input: the path as given, the SHA-256 of its bytes, what was detected and counted.

    ``missing`` counts trials of this input that found no partner in the other one (or had no
    score) and were left out on request, ``duplicates`` trials left out because they came before.
    A count that does not apply is ``None``.
    """

    name: str
    sha256: str
    format: str
    target: int | None = None
    nontarget: int | None = None
    missing: int = 0
    duplicates: int = 0
    speakers: int | None = None
    detected: str = ""
