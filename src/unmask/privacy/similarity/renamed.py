"""Similarity sets with the names of the protected speakers permuted, from their counts in bins.

The order of the scores never changes: with the comparisons of every two speakers counted in bins,
those of one speaker are other cells of the same table, and PAV is fitted to them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unmask.base import FloatArray, IntArray, Lookup, in_order
from unmask.estimate import Luck
from unmask.privacy.luck import Permuted, Renaming, best_by_luck, some_people
from unmask.privacy.similarity.resampling import Oracles
from unmask.run import NUMPY, Range
from unmask.scoring import PairGrid, Tile

MOST_PEOPLE = 128
BINS = 1024
SIGNED, D_ECE, L_W, EER = range(4)
"""Columns of what permuted names give: the modulus of the dominance, D_ECE, l_w and EER."""
_SAMPLE = 1 << 18


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


def renamed(pairs: PairGrid, *, mean: str, seed: int) -> tuple[Renamed, Renamed]:
    """A set and its negated scores under permuted names, of some people where they are many."""
    chosen = some_people(pairs.enrol.size, MOST_PEOPLE, seed)
    if pairs.enrol.names:  # drawn in the order of names, not in that of rows
        chosen = np.argsort(in_order(pairs.enrol.names), kind="stable")[chosen]
    return renamed_counts(_counted(pairs, chosen), mean=mean, seed=seed)


def _counted(pairs: PairGrid, chosen: IntArray) -> npt.NDArray[np.float32]:
    """Comparisons of pairs of the groups ``chosen`` in bins, quantiles of the scores of all."""
    columns = pairs.test.rows(chosen)
    strips = [
        (int(pairs.enrol.first[one]), int(pairs.enrol.first[one] + pairs.enrol.counts[one]))
        for one in chosen
    ]

    def scored(rows: Range) -> FloatArray:
        """Scores of some rows with those of the chosen people; NaN where they do not count."""
        tile = Tile(NUMPY, pairs, rows, (0, len(pairs.test)))
        known = tile.skip(np.ones((rows[1] - rows[0], len(pairs.test)), dtype=bool), False)
        return np.where(known, tile.scores, np.nan)[:, columns]

    step = max(1, len(strips) * len(columns) * (strips[0][1] - strips[0][0]) // _SAMPLE)
    drawn = {rows: scored(rows) for rows in strips[::step]}
    sample = np.concatenate([scores.ravel() for scores in drawn.values()])
    edges = quantiles(sample[~np.isnan(sample)])
    lookup, bins = Lookup(edges), edges.size + 1
    place = np.full(pairs.test.size, -1)
    place[chosen] = np.arange(len(chosen))
    first = place[pairs.test.codes[columns]] * bins
    counts = np.empty((len(chosen), len(chosen) * bins), dtype=np.float32)
    for row, rows in enumerate(strips):
        scores = drawn.pop(rows) if rows in drawn else scored(rows)
        cells = np.where(np.isnan(scores), counts.shape[1], lookup(scores) + first)
        counts[row] = np.bincount(cells.ravel(), minlength=counts.shape[1] + 1)[:-1]
    return counts.reshape(len(chosen), len(chosen), bins)


def renamed_between(
    pairs: PairGrid, speakers: IntArray, sessions: IntArray, *, mean: str, seed: int
) -> tuple[Permuted, Permuted] | None:
    """Comparisons between sessions and their negated scores, the names permuted in each session by
    itself: the modulus of the dominance, D_ECE, l_w and EER in the columns named above.

    Groups of ``pairs`` are what a speaker said in a session; ``speakers`` and ``sessions`` tell of
    whom and in which. None where they are too many.
    """
    if len(speakers) > MOST_PEOPLE:
        return None
    counts = _counted(pairs, np.arange(len(speakers)))
    names = speakers[Renaming.of(len(speakers), seed, sessions).rows]
    bears = names[:, :, None] == np.arange(int(speakers.max()) + 1)
    same = names[:, :, None] == names[:, None]
    flat = counts.reshape(-1, counts.shape[2])
    target = (same.reshape(len(names), -1).astype(np.float32) @ flat).astype(np.float64)
    nontarget = flat.sum(axis=0, dtype=np.float64) - target
    number = counts.sum(axis=2)
    made = []
    for sign in (1, -1):
        oracles = Oracles.of(target, nontarget, mean, sign)
        values = _numbers(oracles)
        totals = (oracles.per_bin.astype(np.float32) @ flat.T).reshape(-1, *number.shape)
        for row, (one, total) in enumerate(zip(bears, totals, strict=True)):
            transposed = one.T.astype(np.float32)
            sums = transposed @ total @ transposed.T
            with np.errstate(invalid="ignore"):
                logs = sums / (transposed @ number @ transposed.T)
            matrix = expit(logs) if mean == "arithmetic" else np.exp(logs)
            off = ~np.eye(len(matrix), dtype=bool)
            values[row, SIGNED] = abs(np.nanmean(np.diag(matrix)) - np.nanmean(matrix[off]))
        made.append(Permuted(values, len(matrix)))
    return made[0], made[1]


def renamed_list(
    scores: FloatArray, enrol: IntArray, test: IntArray, people: int, *, mean: str, seed: int
) -> tuple[Renamed, Renamed]:
    """The same of a list of trials by the speakers on both sides."""
    chosen = some_people(people, MOST_PEOPLE, seed)
    place = np.full(people, -1)
    place[chosen] = np.arange(len(chosen))
    kept = (place[enrol] >= 0) & (place[test] >= 0)
    scores, one, other = scores[kept], place[enrol[kept]], place[test[kept]]
    edges = quantiles(scores)
    shape = len(chosen), len(chosen), edges.size + 1
    cells = (one * shape[1] + other) * shape[2] + Lookup(edges)(scores)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return renamed_counts(counts.astype(np.float32), mean=mean, seed=seed)


def renamed_counts(
    counts: npt.NDArray[np.float32], *, mean: str, seed: int
) -> tuple[Renamed, Renamed]:
    """The same from the comparisons of every ordered pair of speakers, counted in bins. Who are
    compared with the same others only are a group, within which names stay.
    """
    people, bins = len(counts), counts.shape[2]
    groups = np.unique(counts.any(axis=2), axis=0, return_inverse=True)[1]
    renaming = Renaming.of(people, seed, groups)
    target = np.stack([counts[np.arange(people), row].sum(axis=0) for row in renaming.rows])
    target = target.astype(np.float64)
    nontarget = counts.sum(axis=(0, 1), dtype=np.float64) - target
    flat, number = counts.reshape(-1, bins), counts.sum(axis=2).reshape(-1)
    made = []
    for sign in (1, -1):
        oracles = Oracles.of(target, nontarget, mean, sign)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = (oracles.per_bin.astype(np.float32) @ flat.T) / number
            if mean == "arithmetic":
                logs = np.log(expit(logs))
        made.append(Renamed(logs.reshape(-1, people, people), _numbers(oracles), renaming))
    return made[0], made[1]


def _numbers(oracles: Oracles) -> FloatArray:
    """D_ECE, l_w and EER of every row in their columns."""
    numbers = np.full((len(oracles.eer), 4), np.nan)
    numbers[:, D_ECE], numbers[:, EER] = oracles.d_ece, oracles.eer
    numbers[:, L_W] = np.abs(oracles.llr).max(axis=1) / np.log(10)
    return numbers


def quantiles(scores: FloatArray) -> FloatArray:
    """Edges of 1,024 bins with equally many scores, fewer where scores are equal."""
    shares = np.linspace(0, 1, BINS + 1)[1:-1]
    places = np.ceil(scores.size * shares - 1).astype(np.int64)
    return np.unique(np.sort(scores, axis=None)[np.maximum(places, 0)])


def renamed_trials(
    scores: FloatArray,
    own: IntArray,
    *,
    seed: int,
    groups: IntArray | None = None,
    names: Sequence[str] = (),
) -> Permuted:
    """Trials of all models (rows) with all recordings (columns) under permuted names, in 1,024
    quantiles of the scores: D_ECE, l_w and EER in the columns named above. ``own`` is the model of
    each recording's speaker, −1 where that is not enrolled; ``groups`` of the models are those that
    names stay within, and pairs of two groups (−inf) do not count. ``names`` of the models, where
    they are told, are permuted in their own order, not in that of rows.
    """
    known = np.flatnonzero(own >= 0)
    people, owner = np.unique(own[known], return_inverse=True)
    if names:
        order = np.argsort(in_order(names)[people])
        people, owner = people[order], np.argsort(order)[owner]
    compared = slice(None) if groups is None else np.isfinite(scores)
    lookup = Lookup(quantiles(scores[compared]))
    codes, bins = lookup(scores), lookup.boundaries.size + 1
    renaming = Renaming.of(len(people), seed, None if groups is None else groups[people])
    bears = people[renaming.rows][:, owner]
    cells = codes[bears, known] + bins * np.arange(len(bears))[:, None]
    target = np.bincount(cells.ravel(), minlength=bins * len(bears)).reshape(-1, bins)
    nontarget = np.bincount(codes[compared].ravel(), minlength=bins) - target
    numbers = _numbers(Oracles.of(target.astype(np.float64), nontarget.astype(np.float64)))
    return Permuted(numbers, len(people), renaming.exhaustive)


def lucks_of_trials(attacks: Sequence[Permuted]) -> dict[str, Luck]:
    """What luck reads of the strongest of some attacks: D_ECE, its l_w, and the lowest EER."""
    table = np.stack([permuted.values for permuted in attacks])
    most, rows = table[:, :, D_ECE].argmax(axis=0), np.arange(table.shape[1])
    best = {
        "d_ece": (table[most, rows, D_ECE], False),
        "l_w": (table[most, rows, L_W], False),
        "eer": (table[:, :, EER].min(axis=0), True),
    }
    made = {}
    for name, (one, low) in best.items():
        luck = best_by_luck(one, attacks, least=low)
        if luck is not None:
            # l_w follows the number of bins: what was found on them stands beside its level.
            found = float(one[0]) if name == "l_w" else None
            made[name] = replace(luck, found=found)
    return made
