"""Start-up: commands on a tiny file, against importing numpy and polars; seconds of processor."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import ratio


def run() -> None:
    """Print all ratios."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 16))
    codes = np.repeat(np.arange(12), 4)
    people = np.array([f"s{code}" for code in codes])
    names = np.array([f"u{row}" for row in range(codes.size)])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, noise in (("original.npz", 0.5), ("protected.npz", 2.0)):
            vectors = means[codes] + noise * rng.normal(size=(codes.size, 16))
            np.savez(root / name, embeddings=vectors, speaker_ids=people, utt_ids=names)
        lines = (
            f"e{i} t{i} {value:.4f} {'target' if i % 5 == 0 else 'nontarget'}\n"
            for i, value in enumerate(rng.normal(size=200))
        )
        (root / "scores").write_text("".join(lines))
        floor = processor(["-c", "import numpy, polars"], root)
        for words, limit in (
            ("--help", "0.15 s"),
            ("eval scores --ci 0", "0.7 s"),
            ("privacy --original original.npz --protected P=protected.npz --ci 0", "0.8 s"),
            ("legal protected.npz --ci 0", "0.8 s"),
        ):
            spent = processor(["-m", "unmask", *words.split()], root)
            what = f"unmask {words.split()[0]}, tiny file, processor time"
            ratio(what, spent, floor, "importing numpy and polars", limit=limit)


def processor(arguments: list[str], folder: Path, *, runs: int = 5) -> float:
    """Least seconds of processor of a new interpreter."""
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)
