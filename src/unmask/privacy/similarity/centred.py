"""The centred score: each segment's score less its mean over all segments of the other side.

s(a, b) − mean s(a, ·) − mean s(·, b), no pair of a segment with itself among the means. For cosines
this is the product of vectors from which the mean of their own side was subtracted (less a
constant). It needs no labels, so any attacker can do it, and it undoes whatever a safeguard adds to
all voices alike.
"""

from __future__ import annotations

import numpy as np

from unmask.base import FloatArray
from unmask.privacy.similarity.pairs import (
    Block,
    EmbeddingPairs,
    MatrixPairs,
    PairSource,
    ScoreBlock,
    Segments,
    strips,
)
from unmask.scoring import llr_block, product_block


def centred(source: PairSource, segments: Segments) -> PairSource | None:
    """The same comparisons with their scores centred; None where a mean is infinite."""
    if isinstance(source, EmbeddingPairs) and source.score in (product_block, llr_block):
        return _centred_products(source)
    rows, columns = _means(source, len(segments))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        return None
    if isinstance(source, EmbeddingPairs):
        enrol, test = (
            np.column_stack([vectors, -mean])
            for vectors, mean in ((source.enrol, rows), (source.test, columns))
        )
        return EmbeddingPairs(_with_offsets(source.score), enrol, test)
    assert isinstance(source, MatrixPairs)
    return MatrixPairs(source.matrix, segments, rows, columns)


def _centred_products(source: EmbeddingPairs) -> EmbeddingPairs:
    """Means of products are products with means: they take the place of the own terms."""
    own = 0 if source.score is product_block else 1
    enrol, test = (rows[:, : rows.shape[1] - own] for rows in (source.enrol, source.test))
    number = len(enrol) - 1
    both = (enrol * test).sum(axis=1)
    rows = (enrol @ test.sum(axis=0) - both) / number
    columns = (test @ enrol.sum(axis=0) - both) / number
    if own:
        rows += (source.test[:, -1].sum() - source.test[:, -1]) / number
        columns += (source.enrol[:, -1].sum() - source.enrol[:, -1]) / number
    return EmbeddingPairs(
        llr_block, np.column_stack([enrol, -rows]), np.column_stack([test, -columns])
    )


def _means(source: PairSource, size: int) -> tuple[FloatArray, FloatArray]:
    """Mean score of every row and of every column, self-comparisons and NaN left out."""
    rows, columns, number = np.zeros(size), np.zeros(size), np.zeros((2, size))
    with np.errstate(invalid="ignore"):
        for top, bottom in strips((0, size)):
            block = np.array(source.scores((top, bottom), (0, size)), dtype=np.float64)
            block[np.arange(bottom - top), np.arange(top, bottom)] = np.nan
            known = ~np.isnan(block)
            block[~known] = 0.0
            rows[top:bottom] = block.sum(axis=1)
            columns += block.sum(axis=0)
            number[0, top:bottom] = known.sum(axis=1)
            number[1] += known.sum(axis=0)
        return rows / np.maximum(number[0], 1), columns / np.maximum(number[1], 1)


def _with_offsets(score: ScoreBlock) -> ScoreBlock:
    """A back-end's scores plus the last column of either side."""

    def scored(enrol: Block, test: Block) -> Block:
        return np.asarray(score(enrol[:, :-1], test[:, :-1]) + enrol[:, -1:] + test[:, -1])

    return scored
