"""The training recipe of Sholokhov 2020, section 3.3, for comparison (extra ``torch``).

Mean squared error between simulated and empirical P_FA^N(τ), both by eq. 4, the step function a
scaled sigmoid; Adam in batches of 20, from moments of the scores. Location-scale models only: for
PLDA the recipe replaces the choice by a softmax-weighted mean and does not find the fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import advance
from unmask.stress.extrapolation.base import Moments, Warp
from unmask.stress.extrapolation.models import KNOTS, Parametric, gaussian_base
from unmask.stress.impostors.rates import Rates, crossed_rates
from unmask.stress.impostors.uncertainty import Crossed

TRAINED = ("ls", "ls+", "ls-cdf", "ls-cdf+")
BATCH = 20
SIMULATIONS = 100
LEARNING_RATE = 1e-3
_MOST_STEPS = 1500
_WINDOW = 100
_PATIENCE = 3
_SCORES = 8
_SHARPNESS = 0.1
_KNOTS = 24
_POOL = 20_000
_GRID = 401
Cells = tuple[IntArray, FloatArray, FloatArray]


def fit_paper(
    crossed: Crossed,
    surface: Rates,
    moments: Moments,
    *,
    model: str,
    seed: int,
    steps: int = _MOST_STEPS,
) -> tuple[Parametric, Notice]:
    """Train by simulation; stops when the mean loss of 100 steps has not improved three times."""
    if model not in TRAINED:
        why = (
            " (the softmax in place of the choice learns a mean of identity variables, not the"
            " closest: 7 to 9 % off where the exact fit is 0.4 % off)"
        ) * model.startswith("plda")
        raise InputError(
            f"training=paper: expected one of {', '.join(TRAINED)} as model, found {model}{why}"
        )
    try:
        import torch
    except ImportError:
        raise InputError(
            "training=paper: expected torch, found none (pip install unmask[torch])"
        ) from None
    cells = training_cells(crossed, int(surface.counts.max()), seed)
    trainer = _Trainer(torch, model, surface, cells, moments, seed)
    taken = trainer.run(steps)
    sentence = f"trained by the paper's stochastic recipe, {taken} steps: no intervals, no rivals"
    return trainer.model(), Notice("paper-training", "", sentence)


def training_cells(crossed: Crossed, most: int, seed: int) -> Cells:
    """N, τ and the rate at cells drawn uniformly from [1, N_max] × the range of the scores."""
    from scipy.interpolate import RegularGridInterpolator

    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most + 1, _POOL)
    ends = float(crossed.whole.scores.min()), float(crossed.whole.scores.max())
    thresholds = rng.uniform(*ends, _POOL)
    grid, distinct = np.linspace(*ends, _GRID), np.unique(counts)
    known = crossed_rates(crossed, grid, distinct, None).values
    rates = RegularGridInterpolator((distinct, grid), known)
    return counts, thresholds, rates((counts, thresholds))


class _Trainer:
    """Parameters, simulation and the loop of Adam."""

    def __init__(
        self, torch: Any, name: str, surface: Rates, cells: Cells, moments: Moments, seed: int
    ) -> None:
        self.torch, self.name, self.cells = torch, name, cells
        self.draw = torch.Generator().manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.warped = name.endswith("+")
        self.knots = np.linspace(surface.thresholds[0], surface.thresholds[-1], _KNOTS)
        unit = moments.spread
        self.affine = self._parameter([moments.location, math.log(unit)])
        straight = (self.knots - moments.location) / unit
        self.first = self._parameter([straight[0]])
        self.rises = self._parameter(np.log(np.expm1(np.diff(straight))))
        self.general = "cdf" in name
        relative = moments.scale / moments.spread
        varied = math.log(max(moments.log_scale_spread, 0.02))
        scale = [varied] if self.general else [math.log(relative), varied]
        self.base = self._parameter(list(gaussian_base(relative).values()))
        self.shape = self._parameter(scale)
        axis = [self.first, self.rises] if self.warped else [self.affine]
        self.trained = [self.shape, *axis, *([self.base] if self.general else [])]

    def _parameter(self, values: Any) -> Any:
        return self.torch.tensor(np.asarray(values), dtype=self.torch.float32, requires_grad=True)

    def _normal(self, *size: int) -> Any:
        return self.torch.randn(*size, generator=self.draw)

    def run(self, steps: int) -> int:
        """Adam until the loss no longer improves; how many steps it took."""
        optimiser = self.torch.optim.Adam(self.trained, lr=LEARNING_RATE)
        best, waited, losses = math.inf, 0, []
        for step in range(1, steps + 1):
            loss = self._loss()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
            advance(step, steps)
            if step % _WINDOW == 0:
                mean = float(np.mean(losses[-_WINDOW:]))
                waited = 0 if mean < best else waited + 1
                best = min(best, mean)
                if waited == _PATIENCE:
                    return step
        return steps

    def _loss(self) -> Any:
        """Mean squared error on a batch of training cells."""
        tensor, kind = self.torch.tensor, self.torch.float32
        some = self.rng.integers(0, _POOL, BATCH)
        counts, thresholds, rates = (each[some] for each in self.cells)
        scores = self._location_scale(tensor(counts))
        levels = self._read(tensor(thresholds, dtype=kind))
        above = self.torch.sigmoid((scores - levels[:, None, None]) / _SHARPNESS)
        return ((above.mean(dim=(1, 2)) - tensor(rates, dtype=kind)) ** 2).mean()

    def _read(self, thresholds: Any) -> Any:
        """Thresholds in units of the model, through the affine map or the monotone warping."""
        torch = self.torch
        if not self.warped:
            return (thresholds - self.affine[0]) / torch.exp(self.affine[1])
        rises = torch.nn.functional.softplus(self.rises)
        values = torch.cat([self.first, self.first + rises.cumsum(0)])
        step = float(self.knots[1] - self.knots[0])
        position = ((thresholds - float(self.knots[0])) / step).clamp(0, _KNOTS - 1 - 1e-4)
        left = position.floor().long()
        return values[left] + (position - left) * (values[left + 1] - values[left])

    def _location_scale(self, counts: Any) -> Any:
        """Scores (cells, simulations, scores) of the closest of N: its location is Φ⁻¹(u^{1/N})."""
        torch = self.torch
        uniform = torch.rand(BATCH, SIMULATIONS, generator=self.draw, dtype=torch.float64)
        log_share = torch.log(uniform.clamp_min(1e-12)) / counts[:, None]
        location = torch.special.ndtri(torch.exp(log_share).clamp(1e-12, 1 - 1e-12)).float()
        spread = torch.exp(self.shape[-1]) * self._normal(BATCH, SIMULATIONS)
        scale = torch.exp(spread if self.general else self.shape[0] + spread)
        size = (BATCH, SIMULATIONS, _SCORES)
        noise = self._general(*size) if self.general else self._normal(*size)
        return location[:, :, None] + scale[:, :, None] * noise

    def _general(self, *size: int) -> Any:
        """Draws from the learnable piecewise-linear base, by its inverse distribution function."""
        torch = self.torch
        knots = torch.tensor(KNOTS, dtype=torch.float32)
        steps = torch.softmax(self.base, dim=0)
        heights = torch.cat([torch.zeros(1), steps.cumsum(0)])
        uniform = torch.rand(*size, generator=self.draw)
        position = torch.searchsorted(heights.detach(), uniform, right=True) - 1
        position = position.clamp(0, len(KNOTS) - 2)
        share = (uniform - heights[position]) / steps[position]
        return knots[position] + share * (knots[position + 1] - knots[position])

    def model(self) -> Parametric:
        """The trained parameters in the model that predicts from them."""
        *scale, varied = self._numbers(self.shape).tolist()
        given = {"log_scale_spread": varied}
        if self.general:
            given |= {f"base{k}": step for k, step in enumerate(self._numbers(self.base).tolist())}
        else:
            given["log_scale"] = scale[0]
        if not self.warped:
            given["location"], given["log_spread"] = self._numbers(self.affine).tolist()
            return Parametric(self.name, given, None)
        rises = np.log1p(np.exp(self._numbers(self.rises)))
        values = self._numbers(self.first) + np.concatenate([[0.0], np.cumsum(rises)])
        return Parametric(self.name, given, Warp.through(self.knots, values, np.ones(_KNOTS)))

    def _numbers(self, tensor: Any) -> FloatArray:
        return np.asarray(tensor.detach().double().numpy())
