"""Networks to train: x-vector TDNN, ResNet34, ECAPA-TDNN, CAM++; from frames to one vector by
temporal or attentive statistics; what training lowers, with or without a margin.

All take mean-normalised filterbanks (batch, frames, bins) and give vectors (batch, dimension).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from unmask.speech.encoders.networks import Basic, CamPlusPlus
from unmask.speech.training.recipe import Recipe

SMALLEST_VARIANCE = 1e-7


def weighted_statistics(frames: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean and standard deviation over time, (batch, channels, time) to (batch, 2 channels).

    ``weights`` sum to 1 over time, and are equal unless given: μ = Σ α_t h_t, σ² = Σ α_t h_t² − μ²
    (Okabe et al., 2018, eq. 3 and 5), kept at or above 1e-7. Computed about μ, in 32-bit floats.
    """
    if weights is None:
        weights = frames.new_full((1, 1, 1), 1.0 / frames.shape[-1])
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
        return weighted_statistics(frames)


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
        if self.context:
            whole = weighted_statistics(frames)[..., None].to(frames.dtype)
            heard = torch.cat((frames, whole.expand(-1, -1, frames.shape[-1])), dim=1)
            hidden = self.normalisation(torch.relu(self.inner(heard)))
        else:
            hidden = self.inner(frames)
        weights = torch.softmax(self.outer(torch.tanh(hidden)).float(), dim=-1)
        return weighted_statistics(frames, weights)


POOLINGS = {"tsp": TemporalStatistics, "asp": AttentiveStatistics}


class Frame(nn.Sequential):
    """A layer over time: convolution, rectifier, batch normalisation."""

    def __init__(self, before: int, after: int, width: int, dilation: int = 1) -> None:
        super().__init__(
            nn.Conv1d(before, after, width, dilation=dilation, padding=dilation * (width - 1) // 2),
            nn.ReLU(),
            nn.BatchNorm1d(after),
        )


class Tdnn(nn.Module):
    """The x-vector network (Snyder et al., 2018, table 1): five layers over time with contexts
    t ± 2, {t − 2, t, t + 2}, {t − 3, t, t + 3}, t, t; statistics; the first layer after them.

    ``channels`` of all layers over time but the last, which has about three times as many (1500 for
    512). Ends are padded with zeros, so that every frame counts.
    """

    def __init__(self, bins: int, dimension: int, pooling: str, channels: int = 512) -> None:
        super().__init__()
        last = 375 * channels // 128
        self.frames = nn.Sequential(
            Frame(bins, channels, 5),
            Frame(channels, channels, 3, 2),
            Frame(channels, channels, 3, 3),
            Frame(channels, channels, 1),
            Frame(channels, last, 1),
        )
        self.pooling = POOLINGS[pooling](last)
        self.embedding = nn.Linear(self.pooling.output, dimension)

    def forward(self, features: Tensor) -> Tensor:
        return self.embedding(self.pooling(self.frames(features.transpose(1, 2))))


class ResNet34(nn.Module):
    """ResNet34 for speech: 3, 4, 6 and 3 basic blocks of 32, 64, 128 and 256 channels, the later
    three groups halving time and frequency; frequency joins the channels before pooling.

    Half the channels of the network for images, as is usual for speakers (Zeinali et al., 2019).
    """

    def __init__(self, bins: int, dimension: int, pooling: str, channels: int = 32) -> None:
        super().__init__()
        self.entry = nn.Sequential(
            nn.Conv2d(1, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        blocks, before = [], channels
        for group, count in enumerate((3, 4, 6, 3)):
            after = channels * 2**group
            for number in range(count):
                blocks.append(Basic(before, after, 2 if number == 0 and group else 1))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.pooling = POOLINGS[pooling](before * -(-bins // 8))
        self.embedding = nn.Linear(self.pooling.output, dimension)

    def forward(self, features: Tensor) -> Tensor:
        maps = self.blocks(self.entry(features.transpose(1, 2)[:, None]))
        return self.embedding(self.pooling(maps.flatten(1, 2)))


class Res2(nn.Module):
    """A dilated convolution in eight parts, each of which also hears the part before it."""

    def __init__(self, channels: int, dilation: int, parts: int = 8) -> None:
        super().__init__()
        self.parts = parts
        width = channels // parts
        self.layers = nn.ModuleList(Frame(width, width, 3, dilation) for _ in range(parts - 1))

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = x.chunk(self.parts, dim=1)
        done = [first]
        for number, (layer, part) in enumerate(zip(self.layers, rest, strict=True)):
            done.append(layer(part if number == 0 else part + done[-1]))
        return torch.cat(done, dim=1)


class SqueezeExcitation(nn.Module):
    """Channels rescaled by what the mean over time says of them."""

    def __init__(self, channels: int, hidden: int = 128) -> None:
        super().__init__()
        self.inner = nn.Conv1d(channels, hidden, 1)
        self.outer = nn.Conv1d(hidden, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        return x * torch.sigmoid(self.outer(torch.relu(self.inner(mean))))


class SeRes2Block(nn.Module):
    """Layer, :class:`Res2`, layer, :class:`SqueezeExcitation`, and a shortcut (figure 1)."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Frame(channels, channels, 1),
            Res2(channels, dilation),
            Frame(channels, channels, 1),
            SqueezeExcitation(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Ecapa(nn.Module):
    """ECAPA-TDNN (Desplanques et al., 2020, figure 2).

    ``channels`` C is 512 or 1024; all three blocks join into 1536 channels, pooled with attention
    that depends on channel and context.
    """

    def __init__(self, bins: int, dimension: int, channels: int = 512, joined: int = 1536) -> None:
        super().__init__()
        self.entry = Frame(bins, channels, 5)
        self.blocks = nn.ModuleList(SeRes2Block(channels, dilation) for dilation in (2, 3, 4))
        self.join = nn.Sequential(nn.Conv1d(3 * channels, joined, 1), nn.ReLU())
        self.pooling = AttentiveStatistics(joined, by_channel=True, context=True)
        self.embedding = nn.Sequential(
            nn.BatchNorm1d(self.pooling.output),
            nn.Linear(self.pooling.output, dimension),
            nn.BatchNorm1d(dimension),
        )

    def forward(self, features: Tensor) -> Tensor:
        x = self.entry(features.transpose(1, 2))
        # Each block hears the sum of all before it (section 3.3).
        heard, outputs = x, []
        for block in self.blocks:
            outputs.append(block(heard))
            heard = heard + outputs[-1]
        return self.embedding(self.pooling(self.join(torch.cat(outputs, dim=1))))


def build(recipe: Recipe) -> nn.Module:
    """The network of a recipe, with fresh weights from torch's random numbers."""
    bins, dimension, channels = recipe.bins, recipe.dimension, recipe.channels or 0
    if recipe.network == "campplus":
        return CamPlusPlus(bins, dimension)
    if recipe.network == "ecapa":
        return Ecapa(bins, dimension, channels)
    kind = Tdnn if recipe.network == "tdnn" else ResNet34
    return kind(bins, dimension, recipe.pooling, channels)


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


def margin_at(step: int, *, margin: float, over: int) -> float:
    """The margin rises linearly from 0 during the first ``over`` steps, then stays."""
    return margin if over <= 0 else margin * min(1.0, step / over)
