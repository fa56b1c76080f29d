"""Intervals of trials in bins against the bootstrap of all trials, on real lists of scores.

    python -m benchmarks.intervals SCORES ...

Prints the ratio of the widths, metric by metric.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import unmask as um
from unmask.engine import resample

METRICS = ("eer", "min_dcf", "cllr", "min_cllr", "d_ece")


def main(paths: Sequence[str]) -> None:
    """A line per system."""
    for path in paths:
        scores = um.read_scores(path)
        full = um.evaluate(scores, replicates=1000)
        resample.AUTO_TRIALS = 0
        binned = um.evaluate(scores)
        for one, other in zip(full, binned, strict=True):
            told = []
            for metric in METRICS:
                wide, found = (result[metric].interval for result in (one, other))
                assert wide is not None
                assert found is not None
                width = wide.high - wide.low
                told.append(f"{metric} {(found.high - found.low) / width:.2f}" if width else "")
            speakers = one["eer"].n.get("speakers", 0)
            print(f"{Path(path).name[:24]:<24} {one.system:<24} {speakers:>5} speakers", *told)


if __name__ == "__main__":
    main(sys.argv[1:])
