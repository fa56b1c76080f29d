"""A risk over numbers of speakers: value, interval, chance, residual risk, attacks, notices.

Scores can be read as they are, negated, centred, centred and negated; none needs any label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import polars as pl

from unmask import base
from unmask.base import VERDICT, BoolArray, FloatArray, IntArray, Sampling, Tabular
from unmask.estimate import Estimate, Interval, Notice, Parameter
from unmask.privacy.attack import PLAIN, READINGS, Reading
from unmask.privacy.luck import Permuted, luck_of

SCORE = "speaker,score"
BOTH_SIDES = "enrolment and test speaker,score"
CORRECTED = "speaker,corrected"
PERCENTILE = "speaker,percentile"
TITLES = {"singling_out": "Singling Out", "linkability": "Linkability", "one_minus_eer": "1 − EER"}
C = TypeVar("C", bound="Curve")
_DECILE_REPLICATES = 200
_LEAST_RECORDINGS = 1.5


def no_better(curves: Sequence[Curve], at_chance: BoolArray) -> BoolArray:
    """Where the best of some readings is no better than chance: as permuted names tell, if they do,
    else as is said.
    """
    made = np.array(at_chance, dtype=bool)
    for i in range(len(made)):
        luck = luck_of((curve.permuted, i) for curve in curves)
        if luck is not None and luck.decides(len(curves[0].speakers)):
            made[i] = not luck.beyond
    return made


def residual(value: FloatArray, chance: FloatArray) -> FloatArray:
    """Residual risk (value − chance)/(1 − chance)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((value - chance) / (1 - chance))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Curve(Tabular):
    """The success of one attacker against numbers of speakers.

    ``low`` and ``high`` are its interval, made by ``method``; ``attacks`` were run for each count.
    ``negated`` is the curve of the negated score, ``variant`` says which one this is. ``left_out``
    speakers had too few utterances, ``strangers`` are not enrolled and left out too, ``short``
    enrolment speakers had fewer than asked for. ``permuted`` is the attack without information.
    ``split`` is the digest of the contents by which a release was split.
    """

    metric: str
    counts: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    chance: FloatArray
    attacks: IntArray
    speakers: pl.Series
    length: int
    enrol_length: int | str
    backend: str
    side: tuple[str, ...]
    left_out: int
    short: int
    resampling: Sampling
    method: str
    variant: str = PLAIN
    negated: Curve | None = None
    notes: tuple[Notice, ...] = ()
    strangers: int = 0
    permuted: Permuted | None = None
    split: str = ""

    @property
    def residual(self) -> FloatArray:
        """Residual risk; 0 is chance, 1 certain success."""
        return residual(self.value, self.chance)

    @property
    def at_chance(self) -> BoolArray:
        """Where permuted names tell that luck reads as much (p above 0.05); where they do not tell,
        where the interval, or the value if there is none, does not lie above chance.
        """
        low = self._sure_low
        least = np.where(np.isnan(low), self.value, low)
        return no_better([self], ~(least > self.chance)) & (self.chance < 1)

    @property
    def _sure_low(self) -> FloatArray:
        """The low ends by which it is told from chance."""
        return self.low

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What stands against reading the values as they are, with no other attack beside them."""
        if not self.at_chance.any():
            return self.remarks
        counts = ", ".join(f"{n:,}" for n in self.counts[self.at_chance])
        sentence = (
            f"the attack is not clearly better than chance with {counts} speakers; this tells of"
            " protection only if the same attack succeeds on unprotected speech"
        )
        return (*self.remarks, self._notice("chance", sentence))

    @property
    def remarks(self) -> tuple[Notice, ...]:
        """The same without a word on chance, which other attacks must be looked at for."""
        said, other = {}, self.negated
        if other is not None:
            more = (other.value > np.fmax(self.high, self.value)) & ~other.at_chance
            if more.any():
                i = int(np.argmax(np.where(more, other.value - self.value, -1.0)))
                said["negated"] = (
                    f"the negated score succeeds more often, {100 * other.value[i]:.1f} % instead"
                    f" of {100 * self.value[i]:.1f} % with {self.counts[i]:,} speakers"
                )
        if self.left_out:
            without = f"{self.left_out} speakers without conversations of {spoken(self.length)}"
            said["left-out"] = f"{without} are left out"
        if self.strangers:
            some = f"{self.strangers} of {len(self.speakers) + self.left_out + self.strangers}"
            said["not-enrolled"] = f"{some} test speakers are not enrolled and are left out"
        if self.short:
            said["short-enrolment"] = (
                f"{self.short} enrolment speakers have fewer than {self.enrol_length} utterances"
                " and are averaged over what they have"
            )
        lone = Notice("one-speaker", "", "one speaker only: no interval can be given")
        alone = () if len(self.speakers) > 1 else (lone,)
        return (*alone, *self.notes, *(self._notice(*one) for one in said.items()))

    def _notice(self, code: str, sentence: str) -> Notice:
        return Notice(code, TITLES[self.metric], sentence)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per count."""
        return tuple(self.estimate(i) for i in range(len(self.counts)))

    def estimate(self, i: int) -> Estimate:
        """The estimate at the i-th count."""
        how, ends = self.resampling, (float(self.low[i]), float(self.high[i]))
        drawn = 0 if self.method in (SCORE, BOTH_SIDES) else how.replicates
        people = {"speakers": len(self.speakers), "left_out": self.left_out}
        people |= {"not_enrolled": self.strangers} if self.strangers else {}
        return Estimate(
            self.metric,
            float(self.value[i]),
            "%",
            None if np.isnan(ends[0]) else Interval(*ends, how.level, self.method, drawn, how.seed),
            float(self.chance[i]),
            {"attacks": int(self.attacks[i]), **people},
            {"N": int(self.counts[i]), **self._params(i)},
        )

    def index(self, count: int) -> int | None:
        """Where a count stands in the curve, None where it is not there."""
        matches = np.flatnonzero(self.counts == count)
        return int(matches[0]) if matches.size else None

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Residual risk and the value of the negated score at the i-th count."""
        plain, name = self.estimate(i), f"{self.metric}_residual"
        shares = np.array([self.value[i], self.low[i], self.high[i]])
        value, low, high = residual(shares, self.chance[i]).tolist()
        made = plain.interval and replace(plain.interval, low=low, high=high)
        details = [replace(plain, metric=name, value=value, interval=made, chance=0.0)]
        if self.negated is not None:
            details.append(replace(self.negated.estimate(i), metric=f"{self.metric}_negated"))
        return tuple(details)

    def _params(self, i: int) -> dict[str, Parameter]:
        """How the number at the i-th count was made."""
        return {
            "L": self.length,
            "enrol_L": self.enrol_length,
            "backend": self.backend,
            "variant": None if self.variant == PLAIN else self.variant,
            "side": "+".join(self.side) or None,
            "split": self.split or None,
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RiskCurve(Curve):
    """A curve that is a mean over attacked speakers.

    ``per_speaker`` has a row per attacked speaker and a column per count: the mean outcome of its
    ``recordings``, whose outcomes vary by ``noise`` about the speaker's mean (NaN where nobody has
    two). ``variance`` is that of the value.
    """

    per_speaker: FloatArray
    recordings: IntArray
    noise: FloatArray
    variance: FloatArray

    def at_level(self, level: float) -> Self:
        """The same curve with intervals of another level."""
        how = replace(self.resampling, level=level)
        low, high = risk_interval(self.value, self.variance, len(self.per_speaker), how)
        return replace(self, low=low, high=high, resampling=how)

    @property
    def _sure_low(self) -> FloatArray:
        """The low ends at the level of all verdicts."""
        return self.at_level(VERDICT).low

    def sorted_risks(self, i: int) -> FloatArray:
        """Risks of the speakers at the i-th count, the least protected first."""
        return np.asarray(-np.sort(-self.per_speaker[:, i]))

    def sorted_speakers(self, i: int) -> pl.Series:
        """The speakers in the same order."""
        return self.speakers.gather(np.argsort(-self.per_speaker[:, i], kind="stable"))

    @property
    def tells_persons(self) -> bool:
        """Whether people have recordings enough to tell a person at risk from bad luck."""
        return bool(self.recordings.mean() >= _LEAST_RECORDINGS) and len(self.recordings) > 1

    @property
    def remarks(self) -> tuple[Notice, ...]:
        """Those of any curve, and why there is no worst decile where there is none."""
        if self.tells_persons:
            return super().remarks
        sentence = (
            f"one conversation of {spoken(self.length)} of a speaker cannot tell a person at risk"
            " from bad luck: no worst decile is given"
        )
        return (*super().remarks, self._notice("no-worst-decile", sentence))

    @property
    def worst_decile(self) -> FloatArray:
        """Mean risk of the tenth of the speakers who are least protected, for each count.

        The spread of the speakers' means is first reduced to what is not noise of few recordings
        (Louis 1984): else the worst of many equal speakers would look bad by chance. NaN where
        recordings are too few.
        """
        if not self.tells_persons:
            return np.full(len(self.counts), np.nan)
        noise = self.noise * (1 / self.recordings).mean()
        return _worst_decile(np.ascontiguousarray(self.per_speaker.T), noise)

    def worst_decile_limits(self, i: int) -> tuple[float, float] | None:
        """Interval of the worst decile at the i-th count: percentiles over resamples of speakers.

        A sample may lack the very people who are least protected: for the high end one more whose
        risk is 1 is among those drawn (the rule of three), and no noise is taken out, which few
        recordings tell badly. Where no resample moves the low end from 1, it is the exact bound.
        """
        how = self.resampling
        if how.replicates < 1 or not self.tells_persons:
            return None
        risks = self.per_speaker[np.argsort(base.in_order(self.speakers.to_list())), i]
        noise = float(self.noise[i]) * (1 / self.recordings).mean()
        number = min(how.replicates, _DECILE_REPLICATES)

        def end(people: FloatArray, noise: float, tail: float) -> float:
            times = replace(how, replicates=number).times(len(people)).astype(int)
            samples = np.repeat(np.tile(people, number), times.ravel()).reshape(times.shape)
            return float(np.quantile(_worst_decile(samples, noise), tail, method="inverted_cdf"))

        low = end(risks, noise, (1 - how.level) / 2)
        high = end(np.append(risks, 1.0), 0.0, (1 + how.level) / 2)
        if low == 1:
            low = base.exact_bound("low", len(risks), level=how.level)
        return min(low, self.worst_decile[i]), max(high, self.worst_decile[i])

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Residual risk, the negated score, and the worst decile of speakers."""
        if not self.tells_persons:
            return super().details(i)
        name, worst = f"{self.metric}_worst_decile", float(self.worst_decile[i])
        limits, how = self.worst_decile_limits(i), self.resampling
        drawn = min(how.replicates, _DECILE_REPLICATES)
        interval = limits and Interval(*limits, how.level, PERCENTILE, drawn, how.seed)
        more = replace(self.estimate(i), metric=name, value=worst, interval=interval)
        return (*super().details(i), more)


