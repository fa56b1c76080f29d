"""Linkability of two safeguards: the paired difference, its interval, and the gate."""

import numpy as np
import pytest
from tests.helpers.populations import named_speakers
from typer.testing import CliRunner

import unmask as um
from unmask.base import paired_interval
from unmask.cli import app
from unmask.privacy.legal import linkability_difference, linked_scores

PEOPLE, PER = 12, 4


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Original voices that enrol, and two protected versions of other recordings."""
    rng = np.random.default_rng(4)
    means = rng.normal(size=(PEOPLE, 6))
    for file, noise, name in (("original", 0.1, "a"), ("strong", 2.0, "b"), ("weak", 0.3, "b")):
        names = f"{{name}}-{name}{{row}}"
        made = named_speakers(PEOPLE, PER, 6, noise=noise, means=means, draws=rng, utterance=names)
        um.write(made, tmp_path / f"{file}.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("people", "mean", "apart", "alike"), [(20, 0, 0.8, 0.8), (40, 3, -1, 0.5), (40, 0, 0, 0.0)]
)
def test_the_paired_interval_holds_the_truth_as_often_as_it_says(people, mean, apart, alike):
    rng = np.random.default_rng(people)

    def risks(size):
        drawn = rng.multivariate_normal([0, 0], [[1, alike], [alike, 1]], size=size)
        return 1 / (1 + np.exp(-(np.array([mean, mean + apart]) + 1.5 * drawn)))

    first, second = risks(100_000).mean(axis=0)
    held = 0
    for _ in range(500):
        outcomes = rng.binomial(10, risks(people)) / 10
        low, high = paired_interval(*outcomes.T, level=0.95)
        held += low <= second - first <= high
    assert 0.925 <= held / 500 <= 0.985


def test_the_paired_interval_is_narrower_the_more_alike_and_has_a_width_at_the_edge():
    one = np.linspace(0.2, 0.8, 30)
    alike, unlike = (paired_interval(one, other, level=0.95) for other in (one, one[::-1]))
    assert alike[1] - alike[0] < 0.1 * (unlike[1] - unlike[0])
    low, high = paired_interval(np.ones(20), np.ones(20), level=0.95)
    assert low == -high < -0.1


def test_linkability_of_both_is_that_of_the_risk_and_the_gate_goes_by_their_difference(folder):
    scores = linked_scores("original.npz", {"strong": "strong.npz", "weak": "weak.npz"})
    one, two, apart = linkability_difference(scores, "strong", "weak")
    enrol = um.read_embeddings("original.npz")
    for name, linked in (("strong", one), ("weak", two)):
        curve = um.linkability(enrol, um.read_embeddings(f"{name}.npz"))
        assert linked.value == pytest.approx(max(curve.value[0], curve.negated.value[0]))
    assert apart.value == pytest.approx(two.value - one.value)
    assert apart.interval.low > 0
    gate = ["--enrol", "original.npz", "--fail-if", "linkability worsens", "--ci", "20"]
    worse = CliRunner().invoke(app, ["compare", "strong.npz", "weak.npz", *gate])
    assert worse.exit_code == 3
    assert "failed: linkability worsens" in worse.stderr
    assert CliRunner().invoke(app, ["compare", "weak.npz", "strong.npz", *gate]).exit_code == 0


def test_recordings_that_enrol_and_are_attacked_are_refused(folder, sentences):
    words = ["compare", "original.npz", "weak.npz", "--enrol", "original.npz"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    sentences.check(str(done.exception))
    done = CliRunner().invoke(app, [*words, "--key", "trials"])
    sentences.check(str(done.exception))
