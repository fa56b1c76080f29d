"""The McAdams transformation: pole angles of the vocal tract filter raised to a power.

Linear prediction of many frames at once gives the filter, its residual and its poles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError

ComplexArray = npt.NDArray[np.complex128]

WHITE_NOISE = 1e-9
"""Share of a frame's energy added to its zero-lag autocorrelation, so that no frame is singular."""
FRAMES_PER_BLOCK = 512
PEAK_CEILING = 1.0 - 2.0**-15
"""Largest sample that 16-bit audio can hold."""


def linear_prediction(frames: FloatArray, order: int) -> FloatArray:
    """Coefficients a_0 = 1, a_1 … a_p of A(z) per frame, by the autocorrelation method.

    Solves the normal equations sum_k a_k r(|i − k|) = 0, i = 1 … p, with the Levinson–Durbin
    recursion run over all frames together. All zeros of A(z) lie inside the unit circle. A frame
    of zeros gives A(z) = 1.
    """
    count, length = frames.shape
    spectrum = np.fft.rfft(frames, 2 * length, axis=1)
    autocorrelation = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, : order + 1]
    autocorrelation[:, 0] *= 1.0 + WHITE_NOISE
    coefficients = np.zeros((count, order + 1))
    coefficients[:, 0] = 1.0
    error = autocorrelation[:, 0].copy()
    error[error <= 0.0] = 1.0
    for step in range(1, order + 1):
        past = coefficients[:, :step]
        reflection = -(past * autocorrelation[:, step:0:-1]).sum(axis=1) / error
        update = reflection[:, None] * past[:, ::-1]
        coefficients[:, 1 : step + 1] += update
        error *= 1.0 - reflection**2
    return coefficients


def residual(frames: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Prediction error e(n) = sum_k a_k x(n − k) of every frame, from rest."""
    count, length = frames.shape
    order = coefficients.shape[1] - 1
    padded = np.zeros((count, length + order))
    padded[:, order:] = frames
    history = np.lib.stride_tricks.sliding_window_view(padded, order + 1, axis=1)
    return np.asarray(np.einsum("fnk,fk->fn", history, coefficients[:, ::-1]))


def synthesis(error: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Signal y(n) = e(n) − sum_k a_k y(n − k): the inverse of :func:`residual`.

    One pass over the samples of a frame, all frames side by side.
    """
    count, length = error.shape
    order = coefficients.shape[1] - 1
    taps = np.ascontiguousarray(-coefficients[:, :0:-1].T)
    signal = np.zeros((length + order, count))
    signal[order:] = error.T
    for n in range(length):
        signal[n + order] += np.einsum("kf,kf->f", taps, signal[n : n + order])
    return np.ascontiguousarray(signal[order:].T)


def poles(coefficients: FloatArray) -> ComplexArray:
    """Zeros of A(z) per frame: the eigenvalues of its companion matrix."""
    count, order = coefficients.shape[0], coefficients.shape[1] - 1
    companion = np.zeros((count, order, order))
    companion[:, 0, :] = -coefficients[:, 1:]
    companion[:, np.arange(1, order), np.arange(order - 1)] = 1.0
    return np.linalg.eigvals(companion).astype(np.complex128)


def from_poles(roots: ComplexArray) -> FloatArray:
    """Coefficients of the product of (1 − p_k z^−1) over the poles of each frame.

    The poles of a frame are real or come in conjugate pairs, so the result is real.
    """
    count, order = roots.shape
    coefficients = np.zeros((count, order + 1), dtype=np.complex128)
    coefficients[:, 0] = 1.0
    for k in range(order):
        coefficients[:, 1 : k + 2] -= roots[:, k, None] * coefficients[:, : k + 1]
    return np.ascontiguousarray(coefficients.real)


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

    ``samples`` are one channel at ``rate`` a second. Frames of ``frame`` seconds overlap by half
    under a square-root Hann window. Each frame is split into A(z) of an ``order`` and its residual,
    the pole angles are raised to ``alpha``, the residual is filtered
    with the new 1/A(z), windowed again and overlap-added: ``alpha = 1`` gives the input back.
    With ``restore_level`` the output gets the level (root mean square) of the input, as far as the
    peaks allow.
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
        some = frames[start:stop] * window
        filters = linear_prediction(some, order)
        new_filters = from_poles(warp_poles(poles(filters), alpha))
        moved = synthesis(residual(some, filters), new_filters) * window
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
