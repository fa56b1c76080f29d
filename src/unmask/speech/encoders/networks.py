"""CAM++: a densely connected time-delay network with context-aware masking (Wang et al., 2023).

Module names follow the tensor names of the published weights, so that they load as they are.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

GROWTH = 32
BOTTLENECK = 128
CONTEXT_FRAMES = 100
BLOCKS = ((12, 1), (24, 2), (16, 2))
"""Layers and dilation of each dense block."""


def named(**layers: nn.Module) -> nn.Sequential:
    """Layers one after another, called as the published tensors are."""
    return nn.Sequential(OrderedDict(layers))


def activation(channels: int) -> nn.Sequential:
    """Batch normalisation and rectifier."""
    return named(batchnorm=nn.BatchNorm1d(channels), relu=nn.ReLU())


class Basic(nn.Module):
    """Two 3 × 3 convolutions and a shortcut (He et al., 2016, figure 2)."""

    def __init__(self, before: int, after: int, stride: int | tuple[int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride not in (1, (1, 1)) or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))


class FrontEnd(nn.Module):
    """Convolutions over time and frequency; frequency shrinks by 8 and joins the channels."""

    def __init__(self, bins: int, channels: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.layer1, self.layer2 = (
            nn.Sequential(Basic(channels, channels, (2, 1)), Basic(channels, channels, 1))
            for _ in range(2)
        )
        self.conv2 = nn.Conv2d(channels, channels, 3, (2, 1), 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.width = channels * (bins // 8)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(x[:, None])))
        x = self.layer2(self.layer1(x))
        return functional.relu(self.bn2(self.conv2(x))).flatten(1, 2)


class ContextMask(nn.Module):
    """A dilated convolution, masked by the mean of the utterance plus that of the segment."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.linear_local = nn.Conv1d(
            width, GROWTH, 3, padding=dilation, dilation=dilation, bias=False
        )
        self.linear1 = nn.Conv1d(width, width // 2, 1)
        self.linear2 = nn.Conv1d(width // 2, GROWTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        # The mask is constant within a segment: compute it once per segment, then spread it.
        segment = functional.avg_pool1d(x, CONTEXT_FRAMES, CONTEXT_FRAMES, ceil_mode=True)
        context = x.mean(-1, keepdim=True) + segment
        mask = torch.sigmoid(self.linear2(functional.relu(self.linear1(context))))
        spread = mask.repeat_interleave(CONTEXT_FRAMES, dim=-1)[..., : x.shape[-1]]
        return torch.mul(self.linear_local(x), spread)


class DenseBlock(nn.Module):
    """Layers that each see everything before them: a bottleneck and a masked convolution."""

    def __init__(self, width: int, layers: int, dilation: int) -> None:
        super().__init__()
        for index in range(layers):
            inner = width + index * GROWTH
            layer = named(
                nonlinear1=activation(inner),
                linear1=nn.Conv1d(inner, BOTTLENECK, 1, bias=False),
                nonlinear2=activation(BOTTLENECK),
                cam_layer=ContextMask(BOTTLENECK, dilation),
            )
            self.add_module(f"tdnnd{index + 1}", layer)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = torch.cat((x, layer(x)), dim=1)
        return x


class Statistics(nn.Module):
    """Mean and standard deviation over time."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x.mean(-1, keepdim=True), x.std(-1, keepdim=True)), dim=1)


class CamPlusPlus(nn.Module):
    """Filterbanks (batch, frames, bins) to embeddings (batch, dimension)."""

    def __init__(self, bins: int = 80, dimension: int = 192) -> None:
        super().__init__()
        self.head = FrontEnd(bins)
        width = 128
        entry = nn.Conv1d(self.head.width, width, 5, stride=2, padding=2, bias=False)
        layers = {"tdnn": named(linear=entry, nonlinear=activation(width))}
        for index, (count, dilation) in enumerate(BLOCKS, start=1):
            layers[f"block{index}"] = DenseBlock(width, count, dilation)
            width += count * GROWTH
            layers[f"transit{index}"] = named(
                nonlinear=activation(width), linear=nn.Conv1d(width, width // 2, 1, bias=False)
            )
            width //= 2
        layers |= {"out_nonlinear": activation(width), "stats": Statistics()}
        layers["dense"] = named(
            linear=nn.Conv1d(2 * width, dimension, 1, bias=False),
            flat=nn.Flatten(),
            nonlinear=named(batchnorm=nn.BatchNorm1d(dimension, affine=False)),
        )
        self.xvector = named(**layers)

    def forward(self, features: Tensor) -> Tensor:
        return self.xvector(self.head(features.transpose(1, 2)))


class GE2E(nn.Module):
    """GE2E (Wan et al., 2018): a recurrent network over windows of a mel spectrogram.

    Mel spectrograms (batch, 160 frames, 40 bands) to unit vectors (batch, 256). Module names follow
    the tensor names of the published Resemblyzer weights.
    """

    def __init__(self, bands: int = 40, width: int = 256, layers: int = 3) -> None:
        super().__init__()
        self.lstm = nn.LSTM(bands, width, layers, batch_first=True)
        self.linear = nn.Linear(width, width)

    def forward(self, mels: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(mels)
        return functional.normalize(functional.relu(self.linear(hidden[-1])), dim=1)
