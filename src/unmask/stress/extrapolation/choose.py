"""Fit a model by name, or the mean of those whose held-out errors are lowest; compare models.

The comparison is that of Table 1: train on small N, judge on large N, beside doing nothing at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.errors import InputError
from unmask.estimate import Estimate, Parameter
from unmask.run import advance, place, reporting
from unmask.stress.extrapolation.base import (
    Measured,
    Model,
    Surface,
    checked_max_count,
    hard_thresholds,
    training_counts,
    training_thresholds,
)
from unmask.stress.extrapolation.fitted import Extrapolation
from unmask.stress.extrapolation.models import (
    CANDIDATES,
    FAMILY,
    MODELS,
    Stack,
    checked_name,
    fit_model,
    fits_rates,
    refit,
)
from unmask.stress.extrapolation.moments import Moments
from unmask.stress.impostors.pair_scores import PairScores, as_counts, as_pairs
from unmask.stress.impostors.rates import (
    Proxy,
    crossed_pairs,
    crossed_rates,
    worst_case_false_alarms,
)
from unmask.stress.impostors.uncertainty import GROUPS, Crossed, Groups, check

CARRY_FORWARD = "carry-forward"
HELD_OUT = 2 / 3
_JUDGED_COUNTS = 18
_JUDGED_THRESHOLDS = 201
_ABOUT_AS_WELL = 2.0
_NEVER_WORSE = 0.003
_LEAST_HELD_OUT = 6

FAMILIES = 0.6
"""Families of voices are taken as there where they bring the squared misfit below this share."""

_FAMILY_NOTE = (
    "some speakers have far closer neighbours than the rest explain: families of voices are assumed"
)

Training = Literal["exact", "paper"]


def extrapolate(
    scores: PairScores | npt.ArrayLike,
    *,
    model: str = "auto",
    max_count: int | None = None,
    proxy: Proxy = None,
    split: bool = True,
    groups: int = GROUPS,
    seed: int = 0,
    training: Training = "exact",
) -> Extrapolation:
    """Fit a model of P_FA^N(τ) that reaches beyond the impostors at hand.

    ``scores`` is targets × impostors × scores, or :class:`PairScores`. ``model`` names one of
    :data:`MODELS` (Sholokhov 2020, section 3, and others) or is ``auto``, the mean of the models
    that fit about equally well: the upper third of the counts is held out, every candidate is
    fitted to the rest, and those whose error on hard thresholds is at most twice the least one (or
    0.3 points) are fitted again to all counts up to ``max_count``. A named model keeps those as
    rivals, whose spread enters its interval. ``groups`` of speakers leave in turn and every model
    is fitted again without them (0: no intervals). ``split``, ``proxy`` and ``seed`` are those of
    :func:`~unmask.stress.worst_case`. The default ``training`` is exact and deterministic;
    ``"paper"`` is the stochastic recipe of Sholokhov 2020, section 3.3 (extra ``torch``).
    """
    pairs = as_pairs(scores)
    ready = Ready.of(
        crossed_pairs(pairs, proxy, split=split, seed=seed),
        pairs,
        max_count=max_count,
        proxied=proxy is not None,
        groups=groups if training == "exact" else 0,
        seed=seed,
    )
    if training == "paper":
        return ready.trained(model)
    if training != "exact":
        raise InputError(f"training: expected exact or paper, found {training}")
    return ready.fitted(model)


@dataclass(frozen=True, eq=False)
class Ready:
    """What every model is fitted to: the training surface, and the scores behind it.

    ``pairs`` hold the scores as they are. Where they were ``proxied``, models that read locations
    off the scores are refused: the scores then do not tell who is chosen.
    """

    crossed: Crossed
    pairs: PairScores
    surface: Surface
    moments: Moments
    groups: Groups | None
    count: int
    seed: int
    proxied: bool

    @classmethod
    def of(
        cls,
        crossed: Crossed,
        pairs: PairScores,
        *,
        max_count: int | None = None,
        proxied: bool = False,
        groups: int = GROUPS,
        seed: int = 0,
    ) -> Ready:
        """Measure the surface, and without each group of speakers."""
        check(groups=groups, level=0.5)
        count = checked_max_count(max_count or crossed.whole.max_count, crossed.whole)
        dealt = Groups.of(pairs, groups, seed=seed) if groups else None
        with place(), reporting(None):
            surface = Surface.of(crossed, count, groups=dealt)
        return cls(crossed, pairs, surface, Moments.of(pairs), dealt, count, seed, proxied)

    @property
    def seen(self) -> tuple[float, float]:
        """Range of the scores."""
        return float(self.pairs.scores.min()), float(self.pairs.scores.max())

    @property
    def measured(self) -> Measured:
        """The rates with all impostors."""
        whole = self.crossed.whole
        cases = len(whole.target_names) * whole.max_count / self.count
        return Measured.of(self.surface, cases, self.seen[1])

    def fitted(self, model: str) -> Extrapolation:
        """Fit a model, or the mean of those that fit about equally well."""
        named = () if model == "auto" else (checked_name(model),)
        if self.proxied and not all(fits_rates(name) for name in named):
            raise InputError(f"proxy: expected a model fitted to rates, found {model}")
        tried = tuple(dict.fromkeys((*named, *CANDIDATES)))
        groups = self.groups.number if self.groups else 0
        steps = _Steps(groups + 2 * len(tried) + 1)
        first, errors, credible, notes = _tried(
            self.surface, self.moments, tried, self.count, steps
        )
        fits = {
            name: _fit(name, self.surface, self.moments, steps, first.get(name))
            for name in dict.fromkeys((*named, *credible))
        }
        guard = fits.get(FAMILY) or _fit(
            FAMILY, self.surface, self.moments, steps, fits.get(CANDIDATES[0])
        )
        least = min(misfit(one, self.surface) for one in fits.values())
        if misfit(guard, self.surface) < FAMILIES * least:
            notes = (*notes, _FAMILY_NOTE)
            fits = fits if named else {FAMILY: guard}
        mean = tuple(fits[name] for name in (named or (*CANDIDATES, FAMILY)) if name in fits)
        mean = mean or tuple(fits.values())
        chosen = mean[0] if len(mean) == 1 else Stack(mean)
        rivals = tuple(one for one in fits.values() if one not in mean)
        without = []
        for group, part in enumerate(self.surface.deleted()):
            moments = partial(self._moments_without, group)
            without.append(refit(chosen, part, moments, self.moments))
            steps.done()
        steps.finish()
        return Extrapolation(
            chosen,
            tuple(without),
            rivals,
            guard,
            errors,
            self.count,
            self.seen,
            self.seed,
            notes,
            self.measured,
        )

    def trained(self, model: str) -> Extrapolation:
        """Train a model by the recipe of the paper."""
        from unmask.stress.extrapolation.paper import fit_paper

        trained, note = fit_paper(
            self.crossed,
            self.surface,
            self.moments,
            model=model,
            seed=self.seed,
        )
        return Extrapolation(
            trained, (), (), None, {}, self.count, self.seen, self.seed, (note,), self.measured
        )

    def _moments_without(self, group: int) -> Moments:
        assert self.groups is not None
        pairs, groups = self.pairs, self.groups
        keep = (groups.target[pairs.target] != group) & (groups.impostor[pairs.impostor] != group)
        return Moments.of(pairs.select(keep))


def misfit(model: Model, surface: Surface) -> float:
    """Weighted squared error on the training cells."""
    error = model.rates(surface.counts, surface.thresholds) - surface.values
    return float(surface.weights @ np.mean(error**2, axis=1))


class _Steps:
    """Counts finished fits for whoever watches."""

    def __init__(self, total: int) -> None:
        self._total, self._finished = total, 0

    def done(self) -> None:
        self._finished = min(self._finished + 1, self._total)
        advance(self._finished, self._total)

    def finish(self) -> None:
        advance(self._total, self._total)


def _fit(
    name: str, surface: Surface, moments: Moments, steps: _Steps, start: Model | None = None
) -> Model:
    model = fit_model(name, surface, moments, start=start)
    steps.done()
    return model


def _tried(
    surface: Surface, moments: Moments, names: tuple[str, ...], count: int, steps: _Steps
) -> tuple[dict[str, Model], dict[str, float], tuple[str, ...], tuple[str, ...]]:
    """Fits to the lower counts, their held-out errors, the models that did about as well as the
    best (best first), and remarks.
    """
    if count < _LEAST_HELD_OUT:
        note = f"{count} impostors are too few to hold any out: {names[0]} was taken as it is"
        return {}, {}, names[:1], (note,)
    trained = surface.up_to(max(int(HELD_OUT * count), 3))
    later = surface.counts > trained.counts.max()
    judged = Judged(
        surface.counts[later], surface.thresholds, surface.values[later], trained.values[-1]
    )
    fits = {name: _fit(name, trained, moments, steps) for name in names}
    errors = {name: judge(model, judged).mae_hard for name, model in fits.items()}
    ranked = sorted(names, key=lambda name: errors[name])
    limit = max(_ABOUT_AS_WELL * errors[ranked[0]], _NEVER_WORSE)
    return fits, errors, tuple(name for name in ranked if errors[name] <= limit), ()


@dataclass(frozen=True, eq=False)
class Judged:
    """Cells on which models are judged: exact rates (counts, thresholds), and the rates at the
    largest training count, which carry-forward repeats and which tell the hard thresholds.
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    reference: FloatArray

    @property
    def hard(self) -> BoolArray:
        """Thresholds whose reference rate lies between 2 % and 98 %."""
        return hard_thresholds(self.reference)


