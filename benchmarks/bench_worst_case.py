"""Worst-case false alarms: the exact surface, the comparison of models, the time of a fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from studies.coverage.known_voices import Population
from studies.sholokhov2020 import simulate_worst_case

from benchmarks.harness import ratio, seconds
from unmask.stress import (
    ModelComparison,
    PairScores,
    compare_models,
    extrapolate,
    truth_of,
    worst_case_false_alarms,
)

EMBEDDINGS = Path(__file__).parents[2] / "shared" / "data" / "embeddings"
LARGE, SEEN, SCORES = 100_000, 1_000, 18


def run() -> None:
    """Print everything."""
    pairs = Population.synthetic(SEEN).pairs()
    surface(pairs)
    fit_time(pairs)
    for table in tables(pairs):
        print(table, end="\n\n")


def surface(pairs: PairScores) -> None:
    """All N and 100 thresholds exactly, against Algorithm 1 for a single N."""
    thresholds = np.linspace(-0.5, 0.9, 100)
    exact = seconds(
        lambda: worst_case_false_alarms(pairs, thresholds, counts=np.arange(1, SEEN)), runs=1
    )
    drawn = seconds(
        lambda: simulate_worst_case(pairs, thresholds, counts=[SEEN // 2], simulations=1000),
        runs=1,
    )
    ratio("exact surface, all 999 counts", exact, drawn, "Algorithm 1 at one count")


def fit_time(pairs: PairScores) -> None:
    """The default fit of 1,000 x 1,000 speakers with 18 scores a pair, against one sort of them."""
    once = seconds(lambda: np.sort(pairs.scores), runs=1)
    whole = seconds(lambda: extrapolate(pairs), runs=1)
    ratio("extrapolate, auto, 1,000 x 999 pairs", whole, once, "bare sort", limit="180 s")


def tables(pairs: PairScores) -> list[ModelComparison]:
    """Table 1 on a synthetic, a semi-real and a far population."""
    result = [compare_models(pairs, population="(i) synthetic")]
    if EMBEDDINGS.is_dir():
        males = semi_real()
        result.append(compare_models(males.pairs(SEEN), population="(ii) semi-real VoxCeleb"))
        result.append(far(males, males.speakers - 1, "(ii, far) semi-real VoxCeleb"))
    large = Population.synthetic(LARGE, seed=1)
    result.append(far(large, LARGE // 10, "(iii) synthetic 100,000, N = 10⁴"))
    result.append(far(large, LARGE - 1, "(iii) synthetic 100,000, N = 10⁵"))
    return result


def far(population: Population, count: int, name: str) -> ModelComparison:
    """Train on the first 1,000 speakers, judge at one count of the whole population."""
    seen = population.pairs(SEEN)
    thresholds = np.linspace(seen.scores.min(), seen.scores.max(), 201)
    values = population.truth(thresholds, counts=[count], targets=SEEN)
    return compare_models(seen, truth=truth_of(seen, thresholds, [count], values), population=name)


def semi_real(seed: int = 0) -> Population:
    """Male VoxCeleb class vectors with residuals of AudioMNIST and LibriSpeech utterances."""
    with np.load(
        EMBEDDINGS / "ecapa_voxceleb12_7204_speaker_prototypes192.npz", allow_pickle=False
    ) as file:
        males = file["embeddings"][file["gender"] == "m"].astype(np.float64)
    order = np.random.default_rng(seed).permutation(len(males))
    sets = ("audiomnist_1200_ecapa192.npz", "librispeech_744_ecapa192.npz")
    residuals = np.concatenate([within_speaker(EMBEDDINGS / name) for name in sets])
    return Population.around(males[order], residuals, utterances=SCORES, seed=seed)


def within_speaker(path: Path) -> np.ndarray:
    """Deviations of unit vectors from their speaker's mean, for speakers of three or more."""
    with np.load(path, allow_pickle=False) as file:
        vectors = file["embeddings"].astype(np.float64)
        _, speaker = np.unique(file["speaker_ids"], return_inverse=True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    size = np.bincount(speaker)
    mean = np.zeros((size.size, vectors.shape[1]))
    np.add.at(mean, speaker, vectors)
    deviation = vectors - (mean / size[:, None])[speaker]
    shrunk = np.sqrt(size / np.maximum(size - 1, 1))[speaker]
    return (deviation * shrunk[:, None])[size[speaker] > 2]
