"""Speech: real-time factors of the McAdams transformation and of the encoders."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import lfilter

from benchmarks.harness import ratio
from unmask.errors import InputError
from unmask.run import run_on
from unmask.speech import embed, mcadams, read_audio, recordings
from unmask.speech.encoders import load_encoder, weights_of
from unmask.speech.vocoding import linear_prediction, poles

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
    what = f"McAdams, {audio:.0f} s of audio, processor time"
    ratio(what, fast, slow, "frame by frame")
    frames = sliding_window_view(np.concatenate(few).astype(float), 320)[::160]
    filters = linear_prediction(frames, 20)
    start = time.process_time()
    poles(filters)
    ratio(what, fast, time.process_time() - start, "the eigenvalues alone")
    print(f"{'':52} {fast / audio:8.4f} real-time factor on one core  (aim: at most 0.008)")

    if not real:
        print("encoders: no recordings at hand")
        return
    for encoder in ("resemblyzer", "campplus"):
        try:
            weights_of(encoder).checked()
        except InputError as error:
            print(error)
            continue
        network: Any = load_encoder(encoder)
        network.encode(few[:2])
        with run_on(workers=1):
            start = time.process_time()
            result = embed(outcome[::12], network)
            elapsed = time.process_time() - start
        what = f"{encoder}, {result.seconds:.0f} s of audio, processor time"
        if encoder == "campplus":
            floor = bare(network) * result.seconds
            ratio(what, elapsed, floor, f"the bare network, {ROWS} x {SECONDS} s", limit="1.11")
        print(f"{what:<52} {elapsed / result.seconds:8.4f} real-time factor on one core")


ROWS, SECONDS = 3, 3
"""A batch that a processor core likes best."""


def bare(encoder: Any) -> float:
    """Seconds of processor that the network alone takes for a second of speech."""
    import torch

    from unmask.speech.encoders.neural import inference

    heard = torch.randn(ROWS, 100 * SECONDS, 80)
    with inference(encoder.device):
        encoder.network(heard)
        start = time.process_time()
        for _ in range(20):
            encoder.network(heard)
    return (time.process_time() - start) / (20 * ROWS * SECONDS)
