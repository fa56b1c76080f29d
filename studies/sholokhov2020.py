"""The stochastic recipes of Sholokhov 2020, against which the exact ones are checked.

Algorithm 1 draws impostors (:func:`simulate_worst_case`). The training of section 3.3 needs torch
(:func:`fit_paper`): mean squared error between simulated and empirical P_FA^N(τ), both by eq. 4,
the step function a scaled sigmoid; Adam in batches of 20, from moments of the scores.
Location-scale models only: for PLDA the recipe replaces the choice by a softmax-weighted mean and
does not find the fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import advance
from unmask.stress import PairScores
from unmask.stress.extrapolation.base import StartValues, Warp
from unmask.stress.extrapolation.models import KNOTS, Parametric, gaussian_base
from unmask.stress.impostors.pair_scores import Proxy, from_zero, speaker_pairs
from unmask.stress.impostors.rates import Levels, Rates, crossed_rates
from unmask.stress.impostors.uncertainty import CrossFitted

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


def simulate_worst_case(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    simulations: int = 1000,
    proxy: Proxy = None,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Algorithm 1 of Sholokhov 2020: mean and standard error of P_FA^N(τ) over random draws.

    A target and N impostors are drawn ``simulations`` times for each N, from ``seed``; ``scores``,
    ``thresholds``, ``counts`` and ``proxy`` are those of :func:`worst_case_false_alarms`.
    """
    if simulations < 2:
        raise InputError(f"simulations: expected at least 2, found {simulations}")
    pairs, levels = speaker_pairs(scores).checked().chosen_by(proxy), Levels.of(thresholds)
    wanted, close = pairs.possible(counts), closeness(pairs)
    rng = np.random.default_rng(seed)
    rates = np.empty((wanted.size, simulations, levels.values.size))
    for c, count in enumerate(wanted):
        targets = rng.integers(0, len(pairs.target_names), simulations)
        for t, target in enumerate(targets):
            begin, end = pairs.first[target : target + 2]
            subset = rng.choice(np.arange(begin, end), size=count, replace=False)
            closest = subset[close[subset].argmax()]
            own = pairs.scores[pairs.start[closest] : pairs.start[closest + 1]]
            rates[c, t] = (own[:, None] > levels.values).mean(axis=0)
    error = rates.std(axis=1, ddof=1) / np.sqrt(simulations)
    return rates.mean(axis=1)[:, levels.index], error[:, levels.index]


def closeness(pairs: PairScores) -> IntArray:
    """Numbers that order each target's pairs by similarity, the same for equally close ones."""
    order = np.lexsort((-pairs.similarity, pairs.target))
    apart = -np.diff(pairs.similarity[order]) > pairs.tie
    code = np.empty(order.size, dtype=np.int64)
    code[order] = -from_zero(apart | (np.diff(pairs.target[order]) > 0))
    return code


def fit_paper(
    crossed: CrossFitted,
    surface: Rates,
    moments: StartValues,
    *,
    model: str,
    seed: int,
    steps: int = _MOST_STEPS,
) -> Parametric:
    """Train by simulation; stops when the mean loss of 100 steps has not improved three times."""
    if model not in TRAINED:
        why = (
            " (the softmax in place of the choice learns a mean of identity variables, not the"
            " closest: 7 to 9 % off where the exact fit is 0.4 % off)"
        ) * model.startswith("plda")
        raise InputError("training", f"one of {', '.join(TRAINED)} as model", f"{model}{why}")
    try:
        import torch
    except ImportError:
        raise InputError("training", "torch", "none") from None
    cells = training_cells(crossed, int(surface.counts.max()), seed)
    trainer = _Trainer(torch, model, surface, cells, moments, seed)
    trainer.run(steps)
    return trainer.model()


