"""Several sets of comparisons over the same segments, as one job shares them among its tasks.

The rows of all sets are numbered one after the other, each set beginning on the grid of tiles, so
that a task is a range of rows and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray
from unmask.errors import InputError
from unmask.privacy.similarity.pairs import (
    EmbeddingPairs,
    MatrixPairs,
    Pairs,
    PairSource,
    ScoreBlock,
    Sessions,
    Upper,
    score_block_of,
)
from unmask.privacy.similarity.segments import Segments
from unmask.run import Arrays, Range, Where, ranges_of
from unmask.scoring import TILE_ROWS, Backend, llr_block, product_block

SCORES: tuple[ScoreBlock, ...] = (product_block, llr_block)
_MATRIX = -1
_EVERY, _UPPER, _WITHIN, _BETWEEN = range(4)


def check_backend(backend: Backend, where: Where) -> None:
    """Other machines and devices know how to compare cosines and PLDA's LLRs only."""
    if score_block_of(backend) not in SCORES and not (where.in_memory and where.on == "local"):
        raise InputError(
            f"back-end: expected cosine, wccn or plda for what runs on {where.on}"
            f"{' and is kept in a state' if where.state else ''}, found {backend.name}"
        )


@dataclass(frozen=True, eq=False)
class PairSets:
    """Sets of comparisons; all have the same segments."""

    pairs: tuple[Pairs, ...]

    @property
    def segments(self) -> Segments:
        return self.pairs[0].segments

    @property
    def _rows(self) -> int:
        """Rows that one set takes in the common numbering."""
        return -(-len(self.segments) // TILE_ROWS) * TILE_ROWS

    def ranges(self, trials: int) -> list[Range]:
        """Ranges of rows of one set after the other, each of at least so many pairs."""
        size = len(self.segments)
        step = max(1, -(-trials // (TILE_ROWS * size))) * TILE_ROWS
        return [
            (number * self._rows + start, number * self._rows + stop)
            for number in range(len(self.pairs))
            for start, stop in ranges_of(size, step)
        ]

    def located(self, rows: Range) -> tuple[int, Range]:
        """The set that a range belongs to, and the range within it."""
        number, start = divmod(rows[0], self._rows)
        return number, (start, start + rows[1] - rows[0])

    def arrays(self) -> Arrays:
        """Each array once, however many sets share it."""
        held: list[npt.NDArray[Any]] = []

        def place(array: npt.NDArray[Any]) -> int:
            for number, other in enumerate(held):
                if other is array:
                    return number
            held.append(array)
            return len(held) - 1

        plan = [(*_source_row(pairs.source, place), _rule(pairs.rule)) for pairs in self.pairs]
        rules = [pairs.rule for pairs in self.pairs]
        sessions = next((rule.codes for rule in rules if isinstance(rule, Sessions)), None)
        return {
            "plan": np.asarray(plan, dtype=np.int64),
            "order": self.segments.order,
            "codes": self.segments.codes,
            **({} if sessions is None else {"sessions": sessions}),
            **{f"scored-{number}": array for number, array in enumerate(held)},
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        segments = Segments.of_sorted(arrays["order"], arrays["codes"])
        made = []
        for score, *places, rule in arrays["plan"].tolist():
            parts = [arrays[f"scored-{place}"] for place in places if place >= 0]
            source: PairSource
            if score == _MATRIX:
                source = MatrixPairs(parts[0], segments, *parts[1:])
            else:
                source = EmbeddingPairs(SCORES[score], *parts)
            made.append(Pairs(source, segments, _ruled(rule, segments, arrays)))
        return cls(tuple(made))


def _source_row(source: PairSource, place: Any) -> tuple[int, int, int, int]:
    """How the scores of a source come about, and from which arrays; −1 for none."""
    if isinstance(source, MatrixPairs):
        means = (source.row_means, source.column_means)
        rows, columns = (-1 if mean is None else place(mean) for mean in means)
        return _MATRIX, place(source.matrix), rows, columns
    assert isinstance(source, EmbeddingPairs)
    return SCORES.index(source.score), place(source.enrol), place(source.test), -1


def _rule(rule: Upper | Sessions | None) -> int:
    if isinstance(rule, Sessions):
        return _WITHIN if rule.within else _BETWEEN
    return _EVERY if rule is None else _UPPER


def _ruled(rule: int, segments: Segments, arrays: Arrays) -> Upper | Sessions | None:
    if rule == _EVERY:
        return None
    if rule == _UPPER:
        return Upper(segments.order)
    codes: IntArray = arrays["sessions"]
    return Sessions(codes, rule == _WITHIN)
