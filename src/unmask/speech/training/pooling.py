"""From frames to one vector: temporal statistics and attentive statistics pooling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SMALLEST_VARIANCE = 1e-7


def weighted_statistics(frames: Tensor, weights: Tensor) -> Tensor:
    """Mean and standard deviation over time, (batch, channels, time) to (batch, 2 channels).

    ``weights`` sum to 1 over time: μ = Σ α_t h_t, σ² = Σ α_t h_t² − μ² (Okabe et al., 2018, eq. 3
    and 5), kept at or above 1e-7. Computed about μ, in 32-bit floats.
    """
    values, share = frames.float(), weights.float()
    mean = (share * values).sum(-1)
    variance = (share * (values - mean[..., None]).square()).sum(-1)
    return torch.cat((mean, variance.clamp(min=SMALLEST_VARIANCE).sqrt()), dim=1)


class TemporalStatistics(nn.Module):
    """TSP: mean and standard deviation, every frame alike (Snyder et al., 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.output = 2 * width

    def forward(self, frames: Tensor) -> Tensor:
        count = frames.shape[-1]
        return weighted_statistics(frames, frames.new_full((1, 1, 1), 1.0 / count))


class AttentiveStatistics(nn.Module):
    """ASP: mean and standard deviation weighted by attention (Okabe et al., 2018, eq. 1 and 2).

    e_t = vᵀ tanh(W h_t + b) + k and α = softmax(e) over time. With ``by_channel`` every channel has
    weights of its own, and with ``context`` attention also sees mean and standard deviation of the
    whole recording (Desplanques et al., 2020, section 3.1).
    """

    def __init__(
        self, width: int, hidden: int = 128, *, by_channel: bool = False, context: bool = False
    ) -> None:
        super().__init__()
        self.output = 2 * width
        self.context = context
        self.inner = nn.Conv1d(3 * width if context else width, hidden, 1)
        self.normalisation = nn.BatchNorm1d(hidden) if context else nn.Identity()
        self.outer = nn.Conv1d(hidden, width if by_channel else 1, 1)

    def forward(self, frames: Tensor) -> Tensor:
        heard = frames
        if self.context:
            count = frames.shape[-1]
            whole = weighted_statistics(frames, frames.new_full((1, 1, 1), 1.0 / count))
            spread = whole[..., None].expand(-1, -1, count).to(frames.dtype)
            heard = torch.cat((frames, spread), dim=1)
            hidden = self.normalisation(torch.relu(self.inner(heard)))
        else:
            hidden = self.inner(heard)
        weights = torch.softmax(self.outer(torch.tanh(hidden)).float(), dim=-1)
        return weighted_statistics(frames, weights)


POOLINGS = {"tsp": TemporalStatistics, "asp": AttentiveStatistics}
