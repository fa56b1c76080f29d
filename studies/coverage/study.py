"""Samples of one law, and how often their intervals hold the truth.

A :class:`Study` names three functions of a module: one draws sample ``number`` and gives the value
and the ends of every interval, one knows the truth. Seeds follow from the law, the number of
speakers and the number of the sample, so that it does not matter where or in what order samples are
drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, binomtest

from unmask.base.intervals import mean_interval
from unmask.estimate import Interval
from unmask.run import Xp, run_on
from unmask.run.executors import Pool

Array = npt.NDArray[np.float64]
Drawn = Mapping[str, tuple[Any, Any, Any]]
SPEAKERS = (20, 40, 60)
WANTED = {0.95: (0.92, 0.98), 0.99: (0.97, 1.0)}
_SLACK = 1e-9
_TOGETHER = 5


@dataclass(frozen=True)
class Study:
    """Samples of ``speakers`` speakers of a law.

    ``drawn`` is a function and its first arguments; with the number of a sample as the last one it
    gives value, low and high end of every number (an end that is NaN was not given; arrays where a
    number is judged at several places; a name that ends in 99 % is of an interval of that level).
    ``known`` is a function and its arguments; it gives the truth, NaN at places that do not count.
    What it does not name is unbiased: its truth is the mean over samples. ``part`` is the part of
    the samples asked for that is drawn, ``least`` of them.
    """

    law: str
    speakers: int
    drawn: tuple[Any, ...]
    known: tuple[Any, ...]
    part: float = 1.0
    least: int = 4

    def numbers(self, asked: int, first: int) -> list[range]:
        """The samples drawn where so many are asked for, a few at a time."""
        end = first + max(min(self.least, asked), round(self.part * asked))
        return [range(at, min(at + _TOGETHER, end)) for at in range(first, end, _TOGETHER)]


@dataclass(frozen=True)
class Cell:
    """What became of the intervals of one number.

    ``coverage`` is the share that holds the truth, ``low`` and ``high`` its own 95 % interval
    (exact for so many samples), ``above`` and ``below`` the shares that lie wholly above and below
    the truth, ``given`` the share of samples with an interval. ``bias`` and ``error`` are the mean
    error of the value and the mean of its size, ``short`` the share of samples whose error is
    negative and ``shortest`` the largest of those.
    """

    law: str
    number: str
    speakers: int
    level: float
    samples: int
    truth: float
    coverage: float
    low: float
    high: float
    above: float
    below: float
    width: float
    given: float
    bias: float
    error: float
    short: float
    shortest: float

    @property
    def side(self) -> int:
        """−1 below what is wanted, 1 above, 0 inside or without any interval."""
        least, most = WANTED[self.level]
        return int(self.coverage > most) - int(self.coverage < least)

    @property
    def sure(self) -> bool:
        """Whether the simulation's own error cannot explain that it lies outside."""
        least, most = WANTED[self.level]
        return self.high < least or self.low > most


def simulate(
    studies: Sequence[Study], workers: Pool, *, samples: int, first: int = 0
) -> tuple[list[Cell], dict[str, Array]]:
    """The cells of all studies, and value, low and high end of every interval they rest on."""
    known = list(dict.fromkeys(study.known for study in studies))
    largest = sorted(range(len(studies)), key=lambda number: -studies[number].speakers)
    drawn = [(at, part) for at in largest for part in studies[at].numbers(samples, first)]
    tasks = [(one, None) for one in known] + [(studies[at].drawn, part) for at, part in drawn]
    done = sorted(workers.each(_performed, tasks), key=lambda one: one[0])
    results = [result for _, result in done]
    truths = dict(zip(known, results, strict=False))
    rows: list[list[Drawn]] = [[] for _ in studies]
    for (at, _), some in zip(drawn, results[len(known) :], strict=True):
        rows[at] += some
    made: list[Cell] = []
    kept: dict[str, Array] = {}
    for study, every in zip(studies, rows, strict=True):
        for name in every[0]:
            here = np.array([one[name] for one in every], float)
            made.append(cell(study, name, here, truths[study.known].get(name)))
            kept[f"{study.law}|{study.speakers}|{name}|{made[-1].truth}"] = here
    return made, kept


def _performed(_: Xp, task: tuple[tuple[Any, ...], range | None]) -> Any:
    """The truth, or some samples, in a worker that has no workers of its own."""
    (call, *given), numbers = task
    with run_on("local", workers=1):
        return call(*given) if numbers is None else [call(*given, number) for number in numbers]


def ends(interval: Interval | None, value: float = float("nan")) -> tuple[float, float, float]:
    """Value, low and high end of an interval, or of none."""
    nothing = float("nan")
    return (value, nothing, nothing) if interval is None else (value, interval.low, interval.high)


