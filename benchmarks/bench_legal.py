"""Linkability and Singling Out at the size of Vauquier 2025, beside product and naive code.

Random vectors with some speaker information stand in for the paper's data. Run by ``make bench``.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import unmask as um
from unmask.privacy.legal import isolating
from unmask.privacy.legal.linking import LinkRows, count_above, exact_linkability
from unmask.privacy.legal.permuted import Deals, dealt

TEST, ENROL, DIMENSION, CONVERSATIONS = 4_949, 22_024, 192, 10
COUNTS = np.unique(np.geomspace(20, ENROL, 30).astype(int))
SINGLING_COUNTS = (20, 100, 1_000, 10_000, ENROL)


def seconds(run: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """Least time of several runs, and the last result."""
    best, result = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


class Peak:
    """Largest resident memory during a block beyond what was there before, in GB."""

    def __enter__(self) -> Peak:
        self.stop = threading.Event()
        self.before = self.highest = _resident()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.stop.wait(0.02):
            self.highest = max(self.highest, _resident())

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.value = (self.highest - self.before) / 1e9


def _resident() -> int:
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def vectors(
    speakers: int, each: int, noise: float, seed: int
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Speaker vectors that depend on the speaker alone, plus noise."""
    centres = np.random.default_rng(0).standard_normal((speakers, DIMENSION), dtype=np.float32)
    rng = np.random.default_rng(seed)
    rows = np.repeat(centres, each, axis=0)
    rows += noise * rng.standard_normal(rows.shape, dtype=np.float32)
    return rows


def names(speakers: int, each: int = 1) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(speakers), each).astype(str)


def linkability_lines() -> list[tuple[str, str]]:
    """The exact curve for 30 values of N' against the bare single-precision product."""

    def unit(rows: Any) -> Any:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    enrol = unit(vectors(ENROL, 1, 2.0, 1).astype(np.float64))
    test = unit(vectors(ENROL, 1, 2.0, 2)[:TEST].astype(np.float64))
    enrol32, test32 = enrol.astype(np.float32), test.astype(np.float32)

    def exact() -> Any:
        above = count_above(LinkRows(enrol, test, true=np.arange(TEST)))
        return exact_linkability(above.at_or_above, above.others, COUNTS).mean(axis=0)

    bare = curve = np.inf
    for _ in range(5):
        bare = min(bare, seconds(lambda: test32 @ enrol32.T)[0])
        with Peak() as peak:
            curve = min(curve, seconds(exact)[0])
    sets = um.Embeddings(enrol32, names(ENROL)), um.Embeddings(test32, names(TEST))
    whole, result = seconds(lambda: um.linkability(*sets, counts=COUNTS))
    size = f"{TEST:,} × {ENROL:,} × {DIMENSION}"
    return [
        (f"bare product {size}, float32", f"{bare:.3f} s"),
        (f"exact Linkability, {len(COUNTS)} values of N'", f"{curve:.3f} s"),
        ("  ratio to the bare product (target: at most 3)", f"{curve / bare:.2f}"),
        ("  memory beyond the input (target: under 3 GB)", f"{peak.value:.2f} GB"),
        ("  um.linkability from embeddings, with 1,000 bootstrap replicates", f"{whole:.2f} s"),
        (f"  value at N' = {COUNTS[-1]:,}", f"{100 * result.value[-1]:.2f} %"),
    ]


def naive_linkability(scores: Any, counts: Any, draws: int, rng: Any) -> list[float]:
    """The paper's protocol: for each test speaker and draw a list of N' speakers, one by one."""
    outcome = []
    for count in counts:
        won = 0
        for i in range(len(scores)):
            others = np.delete(np.arange(scores.shape[1]), i)
            for _ in range(draws):
                chosen = rng.choice(others, count - 1, replace=False)
                won += bool(scores[i, i] > scores[i, chosen].max())
        outcome.append(won / (len(scores) * draws))
    return outcome


def naive_singling_out(scores: Any, counts: Any, draws: int, rng: Any) -> list[float]:
    """The definition, sorting all calibration scores in every fold."""
    outcome = []
    for count in counts:
        won = []
        for e in range(len(scores)):
            for _ in range(draws):
                others = np.delete(np.arange(scores.shape[1]), e)
                part = scores[e][np.append(rng.choice(others, count - 1, replace=False), e)]
                order = np.array([rng.permutation(part.shape[1]) for _ in range(count)])
                for fold in range(part.shape[1]):
                    pick = np.arange(count), order[:, fold]
                    entries = part[pick]
                    rest = np.ones(part.shape, dtype=bool)
                    rest[pick] = False
                    best = np.sort(part[rest])[::-1]
                    k = round(best.size / count)
                    won.append((entries > (best[k - 1] + best[k]) / 2).sum() == 1)
        outcome.append(float(np.mean(won)))
    return outcome


