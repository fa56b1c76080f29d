"""Networks to train: x-vector TDNN, ResNet34, ECAPA-TDNN, CAM++.

All take mean-normalised filterbanks (batch, frames, bins) and give vectors (batch, dimension).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unmask.speech.encoders.networks import CamPlusPlus
from unmask.speech.training.pooling import POOLINGS, AttentiveStatistics
from unmask.speech.training.recipe import Recipe


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
        out: Tensor = self.embedding(self.pooling(self.frames(features.transpose(1, 2))))
        return out


class Basic(nn.Module):
    """Two 3 × 3 convolutions and a shortcut (He et al., 2016, figure 2)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride > 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + self.shortcut(x))


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
        blocks: list[nn.Module] = []
        before = channels
        for group, count in enumerate((3, 4, 6, 3)):
            after = channels * 2**group
            for number in range(count):
                stride = 2 if number == 0 and group else 1
                blocks.append(Basic(before, after, stride))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.pooling = POOLINGS[pooling](before * -(-bins // 8))
        self.embedding = nn.Linear(self.pooling.output, dimension)

    def forward(self, features: Tensor) -> Tensor:
        maps = self.blocks(self.entry(features.transpose(1, 2)[:, None]))
        out: Tensor = self.embedding(self.pooling(maps.flatten(1, 2)))
        return out


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
        out: Tensor = x + self.layers(x)
        return out


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
        out: Tensor = self.embedding(self.pooling(self.join(torch.cat(outputs, dim=1))))
        return out


def build(recipe: Recipe) -> nn.Module:
    """The network of a recipe, with fresh weights from torch's random numbers."""
    bins, dimension, channels = recipe.bins, recipe.dimension, recipe.channels
    assert bins is not None
    assert dimension is not None
    if recipe.network == "tdnn":
        assert channels is not None
        return Tdnn(bins, dimension, recipe.pooling, channels)
    if recipe.network == "resnet34":
        assert channels is not None
        return ResNet34(bins, dimension, recipe.pooling, channels)
    if recipe.network == "ecapa":
        assert channels is not None
        return Ecapa(bins, dimension, channels)
    return CamPlusPlus(bins, dimension)
