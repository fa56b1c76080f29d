"""I-vectors of recordings: what a background model of frames and a total variability space make of
them (Dehak et al., 2011).

An utterance has counts N_c = Σ_t γ_t(c) and whitened first moments F_c = Σ_t γ_t(c) L_c⁻¹ (x_t −
μ_c) for each Gaussian c with covariance L_c L_cᵀ. With w ~ N(0, I) and means μ_c + L_c T_c w its
posterior has precision and mean

    P = I + Σ_c N_c T_cᵀ T_c,   w̄ = P⁻¹ Σ_c T_cᵀ F_c,

and w̄ is the i-vector (Dehak, eq. 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unmask.errors import InputError
from unmask.speech.audio import Float32Array
from unmask.speech.encoders.neural import Cepstra, TrainedFolder, deltas, inference

CEPSTRA = 24
_KALDI_SCALE = 2.0 * float(np.log(32768.0))
_VAD_LEAST, _VAD_SHARE, _VAD_CONTEXT, _VAD_MOST = 5.5, 0.5, 2, 0.12
_BLOCK = 1 << 25
"""Numbers held at once while responsibilities are computed."""


class Front(torch.nn.Module):
    """Samples to frames of speech (N, 72): cepstra with log energy, Δ and ΔΔ, of mean 0."""

    def __init__(self, bins: int) -> None:
        super().__init__()
        self.cepstra = Cepstra(CEPSTRA, bins=bins)

    def forward(self, samples: Tensor) -> Tensor:
        base = self.cepstra(samples[None])
        slopes = deltas(base)
        whole = torch.cat((base, slopes, deltas(slopes)), dim=-1)[0]
        spoken = whole[speech_frames(base[0, :, 0])]
        return spoken - spoken.mean(0)


def speech_frames(energy: Tensor) -> Tensor:
    """Frames with speech, as Kaldi decides by log energy: at least 12 % of the five around a frame
    lie above 5.5 plus half the mean (of 16-bit samples). All frames where none does.
    """
    scaled = energy + _KALDI_SCALE
    above = (scaled > _VAD_LEAST + _VAD_SHARE * scaled.mean()).float()
    width = 2 * _VAD_CONTEXT + 1
    near = torch.nn.functional.avg_pool1d(
        above[None, None], width, 1, _VAD_CONTEXT, count_include_pad=False
    )[0, 0]
    chosen = near >= _VAD_MOST
    return chosen if bool(chosen.any()) else torch.ones_like(chosen)


@dataclass(frozen=True)
class Mixture:
    """Gaussians; ``roots``: inverse Cholesky factors, (K, D, D), or diagonals, (K, D)."""

    weights: Tensor
    means: Tensor
    roots: Tensor

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Mixture:
        """The mixture among the tensors of an extractor."""
        return cls(tensors["weights"], tensors["means"], tensors["roots"])

    @property
    def full(self) -> bool:
        return self.roots.ndim == 3

    def responsibilities(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior of each component (N, K), and log p(x_n) = log Σ_k w_k N(x_n; μ_k, Σ_k)."""
        constant = self.weights.log() - 0.5 * frames.shape[1] * math.log(2.0 * math.pi)
        if not self.full:
            precision = self.roots.square()
            squares = (
                frames.square() @ precision.T
                - 2.0 * frames @ (precision * self.means).T
                + (precision * self.means.square()).sum(1)
            )
            logs = self.roots.log().sum(1)
        else:
            columns = [
                ((frames - mean) @ root.T).square().sum(1)
                for mean, root in zip(self.means, self.roots, strict=True)
            ]
            squares = torch.stack(columns, dim=1)
            logs = torch.diagonal(self.roots, dim1=1, dim2=2).log().sum(1)
        joint = constant + logs - 0.5 * squares
        total = torch.logsumexp(joint, dim=1)
        return (joint - total[:, None]).exp(), total

    def blocks(self, frames: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Frames in parts that fit into memory, with their :meth:`responsibilities`."""
        for part in frames.split(max(1, _BLOCK // len(self.means))):
            yield part, *self.responsibilities(part)


Statistics = tuple[Tensor, Tensor]


def statistics(mixture: Mixture, utterances: Iterable[Tensor]) -> Statistics:
    """Counts (U, K) and whitened first moments (U, K, D) of utterances, each given as frames."""
    counts, moments = [], []
    for frames in utterances:
        count = mixture.means.new_zeros(len(mixture.means))
        first = torch.zeros_like(mixture.means)
        for part, share, _ in mixture.blocks(frames.to(mixture.means.dtype)):
            count += share.sum(0)
            first += share.T @ part
        counts.append(count)
        away = first - count[:, None] * mixture.means
        roots = mixture.roots
        moments.append(torch.einsum("kij,kj->ki", roots, away) if mixture.full else away * roots)
    return torch.stack(counts), torch.stack(moments)


def posterior(matrix: Tensor, stats: Statistics) -> tuple[Tensor, Tensor, Tensor]:
    """Means (U, R) and covariances (U, R, R) of w, and each utterance's log likelihood but for what
    does not depend on T: ½ bᵀ P⁻¹ b − ½ log |P| with b = Σ T_cᵀ F_c.
    """
    counts, moments = stats
    components, width, rank = matrix.shape
    flat = matrix.reshape(components * width, rank)
    crossed = torch.einsum("kdr,kds->krs", matrix, matrix).reshape(components, rank * rank)
    precision = (counts @ crossed).reshape(-1, rank, rank)
    precision = precision + torch.eye(rank, dtype=matrix.dtype, device=matrix.device)
    linear = moments.reshape(len(counts), -1) @ flat
    factor = torch.linalg.cholesky(precision)
    mean = torch.cholesky_solve(linear[..., None], factor)[..., 0]
    logs = torch.diagonal(factor, dim1=1, dim2=2).log().sum(1)
    likelihood = 0.5 * (linear * mean).sum(1) - logs
    return mean, torch.cholesky_inverse(factor), likelihood


def ivectors(
    front: Front, tensors: Mapping[str, Tensor], recordings: Sequence[Float32Array]
) -> Float32Array:
    """I-vectors of recordings, one after another."""
    device = tensors["matrix"].device
    with inference(device):
        samples = (torch.from_numpy(recording).to(device) for recording in recordings)
        stats = statistics(Mixture.of(tensors), map(front, samples))
        return posterior(tensors["matrix"], stats)[0].float().cpu().numpy()


class IvectorEncoder(TrainedFolder):
    """A trained i-vector extractor."""

    shortest = 1200

    def __init__(self, folder: str | Path, device: str) -> None:
        super().__init__(folder, device)
        for name in ("weights", "means", "roots", "matrix"):
            if name not in self.tensors:
                raise InputError(f"{folder}: expected an i-vector extractor, no {name!r}")
        self.tensors = {k: v.double().to(self.device) for k, v in self.tensors.items()}
        self.front = Front(self.recipe.bins).to(self.device)

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        return ivectors(self.front, self.tensors, recordings)
