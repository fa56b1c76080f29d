"""The ROC statistic of ten billion trials on one GPU: correctness, then time against the product.

    python benchmarks/gpu_roc.py

Runs with torch and numpy alone; the module is loaded by its path.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import torch

PATH = Path(__file__).parents[1] / "src" / "unmask" / "scoring" / "triton_roc.py"
spec = importlib.util.spec_from_file_location("triton_roc", PATH)
triton_roc = importlib.util.module_from_spec(spec)
sys.modules["triton_roc"] = triton_roc
spec.loader.exec_module(triton_roc)


def population(speakers: int, utterances: int, dimension: int, *, noise: float, seed: int = 0):
    """Unit vectors around random speaker means, shuffled."""
    rng = torch.Generator(device="cuda").manual_seed(seed)
    means = torch.randn(speakers, dimension, generator=rng, device="cuda")
    speaker = torch.arange(speakers, device="cuda", dtype=torch.int32).repeat_interleave(utterances)
    vectors = means[speaker.long()] + noise * torch.randn(
        speakers * utterances, dimension, generator=rng, device="cuda"
    )
    return torch.nn.functional.normalize(vectors, dim=1), speaker


def target_scores(vectors: torch.Tensor, utterances: int) -> torch.Tensor:
    """Distinct scores of all pairs of different utterances of one speaker."""
    grouped = vectors.reshape(-1, utterances, vectors.shape[1])
    scores = torch.bmm(grouped, grouped.transpose(1, 2))
    i, j = torch.triu_indices(utterances, utterances, 1, device="cuda")
    return torch.unique(scores[:, i, j].reshape(-1))


def plain(enrol, test, one, other, targets, rows=4096):
    """Product, two searches, bincount: the plain way, in blocks of rows."""
    m = len(targets)
    counts = torch.zeros(2 * m + 1, dtype=torch.int64, device="cuda")
    for start in range(0, len(enrol), rows):
        block = enrol[start : start + rows] @ test.T
        block = block[one[start : start + rows, None] != other[None, :]]
        below = torch.bucketize(block, targets, out_int32=True)
        tie = targets[below.clamp(max=m - 1).long()] == block
        counts += torch.bincount(2 * below + tie, minlength=2 * m + 1)
    return counts


def timed(work, runs=3):
    work()
    best = float("inf")
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def on_cpu(vectors, speaker, targets):
    """The same counts by numpy in float64: how far the last bits of the scores move them."""
    v, s = vectors.double().cpu().numpy(), speaker.cpu().numpy()
    scores = (v @ v.T)[s[:, None] != s[None, :]]
    t = targets.double().cpu().numpy()
    ordered = np.sort(scores)
    return np.searchsorted(ordered, t), scores.size


def eer(targets_total, equal, between):
    """Crossing of the ROC polygon, targets counted once each."""
    m = len(equal)
    target = np.zeros(2 * m + 1)
    target[1::2] = 1
    nontarget = np.zeros(2 * m + 1)
    nontarget[1::2], nontarget[::2] = equal, between
    miss = np.concatenate([[0], np.cumsum(target) / target.sum()])
    fa = np.concatenate([[1], 1 - np.cumsum(nontarget) / nontarget.sum()])
    gap = miss - fa
    i = int(np.searchsorted(gap, 0))
    return miss[i - 1] + -gap[i - 1] / (gap[i] - gap[i - 1]) * (miss[i] - miss[i - 1])


def main() -> None:
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    torch.backends.cuda.matmul.allow_tf32 = False
    vectors, speaker = population(1_000, 10, 192, noise=2.0)
    targets = target_scores(vectors, 10)
    reference = plain(vectors, vectors, speaker, speaker, targets)
    for precision in ("ieee", "tf32x3"):
        result = triton_roc.count_nontargets(
            vectors, vectors, speaker, speaker, targets, precision=precision
        )
        half = triton_roc.count_nontargets(
            vectors, vectors, speaker, speaker, targets, symmetric=True, precision=precision
        )
        total = int(result.equal.sum() + result.between.sum())
        below = np.cumsum(result.between)[:-1] + np.concatenate([[0], np.cumsum(result.equal)[:-1]])
        exact, size = on_cpu(vectors, speaker, targets)
        moved = np.abs(below - exact).max() / size
        ref = reference.cpu().numpy()
        print(
            f"{precision}: {total:,} nontargets (expected {size:,}); symmetric twice is "
            f"{2 * int(half.equal.sum() + half.between.sum()):,}; largest move of Pfa against "
            f"float64 {moved:.1e}, EER {eer(0, result.equal, result.between):.9f} against plain "
            f"{eer(0, ref[1::2], ref[::2]):.9f}"
        )
    for noise in (0.9, 2.0):
        report(noise)


def report(noise: float) -> None:
    """Times at full size: the more the classes overlap, the more trials need a search."""
    vectors, speaker = population(10_000, 10, 192, noise=noise)
    targets = target_scores(vectors, 10)
    starts = range(0, 100_000, 10_000)
    product = timed(lambda: [vectors[i : i + 10_000] @ vectors.T for i in starts])
    result = triton_roc.count_nontargets(vectors, vectors, speaker, speaker, targets)
    print(
        f"100,000 x 100,000 trials, {len(targets):,} distinct target scores, "
        f"EER {100 * eer(0, result.equal, result.between):.3f} %"
    )
    print(f"  bare float32 product         {product:7.3f} s")
    for precision, symmetric in (("tf32x3", False), ("tf32x3", True), ("ieee", True)):
        spent = timed(
            lambda precision=precision, symmetric=symmetric: triton_roc.count_nontargets(
                vectors,
                vectors,
                speaker,
                speaker,
                targets,
                precision=precision,
                symmetric=symmetric,
            ),
            runs=2,
        )
        kind = "unordered pairs" if symmetric else "all pairs"
        print(
            f"  counted in the tile, {precision:7} {spent:7.3f} s = {spent / product:6.2f} x the "
            f"product ({kind})"
        )
    spent = timed(lambda: plain(vectors, vectors, speaker, speaker, targets), runs=1)
    print(f"  plain torch                  {spent:7.3f} s = {spent / product:6.2f} x the product")


if __name__ == "__main__":
    main()
