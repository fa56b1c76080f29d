"""Embeddings small enough for the whole score matrix."""

import numpy as np
import pytest

import unmask as um


def population(speakers, utterances, dimension=24, *, noise=1.2, seed=0):
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(speakers), utterances)
    vectors = rng.normal(size=(speakers, dimension))[code]
    vectors = vectors + noise * rng.normal(size=(code.size, dimension))
    order = rng.permutation(code.size)
    return um.Embeddings(
        vectors[order].astype(np.float32),
        [f"s{c:04d}" for c in code[order]],
        [f"s{code[i]:04d}-{i:05d}" for i in order],
    )


@pytest.fixture(scope="session")
def embeddings():
    return population(250, 10)