def training_cells(crossed: CrossFitted, most: int, seed: int) -> Cells:
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
        self, torch: Any, name: str, surface: Rates, cells: Cells, moments: StartValues, seed: int
    ) -> None:
        self.torch, self.name, self.cells = torch, name, cells
        self.draw = torch.Generator().manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.warped, self.general = name.endswith("+"), "cdf" in name
        self.knots = np.linspace(surface.thresholds[0], surface.thresholds[-1], _KNOTS)
        straight = (self.knots - moments.location) / moments.spread
        rises = np.log(np.expm1(np.diff(straight)))
        affine = [moments.location, math.log(moments.spread)]
        relative = moments.scale / moments.spread
        varied = math.log(max(moments.log_scale_spread, 0.02))
        self.shape, self.axis, self.base = (
            torch.tensor(np.asarray(values), dtype=torch.float32, requires_grad=True)
            for values in (
                [varied] if self.general else [math.log(relative), varied],
                [straight[0], *rises] if self.warped else affine,
                list(gaussian_base(relative).values()),
            )
        )

    def run(self, steps: int) -> None:
        """Adam until the loss no longer improves."""
        trained = [self.shape, self.axis, *([self.base] if self.general else [])]
        optimiser = self.torch.optim.Adam(trained, lr=LEARNING_RATE)
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
                    return

    def _loss(self) -> Any:
        """Mean squared error on a batch of training cells."""
        tensor, kind = self.torch.tensor, self.torch.float32
        some = self.rng.integers(0, _POOL, BATCH)
        counts, thresholds, rates = (each[some] for each in self.cells)
        scores = self._scores(tensor(counts))
        levels = self._read(tensor(thresholds, dtype=kind))
        above = self.torch.sigmoid((scores - levels[:, None, None]) / _SHARPNESS)
        return ((above.mean(dim=(1, 2)) - tensor(rates, dtype=kind)) ** 2).mean()

    def _read(self, thresholds: Any) -> Any:
        """Thresholds in units of the model, through the affine map or the monotone warping."""
        torch, axis = self.torch, self.axis
        if not self.warped:
            return (thresholds - axis[0]) / torch.exp(axis[1])
        rises = torch.nn.functional.softplus(axis[1:])
        values = torch.cat([axis[:1], axis[:1] + rises.cumsum(0)])
        step = float(self.knots[1] - self.knots[0])
        position = ((thresholds - float(self.knots[0])) / step).clamp(0, _KNOTS - 1 - 1e-4)
        left = position.floor().long()
        return values[left] + (position - left) * (values[left + 1] - values[left])

    def _scores(self, counts: Any) -> Any:
        """Scores (cells, simulations, scores) of the closest of N, whose location is Φ⁻¹(u^{1/N}),
        around it by the Gaussian or the learnable piecewise-linear base.
        """
        torch, size = self.torch, (BATCH, SIMULATIONS, _SCORES)
        uniform = torch.rand(BATCH, SIMULATIONS, generator=self.draw, dtype=torch.float64)
        log_share = torch.log(uniform.clamp_min(1e-12)) / counts[:, None]
        location = torch.special.ndtri(torch.exp(log_share).clamp(1e-12, 1 - 1e-12)).float()
        spread = torch.exp(self.shape[-1]) * torch.randn(*size[:2], generator=self.draw)
        scale = torch.exp(spread if self.general else self.shape[0] + spread)
        if not self.general:
            noise = torch.randn(*size, generator=self.draw)
            return location[:, :, None] + scale[:, :, None] * noise
        knots, steps = torch.tensor(KNOTS, dtype=torch.float32), torch.softmax(self.base, dim=0)
        heights = torch.cat([torch.zeros(1), steps.cumsum(0)])
        drawn = torch.rand(*size, generator=self.draw)
        position = torch.searchsorted(heights.detach(), drawn, right=True) - 1
        position = position.clamp(0, len(KNOTS) - 2)
        share = (drawn - heights[position]) / steps[position]
        noise = knots[position] + share * (knots[position + 1] - knots[position])
        return location[:, :, None] + scale[:, :, None] * noise

    def model(self) -> Parametric:
        """The trained parameters in the model that predicts from them."""
        shape, axis, base = (
            np.asarray(tensor.detach().double().numpy())
            for tensor in (self.shape, self.axis, self.base)
        )
        given = {"log_scale_spread": float(shape[-1])}
        if self.general:
            given |= {f"base{k}": step for k, step in enumerate(base.tolist())}
        else:
            given["log_scale"] = float(shape[0])
        if not self.warped:
            given["location"], given["log_spread"] = axis.tolist()
            return Parametric(self.name, given, None)
        values = axis[0] + np.concatenate([[0.0], np.cumsum(np.log1p(np.exp(axis[1:])))])
        return Parametric(self.name, given, Warp.through(self.knots, values, np.ones(_KNOTS)))
