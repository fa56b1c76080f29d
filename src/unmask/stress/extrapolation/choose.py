"""Fit a model by name, or the one whose held-out error is lowest."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from unmask.detection.bootstrap import Progress
from unmask.errors import InputError
from unmask.stress.extrapolation.base import Model, Surface, checked_max_count
from unmask.stress.extrapolation.compare import HELD_OUT, held_out, judge
from unmask.stress.extrapolation.fitted import Extrapolation
from unmask.stress.extrapolation.models import CANDIDATES, checked_name, fit_model
from unmask.stress.extrapolation.moments import Moments
from unmask.stress.worst_case_pairs import PairScores, as_pairs

REPLICATES = 20
_ABOUT_AS_WELL = 4.0
_NEVER_WORSE = 0.005
_LEAST_HELD_OUT = 6

Training = Literal["exact", "paper"]


def extrapolate(
    scores: PairScores | npt.ArrayLike,
    *,
    model: str = "auto",
    max_count: int | None = None,
    seed: int = 0,
    replicates: int = REPLICATES,
    training: Training = "exact",
    progress: Progress | None = None,
) -> Extrapolation:
    """Fit a model of P_FA^N(τ) that reaches beyond the impostors at hand.

    ``model`` names one of :data:`MODELS` or is ``auto``: the upper third of the counts is held out,
    every candidate is fitted to the rest, the one with the least error on hard thresholds is fitted
    again to all counts up to ``max_count``, and those that did about as well stay as its rivals.
    ``replicates`` bootstrap draws of the targets give the intervals. The default training is exact
    and deterministic; ``training="paper"`` is the stochastic recipe of Sholokhov 2020 (extra
    ``torch``). ``progress`` is told about the fits done.
    """
    pairs = as_pairs(scores)
    count = checked_max_count(max_count or pairs.max_count, pairs)
    if replicates == 1 or replicates < 0:
        raise InputError(f"bootstrap: expected 0 or at least 2 replicates, found {replicates}")
    if training == "paper":
        from unmask.stress.extrapolation.paper import fit_paper

        return fit_paper(pairs, model=model, max_count=count, seed=seed, progress=progress)
    if training != "exact":
        raise InputError(f"training: expected exact or paper, found {training}")
    tried = CANDIDATES if model == "auto" else (checked_name(model),)
    choosing = len(tried) > 1
    steps = _Steps(progress, replicates + len(tried) * (2 if choosing else 1) + 1)
    moments = Moments.of(pairs)
    errors, credible, notes = _tried(pairs, moments, tried, count, steps)
    surface = Surface.of(pairs, count)
    steps.done()
    chosen = _fit(credible[0], surface, moments, steps)
    rivals = tuple(_fit(name, surface, moments, steps) for name in credible[1:])
    generator = np.random.default_rng(seed)
    targets = len(pairs.target_names)
    drawn = []
    for _ in range(replicates):
        times = generator.multinomial(targets, np.full(targets, 1 / targets))
        drawn.append(
            fit_model(chosen.name, surface.drawn(times), moments, start=chosen, times=times)
        )
        steps.done()
    steps.finish()
    seen = (float(pairs.scores.min()), float(pairs.scores.max()))
    return Extrapolation(chosen, tuple(drawn), rivals, errors, count, seen, seed, notes)


class _Steps:
    """Counts finished fits for whoever watches."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._finished = progress, total, 0

    def done(self) -> None:
        self._finished = min(self._finished + 1, self._total)
        if self._progress is not None:
            self._progress(self._finished, self._total)

    def finish(self) -> None:
        self._finished = self._total - 1
        self.done()


def _fit(name: str, surface: Surface, moments: Moments, steps: _Steps) -> Model:
    model = fit_model(name, surface, moments)
    steps.done()
    return model


def _tried(
    pairs: PairScores, moments: Moments, names: tuple[str, ...], count: int, steps: _Steps
) -> tuple[dict[str, float], tuple[str, ...], tuple[str, ...]]:
    """Held-out errors, the models that did about as well as the best (best first), and remarks."""
    if len(names) == 1:
        return {}, names, ()
    trained = int(HELD_OUT * count)
    if count < _LEAST_HELD_OUT:
        note = f"{count} impostors are too few to hold any out: {names[0]} was taken as it is"
        return {}, names[:1], (note,)
    surface, judged = held_out(pairs, max(trained, 3), last=count)
    errors = {}
    for name in names:
        errors[name] = judge(_fit(name, surface, moments, steps), judged).mae_hard
    ranked = sorted(names, key=lambda name: errors[name])
    limit = max(_ABOUT_AS_WELL * errors[ranked[0]], _NEVER_WORSE)
    return errors, tuple(name for name in ranked if errors[name] <= limit), ()
