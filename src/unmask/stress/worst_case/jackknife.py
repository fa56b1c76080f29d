"""Intervals of worst-case rates: a jackknife over groups of speakers, on both sides of a trial.

Targets and impostors are the same people, so a speaker who leaves is gone as a target and as an
impostor of everybody else. Speakers are dealt into G groups; with θ_g the log-odds of a rate
without group g, the variance is (G − 1)/G·Σ(θ_g − mean θ)², and the interval is θ ± 0.9·t·√variance
with t of Student's distribution with G − 1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta
from scipy.stats import t as student

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.stress.worst_case.pairs import PairScores

GROUPS = 15
"""Groups of speakers, each left out once."""

PAIRS = 0.9
"""Share of the jackknife's error that measured rates need: it counts the noise of single pairs of
speakers twice, once for each of them, and coverage over simulated populations asks for this."""

METHOD = "speaker,jackknife of groups"
_LEAST_GROUPS = 5
_FEW_CASES = 10.0


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each target and of each impostor; ``least`` impostors always remain."""

    number: int
    target: IntArray
    impostor: IntArray
    least: int

    @classmethod
    def of(cls, pairs: PairScores, number: int, *, seed: int) -> Groups:
        """Deal the speakers of some pairs.

        The same name is the same person, unless someone is their own impostor: then the two sides
        are different people and are dealt apart.
        """
        return cls.dealt(
            pairs.target_names,
            pairs.impostor_names,
            pairs.target,
            pairs.impostor,
            number,
            seed=seed,
        )

    @classmethod
    def dealt(
        cls,
        target_names: tuple[str, ...],
        impostor_names: tuple[str, ...],
        target: IntArray,
        impostor: IntArray,
        number: int,
        *,
        seed: int,
    ) -> Groups:
        """The same from names and from the pairs there are, as codes into them."""
        checked_groups(number)
        used = np.unique(impostor)
        code = {impostor_names[k]: place for place, k in enumerate(used)}
        own = np.array([code.get(name, -1) for name in target_names])
        among = np.full(len(impostor_names), -1)
        among[used] = np.arange(used.size)
        apart = bool((own[target] == among[impostor]).any())
        others = np.flatnonzero(own < 0) if not apart else np.arange(own.size)
        speakers = used.size + others.size
        for size in (even(number, speakers), speakers):
            rng = np.random.default_rng(seed)
            dealt = rng.permutation(speakers) % size
            own[others] = used.size + np.arange(others.size)
            group = np.full(len(impostor_names), -1)
            group[used] = dealt[: used.size]
            of_pair = group[impostor]
            left = np.bincount(target, minlength=own.size)[:, None] - np.bincount(
                target * size + of_pair, minlength=own.size * size
            ).reshape(own.size, size)
            if left.min() > 0:
                return cls(size, dealt[own], group, int(left.min()))
        raise InputError("jackknife: a target loses all impostors with a single speaker")

    def staying(self) -> IntArray:
        """Targets that remain without each group."""
        return self.target.size - np.bincount(self.target, minlength=self.number)


def even(number: int, speakers: int) -> int:
    """At most ``number`` groups of as equal a size as the speakers allow."""
    return -(-speakers // -(-speakers // number))


def checked_groups(number: int) -> int:
    """A number of groups from which an interval can be told, or 0 for none."""
    if number < 0 or 0 < number < _LEAST_GROUPS:
        raise InputError(
            f"jackknife: expected 0 (no intervals) or at least {_LEAST_GROUPS} groups of speakers,"
            f" found {number}"
        )
    return number


def checked_level(level: float) -> float:
    """A confidence level."""
    if not 0 < level < 1:
        raise InputError(f"level: expected a share between 0 and 1, found {level}")
    return level


def log_odds(rates: FloatArray, size: FloatArray | float) -> FloatArray:
    """Log-odds of rates of ``size`` cases, half a case away from 0 and 1."""
    return np.asarray(logit((size * np.clip(rates, 0.0, 1.0) + 0.5) / (size + 1)))


def deviation(without: FloatArray) -> FloatArray:
    """Standard error from the values without each group (first axis)."""
    number = len(without)
    return np.asarray(np.sqrt((number - 1) * np.var(without, axis=0)))


def reach(level: float, groups: int) -> float:
    """Student's quantile of a two-sided level."""
    return float(student.ppf((1 + level) / 2, groups - 1))


def interval(
    values: FloatArray, without: FloatArray, level: float, *, cases: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of rates (counts, thresholds) from those without each group (first axis).

    ``cases`` is the number of choices behind each count, targets × impostors/N. A rate of 0 is
    taken as half a case, and an end with fewer than ten cases behind it lies no nearer than that of
    so many independent choices (Clopper–Pearson): the voice that passes may be among those not
    seen. So bounds lie within [0, 1] and are never of zero width.
    """
    size = np.broadcast_to(cases[:, None], values.shape)
    half = PAIRS * reach(level, len(without)) * deviation(log_odds(without, size))
    inner = np.clip(values, 1e-12, 1 - 1e-12)
    low = np.minimum(expit(logit(inner) - half), expit(log_odds(values, size) - half))
    high = np.maximum(expit(logit(inner) + half), expit(log_odds(values, size) + half))
    tail = (1 - level) / 2
    hits, others = size * values, size * (1 - values)
    high = np.where(hits < _FEW_CASES, np.maximum(high, _upper(hits, others, tail)), high)
    low = np.where(others < _FEW_CASES, np.minimum(low, 1 - _upper(others, hits, tail)), low)
    low = np.where(values <= 0, 0.0, np.minimum(low, values))
    return low, np.where(values >= 1, 1.0, np.maximum(high, values))


def _upper(hits: FloatArray, others: FloatArray, tail: float) -> FloatArray:
    """Clopper–Pearson upper bound of hits/(hits + others)."""
    return np.asarray(beta.ppf(1 - tail, hits + 1, np.maximum(others, 1e-9)))
