"""Linear prediction of many frames at once: coefficients, residual, poles and synthesis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray

ComplexArray = npt.NDArray[np.complex128]

WHITE_NOISE = 1e-9
"""Share of a frame's energy added to its zero-lag autocorrelation, so that no frame is singular."""


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
