"""Mixtures and total variability: definitions written out, likelihoods that rise."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unmask.speech import Recipe, embed, train, training_seconds  # noqa: E402
from unmask.speech.encoders.ivector import (  # noqa: E402
    Mixture,
    Statistics,
    posterior,
    speech_frames,
    statistics,
)
from unmask.speech.training.ivector import fit_mixture, fit_variability  # noqa: E402
from unmask.speech.training.run import TrainingRun  # noqa: E402


def blobs(count: int = 400) -> torch.Tensor:
    generator = np.random.default_rng(3)
    centres = generator.normal(scale=4.0, size=(3, 2))
    rows = centres[generator.integers(3, size=count)] + generator.normal(size=(count, 2))
    return torch.from_numpy(rows)


def mixture(full: bool) -> Mixture:
    generator = np.random.default_rng(4)
    means = torch.from_numpy(generator.normal(size=(3, 2)))
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    if not full:
        return Mixture(weights, means, torch.from_numpy(generator.uniform(0.5, 2, (3, 2))))
    roots = torch.tril(torch.from_numpy(generator.uniform(0.5, 2, (3, 2, 2))))
    return Mixture(weights, means, roots)


def covariance(model: Mixture, k: int) -> np.ndarray:
    root = model.roots[k].numpy() if model.full else np.diag(model.roots[k].numpy())
    return np.linalg.inv(root.T @ root)


@pytest.mark.parametrize("full", [False, True])
def test_responsibilities_by_loops(full):
    model, frames = mixture(full), blobs(5)
    result, total = model.responsibilities(frames)
    for n, x in enumerate(frames.numpy()):
        joint = []
        for k in range(3):
            sigma, away = covariance(model, k), x - model.means[k].numpy()
            density = math.exp(-0.5 * away @ np.linalg.solve(sigma, away))
            density /= 2 * math.pi * math.sqrt(np.linalg.det(sigma))
            joint.append(model.weights[k].item() * density)
        assert total[n].item() == pytest.approx(math.log(sum(joint)))
        np.testing.assert_allclose(result[n].numpy(), np.array(joint) / sum(joint), rtol=1e-8)


@pytest.mark.parametrize("full", [False, True])
def test_em_raises_the_likelihood(full):
    models, curve = zip(*fit_mixture(blobs(), 3, iterations=12, seed=0, full=full), strict=True)
    model = models[-1]
    # The floor of a full covariance is added, which may cost a little where it begins.
    parts = [curve[:6], curve[7:]] if full else [curve]
    for part in parts:
        assert (np.diff(part) > -1e-9).all()
    assert model.weights.sum().item() == pytest.approx(1.0)
    assert curve[-1] > curve[0]


def population(utterances: int = 30) -> Statistics:
    generator = np.random.default_rng(5)
    loading = generator.normal(size=(3, 2, 2))
    counts = generator.uniform(5, 30, size=(utterances, 3))
    hidden = generator.normal(size=(utterances, 2))
    means = np.einsum("kdr,ur->ukd", loading, hidden)
    noise = generator.normal(size=means.shape) / np.sqrt(counts)[..., None]
    moments = counts[..., None] * (means + noise)
    return torch.from_numpy(counts), torch.from_numpy(moments)


def test_the_posterior_by_loops():
    stats = population(4)
    matrix = torch.from_numpy(np.random.default_rng(6).normal(size=(3, 2, 2)))
    mean, spread, likelihood = posterior(matrix, stats)
    for u in range(4):
        precision, linear = np.eye(2), np.zeros(2)
        for k in range(3):
            block = matrix[k].numpy()
            precision += stats[0][u, k].item() * block.T @ block
            linear += block.T @ stats[1][u, k].numpy()
        wanted = np.linalg.solve(precision, linear)
        np.testing.assert_allclose(mean[u].numpy(), wanted)
        np.testing.assert_allclose(spread[u].numpy(), np.linalg.inv(precision))
        value = 0.5 * linear @ wanted - 0.5 * np.log(np.linalg.det(precision))
        assert likelihood[u].item() == pytest.approx(value)


@pytest.mark.parametrize("full", [False, True])
def test_statistics_by_loops(full):
    model, utterance = mixture(full), blobs(6)
    result = statistics(model, [utterance])
    share, _ = model.responsibilities(utterance)
    for k in range(3):
        first = sum(share[t, k] * (utterance[t] - model.means[k]) for t in range(6)).numpy()
        root = model.roots[k].numpy() if full else np.diag(model.roots[k].numpy())
        np.testing.assert_allclose(result[1][0, k].numpy(), root @ first)
        assert result[0][0, k].item() == pytest.approx(share[:, k].sum().item())


def test_em_of_the_total_variability_raises_the_likelihood():
    curve = [value for _, value in fit_variability(population(), 2, iterations=15, seed=0)]
    assert (np.diff(curve) > -1e-9).all()


def test_quiet_frames_are_no_speech():
    energy = torch.cat((torch.full((20,), -25.0), torch.full((20,), -3.0)))
    chosen = speech_frames(energy)
    assert not chosen[:18].any()
    assert chosen[20:].all()
    assert speech_frames(torch.full((9,), -30.0)).all()


def test_an_extractor_through_the_same_command(twelve, tmp_path):
    recipe = Recipe(network="ivector", components=4, dimension=5, iterations=3, held_out=3)
    made = train(twelve, tmp_path / "iv", recipe=recipe)
    assert made.eer is not None
    assert made.eer < 0.4
    done = embed(twelve[:3], str(tmp_path / "iv"))
    assert done.embeddings is not None
    assert done.embeddings.vectors.shape == (3, 5)


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_run_ends_with_the_same_extractor(twelve, tmp_path, monkeypatch, after):
    recipe = Recipe(network="ivector", components=4, dimension=5, iterations=3, full=True)
    whole = train(twelve, tmp_path / "whole", recipe=recipe)
    before = TrainingRun.write

    def killed(self, tensors):
        before(self, tensors)
        if self.position.step == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            train(twelve, tmp_path / "killed", recipe=recipe)
    gone_on = train(twelve, tmp_path / "killed", recipe=recipe)
    first, second = (tmp_path / name / "weights.safetensors" for name in ("whole", "killed"))
    assert first.read_bytes() == second.read_bytes()
    assert gone_on.curve == whole.curve


def test_how_long_an_extractor_takes():
    recipe = Recipe(network="ivector", components=4, dimension=5, iterations=3)
    assert 0 < training_seconds(recipe, speakers=5, utterances=20) < 60
