"""The McAdams transformation: pole angles of the vocal tract filter raised to a power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.speech.lpc import (
    ComplexArray,
    from_poles,
    linear_prediction,
    poles,
    residual,
    synthesis,
)

FRAMES_PER_BLOCK = 512
PEAK_CEILING = 1.0 - 2.0**-15
"""Largest sample that 16-bit audio can hold."""


@dataclass(frozen=True)
class Transformed:
    """Transformed samples, the gain applied to them, and what the peak guard took off that gain.

    ``guarded_db`` is 0 where the level of the input could be restored; otherwise it is how much
    lower the output had to stay for its peaks to fit.
    """

    samples: FloatArray
    gain_db: float
    guarded_db: float


def warp_poles(roots: ComplexArray, alpha: float) -> ComplexArray:
    """Raise the angle of every complex pole to the power ``alpha``; radii and real poles stay.

    φ → sign(φ) |φ|^α with φ in radians, so that angles move towards 1 rad (2.55 kHz at 16 kHz)
    for α < 1; conjugates stay conjugates. Angles stop at π, which only α > 1 can reach.
    """
    angle = np.angle(roots)
    moved = np.sign(angle) * np.minimum(np.abs(angle) ** alpha, np.pi)
    return np.where(roots.imag == 0.0, roots, np.abs(roots) * np.exp(1j * moved))


def mcadams(
    samples: npt.ArrayLike,
    alpha: float,
    *,
    rate: int = 16000,
    frame: float = 0.020,
    order: int = 20,
    restore_level: bool = True,
) -> Transformed:
    """Disguise a voice by moving the poles of its linear prediction filter (McAdams, 1984).

    Frames of ``frame`` seconds overlap by half under a square-root Hann window. Each frame is split
    into A(z) and its residual, the pole angles are raised to ``alpha``, the residual is filtered
    with the new 1/A(z), windowed again and overlap-added: ``alpha = 1`` gives the input back.
    The level (root mean square) of the input is restored as far as the peaks allow.
    """
    signal = np.asarray(samples, dtype=np.float64)
    if signal.ndim != 1:
        raise InputError(f"samples: expected one channel, found shape {signal.shape}")
    if not alpha > 0.0:
        raise InputError(f"McAdams coefficient: expected a number above 0, found {alpha}")
    hop = round(frame * rate / 2)
    length = 2 * hop
    if hop <= order:
        raise InputError(f"frame of {length} samples: expected more than twice the order {order}")
    if signal.size < length:
        raise InputError(f"{signal.size} samples: expected at least one frame of {length}")
    if not np.isfinite(signal).all():
        raise InputError("samples: expected finite numbers, found NaN or infinity")
    window = np.sqrt(np.hanning(length + 1)[:-1])
    count = -(-signal.size // hop) + 1
    padded = np.zeros((count + 1) * hop)
    padded[hop : hop + signal.size] = signal
    frames = np.lib.stride_tricks.sliding_window_view(padded, length)[::hop]
    output = np.zeros((count + 1, hop))
    for start in range(0, count, FRAMES_PER_BLOCK):
        stop = min(start + FRAMES_PER_BLOCK, count)
        moved = _transform(frames[start:stop] * window, alpha, order) * window
        output[start:stop] += moved[:, :hop]
        output[start + 1 : stop + 1] += moved[:, hop:]
    result = output.reshape(-1)[hop : hop + signal.size]
    return restored(result, signal) if restore_level else Transformed(result, 0.0, 0.0)


def restored(samples: FloatArray, reference: FloatArray) -> Transformed:
    """Give ``samples`` the root mean square of ``reference``, or less if peaks would clip."""
    energy = float(np.sqrt(np.mean(samples**2)))
    if energy == 0.0:
        return Transformed(samples, 0.0, 0.0)
    wanted = float(np.sqrt(np.mean(reference**2))) / energy
    peak = float(np.abs(samples).max())
    gain = min(wanted, PEAK_CEILING / peak)
    if gain == 0.0:
        return Transformed(samples * 0.0, -np.inf, 0.0)
    guarded = 20.0 * float(np.log10(wanted / gain))
    return Transformed(samples * gain, 20.0 * float(np.log10(gain)), guarded)


def _transform(frames: FloatArray, alpha: float, order: int) -> FloatArray:
    coefficients = linear_prediction(frames, order)
    error = residual(frames, coefficients)
    return synthesis(error, from_poles(warp_poles(poles(coefficients), alpha)))
