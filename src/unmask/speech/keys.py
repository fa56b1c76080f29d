"""Random numbers that follow from a seed and from names alone: what keyed safeguards draw from."""

from __future__ import annotations

import hashlib

import numpy as np


def keyed(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for these names, whoever else there is and in what order."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
