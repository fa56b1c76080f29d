"""The engine, the stream, the bootstrap and the readers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import unmask as um
from benchmarks.harness import fresh_process, ratio, seconds
from unmask.engine import Battery
from unmask.engine.bootstrap import SortedTrials, Units, bootstrap


def run() -> None:
    """Print all ratios."""
    one_pass()
    stream()
    replicates()
    reading()


def scores(rng: np.random.Generator, trials: int, targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes two deviations apart."""
    return rng.normal(2, 1, targets), rng.normal(0, 1, trials - targets)


def naive_table(target: np.ndarray, nontarget: np.ndarray) -> float:
    """EER and minDCF as their definitions read: both rates counted anew at every score."""
    thresholds = np.concatenate([target, nontarget])
    p_miss = np.array([np.mean(target < t) for t in thresholds])
    p_fa = np.array([np.mean(nontarget >= t) for t in thresholds])
    nearest = np.argmin(np.abs(p_miss - p_fa))
    return float((p_miss[nearest] + p_fa[nearest]) / 2 + np.min(0.01 * p_miss + 0.99 * p_fa))


def one_pass() -> None:
    """All metrics of ten million trials against a bare sort, and against the naive definition."""
    rng = np.random.default_rng(0)
    target, nontarget = scores(rng, 10_000_000, 100_000)
    both = np.concatenate([target, nontarget])
    floor = seconds(lambda: np.sort(both), runs=5)
    whole = seconds(lambda: um.detection(target, nontarget), runs=5)
    ratio("um.detection, 10 million trials, 1 % targets", whole, floor, "np.sort", limit="2")
    small = scores(rng, 20_000, 200)
    naive = seconds(lambda: naive_table(*small), runs=1)
    fast = seconds(lambda: um.detection(*small))
    ratio("naive EER and minDCF, 20,000 trials", naive, fast, "um.detection")
    print(
        f"{'':<4}the naive way is quadratic: 10 million trials would take "
        f"{naive * 500**2 / 3600:,.0f} hours"
    )


def stream() -> None:
    """A hundred million nontargets in blocks, in bounded memory."""
    elapsed, peak, eer = fresh_process(
        "import numpy as np, unmask as um\n"
        "rng = np.random.default_rng(0)\n"
        "blocks = (rng.standard_normal(1_000_000) for _ in range(100))\n"
        "result = um.Roc.from_blocks(rng.normal(2, 1, 100_000), blocks).eer()"
    )
    floor, _, _ = fresh_process(
        "import numpy as np\nrng = np.random.default_rng(0)\n"
        "for _ in range(100): np.sort(rng.standard_normal(1_000_000))"
    )
    ratio("Roc.from_blocks, 100 million nontargets", elapsed, floor, "sorting the blocks")
    print(f"{'':<4}peak memory {peak:.2f} GB (aim: 1.5), EER {100 * eer:.3f} %")
    _, peak, (spent, floor) = fresh_process(
        "import numpy as np, unmask as um\n"
        "rng = np.random.default_rng(0)\n"
        "made, target = rng.standard_normal((4, 1_000_000)), rng.normal(2, 1, 100_000)\n"
        "spent = time.process_time()\n"
        "um.Roc.from_blocks(target, (made[i % 4] for i in range(100))).eer()\n"
        "spent = time.process_time() - spent\n"
        "floor = time.process_time()\n"
        "for i in range(100): np.sort(made[i % 4])\n"
        "result = [spent, time.process_time() - floor]"
    )
    what = "the same, blocks made before, processor time"
    ratio(what, spent, floor, "sorting the blocks")
    print(
        f"{'':<4}10 times as many, by scaling: {10 * spent:.0f} s (aim: 60 s);"
        f" peak memory {peak:.2f} GB (aim: 0.6)"
    )


def replicates() -> None:
    """A thousand replicates of the whole table on a million trials."""
    rng = np.random.default_rng(0)
    battery = Battery()
    for targets in (10_000, 500_000):
        target, nontarget = scores(rng, 1_000_000, targets)
        speaker = rng.integers(0, 1000, targets)
        enrol = rng.integers(0, 1000, nontarget.size)
        test = (enrol + rng.integers(1, 1000, nontarget.size)) % 1000
        units = Units.speakers(speaker, enrol, test)
        prepared = [SortedTrials.of(target, nontarget, units, thresholds=battery.thresholds)]
        drawn = seconds(
            lambda prepared=prepared: bootstrap(prepared, battery.values, replicates=100), runs=1
        )
        naive = seconds(
            lambda t=target, n=nontarget: um.detection(
                rng.choice(t, t.size), rng.choice(n, n.size)
            ),
            runs=2,
        )
        ratio(
            f"1,000 replicates, 1 million trials, {targets:,} targets",
            10 * drawn,
            1000 * naive,
            "resampling the scores",
            limit="90 s" if targets < 500_000 else "20 s",
        )
        both = np.concatenate([target, nontarget])
        order, weights = np.argsort(both), rng.poisson(1.0, both.size).astype(float)
        floor = seconds(lambda o=order, w=weights: np.cumsum(w[o]), runs=5)
        ratio("one of them", drawn / 100, floor, "a bare weighted cumulative sum")


def reading() -> None:
    """Ten million lines of scores and a key of as many lines: read, joined, evaluated."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("scores", "trials")]
        fresh_process(
            "import numpy as np, polars as pl\n"
            "rng = np.random.default_rng(0)\n"
            "n, utterances, speakers = 10_000_000, 20_000, 1_000\n"
            "pairs = rng.choice(utterances * utterances, n, replace=False, shuffle=False)\n"
            "names = pl.Series([f'id{10000 + u % speakers}/x6uYqmx31kE/{u:05d}.wav'"
            " for u in range(utterances)])\n"
            "a, b = np.divmod(pairs, utterances)\n"
            "same = (a % speakers == b % speakers)\n"
            "frame = pl.DataFrame({'enrol': names.gather(a), 'test': names.gather(b),"
            " 'score': np.round(rng.normal(0, 1, n) + 3 * same, 5),"
            " 'label': np.where(same, 'target', 'nontarget')})\n"
            f"frame.select('enrol', 'test', 'score').write_csv({paths[0]!r},"
            " separator=' ', include_header=False)\n"
            "frame = frame.select('enrol', 'test', 'label')\n"
            "frame = frame.sample(fraction=1, shuffle=True, seed=1)\n"
            f"frame.write_csv({paths[1]!r}, separator=' ', include_header=False)\n"
        )
        floor, _, _ = fresh_process(
            "import polars as pl\n"
            f"for path in {paths!r}: pl.read_csv(path, separator=' ', has_header=False)"
        )
        elapsed, peak, trials = fresh_process(
            "import unmask as um\n"
            f"scores = um.read_scores({paths[0]!r}, key={paths[1]!r},"
            " speakers='pattern:^([^/]+)/')\n"
            "um.evaluate(scores, replicates=0)\n"
            "result = len(scores)"
        )
    ratio(
        "10 million scores and key: read, join, evaluate",
        elapsed,
        floor,
        "a bare polars read of both",
        limit="60 s",
    )
    print(f"{'':<4}peak memory {peak:.2f} GB (aim: 4), {trials:,} trials")
