"""One question asked of a system: what if an adversary picks the closest of this many voices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Part, Tabular, estimate_row
from unmask.engine import Roc, decimal_from
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.run import progress, run_on
from unmask.stress.extrapolation.choose import ModelFitter
from unmask.stress.extrapolation.fitted import Extrapolation, Prediction
from unmask.stress.extrapolation.models import checked_name
from unmask.stress.impostors import pair_scores
from unmask.stress.impostors.pair_scores import Data, ImpostorProtocol, Proxy
from unmask.stress.impostors.rates import Rates, ScoreSample, WorstCase, crossed_rates
from unmask.stress.impostors.uncertainty import GROUPS, LEVEL, CrossFitted, Jackknife
from unmask.stress.impostors.voices import EmbeddedVoices
from unmask.stress.tables import Table, as_table, is_table
from unmask.trials import Embeddings

_MOST_POPULATION = 10**12
"""People to extrapolate to at most; beyond, whole numbers of people are no longer exact."""
LIMITS = (0.01, 0.05, 0.1, 0.5)
"""Rates for which the needed thresholds are told unless others are asked for."""

COSTS = ((10.0, 1.0), (1.0, 1.0), (1.0, 10.0))
"""(C_miss, C_fa) of τ_1, τ_2, τ_3 at a prior of one half: misses weigh more, alike, less."""

_EMPIRICAL = 24
_PREDICTED = 36
_MAP = 90


@dataclass(frozen=True)
class Operating:
    """A threshold, what it is called, and the misses and ordinary false alarms it costs."""

    name: str
    threshold: float
    p_miss: float
    p_fa: float


@dataclass(frozen=True)
class Needed:
    """The threshold that keeps P_FA^N at a rate, and its misses.

    At ``threshold`` the prediction is the rate, with the upper end ``high``; at ``safe_threshold``
    the upper end is. Both are rounded up to the shortest decimal that rejects no further target.
    Without intervals ``high`` is NaN and both are the same.
    """

    count: int
    rate: float
    threshold: float
    p_miss: float
    high: float
    safe_threshold: float
    safe_p_miss: float


@dataclass(frozen=True, eq=False, repr=False)
class WorstCaseStudy(Tabular):
    """Exact rates up to the impostors at hand, predictions beyond them, thresholds that would help.

    :func:`worst_case_study` makes it. ``empirical`` and ``predicted`` are over ``operating``
    thresholds; ``surface`` is predicted over ``predicted.counts`` × ``levels``, the range in which
    anything happens; ``needed`` are the thresholds asked for, ``limits`` those that keep the worst
    case at ``rates``; ``measured`` has what the impostors at hand tell of these.
    ``sample`` says so where the model was fitted to some of the scores; ``empirical`` never is.
    ``compared`` are the predictions of other models that were asked for, each with its interval.
    """

    operating: tuple[Operating, ...]
    population: int
    empirical: WorstCase
    predicted: Prediction
    levels: FloatArray
    surface: FloatArray
    needed: tuple[Needed, ...]
    rates: Sequence[float]
    measured: Rates
    extrapolation: Extrapolation
    skipped: int
    sample: ScoreSample | None = None
    compared: Mapping[str, Prediction] = field(default_factory=dict)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to be careful about."""
        left = Notice("pairs-left-out", "", f"{self.skipped} pairs with one score were left out")
        return (*self.empirical.notices, *self.predicted.notices, *([left] if self.skipped else ()))

    @property
    def limits(self) -> dict[float, FloatArray]:
        """By rate the lowest threshold for every count, measured and then predicted."""
        near = self.measured

        def measured(row: FloatArray, rate: float) -> float:
            at = int(np.argmax(row <= rate))  # of the highest score of all the rate is 0
            ends = [at, at - 1]
            return float(np.interp(rate, row[ends], near.thresholds[ends])) if at else -np.inf

        far, beyond = self.extrapolation.thresholds_for, self.predicted.counts[near.counts.size :]
        return {
            rate: np.append([measured(row, rate) for row in near.values], far(rate, beyond))
            for rate in self.rates
        }

    def rows(self) -> list[dict[str, Any]]:
        """The table: measured and predicted rates at every named threshold."""
        return [
            estimate_row(estimate, threshold_name=point.name)
            for index, point in enumerate(self.operating)
            for estimate in self.estimates_of(index)
        ]

    @property
    def parts(self) -> dict[str, Part]:
        """The estimates at each named threshold."""
        return {one.name: Part(self.estimates_of(i)) for i, one in enumerate(self.operating)}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those at every threshold."""
        return tuple(one for i in range(len(self.operating)) for one in self.estimates_of(i))

    def estimates_of(self, index: int) -> tuple[Estimate, ...]:
        """FA at N = 1, at all impostors at hand (exact) and at the population (predicted)."""
        width = len(self.operating)
        exact = self.empirical.estimates
        beyond = self.predicted.estimates
        at = int(np.searchsorted(self.predicted.counts, self.population))
        point = self.operating[index]
        return (
            exact[index],
            exact[-width + index],
            beyond[at * width + index],
            Estimate("p_miss", point.p_miss, "%", params={"threshold": point.threshold}),
        )


def thresholds_of_roc(
    roc: Roc, *, thresholds: Sequence[float] = (), p_target: Sequence[float] = ()
) -> tuple[Operating, ...]:
    """Named thresholds of a statistic counted at :func:`counted_at`: those given, those of least
    cost at priors ``p_target``, or τ_1, τ_2, τ_3 (Sholokhov 2020, section 4). Scores strictly above
    are accepted.
    """
    points = []
    for value, next_above in zip(thresholds, counted_at(thresholds), strict=True):
        point = roc.at_threshold(next_above)
        points.append(Operating(f"{value:g}", float(value), point.p_miss, point.p_fa))
    costs = [(f"minDCF({p:g})", p, 1.0, 1.0) for p in p_target]
    if not points and not costs:
        costs = [(f"τ{'₁₂₃'[k]}", 0.5, miss, fa) for k, (miss, fa) in enumerate(COSTS)]
    for name, prior, miss, fa in costs:
        point = roc.min_dcf_point(p_target=prior, c_miss=miss, c_fa=fa)
        below = float(np.nextafter(point.threshold, -np.inf))
        points.append(Operating(name, below, point.p_miss, point.p_fa))
    return tuple(points)


def counted_at(thresholds: Sequence[float]) -> list[float]:
    """Where a statistic, which accepts from a threshold on, must count to tell those above."""
    return [float(np.nextafter(value, np.inf)) for value in thresholds]


def worst_case(
    data: Data,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Table | Embeddings | Proxy = None,
    protocol: ImpostorProtocol | None = None,
    groups: int = GROUPS,
    level: float = LEVEL,
    seed: int = 0,
) -> WorstCase:
    """False alarms P_FA^N(τ) when an adversary picks the closest of N voices (Sholokhov 2020).

    The rates of eq. 4, measured up to the impostors at hand: exact over all choices of N of them.
    Scores that choose are not counted as those that attack, unless ``protocol`` says so
    (:mod:`.impostors.uncertainty`). Of embeddings every pair of utterances counts, on the current
    place (:func:`~unmask.run.run_on`), and no score is held.

    Parameters
    ----------
    data
        Scores with the speakers of both sides (a table, a data frame, score files), embeddings,
        :class:`~unmask.stress.PairScores`, or an array targets × impostors × scores.
    thresholds
        τ: a score above it is a false alarm.
    counts
        N, from 1 to the fewest impostors that any target has.
    proxy
        What the adversary chooses by instead of the scores themselves: scores of another system for
        the same pairs, or embeddings of the same speakers by another encoder.
    protocol
        Which scores are taken, and how; see :class:`~unmask.stress.ImpostorProtocol`.
    groups
        Groups of speakers that leave in turn for the intervals; 0 for none.
    level, seed
        Confidence of intervals, and where random folds and groups follow from.

    Returns
    -------
    WorstCase
        ``values``, ``low`` and ``high``, arrays (counts, thresholds).

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 50, 1)) + rng.normal(size=(40, 50, 30))
    >>> rates = um.worst_case(scores, [2.0], counts=[1, 10, 50])
    >>> for n, (p,), (low,), (high,) in zip(rates.counts, rates.values, rates.low, rates.high):
    ...     print(f"closest of {n:>2}: {p:.2f} ({low:.2f} to {high:.2f})")
    closest of  1: 0.08 (0.07 to 0.08)
    closest of 10: 0.32 (0.30 to 0.34)
    closest of 50: 0.53 (0.48 to 0.58)
    """
    jackknife = Jackknife(groups, level, seed)
    source = _source(data, proxy, protocol or ImpostorProtocol(), seed)
    return source.measured(thresholds, counts, jackknife)


def worst_case_study(
    data: Data,
    thresholds: Sequence[float] = (),
    *,
    population: int | None = None,
    model: str | Sequence[str] = "auto",
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    target: npt.ArrayLike | None = None,
    proxy: Table | Embeddings | Proxy = None,
    protocol: ImpostorProtocol | None = None,
    groups: int = GROUPS,
    level: float = LEVEL,
    seed: int = 0,
) -> WorstCaseStudy:
    """The rates of :func:`worst_case` up to the impostors at hand, and a model's beyond them.

    Thresholds are named, with the misses they cost. Of embeddings models are fitted to at most
    ``per_pair`` scores of a pair and to as many targets as make 16 million scores, which ``sample``
    tells; what is measured never is.

    Parameters
    ----------
    data, proxy, protocol, groups, level, seed
        Those of :func:`worst_case`.
    thresholds
        τ; by default τ₁, τ₂, τ₃ of Sholokhov 2020, section 4.
    population
        N to extrapolate to; 100 times the impostors at hand by default.
    model
        That of :func:`extrapolate`; of several names the first predicts and others are compared.
    p_target
        Priors whose thresholds of least detection cost are added.
    target_rates
        Asks for the thresholds that keep the worst case under these rates.
    target
        Same-speaker scores, which tell misses: pairs and arrays have none.

    Returns
    -------
    WorstCaseStudy
        ``empirical`` and ``predicted`` rates at the ``operating`` thresholds, and those ``needed``.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices = rng.normal(size=(40, 1, 16)) + 0.7 * rng.normal(size=(40, 6, 16))
    >>> data = um.Embeddings(voices.reshape(240, 16), np.repeat(np.arange(40), 6).astype(str))
    >>> study = um.worst_case_study(data, [0.7], population=1000, model="gpd", groups=0)
    >>> for rate in study["0.7"].estimates[:3]:
    ...     print(f"closest of {rate.params['count']:>4}: {rate.value:.3f}")
    closest of    1: 0.002
    closest of   39: 0.045
    closest of 1000: 0.393
    """
    how, jackknife = protocol or ImpostorProtocol(), Jackknife(groups, level, seed)
    first, *compare = [model] if isinstance(model, str) else model
    for name in (first, *compare):
        if name != "auto":
            checked_name(name)
    if population is not None:
        if population > _MOST_POPULATION:
            raise InputError("population", f"at most {_MOST_POPULATION:g}", f"{population:g}")
        pair_scores.as_counts([population])
    source = _source(data, proxy, how, seed, target)
    impostors = source.impostors
    reached = population or 100 * impostors
    roc = source.roc(counted_at(thresholds))
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    levels = np.array([point.threshold for point in points])
    exact = source.measured(levels, spaced_counts(impostors, _EMPIRICAL), jackknife)
    crossed, sample = source.sample()
    ready = ModelFitter(crossed, jackknife)
    fitted = ready.fitted(first)
    reach = np.union1d(spaced_counts(max(reached, 2), _PREDICTED), impostors)
    top = max(fitted.thresholds[1], float(levels.max()))
    grid = np.linspace(float(np.quantile(crossed.pairs.scores, 0.02)), top, _MAP)
    finer = np.union1d(ready.surface.thresholds, fitted.thresholds[1])
    with run_on(), progress(None):
        near = crossed_rates(crossed, finer, reach[reach < fitted.max_count], None)
    return WorstCaseStudy(
        points,
        reached,
        exact,
        fitted.predict_interval(reach, levels, level=level).above(exact),
        grid,
        fitted.predict(reach, grid),
        tuple(_needed(rate, reached, fitted, roc, level) for rate in target_rates),
        target_rates or LIMITS,
        near,
        fitted,
        crossed.pairs.skipped,
        sample,
        {
            name: ready.fitted(name).predict_interval(reach, levels, level=level).above(exact)
            for name in compare
        },
    )


def _source(
    data: Data,
    proxy: Table | Embeddings | Proxy,
    how: ImpostorProtocol,
    seed: int,
    target: npt.ArrayLike | None = None,
) -> _Pairs | EmbeddedVoices:
    """What rates are measured on and models fitted to; ``target`` where the data have none."""
    if isinstance(data, Embeddings):
        if not (proxy is None or isinstance(proxy, Embeddings)):
            raise InputError("proxy: expected embeddings of the same speakers")
        return EmbeddedVoices(data, proxy, how)
    if is_table(data):
        data = as_table(cast(Table, data), "worst case")
        pair_scores.check_system(data, how)
        target = data.targets(how.system)
    kept = pair_scores.speaker_pairs(data, how).checked()
    if isinstance(proxy, Embeddings) or is_table(proxy):
        other = ImpostorProtocol(both_ways=how.both_ways, backend=how.proxy_backend)
        proxy = pair_scores.speaker_pairs(cast(Data, proxy), other, per_pair=1)
    return _Pairs(CrossFitted.of(kept, cast(Proxy, proxy), split=how.split, seed=seed), target)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Scores of pairs in memory. A study asks any source for the fewest ``impostors`` of a target,
    the ``roc``, rates ``measured``, and a ``sample`` to fit to, with which part of all it is.
    """

    crossed: CrossFitted
    target: npt.ArrayLike | None

    @property
    def impostors(self) -> int:
        return self.crossed.pairs.max_count

    def roc(self, thresholds: Sequence[float]) -> Roc:
        if self.target is None:
            raise InputError("target: expected same-speaker scores, which tell misses, found none")
        return Roc.from_scores(self.target, self.crossed.pairs.scores, thresholds=thresholds)

    def measured(
        self, thresholds: npt.ArrayLike, counts: npt.ArrayLike, jackknife: Jackknife
    ) -> WorstCase:
        pairs, split = self.crossed.pairs, bool(self.crossed.folds)
        rates = crossed_rates(self.crossed, thresholds, counts, jackknife.of(pairs))
        return WorstCase.around(rates, jackknife, pairs, pairs.per_pair, split=split)

    def sample(self) -> tuple[CrossFitted, ScoreSample | None]:
        return self.crossed, None


def _needed(rate: float, count: int, fitted: Extrapolation, roc: Roc, level: float) -> Needed:
    """The threshold that keeps the closest of so many voices at a rate."""
    targets = roc.scores[roc.target > 0]

    def misses(threshold: float) -> float:
        return float(roc.target[roc.scores <= threshold].sum() / roc.targets)

    def keeping(level: float | None = None) -> float:
        exact = fitted.threshold_for(rate, count, level=level)
        return decimal_from(exact, float(targets[targets > exact].min(initial=np.inf)))

    threshold = keeping()
    safe, high = threshold, float("nan")
    if fitted.replicates:
        safe = keeping(level)
        if np.isfinite(threshold):
            high = float(fitted.predict_interval([count], [threshold], level=level).high[0, 0])
    return Needed(count, rate, threshold, misses(threshold), high, safe, misses(safe))


def spaced_counts(last: int, size: int) -> IntArray:
    """Whole numbers from 1 to ``last`` in even ratios, both included."""
    return np.unique(np.rint(np.geomspace(1, last, size)).astype(np.int64))
