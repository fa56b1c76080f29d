"""Twelve voices of a source-filter synthesiser: enough to train something small on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from unmask.speech import Recording, recordings

RATE = 16000


def voice(pitch: float, tract: float, *, seconds: float = 1.0, seed: int = 0) -> np.ndarray:
    """A vowel with formants scaled by ``tract``, over pulses and a little noise."""
    generator = np.random.default_rng(seed)
    count = round(seconds * RATE)
    phase = np.cumsum(pitch * (1 + 0.02 * generator.standard_normal(count)) / RATE)
    signal = np.diff(np.floor(phase), prepend=0.0) + 0.01 * generator.standard_normal(count)
    for formant in np.array([600.0, 1200.0, 2500.0]) * tract * generator.uniform(0.95, 1.05):
        angle, radius = 2 * np.pi * formant / RATE, 0.97
        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], signal)
    return 0.1 * signal / signal.std()


@pytest.fixture(scope="session")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """speaker/utterance.wav: twelve voices, four utterances of a second each."""
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    root = tmp_path_factory.mktemp("voices")
    for n in range(12):
        (root / f"v{n:02d}").mkdir()
        for k in range(4):
            samples = voice(90 + 14 * n, 0.85 + 0.03 * n, seed=100 * n + k)
            soundfile.write(root / f"v{n:02d}" / f"v{n:02d}_{k}.wav", samples, RATE)
    return root


@pytest.fixture
def twelve(voices: Path) -> tuple[Recording, ...]:
    return recordings(voices)
