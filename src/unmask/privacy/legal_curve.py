"""A risk over numbers of speakers: value, interval, chance, residual risk, attacks, warnings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unmask.arrays import BoolArray, FloatArray, IntArray
from unmask.estimate import Estimate, Interval, Parameter

LEAST_DIFFERENCE = 1e-3
METHOD = "speaker"
_PIECE = 64


@dataclass(frozen=True)
class Resampling:
    """How an interval is made: percentile bootstrap over speakers."""

    level: float = 0.95
    replicates: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """The success of one attacker against numbers of speakers.

    ``low`` and ``high`` are the percentile interval over ``speakers``. ``attacks`` is the number of
    attacks run for each count; ``negated`` is the value with the score's sign turned. ``left_out``
    speakers had too few utterances, ``short`` enrolment speakers had fewer than asked for.
    """

    metric: str
    counts: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    chance: FloatArray
    attacks: IntArray
    negated: FloatArray
    speakers: pl.Series
    length: int
    enrol_length: int | str
    backend: str
    side: tuple[str, ...]
    left_out: int
    short: int
    resampling: Resampling
    notes: tuple[str, ...] = ()

    @property
    def residual(self) -> FloatArray:
        """Residual risk (value − chance)/(1 − chance); 0 is chance, 1 certain success."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.value - self.chance) / (1 - self.chance)

    @property
    def at_chance(self) -> BoolArray:
        """Where the interval does not lie above chance: the attack says nothing of protection."""
        return np.asarray(~(self.low > self.chance) & (self.chance < 1), dtype=bool)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands against reading the values as they are."""
        lines = list(self.notes)
        if self.at_chance.any():
            where = ", ".join(f"{n:,}" for n in self.counts[self.at_chance])
            lines.append(
                f"{self.metric}: the attack is no better than chance with {where} speakers;"
                " it says nothing about protection"
            )
        beyond = np.fmax(self.high, self.value + LEAST_DIFFERENCE)
        turned = (self.negated > beyond) & (self.negated > self.chance)
        if turned.any():
            i = int(np.argmax(np.where(turned, self.negated - self.value, -1.0)))
            lines.append(
                f"{self.metric}: the negated score succeeds more often,"
                f" {100 * self.negated[i]:.1f} % instead of {100 * self.value[i]:.1f} % with"
                f" {self.counts[i]:,} speakers"
            )
        if self.left_out:
            lines.append(
                f"{self.metric}: {self.left_out} speakers with too few utterances for"
                f" length {self.length} are left out"
            )
        if self.short:
            lines.append(
                f"{self.metric}: {self.short} enrolment speakers have fewer than"
                f" {self.enrol_length} utterances and are averaged over what they have"
            )
        return tuple(lines)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per count."""
        return tuple(self.estimate(i) for i in range(len(self.counts)))

    def estimate(self, i: int) -> Estimate:
        """The estimate at the i-th count."""
        how = self.resampling
        interval = Interval(
            float(self.low[i]), float(self.high[i]), how.level, METHOD, how.replicates, how.seed
        )
        return self._estimate(self.metric, float(self.value[i]), i, interval)

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Residual risk and the value of the negated score at the i-th count."""
        return (
            self._estimate(f"{self.metric}_residual", float(self.residual[i]), i, None),
            self._estimate(f"{self.metric}_negated", float(self.negated[i]), i, None),
        )

    def _estimate(self, metric: str, value: float, i: int, interval: Interval | None) -> Estimate:
        return Estimate(
            metric,
            value,
            "%",
            interval,
            0.0 if metric.endswith("residual") else float(self.chance[i]),
            {
                "attacks": int(self.attacks[i]),
                "speakers": len(self.speakers),
                "left_out": self.left_out,
            },
            {"N": int(self.counts[i]), **self._params(i)},
        )

    def _params(self, i: int) -> dict[str, Parameter]:
        """How the number at the i-th count was made."""
        return {
            "L": self.length,
            "enrol_L": self.enrol_length,
            "backend": self.backend,
            "side": "+".join(self.side) or None,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCurve(Curve):
    """A curve that is a mean over attacked speakers.

    ``per_speaker`` has a row per attacked speaker and a column per count.
    """

    per_speaker: FloatArray

    def sorted_risks(self, i: int) -> FloatArray:
        """Risks of the speakers at the i-th count, the least protected first."""
        return np.asarray(-np.sort(-self.per_speaker[:, i]))

    def sorted_speakers(self, i: int) -> pl.Series:
        """The speakers in the same order."""
        return self.speakers.gather(np.argsort(-self.per_speaker[:, i], kind="stable"))

    @property
    def worst_decile(self) -> FloatArray:
        """Mean risk of the tenth of the speakers who are least protected, for each count."""
        worst = -(-len(self.per_speaker) // 10)
        return np.asarray(-np.sort(-self.per_speaker, axis=0)[:worst].mean(axis=0))

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Residual risk, the negated score, and the worst decile of speakers."""
        worst = float(self.worst_decile[i])
        more = self._estimate(f"{self.metric}_worst_decile", worst, i, None)
        return (*super().details(i), more)


def resampled_means(
    values: FloatArray, how: Resampling, *, sizes: FloatArray | None = None
) -> FloatArray:
    """Means over speakers drawn with replacement: one row per replicate, one column per count.

    With ``sizes`` a speaker counts as many entries as that, and the mean is over entries.
    """
    speakers = len(values)
    weights = np.ones(speakers) if sizes is None else sizes
    rng = np.random.default_rng(np.random.SeedSequence(how.seed))
    means = np.empty((how.replicates, values.shape[1]))
    for start in range(0, how.replicates, _PIECE):
        rows = min(_PIECE, how.replicates - start)
        drawn = rng.integers(0, speakers, (rows, speakers))
        drawn += np.arange(rows)[:, None] * speakers
        times = np.bincount(drawn.ravel(), minlength=rows * speakers).reshape(rows, speakers)
        weighted = times * weights
        means[start : start + rows] = weighted @ values / weighted.sum(axis=1, keepdims=True)
    return means


def percentiles(replicates: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Percentile interval of each column."""
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return np.asarray(low), np.asarray(high)


def speaker_interval(values: FloatArray, how: Resampling) -> tuple[FloatArray, FloatArray]:
    """Interval of the mean over speakers of each column; NaN with one speaker."""
    if len(values) < 2 or how.replicates < 1:
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing.copy()
    return percentiles(resampled_means(values, how), how.level)


def one_speaker_note(speakers: int) -> tuple[str, ...]:
    """An interval over speakers needs more than one of them."""
    return ("one speaker only: no interval can be given",) if speakers < 2 else ()