def _worst_decile(risks: FloatArray, noise: FloatArray | float) -> FloatArray:
    """Mean of the tenth of each row (speakers) that is largest, noise taken out of the spread."""
    worst = -(-risks.shape[1] // 10)
    top = np.partition(risks, -worst, axis=1)[:, -worst:].mean(axis=1)
    mean, spread = risks.mean(axis=1), risks.var(axis=1, ddof=1)
    kept = np.sqrt(np.maximum(1 - noise / np.where(spread > 0, spread, 1.0), 0.0))
    return np.asarray(np.clip(mean + kept * (top - mean), 0.0, 1.0))


def recording_noise(outcomes: FloatArray, owner: IntArray, means: FloatArray) -> FloatArray:
    """Variance of the outcomes of one recording about its speaker's mean, pooled over speakers."""
    free = len(owner) - len(means)
    if free < 1:
        return np.full(outcomes.shape[1], np.nan)
    return np.asarray(((outcomes - means[owner]) ** 2).sum(axis=0) / free)


def mean_variance(values: FloatArray) -> FloatArray:
    """Variance of the mean over rows of each column; NaN with one row."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.var(axis=0, ddof=1) / len(values))


def risks(per_speaker: FloatArray, variance: FloatArray, how: Sampling) -> dict[str, Any]:
    """What a risk curve says of its mean over speakers, which has this variance."""
    value = per_speaker.mean(axis=0)
    low, high = risk_interval(value, variance, len(per_speaker), how)
    spread = {"per_speaker": per_speaker, "variance": variance}
    return {"value": value, "low": low, "high": high, **spread}


def risk_interval(
    value: FloatArray, variance: FloatArray, speakers: int, how: Sampling
) -> tuple[FloatArray, FloatArray]:
    """Score interval of a mean over speakers with this variance; NaN where none is asked for."""
    return base.score_interval(
        value, variance, speakers if how.replicates > 0 else 0, level=how.level
    )


def spoken(*lengths: int) -> str:
    """``1 utterance``, ``1, 3 utterances``: lengths of conversations as sentences have them."""
    return f"{', '.join(map(str, lengths))} utterance{'' if lengths == (1,) else 's'}"


def base_name(name: str, curve: Curve) -> str:
    """The attacker that a variant belongs to."""
    return name if curve.variant == PLAIN else name.removesuffix(f", {curve.variant}")


def with_negated(plain: C, other: C, reading: Reading = PLAIN) -> C:
    """The curve of a score with that of the negated one, which is the next of all readings."""
    following = READINGS[READINGS.index(reading) + 1]
    return replace(plain, variant=reading, negated=replace(other, variant=following))
