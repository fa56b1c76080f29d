"""A fitted extrapolation: predictions with intervals, the spread of the models, saving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from unmask.base import FloatArray, IntArray, jackknife_error, quantile_t
from unmask.errors import InputError
from unmask.estimate import Notice, Parameter
from unmask.run import store, write_whole
from unmask.stress.extrapolation.base import MeasuredFloor, Model, Stack
from unmask.stress.impostors.pair_scores import as_counts
from unmask.stress.impostors.rates import WorstCase, as_thresholds
from unmask.stress.impostors.uncertainty import LEVEL, Band, Jackknife

FAR = 10
"""A warning is due where N exceeds the impostors at hand so many times."""

FALLING = 0.05
"""Standard error of the log-odds downwards, for each unit of log(N/M) beyond the M at hand."""

RISING = 0.35
"""The same upwards, for √log(N/M): families of voices that nobody saw make the rate higher, never
lower, and of those that M voices just miss most are met at a few times M already."""

_EDGE = 1e-4
_ENDS = ("values", "low", "high")
_STEPS = 201


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Band):
    """Predicted P_FA^N(τ) and the range over models that fit about as well. The interval joins on
    the log-odds a jackknife over groups of speakers, how far these models part, and the reach
    log(N/M) beyond the M impostors at hand; its upper end allows for families of voices that these
    cannot exclude.
    """

    metric = "extrapolate"
    method = f"{Band.method}, models and reach"
    model: str
    spread_low: FloatArray
    spread_high: FloatArray
    rivals: Mapping[str, FloatArray]
    notices: tuple[Notice, ...]

    def above(self, exact: WorstCase) -> Prediction:
        """The same, no lower for more voices than measured with all impostors at hand."""
        more = (self.counts >= exact.counts[-1])[:, None]
        each = {name: (getattr(self, name), getattr(exact, name)[-1]) for name in _ENDS}
        raised = {name: np.where(more, np.fmax(*pair), pair[0]) for name, pair in each.items()}
        return replace(self, **raised)

    def about(self, c: int, t: int, cell: dict[str, Parameter]) -> dict[str, Any]:
        """The model, and the range over all models."""
        low, high = float(self.spread_low[c, t]), float(self.spread_high[c, t])
        params = {"model": self.model, **cell, "spread_low": low, "spread_high": high}
        return {"params": params}


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """A model fitted to scores, fitted again without each group of speakers, and its rivals.

    ``errors`` holds the held-out mean absolute error on hard thresholds of each model that was
    tried; ``rivals`` those models that did about as well, fitted to all counts; ``guard`` allows
    for families of voices. ``thresholds`` is the range of scores the model has seen, ``measured``
    what was measured with all impostors, below which nothing of more voices is predicted.
    """

    model: Model
    measured: MeasuredFloor
    max_count: int
    thresholds: tuple[float, float]
    seed: int
    notices: tuple[Notice, ...] = ()
    replicates: tuple[Model, ...] = ()
    rivals: tuple[Model, ...] = ()
    guard: Model | None = None
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model's name; of a mean of models, the names of its members."""
        if isinstance(self.model, Stack):
            return f"mean of {', '.join(model.name for model in self.model.members)}"
        return self.model.name

    def predict(self, counts: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
        """P_FA^N(τ), an array (counts, thresholds); monotone in both and within [0, 1]."""
        return self._values(as_counts(counts), as_thresholds(thresholds))

    def predict_interval(
        self, counts: npt.ArrayLike, thresholds: npt.ArrayLike, *, level: float = LEVEL
    ) -> Prediction:
        """The same with intervals and the spread over models; a warning where N is far beyond."""
        Jackknife(level=level)
        n, levels = as_counts(counts), as_thresholds(thresholds)
        values = self._values(n, levels)
        rivals = {rival.name: _rates(rival, n, levels) for rival in self._single()}
        every = np.stack([values, *rivals.values()])
        spread_low, spread_high = every.min(axis=0), every.max(axis=0)
        low, high = self._bounds(n, levels, values, every, level)
        band = n, levels, values, low, high, level, len(self.replicates), self.seed
        notices = self._notices(n, levels, spread_low, spread_high)
        return Prediction(*band, self.name, spread_low, spread_high, rivals, notices)

    def _values(self, n: IntArray, levels: FloatArray) -> FloatArray:
        return self._floored(n, _rates(self.model, n, levels), self.measured.rates(levels))

    def _floored(self, n: IntArray, rates: FloatArray, floor: FloatArray) -> FloatArray:
        """Rates of all impostors at hand or more, no lower than a floor."""
        return np.where(n[:, None] >= self.max_count, np.maximum(rates, floor), rates)

    def _single(self) -> tuple[Model, ...]:
        """The models whose spread counts: members of a mean, and rivals."""
        members = self.model.members if isinstance(self.model, Stack) else ()
        return (*members, *self.rivals)

    def _bounds(
        self, n: IntArray, levels: FloatArray, values: FloatArray, every: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        if not self.replicates:
            none = np.full(values.shape, np.nan)
            return none, none
        middle = _odds(values)
        quantile = quantile_t(len(self.replicates), level)
        drawn = _odds(np.stack([m.rates(n, levels) for m in self.replicates]))
        beyond = np.log(np.maximum(n / self.max_count, 1.0))[:, None]
        models = _odds(every)
        variance = jackknife_error(drawn) ** 2
        down = variance + (FALLING * beyond) ** 2 + (middle - models.min(axis=0)) ** 2
        up = variance + RISING**2 * beyond + (models.max(axis=0) - middle) ** 2
        low, high = expit(middle - quantile * np.sqrt(down)), expit(middle + quantile * np.sqrt(up))
        if self.guard is not None:
            high = np.maximum(high, _rates(self.guard, n, levels))
        lowest, highest = self.measured.ends(levels, level)
        low, high = self._floored(n, low, lowest), self._floored(n, high, highest)
        # A lower end holds for more voices and lower thresholds too, an upper end the other way.
        low = _monotone(np.minimum(low, values), n, levels)
        return low, -_monotone(-np.maximum(high, values), -n, -levels)

    def threshold_for(self, rate: float, count: int, *, level: float | None = None) -> float:
        """The lowest threshold at which P_FA^N, or its upper end, is at most ``rate``."""
        return float(self.thresholds_for(rate, [count], level=level)[0])

    def thresholds_for(
        self, rate: float, counts: npt.ArrayLike, *, level: float | None = None
    ) -> FloatArray:
        """The same for several N at once; infinite where no finite threshold is high enough."""
        if not 0 < rate < 1:
            raise InputError(f"target rate: expected a share between 0 and 1, found {rate}")
        n = as_counts(counts)
        lowest, highest = self.thresholds
        width = highest - lowest
        grid = np.linspace(lowest - width, highest + 3 * width, _STEPS)

        def rates(some: IntArray, levels: FloatArray) -> FloatArray:
            if level is None or not self.replicates:
                return self._values(some, levels)
            return self.predict_interval(some, levels, level=level).high

        rows = rates(n, grid)
        answers = np.where(rows[:, -1] > rate, np.inf, -np.inf)
        for k, index in enumerate((rows <= rate).argmax(axis=1)):
            if index > 0:
                fine = np.linspace(grid[index - 1], grid[index], _STEPS)
                answers[k] = fine[np.argmax(rates(n[k : k + 1], fine)[0] <= rate)]
        return answers

    def _notices(
        self, n: IntArray, levels: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[Notice, ...]:
        notices = list(self.notices)
        far = n > FAR * self.max_count
        if far.any():
            gap = np.where(far[:, None], high - low, -1.0)
            c, t = np.unravel_index(int(gap.argmax()), gap.shape)
            line = (
                f"N = {n[c]:,} is {n[c] / self.max_count:,.0f} times the {self.max_count:,}"
                " impostors at hand: a model's answer"
            )
            if len(self._single()) > 0:
                line += (
                    f"; models that fit about as well span {100 * low[c, t]:.1f} to"
                    f" {100 * high[c, t]:.1f} % at threshold {levels[t]:.4g}"
                )
            notices.append(Notice("far-beyond", "", line))
        if (levels > self.thresholds[1]).any():
            line = (
                f"thresholds above {self.thresholds[1]:.4g}, the highest impostor score seen, are"
                " extrapolated in the score as well"
            )
            notices.append(Notice("beyond-scores", "", line))
        return tuple(notices)

    def save(self, path: str | Path) -> Path:
        """Write everything to an npz file, without pickle, whole or not at all."""
        write_whole(path, store.to_bytes(self))
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Extrapolation:
        """Read what :meth:`save` wrote."""
        try:
            fitted = store.from_bytes(Path(path).read_bytes())
        except (OSError, InputError) as error:
            raise InputError(f"{path}: expected a saved extrapolation, found {error}") from None
        if not isinstance(fitted, cls):
            raise InputError(path, "a saved extrapolation", type(fitted).__name__)
        return fitted


def _odds(rates: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(rates, _EDGE, 1 - _EDGE)))


def _rates(model: Model, n: IntArray, levels: FloatArray) -> FloatArray:
    """A model's rates, free of the last bit's rounding."""
    return _monotone(model.rates(n, levels), n, levels)


def _monotone(values: FloatArray, n: IntArray, levels: FloatArray) -> FloatArray:
    """Rates that rise with N and fall with τ."""
    rows, columns = np.argsort(n, kind="stable"), np.argsort(-levels, kind="stable")
    sorted_values = values[np.ix_(rows, columns)]
    risen = np.maximum.accumulate(np.maximum.accumulate(sorted_values, axis=0), axis=1)
    result = np.empty_like(values)
    result[np.ix_(rows, columns)] = risen
    return result
