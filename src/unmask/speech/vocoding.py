"""Speech taken apart and put together: the McAdams transformation, which raises pole angles of the
vocal tract filter to a power; and the WORLD vocoder's pitch, spectral envelope and aperiodicity,
with voices as their statistics, to which other speech can be moved (Morise et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE, needed

ComplexArray = npt.NDArray[np.complex128]

WHITE_NOISE = 1e-9
"""Share of a frame's energy added to its zero-lag autocorrelation, so that no frame is singular."""
FRAMES_PER_BLOCK = 512
FRAME, PREDICTED = 320, 20
"""Samples of a frame, 20 ms, and the order of its linear prediction."""
PEAK_CEILING = 1.0 - 2.0**-15
"""Largest sample that 16-bit audio can hold."""


def linear_prediction(frames: FloatArray, order: int) -> FloatArray:
    """Coefficients a_0 = 1, a_1 … a_p of A(z) per frame, by the autocorrelation method: Σ_k a_k
    r(|i − k|) = 0, i = 1 … p, by Levinson–Durbin over all frames; a frame of zeros gives A(z) = 1.
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
    """Signal y(n) = e(n) − sum_k a_k y(n − k), the inverse of :func:`residual`, frames together."""
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
    """Real coefficients of the product of (1 − p_k z^−1) over the poles of each frame."""
    count, order = roots.shape
    coefficients = np.zeros((count, order + 1), dtype=np.complex128)
    coefficients[:, 0] = 1.0
    for k in range(order):
        coefficients[:, 1 : k + 2] -= roots[:, k, None] * coefficients[:, : k + 1]
    return np.ascontiguousarray(coefficients.real)


@dataclass(frozen=True)
class Transformed:
    """Transformed samples, and ``guarded_db``, what the peak guard took off their gain: 0 where the
    level of the input could be restored.
    """

    samples: FloatArray
    guarded_db: float = 0.0


def warp_poles(roots: ComplexArray, alpha: float) -> ComplexArray:
    """Angles φ → sign(φ) |φ|^α of complex poles, at most π: towards 1 rad (2.55 kHz) for α < 1."""
    angle = np.angle(roots)
    moved = np.sign(angle) * np.minimum(np.abs(angle) ** alpha, np.pi)
    return np.where(roots.imag == 0.0, roots, np.abs(roots) * np.exp(1j * moved))


def mcadams(samples: npt.ArrayLike, alpha: float) -> Transformed:
    """Disguise a voice by moving the poles of its linear prediction filter (McAdams, 1984).

    ``samples`` are one channel at 16 kHz. Frames of 20 ms overlap by half under a square-root Hann
    window. Each frame is split into A(z) of order 20 and its residual, the pole angles are raised
    to ``alpha``, the residual is filtered with the new 1/A(z), windowed again and overlap-added:
    ``alpha = 1`` gives the input back. The output gets the level (root mean square) of the input,
    as far as the peaks allow.
    """
    signal = np.asarray(samples, dtype=np.float64)
    if signal.ndim != 1:
        raise InputError(f"samples: expected one channel, found shape {signal.shape}")
    if not alpha > 0.0:
        raise InputError(f"McAdams coefficient: expected a number above 0, found {alpha}")
    hop, length = FRAME // 2, FRAME
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
        filters = linear_prediction(some, PREDICTED)
        new_filters = from_poles(warp_poles(poles(filters), alpha))
        moved = synthesis(residual(some, filters), new_filters) * window
        output[start:stop] += moved[:, :hop]
        output[start + 1 : stop + 1] += moved[:, hop:]
    return restored(output.reshape(-1)[hop : hop + signal.size], signal)


def restored(samples: FloatArray, reference: FloatArray) -> Transformed:
    """Give ``samples`` the root mean square of ``reference``, or less if peaks would clip."""
    energy = float(np.sqrt(np.mean(samples**2)))
    if energy == 0.0:
        return Transformed(samples)
    wanted = float(np.sqrt(np.mean(reference**2))) / energy
    gain = min(wanted, PEAK_CEILING / float(np.abs(samples).max()))
    guarded = 20.0 * float(np.log10(wanted / gain)) if gain > 0.0 else 0.0
    return Transformed(samples * gain, guarded)


FLOOR, CEILING = 65.0, 500.0
"""Range of the pitch in Hz."""
ORDER = 40
"""Cepstral coefficients that a voice is described by, besides the level: 200 Hz apart."""
WARPS = np.linspace(-0.12, 0.12, 25)
"""Frequency warping that is tried, as coefficients of an all-pass: a tenth is about 1.5 tones."""
_TILT = 3
_SPREAD = (0.5, 2.0)
_NARROWEST = 0.02
_LEAST_POWER = 1e-12


@dataclass(frozen=True, eq=False)
class WorldFrames:
    """Frames of 5 ms: ``f0`` in Hz, 0 where unvoiced; ``envelope`` the logarithm of the power
    spectrum's; ``aperiodicity`` in dB, a column per band.
    """

    f0: FloatArray
    times: FloatArray
    envelope: FloatArray
    aperiodicity: FloatArray

    @property
    def voiced(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.f0 > 0.0)


def analysed(samples: npt.ArrayLike) -> WorldFrames:
    """WORLD's analysis: DIO (again within an octave of its median, against octave errors) and
    StoneMask, CheapTrick, D4C. Harvest, slower and surer of noise, looks where DIO finds no voice.
    """
    world = needed("pyworld", "pyworld-prebuilt", "utility")
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    f0, times = world.dio(signal, SAMPLE_RATE, f0_floor=FLOOR, f0_ceil=CEILING)
    if (f0 > 0.0).any():
        middle = float(np.median(f0[f0 > 0.0]))
        ends = {"f0_floor": max(FLOOR, middle / 2), "f0_ceil": min(CEILING, 2 * middle)}
        f0 = world.stonemask(signal, world.dio(signal, SAMPLE_RATE, **ends)[0], times, SAMPLE_RATE)
    else:
        f0, times = world.harvest(signal, SAMPLE_RATE, f0_floor=FLOOR, f0_ceil=CEILING)
    envelope = world.cheaptrick(signal, f0, times, SAMPLE_RATE)
    noise = world.d4c(signal, f0, times, SAMPLE_RATE, fft_size=2 * (envelope.shape[1] - 1))
    return WorldFrames(
        f0,
        times,
        np.log(np.maximum(envelope, _LEAST_POWER)),
        np.asarray(world.code_aperiodicity(noise, SAMPLE_RATE)),
    )


def synthesised(speech: WorldFrames, samples: npt.ArrayLike) -> Transformed:
    """A signal as long as ``samples`` and at their level, as far as its peaks allow."""
    world = needed("pyworld", "pyworld-prebuilt", "utility")
    envelope = np.ascontiguousarray(np.exp(speech.envelope))
    coded = np.ascontiguousarray(np.minimum(speech.aperiodicity, 0.0))
    noise = world.decode_aperiodicity(coded, SAMPLE_RATE, 2 * (envelope.shape[1] - 1))
    made = world.synthesize(np.ascontiguousarray(speech.f0), envelope, noise, SAMPLE_RATE)
    signal = np.asarray(samples, dtype=np.float64)
    whole = np.zeros(signal.size)
    length = min(signal.size, made.size)
    whole[:length] = made[:length]
    return restored(whole, signal)


def shifted(speech: WorldFrames, semitones: float) -> WorldFrames:
    """The same with its pitch moved by ``semitones``; the vocal tract stays."""
    return replace(speech, f0=speech.f0 * 2.0 ** (semitones / 12.0))


@dataclass(frozen=True, eq=False)
class Voice:
    """How somebody's voiced frames are distributed, from sums over them.

    ``log_f0`` are mean and standard deviation of ln F0; ``mean`` and ``spread`` those of the
    cepstrum c_0 … c_40 of the log envelope; ``aperiodicity`` is the mean of every band in dB.
    """

    log_f0: FloatArray
    mean: FloatArray
    spread: FloatArray
    aperiodicity: FloatArray


def moments(speech: WorldFrames) -> FloatArray:
    """Sums over voiced frames of one, of what is measured and of its square, which add up."""
    voiced = speech.voiced
    rows = np.column_stack(
        [
            np.log(np.maximum(speech.f0[voiced], FLOOR / 4)),
            cepstrum(speech.envelope[voiced])[:, : ORDER + 1],
            speech.aperiodicity[voiced],
        ]
    )
    counts = np.full(rows.shape[1], float(voiced.sum()))
    return np.stack([counts, rows.sum(axis=0), np.einsum("nk,nk->k", rows, rows)])


def voice_of(sums: FloatArray) -> Voice | None:
    """The voice of :func:`moments`; None where nothing was voiced."""
    count, first, second = sums
    if count[0] < 2:
        return None
    mean = first / count
    spread = np.sqrt(np.maximum(second / count - mean**2, 0.0))
    own = slice(1, ORDER + 2)
    return Voice(np.array([mean[0], spread[0]]), mean[own], spread[own], mean[ORDER + 2 :])


def mean_voice(voices: Sequence[Voice]) -> Voice:
    """The voice in the middle: every statistic is the mean of theirs."""
    return Voice(*(np.mean([getattr(v, f.name) for v in voices], axis=0) for f in fields(Voice)))


def warping(source: Voice, target: Voice) -> float:
    """The warp under which the mean envelope of ``source`` is nearest to that of ``target``, but
    for level and tilt (c_0 to c_2), which tell more of the channel than of the tract.
    """
    part = slice(_TILT, ORDER // 2 + 1)
    away = [
        float(np.sum((warped_mean(source, warp) - target.mean)[part] ** 2))
        for warp in WARPS.tolist()
    ]
    return float(WARPS[int(np.argmin(away))])


def moved(speech: WorldFrames, source: Voice, target: Voice) -> WorldFrames:
    """Speech of ``source`` with the statistics of ``target``.

    ln F0 ← (ln F0 − μ_s)·σ_t/σ_s + μ_t on voiced frames; the envelope is warped
    (:func:`warping`), then c_n ← (c_n − μ_s,n)·σ_t,n/σ_s,n + μ_t,n for n = 1 … 40, while c_0, the
    level, and what is finer than c_40 stay; the mean aperiodicity becomes that of the target. A
    ratio of spreads is kept within ½ … 2.
    """
    f0 = np.zeros_like(speech.f0)
    voiced = speech.voiced
    (m_s, s_s), (m_t, s_t) = source.log_f0, target.log_f0
    ratio = float(np.clip(max(s_t, _NARROWEST) / max(s_s, _NARROWEST), *_SPREAD))
    f0[voiced] = np.exp((np.log(speech.f0[voiced]) - m_s) * ratio + m_t)
    warp = warping(source, target)
    coefficients = cepstrum(warped(speech.envelope, warp))
    wide, wanted = (np.maximum(voice.spread, _NARROWEST) for voice in (source, target))
    spreads = np.clip(wanted / wide, *_SPREAD)
    own = slice(1, ORDER + 1)
    centre = warped_mean(source, warp)[own]
    changed = (coefficients[:, own] - centre) * spreads[own] + target.mean[own]
    change = np.zeros_like(coefficients)
    change[:, own] = changed - coefficients[:, own]
    change[:, -1 : -ORDER - 1 : -1] = change[:, own]
    return WorldFrames(
        np.where(voiced, np.clip(f0, FLOOR / 2, CEILING), 0.0),
        speech.times,
        np.fft.rfft(coefficients + change, axis=1).real,
        speech.aperiodicity
        + np.where(voiced, 1.0, 0.0)[:, None] * (target.aperiodicity - source.aperiodicity),
    )


def cepstrum(envelope: FloatArray) -> FloatArray:
    """Cepstrum of log envelopes, frames × (2·bins − 2): L(ω) = Σ c_n e^{−iωn}, c_−n = c_n."""
    return np.asarray(np.fft.irfft(envelope, axis=1))


def warped(envelope: FloatArray, warp: float) -> FloatArray:
    """Log envelopes bent by an all-pass: L'(ω) = L(ω + 2·atan(a sin ω/(1 − a cos ω)))."""
    index, share = _bent(envelope.shape[1], warp)
    low, high = envelope[:, index], envelope[:, index + 1]
    return np.asarray(low + share * (high - low))


def warped_mean(voice: Voice, warp: float) -> FloatArray:
    """The mean cepstrum c_0 … c_40 of a voice whose envelopes are warped."""
    whole = np.zeros((1, 2 * 512))
    whole[0, : ORDER + 1] = voice.mean
    whole[0, -1 : -ORDER - 1 : -1] = voice.mean[1:]
    bent = warped(np.fft.rfft(whole, axis=1).real, warp)
    return cepstrum(bent)[0, : ORDER + 1]


@cache
def _bent(bins: int, warp: float) -> tuple[IntArray, FloatArray]:
    """For every bin the one below its place on the bent axis, and how far beyond that it lies."""
    omega = np.linspace(0.0, np.pi, bins)
    bent = omega + 2.0 * np.arctan(warp * np.sin(omega) / (1.0 - warp * np.cos(omega)))
    place = np.clip(bent / np.pi * (bins - 1), 0.0, bins - 1)
    index = np.minimum(place.astype(np.int64), bins - 2)
    return index, place - index