def cell(study: Study, name: str, rows: Array, known: Any) -> Cell:
    """One number, of which ``rows`` hold value, low and high end in each sample."""
    rows = rows.reshape(len(rows), 3, -1)
    value, low, high = (rows[:, k] for k in range(3))
    truth = np.ravel(value.mean(axis=0) if known is None else np.asarray(known, float))
    counted = ~np.isnan(low) & ~np.isnan(truth)
    above, below = low > truth + _SLACK, high < truth - _SLACK
    kept = counted.any(axis=1)

    def mean(of: Array) -> Array:
        """Of each sample that has an interval."""
        return np.asarray(np.where(counted, of, 0.0)[kept].sum(axis=1) / counted[kept].sum(axis=1))

    held = 1 - mean(above) - mean(below)
    nothing = float("nan")
    share = float(held.mean()) if kept.any() else nothing
    places = ~np.isnan(truth)
    error = (value - truth)[:, places]
    each = error.mean(axis=1)
    return Cell(
        study.law,
        name,
        study.speakers,
        0.99 if name.endswith("99 %") else 0.95,
        len(rows),
        float(truth[places].mean()),
        share,
        *_of_share(held),
        *(float(mean(of).mean()) if kept.any() else nothing for of in (above, below, high - low)),
        float(kept.mean()),
        float(each.mean()),
        float(np.abs(error).mean()),
        float((each < 0).mean()),
        float(-min(each.min(), 0.0)),
    )


def _of_share(held: Array) -> tuple[float, float]:
    """95 % interval of the mean: exact where samples are right or wrong, by score elsewhere."""
    if held.size < 2:
        return 0.0, 1.0
    whole = np.round(held)
    if np.allclose(held, whole):
        exact = binomtest(int(whole.sum()), held.size).proportion_ci(0.95, "exact")
        return float(exact.low), float(exact.high)
    low, high = mean_interval(held[:, None], level=0.95)
    return float(low[0]), float(high[0])


def table(made: Iterable[Cell]) -> list[str]:
    """Lines: law and number, truth, and for each number of speakers how many per cent hold it.

    Behind a share stand how many per cent lie above and below the truth, and the mean width. A
    share that lies outside what is wanted is marked ``<`` or ``>``, ``<<`` or ``>>`` where the
    simulation's own error cannot explain it.
    """
    rows: dict[tuple[str, str], dict[int, Cell]] = {}
    for one in made:
        rows.setdefault((one.law, one.number), {})[one.speakers] = one
    lines: list[str] = []
    shown: list[int] = []
    for (law, number), row in rows.items():
        if not row.keys() <= set(shown):
            shown = list(row)
            head = "".join(f"{f'{size} speakers':>34}" for size in shown)
            lines.append(f"{'law':<22}{'number':<24}{'truth':>9}{head}")
            lines.append(
                " " * 55 + len(shown) * f"{'held':>12}{'above':>7}{'below':>6}{'width':>9}"
            )
        truth = f"{next(iter(row.values())).truth:>9.4f}"
        line = f"{law:<22}{number:<24}{truth}" + "".join(_shown(row.get(size)) for size in shown)
        lines.append(line.rstrip())
    return lines


def _shown(one: Cell | None) -> str:
    if one is None:
        return " " * 34
    if not one.given:
        return f"{'none':>11}{'':23}"
    mark = ("", ">", "<")[one.side] * (2 if one.sure else 1)
    return (
        f"{100 * one.coverage:>10.1f}{mark:<2}{100 * one.above:>7.1f}{100 * one.below:>6.1f}"
        f"{one.width:>9.4f}"
    )


def summary(made: Sequence[Cell]) -> list[str]:
    """How many cells lie inside what is wanted, and how many would lie below it by chance."""
    lines = []
    for level, (least, most) in WANTED.items():
        some = [one for one in made if one.level == level and one.given]
        if not some:
            continue
        out = {side: [one for one in some if one.side == side] for side in (-1, 1)}
        sure = {side: sum(one.sure for one in rows) for side, rows in out.items()}
        by_chance = sum(_outside(one, least) for one in some)
        lines.append(
            f"{level:.0%} intervals, {len(some)} cells: {len(some) - len(out[-1]) - len(out[1])}"
            f" inside {least:.0%}–{most:.0%}; {len(out[-1])} below, {sure[-1]} of them beyond the"
            f" simulation's error ({by_chance:.0f} would be if each held {level:.0%});"
            f" {len(out[1])} above, {sure[1]} beyond it"
        )
    return lines


def _outside(one: Cell, least: float) -> float:
    """Chance to see less than is wanted in so many samples where intervals hold their level."""
    return float(binom.cdf(np.ceil(least * one.samples - _SLACK) - 1, one.samples, one.level))
