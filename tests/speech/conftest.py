"""Voices made by a small source-filter synthesiser, and the weights of the built-in encoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from unmask.errors import InputError

RATE = 16000
VOWELS = {"a": (730, 1090, 2440, 3400), "i": (270, 2290, 3010, 3700), "u": (300, 870, 2240, 3300)}


@dataclass(frozen=True)
class Speaker:
    """Pitch, and the length of the vocal tract as a factor on all formants."""

    pitch: float
    tract: float

    def vowel(
        self, name: str, seconds: float, *, seed: int = 0, whispered: bool = False
    ) -> np.ndarray:
        generator = np.random.default_rng(seed)
        count = round(seconds * RATE)
        pitch = self.pitch * (1 + 0.03 * np.sin(2 * np.pi * 4 * np.arange(count) / RATE))
        phase = np.cumsum(pitch * (1 + 0.01 * generator.standard_normal(count)) / RATE)
        source = np.diff(np.floor(phase), prepend=0.0) + 0.003 * generator.standard_normal(count)
        if whispered:
            signal = generator.standard_normal(count)
        else:
            signal = lfilter([1.0], [1.0, -0.95], source)
        for formant in self.formants(name):
            angle = 2 * np.pi * formant / RATE
            radius = np.exp(-np.pi * (40 + 0.04 * formant) / RATE)
            signal = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], signal)
        return 0.1 * signal / np.sqrt(np.mean(signal**2))

    def formants(self, name: str) -> tuple[float, ...]:
        return tuple(self.tract * formant for formant in VOWELS[name])

    def say(self, words: str = "aiu", *, seconds: float = 2.0, seed: int = 0) -> np.ndarray:
        each = seconds / len(words)
        parts = [self.vowel(one, each, seed=seed + n) for n, one in enumerate(words)]
        for part in parts:
            part *= np.sin(np.pi * (np.arange(part.size) + 0.5) / part.size) ** 0.5
        return np.concatenate(parts)


SPEAKERS = {
    "anna": Speaker(210.0, 1.15),
    "bert": Speaker(105.0, 0.92),
    "cleo": Speaker(180.0, 1.02),
}


@pytest.fixture
def speakers() -> dict[str, Speaker]:
    return SPEAKERS


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """speaker/utterance.wav: three voices, three utterances each."""
    soundfile = pytest.importorskip("soundfile")
    root = tmp_path / "corpus"
    for name, speaker in SPEAKERS.items():
        (root / name).mkdir(parents=True)
        for n, words in enumerate(("aiu", "uia", "iau")):
            samples = speaker.say(words, seconds=1.2, seed=10 * n)
            soundfile.write(root / name / f"{name}_{n}.wav", samples, RATE)
    return root


@pytest.fixture(scope="session")
def weights() -> Callable[[str], None]:
    """Make sure that an encoder's weights are there, or skip with the reason."""
    from unmask.speech.encoders import weights_of

    def need(name: str) -> None:
        pytest.importorskip("torch")
        try:
            weights_of(name).install()
        except InputError as error:
            pytest.skip(f"no weights and no way to get them: {error}")

    return need
