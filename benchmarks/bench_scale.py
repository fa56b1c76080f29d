"""Cross-pairing and streams: growth over four sizes, a cost model, and a size it has not seen.

python -m benchmarks scale            growth, floor, cost model
python -m benchmarks.bench_scale full one run of 100,000 embeddings against the model
python -m benchmarks.bench_scale lines 100000000
score files of so many lines against a bare pass
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from benchmarks import population
from benchmarks.growth import MARK, measured, report
from unmask.scoring.reducers import LONGEST_PIECE, PIECE

EMBEDDINGS = (12_000, 20_000, 32_000, 48_000)
LINES = (2_000_000, 4_000_000, 8_000_000, 16_000_000)
FULL = 100_000
GROUPS = 20_000
COPRIME = 179_424_691
WRITTEN = 1 << 22
BARE = "pl.selectors.string().str.len_bytes().sum(), pl.selectors.numeric().sum()"
FLOOR_TRIALS = 128 << 20
FLOOR = """
from threadpoolctl import threadpool_limits
rng = np.random.default_rng(0)
rows = rng.normal(size=(2048, 192)).astype(np.float32)
piece = np.empty((4, 1024, 1024), np.float32)
with threadpool_limits(limits=1):
    for _ in range(32):
        for tile in piece:
            np.matmul(rows[:1024], rows[1024:].T, out=tile)
        piece.reshape(-1).sort()
"""


LOOKUPS = 5_000_000
LOOKUP = """
rng = np.random.default_rng(0)
piece = np.sort(rng.normal(0, 0.1, 1 << 22).astype(np.float32))
knots = np.sort(rng.normal(0.3, 0.1, 500_000).astype(np.float32))
# measured from here
for _ in range(10):
    np.searchsorted(piece, knots)
"""


def run() -> None:
    """Growth of cross-pairing and of streams, and what a dask scheduler adds."""
    with tempfile.TemporaryDirectory() as folder:
        pairs(Path(folder))
        streams(Path(folder))
    cluster()


def speakers_of(size: int) -> int:
    """How many speakers a population of that size has."""
    return min(population.SPEAKERS, size // 10)


@dataclass(frozen=True)
class CostModel:
    """Processor seconds = a + trials · (b + c · target scores looked up per trial).

    The distinct target scores are looked up once in every sorted piece of scores; c is measured
    alone, a and b are fitted.
    """

    start: float
    per_trial: float
    per_lookup: float

    @classmethod
    def fit(cls, sizes: Sequence[int], seconds: Sequence[float], per_lookup: float) -> CostModel:
        """Least squares of relative errors with coefficients of at least 0."""
        known = cls(0.0, 0.0, per_lookup)
        rest = np.array(seconds) - [known.seconds(size) for size in sizes]
        trials = np.array([size * (size - 1) / 2 for size in sizes])
        terms = np.stack([np.ones(len(sizes)), trials], axis=1) / rest[:, None]
        a, b = nnls(terms, np.ones(len(sizes)))[0]
        return cls(float(a), float(b), per_lookup)

    def seconds(self, size: int, *, speakers: int | None = None) -> float:
        """What a set of that size takes."""
        targets = size * (size / (speakers or speakers_of(size)) - 1) / 2
        lookups = targets / min(max(PIECE // 4, 8 * targets), LONGEST_PIECE // 4)
        trials = size * (size - 1) / 2
        return self.start + trials * (self.per_trial + self.per_lookup * lookups)


def pairs(folder: Path) -> CostModel:
    """Cross-pairing from embeddings, and what the fit says about larger sets."""
    code, sizes = [], []
    for size in EMBEDDINGS:
        kind = population.write(size, folder / f"{size}.npz")
        code.append(f"um.engine.cross_pairing({str(folder / f'{size}.npz')!r}, replicates=0)")
        sizes.append(size * (size - 1) // 2)
    what = f"cross-pairing of {kind} embeddings, dimension 192"
    seconds = report(what, "trials", sizes, code, runs=2)
    floor = min(measured(FLOOR)[0] for _ in range(2)) / FLOOR_TRIALS
    print(
        f"    floor: {1e9 * floor:.1f} ns per trial for the bare product and one sort of it; "
        f"the largest set took {seconds[-1] / sizes[-1] / floor:.2f} x that"
    )
    lookup = min(measured(LOOKUP)[0] for _ in range(2)) / LOOKUPS
    model = CostModel.fit(EMBEDDINGS, seconds, lookup)
    print(
        f"    model: {model.start:.2f} s, {1e9 * model.per_trial:.1f} ns per trial, "
        f"{1e9 * lookup:.1f} ns per target score and sorted piece"
    )
    for size, speakers in ((FULL, None), (1_000_000, 100_000), (1_414_214, 141_421)):
        cpu = model.seconds(size, speakers=speakers)
        print(
            f"    model: {size:>9,} embeddings, {size * (size - 1) / 2:.1e} trials: {cpu:9,.0f} s "
            f"of processor, {cpu / 60 / 64:.1f} minutes on 64"
        )
    return model


def full() -> None:
    """One run of a size that was not used to fit the model."""
    with tempfile.TemporaryDirectory() as folder:
        model = pairs(Path(folder))
        path = Path(folder) / "full.npz"
        kind = population.write(FULL, path)
        call = (
            "from unmask.run import run_on\nwith run_on(workers=2):\n"
            f"    um.engine.cross_pairing({str(path)!r}, replicates=%s)"
        )
        cpu, wall, peak = measured(call % 0)
        second = measured(call % 1000)
    trials = FULL * (FULL - 1) // 2
    expected = model.seconds(FULL)
    print(
        f"\n{FULL:,} {kind} embeddings, {trials:,} trials: {cpu:.1f} s of processor, predicted "
        f"{expected:.1f} s ({cpu / expected:.2f} x), {wall:.0f} s by the clock on 2 workers "
        f"(aim: 600), peak {peak:.2f} GB (aim: 2)\nwith intervals of 1,000 replicates: "
        f"{second[0] / cpu:.2f} x, {second[1]:.0f} s by the clock, peak {second[2]:.2f} GB"
    )


def streams(folder: Path) -> None:
    """Score files in batches: text, gzip, parquet, and text with a key as long."""
    for kind in ("txt", "txt.gz", "parquet"):
        code = []
        for size in LINES:
            path = folder / f"{size}.{kind}"
            _write_scores(path, size)
            code.append(f"um.evaluate({str(path)!r}, stream=True, replicates=0)")
        report(f"score files in batches, {kind}", "lines", list(LINES), code)


def lines(size: int) -> None:
    """Text and parquet of that many lines, against a bare pass of polars over all columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.txt"
        _write_scores(path, size)
        _against_bare_pass(path, size, f"scan_csv({str(path)!r}, has_header=False, separator=' ')")
        path = _as_parquet(path)
        _against_bare_pass(path, size, f"scan_parquet({str(path)!r})")


