"""Attackers of one safeguard under one recogniser: the score as it is, negated, centred, or both.

They compete. One that is no better than chance for all may look better by chance for some, so a
competitor counts only where it beats the plain score by more than resampling the speakers moves the
difference, at a level that allows for the number of competitors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray
from unmask.estimate import Estimate
from unmask.privacy.similarity.intervals import Ends, Statistic, lost, ratio
from unmask.privacy.similarity.matrix import SimilaritySet, dominance, speaker_dominance
from unmask.privacy.similarity.resample import Resampled

PLAIN, NEGATED, CENTRED, CENTRED_NEGATED = "plain", "negated", "centred", "centred negated"
LEAST_DIFFERENCE = 0.01
_FALSELY_NAMED = 0.05


@dataclass(frozen=True, eq=False)
class Attack:
    """One way to read the OP scores: its matrix, and what resamples of the speakers give."""

    name: str
    matrix: FloatArray
    resampled: Resampled | None

    @property
    def signed(self) -> float:
        return dominance(self.matrix)


@dataclass(frozen=True, eq=False)
class StrongestAttack:
    """The attacker who finds most: ``deid`` is what is left of de-identification against him.

    ``tried`` are all who competed. The lowest DeID of several errs towards more risk.
    """

    attacker: str
    deid: Estimate
    tried: tuple[str, ...]


def attacks_of(sets: Mapping[str, SimilaritySet]) -> dict[str, Attack]:
    """All attacks that the sets allow, the plain one first."""
    found = {}
    names = {"op": (PLAIN, NEGATED), "centred": (CENTRED, CENTRED_NEGATED)}
    for name, (plain, turned) in names.items():
        if name not in sets:
            continue
        own = sets[name]
        assert own.negated is not None
        found[plain] = Attack(plain, own.matrix, own.resampled)
        found[turned] = Attack(turned, own.negated, own.resampled_negated)
    return found


def strongest_of(
    attacks: Mapping[str, Attack], oo: SimilaritySet, *, level: float, replicates: int
) -> str:
    """The attack that leaves least de-identification, the plain one unless another beats it."""
    plain = attacks[PLAIN]
    least, chosen = abs(plain.signed), PLAIN
    shared = 1 - (1 - level) / (len(attacks) - 1)
    for name, attack in attacks.items():
        if abs(attack.signed) > least and _beats(attack, plain, oo, shared, replicates):
            least, chosen = abs(attack.signed), name
    return chosen


def _beats(attack: Attack, plain: Attack, oo: SimilaritySet, level: float, replicates: int) -> bool:
    """Whether the interval of the difference of the two stays above 0."""
    value = (abs(attack.signed) - abs(plain.signed)) / oo.signed
    if value < LEAST_DIFFERENCE:
        return False
    if attack.resampled is None or plain.resampled is None or oo.resampled is None:
        return True
    drawn = np.abs(attack.resampled.signed) - np.abs(plain.resampled.signed)
    values = ratio(value * oo.signed, oo.signed, drawn, oo.resampled.signed)
    ends = Statistic(*values, replicates).ends(len(oo.speakers), level)
    return ends is None or ends[0] > 0


@dataclass(frozen=True, eq=False)
class SpeakerProtection:
    """One value per speaker, under the attacker who finds most.

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


def speaker_ends(
    attack: Attack, oo: SimilaritySet, *, level: float, replicates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """DeID of each speaker, and the ends of its interval."""
    share = speaker_dominance(attack.matrix)
    sign = -1.0 if share.mean() < 0 else 1.0
    deid = 1 - sign * share / oo.d_diag
    low, high = np.full(share.size, np.nan), np.full(share.size, np.nan)
    if attack.resampled is not None and oo.resampled is not None:
        for i in range(share.size):
            drawn = sign * attack.resampled.share[:, i].astype(np.float64)
            values = ratio(sign * share[i], oo.signed, drawn, oo.resampled.signed)
            ends = Statistic(*values, replicates, _less).ends(share.size, level)
            if ends is not None:
                low[i], high[i] = ends
    return deid, low, high


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


def deid_statistic(attack: Attack, oo: SimilaritySet, replicates: int) -> Statistic | None:
    """DeID under an attack, as the ratio of signed dominances that its interval is made from."""
    if attack.resampled is None or oo.resampled is None:
        return None
    values = ratio(attack.signed, oo.signed, attack.resampled.signed, oo.resampled.signed)
    return Statistic(*values, replicates, lost)