@dataclass(frozen=True)
class ModelError:
    """Mean absolute errors of one model, as fractions; ``by_count`` has (all, hard) for each N."""

    model: str
    mae: float
    mae_hard: float
    seconds: float
    by_count: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ModelComparison:
    """Errors of every model on the same cells; the first row is the carry-forward baseline."""

    population: str
    train_count: int
    counts: tuple[int, ...]
    rows: tuple[ModelError, ...]

    def __getitem__(self, model: str) -> ModelError:
        for row in self.rows:
            if row.model == model:
                return row
        raise KeyError(model)

    @property
    def best(self) -> str:
        """The model with the lowest error on hard thresholds."""
        return min(self.rows[1:], key=lambda row: row.mae_hard).model

    def estimates(self, row: ModelError) -> tuple[Estimate, ...]:
        """The two errors and the seconds of one row."""
        params: dict[str, Parameter] = {"train_count": self.train_count, "model": row.model}
        return (
            Estimate("mae", row.mae, "%", params=params),
            Estimate("mae_hard", row.mae_hard, "%", params=params),
            Estimate("seconds", row.seconds, "s", params=params),
        )

    def __str__(self) -> str:
        head = (
            f"{self.population}: trained on N ≤ {self.train_count:,}, judged on"
            f" N = {min(self.counts):,} … {max(self.counts):,}"
        )
        lines = [head, f"{'model':<15}{'MAE %':>8}{'hard %':>8}{'seconds':>9}"]
        lines += [
            f"{row.model:<15}{100 * row.mae:8.3f}{100 * row.mae_hard:8.3f}{row.seconds:9.1f}"
            for row in self.rows
        ]
        return "\n".join(lines)


