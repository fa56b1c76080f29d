"""Margins by hand, pooling by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unmask.speech.encoders.networks import (  # noqa: E402  # noqa: E402
    Angular,
    AttentiveStatistics,
    Softmax,
    TemporalStatistics,
    margin_at,
    weighted_statistics,
    with_margin,
)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.2, 2.0, 2.9])
def test_the_angular_margin_turns_the_angle(angle):
    cosines = torch.tensor([[math.cos(angle), 0.5]], dtype=torch.float64)
    moved = with_margin(cosines, torch.tensor([0]), kind="aam", margin=0.2)
    assert moved[0, 0].item() == pytest.approx(math.cos(angle + 0.2), abs=1e-6)
    assert moved[0, 1].item() == 0.5


def test_beyond_pi_the_angular_margin_goes_on_falling():
    angles = np.linspace(2.7, np.pi, 50)
    cosines = torch.cos(torch.from_numpy(angles))[:, None]
    moved = with_margin(
        cosines, torch.zeros(50, dtype=torch.int64), kind="aam", margin=0.3
    ).squeeze()
    assert (moved < cosines.squeeze()).all()
    beyond = angles > np.pi - 0.3
    wanted = np.cos(angles[beyond]) - 0.3 * math.sin(0.3)
    np.testing.assert_allclose(moved.numpy()[beyond], wanted, atol=1e-12)


def test_the_additive_margin_lowers_the_cosine():
    cosines = torch.tensor([[0.1, 0.7], [0.4, -0.2]])
    moved = with_margin(cosines, torch.tensor([1, 0]), kind="am", margin=0.2)
    torch.testing.assert_close(moved, torch.tensor([[0.1, 0.5], [0.2, -0.2]]))


@pytest.mark.parametrize("kind", ["am", "aam"])
def test_a_loss_by_hand(kind):
    head = Angular(2, 3, kind=kind, scale=10.0)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0]]))
    vector, angle = torch.tensor([[3.0, 4.0]]), math.acos(0.6)
    moved = 0.6 - 0.2 if kind == "am" else math.cos(angle + 0.2)
    logits = [10 * moved, 10 * 0.8, 10 * -0.6]
    wanted = -logits[0] + math.log(sum(math.exp(one) for one in logits))
    assert head(vector, torch.tensor([0]), 0.2).item() == pytest.approx(wanted, rel=1e-5)


def test_without_a_margin_both_are_a_softmax_of_cosines():
    torch.manual_seed(0)
    vectors, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    heads = [Angular(4, 3, kind=kind, scale=30.0) for kind in ("am", "aam")]
    heads[1].load_state_dict(heads[0].state_dict())
    losses = [head(vectors, labels, 0.0) for head in heads]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-5)


def test_softmax_is_the_cross_entropy_of_a_linear_layer():
    torch.manual_seed(0)
    head, vectors = Softmax(4, 3), torch.randn(5, 4)
    labels = torch.tensor([0, 1, 2, 0, 1])
    logits = vectors @ head.linear.weight.T + head.linear.bias
    wanted = -sum(torch.log_softmax(row, 0)[k] for row, k in zip(logits, labels, strict=True)) / 5
    torch.testing.assert_close(head(vectors, labels, 0.9), wanted)


def test_the_margin_rises_and_stays():
    assert [margin_at(n, margin=0.2, over=4) for n in (0, 1, 2, 4, 9)] == pytest.approx(
        [0.0, 0.05, 0.1, 0.2, 0.2]
    )
    assert margin_at(0, margin=0.2, over=0) == 0.2


def test_temporal_statistics_by_loops():
    frames = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1))
    result = TemporalStatistics(3)(frames)
    for b in range(2):
        for c in range(3):
            values = frames[b, c].tolist()
            mean = sum(values) / 7
            spread = math.sqrt(sum((one - mean) ** 2 for one in values) / 7)
            assert result[b, c].item() == pytest.approx(mean, abs=1e-6)
            assert result[b, 3 + c].item() == pytest.approx(spread, abs=1e-6)


@pytest.mark.parametrize(("by_channel", "context"), [(False, False), (True, True)])
def test_attentive_statistics_by_loops(by_channel, context):
    torch.manual_seed(2)
    frames = torch.randn(2, 3, 5)
    pool = AttentiveStatistics(3, 4, by_channel=by_channel, context=context).eval()
    result = pool(frames)
    for b in range(2):
        scores = []
        for t in range(5):
            heard = frames[b, :, t]
            if context:
                whole = frames[b]
                spread = ((whole - whole.mean(1, keepdim=True)) ** 2).mean(1).sqrt()
                heard = torch.cat((heard, whole.mean(1), spread))
            hidden = pool.inner.weight[..., 0] @ heard + pool.inner.bias
            if context:
                hidden = torch.relu(hidden) / math.sqrt(1 + 1e-5)
            scores.append(pool.outer.weight[..., 0] @ torch.tanh(hidden) + pool.outer.bias)
        energy = torch.stack(scores)
        alpha = energy.exp() / energy.exp().sum(0)
        for c in range(3):
            share = alpha[:, c if by_channel else 0]
            mean = sum(share[t] * frames[b, c, t] for t in range(5))
            second = sum(share[t] * frames[b, c, t] ** 2 for t in range(5))
            torch.testing.assert_close(result[b, c], mean, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                result[b, 3 + c], (second - mean**2).sqrt(), rtol=1e-3, atol=1e-4
            )


def test_equal_weights_are_no_attention():
    frames = torch.randn(1, 4, 9)
    even = weighted_statistics(frames, torch.full((1, 1, 9), 1 / 9))
    torch.testing.assert_close(even, TemporalStatistics(4)(frames))
