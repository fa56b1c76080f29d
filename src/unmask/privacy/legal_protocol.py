"""The protocol of Singling Out: folds and draws of test speakers, all from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy.legal_counts import Progress
from unmask.privacy.legal_folds import test_slots
from unmask.privacy.legal_isolation import (
    Best,
    Draw,
    Exact,
    Population,
    Row,
    single_out,
    threshold_ranks,
)

_SIGNS = (1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Protocol:
    """Folds, draws and numbers of speakers, all from one seed."""

    population: Population
    counts: IntArray
    folds: int
    draws: int
    seed: np.random.SeedSequence

    def __post_init__(self) -> None:
        for name in ("folds", "draws"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, found {getattr(self, name)}")

    def run(
        self,
        speakers: IntArray,
        rows: Iterator[tuple[Row, tuple[Exact, ...]]],
        progress: Progress | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Success per enrolment speaker and count, the same for the negated score where there is
        one (−inf, a pair ruled out, stays −inf), and mean k.
        """
        fold_seed, draw_seed = self.seed.spawn(2)
        slots = [
            test_slots(self.population.per_speaker, self.folds, child)
            for child in fold_seed.spawn(self.draws)
        ]
        success = np.full((len(_SIGNS), len(speakers), len(self.counts)), np.nan)
        ranks = np.zeros(len(self.counts))
        seeds = draw_seed.spawn(len(speakers))
        for e, (row, exacts) in enumerate(rows):
            chosen = [
                Draw.of(
                    int(speakers[e]),
                    len(self.population.per_speaker),
                    slots[d],
                    np.random.default_rng(child),
                )
                for d, child in enumerate(seeds[e].spawn(self.draws))
            ]
            for draw in chosen:
                ranks += threshold_ranks(self.population.per_speaker, draw, self.counts)
            for s, exact in enumerate(exacts):
                signed = np.where(row == -np.inf, row, np.float32(_SIGNS[s]) * row)
                best = Best(signed, self.population)
                success[s, e] = single_out(best, exact, chosen, self.counts).mean(axis=0)
            if progress is not None:
                progress(e + 1, len(speakers))
        return success[0], success[1], ranks / (len(speakers) * self.draws)
