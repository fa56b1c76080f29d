"""95 % intervals of DeID and G_VD hold the truth about as often as they say: a short simulation."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage.similarity import Voices, covered, truth

SAMPLES = 24


@pytest.mark.parametrize(
    "voices",
    [
        Voices("half own voice", 0.5, spread=0.15, utterances=3),
        Voices("no own voice", 0.0, utterances=3),
    ],
    ids=lambda voices: voices.name,
)
def test_intervals_of_twenty_speakers_hold_the_truth(voices):
    known = truth(voices, large=80, times=8)
    tallies = covered(voices, 20, known=known, samples=SAMPLES, replicates=30)
    # 24 samples of a true 95 % fall below 83 % once in 100 runs; a calibration held reaches 75 %.
    for metric in ("deid", "g_vd"):
        assert tallies[metric].given == 1
        assert tallies[metric].coverage >= 0.83, (metric, tallies[metric].missed)
        low, high = np.array(tallies[metric].ends).T
        assert (low < high).all()
    assert np.max([high for _, high in tallies["deid"].ends]) <= 1
