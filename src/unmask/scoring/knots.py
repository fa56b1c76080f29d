"""Where scores lie among given ones, by one look at a table instead of a search or a sort.

The table cuts the range of the knots into cells of equal width. The cell of a score grows with the
score, whatever is rounded, so a cell without a knot tells exactly how many knots lie below it; only
scores in a cell that holds one are searched for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.lazy import lazy

_CELLS_PER_KNOT = 64
_FEWEST_CELLS, _MOST_CELLS = 1 << 12, 1 << 21


@dataclass(frozen=True, eq=False)
class Knots:
    """Distinct scores in ascending order, −inf and inf among them if need be."""

    values: FloatArray

    @property
    def codes(self) -> int:
        """Number of codes: a gap below each knot, each knot, and the gap above the last."""
        return 2 * self.values.size + 1

    def code(self, scores: FloatArray) -> IntArray:
        """2j for a score in the gap below knot j, 2j + 1 for one that equals it."""
        codes = self._table.take(self._cell(scores))
        flat = codes.reshape(-1)
        unsure = np.flatnonzero(flat < 0)
        searched = scores.reshape(-1)[unsure]
        below = np.searchsorted(self.values, searched)
        met = self.values[np.minimum(below, self.values.size - 1)] == searched
        flat[unsure] = 2 * below + met
        return codes

    @lazy
    def _scale(self) -> tuple[float, float, int]:
        """Lowest finite knot, cells per unit of score, number of cells."""
        cells = 1 << int(_CELLS_PER_KNOT * self.values.size).bit_length()
        cells = min(max(cells, _FEWEST_CELLS), _MOST_CELLS)
        finite = self.values[np.isfinite(self.values)]
        if finite.size < 2 or finite[-1] - finite[0] < np.finfo(np.float32).tiny:
            return float(finite[0]) if finite.size else 0.0, 1.0, cells
        return float(finite[0]), float((cells - 3) / (finite[-1] - finite[0])), cells

    def _cell(self, scores: FloatArray) -> IntArray:
        """The first cell lies below all finite knots, the last one above."""
        lowest, scale, cells = self._scale
        position = scores - lowest
        position *= scale
        position += 1
        np.clip(position, 0, cells - 1, out=position)
        return position.astype(np.int64)

    @lazy
    def _table(self) -> IntArray:
        """Code of every cell; −1 where a knot lies in it."""
        inside = np.bincount(self._cell(self.values), minlength=self._scale[2])
        return np.where(inside > 0, -1, 2 * (np.cumsum(inside) - inside))
