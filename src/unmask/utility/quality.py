"""Quality that needs no reference: DNSMOS, level, clipping, duration."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.speech import SAMPLE_RATE, needed

WINDOW = round(9.01 * SAMPLE_RATE)
FULL_SCALE = 1.0 - 2.0**-14
CLIPPED = 1e-3
"""Share of samples at full scale from which on a recording counts as clipped."""
# From the network's output to the scale of listeners, highest power first (Reddy et al. 2022).
_SCALES = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovrl": (-0.06766283, 1.11546468, 0.04602535),
}


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
    sig, bak, ovrl = (
        float(np.mean(np.polyval(scale, raw[:, n]))) for n, scale in enumerate(_SCALES.values())
    )
    return Dnsmos(sig, bak, ovrl)


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
