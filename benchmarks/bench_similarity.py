"""Similarity matrices of 300 speakers x 30 segments: time, processor time and peak memory."""

from __future__ import annotations

import numpy as np

import unmask as um
from benchmarks.harness import fresh_process, ratio, seconds

POPULATION = """
import time
import numpy as np
import unmask as um

rng = np.random.default_rng(0)
codes = np.repeat(np.arange(300), 30)
original = rng.normal(size=(300, 192))[codes] + 1.5 * rng.normal(size=(9000, 192))
protected = 0.3 * original + rng.normal(size=original.shape)
o, p = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (original, protected))
"""
WORK = """
wall, processor = time.perf_counter(), time.process_time()
compared = {call}
wall, processor = time.perf_counter() - wall, time.process_time() - processor
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
floor = time.perf_counter()
{floor}
result = [wall, processor, time.perf_counter() - floor, compared.deid, peak]
"""
PAIRS = "3 x 81 million pairs"


def run() -> None:
    """Print all ratios."""
    matrices()
    embeddings()
    definition()


def matrices() -> None:
    """From score matrices, against one bare sort of the same scores in blocks."""
    code = WORK.format(
        call="um.pseudonymisation(*sets, codes)",
        floor="[np.sort(rows, axis=None) for s in sets for rows in np.split(s, 100)]",
    )
    given = "sets = [o @ o.T, o @ p.T, p @ p.T]\n"
    report("from score matrices", POPULATION + given + code, "sorting them once", "60 s, 4 GB")


def embeddings() -> None:
    """From embeddings with recalibrated intervals, against the bare products in blocks."""
    code = WORK.format(
        call="um.pseudonymisation(*sets)",
        floor="[(a[i : i + 256] @ b.T).sum() for a, b in ((o, o), (o, p), (p, p))"
        " for i in range(0, 9000, 256)]",
    )
    given = "sets = um.Embeddings(o, codes), um.Embeddings(p, codes)\n"
    aim = "15 s, below the 0.65 GB of one matrix"
    report("from embeddings", POPULATION + given + code, "the bare products", aim)


def report(what: str, code: str, against: str, aim: str) -> None:
    """Run in a fresh process and print."""
    _, _, (wall, processor, floor, deid, peak) = fresh_process(code)
    ratio(f"{PAIRS} {what}", wall, floor, against, limit=aim)
    print(
        f"{'':<4}{processor:.1f} s of processor time, peak memory {peak:.2f} GB,"
        f" DeID {100 * deid:.2f} %"
    )


def definition() -> None:
    """A small set against loops over all pairs of segments."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(20), 10)
    same = codes[:, None] == codes
    apart = ~np.eye(codes.size, dtype=bool)
    sets = [rng.normal(size=same.shape) + shift * same for shift in (3.0, 1.0, 2.0)]
    result = um.pseudonymisation(*sets, codes, replicates=0)

    def loops() -> float:
        dominance = []
        for scores in sets:
            pav = um.Roc.from_scores(scores[same & apart], scores[~same]).pav_laplace
            cells: dict[tuple[int, int], list[float]] = {}
            for k in range(codes.size):
                for m in range(codes.size):
                    if k != m:
                        llr = pav.apply(scores[k : k + 1, m])[0]
                        cells.setdefault((codes[k], codes[m]), []).append(-np.log1p(np.exp(-llr)))
            value = {pair: np.exp(np.mean(logs)) for pair, logs in cells.items()}
            own = np.mean([v for (i, j), v in value.items() if i == j])
            dominance.append(own - np.mean([v for (i, j), v in value.items() if i != j]))
        return abs(1 - dominance[1] / dominance[0] - result.deid)

    naive = seconds(loops, runs=1)
    fast = seconds(lambda: um.pseudonymisation(*sets, codes, replicates=0))
    ratio("loops over 3 x 40,000 pairs", naive, fast, "um.pseudonymisation")
    print(f"{'':<4}DeID differs by {loops():.1e}")
