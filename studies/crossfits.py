"""How much cross-fitted LLRs depend on the draw of folds, on lists with few errors.

``python -m studies.crossfits > studies/crossfits.txt`` takes about two minutes and needs
``../shared/data``. With few good speakers the training trials of a fold are often separable, or
nearly so, and a logistic map of them is all but vertical. Columns: C_llr of seeds 0 to 7, the
larger of largest/median and median/smallest, the EER of the best system alone and the largest
after cross-fitting, the largest |LLR| (natural), and how many of the 8·15 maps were penalised.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np

import unmask as um

SCORES = Path(__file__).parent.parent / "../shared/data/scores"
LISTS = ("audiomnist_60models_5enrol_3systems", "librispeech_test-other_pairs_3systems")
SEEDS = range(8)


def row(scores: um.Scores, systems: tuple[str, ...]) -> str:
    """The line of one list and some of its systems."""
    chosen = scores.select_systems(list(systems))
    costs, rates, largest, penalised = [], [], 0.0, 0
    for seed in SEEDS:
        make = um.fuse if len(systems) > 1 else um.calibrate
        made = make(chosen, seed=seed)
        llr = made.scores.scores()
        pair = llr[scores.is_target], llr[scores.is_nontarget]
        costs.append(um.cllr(*pair))
        rates.append(100 * um.eer(*pair))
        largest = max(largest, float(np.abs(llr).max()))
        penalised += made.penalised_fits
    alone = min(100 * um.eer(scores.targets(name), scores.nontargets(name)) for name in systems)
    middle = np.median(costs)
    ratio = max(max(costs) / middle, middle / min(costs))
    names = "+".join(name.removesuffix("_cosine") for name in systems)
    shown = " ".join(f"{cost:.4f}" for cost in costs)
    return (
        f"{names:27} {shown} {ratio:6.2f} {alone:7.3f} {max(rates):7.3f} {largest:7.1f}"
        f" {penalised:4d} of {15 * len(SEEDS)}"
    )


def main() -> None:
    """Print the table of both lists."""
    head = "C_llr of seeds 0 to 7"
    for name in LISTS:
        scores = um.read_scores(SCORES / f"{name}.tsv.gz")
        counts = scores.counts
        print(f"{name}: {counts['target']:,} target and {counts['nontarget']:,} nontarget trials")
        print(f"{'systems':27} {head:55} {'ratio':>6} {'EER':>7} {'after':>7} {'|LLR|':>7} maps")
        for size in (1, 2, 3):
            for systems in combinations(scores.systems, size):
                print(row(scores, systems), flush=True)
        print()


if __name__ == "__main__":
    main()