def _against_bare_pass(path: Path, size: int, scan: str) -> None:
    bare = f"import polars as pl\n{MARK}pl.{scan}.select({BARE}).collect(engine='streaming')"
    baseline = measured(bare)[0]
    cpu, wall, peak = measured(f"um.evaluate({str(path)!r}, stream=True)")
    print(
        f"{size:,} lines, {path.suffix[1:]}, {path.stat().st_size / 1e9:.2f} GB: {wall:.0f} s by "
        f"the clock, {cpu:.1f} s of processor = {cpu / baseline:.1f} x a bare pass of polars "
        f"({baseline:.1f} s), peak {peak:.2f} GB (aim: 2)"
    )


def _as_parquet(path: Path) -> Path:
    """The same columns as parquet; the text is removed."""
    import polars as pl

    names = ["enrol", "test", "score", "label"]
    table = pl.scan_csv(path, has_header=False, separator=" ", new_columns=names)
    table.sink_parquet(path.with_suffix(".parquet"), row_group_size=1 << 20)
    path.unlink()
    return path.with_suffix(".parquet")


def _write_scores(path: Path, size: int) -> None:
    """Scores of different trials: text piece by piece, parquet and gzip from it."""
    rng = np.random.default_rng(0)
    import polars as pl

    names = pl.Series([f"id{u % 1000}/x6uYqmx31kE/{u:05d}.wav" for u in range(GROUPS)])
    plain = path.with_suffix(".txt") if path.suffix == ".parquet" else path
    plain = plain.with_suffix("") if plain.suffix == ".gz" else plain
    with open(plain, "wb") as file:
        for start in range(0, size, WRITTEN):
            rows = np.arange(start, min(start + WRITTEN, size), dtype=np.int64)
            enrol, test = np.divmod(rows * COPRIME % GROUPS**2, GROUPS)
            same = rng.random(len(rows)) < 0.02
            frame = pl.DataFrame(
                {
                    "enrol": names.gather(enrol),
                    "test": names.gather(test),
                    "score": np.round(rng.normal(0, 1, len(rows)) + 3 * same, 5),
                    "label": np.where(same, "target", "nontarget"),
                }
            )
            frame.write_csv(file, separator=" ", include_header=False)
    if path.suffix == ".parquet":
        _as_parquet(plain)
    if path.suffix == ".gz":
        subprocess.run(["gzip", "-1", "-k", "-f", str(plain)], check=True)


def cluster() -> None:
    """What a block costs beside its own work when it goes through a dask scheduler."""
    from operator import is_

    from unmask.run import run_on

    tasks = [(0, 1)] * 500
    with run_on("dask", workers=1) as there, there.executor() as workers:
        list(workers.each(is_, tasks[:10]))
        start = time.perf_counter()
        list(workers.each(is_, tasks))
        spent = time.perf_counter() - start
    print(f"\ndask: {1e3 * spent / len(tasks):.1f} ms per block that does nothing")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["full"]:
            full()
        case ["lines", size]:
            lines(int(size))
        case _:
            run()
