"""Networks that tell speakers apart: CAM++ and GE2E, their modules named as the published tensors;
x-vector TDNN, ResNet34 and ECAPA-TDNN to train; and what training lowers.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unmask.speech.encoders.card import Recipe

GROWTH = 32
BOTTLENECK = 128
CONTEXT_FRAMES = 100
BLOCKS = ((12, 1), (24, 2), (16, 2))
"""Layers and dilation of each dense block."""


@dataclass(frozen=True)
class FrameMask:
    """Which of T frames the rows of a padded batch have: ``mask`` (batch, 1, T) of ones and zeros,
    the ``share`` of ones among all frames, (batch, 1, 1), and among those of each segment; every
    row has the frames before ``shortest``.
    """

    mask: Tensor
    share: Tensor
    segments: Tensor
    shortest: int

    @classmethod
    def of(cls, mask: Tensor, shortest: int) -> FrameMask:
        """All of it from the mask."""
        share, segments = mask.mean(-1, keepdim=True), segment_means(mask).clamp(min=1e-3)
        return cls(mask, share, segments, shortest)

    def only(self, x: Tensor) -> Tensor:
        """Zeros in place of what stands beyond the end of a row, as beyond that of a recording."""
        tail = self.mask[..., self.shortest :]
        x[..., self.shortest :].mul_(tail if x.ndim == 3 else tail[:, None])
        return x


_HEARD: ContextVar[Mapping[int, FrameMask] | None] = ContextVar("frames of a batch", default=None)
"""By the number of frames: a stride of two halves it."""


@contextmanager
def padded(frames: Sequence[int], longest: int, device: torch.device) -> Iterator[None]:
    """Meanwhile row n of a batch has ``frames[n]`` frames of ``longest``, and what follows counts
    for nothing: each row gets the vector that it gets alone.
    """
    heard: dict[int, FrameMask] = {}
    if min(frames) < longest:
        ends, shortest = torch.tensor(frames)[:, None, None], min(frames)
        mask = (torch.arange(longest) < ends).float().to(device)
        while mask.shape[-1] not in heard:
            heard[mask.shape[-1]] = FrameMask.of(mask, shortest)
            mask, shortest = mask[..., ::2], -(-shortest // 2)
    before = _HEARD.set(heard)
    try:
        yield
    finally:
        _HEARD.reset(before)


def heard_of(x: Tensor) -> FrameMask | None:
    """Which frames of (…, time) are heard; None where all are."""
    known = _HEARD.get()
    return known[x.shape[-1]] if known else None


def only_heard(x: Tensor) -> Tensor:
    """The same with zeros beyond the end of each row, which a convolution adds to one alone."""
    heard = heard_of(x)
    return x if heard is None else heard.only(x)


def mean_over_time(x: Tensor) -> Tensor:
    """Mean of the frames that are heard, (batch, channels, time) to (batch, channels, 1)."""
    heard = heard_of(x)
    return x.mean(-1, keepdim=True) if heard is None else heard.only(x).mean(-1, True) / heard.share


def segment_means(x: Tensor) -> Tensor:
    """Means of segments of 100 frames, the last one shorter."""
    return functional.avg_pool1d(x, CONTEXT_FRAMES, CONTEXT_FRAMES, ceil_mode=True)


class Conv1d(nn.Conv1d):
    """A convolution that hears zeros beyond the end of every row of a padded batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(only_heard(x))


