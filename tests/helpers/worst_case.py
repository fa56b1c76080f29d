"""Embeddings for tests of the worst case, and what it means that two results are the same."""

from __future__ import annotations

import numpy as np
from tests.helpers.populations import speakers_with_noise

import unmask as um

FEW = (0.1, 0.45, 0.3)
MANY = np.linspace(-0.7, 0.9, 40)
COUNTS = (1, 5, 30)


def voices(*, speakers=34, least=2, most=7, dimension=12, spread=1.0, seed=0):
    """Uneven speakers in mixed order; some are another one's twin, utterance for utterance."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, most + 1, speakers)
    sizes[1], sizes[5] = sizes[0], sizes[4]
    vectors, code = speakers_with_noise(speakers, sizes, dimension, noise=spread, means=rng)
    for twin in (0, 4):
        vectors[code == twin + 1] = vectors[code == twin]
    order = rng.permutation(code.size)
    return um.Embeddings(vectors[order], [f"s{k}" for k in code[order]])


def same(result, wanted, tolerance=1e-12):
    for name in ("values", "low", "high"):
        np.testing.assert_allclose(
            getattr(result, name), getattr(wanted, name), rtol=0, atol=tolerance
        )
    assert result.counts.tolist() == wanted.counts.tolist()
    assert result.thresholds.tolist() == wanted.thresholds.tolist()
    assert (result.targets, result.impostors) == (wanted.targets, wanted.impostors)