def compare_models(
    scores: PairScores | npt.ArrayLike,
    *,
    models: Sequence[str] = MODELS,
    max_count: int | None = None,
    truth: Judged | None = None,
    split: bool = True,
    population: str = "population",
) -> ModelComparison:
    """Fit every model to N ≤ ``max_count`` and judge it beyond.

    By default the upper third of N is held out (N ≤ 660 trains, 660 … 999 judges, as in Table 1 of
    Sholokhov 2020); with ``truth`` (see :func:`truth_of`) models are trained on all that the scores
    hold and judged where a larger population is known. ``split`` is that of
    :func:`worst_case`.
    """
    pairs = as_pairs(scores)
    crossed = Crossed.of(pairs, split=split)
    if truth is None:
        count = max_count or max(int(HELD_OUT * pairs.max_count), 3)
        surface, judged = held_out(crossed, count)
    else:
        count = max_count or pairs.max_count
        surface, judged = Surface.of(crossed, count), truth
    moments = Moments.of(pairs)
    carried = np.broadcast_to(judged.reference, judged.values.shape)
    rows = [model_error(CARRY_FORWARD, carried, judged, 0.0)]
    for done, name in enumerate(models, start=1):
        begin = time.perf_counter()
        model = fit_model(checked_name(name), surface, moments)
        seconds = time.perf_counter() - begin
        rows.append(judge(model, judged, seconds))
        advance(done, len(models))
    return ModelComparison(population, count, tuple(int(n) for n in judged.counts), tuple(rows))


def held_out(crossed: Crossed, count: int) -> tuple[Surface, Judged]:
    """Training cells with N ≤ ``count`` and cells beyond to judge on, from one pass."""
    pairs = crossed.whole
    train = training_counts(checked_max_count(count, pairs))
    beyond = np.linspace(count, pairs.max_count, _JUDGED_COUNTS)
    later = np.unique(np.rint(beyond).astype(np.int64))
    inner = training_thresholds(pairs, count)
    outer = even_thresholds(pairs)
    values = crossed_rates(
        crossed, np.concatenate([inner, outer]), np.concatenate([train, later]), None
    ).values
    surface = Surface(train, inner, values[: train.size, : inner.size])
    judged = values[train.size :, inner.size :]
    return surface, Judged(later, outer, judged, judged[0])


def truth_of(
    pairs: PairScores, thresholds: npt.ArrayLike, counts: npt.ArrayLike, values: npt.ArrayLike
) -> Judged:
    """Known rates (counts, thresholds) of a population of which ``pairs`` is a part."""
    levels = np.asarray(thresholds, dtype=np.float64)
    reference = worst_case_false_alarms(pairs, levels, counts=[pairs.max_count])[0]
    return Judged(as_counts(counts), levels, np.asarray(values, dtype=np.float64), reference)


def even_thresholds(pairs: PairScores) -> FloatArray:
    """Even steps over the range of the scores."""
    return np.linspace(pairs.scores.min(), pairs.scores.max(), _JUDGED_THRESHOLDS)


def judge(model: Model, judged: Judged, seconds: float = 0.0) -> ModelError:
    """Errors of a fitted model."""
    rates = model.rates(judged.counts, judged.thresholds)
    return model_error(model.name, rates, judged, seconds)


def model_error(name: str, rates: FloatArray, judged: Judged, seconds: float) -> ModelError:
    """Mean absolute errors over all and over hard thresholds."""
    error = np.abs(rates - judged.values)
    hard = error[:, judged.hard] if judged.hard.any() else error
    by_count = tuple(zip(error.mean(axis=1).tolist(), hard.mean(axis=1).tolist(), strict=True))
    return ModelError(name, float(error.mean()), float(hard.mean()), seconds, by_count)