def naive_lines() -> list[tuple[str, str]]:
    """Small sets, where the naive protocols can be waited for."""
    rng = np.random.default_rng(0)
    speakers, counts = 400, (20, 100, 400)
    sets = [
        um.Embeddings(vectors(speakers, each, 2.0, seed), names(speakers, each))
        for each, seed in ((1, 1), (1, 2), (CONVERSATIONS, 3))
    ]
    units = [np.asarray(s.normalised().vectors, dtype=np.float64) for s in sets]
    scores = units[1] @ units[0].T
    slow, drawn = seconds(lambda: naive_linkability(scores, counts, 5, rng))
    fast, exact = seconds(lambda: um.linkability(*sets[:2], counts=counts))
    some = 40
    rows = (units[0][:some] @ units[2].T).reshape(some, speakers, CONVERSATIONS)
    slow_so, by_hand = seconds(lambda: naive_singling_out(rows, counts, 2, rng))
    chosen = sets[0].select(np.arange(some))
    fast_so, ours = seconds(lambda: um.singling_out(chosen, sets[2], counts=counts, draws=2))

    def shown(values: Any) -> str:
        return ", ".join(f"{100 * value:.1f}" for value in values) + " %"

    return [
        (f"naive Linkability, {speakers} × {speakers}, 5 draws", f"{slow:.2f} s: {shown(drawn)}"),
        ("  exact, with intervals", f"{fast:.3f} s: {shown(exact.value)}"),
        ("  ratio", f"{slow / fast:.0f} times faster"),
        (f"naive Singling Out, {some} × {speakers} × 10", f"{slow_so:.2f} s: {shown(by_hand)}"),
        ("  um.singling_out, negated score as well", f"{fast_so:.2f} s: {shown(ours.value)}"),
        ("  ratio", f"{slow_so / fast_so:.1f} times faster"),
    ]


def singling_out_lines() -> list[tuple[str, str]]:
    """The paper's size: 495 enrolment speakers, 22,024 test speakers, 10 conversations."""
    enrol = um.Embeddings(vectors(ENROL, 1, 1.0, 4)[:TEST], names(TEST))
    test = um.Embeddings(vectors(ENROL, CONVERSATIONS, 2.0, 5), names(ENROL, CONVERSATIONS))
    with Peak() as peak:
        took, result = seconds(lambda: um.singling_out(enrol, test, counts=SINGLING_COUNTS))
    # Alternating runs with and without the chance that is dealt; ratio of the medians.
    times: dict[bool, list[float]] = {True: [took], False: []}
    for has_chance in (False, True, False, True, False):
        deal = dealt if has_chance else _not_dealt
        with patch.object(isolating, "dealt", deal):
            again, _ = seconds(lambda: um.singling_out(enrol, test, counts=SINGLING_COUNTS))
        times[has_chance].append(again)
    whole, without = (float(np.median(times[has_chance])) for has_chance in (True, False))
    values = ", ".join(f"{100 * value:.1f}" for value in result.value)
    what = f"{len(result.speakers)} × {ENROL:,} × {CONVERSATIONS}"
    return [
        (f"Singling Out {what}, 10 folds, 5 draws, 5 values of N", f"{took:.1f} s"),
        ("  (target: at most 60 s; the negated score is tried in the same time)", ""),
        ("  memory beyond the input (target: under 3 GB)", f"{peak.value:.2f} GB"),
        ("  values", f"{values} %"),
        ("  without its chance (medians of three)", f"{without:.1f} s; with it {whole:.1f} s"),
        ("  ratio (target: at most 1.4)", f"{whole / without:.2f}"),
    ]


def _not_dealt(_: Any, count: int, __: int, found: Any) -> Deals:
    """No deal at all: the values as they are, as often as they would be dealt."""
    return Deals(count, np.repeat(found[:, None], 3, axis=1), np.zeros((2, 2)), 1, False)


def run() -> None:
    """Print what was measured."""
    for part in (linkability_lines, naive_lines, singling_out_lines):
        for what, value in part():
            print(f"{what:<75}{value}", flush=True)


if __name__ == "__main__":
    run()
