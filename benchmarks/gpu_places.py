"""Every workload on ``cuda`` against the CPU, on sizes that both can do.

    python benchmarks/gpu_places.py

Needs the package, and torch with a CUDA device. Prints how far any number of a table moved and
both times; the second run on the device counts, the first one loads and compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.run import run_on

MOST = 1e-6
Named = dict[str, float]
Workload = Callable[[], Named]


def voices(speakers: int, each: int, *, noise: float, seed: int, tag: str = "u") -> um.Embeddings:
    """A Gaussian population whose speakers have the same means whatever the seed."""
    more = {"speaker": "s{:05}", "utterance": f"{tag}{{row:06}}", "dtype": np.float32}
    return named_speakers(speakers, each, 192, noise=noise, means=0, draws=seed, **more)


def numbers(estimates: Any) -> Named:
    """Values and ends of intervals by name."""
    result: Named = {}
    for index, estimate in enumerate(estimates):
        if isinstance(estimate.value, str):
            continue
        name = f"{index} {estimate.metric}"
        result[name] = float(estimate.value)
        if estimate.interval is not None:
            result[f"{name}, low end"] = estimate.interval.low
            result[f"{name}, high end"] = estimate.interval.high
    return result


def moves(here: Named, there: Named) -> list[tuple[float, str]]:
    """How far each number moved, the largest first."""
    assert here.keys() == there.keys()
    result = []
    for name, value in here.items():
        same = value == there[name] or (np.isnan(value) and np.isnan(there[name]))
        result.append((0.0 if same else abs(value - there[name]), name))
    return sorted(result, reverse=True)


def workloads() -> dict[str, Workload]:
    """What is compared, by name."""
    everyone = voices(2000, 10, noise=2.5, seed=1)
    enrol, test = (voices(8000, 1, noise=1.0, seed=s, tag=str(s)) for s in (2, 3))
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(2, 1, 20_000), rng.normal(0, 1, 1_000_000)
    scores = um.Scores.from_arrays(target, nontarget)
    asked = voices(3000, 4, noise=1.0, seed=4, tag="4")
    known = voices(3000, 1, noise=1.0, seed=5, tag="5")
    original, changed = voices(100, 40, noise=1.0, seed=6), voices(100, 40, noise=3.0, seed=7)

    def cross(pairs: str) -> Workload:
        return lambda: numbers(um.engine.cross_pairing(everyone, pairs=pairs).results[0].estimates)

    return {
        "cross-pairing, all": cross("all"),
        "cross-pairing, enrolment fixed": cross("enrolment-fixed"),
        "bootstrap, 1 million trials": lambda: numbers(
            um.evaluate(scores, replicates=100).results[0].estimates
        ),
        "Linkability, 64 million pairs": lambda: numbers(
            um.linkability(enrol, test, counts=[20, 8000]).estimates
        ),
        "1 - EER, 64 million pairs": lambda: numbers(
            um.privacy.one_minus_eer(enrol, test, counts=[20, 8000]).estimates
        ),
        "Singling Out, 6 million pairs": lambda: numbers(
            um.singling_out(known, asked, counts=[20, 3000]).estimates
        ),
        "similarity, 3 x 16 million pairs": lambda: numbers(
            um.pseudonymisation(original, changed).estimates
        ),
        "worst case, 400 million trials": lambda: numbers(
            um.worst_case(everyone, [0.05, 0.1, 0.2], counts=[1, 100, 1999]).estimates
        ),
    }


def main() -> None:
    """One line per workload; a value may move by 1e-6, and what moved most is named."""
    failed = []
    for name, work in workloads().items():
        start = time.perf_counter()
        here = work()
        local = time.perf_counter() - start
        with run_on("cuda"):
            work()
            start = time.perf_counter()
            there = work()
        cuda = time.perf_counter() - start
        by_size = moves(here, there)
        values = [pair for pair in by_size if not pair[1].endswith(" end")]
        sentence = "all the same"
        if by_size[0][0]:
            sentence = f"values moved by at most {values[0][0]:.1e}"
            if len(values) < len(by_size):
                sentence += f", ends of intervals by {by_size[0][0]:.1e} ({by_size[0][1]})"
        print(f"{name:<34} {len(here):4} numbers {sentence}; CPU {local:.2f} s, CUDA {cuda:.2f} s")
        if values[0][0] > MOST:
            failed.append(f"{name}: {values[0][1]}")
    assert not failed, failed


if __name__ == "__main__":
    main()
