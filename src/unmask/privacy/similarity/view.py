"""Similarity matrices as they are drawn: four quadrants, ordered, binned where they are large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy.similarity.matrix import SimilaritySet
from unmask.privacy.similarity.result import Pseudonymisation

MOST_SPEAKERS = 300
ORDERS = ("given", "cluster")


@dataclass(frozen=True, eq=False)
class MatrixView:
    """A square of similarities; each of ``parts`` (original, protected) takes an equal share of the
    rows and of the columns.

    ``labels`` name the speakers of one part, or the first and last speaker of each bin of
    ``per_bin`` speakers. A bin on the diagonal shows the mean self-similarity, any other bin the
    mean similarity of different speakers.
    """

    values: FloatArray
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    per_bin: int = 1


def quadrants(
    result: Pseudonymisation, *, order: str = "given", most: int = MOST_SPEAKERS
) -> MatrixView:
    """OO upper left, OP upper right, its transpose lower left, PP lower right.

    ``cluster`` puts speakers side by side whose original and protected voices are alike (average
    linkage), for all quadrants alike; ``given`` keeps the order of the input.
    """
    oo, op, pp = (result.matrices[name] for name in ("oo", "op", "pp"))
    place = _place([oo, pp], order)
    step = -(-len(result.speakers) // most)
    parts = [[oo, op], [op.T, pp]]
    values = np.block([[_binned(m[np.ix_(place, place)], step) for m in row] for row in parts])
    return MatrixView(
        values, _labels(result.speakers, place, step), ("original", "protected"), step
    )


def single(
    similarity: SimilaritySet, *, order: str = "given", most: int = MOST_SPEAKERS
) -> MatrixView:
    """One set alone."""
    place = _place([similarity.matrix], order)
    step = -(-len(similarity.speakers) // most)
    values = _binned(similarity.matrix[np.ix_(place, place)], step)
    labels = _labels(similarity.speakers, place, step)
    return MatrixView(values, labels, (similarity.name.upper(),), step)


def _place(matrices: list[FloatArray], order: str) -> IntArray:
    size = matrices[0].shape[0]
    if order not in ORDERS:
        raise InputError(f"order: expected given or cluster, found {order}")
    if order == "given" or size < 3:
        return np.arange(size)
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    alike = sum(matrix + matrix.T for matrix in matrices) / (2 * len(matrices))
    distance = 1 - np.asarray(alike)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=size <= 300)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _binned(matrix: FloatArray, step: int) -> FloatArray:
    if step == 1:
        return matrix
    first = np.arange(0, matrix.shape[0], step)
    off = ~np.eye(matrix.shape[0], dtype=bool)

    def summed(values: FloatArray) -> FloatArray:
        return np.add.reduceat(np.add.reduceat(values, first, axis=0), first, axis=1)

    binned = summed(matrix * off) / np.maximum(summed(off.astype(np.float64)), 1.0)
    own = np.add.reduceat(np.diag(matrix), first) / np.diff(np.append(first, matrix.shape[0]))
    np.fill_diagonal(binned, own)
    return np.asarray(binned)


def _labels(speakers: tuple[str, ...], place: IntArray, step: int) -> tuple[str, ...]:
    names = [speakers[i] for i in place]
    if step == 1:
        return tuple(names)
    bins = (names[i : i + step] for i in range(0, len(names), step))
    return tuple(part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in bins)
