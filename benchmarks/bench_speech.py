"""Speech: real-time factors of the McAdams transformation and of the encoders."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from benchmarks.harness import ratio
from unmask.errors import InputError
from unmask.speech import embed, mcadams, read_audio, recordings
from unmask.speech.encoders import weights_of
from unmask.speech.vocoding import linear_prediction

AUDIO = Path(__file__).resolve().parents[2] / "shared" / "data" / "audio" / "audiomnist_5digit_16k"


def frame_by_frame(samples: np.ndarray, alpha: float) -> np.ndarray:
    """The definition as it is usually written: one frame, one polynomial at a time."""
    window = np.sqrt(np.hanning(321)[:-1])
    output = np.zeros(samples.size + 320)
    for start in range(0, samples.size - 320, 160):
        frame = samples[start : start + 320] * window
        if not frame.any():
            continue
        a = linear_prediction(frame[None], 20)[0]
        roots = np.roots(a)
        angle = np.angle(roots)
        moved = np.abs(roots) * np.exp(1j * np.sign(angle) * np.abs(angle) ** alpha)
        warped = np.poly(np.where(roots.imag == 0, roots, moved)).real
        output[start : start + 320] += window * lfilter([1.0], warped, lfilter(a, [1.0], frame))
    return output[: samples.size]


def run() -> None:
    """Print real-time factors; real recordings where they are at hand, else noise."""
    real = AUDIO.is_dir()
    outcome = recordings(AUDIO, speakers="folder") if real else ()
    few = [read_audio(one.path).samples for one in outcome[::24]]
    few = few or [0.1 * np.random.default_rng(0).standard_normal(50_000) for _ in range(50)]
    audio = sum(one.size for one in few) / 16000

    start = time.process_time()
    for one in few:
        mcadams(one, 0.8)
    fast = time.process_time() - start
    start = time.process_time()
    for one in few[:5]:
        frame_by_frame(one, 0.8)
    slow = (time.process_time() - start) * audio / (sum(one.size for one in few[:5]) / 16000)
    ratio(f"McAdams, {audio:.0f} s of audio, processor time", fast, slow, "frame by frame")
    print(f"{'':52} {audio / fast:8.1f} x real time on one core  (aim: above 50)")

    if not real:
        print("encoders: no recordings at hand")
        return
    for encoder in ("resemblyzer", "campplus"):
        try:
            weights_of(encoder).checked()
        except InputError as error:
            print(error)
            continue
        start = time.perf_counter()
        result = embed(outcome, encoder)
        elapsed = time.perf_counter() - start
        print(
            f"{encoder + f', all {len(outcome)} files':<52} {elapsed:8.1f} s for"
            f" {result.seconds:.0f} s of audio: real-time factor {elapsed / result.seconds:.4f}"
            f" on {os.cpu_count()} cores"
        )
