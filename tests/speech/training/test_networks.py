"""Shapes and sizes of the networks against the papers."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unmask.speech.encoders import neural  # noqa: E402
from unmask.speech.encoders.card import Recipe  # noqa: E402
from unmask.speech.encoders.networks import Ecapa, Res2, ResNet34, Tdnn, build  # noqa: E402


def size(network) -> int:
    return sum(one.numel() for one in network.parameters())


def test_ecapa_has_the_parameters_of_its_paper():
    """Desplanques et al. (2020), table 1: 6.2 M with C = 512, 14.7 M with C = 1024."""
    assert round(size(Ecapa(80, 192, 512)) / 1e6, 1) == 6.2
    assert round(size(Ecapa(80, 192, 1024)) / 1e6, 1) == 14.7


def test_every_part_of_res2_hears_the_part_before_it():
    """y_1 = x_1, y_2 = K_2(x_2), y_i = K_i(x_i + y_{i−1}) (Gao et al. 2021)."""
    torch.manual_seed(0)
    layer = Res2(16, 2, parts=4).eval()
    x = torch.randn(2, 16, 30)
    parts = x.chunk(4, dim=1)
    wanted = [parts[0], layer.layers[0](parts[1])]
    for number in (2, 3):
        wanted.append(layer.layers[number - 1](parts[number] + wanted[-1]))
    torch.testing.assert_close(layer(x), torch.cat(wanted, dim=1))


def test_the_x_vector_network_has_the_parameters_of_its_paper():
    """Snyder et al. (2018): 4.2 M up to the embedding, of 24 features."""
    network = Tdnn(24, 512, "tsp")
    assert round(size(network) / 1e6, 1) == 4.2
    context = sum((conv.kernel_size[0] - 1) * conv.dilation[0] for conv, *_ in network.frames)
    assert context + 1 == 15


def test_resnet34_by_its_blocks():
    """The speaker variant with 32 channels: weights of all convolutions by hand, 6.6 M in all."""
    network = ResNet34(80, 256, "tsp")
    weights, before = 9 * 32, 32
    for group, blocks in enumerate((3, 4, 6, 3)):
        after = 32 * 2**group
        for number in range(blocks):
            weights += 9 * (before if number == 0 else after) * after + 9 * after * after
        weights += before * after if group else 0
        before = after
    convolutions = [one for one in network.modules() if isinstance(one, torch.nn.Conv2d)]
    assert sum(one.weight.numel() for one in convolutions) == weights
    assert network.embedding.weight.shape == (256, 2 * 256 * 10)
    assert round(size(network) / 1e6, 1) == 6.6


NETWORKS = [
    ("tdnn", "tsp", 32),
    ("tdnn", "asp", 32),
    ("resnet34", "tsp", 8),
    ("resnet34", "asp", 8),
    ("ecapa", "asp", 16),
    ("campplus", "tsp", None),
]


@pytest.mark.parametrize(("network", "pooling", "channels"), NETWORKS)
def test_every_network_learns_and_takes_any_length(network, pooling, channels):
    recipe = Recipe(network=network, pooling=pooling, channels=channels, dimension=24)
    torch.manual_seed(0)
    made = build(recipe).train()
    out = made(torch.randn(3, 41, recipe.bins))
    assert out.shape == (3, 24)
    out.square().sum().backward()
    assert all(one.grad is not None for one in made.parameters())
    assert made.eval()(torch.randn(1, 10, recipe.bins)).shape == (1, 24)


def test_a_vector_depends_on_its_own_recording_alone():
    torch.manual_seed(0)
    made = build(Recipe(network="resnet34", channels=8)).eval()
    features = torch.randn(2, 40, 80)
    torch.testing.assert_close(made(features)[:1], made(features[:1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("network", "pooling", "channels"), NETWORKS)
def test_a_padded_batch_gives_the_vectors_of_each_alone(network, pooling, channels, monkeypatch):
    """Lengths about the ends of segments of 100 frames and of strides; rows beyond them."""
    torch.manual_seed(0)
    recipe = Recipe(network=network, pooling=pooling, channels=channels)
    model, hears = neural.build(recipe).eval(), neural.Filterbanks(recipe.bins)
    for layer in model.modules():  # as after a training: what follows a padded 0 is none
        if isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            layer.running_mean.normal_()
            if layer.affine:
                layer.bias.data.normal_()
    frames = [3, 4, 99, 100, 101, 199, 200, 201, 202, 350]
    noise = np.random.default_rng(0).standard_normal((len(frames), 400 + 160 * max(frames)))
    spoken = [
        row[: 240 + 160 * n + 17] for row, n in zip(noise.astype(np.float32), frames, strict=True)
    ]
    device = torch.device("cpu")

    def unit(some, batching):
        monkeypatch.setitem(neural.BATCHING, "cpu", batching)
        return normalize(neural.by_length(some, lambda one: model(hears(one)), device))

    alone = np.stack([unit([one], neural.Batching(0, 1.0, 1, 1))[0] for one in spoken])
    with torch.inference_mode():
        plain = np.concatenate([model(hears(torch.from_numpy(one)[None])) for one in spoken])
    np.testing.assert_allclose(alone, normalize(plain), atol=1e-6)
    assert np.abs(alone[0] - alone[-1]).max() > 1e-3
    for batching in (neural.Batching(), neural.Batching(800, 0.9, 1, 1)):
        np.testing.assert_allclose(unit(spoken, batching), alone, atol=1e-6)


def normalize(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_batches_hold_every_recording_once_and_have_few_shapes():
    sizes = np.random.default_rng(0).integers(3, 3000, 500).tolist()
    batching = neural.Batching(65536, 0.0, 128, 32)
    made = list(batching.batches(sizes))
    assert sorted(n for some, _, _ in made for n in some) == list(range(500))
    for some, frames, rows in made:
        assert max(sizes[n] for n in some) <= frames < max(sizes[n] for n in some) + 128
        assert len(some) <= rows <= 65536 // frames
        assert not frames % 128
    assert list(batching.batches([100_000])) == [([0], 100_096, 1)]
    alike = list(neural.Batching(1200, 0.8, 1, 1).batches(sizes))
    assert all(rows == len(some) and frames == sizes[some[0]] for some, frames, rows in alike)
    assert all(min(sizes[n] for n in some) >= 0.8 * frames for some, frames, _ in alike)
    assert not list(batching.batches([]))
