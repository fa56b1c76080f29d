"""Attackers of one safeguard under one recogniser: the score as it is, negated, centred, or both;
and others, who align the two sides or bring a back-end, each read both ways.

Whatever is fitted on the recordings themselves is fitted on originals of one half of each
speaker's utterances and protected speech of the other, and judged on just these. All compete, and
the one that leaves least de-identification is the strongest. The lowest of several errs towards
more risk: whether it beats the plain score by more than resampling the speakers moves the
difference, at a level that allows for their number, is said beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unmask.base import BoolArray, FloatArray
from unmask.estimate import Estimate, Luck
from unmask.privacy.attack import NEGATED, PLAIN, WORDS
from unmask.privacy.luck import best_by_luck
from unmask.privacy.similarity.matrix import AttackedMatrix, Comparisons, speaker_dominance
from unmask.privacy.similarity.renamed import SIGNED, lucks_of_trials

SETS = ("oo", "op", "pp")
"""The three of the papers; any other is an attack on the OP comparisons."""
LEAST_DIFFERENCE = 0.01
_FALSELY_NAMED = 0.05
_PLACES = 9


def attacks_of(made: Comparisons) -> dict[str, AttackedMatrix]:
    """All attacks that the sets allow, the plain one first."""
    attacks: dict[str, AttackedMatrix] = {}
    for name in ("op", *(name for name in made.readings if name not in SETS)):
        labels = (str(PLAIN), str(NEGATED)) if name == "op" else (name, f"{name} {NEGATED}")
        attacks |= zip(labels, made.readings[name], strict=True)
    return attacks


def competing_attacks(made: Comparisons) -> dict[str, AttackedMatrix]:
    """All attacks but that by words alone, which stands beside them, and negated ratios."""
    beside = {WORDS, f"{WORDS} {NEGATED}", *(f"{name} {NEGATED}" for name in made.one_way)}
    return {name: attack for name, attack in attacks_of(made).items() if name not in beside}


def strongest_of(attacks: Mapping[str, AttackedMatrix], made: Comparisons) -> tuple[str, bool]:
    """The attack that leaves least de-identification, and whether it beats the plain one: the
    interval of the difference of the two stays above 0, and it is worth a word.
    """
    name = max(attacks, key=lambda label: round(abs(attacks[label].signed), _PLACES))
    chosen, plain, oo = attacks[name], attacks[PLAIN], made.sets["oo"]
    difference = abs(chosen.signed) - abs(plain.signed)
    if difference / oo.signed < LEAST_DIFFERENCE:
        return name, False
    if chosen.resampled is None:
        return name, True
    drawn = np.abs(chosen.draws.signed) - np.abs(plain.draws.signed)
    level = 1 - (1 - made.setup.level) / (len(attacks) - 1)
    ends = made.over_oo(difference, drawn).ends(len(oo.speakers), level)
    return name, ends is None or ends[0] > 0


def lucks_of(
    attacks: Mapping[str, AttackedMatrix], made: Comparisons, of: str = "strongest"
) -> dict[str, Luck]:
    """What luck reads of the strongest of all attacks, by metric; l_w is that of the attack with
    the largest D_ECE. ``of`` ends the names of the metrics.
    """
    blind = [matrix.permuted for matrix in attacks.values() if matrix.permuted is not None]
    if len(blind) < len(attacks):
        return {}
    signed = np.max([permuted.values[:, SIGNED] for permuted in blind], axis=0)
    deid = best_by_luck(1 - signed / made.sets["oo"].d_diag, blind, least=True)
    others = {f"{name}_{of}": luck for name, luck in lucks_of_trials(blind).items()}
    return others if deid is None else {f"deid_{of}": deid, **others}


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
    ``d_ece`` and ``l_w`` are those of the speaker's OP comparisons, ``matrix`` is what the attacker
    finds of OP.
    """

    speakers: tuple[str, ...]
    attacker: str
    matrix: FloatArray = field(repr=False)
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


def protection_of(name: str, attack: AttackedMatrix, made: Comparisons) -> SpeakerProtection:
    """Who is left unprotected against an attack: DeID_i = 1 ∓ d_i(OP)/D_diag(OO), with d_i the
    speaker's share of the signed difference and the sign that of the whole, so that the values
    average to DeID.
    """
    sets, level = made.sets, made.setup.level
    oo, op = sets["oo"], sets["op"]
    share = speaker_dominance(attack.matrix)
    sign = -1.0 if share.mean() < 0 else 1.0
    deid = 1 - sign * share / oo.d_diag
    low, high = np.full(share.size, np.nan), np.full(share.size, np.nan)
    if attack.resampled is not None:
        for i, drawn in enumerate(attack.resampled.share.T.astype(np.float64)):
            own = made.over_oo(
                sign * share[i], sign * drawn, separates_everybody=attack.separates_everybody
            )
            ends = own.ends(share.size, level)
            if ends is not None:
                low[i], high[i] = 1 - ends[1], 1 - ends[0]
    below = (high < deid.mean()) | np.isnan(high)
    return SpeakerProtection(
        oo.speakers,
        name,
        attack.matrix,
        deid,
        low,
        high,
        standing_out(attack.matrix) & below,
        {name: sets[name].self_similarity for name in SETS},
        op.speaker_d_ece,
        op.speaker_l_w,
    )


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
