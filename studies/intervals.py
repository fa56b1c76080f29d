"""Intervals of trials in bins against the bootstrap of all trials, on real lists of scores.

    python -m studies.intervals SCORES ...

Prints the ratio of the widths, metric by metric.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import unmask as um
from unmask.engine import evaluation

METRICS = ("eer", "min_dcf", "cllr", "min_cllr", "d_ece")


def main(paths: Sequence[str]) -> None:
    """A line per system."""
    for path in paths:
        scores = um.read_scores(path)
        full = um.evaluate(scores, replicates=1000)
        evaluation.AUTO_TRIALS = 0
        binned = um.evaluate(scores)
        for one, other in zip(full, binned, strict=True):
            ratios = []
            for metric in METRICS:
                wide, narrow = (result[metric].interval for result in (one, other))
                assert wide is not None
                assert narrow is not None
                width = wide.high - wide.low
                ratios.append(f"{metric} {(narrow.high - narrow.low) / width:.2f}" if width else "")
            speakers = one["eer"].n.get("speakers", 0)
            print(f"{Path(path).name[:24]:<24} {one.system:<24} {speakers:>5} speakers", *ratios)


if __name__ == "__main__":
    main(sys.argv[1:])
