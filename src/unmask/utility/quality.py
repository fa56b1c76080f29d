"""Melody, how well the pitch of protected speech follows that of the original; and quality that
needs no reference: DNSMOS, level, clipping.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.speech import SAMPLE_RATE, needed

LEAST_FRAMES = 10
WINDOW = round(9.01 * SAMPLE_RATE)
FULL_SCALE = 1.0 - 2.0**-14
CLIPPED = 1e-3
"""Share of samples at full scale from which on a recording counts as clipped."""
# From the network's output to the scale of listeners, highest power first (Reddy et al. 2022).
_SCALES = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)


class Melody(NamedTuple):
    """``rho_f0``: Pearson's correlation of F0 over frames voiced in both (the pitch correlation
    ρ^F0 of the VoicePrivacy 2022 challenge); ``semitones``: mean shift, 12·log2 of the ratio. NaN
    with fewer than ten such frames, and ρ where a pitch does not move.
    """

    rho_f0: float
    semitones: float


def pitch(samples: npt.ArrayLike) -> FloatArray:
    """F0 in Hz every 5 ms, 0 where unvoiced: WORLD's DIO and StoneMask."""
    world: Any = needed("pyworld", "pyworld-prebuilt", "utility")
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    rough, times = world.dio(signal, SAMPLE_RATE)
    return np.asarray(world.stonemask(signal, rough, times, SAMPLE_RATE))


def melody(original: FloatArray, protected: FloatArray) -> Melody:
    """Compare two tracks of pitch; where one is longer, the other is stretched to its frames."""
    length = max(original.size, protected.size)
    first, second = (_stretched(track, length) for track in (original, protected))
    both = (first > 0.0) & (second > 0.0)
    if both.sum() < LEAST_FRAMES:
        return Melody(float("nan"), float("nan"))
    a, b = first[both], second[both]
    shift = float(np.mean(12.0 * np.log2(b / a)))
    a, b = a - a.mean(), b - b.mean()
    power = float(np.sqrt(np.sum(a**2) * np.sum(b**2)))
    return Melody(float(np.sum(a * b)) / power if power > 0.0 else float("nan"), shift)


def _stretched(track: FloatArray, length: int) -> FloatArray:
    """The frame nearest in relative time; voicing is not interpolated."""
    if not track.size:
        return np.zeros(length)
    return np.asarray(track[np.rint(np.linspace(0, track.size - 1, length)).astype(np.int64)])


class Dnsmos(NamedTuple):
    """Predicted opinions of listeners, 1 to 5: of the speech, of the background, of all (P.835)."""

    sig: float
    bak: float
    ovrl: float


def dnsmos(samples: npt.ArrayLike) -> Dnsmos:
    """DNSMOS of 16 kHz samples, with the network that travels in ``speechmos`` (extra ``utility``).

    Windows of 9.01 s every second, shorter recordings repeated, as its authors do (Reddy et al.
    2022). None of that package's own code runs.
    """
    signal = np.asarray(samples, dtype=np.float32)
    while signal.size < WINDOW:
        signal = np.concatenate([signal, signal])
    hops = int(signal.size // SAMPLE_RATE - WINDOW / SAMPLE_RATE) + 1
    starts = [n * SAMPLE_RATE for n in range(hops) if n * SAMPLE_RATE + WINDOW <= signal.size]
    session = _session()
    raw = np.array(
        [session.run(None, {"input_1": signal[None, at : at + WINDOW]})[0][0] for at in starts]
    )
    means = [np.mean(np.polyval(scale, raw[:, n])) for n, scale in enumerate(_SCALES)]
    return Dnsmos(*map(float, means))


@lru_cache(maxsize=1)
def _session() -> Any:
    runtime = needed("onnxruntime", "onnxruntime", "utility")
    needed("speechmos", "speechmos", "utility")
    model = resources.files("speechmos").joinpath("dnsmos_models", "sig_bak_ovr.onnx")
    if not model.is_file():
        raise InputError("speechmos: expected dnsmos_models/sig_bak_ovr.onnx in it, found none")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model.read_bytes(), options)


def level(samples: FloatArray) -> float:
    """Root mean square in dB below full scale."""
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return 10.0 * float(np.log10(power)) if power > 0.0 else -float("inf")


def clipped(samples: FloatArray) -> float:
    """Share of samples that stand at full scale beside another that does."""
    full = np.abs(samples) >= FULL_SCALE
    beside = np.zeros_like(full)
    beside[1:] |= full[:-1]
    beside[:-1] |= full[1:]
    return float(np.mean(full & beside))
