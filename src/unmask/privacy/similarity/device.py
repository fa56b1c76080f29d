"""Sets of comparisons on a torch device: scores of some rows against all segments, in strips.

Products are in double precision and their shapes are the same in all passes, so a score has the
same bits whenever it is computed. Torch is imported when a device is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.privacy.similarity.pairs import EmbeddingPairs, Pairs, Sessions
from unmask.privacy.similarity.sets import PairSets
from unmask.run import Range, tensor
from unmask.scoring import TILE_ROWS, llr_block

STRIP = 1 << 24


@dataclass(frozen=True, eq=False)
class Strip:
    """Tensors of rows × all segments: scores, which pairs count, which have one speaker."""

    rows: Range
    scores: Any
    kept: Any
    same: Any


@dataclass(frozen=True, eq=False)
class DeviceSets:
    """Arrays of all sets on a device, each once; score matrices go there strip by strip."""

    sets: PairSets
    device: str
    held: dict[int, Any]

    @classmethod
    def of(cls, sets: PairSets, device: str) -> DeviceSets:
        opened = cls(sets, device, {})
        arrays: list[npt.NDArray[Any]] = [sets.segments.codes]
        for pairs in sets.pairs:
            if isinstance(pairs.source, EmbeddingPairs):
                arrays += [pairs.source.enrol, pairs.source.test]
            if pairs.rule is not None:
                arrays.append(pairs.rule.codes)
        for array in arrays:
            if id(array) not in opened.held:
                opened.held[id(array)] = opened.put(array)
        return opened

    def put(self, array: npt.NDArray[Any]) -> Any:
        """A copy on the device."""
        return tensor(array, self.device)

    def on(self, array: npt.NDArray[Any]) -> Any:
        """What :meth:`of` has put there."""
        return self.held[id(array)]

    def strips(self, rows: Range) -> Iterator[Strip]:
        """Rows of the common numbering, in strips on a fixed grid within the tiles."""
        number, (start, stop) = self.sets.located(rows)
        pairs, codes = self.sets.pairs[number], self.on(self.sets.segments.codes)
        step = TILE_ROWS
        while step > 1 and step * len(codes) > STRIP:
            step //= 2
        for top in range(start, stop, step):
            part = top, min(top + step, stop)
            same = codes[slice(*part), None] == codes
            yield Strip(part, self._scores(pairs, part), self._kept(pairs, part), same)

    def _scores(self, pairs: Pairs, rows: Range) -> Any:
        source = pairs.source
        if not isinstance(source, EmbeddingPairs):
            block = source.scores(rows, (0, len(pairs.segments)))
            return self.put(block.astype(np.float64, copy=False))
        enrol, test = self.on(source.enrol)[slice(*rows)], self.on(source.test)
        if source.score is not llr_block:
            return enrol @ test.T
        return enrol[:, :-1] @ test[:, :-1].T + enrol[:, -1:] + test[:, -1]

    def _kept(self, pairs: Pairs, rows: Range) -> Any:
        import torch

        size = len(pairs.segments)
        kept = torch.ones((rows[1] - rows[0], size), dtype=torch.bool, device=self.device)
        if pairs.rule is not None:
            codes = self.on(pairs.rule.codes)
            one = codes[slice(*rows), None]
            if not isinstance(pairs.rule, Sessions):
                kept = one < codes
            else:
                kept = one == codes if pairs.rule.within else one != codes
        both = torch.arange(*rows, device=self.device)
        kept[both - rows[0], both] = False
        return kept
