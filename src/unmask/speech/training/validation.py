"""How well a network tells speakers apart whom it was not trained on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray
from unmask.engine import Roc
from unmask.speech.audio import SAMPLE_RATE
from unmask.speech.training.data import Corpus

MOST_RECORDINGS = 10
"""Recordings per speaker."""
MOST_SECONDS = 4
"""Seconds of a recording, from its beginning; a shorter one is repeated, for all to go at once."""


def equal_error_rate(vectors: npt.NDArray[np.float32], labels: IntArray) -> float:
    """EER of the cosine over all pairs of recordings; 0.5 is chance, and what vectors get that are
    not finite.
    """
    if not np.isfinite(vectors).all():
        return 0.5
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    first, second = np.triu_indices(len(unit), 1)
    scores = (unit @ unit.T)[first, second].astype(np.float64)
    same = labels[first] == labels[second]
    return Roc.from_scores(scores[same], scores[~same]).eer()


def some_of(corpus: Corpus) -> tuple[list[npt.NDArray[np.float32]], IntArray]:
    """Samples in [−1, 1] and speakers of the recordings that validate."""
    taken: dict[int, int] = {}
    rows = []
    for row, label in enumerate(corpus.labels.tolist()):
        if taken.get(label, 0) < MOST_RECORDINGS:
            taken[label] = taken.get(label, 0) + 1
            rows.append(row)
    length = min(MOST_SECONDS * SAMPLE_RATE, int(corpus.samples.sizes[rows].max()))
    crops = [corpus.samples.crop(row, 0.0, length) for row in rows]
    samples = [(crop / np.float32(32768.0)).astype(np.float32) for crop in crops]
    return samples, corpus.labels[rows]
