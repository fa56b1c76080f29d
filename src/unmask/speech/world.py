"""Speech as the WORLD vocoder sees it: pitch, spectral envelope, aperiodicity; and voices as their
statistics, to which other speech can be moved (Morise et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.speech.audio import SAMPLE_RATE, needed
from unmask.speech.lpc import Transformed, restored

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
class Speech:
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


def analysed(samples: npt.ArrayLike) -> Speech:
    """WORLD's analysis of 16 kHz ``samples``: DIO and StoneMask, CheapTrick, D4C.

    DIO looks twice, the second time within an octave of the median that it finds first, which keeps
    it from errors of an octave. Where it finds no voice at all, Harvest looks: four times slower,
    and surer of noisy speech.
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
    return Speech(
        f0,
        times,
        np.log(np.maximum(envelope, _LEAST_POWER)),
        np.asarray(world.code_aperiodicity(noise, SAMPLE_RATE)),
    )


def synthesised(speech: Speech, samples: npt.ArrayLike) -> Transformed:
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


def shifted(speech: Speech, semitones: float) -> Speech:
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


def moments(speech: Speech) -> FloatArray:
    """Sums over voiced frames of one, of what is measured and of its square, a row each; those of
    several recordings of one person add up.
    """
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
    """The warp under which the mean envelope of ``source`` is nearest to that of ``target``.

    Level and tilt (c_0 to c_2) do not count: they tell more of the channel than of the tract.
    """
    part = slice(_TILT, ORDER // 2 + 1)
    away = [
        float(np.sum((warped_mean(source, warp) - target.mean)[part] ** 2))
        for warp in WARPS.tolist()
    ]
    return float(WARPS[int(np.argmin(away))])


def moved(speech: Speech, source: Voice, target: Voice) -> Speech:
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
    return Speech(
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
    """Log envelopes on a frequency axis bent by an all-pass of coefficient ``warp``.

    L'(ω) = L(ω + 2·atan(a sin ω/(1 − a cos ω))); formants move down where a > 0.
    """
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
