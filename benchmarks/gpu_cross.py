"""All pairs counted on ``cuda`` against the CPU on a size that both can do.

    python benchmarks/gpu_cross.py

Needs the package, and torch with a CUDA device and triton.
"""

from __future__ import annotations

import time

import numpy as np
from tests.helpers.populations import speakers_with_noise

from unmask.base import Groups
from unmask.run import devices, run_on
from unmask.scoring import CountAmong, Sides, TargetScores
from unmask.scoring.pairs import ALL, UNORDERED, PairGrid


def population(speakers: int, utterances: int, *, unordered: bool) -> PairGrid:
    """Rows of a Gaussian population; with fixed enrolment the first utterance of each speaker."""
    rng = np.random.default_rng(0)
    rows, code = speakers_with_noise(speakers, utterances, 192, noise=2.0, means=rng)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    first = np.arange(code.size) % utterances == 0
    if unordered:
        return PairGrid(Sides(rows, rows), Groups(code), Groups(code), UNORDERED)
    sides = Sides(rows[first], rows[~first])
    return PairGrid(sides, Groups(code[first]), Groups(code[~first]), ALL)


def main() -> None:
    """Counts of both, the largest move of Pfa, and the times."""
    print(devices())
    for unordered in (True, False):
        pairs = population(2000, 10, unordered=unordered)
        targets = TargetScores.of(pairs)
        counting = CountAmong(pairs, np.append(targets.scores, np.float32(4.6)))
        start = time.perf_counter()
        with run_on(workers=1):
            cpu = counting.total(targets=targets.scores.size)
        middle = time.perf_counter()
        with run_on("cuda"):
            counting.total(targets=targets.scores.size)
            warm = time.perf_counter()
            gpu = counting.total(targets=targets.scores.size)
        end = time.perf_counter()
        assert gpu.total == cpu.total
        moved = np.abs(gpu.below - cpu.below).max() / cpu.total
        print(
            f"{'all' if unordered else 'enrolment-fixed'}: {cpu.total:,} nontargets on both, Pfa "
            f"moved by at most {moved:.1e}, mean loss by {abs(gpu.loss / cpu.loss - 1):.1e}; "
            f"CPU {middle - start:.2f} s, GPU {end - warm:.3f} s"
        )
        assert moved < 1e-6


if __name__ == "__main__":
    main()
