"""Training of an i-vector extractor: its background model and its total variability space, both by
EM (Dehak et al., 2011; Kenny et al., 2005).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unmask.errors import InputError
from unmask.speech.encoders.card import Recipe, Tensors
from unmask.speech.encoders.ivector import (
    CEPSTRA,
    Front,
    Mixture,
    Statistics,
    ivectors,
    posterior,
    statistics,
)
from unmask.speech.training.data import Corpus, equal_error_rate, some_of
from unmask.speech.training.run import Position, TrainingRun

MOST_FRAMES = 1_000_000
"""Frames that the background model learns from; of more, evenly many of each recording."""
_AT_ONCE = 64
_LEAST_SHARE = 1e-3
"""Variances stay above this share of the variance of all frames."""


def fit_mixture(
    frames: Tensor,
    components: int,
    *,
    iterations: int,
    seed: int,
    full: bool = False,
    done: int = 0,
    mixture: Mixture | None = None,
) -> Iterator[tuple[Mixture, float]]:
    """A mixture by EM from frames drawn with the seed, and the mean log likelihood before each
    iteration; ``full`` covariances after half of them. It goes on from a ``mixture``.
    """
    count, width = frames.shape
    spread = frames.var(0)
    if mixture is None:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randperm(count, generator=generator)[:components].to(frames.device)
        mixture = Mixture(
            frames.new_full((components,), 1.0 / components),
            frames[drawn],
            spread.rsqrt().expand(components, width).clone(),
        )
    for number in range(done, iterations):
        second = full and number >= iterations // 2
        mixture, likelihood = _iteration(mixture, frames, _LEAST_SHARE * spread, full=second)
        yield mixture, likelihood


def _iteration(
    mixture: Mixture, frames: Tensor, floor: Tensor, *, full: bool
) -> tuple[Mixture, float]:
    """One step of EM, and the mean log likelihood before it."""
    components, width = mixture.means.shape
    zeroth = frames.new_zeros(components)
    first = frames.new_zeros(components, width)
    second = frames.new_zeros((components, width, width) if full else (components, width))
    total = 0.0
    for part, share, likelihood in mixture.blocks(frames):
        zeroth += share.sum(0)
        first += share.T @ part
        if full:
            for k in range(components):
                second[k] += (share[:, k : k + 1] * part).T @ part
        else:
            second += share.T @ part.square()
        total += float(likelihood.sum())
    # A component that nobody answers to stays where it is.
    alive = zeroth > 1e-6 * len(frames) / components
    safe = zeroth.clamp(min=1e-10)
    means = torch.where(alive[:, None], first / safe[:, None], mixture.means)
    weights = safe / safe.sum()
    if full:
        outer = means[:, :, None] * means[:, None, :]
        covariance = second / safe[:, None, None] - outer
        covariance = torch.where(alive[:, None, None], covariance, torch.diag(floor))
        factor = torch.linalg.cholesky(covariance + torch.diag(floor))
        eye = torch.eye(width, dtype=frames.dtype, device=frames.device)
        roots = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
    else:
        variance = second / safe[:, None] - means.square()
        roots = torch.maximum(variance, floor).rsqrt()
        roots = torch.where(alive[:, None], roots, mixture.roots)
    # In one layout, so that a run that goes on from a file has the same bits.
    return Mixture(weights, means, roots.contiguous()), total / len(frames)


def fit_variability(
    stats: Statistics,
    rank: int,
    *,
    iterations: int,
    seed: int,
    done: int = 0,
    matrix: Tensor | None = None,
) -> Iterator[tuple[Tensor, float]]:
    """T (K, D, R) by EM, and the mean log likelihood of an utterance before each iteration, but for
    what does not depend on T; it goes on from a ``matrix`` after ``done``. M-step (Kenny et al.,
    2005, eq. 14): T_c = (Σ_u F_uc w̄_uᵀ) (Σ_u N_uc E[w_u w_uᵀ])⁻¹, then times the root of the mean
    of E[w wᵀ] (minimum divergence).
    """
    counts, moments = stats
    utterances, components, width = moments.shape
    if matrix is None:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(components, width, rank, generator=generator, dtype=moments.dtype)
        matrix = (0.1 * drawn).to(moments.device)
    eye = torch.eye(rank, dtype=matrix.dtype, device=matrix.device)
    for _ in range(done, iterations):
        left = torch.zeros_like(matrix)
        right = matrix.new_zeros(components, rank * rank)
        second = matrix.new_zeros(rank, rank)
        total = 0.0
        for some, first in zip(counts.split(_AT_ONCE), moments.split(_AT_ONCE), strict=True):
            mean, covariance, likelihood = posterior(matrix, (some, first))
            square = covariance + mean[:, :, None] * mean[:, None, :]
            left += torch.einsum("ukd,ur->kdr", first, mean)
            right += some.T @ square.reshape(len(mean), -1)
            second += square.sum(0)
            total += float(likelihood.sum())
        normal = right.reshape(components, rank, rank) + 1e-9 * eye
        matrix = torch.linalg.solve(normal, left.transpose(1, 2)).transpose(1, 2)
        matrix = (matrix @ torch.linalg.cholesky(second / utterances)).contiguous()
        yield matrix, total / utterances


@dataclass
class ExtractorTraining:
    """The training of an extractor; the folder of the ``run`` keeps what each iteration made."""

    run: TrainingRun
    corpus: Corpus

    def __post_init__(self) -> None:
        self.recipe, self.device = self.run.recipe, self.run.group.device
        self.front = Front(self.recipe.bins).to(self.device)
        kept = self.run.read()
        self.tensors = {k: torch.from_numpy(v).to(self.device) for k, v in kept.items()}
        self.begun, self.first = time.perf_counter(), self.run.position

    def train(self, apart: Corpus | None) -> tuple[Tensors, dict[str, Any]]:
        """Background model and total variability, and what the card says of them."""
        recipe, done = self.recipe, self.first.step
        half, seed = recipe.iterations, recipe.seed
        rows = range(len(self.corpus.samples))
        with torch.inference_mode():
            if done < half:
                for mixture, value in fit_mixture(
                    self._some_frames(rows),
                    recipe.components,
                    iterations=half,
                    seed=seed,
                    full=recipe.full,
                    done=done,
                    mixture=Mixture.of(self.tensors) if done else None,
                ):
                    self._keep(value, **vars(mixture))
            stats = statistics(Mixture.of(self.tensors), map(self._frames, rows))
            known, begun = self.tensors.get("matrix"), max(0, done - half)
            for matrix, value in fit_variability(
                stats, recipe.dimension, iterations=half, seed=seed, done=begun, matrix=known
            ):
                self._keep(value, matrix=matrix)
            eer = None
            if apart is not None:
                samples, labels = some_of(apart)
                vectors = ivectors(self.front, self.tensors, samples)
                eer = equal_error_rate(vectors - vectors.mean(0), labels)
        *curve, (step, loss, _) = self.run.position.curve
        self.run.position = replace(self.run.position, curve=(*curve, (step, loss, eer)))
        whole = {k: v.cpu().numpy().astype(np.float32) for k, v in self.tensors.items()}
        return whole, self.run.card(2 * half, eer)

    def _keep(self, value: float, **tensors: Tensor) -> None:
        """A checkpoint after an iteration, and a word of it."""
        self.tensors |= tensors
        done, spent = self.run.position.step + 1, time.perf_counter() - self.begun
        curve = (*self.run.position.curve, (done, -value, None))
        self.run.position = Position(done, curve, self.first.seconds + spent)
        if self.run.group.rank == 0:
            self.run.write({k: v.cpu().numpy() for k, v in self.tensors.items()})
        pace = spent / (done - self.first.step)
        self.run.report(done, 2 * self.recipe.iterations, -value, pace)

    def _frames(self, row: int) -> Tensor:
        samples = torch.from_numpy(np.array(self.corpus.samples.row(row))).to(self.device)
        return self.front(samples.float() / 32768.0)

    def _some_frames(self, rows: range) -> Tensor:
        """What the background model learns from."""
        each = max(1, MOST_FRAMES // len(rows))
        some = []
        for frames in map(self._frames, rows):
            places = torch.linspace(0, len(frames) - 1, min(each, len(frames))).long()
            some.append(frames[places.to(frames.device)])
        chosen = torch.cat(some).double()
        if len(chosen) < 2 * self.recipe.components:
            raise InputError(
                f"components: expected at most {len(chosen) // 2} for {len(chosen)} frames, found"
                f" {self.recipe.components}"
            )
        return chosen


def seconds_of(recipe: Recipe, utterances: int, device: torch.device) -> float:
    """Seconds of a training on recordings of three seconds, from the time of one iteration."""
    frames, some = max(4096, 2 * recipe.components), min(utterances, _AT_ONCE)
    noise = torch.randn(frames, 3 * CEPSTRA, dtype=torch.float64, device=device)
    each = last = 0.0
    with torch.inference_mode():
        for _ in range(2):
            begun = time.perf_counter()
            [(mixture, _)] = fit_mixture(
                noise, recipe.components, iterations=1, seed=0, full=recipe.full
            )
            each = time.perf_counter() - begun
            stats = statistics(mixture, noise.split(frames // some)[:some])
            begun = time.perf_counter()
            list(fit_variability(stats, recipe.dimension, iterations=1, seed=0))
            last = time.perf_counter() - begun
    heard = 300 * utterances
    gaussians = each / frames * (recipe.iterations * min(heard, MOST_FRAMES) + heard)
    return gaussians + last / some * recipe.iterations * utterances
