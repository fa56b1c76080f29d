"""How N enters a model: only through the weights of a grid.

With F the distribution of an impostor's location, the closest of N independent impostors lies
below x with probability F(x)^N. On a grid of a standard normal location z with edges z_g,
P_N(τ) = Σ_g [Φ(z_{g+1})^N − Φ(z_g)^N]·q_g(τ), where q_g(τ) is the false-alarm rate of an impostor
at that location: no sampling, and the same cost for N = 10 and N = 10⁹.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from unmask.base import FloatArray

EDGES: FloatArray = np.linspace(-7.0, 9.5, 221)
"""Cells of predictions: reach far enough for N = 10⁹ and beyond."""

FIT_EDGES: FloatArray = np.linspace(-4.5, 6.0, 73)
"""Coarser cells, enough for the counts that a model is fitted to."""


def centres(edges: FloatArray) -> FloatArray:
    """Middle of each cell."""
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def closest_mass(counts: npt.ArrayLike, edges: FloatArray = EDGES) -> FloatArray:
    """Probability (counts, grid cells) that the closest of N impostors lies in each cell."""
    n = np.asarray(counts, dtype=np.float64)[:, None]
    below = np.exp(n * log_ndtr(edges))
    below[:, 0], below[:, -1] = 0.0, 1.0
    return np.diff(below, axis=1)


def normal_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Hermite nodes and weights of the standard normal distribution."""
    if size == 1:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()


def rising(rates: FloatArray) -> FloatArray:
    """Rates (…, grid cells, thresholds) that never fall as the impostor comes closer.

    This is what makes predictions monotone in N whatever the parameters are: the closest of more
    impostors is stochastically closer.
    """
    return np.maximum.accumulate(rates, axis=-2)
