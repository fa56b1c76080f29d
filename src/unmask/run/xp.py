"""What a kernel does with arrays, once for numpy and once for torch: one body serves all places.

Arithmetic, comparisons and indexing are written as usual; what the two libraries spell differently
is a method here. Torch is imported when a device is asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray, Lookup, weighted_sum

Extreme = Literal["sum", "min", "max"]
Fold: TypeAlias = Callable[..., Any]
_BYTE = 255
_REDUCE: dict[str, np.ufunc] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Numpy:
    """Arrays of this process."""

    arange: Any = staticmethod(np.arange)
    where: Any = staticmethod(np.where)
    isnan: Any = staticmethod(np.isnan)
    nonzero: Any = staticmethod(np.nonzero)

    def chunk(self, here: int, there: int, width: int) -> int:
        """Rows to take at a time: ``here`` on a processor, as make ``there`` cells on a device."""
        return here

    def put(self, array: npt.NDArray[Any]) -> Any:
        """An array where the work happens, kept there as long as it lives: it must not change."""
        return np.asarray(array)

    def host(self, values: Any) -> npt.NDArray[Any]:
        """Back to an array of this process."""
        return np.asarray(values)

    def zeros(self, shape: int | tuple[int, ...], kind: str = "int64") -> Any:
        """Zeros of a type: int64, float64, bool …"""
        return np.zeros(shape, kind)

    def product(self, rows: Any, columns: Any, out: Any = None) -> Any:
        """Inner products of rows with ``columns``; on a processor in front of ``out``, if any."""
        if out is None:
            return rows @ columns.T
        shape = len(rows), len(columns)
        return np.matmul(rows, columns.T, out=out[: shape[0] * shape[1]].reshape(shape))

    def fill(self, values: Any, mask: Any, value: float) -> Any:
        """Set a value where the mask is, in place; gives ``values``."""
        values[mask] = value
        return values

    def repeat(self, sizes: Any) -> Any:
        """0 as often as ``sizes`` says first, then 1 …: the group of each row."""
        return np.repeat(np.arange(len(sizes)), sizes)

    def among(self, lookup: Lookup, scores: Any) -> Any:
        """The number of every score among boundaries (:class:`~unmask.base.Lookup`)."""
        return lookup(scores)

    def bincount(self, cells: Any, size: int, weights: Any = None) -> Any:
        """How often each of ``size`` cells occurs, or the sum of its weights."""
        weights = None if weights is None else weights.reshape(-1)
        return np.bincount(cells.reshape(-1), weights, minlength=size)

    def totals(self, values: Any, axis: int) -> Any:
        """Sums along an axis in double precision."""
        return values.sum(axis=axis, dtype=np.float64)

    def column_sums(self, flags: Any) -> Any:
        """How many rows of each column are true, in bytes where they suffice."""
        if len(flags) <= _BYTE:
            return np.add.reduce(flags.view(np.uint8), axis=0, dtype=np.uint8)
        return flags.sum(axis=0)

    def cumulate(self, values: Any) -> Any:
        """Running totals along the last axis, 0 first."""
        total = np.zeros((*values.shape[:-1], values.shape[-1] + 1), np.result_type(values))
        np.cumsum(values, axis=-1, out=total[..., 1:])
        return total

    def weighted_sum(self, values: Any, weights: Any) -> float:
        """Σ w·v, where an infinite value of weight 0 counts for nothing."""
        return weighted_sum(values, weights)

    def softplus(self, scores: Any, *, wide: bool, out: Any = None) -> Any:
        """log(1 + eˢ); on a processor in double precision if ``wide``, else in ``out``, if any."""
        if wide:
            return np.logaddexp(0.0, scores.astype(np.float64))
        values = np.exp(scores, out=out)
        values += 1
        np.log(values, out=values)
        return values

    def fold(self, rows: IntArray, columns: IntArray) -> Fold:
        """A function of (values, how="sum", "min" or "max") that puts the values of a tile together
        between edges: group k has the rows ``rows[k]`` … ``rows[k + 1]`` − 1, and columns alike.
        """

        def folded(values: Any, how: Extreme = "sum") -> Any:
            reduce = _REDUCE[how]
            tops = [reduce.reduce(values[top:bottom], axis=0) for top, bottom in pairwise(rows)]
            return reduce.reduceat(np.stack(tops), columns[:-1], axis=1)

        return folded


NUMPY = Numpy()


class Torch:
    """Tensors on a device of torch; the methods are those of :class:`Numpy`."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch = torch
        self.device = device
        self.where: Any = torch.where
        self.isnan: Any = torch.isnan
        self._kept: dict[int, tuple[Any, Any]] = {}

    def active(self) -> AbstractContextManager[Any]:
        """Makes a CUDA device the current one."""
        cuda = self.device.startswith("cuda")
        return self.torch.cuda.device(self.device) if cuda else nullcontext()

    def chunk(self, here: int, there: int, width: int) -> int:
        return max(1, there // max(1, width))

    def put(self, array: npt.NDArray[Any]) -> Any:
        key = id(array)
        if key not in self._kept:
            copy = self.torch.from_numpy(np.array(array)).to(self.device)
            self._kept[key] = weakref.ref(array, lambda _: self._kept.pop(key, None)), copy
        return self._kept[key][1]

    def host(self, values: Any) -> npt.NDArray[Any]:
        return np.asarray(values.cpu().numpy() if hasattr(values, "cpu") else values)

    def zeros(self, shape: int | tuple[int, ...], kind: str = "int64") -> Any:
        return self.torch.zeros(shape, dtype=getattr(self.torch, kind), device=self.device)

    def arange(self, start: int, stop: int) -> Any:
        return self.torch.arange(start, stop, device=self.device)

    def product(self, rows: Any, columns: Any, out: Any = None) -> Any:
        if rows.dtype == self.torch.float32 and self._cuts_short:
            rows, columns = rows.double(), columns.double()
        return rows @ columns.T

    @property
    def _cuts_short(self) -> bool:
        """Whether torch is set to cut the factors of float32 products short (TF32)."""
        matmul = self.torch.backends.cuda.matmul
        if not hasattr(matmul, "fp32_precision"):  # torch before 2.9
            return bool(matmul.allow_tf32)
        precision = matmul.fp32_precision
        if precision == "none":
            precision = self.torch.backends.fp32_precision
        return bool(precision == "tf32")

    def fill(self, values: Any, mask: Any, value: float) -> Any:
        return values.masked_fill_(mask, value)

    def nonzero(self, flags: Any) -> tuple[IntArray, ...]:
        return tuple(self.torch.nonzero(flags).cpu().numpy().T)

    def repeat(self, sizes: Any) -> Any:
        return self.torch.repeat_interleave(sizes)

    def among(self, lookup: Lookup, scores: Any) -> Any:
        torch, bounds = self.torch, self.put(lookup.boundaries)
        kind = torch.promote_types(bounds.dtype, scores.dtype)
        bounds, scores = bounds.to(kind), scores.to(kind)
        if lookup.side != "both":
            return torch.bucketize(scores, bounds, right=lookup.side == "right")
        below = torch.searchsorted(bounds, scores)
        return 2 * below + (bounds[below.clamp(max=len(bounds) - 1)] == scores)

    def bincount(self, cells: Any, size: int, weights: Any = None) -> Any:
        cells = cells.reshape(-1)
        if weights is None:
            return self.torch.bincount(cells, minlength=size)
        return self.zeros(size, "float64").index_add_(0, cells, weights.reshape(-1).double())

    def totals(self, values: Any, axis: int) -> Any:
        return values.sum(dim=axis, dtype=self.torch.float64)

    def column_sums(self, flags: Any) -> Any:
        return flags.sum(dim=0)

    def cumulate(self, values: Any) -> Any:
        return self.torch.nn.functional.pad(values.cumsum(dim=-1), (1, 0))

    def weighted_sum(self, values: Any, weights: Any) -> float:
        return float(self.torch.where(weights > 0, values * weights, 0.0).sum())

    def softplus(self, scores: Any, *, wide: bool, out: Any = None) -> Any:
        return self.torch.nn.functional.softplus(scores)

    def fold(self, rows: IntArray, columns: IntArray) -> Fold:
        torch = self.torch
        groups, others = len(rows) - 1, len(columns) - 1
        row_of, column_of = self.repeat(self.put(np.diff(rows))), self.put(np.diff(columns))
        column_of = self.repeat(column_of)
        member = (self.arange(0, groups)[:, None] == row_of).to(torch.float64)
        edges = self.put(columns)

        def folded(values: Any, how: Extreme = "sum") -> Any:
            if how == "sum":
                at = self.cumulate(member @ values.double())[:, edges]
                return at[:, 1:] - at[:, :-1]
            tops = values.new_empty((groups, values.shape[1]))
            tops.scatter_reduce_(
                0, row_of[:, None].expand_as(values), values, f"a{how}", include_self=False
            )
            cells = values.new_empty((groups, others))
            return cells.scatter_reduce_(
                1, column_of.expand_as(tops), tops, f"a{how}", include_self=False
            )

        return folded


Xp: TypeAlias = Numpy | Torch


def narrow(counts: IntArray) -> npt.NDArray[Any]:
    """The same counts in as few bytes as they need, to travel and to be kept."""
    most = int(counts.max(initial=0))
    return counts if most >> 32 else counts.astype(np.min_scalar_type(most))
