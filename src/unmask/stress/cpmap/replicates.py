"""Replicates of C-P maps: what a draw of speakers makes of maps, comparisons and configs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, as_scores
from unmask.engine import Units
from unmask.errors import InputError
from unmask.stress.cpmap import kernels as kernels
from unmask.stress.cpmap.delta import proportions, relative_change
from unmask.stress.cpmap.hardness import Hardness, ordered
from unmask.stress.cpmap.maps import CpMetric, well_defined
from unmask.stress.cpmap.positions import CpConfig
from unmask.stress.cpmap.prefixes import Prefixes, Ranks, code, prefix_sizes

Pair = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class ListedClass:
    """Score codes of one class of a system in hardness order, with the trials they belong to."""

    codes: Ranks
    trial: IntArray
    starts: IntArray

    def drawn(self, times: IntArray, digits: int, chosen: BoolArray | None = None) -> Prefixes:
        """The list of a replicate, in which a trial stands as often as it was drawn."""
        often = times[self.trial]
        if chosen is not None:
            often = np.where(chosen[self.trial], often, 0)
        return Prefixes.of(np.repeat(self.codes, often), digits)

    def position(self, times: IntArray, chosen: BoolArray) -> float:
        """Twice the mean place of the chosen trials in a replicate."""
        often = times[self.trial]
        group = np.add.reduceat(often, self.starts)
        place = (np.cumsum(group) - group / 2) / often.sum()
        inside = np.add.reduceat(np.where(chosen[self.trial], often, 0), self.starts)
        return 2 * float(place @ inside / inside.sum())


@dataclass(frozen=True, eq=False)
class Listed:
    """Both classes of one system."""

    target: ListedClass
    nontarget: ListedClass
    digits: int

    def drawn(
        self, times: tuple[IntArray, IntArray], config: CpConfig | None = None
    ) -> kernels.Trials:
        """The trials of a replicate, or those of a config among them."""
        masks = (None, None) if config is None else (config.target, config.nontarget)
        return kernels.Trials(
            self.target.drawn(times[0], self.digits, masks[0]),
            self.nontarget.drawn(times[1], self.digits, masks[1]),
            self.digits,
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """What is computed on every list of trials: cells, the hardest tenth, trial configs."""

    systems: tuple[Listed, ...]
    compared: tuple[tuple[int, int], ...]
    configs: tuple[CpConfig, ...]
    steps: tuple[int, int]
    metric: CpMetric
    tolerance: float

    def of(self, times: tuple[IntArray, IntArray]) -> Found:
        """All numbers on the list in which each trial stands ``times`` times."""
        lists = [listed.drawn(times) for listed in self.systems]
        cells = np.stack([self._cells(trials) for trials in lists])
        counts = (
            prefix_sizes(int(times[0].sum()), self.steps[0]),
            prefix_sizes(int(times[1].sum()), self.steps[1]),
        )
        defined = np.append(well_defined(*counts).ravel(), False)
        ties = [
            proportions(relative_change(cells[old], cells[new]), defined, self.tolerance)[1]
            for old, new in self.compared
        ]
        placed = [
            [self._placed(listed, times, one) for one in self.configs] for listed in self.systems
        ]
        return Found(cells, np.array(ties), np.array(placed))

    def _cells(self, trials: kernels.Trials) -> FloatArray:
        """The map row by row, then the hardest tenth."""
        a, b = (prefix_sizes(n, s) for n, s in zip(_sizes(trials), self.steps, strict=True))
        tenth = [prefix_sizes(n, 10)[:1] for n in _sizes(trials)]
        targets = np.append(np.tile(a, b.size), tenth[0])
        nontargets = np.append(np.repeat(b, a.size), tenth[1])
        return self.metric.of(trials, targets, nontargets)

    def _placed(
        self, listed: Listed, times: tuple[IntArray, IntArray], config: CpConfig
    ) -> tuple[float, float, float]:
        """x, y and the metric of a config; NaN where a class was left empty."""
        trials = listed.drawn(times, config)
        sizes = _sizes(trials)
        if not all(sizes):
            return (float("nan"),) * 3
        value = self.metric.of(trials, np.array(sizes[:1]), np.array(sizes[1:]))
        return (
            listed.target.position(times[0], config.target),
            listed.nontarget.position(times[1], config.nontarget),
            float(value[0]),
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Cells by system (the hardest tenth last), tie shares by comparison, configs by system."""

    cells: FloatArray
    ties: FloatArray
    placed: FloatArray


class Moments:
    """Mean and standard deviation of arrays that come one by one, around a first guess."""

    def __init__(self, guess: FloatArray) -> None:
        self._guess = guess
        self._sum, self._squares, self._count = np.zeros(guess.shape), np.zeros(guess.shape), 0

    def add(self, values: FloatArray) -> None:
        away = values - self._guess
        self._sum += away
        self._squares += away**2
        self._count += 1

    @property
    def deviation(self) -> FloatArray:
        if self._count < 2:
            return np.full(self._guess.shape, np.nan)
        spread = self._squares - self._sum**2 / self._count
        return np.asarray(np.sqrt(np.maximum(spread, 0.0) / (self._count - 1)))


def listed_scores(
    pair: Pair, target_hardness: Hardness | None, nontarget_hardness: Hardness | None, combine: str
) -> Listed:
    target, nontarget = as_scores(pair[0], "target"), as_scores(pair[1], "nontarget")
    target_codes, nontarget_codes, digits = code(target, nontarget)
    return Listed(
        _listed_class(target, target_codes, target_hardness, combine, "target"),
        _listed_class(nontarget, nontarget_codes, nontarget_hardness, combine, "nontarget"),
        digits,
    )


def _listed_class(
    scores: FloatArray, codes: Ranks, hardness: Hardness | None, combine: str, name: str
) -> ListedClass:
    found = ordered(scores, hardness, combine=combine, name=name)
    place = found.place[found.hardest_first]
    starts = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    return ListedClass(codes[found.hardest_first], found.hardest_first, starts)


def _sizes(trials: kernels.Trials) -> tuple[int, int]:
    return trials.target.size, trials.nontarget.size


def require_units(listed: Listed, units: Units) -> None:
    found = (listed.target.codes.size, listed.nontarget.codes.size)
    expected = (units.target.size, units.nontarget_first.size)
    if found != expected:
        raise InputError(
            f"bootstrap: speakers are known for {expected[0]} target and {expected[1]} nontarget "
            f"trials, scores given for {found[0]} and {found[1]}"
        )


def trial_times(units: Units, times: IntArray) -> tuple[IntArray, IntArray]:
    """How often each trial stands in the replicate: m_a·m_b, or m_a within one speaker."""
    nontarget = times[units.nontarget_first]
    if units.nontarget_second is not None:
        other = units.nontarget_first != units.nontarget_second
        nontarget = np.where(other, nontarget * times[units.nontarget_second], nontarget)
    return times[units.target], nontarget
