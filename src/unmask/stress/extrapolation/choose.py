"""Fit a model by name, or the mean of those whose held-out errors are lowest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.run import advance, place, reporting
from unmask.stress.extrapolation.base import Measured, Model, Surface, checked_max_count
from unmask.stress.extrapolation.compare import HELD_OUT, Judged, judge
from unmask.stress.extrapolation.fitted import Extrapolation
from unmask.stress.extrapolation.models import (
    CANDIDATES,
    FAMILY,
    Stack,
    checked_name,
    fit_model,
    fits_rates,
    refit,
)
from unmask.stress.extrapolation.moments import Moments
from unmask.stress.impostors.pair_scores import PairScores, as_pairs
from unmask.stress.impostors.rates import Proxy, crossed_pairs
from unmask.stress.impostors.uncertainty import GROUPS, Crossed, Groups, check

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
