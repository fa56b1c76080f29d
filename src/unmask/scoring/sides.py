"""What a back-end is: two rows for every vector, whose inner products are scores.

A matrix product rounds differently for different shapes: scores come from tiles on a fixed grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, Groups, IntArray
from unmask.errors import InputError
from unmask.run import NUMPY, Range, Xp
from unmask.scoring.pairs import PairGrid

WIDE = 256, 4096
"""Rows and columns of a tile in double precision."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows as they are enrolled and as they are tested, whose inner products are scores.

    Where a score needs terms of either vector alone, rows have columns for them: x·y + f(x) + g(y)
    is (x, f(x), 1)·(y, 1, g(y)). Cosine has the same array on both sides.

    Parameters
    ----------
    enrol : array (vectors, width)
        A row for each vector as it is enrolled.
    test : array (vectors, width)
        A row for each vector as it is tested.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> length, one = (x * x).sum(axis=1, keepdims=True), np.ones((2, 1))
    >>> sides = um.Sides(np.hstack([2 * x, -length, one]), np.hstack([x, one, -length]))
    >>> sides.enrol @ sides.test.T  # −‖x − y‖²
    array([[ 0., -8.],
           [-8.,  0.]])
    """

    enrol: FloatArray
    test: FloatArray

    def negated(self) -> Sides:
        """Rows of the negated scores."""
        return Sides(self.enrol, -self.test)

    def take(self, rows: npt.NDArray[Any]) -> Sides:
        """Some rows of both sides."""
        enrol = np.ascontiguousarray(self.enrol[rows])
        same = self.test is self.enrol
        return Sides(enrol, enrol if same else np.ascontiguousarray(self.test[rows]))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the rows, and so of their scores."""
        return self.enrol.dtype

    def pairs(self, tile: tuple[int, int]) -> PairGrid:
        """All pairs, whoever speaks, in tiles from where a block begins."""
        rows, columns = Groups(np.arange(len(self.enrol))), Groups(np.arange(len(self.test)))
        return PairGrid(self, rows, columns, tile=tile, fixed=False)

    def scores(self, xp: Xp, rows: Range, columns: Range, out: Any = None) -> Any:
        """Scores of some rows on both sides; on a processor at the front of ``out``, if any."""
        enrol, test = xp.put(self.enrol)[slice(*rows)], xp.put(self.test)[slice(*columns)]
        return xp.product(enrol, test, out)


@runtime_checkable
class Backend(Protocol):
    """Compares speaker embeddings; a higher score says "same speaker" more strongly.

    ``sides`` gives the rows of some vectors, a vector in each row, and does everything that depends
    on one vector alone; utterances that are averaged are averaged before. All that compares voices
    takes any object with a ``name`` and this method.

    Examples
    --------
    >>> import unmask as um
    >>> class InnerProduct:
    ...     name = "inner product"
    ...     def sides(self, vectors):
    ...         return um.Sides(vectors, vectors)
    >>> isinstance(InnerProduct(), um.Backend)
    True
    """

    @property
    def name(self) -> str: ...

    def sides(self, vectors: npt.ArrayLike) -> Sides: ...


@runtime_checkable
class CountingBackend(Backend, Protocol):
    """A back-end whose scores depend on how many utterances each vector is the average of."""

    def sides_of_means(
        self,
        enrol: npt.ArrayLike,
        enrol_counts: IntArray,
        test: npt.ArrayLike,
        test_counts: IntArray,
    ) -> Sides: ...


def sides_of_means(
    backend: Backend,
    enrol: npt.ArrayLike,
    enrol_counts: IntArray,
    test: npt.ArrayLike,
    test_counts: IntArray,
) -> Sides:
    """Give the rows of averages over so many utterances each; most back-ends need no counts."""
    if isinstance(backend, CountingBackend):
        return backend.sides_of_means(enrol, enrol_counts, test, test_counts)
    return sides_of(backend, enrol, test)


def sides_of(
    backend: Backend, vectors: npt.ArrayLike, tested: npt.ArrayLike | None = None
) -> Sides:
    """The rows, of one width, that a back-end gives; or test rows of those ``tested``."""
    made, size = backend.sides(vectors), np.shape(vectors)[0]
    enrol = np.asarray(made.enrol, np.float64)
    test = enrol if made.test is made.enrol else np.asarray(made.test, np.float64)
    if tested is not None:
        own, test = test, sides_of(backend, tested).test
        refused = own.shape != enrol.shape or test.shape[1:] != enrol.shape[1:]
    else:
        refused = test.shape != enrol.shape
    if refused or enrol.ndim != 2 or len(enrol) != size:
        wanted = f"{size} rows of one width on both sides"
        raise InputError(f"back-end {backend.name}", wanted, f"{enrol.shape} and {test.shape}")
    if not np.isfinite(enrol).all() or not (test is enrol or np.isfinite(test).all()):
        raise InputError(f"back-end {backend.name}", "rows of finite numbers", "others")
    return Sides(enrol, test)


def score_matrix(backend: Backend, enrol: npt.ArrayLike, test: npt.ArrayLike) -> FloatArray:
    """Scores of all enrolment vectors with all test vectors, tile by tile."""
    sides = sides_of(backend, enrol, test)
    return sides.pairs(WIDE).kept(NUMPY, (0, len(sides.enrol)))
