"""Embeddings for the measurements of scale: semi-real where the real data are at hand.

    python -m benchmarks.population 100000 embeddings.npz

Semi-real: the speakers are ECAPA's class vectors of 7,204 VoxCeleb speakers, and each utterance is
one of them plus a within-speaker residual drawn from real ECAPA embeddings (AudioMNIST,
LibriSpeech). Without these files, both are Gaussian.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / ".." / "shared" / "data" / "embeddings"
SPEAKERS = 7_204
PROTOTYPES = "ecapa_voxceleb12_7204_speaker_prototypes192.npz"
UTTERANCES = ("audiomnist_1200_ecapa192.npz", "librispeech_744_ecapa192.npz")


def population(
    size: int, *, spread: float = 2.5, seed: int = 0, data: Path = DATA
) -> tuple[np.ndarray, np.ndarray, str]:
    """Vectors, speaker codes, and what they are; ten utterances a speaker or a few more."""
    rng = np.random.default_rng(seed)
    if (data / PROTOTYPES).is_file():
        means, residuals = _real(data)
        means = means[rng.permutation(len(means))[: max(2, size // 10)]]
        kind = "semi-real"
    else:
        means = _unit(rng.normal(size=(max(2, size // 10), 192)))
        residuals = 0.05 * rng.normal(size=(2000, 192))
        kind = "Gaussian"
    speaker = np.arange(size) % len(means)
    vectors = means[speaker] + spread * residuals[rng.integers(0, len(residuals), size)]
    return _unit(vectors).astype(np.float32), speaker, kind


def _real(data: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data / PROTOTYPES, allow_pickle=False) as file:
        means = _unit(file["embeddings"].astype(np.float64))
    residuals = []
    for name in UTTERANCES:
        with np.load(data / name, allow_pickle=False) as file:
            vectors = _unit(file["embeddings"].astype(np.float64))
            _, speaker, count = np.unique(
                file["speaker_ids"], return_inverse=True, return_counts=True
            )
        own = np.zeros((count.size, vectors.shape[1]))
        np.add.at(own, speaker, vectors)
        many = count[speaker] > 4
        spread = np.sqrt(count / np.maximum(count - 1, 1))[speaker, None]
        residuals.append(((vectors - (own / count[:, None])[speaker]) * spread)[many])
    return means, np.concatenate(residuals)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(size: int, path: str | Path) -> str:
    """Write a population as npz."""
    vectors, speaker, kind = population(size)
    names = np.array([f"spk{code:05d}" for code in speaker])
    utterances = np.array([f"utt{row:07d}" for row in range(size)])
    np.savez(path, embeddings=vectors, speaker_ids=names, utt_ids=utterances)
    return kind


if __name__ == "__main__":
    print(write(int(sys.argv[1]), sys.argv[2]))
