"""C-P maps against the naive definition: every cell's trials gathered, sorted and counted anew."""

from __future__ import annotations

import numpy as np

import unmask as um
from benchmarks.harness import fresh_process, ratio, seconds
from unmask.base import Sampling
from unmask.engine import Units

_SETUP = (
    "import numpy as np, unmask as um\n"
    "rng = np.random.default_rng(0)\n"
    "target, nontarget = rng.normal(4, 1, 250_000), rng.normal(0, 1, 250_000)\n"
    "hardness = dict(target_hardness=target + rng.normal(0, 1, target.size),"
    " nontarget_hardness=nontarget + rng.normal(0, 1, nontarget.size))\n"
)


def run() -> None:
    """Print all ratios."""
    two_maps()
    growth()
    intervals()


def trials(rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Scores and hardness of both classes, half of the trials each."""
    target, nontarget = rng.normal(4, 1, count // 2), rng.normal(0, 1, count // 2)
    return (
        target,
        nontarget,
        target + rng.normal(0, 1, target.size),
        nontarget + rng.normal(0, 1, nontarget.size),
    )


def both(data: tuple[np.ndarray, ...], grid: int) -> list[um.stress.CpMap]:
    """The EER map and the minDCF map."""
    target, nontarget, hard_target, hard_nontarget = data
    return [
        um.cp_map(
            target,
            nontarget,
            target_hardness=hard_target,
            nontarget_hardness=hard_nontarget,
            grid=grid,
            metric=metric,
        )
        for metric in ("eer", "min_dcf")
    ]


def naive(data: tuple[np.ndarray, ...], grid: int) -> float:
    """Each cell on its own: sort by hardness, take the first trials, count all thresholds."""
    target, nontarget, hard_target, hard_nontarget = data
    total = 0.0
    for i in range(1, grid + 1):
        for j in range(1, grid + 1):
            t = target[np.argsort(hard_target)[: -(-i * target.size // grid)]]
            n = nontarget[np.argsort(-hard_nontarget)[: -(-j * nontarget.size // grid)]]
            roc = um.Roc.from_scores(t, n)
            total += roc.eer(estimator="raw") + roc.min_dcf()
    return total


def two_maps() -> None:
    """Half a million trials, 100 x 100 cells, both metrics; time and memory in a fresh process."""
    data = trials(np.random.default_rng(0), 500_000)
    fast = seconds(lambda: both(data, 100), runs=3)
    small = seconds(lambda: naive(data, 3), runs=1)
    scaled = small * (100 / 3) ** 2
    ratio("naive maps, scaled from 3 x 3 cells", scaled, fast, "two um.cp_map, 500,000 trials")
    print(f"{'':<4}the naive way would take {scaled / 60:,.0f} minutes")
    ratio(
        "two maps, 500,000 trials, 100 x 100",
        fast,
        seconds(lambda: [np.sort(part) for part in data], runs=3),
        "sorting scores and hardness",
        limit="5 s",
    )
    elapsed, peak, _ = fresh_process(
        _SETUP + "maps = [um.cp_map(target, nontarget, metric=m, **hardness)"
        " for m in ('eer', 'min_dcf')]\nresult = maps[0].full"
    )
    print(f"{'':<4}{elapsed:.2f} s with start-up, peak memory {peak:.2f} GB (aim: 5 s, 2 GB)")


def growth() -> None:
    """What a hundred times more cells and ten times more trials cost."""
    rng = np.random.default_rng(0)
    data = trials(rng, 500_000)
    coarse, fine = (seconds(lambda g=g: both(data, g), runs=1) for g in (100, 1000))
    ratio("1,000 x 1,000 cells", fine, coarse, "100 x 100 cells")
    fewer = trials(rng, 50_000)
    few, many = (seconds(lambda d=d: both(d, 300), runs=1) for d in (fewer, data))
    ratio("300 x 300 cells, 500,000 trials", many, few, "50,000 trials")


def intervals() -> None:
    """Replicates of a delta map against mapping resampled trials with the public function."""
    rng = np.random.default_rng(0)
    target, nontarget, *_ = trials(rng, 40_000)
    other = target + rng.normal(0, 0.3, target.size), nontarget
    speakers = rng.integers(0, 40, (3, target.size))
    units = Units.speakers(*speakers)
    both, asked = [(target, nontarget), other], {"compared": [(0, 1)], "sampling": Sampling(20)}
    drawn = seconds(lambda: um.stress.cp_intervals(both, units, **asked), runs=1)
    plain = seconds(
        lambda: [um.cp_map(rng.choice(t, t.size), n) for t, n in both],
        runs=3,
    )
    ratio("1,000 replicates, 40,000 trials", 50 * drawn, 1000 * plain, "mapping resampled trials")
