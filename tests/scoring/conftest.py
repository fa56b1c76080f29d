"""Embeddings small enough for the whole score matrix."""

import numpy as np
import pytest
from tests.helpers.populations import speakers_with_noise

import unmask as um


@pytest.fixture(scope="session")
def embeddings():
    rng = np.random.default_rng(0)
    vectors, code = speakers_with_noise(250, 10, 24, noise=1.2, means=rng)
    order = rng.permutation(code.size)
    return um.Embeddings(
        vectors[order].astype(np.float32),
        [f"s{c:04d}" for c in code[order]],
        [f"s{code[i]:04d}-{i:05d}" for i in order],
    )
