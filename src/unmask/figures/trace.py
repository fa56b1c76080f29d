"""A polygon of error rates followed closely enough for axes on which its straight edges bend."""

from __future__ import annotations

import numpy as np

from unmask.engine import Array


def trace(p_fa: Array, p_miss: Array, *, at_fa: Array, at_miss: Array) -> tuple[Array, Array]:
    """The vertices, and the points of the edges where Pfa or Pmiss takes the values asked for.

    Pfa rises while Pmiss falls along the curve, so sorting keeps the path.
    """
    order = np.lexsort((-p_miss, p_fa))
    fa, miss = p_fa[order], p_miss[order]
    inside_fa = at_fa[(at_fa >= fa[0]) & (at_fa <= fa[-1])]
    inside_miss = at_miss[(at_miss >= miss[-1]) & (at_miss <= miss[0])]
    all_fa = np.concatenate([fa, inside_fa, np.interp(inside_miss, miss[::-1], fa[::-1])])
    all_miss = np.concatenate([miss, np.interp(inside_fa, fa, miss), inside_miss])
    order = np.lexsort((-all_miss, all_fa))
    return all_fa[order], all_miss[order]
