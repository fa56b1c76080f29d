"""One question asked of a system: what if an adversary picks the closest of this many voices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Part, Tabular, estimate_row
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.scoring import Backend, backend_named
from unmask.stress.extrapolation.choose import ModelFitter
from unmask.stress.extrapolation.fitted import Extrapolation, Prediction
from unmask.stress.extrapolation.models import checked_name
from unmask.stress.impostors.pair_scores import Data, Proxy, as_counts, speaker_pairs
from unmask.stress.impostors.rates import ScoreSample, WorstCase, crossed_rates
from unmask.stress.impostors.uncertainty import GROUPS, LEVEL, CrossFitted, Jackknife
from unmask.stress.impostors.voices import EmbeddedVoices
from unmask.trials import Embeddings, Scores

LIMITS = (0.01, 0.05, 0.1, 0.5)
"""Rates for which the needed thresholds are told unless others are asked for."""

COSTS = ((10.0, 1.0), (1.0, 1.0), (1.0, 10.0))
"""(C_miss, C_fa) of τ_1, τ_2, τ_3 at a prior of one half: misses weigh more, alike, less."""

PER_PAIR = 20
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
    """The threshold that keeps P_FA^N at a rate, and what it costs in misses.

    At ``threshold`` the prediction is the rate and the upper end of its interval ``high``; at
    ``safe_threshold`` it is the upper end that keeps to the rate. Without intervals ``high`` is NaN
    and the two thresholds are the same.
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

    :func:`worst_case` makes it. ``empirical`` and ``predicted`` are over ``operating`` thresholds;
    ``surface`` is predicted over ``predicted.counts`` × ``levels``, the range in which anything
    happens; ``needed`` are the thresholds asked for, ``limits`` those that keep the worst case at a
    rate for every count. ``sample`` says so where the model was fitted to some of the scores;
    ``empirical`` never is. ``compared`` are the predictions of other models that were asked for,
    each with its interval.
    """

    operating: tuple[Operating, ...]
    population: int
    empirical: WorstCase
    predicted: Prediction
    levels: FloatArray
    surface: FloatArray
    needed: tuple[Needed, ...]
    limits: Mapping[float, FloatArray]
    extrapolation: Extrapolation
    skipped: int
    sample: ScoreSample | None = None
    compared: Mapping[str, Prediction] = field(default_factory=dict)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to be careful about."""
        left = Notice("pairs-left-out", "", f"{self.skipped} pairs with one score were left out")
        return (*self.empirical.notices, *self.predicted.notices, *([left] if self.skipped else ()))

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
    """Named thresholds of a detection statistic: those given, those of least detection cost at the
    priors ``p_target``, or τ_1, τ_2, τ_3 of Sholokhov 2020, section 4.

    A score is accepted strictly above its threshold. The statistic ``roc`` must have been counted
    at :func:`counted_at` of ``thresholds``.
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


@overload
def worst_case(
    data: Data, thresholds: npt.ArrayLike, *, counts: npt.ArrayLike, **options: Any
) -> WorstCase: ...


@overload
def worst_case(
    data: Data, thresholds: Sequence[float] = (), *, counts: None = None, **options: Any
) -> WorstCaseStudy: ...


def worst_case(  # type: ignore[misc]
    data: Data,
    thresholds: Any = (),
    *,
    counts: npt.ArrayLike | None = None,
    population: int | None = None,
    model: str = "auto",
    compare: Sequence[str] = (),
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    target: npt.ArrayLike | None = None,
    system: str | None = None,
    both_ways: bool = True,
    min_impostors: int | None = None,
    skip_single: bool = False,
    backend: Backend | str = "cosine",
    per_pair: int = PER_PAIR,
    proxy: Scores | Embeddings | Proxy = None,
    proxy_backend: Backend | str = "cosine",
    split: bool = True,
    groups: int = GROUPS,
    level: float = LEVEL,
    seed: int = 0,
) -> WorstCase | WorstCaseStudy:
    """False alarms P_FA^N(τ) when an adversary picks the closest of N voices (Sholokhov 2020).

    With ``counts``, the numbers N, the rates are measured at these ``thresholds`` and come with
    intervals (:class:`WorstCase`). Without them they are measured up to the impostors at hand and
    extrapolated to ``population`` (100 times as many unless given) by ``model``, beside other
    models to ``compare`` with (:class:`WorstCaseStudy`); ``thresholds`` and those of least cost at
    the priors ``p_target`` are then named, with the misses they cost, and ``target_rates`` asks for
    the thresholds that keep the worst case under these rates.

    ``data`` are :class:`Scores` with speakers, :class:`Embeddings`, :class:`PairScores` or an array
    targets × impostors × scores. Scores and pairs use ``system``, ``both_ways``, ``skip_single``
    and ``min_impostors`` of :func:`~unmask.stress.speaker_pairs`; pairs and arrays need the
    same-speaker scores ``target`` for a study. Embeddings are scored by ``backend``, and no score
    is ever held: thresholds, misses and measured rates rest on every pair of utterances, on the
    current place; models are fitted to at most ``per_pair`` scores of a pair, and to as many
    targets as make 16 million scores, which ``sample`` of the study tells.

    The adversary chooses by the scores themselves, or by ``proxy``: scores of another system for
    the same pairs, or embeddings of the same speakers by another encoder, scored by
    ``proxy_backend``. With ``split`` the scores that choose are not counted as those that attack
    (:mod:`.impostors.uncertainty`); a proxy's scores need no split. ``groups`` of speakers leave in
    turn for intervals of confidence ``level``, 0 gives none. Random folds follow from ``seed``.
    """
    jackknife = Jackknife(groups, level, seed)
    source: _Pairs | EmbeddedVoices
    if isinstance(data, Embeddings):
        if per_pair < 2:
            raise InputError(f"per_pair: expected at least 2, found {per_pair}")
        if not (proxy is None or isinstance(proxy, Embeddings)):
            raise InputError("proxy: expected embeddings of the same speakers")
        scorers = backend_named(backend), backend_named(proxy_backend)
        source = EmbeddedVoices(data, scorers[0], proxy, scorers[1], split, skip_single, per_pair)
    else:
        if isinstance(data, Scores):
            target = data.targets(system)
        kept = speaker_pairs(
            data,
            system=system,
            both_ways=both_ways,
            skip_single=skip_single,
            min_impostors=min_impostors,
        ).checked()
        if isinstance(proxy, (Scores, Embeddings)):
            proxy = speaker_pairs(proxy, both_ways=both_ways, backend=proxy_backend, per_pair=1)
        source = _Pairs(CrossFitted.of(kept, proxy, split=split, seed=seed), target)
    if counts is not None:
        if population is not None or compare or p_target or target_rates:
            raise InputError(
                "worst case: expected either counts to measure at or a study (population, compare,"
                " p_target, target_rates), found both"
            )
        return source.measured(thresholds, counts, jackknife)
    for name in (model, *compare):
        if name != "auto":
            checked_name(name)
    if population is not None:
        as_counts([population])
    impostors = source.impostors
    reached = population or 100 * impostors
    roc = source.roc(counted_at(thresholds))
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    levels = np.array([point.threshold for point in points])
    exact = source.measured(levels, spaced_counts(impostors, _EMPIRICAL), jackknife)
    crossed, sample = source.sample()
    ready = ModelFitter(crossed, jackknife)
    fitted = ready.fitted(model)
    reach = np.union1d(spaced_counts(max(reached, 2), _PREDICTED), impostors)
    top = max(fitted.thresholds[1], float(levels.max()))
    grid = np.linspace(float(np.quantile(crossed.pairs.scores, 0.02)), top, _MAP)
    return WorstCaseStudy(
        points,
        reached,
        exact,
        fitted.predict_interval(reach, levels, level=level).above(exact),
        grid,
        fitted.predict(reach, grid),
        tuple(_needed(rate, reached, fitted, roc, level) for rate in target_rates),
        {rate: fitted.thresholds_for(rate, reach) for rate in target_rates or LIMITS},
        fitted,
        crossed.pairs.skipped,
        sample,
        {
            name: ready.fitted(name).predict_interval(reach, levels, level=level).above(exact)
            for name in compare
        },
    )


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

    def misses(threshold: float) -> float:
        return float(roc.target[roc.scores <= threshold].sum() / roc.targets)

    threshold = fitted.threshold_for(rate, count)
    safe, high = threshold, float("nan")
    if fitted.replicates:
        safe = fitted.threshold_for(rate, count, level=level)
        if np.isfinite(threshold):
            high = float(fitted.predict_interval([count], [threshold], level=level).high[0, 0])
    return Needed(count, rate, threshold, misses(threshold), high, safe, misses(safe))


def spaced_counts(last: int, size: int) -> IntArray:
    """Whole numbers from 1 to ``last`` in even ratios, both included."""
    return np.unique(np.rint(np.geomspace(1, last, size)).astype(np.int64))
