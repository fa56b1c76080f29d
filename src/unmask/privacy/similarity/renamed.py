"""Similarity sets with the names of the protected speakers permuted, from their counts in bins.

The order of the scores never changes: with the comparisons of every two speakers counted in bins,
those of one speaker are other cells of the same table, and PAV is fitted to them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unmask.base import FloatArray, IntArray
from unmask.engine import information
from unmask.estimate import Luck
from unmask.privacy.luck import Permuted, Renaming, best_by_luck
from unmask.privacy.similarity.resampling import Binned, disclosed, oracle

MOST_PEOPLE = 256
BINS = 1024
SIGNED, D_ECE, L_W, EER = range(4)
"""Columns of what permuted names give: the modulus of the dominance, D_ECE, l_w and EER."""
_STREAM = 0x73696D


@dataclass(frozen=True, eq=False)
class Renamed:
    """One set under every renaming (first axis, everybody's own name first): logarithms of the
    similarities of all pairs of speakers, and ``numbers``: D_ECE, l_w and EER in their columns.
    """

    logs: npt.NDArray[np.floating[Any]]
    numbers: FloatArray
    renaming: Renaming

    def with_other(self, other: Renamed) -> Renamed:
        """An attack in two ways: logarithms cell by cell and rates averaged, the larger l_w."""
        numbers = (self.numbers + other.numbers) / 2
        numbers[:, L_W] = np.maximum(self.numbers[:, L_W], other.numbers[:, L_W])
        return Renamed((self.logs + other.logs) / 2, numbers, self.renaming)

    def permuted(self) -> Permuted:
        """The numbers of every renaming, in the columns named above."""
        rows = self.renaming.rows
        people = rows.shape[1]
        matrices = np.exp(self.logs)
        own = matrices[np.arange(len(rows))[:, None], np.arange(people), rows]
        known = ~np.isnan(matrices)
        others = np.nansum(matrices, axis=(1, 2)) - own.sum(axis=1)
        number = known.sum(axis=(1, 2)) - people
        values = self.numbers.copy()
        values[:, SIGNED] = np.abs(own.mean(axis=1) - others / number)
        return Permuted(values, people, self.renaming.exhaustive)


def renamed(binned: Binned, *, mean: str, seed: int) -> tuple[Renamed, Renamed] | None:
    """A set and its negated scores under permuted names, those of some people where they are many;
    None where not all pairs of speakers were counted.
    """
    if binned.partners:
        return None
    counts = _dense(binned, seed)
    people, bins = len(counts), counts.shape[2]
    renaming = Renaming.of(people, seed)
    target = np.stack([counts[np.arange(people), row].sum(axis=0) for row in renaming.rows])
    target = target.astype(np.float64)
    nontarget = counts.sum(axis=(0, 1), dtype=np.float64) - target
    flat, number = counts.reshape(-1, bins), counts.sum(axis=2).reshape(-1)
    made = []
    for sign in (1, -1):
        turned = target[:, ::sign], nontarget[:, ::sign]
        oracles = [oracle(*row) for row in zip(*turned, strict=True)]
        llr, bare, eer = (np.stack(column) for column in zip(*oracles, strict=True))
        per_bin = (llr if mean == "arithmetic" else -information.softplus(-llr))[:, ::sign]
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = (per_bin.astype(np.float32) @ flat.T) / number
            if mean == "arithmetic":
                logs = np.log(expit(logs))
        numbers = np.empty((len(llr), 4))
        numbers[:, D_ECE] = disclosed(bare, *turned)[0]
        numbers[:, L_W] = np.abs(llr).max(axis=1) / np.log(10)
        numbers[:, EER] = eer
        made.append(Renamed(logs.reshape(-1, people, people), numbers, renaming))
    return made[0], made[1]


def _dense(binned: Binned, seed: int) -> npt.NDArray[np.float32]:
    """Counts of every ordered pair of speakers; of both orders half each where they are pooled."""
    people = len(binned.own)
    chosen: IntArray = np.arange(people)
    if people > MOST_PEOPLE:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
        chosen = np.sort(rng.choice(people, MOST_PEOPLE, replace=False))
    place = np.full(people, -1)
    place[chosen] = np.arange(len(chosen))
    counts = np.zeros((len(chosen), len(chosen), binned.own.shape[1]), dtype=np.float32)
    counts[np.arange(len(chosen)), np.arange(len(chosen))] = binned.own[chosen]
    one, other = place[binned.first], place[binned.second]
    kept = (one >= 0) & (other >= 0)
    pooled = not (binned.first > binned.second).any()
    counts[one[kept], other[kept]] = binned.other[kept] / (1 + pooled)
    if pooled:
        counts[other[kept], one[kept]] = binned.other[kept] / 2
    return counts


def renamed_trials(scores: FloatArray, own: IntArray, *, seed: int) -> Permuted:
    """Trials of all models (rows) with all recordings (columns) under permuted names, in 1,024
    quantiles of the scores: D_ECE, l_w and EER in the columns named above. ``own`` is the model of
    each recording's speaker, −1 where that is not enrolled.
    """
    known = np.flatnonzero(own >= 0)
    people, owner = np.unique(own[known], return_inverse=True)
    edges = np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1], method="inverted_cdf")
    codes = np.searchsorted(np.unique(edges), scores, side="right")
    bins = int(codes.max()) + 1
    renaming = Renaming.of(len(people), seed)
    bears = people[renaming.rows][:, owner]
    cells = codes[bears, known] + bins * np.arange(len(bears))[:, None]
    target = np.bincount(cells.ravel(), minlength=bins * len(bears)).reshape(-1, bins)
    nontarget = np.bincount(codes.ravel(), minlength=bins) - target
    both = target.astype(np.float64), nontarget.astype(np.float64)
    oracles = [oracle(*row) for row in zip(*both, strict=True)]
    llr, bare, eer = (np.stack(column) for column in zip(*oracles, strict=True))
    numbers = np.full((len(bears), 4), np.nan)
    numbers[:, D_ECE] = disclosed(bare, *both)[0]
    numbers[:, L_W] = np.abs(llr).max(axis=1) / np.log(10)
    numbers[:, EER] = eer
    return Permuted(numbers, len(people), renaming.exhaustive)


def lucks_of_trials(attacks: Sequence[Permuted]) -> dict[str, Luck]:
    """What luck reads of the strongest of some attacks, by metric: the largest D_ECE, the l_w of
    that attack, the lowest EER.
    """
    table = np.stack([one.values for one in attacks])
    most, rows = table[:, :, D_ECE].argmax(axis=0), np.arange(table.shape[1])
    best = {
        "d_ece": (table[most, rows, D_ECE], False),
        "l_w": (table[most, rows, L_W], False),
        "eer": (table[:, :, EER].min(axis=0), True),
    }
    told = {
        n: best_by_luck(one, attacks[0], len(table), least=low) for n, (one, low) in best.items()
    }
    return {name: luck for name, luck in told.items() if luck is not None}