class Conv2d(nn.Conv2d):
    """The same over frequency and time."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(only_heard(x))


def named(**layers: nn.Module) -> nn.Sequential:
    """Layers one after another, called as the published tensors are."""
    return nn.Sequential(OrderedDict(layers))


def activation(channels: int) -> nn.Sequential:
    """Batch normalisation and rectifier."""
    return named(batchnorm=nn.BatchNorm1d(channels), relu=nn.ReLU(inplace=True))


class Basic(nn.Module):
    """Two 3 × 3 convolutions and a shortcut (He et al., 2016, figure 2)."""

    def __init__(self, before: int, after: int, stride: int | tuple[int, int]) -> None:
        super().__init__()
        self.conv1 = Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = Conv2d(after, after, 3, 1, 1, bias=False)
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
        self.conv2 = Conv2d(channels, channels, 3, (2, 1), 1, bias=False)
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
        heard = heard_of(x)
        mean, segment = mean_over_time(x), segment_means(x)  # beyond its end a row is 0 from here
        context = mean + (segment if heard is None else segment / heard.segments)
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
        mean, heard = mean_over_time(x), heard_of(x)
        frames = x.shape[-1] if heard is None else heard.mask.sum(-1, True)
        square = only_heard(x - mean).square().sum(-1, keepdim=True)
        return torch.cat((mean, (square / (frames - 1)).sqrt()), dim=1)


class CamPlusPlus(nn.Module):
    """Filterbanks (batch, frames, bins) to embeddings (batch, dimension)."""

    def __init__(self, bins: int = 80, dimension: int = 192) -> None:
        super().__init__()
        self.head = FrontEnd(bins)
        width = 128
        entry = Conv1d(self.head.width, width, 5, stride=2, padding=2, bias=False)
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
    """GE2E (Wan et al., 2018): mel spectrograms (batch, 160, 40) to unit vectors (batch, 256)."""

    def __init__(self, bands: int = 40, width: int = 256, layers: int = 3) -> None:
        super().__init__()
        self.lstm = nn.LSTM(bands, width, layers, batch_first=True)
        self.linear = nn.Linear(width, width)

    def forward(self, mels: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(mels)
        return functional.normalize(functional.relu(self.linear(hidden[-1])), dim=1)


SMALLEST_VARIANCE = 1e-7


def weighted_statistics(frames: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean and standard deviation over time, (batch, channels, time) to (batch, 2 channels): μ = Σ
    α_t h_t, σ² = Σ α_t h_t² − μ² ≥ 1e-7 (Okabe et al., 2018, eq. 3 and 5); ``weights`` α sum to 1.
    """
    if weights is None:
        heard = heard_of(frames)
        weights = frames.new_full((1, 1, 1), 1.0 / frames.shape[-1])
        weights = weights if heard is None else weights * heard.mask / heard.share
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
    """ASP: e_t = vᵀ tanh(W h_t + b) + k and α = softmax(e) over time (Okabe et al., 2018, eq. 1 and
    2); ``by_channel`` with weights for every channel, with ``context`` of mean and deviation of the
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
        scores, heard = self.outer(torch.tanh(hidden)).float(), heard_of(frames)
        if heard is not None:
            scores = scores.masked_fill(heard.mask == 0.0, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return weighted_statistics(frames, weights)


POOLINGS = {"tsp": TemporalStatistics, "asp": AttentiveStatistics}


class Frame(nn.Sequential):
    """A layer over time: convolution, rectifier, batch normalisation."""

    def __init__(self, before: int, after: int, width: int, dilation: int = 1) -> None:
        super().__init__(
            Conv1d(before, after, width, dilation=dilation, padding=dilation * (width - 1) // 2),
            nn.ReLU(),
            nn.BatchNorm1d(after),
        )


class Tdnn(nn.Module):
    """The x-vector network (Snyder et al., 2018, table 1): layers over time with contexts t ± 2, {t
    − 2, t, t + 2}, {t − 3, t, t + 3}, t, t; statistics; the first layer after them. The last over
    time has about three times the ``channels``; ends are padded, so that every frame counts.
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
    """ResNet34 for speech: 3, 4, 6 and 3 basic blocks of 32, 64, 128 and 256 channels, half those
    for images (Zeinali et al., 2019); frequency joins the channels before pooling.
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
        mean = mean_over_time(x)
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
    """ECAPA-TDNN (Desplanques et al., 2020, figure 2), ``channels`` C of 512 or 1024."""

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
    """Cosines with those of the true speakers made smaller: ``am`` cos θ − m (Wang et al., 2018,
    eq. 6); ``aam`` cos(θ + m) (Deng et al., 2019, eq. 3), beyond θ + m = π cos θ − m sin m.
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
    """Softmax of s · cosine to one unit vector per speaker, the margin of :func:`with_margin`."""

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
    """Cross entropy of a linear layer, after a ``hidden`` one (Snyder et al., 2018, segment7)."""

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
