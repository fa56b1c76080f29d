"""Gaussian mixtures by EM, many frames at once: the universal background model of i-vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

_LEAST_SHARE = 1e-3
"""Variances stay above this share of the variance of all frames."""
_BLOCK = 1 << 25
"""Numbers held at once while responsibilities are computed."""


@dataclass(frozen=True)
class Mixture:
    """Gaussians with ``weights`` (K), ``means`` (K, D) and ``roots``: the inverse of the Cholesky
    factor of each covariance, (K, D, D), or of a diagonal one its diagonal, (K, D).
    """

    weights: Tensor
    means: Tensor
    roots: Tensor

    @property
    def full(self) -> bool:
        return self.roots.ndim == 3

    def whitened(self, deviations: Tensor) -> Tensor:
        """Deviations (K, D) from the means, of unit covariance: L⁻¹ x."""
        if not self.full:
            return deviations * self.roots
        return torch.einsum("kij,kj->ki", self.roots, deviations)

    def log_likelihoods(self, frames: Tensor) -> Tensor:
        """Logarithms of w_k N(x_n; μ_k, Σ_k), (N, K)."""
        constant = self.weights.log() - 0.5 * frames.shape[1] * math.log(2.0 * math.pi)
        if not self.full:
            precision = self.roots.square()
            squares = (
                frames.square() @ precision.T
                - 2.0 * frames @ (precision * self.means).T
                + (precision * self.means.square()).sum(1)
            )
            return constant + self.roots.log().sum(1) - 0.5 * squares
        columns = [
            ((frames - mean) @ root.T).square().sum(1)
            for mean, root in zip(self.means, self.roots, strict=True)
        ]
        logs = torch.diagonal(self.roots, dim1=1, dim2=2).log().sum(1)
        return constant + logs - 0.5 * torch.stack(columns, dim=1)

    def responsibilities(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior of each component (N, K), and log p(x_n) of each frame."""
        joint = self.log_likelihoods(frames)
        total = torch.logsumexp(joint, dim=1)
        return (joint - total[:, None]).exp(), total


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
    """A mixture by EM from ``components`` frames drawn with the seed, and the mean log likelihood
    before each iteration. ``full`` covariances follow after half the iterations with diagonal ones.
    It goes on from a ``mixture`` after ``done`` iterations.
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
    for part in blocks(frames, components):
        share, likelihood = mixture.responsibilities(part)
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
        roots = torch.where(alive[:, None], roots, _diagonal(mixture.roots))
    # In one layout, so that a run that goes on from a file has the same bits.
    moved = replace(mixture, weights=weights, means=means, roots=roots.contiguous())
    return moved, total / len(frames)


def _diagonal(roots: Tensor) -> Tensor:
    return torch.diagonal(roots, dim1=1, dim2=2) if roots.ndim == 3 else roots


def blocks(frames: Tensor, components: int) -> Iterator[Tensor]:
    """Frames in parts whose responsibilities fit into memory."""
    return iter(frames.split(max(1, _BLOCK // components)))
