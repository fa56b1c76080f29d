"""The comparison of Table 1: train on small N, judge on large N, beside doing nothing at all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.estimate import Estimate, Parameter
from unmask.run import advance
from unmask.stress.extrapolation.base import (
    Model,
    Surface,
    checked_max_count,
    hard_thresholds,
    training_counts,
    training_thresholds,
)
from unmask.stress.extrapolation.models import MODELS, checked_name, fit_model
from unmask.stress.extrapolation.moments import Moments
from unmask.stress.impostors.pair_scores import PairScores, as_counts, as_pairs
from unmask.stress.impostors.rates import crossed_rates, worst_case_false_alarms
from unmask.stress.impostors.uncertainty import Crossed

CARRY_FORWARD = "carry-forward"
HELD_OUT = 2 / 3
_JUDGED_COUNTS = 18
_JUDGED_THRESHOLDS = 201


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
