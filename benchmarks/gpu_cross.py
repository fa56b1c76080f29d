"""``--on cuda`` against the CPU on a size that both can do; needs a CUDA device, torch and numpy.

    python benchmarks/gpu_cross.py

The plan's own modules are used without the rest of the package.
"""

from __future__ import annotations

import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[1] / "src" / "unmask"
for name in ("unmask", "unmask.scoring"):
    package = types.ModuleType(name)
    package.__path__ = [str(SOURCE.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package

from unmask.run.cuda import devices  # noqa: E402
from unmask.scoring.counting import TargetScores, count_block, target_scores  # noqa: E402
from unmask.scoring.on_cuda import count_on_cuda  # noqa: E402
from unmask.scoring.plan import Plan, Sides  # noqa: E402


def write(folder: Path, speakers: int, utterances: int, *, symmetric: bool) -> Plan:
    """Rows of a Gaussian population; with fixed enrolment the first utterance of each speaker."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(speakers, dtype=np.int32), utterances)
    rows = rng.normal(size=(speakers, 192))[code] + 2.0 * rng.normal(size=(code.size, 192))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    first = np.arange(code.size) % utterances == 0
    enrolled = np.ones_like(first) if symmetric else first
    np.save(folder / "enrol.npy", rows[enrolled])
    np.save(folder / "enrol_speaker.npy", code[enrolled])
    if not symmetric:
        np.save(folder / "test.npy", rows[~first])
        np.save(folder / "test_speaker.npy", code[~first])
    test = int((enrolled if symmetric else ~first).sum())
    plan = Plan(folder, int(enrolled.sum()), test, 192, symmetric, False)
    plan.write()
    return plan


def main() -> None:
    """Counts of both, the largest move of Pfa, and the times."""
    print(devices())
    for symmetric in (True, False):
        with tempfile.TemporaryDirectory() as name:
            plan = write(Path(name), 2000, 10, symmetric=symmetric)
            targets = TargetScores.merge([target_scores(task) for task in plan.bands()])
            knots = np.append(targets.scores, np.float32(4.6))
            np.save(Path(name) / "knots.npy", knots)
            start = time.perf_counter()
            parts = [count_block(task) for task in plan.blocks(targets=knots.size)]
            cpu = sum(parts[1:], start=parts[0])
            middle = time.perf_counter()
            sides = Sides.open(name)
            count_on_cuda(sides, knots)
            warm = time.perf_counter()
            gpu = count_on_cuda(sides, knots)
            end = time.perf_counter()
        assert gpu.total == cpu.total
        moved = np.abs(gpu.below - cpu.below).max() / cpu.total
        print(
            f"{'all' if symmetric else 'enrolment-fixed'}: {cpu.total:,} nontargets on both, Pfa "
            f"moved by at most {moved:.1e}, mean loss by {abs(gpu.loss / cpu.loss - 1):.1e}; "
            f"CPU {middle - start:.2f} s, GPU {end - warm:.3f} s"
        )
        assert moved < 1e-6


if __name__ == "__main__":
    main()
