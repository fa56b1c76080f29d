"""Ten million trials over 100,000 embeddings, and cross-fitted calibration of two million."""

from __future__ import annotations

from benchmarks.harness import fresh_process, ratio

VOICES = """
import numpy as np, polars as pl, unmask as um
rng = np.random.default_rng(0)
names = pl.Series([f"utt{i:06}" for i in range(100_000)])
vectors = rng.normal(size=(100_000, 192)).astype(np.float32)
voices = um.Embeddings(vectors, [f"s{i // 50}" for i in range(100_000)], names)
rows = rng.integers(0, 100_000, (2, 10_000_000), dtype=np.int32)
trials = um.trials.TrialList(*(um.Ids(side, names) for side in rows), None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
wall, spent = time.perf_counter(), time.process_time()
scores = um.score(voices, trials=trials).scores()
wall, spent = time.perf_counter() - wall, time.process_time() - spent
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
unit = vectors.astype(np.float64)
unit /= np.linalg.norm(unit, axis=1, keepdims=True)
floor = time.process_time()
bare = np.empty(rows.shape[1])
for i in range(0, bare.size, 1 << 10):
    one, other = unit[rows[0, i : i + 1024]], unit[rows[1, i : i + 1024]]
    bare[i : i + 1024] = np.einsum("ij,ij->i", one, other)
off = float(abs(bare - scores).max())
result = [wall, spent, time.process_time() - floor, before, peak, off]
"""
LLRS = """
import numpy as np, unmask as um
from unmask.engine import fusion
rng = np.random.default_rng(0)
enrol, test = rng.integers(0, 1000, (2, 2_000_000), dtype=np.int32)
test = np.where(rng.random(test.size) < 0.1, enrol, test)
names = um.Ids.from_strings([f"s{i}" for i in range(1000)]).names
spoken = [um.Ids(side, names) for side in (enrol, test)]
value = 2.0 * (enrol == test) + rng.normal(size=enrol.size)
scores = um.Scores(*spoken, enrol == test, enrol_speaker=spoken[0], test_speaker=spoken[1],
                   systems={"a": value})
floor = time.perf_counter()
um.calibrate(value[enrol == test], value[enrol != test])
floor = time.perf_counter() - floor
wall = time.perf_counter()
made = um.calibrate(scores)
result = [time.perf_counter() - wall, floor, made.fits]
"""


def run() -> None:
    """Print all ratios."""
    _, _, (wall, spent, floor, before, peak, off) = fresh_process(VOICES)
    ratio("10⁷ trials, 100,000 x 192, processor time", spent, floor, "bare gather + einsum")
    memory = f"peak memory {peak:.2f} GB, {before:.2f} before"
    print(f"{'':<4}{wall:.1f} s in all, {memory}; scores differ by {off:.1e}")
    _, _, (wall, floor, fits) = fresh_process(LLRS)
    ratio(f"2 million trials cross-fitted, {fits} fits and one", wall, floor, "one fit of all")
