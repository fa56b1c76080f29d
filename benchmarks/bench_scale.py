"""How time and memory grow: every workload at four sizes, the fitted exponent, and a prediction.

    python -m benchmarks scale            growth of all workloads, cost model
    python -m benchmarks.bench_scale full one run of 100,000 embeddings against the model

Times are processor seconds of the work in a fresh process: on a busy machine they say more than
the clock.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from benchmarks import population

EMBEDDINGS = (12_000, 20_000, 32_000, 48_000)
LINES = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
TRIALS = (2_000_000, 4_000_000, 8_000_000, 16_000_000)
SPEAKERS = (2_000, 4_000, 8_000, 16_000)
FULL = 100_000
GROUPS = 20_000


def measured(code: str) -> tuple[float, float, float]:
    """Processor seconds, wall-clock seconds and peak memory in GB of code in a new interpreter."""
    wrapped = (
        "import json, re, time\nimport numpy as np, unmask as um\n"
        "cpu, wall = time.process_time(), time.perf_counter()\n"
        f"{code}\n"
        "spent = [time.process_time() - cpu, time.perf_counter() - wall]\n"
        "told = open('/proc/self/status').read()\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+) kB', told)[1]) / 1e6\n"
        "print(json.dumps([*spent, peak]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapped], check=True, capture_output=True, text=True
    )
    cpu, wall, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, wall, peak


def report(what: str, unit: str, sizes: list[int], code: list[str]) -> list[float]:
    """Measure, print a line per size and the exponent b of seconds = a · size^b; gives seconds."""
    print(f"\n{what}")
    seconds = []
    for size, text in zip(sizes, code, strict=True):
        cpu, wall, peak = measured(text)
        seconds.append(cpu)
        print(
            f"    {size:>14,} {unit:<10} {cpu:8.2f} s of processor ({wall:7.2f} s), "
            f"{1e9 * cpu / size:8.1f} ns each, peak {peak:.2f} GB"
        )
    slope = np.polyfit(np.log(np.array(sizes, float)), np.log(seconds), 1)[0]
    print(f"    exponent {slope:.2f}")
    return seconds


def run() -> None:
    """Growth of all workloads."""
    with tempfile.TemporaryDirectory() as folder:
        pairs(Path(folder))
        streams(Path(folder))
    detection()
    linkability()
    cluster()


@dataclass(frozen=True)
class CostModel:
    """Processor seconds = a · embeddings + b · trials."""

    per_embedding: float
    per_trial: float

    @classmethod
    def fit(cls, embeddings: np.ndarray, seconds: np.ndarray) -> CostModel:
        """Least squares of relative errors with coefficients of at least 0."""
        trials = embeddings * (embeddings - 1) / 2
        terms = np.stack([embeddings, trials], axis=1) / seconds[:, None]
        a, b = nnls(terms, np.ones(len(seconds)))[0]
        return cls(float(a), float(b))

    def seconds(self, embeddings: float) -> float:
        """What a set of that size takes."""
        return self.per_embedding * embeddings + self.per_trial * embeddings * (embeddings - 1) / 2


def pairs(folder: Path) -> CostModel:
    """Cross-pairing from embeddings, and what the fit says about larger sets."""
    code, sizes = [], []
    for size in EMBEDDINGS:
        kind = population.write(size, folder / f"{size}.npz")
        code.append(f"um.cross_pairing({str(folder / f'{size}.npz')!r})")
        sizes.append(size * (size - 1) // 2)
    seconds = report(f"cross-pairing of {kind} embeddings, dimension 192", "trials", sizes, code)
    model = CostModel.fit(np.array(EMBEDDINGS, float), np.array(seconds))
    print(
        f"    model: {1e6 * model.per_embedding:.1f} us per embedding and "
        f"{1e9 * model.per_trial:.1f} ns per trial"
    )
    for size in (FULL, 1_000_000, 1_414_214):
        cpu = model.seconds(size)
        print(
            f"    model: {size:>9,} embeddings, {size * (size - 1) / 2:.1e} trials: {cpu:9,.0f} s "
            f"of processor, {cpu / 3600 / 64:.3f} hours on 64 processors"
        )
    return model


def full() -> None:
    """One run of a size that was not used to fit the model."""
    with tempfile.TemporaryDirectory() as folder:
        model = pairs(Path(folder))
        path = Path(folder) / "full.npz"
        kind = population.write(FULL, path)
        cpu, wall, peak = measured(f"um.cross_pairing({str(path)!r}, workers=2)")
    trials = FULL * (FULL - 1) // 2
    expected = model.seconds(FULL)
    print(
        f"\n{FULL:,} {kind} embeddings, {trials:,} trials: {cpu:.1f} s of processor, predicted "
        f"{expected:.1f} s ({cpu / expected:.2f} x), {wall:.0f} s by the clock on 2 workers "
        f"(aim: 600), peak {peak:.2f} GB (aim: 2)"
    )


def streams(folder: Path) -> None:
    """Score files in batches: text, gzip, parquet, and text with a key as long."""
    for kind in ("txt", "txt.gz", "parquet"):
        code = []
        for size in LINES:
            path = folder / f"{size}.{kind}"
            _write_scores(path, size)
            code.append(f"um.stream_scores({str(path)!r})")
        report(f"score files in batches, {kind}", "lines", list(LINES), code)


def _write_scores(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    import polars as pl

    names = pl.Series([f"id{u % 1000}/x6uYqmx31kE/{u:05d}.wav" for u in range(GROUPS)])
    enrol, test = rng.integers(0, GROUPS, (2, size))
    same = rng.random(size) < 0.02
    frame = pl.DataFrame(
        {
            "enrol": names.gather(enrol),
            "test": names.gather(test),
            "score": np.round(rng.normal(0, 1, size) + 3 * same, 5),
            "label": np.where(same, "target", "nontarget"),
        }
    )
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=1 << 20)
        return
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    frame.write_csv(plain, separator=" ", include_header=False)
    if path.suffix == ".gz":
        subprocess.run(["gzip", "-1", "-k", "-f", str(plain)], check=True)


def detection() -> None:
    """All metrics of scores in memory."""
    code = [
        f"rng = np.random.default_rng(0)\num.detection(rng.normal(2, 1, {size // 100}), "
        f"rng.normal(0, 1, {size}))"
        for size in TRIALS
    ]
    report("um.detection, 1 % targets", "trials", list(TRIALS), code)


def cluster() -> None:
    """What a block costs beside its own work when it goes through a dask scheduler."""
    from unmask.scoring.plan import Task
    from unmask.scoring.where import place

    tasks = [Task("", (0, 1), (0, 1))] * 500
    with place("dask", workers=1) as somewhere:
        list(somewhere.each(str, tasks[:10]))
        start = time.perf_counter()
        list(somewhere.each(str, tasks))
        spent = time.perf_counter() - start
    print(f"\ndask: {1e3 * spent / len(tasks):.1f} ms per block that does nothing")


def linkability() -> None:
    """Linkability of everyone among everyone."""
    code, sizes = [], []
    for size in SPEAKERS:
        code.append(
            "rng = np.random.default_rng(0)\n"
            f"means = rng.normal(size=({size}, 192))\n"
            f"names = [f's{{i}}' for i in range({size})]\n"
            "enrol, test = (um.Embeddings(means + rng.normal(size=means.shape), names,"
            " [f'{side}{i}' for i in range(len(names))]) for side in 'et')\n"
            f"um.linkability(enrol, test, counts=[{size}], replicates=0)"
        )
        sizes.append(size * size)
    report("Linkability, every speaker among all", "trials", sizes, code)


if __name__ == "__main__":
    full() if sys.argv[1:] == ["full"] else run()
