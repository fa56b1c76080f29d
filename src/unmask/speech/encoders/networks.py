"""CAM++: a densely connected time-delay network with context-aware masking (Wang et al., 2023).

Module names follow the tensor names of the published weights, so that they load as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

GROWTH = 32
BOTTLENECK = 128
CONTEXT_FRAMES = 100
BLOCKS = ((12, 1), (24, 2), (16, 2))
"""Layers and dilation of each dense block."""


class Activation(nn.Sequential):
    """Batch normalisation and rectifier."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.add_module("batchnorm", nn.BatchNorm1d(channels))
        self.add_module("relu", nn.ReLU())


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


class DenseLayer(nn.Module):
    """Bottleneck and masked convolution; returns only what the layer adds."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.nonlinear1 = Activation(width)
        self.linear1 = nn.Conv1d(width, BOTTLENECK, 1, bias=False)
        self.nonlinear2 = Activation(BOTTLENECK)
        self.cam_layer = ContextMask(BOTTLENECK, dilation)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.cam_layer(self.nonlinear2(self.linear1(self.nonlinear1(x))))
        return added


class DenseBlock(nn.Module):
    """Layers that each see everything before them."""

    def __init__(self, width: int, layers: int, dilation: int) -> None:
        super().__init__()
        for index in range(layers):
            self.add_module(f"tdnnd{index + 1}", DenseLayer(width + index * GROWTH, dilation))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = torch.cat((x, layer(x)), dim=1)
        return x


class TimeDelay(nn.Module):
    """The first time-delay layer: five frames wide, every second frame kept."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(width, channels, 5, stride=2, padding=2, bias=False)
        self.nonlinear = Activation(channels)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.nonlinear(self.linear(x))
        return out


class Transition(nn.Module):
    """Halve the channels between dense blocks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.nonlinear = Activation(width)
        self.linear = nn.Conv1d(width, width // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.nonlinear(x))
        return out


class Statistics(nn.Module):
    """Mean and standard deviation over time."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x.mean(-1), x.std(-1)), dim=1)


class Projection(nn.Module):
    """The embedding layer, normalised without scale or offset."""

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(width, dimension, 1, bias=False)
        self.nonlinear = nn.Sequential()
        self.nonlinear.add_module("batchnorm", nn.BatchNorm1d(dimension, affine=False))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.nonlinear(self.linear(x[..., None])[..., 0])
        return out


class CamPlusPlus(nn.Module):
    """Filterbanks (batch, frames, bins) to embeddings (batch, dimension)."""

    def __init__(self, bins: int = 80, dimension: int = 192) -> None:
        super().__init__()
        self.head = FrontEnd(bins)
        self.xvector = nn.Sequential()
        self.xvector.add_module("tdnn", TimeDelay(self.head.width, 128))
        width = 128
        for index, (layers, dilation) in enumerate(BLOCKS, start=1):
            self.xvector.add_module(f"block{index}", DenseBlock(width, layers, dilation))
            width += layers * GROWTH
            self.xvector.add_module(f"transit{index}", Transition(width))
            width //= 2
        self.xvector.add_module("out_nonlinear", Activation(width))
        self.xvector.add_module("stats", Statistics())
        self.xvector.add_module("dense", Projection(2 * width, dimension))

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = self.xvector(self.head(features.transpose(1, 2)))
        return out


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
