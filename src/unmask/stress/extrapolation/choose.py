"""Fit a model by name, or the mean of those whose held-out errors are lowest; compare models.

The comparison is that of Table 1: train on small N, judge on large N, beside doing nothing at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, Tabular, as_numbers
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice, Parameter
from unmask.run import advance, progress, run_on
from unmask.stress.extrapolation import base
from unmask.stress.extrapolation.base import MeasuredFloor, Model, Stack, StartValues
from unmask.stress.extrapolation.fitted import Extrapolation
from unmask.stress.extrapolation.models import MODELS, checked_name, fit_model, fits_rates
from unmask.stress.impostors.pair_scores import PairScores, Proxy, as_counts, speaker_pairs
from unmask.stress.impostors.rates import Rates, crossed_rates, worst_case_false_alarms
from unmask.stress.impostors.uncertainty import GROUPS, CrossFitted, Jackknife

CANDIDATES: tuple[str, ...] = ("ls-target+", "ls+")
"""Those that ``auto`` averages, as far as they fit about equally well."""

FAMILY = "ls-family+"
"""The model whose families of voices the data cannot exclude: it raises the upper end."""

CARRY_FORWARD = "carry-forward"
HELD_OUT = 2 / 3
HARD = (0.02, 0.98)
_JUDGED_COUNTS = 18
_JUDGED_THRESHOLDS = 201
_ABOUT_AS_WELL = 2.0
_NEVER_WORSE = 0.003
_LEAST_HELD_OUT = 6

FAMILIES = 0.6
"""Families of voices are taken as there where they bring the squared misfit below this share."""

_FAMILY_NOTICE = Notice(
    "families",
    "",
    "some speakers have far closer neighbours than the rest explain: families of voices are"
    " assumed",
)

Truth = tuple[Rates, FloatArray]
"""Exact rates on which models are judged, and those at the largest training count."""


def extrapolate(
    scores: PairScores | npt.ArrayLike,
    *,
    model: str = "auto",
    max_count: int | None = None,
    proxy: Proxy = None,
    split: bool = True,
    groups: int = GROUPS,
    seed: int = 0,
) -> Extrapolation:
    """Fit a model of P_FA^N(τ) that reaches beyond the impostors at hand (Sholokhov 2020, sec. 3).

    ``"auto"`` is the mean of the models that fit about equally well. The upper third of the counts
    is held out and every candidate fitted to the rest; those whose error on hard thresholds is at
    most twice the least one (or 0.3 points) are fitted again to all counts. A named model keeps
    those as rivals, whose spread enters its interval.

    Parameters
    ----------
    scores
        Targets × impostors × scores of a pair, or :class:`~unmask.stress.PairScores`.
    model
        ``"auto"``, or one of :data:`~unmask.stress.MODELS`.
    max_count
        The largest N to fit to, all by default.
    proxy
        What the adversary chooses by, as in :func:`worst_case_false_alarms`.
    split
        Keep the scores that choose apart from those that attack.
    groups
        Groups of speakers without which models are fitted again for intervals; 0 for none.
    seed
        Where random folds and groups follow from.

    Returns
    -------
    Extrapolation
        ``predict(counts, thresholds)``, ``predict_interval``, and ``threshold_for`` a rate.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 50, 1)) + rng.normal(size=(40, 50, 30))
    >>> fitted = um.extrapolate(scores, groups=0)
    >>> print(fitted.name, fitted.predict([50, 1000], [2.0])[:, 0].round(2))
    mean of ls-target+, ls+ [0.54 0.83]
    """
    crossed = CrossFitted.of(speaker_pairs(scores).checked(), proxy, split=split, seed=seed)
    return ModelFitter(crossed, Jackknife(groups, seed=seed), max_count=max_count).fitted(model)


class ModelFitter:
    """What every model is fitted to; where a proxy chose, those that read scores are refused."""

    def __init__(
        self, crossed: CrossFitted, jackknife: Jackknife, *, max_count: int | None = None
    ) -> None:
        self.crossed, self.pairs, self.seed = crossed, crossed.pairs, jackknife.seed
        self.largest = base.checked_max_count(max_count or self.pairs.max_count, self.pairs)
        self.groups, self.moments = jackknife.of(self.pairs), StartValues.of(self.pairs)
        with run_on(), progress(None):
            self.surface = base.training_surface(crossed, self.largest, self.groups)

    def fitted(self, model: str) -> Extrapolation:
        """Fit a model, or the mean of those that fit about equally well."""
        named = () if model == "auto" else (checked_name(model),)
        proxied = self.crossed.whole is not self.pairs
        if proxied and not all(fits_rates(name) for name in named):
            raise InputError(f"proxy: expected a model fitted to rates, found {model}")
        tried = tuple(dict.fromkeys((*named, *CANDIDATES)))
        total, done = (self.groups.number if self.groups else 0) + 2 * len(tried) + 1, count(1)

        def fit(name: str, surface: Rates, start: Model | None = None) -> Model:
            model = fit_model(name, surface, self.moments, start=start)
            advance(min(next(done), total), total)
            return model

        first, errors, credible, notices = _tried(self.surface, tried, self.largest, fit)
        fits = {
            name: fit(name, self.surface, first.get(name))
            for name in dict.fromkeys((*named, *credible))
        }
        guard = fits.get(FAMILY) or fit(FAMILY, self.surface, fits.get(CANDIDATES[0]))
        least = min(misfit(one, self.surface) for one in fits.values())
        if misfit(guard, self.surface) < FAMILIES * least:
            notices = (*notices, _FAMILY_NOTICE)
            fits = fits if named else {FAMILY: guard}
        mean = tuple(fits[name] for name in (named or (*CANDIDATES, FAMILY)) if name in fits)
        mean = mean or tuple(fits.values())
        chosen = mean[0] if len(mean) == 1 else Stack(mean)
        rivals = tuple(one for one in fits.values() if one not in mean)
        without = []
        for group, part in enumerate(self.surface.deleted()):
            without.append(self._without(group, part, chosen))
            advance(min(next(done), total), total)
        advance(total, total)
        pairs = self.pairs
        seen = float(pairs.scores.min()), float(pairs.scores.max())
        cases = len(pairs.target_names) * pairs.max_count / self.largest
        return Extrapolation(
            chosen,
            MeasuredFloor.of(self.surface, cases, seen[1]),
            self.largest,
            seen,
            self.seed,
            notices,
            tuple(without),
            rivals,
            guard,
            errors,
        )

    def _without(self, group: int, surface: Rates, model: Model) -> Model:
        """The same model without a group of speakers; its moments only where it rests on them."""
        if isinstance(model, Stack):
            return Stack(tuple(self._without(group, surface, one) for one in model.members))
        moments, pairs, groups = self.moments, self.pairs, self.groups
        if groups is not None and not fits_rates(model.name):
            gone = groups.target[pairs.target], groups.impostor[pairs.impostor]
            moments = StartValues.of(pairs.select((gone[0] != group) & (gone[1] != group)))
        return fit_model(model.name, surface, moments, start=model, brief=True)


def misfit(model: Model, surface: Rates) -> float:
    """Weighted squared error on the training cells."""
    error = model.rates(surface.counts, surface.thresholds) - surface.values
    return float(base.weights_of(surface.counts) @ np.mean(error**2, axis=1))


def _tried(
    surface: Rates, names: tuple[str, ...], largest: int, fit: Callable[[str, Rates], Model]
) -> tuple[dict[str, Model], dict[str, float], tuple[str, ...], tuple[Notice, ...]]:
    """Fits to the lower counts, held-out errors, those about as good as the best, remarks."""
    if largest < _LEAST_HELD_OUT:
        sentence = f"{largest} impostors are too few to hold any out: {names[0]} was taken as it is"
        return {}, {}, names[:1], (Notice("none-held-out", "", sentence),)
    trained = surface.up_to(max(int(HELD_OUT * largest), 3))
    later = surface.counts > trained.counts.max()
    beyond = Rates(surface.counts[later], surface.thresholds, surface.values[later])
    fits = {name: fit(name, trained) for name in names}
    errors = {
        name: ModelError.of(model, (beyond, trained.values[-1])).mae_hard
        for name, model in fits.items()
    }
    ranked = sorted(names, key=lambda name: errors[name])
    limit = max(_ABOUT_AS_WELL * errors[ranked[0]], _NEVER_WORSE)
    return fits, errors, tuple(name for name in ranked if errors[name] <= limit), ()


@dataclass(frozen=True)
class ModelError:
    """Mean absolute errors of one model, as fractions; ``by_count`` has (all, hard) for each N."""

    model: str
    mae: float
    mae_hard: float
    seconds: float
    by_count: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, model: Model | None, truth: Truth, seconds: float = 0.0) -> ModelError:
        """Errors of a model, or of the reference carried forward; hard: reference in 2 … 98 %."""
        exact, reference = truth
        rates = reference if model is None else model.rates(exact.counts, exact.thresholds)
        error = np.abs(rates - exact.values)
        some = (reference > HARD[0]) & (reference < HARD[1])
        hard = error[:, some] if some.any() else error
        by_count = tuple(zip(error.mean(axis=1).tolist(), hard.mean(axis=1).tolist(), strict=True))
        name = CARRY_FORWARD if model is None else model.name
        return cls(name, float(error.mean()), float(hard.mean()), seconds, by_count)


@dataclass(frozen=True, repr=False)
class ModelComparison(Tabular):
    """Errors of every model on the same cells; the first is the carry-forward baseline."""

    population: str
    train_count: int
    counts: tuple[int, ...]
    errors: tuple[ModelError, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The table: both errors and the seconds of every model."""
        names, where = ("model", "mae", "mae_hard", "seconds"), {"population": self.population}
        return [where | {name: getattr(error, name) for name in names} for error in self.errors]

    @property
    def parts(self) -> dict[str, ModelError]:
        """The errors of each model."""
        return {error.model: error for error in self.errors}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those of all models."""
        return tuple(estimate for error in self.errors for estimate in self.estimates_of(error))

    @property
    def best(self) -> str:
        """The model with the lowest error on hard thresholds."""
        return min(self.errors[1:], key=lambda error: error.mae_hard).model

    def estimates_of(self, error: ModelError) -> tuple[Estimate, ...]:
        """The two errors and the seconds of one model."""
        params: dict[str, Parameter] = {"train_count": self.train_count, "model": error.model}
        units = {"mae": "%", "mae_hard": "%", "seconds": "s"}
        each = units.items()
        return tuple(Estimate(n, getattr(error, n), unit, params=params) for n, unit in each)


def compare_models(
    scores: PairScores | npt.ArrayLike,
    *,
    models: Sequence[str] = MODELS,
    max_count: int | None = None,
    truth: Truth | None = None,
    split: bool = True,
    population: str = "population",
) -> ModelComparison:
    """Fit every model to N ≤ ``max_count`` and judge it beyond.

    By default the upper third of N is held out (N ≤ 660 trains, 660 … 999 judges, as in Table 1 of
    Sholokhov 2020); with ``truth`` (see :func:`truth_of`) models are trained on all that the scores
    hold and judged where a larger population is known. ``split`` is that of
    :func:`worst_case`.
    """
    pairs = speaker_pairs(scores).checked()
    crossed = CrossFitted.of(pairs, split=split)
    if truth is None:
        largest = max_count or max(int(HELD_OUT * pairs.max_count), 3)
        surface, truth = held_out(crossed, largest)
    else:
        largest = max_count or pairs.max_count
        surface = base.training_surface(crossed, largest)
    moments = StartValues.of(pairs)
    rows = [ModelError.of(None, truth)]
    for done, name in enumerate(models, start=1):
        begin = time.perf_counter()
        model = fit_model(checked_name(name), surface, moments)
        rows.append(ModelError.of(model, truth, time.perf_counter() - begin))
        advance(done, len(models))
    return ModelComparison(population, largest, tuple(truth[0].counts.tolist()), tuple(rows))


def held_out(crossed: CrossFitted, count: int) -> tuple[Rates, Truth]:
    """Training cells with N ≤ ``count`` and cells beyond to judge on, from one pass."""
    pairs = crossed.whole
    train = base.training_counts(base.checked_max_count(count, pairs))
    beyond = np.linspace(count, pairs.max_count, _JUDGED_COUNTS)
    later = np.unique(np.rint(beyond).astype(np.int64))
    inner = base.training_thresholds(pairs, count)
    outer = np.linspace(pairs.scores.min(), pairs.scores.max(), _JUDGED_THRESHOLDS)
    values = crossed_rates(
        crossed, np.concatenate([inner, outer]), np.concatenate([train, later]), None
    ).values
    surface = Rates(train, inner, values[: train.size, : inner.size])
    judged = values[train.size :, inner.size :]
    return surface, (Rates(later, outer, judged), judged[0])


def truth_of(
    pairs: PairScores, thresholds: npt.ArrayLike, counts: npt.ArrayLike, values: npt.ArrayLike
) -> Truth:
    """Known rates (counts, thresholds) of a population of which ``pairs`` is a part."""
    levels = as_numbers(thresholds, "thresholds")
    reference = worst_case_false_alarms(pairs, levels, counts=[pairs.max_count])[0]
    return Rates(as_counts(counts), levels, as_numbers(values, "rates")), reference
