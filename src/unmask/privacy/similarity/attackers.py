"""Attackers of one safeguard under one recogniser: the score as it is, negated, centred, or both;
and others, who align the two sides or bring a back-end, each read both ways.

They compete. One that is no better than chance for all may look better by chance for some, so a
competitor counts only where it beats the plain score by more than resampling the speakers moves the
difference, at a level that allows for the number of competitors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unmask.base import BoolArray, FloatArray
from unmask.estimate import Estimate
from unmask.privacy.similarity.matrix import (
    Replicates,
    SimilaritySet,
    dominance,
    speaker_dominance,
)
from unmask.privacy.similarity.pairs import (
    LLR,
    PRODUCT,
    Block,
    EmbeddingPairs,
    MatrixPairs,
    PairSource,
    Scoring,
    Segments,
)
from unmask.privacy.similarity.resampling import Ends, Resampled, Setup, Statistic, lost, ratio
from unmask.run import NUMPY, ranges_of
from unmask.scoring import TILE_ROWS

PLAIN, NEGATED, CENTRED = "plain", "negated", "centred"
OWN_SETS = ("oo", "op", "pp")
"""The three of the papers; any other is an attack on the OP comparisons."""
LEAST_DIFFERENCE = 0.01
_FALSELY_NAMED = 0.05


@dataclass(frozen=True, eq=False)
class Attack:
    """One way to read the OP scores: its matrix, and what resamples of the speakers give.

    Made by :func:`attacks_of`; ``reference`` are the OO scores, whose dominance is the whole.
    """

    name: str
    matrix: FloatArray
    resampled: Resampled | None
    reference: SimilaritySet
    reference_resampled: Resampled | None

    @cached_property
    def signed(self) -> float:
        return dominance(self.matrix)

    @property
    def deid(self) -> float:
        """DeID = 1 − D_diag(OP)/D_diag(OO) as this attacker finds it (Noé 2022, eq. 9)."""
        return 1 - abs(self.signed) / self.reference.d_diag

    def statistic(self, replicates: int) -> Statistic | None:
        """DeID as the ratio of signed dominances that its interval is made from."""
        if self.resampled is None or self.reference_resampled is None:
            return None
        drawn = self.resampled.signed, self.reference_resampled.signed
        return Statistic(*ratio(self.signed, self.reference.signed, *drawn), replicates, lost)

    def beats(self, plain: Attack, level: float, replicates: int) -> bool:
        """Whether the interval of the difference of the two stays above 0."""
        value = (abs(self.signed) - abs(plain.signed)) / self.reference.signed
        if value < LEAST_DIFFERENCE:
            return False
        if self.resampled is None or plain.resampled is None or self.reference_resampled is None:
            return True
        drawn = np.abs(self.resampled.signed) - np.abs(plain.resampled.signed)
        of, drawn_of = self.reference.signed, self.reference_resampled.signed
        values = ratio(value * of, of, drawn, drawn_of)
        ends = Statistic(*values, replicates).ends(len(self.reference.speakers), level)
        return ends is None or ends[0] > 0


def attacks_of(
    sets: Mapping[str, SimilaritySet], drawn: Mapping[str, Replicates]
) -> dict[str, Attack]:
    """All attacks that the sets allow, the plain one first."""
    oo = drawn["oo"].plain if drawn else None
    attacks = {}
    for name in ("op", *(name for name in sets if name not in OWN_SETS)):
        plain, negated = (PLAIN, NEGATED) if name == "op" else (name, f"{name} {NEGATED}")
        own, values = sets[name], drawn.get(name)
        assert own.negated is not None
        both = (None, None) if values is None else (values.plain, values.negated)
        attacks[plain] = Attack(plain, own.matrix, both[0], sets["oo"], oo)
        attacks[negated] = Attack(negated, own.negated, both[1], sets["oo"], oo)
    return attacks


def strongest_of(attacks: Mapping[str, Attack], setup: Setup) -> Attack:
    """The attack that leaves least de-identification, the plain one unless another beats it."""
    chosen = plain = attacks[PLAIN]
    level = 1 - (1 - setup.level) / (len(attacks) - 1)
    for attack in attacks.values():
        if abs(attack.signed) > abs(chosen.signed) and attack.beats(plain, level, setup.replicates):
            chosen = attack
    return chosen


@dataclass(frozen=True, eq=False)
class StrongestAttack:
    """The attacker who finds most: ``deid`` is what is left of de-identification against it.

    ``tried`` are all who competed. The lowest DeID of several errs towards more risk.
    """

    attacker: str
    deid: Estimate
    tried: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SpeakerProtection:
    """One value per speaker, under the attacker who finds most; a part of ``Pseudonymisation``.

    ``deid`` averages to DeID under that ``attacker``; ``low`` and ``high`` are its interval, over
    draws of the other speakers, NaN where there is none. ``named`` are those whose protected voice
    points to them more than strangers' voices do by chance, and more than the average speaker's.
    ``d_ece`` and ``l_w`` are those of the speaker's OP comparisons.
    """

    speakers: tuple[str, ...]
    attacker: str
    deid: FloatArray
    low: FloatArray
    high: FloatArray
    named: BoolArray
    self_similarity: Mapping[str, FloatArray]
    d_ece: FloatArray
    l_w: FloatArray

    def worst(self, number: int = 5) -> tuple[str, ...]:
        """The least protected speakers first, of those who differ by more than noise."""
        order = np.argsort(self.deid, kind="stable")
        return tuple(self.speakers[i] for i in order if self.named[i])[:number]


def protection_of(
    attack: Attack, sets: Mapping[str, SimilaritySet], setup: Setup
) -> SpeakerProtection:
    """Who is left unprotected against an attack: DeID_i = 1 ∓ d_i(OP)/D_diag(OO), with d_i the
    speaker's share of the signed difference and the sign that of the whole, so that the values
    average to DeID.
    """
    oo, op = attack.reference, sets["op"]
    share = speaker_dominance(attack.matrix)
    sign = -1.0 if share.mean() < 0 else 1.0
    deid = 1 - sign * share / oo.d_diag
    low, high = np.full(share.size, np.nan), np.full(share.size, np.nan)
    if attack.resampled is not None and attack.reference_resampled is not None:
        for i in range(share.size):
            drawn = sign * attack.resampled.share[:, i].astype(np.float64)
            drawn_of = attack.reference_resampled.signed
            values = ratio(sign * share[i], oo.signed, drawn, drawn_of)
            ends = Statistic(*values, setup.replicates, _less).ends(share.size, setup.level)
            if ends is not None:
                low[i], high[i] = ends
    below = (high < deid.mean()) | np.isnan(high)
    return SpeakerProtection(
        oo.speakers,
        attack.name,
        deid,
        low,
        high,
        standing_out(attack.matrix) & below,
        {name: sets[name].self_similarity for name in ("oo", "op", "pp")},
        op.speaker_d_ece,
        op.speaker_l_w,
    )


def _less(ends: Ends) -> Ends:
    """Of one minus the value, its sign kept."""
    return 1 - ends[1], 1 - ends[0]


def standing_out(matrix: FloatArray) -> BoolArray:
    """Speakers whose own similarity lies farther above that to others than any two different
    speakers' does but by chance: the share of such pairs is 5 % over the number of speakers.
    """
    speakers = len(matrix)
    off = ~np.eye(speakers, dtype=bool) & ~np.isnan(matrix)
    usual = np.nanmean(np.where(off, (matrix + matrix.T) / 2, np.nan), axis=1)
    excess = matrix - (usual[:, None] + usual) / 2
    bar = np.quantile(excess[off], 1 - _FALSELY_NAMED / speakers, method="higher")
    return np.asarray(np.diag(excess) > bar)


def centred(source: PairSource, segments: Segments) -> PairSource | None:
    """The same comparisons with their scores centred; None where a mean is infinite.

    The centred score is s(a, b) − mean s(a, ·) − mean s(·, b), no pair of a segment with itself
    among the means. For cosines this is the product of vectors from which the mean of their own
    side was subtracted (less a constant). It needs no labels, so any attacker can do it, and it
    undoes whatever a safeguard adds to all voices alike.
    """
    if isinstance(source, EmbeddingPairs) and isinstance(source.score, str):
        return _centred_products(source)
    rows, columns = _means(source, len(segments))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        return None
    if isinstance(source, EmbeddingPairs):
        enrol, test = (
            np.column_stack([vectors, -mean])
            for vectors, mean in ((source.enrol, rows), (source.test, columns))
        )
        assert not isinstance(source.score, str)
        return EmbeddingPairs(_with_offsets(source.score), enrol, test)
    return MatrixPairs(source.matrix, segments, rows, columns)


def _centred_products(source: EmbeddingPairs) -> EmbeddingPairs:
    """Means of products are products with means: they take the place of the own terms."""
    own = 0 if source.score == PRODUCT else 1
    enrol, test = (rows[:, : rows.shape[1] - own] for rows in (source.enrol, source.test))
    number = len(enrol) - 1
    both = (enrol * test).sum(axis=1)
    rows = (enrol @ test.sum(axis=0) - both) / number
    columns = (test @ enrol.sum(axis=0) - both) / number
    if own:
        rows += (source.test[:, -1].sum() - source.test[:, -1]) / number
        columns += (source.enrol[:, -1].sum() - source.enrol[:, -1]) / number
    return EmbeddingPairs(LLR, np.column_stack([enrol, -rows]), np.column_stack([test, -columns]))


def _means(source: PairSource, size: int) -> tuple[FloatArray, FloatArray]:
    """Mean score of every row and of every column, self-comparisons and NaN left out."""
    rows, columns, number = np.zeros(size), np.zeros(size), np.zeros((2, size))
    with np.errstate(invalid="ignore"):
        for top, bottom in ranges_of(size, TILE_ROWS):
            block = np.array(source.scores(NUMPY, (top, bottom), (0, size)), dtype=np.float64)
            block[np.arange(bottom - top), np.arange(top, bottom)] = np.nan
            known = ~np.isnan(block)
            block[~known] = 0.0
            rows[top:bottom] = block.sum(axis=1)
            columns += block.sum(axis=0)
            number[0, top:bottom] = known.sum(axis=1)
            number[1] += known.sum(axis=0)
        return rows / np.maximum(number[0], 1), columns / np.maximum(number[1], 1)


def _with_offsets(score: Callable[[Any, Any], Any]) -> Scoring:
    """A back-end's scores plus the last column of either side."""

    def scored(enrol: Block, test: Block) -> Block:
        return np.asarray(score(enrol[:, :-1], test[:, :-1]) + enrol[:, -1:] + test[:, -1])

    return scored
