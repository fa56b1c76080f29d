"""What training lowers: cross entropy over speakers, with or without a margin."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def with_margin(cosines: Tensor, labels: Tensor, *, kind: str, margin: float) -> Tensor:
    """Cosines with those of the true speakers made smaller.

    ``am``: cos θ − m (Wang et al., 2018, eq. 6). ``aam``: cos(θ + m) (Deng et al., 2019, eq. 3)
    where θ + m ≤ π; beyond, cos θ − m sin m, which goes on falling.
    """
    true = cosines.gather(1, labels[:, None])
    if kind == "am":
        moved = true - margin
    else:
        sine = (1.0 - true.square()).clamp(min=0.0, max=1.0).add(1e-12).sqrt()
        moved = torch.where(
            true > -math.cos(margin),
            true * math.cos(margin) - sine * math.sin(margin),
            true - margin * math.sin(margin),
        )
    return cosines.scatter(1, labels[:, None], moved.to(cosines.dtype))


class Angular(nn.Module):
    """Additive margin (``am``) or additive angular margin (``aam``) softmax.

    −log softmax of s · cosine to one unit vector per speaker, margin m on the true one.
    """

    def __init__(self, dimension: int, speakers: int, *, kind: str, scale: float) -> None:
        super().__init__()
        self.kind = kind
        self.scale = scale
        self.weight = nn.Parameter(torch.empty(speakers, dimension))
        nn.init.xavier_normal_(self.weight)

    def forward(self, vectors: Tensor, labels: Tensor, margin: float) -> Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            cosines = functional.linear(
                functional.normalize(vectors.float()), functional.normalize(self.weight)
            )
            moved = with_margin(cosines, labels, kind=self.kind, margin=margin)
            return functional.cross_entropy(self.scale * moved, labels)


class Softmax(nn.Module):
    """Cross entropy of a linear layer; ``hidden`` puts one more layer before it, as the x-vector
    network has it (Snyder et al., 2018, segment7).
    """

    def __init__(self, dimension: int, speakers: int, *, hidden: int | None = None) -> None:
        super().__init__()
        self.before = nn.Sequential()
        if hidden is not None:
            self.before = nn.Sequential(
                nn.ReLU(),
                nn.BatchNorm1d(dimension),
                nn.Linear(dimension, hidden),
                nn.ReLU(),
                nn.BatchNorm1d(hidden),
            )
        self.linear = nn.Linear(hidden or dimension, speakers)

    def forward(self, vectors: Tensor, labels: Tensor, margin: float) -> Tensor:
        logits = self.linear(self.before(vectors))
        return functional.cross_entropy(logits.float(), labels)


def head(
    loss: str, dimension: int, speakers: int, *, scale: float, hidden: int | None = None
) -> nn.Module:
    """The layer between vectors and loss: one class per speaker."""
    if loss == "softmax":
        return Softmax(dimension, speakers, hidden=hidden)
    return Angular(dimension, speakers, kind=loss, scale=scale)


def margin_at(step: int, *, margin: float, over: int) -> float:
    """The margin rises linearly from 0 during the first ``over`` steps, then stays."""
    return margin if over <= 0 else margin * min(1.0, step / over)
