"""Attackers of one safeguard under one recogniser: the score as it is, negated, centred, or both;
and others, who align the two sides or bring a back-end, each read both ways.

Whatever is fitted on the recordings themselves is fitted on originals of one half of each
speaker's utterances and protected speech of the other, and judged on just these. All compete, and
the one that leaves least de-identification is the strongest. The lowest of several errs towards
more risk: whether it beats the plain score by more than resampling the speakers moves the
difference, at a level that allows for their number, is said beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unmask.base import BoolArray, FloatArray
from unmask.engine import Roc, Zebra, zebra_of
from unmask.estimate import Estimate, Luck
from unmask.privacy.attack import NEGATED, PLAIN
from unmask.privacy.luck import Permuted, best_by_luck
from unmask.privacy.similarity.intervals import Ends, Statistic, ratio, same
from unmask.privacy.similarity.matrix import Comparisons, dominance, speaker_dominance
from unmask.privacy.similarity.renamed import SIGNED, lucks_of_trials
from unmask.privacy.similarity.resampling import PairDraws

OWN_SETS = ("oo", "op", "pp")
"""The three of the papers; any other is an attack on the OP comparisons."""
LEAST_DIFFERENCE = 0.01
_FALSELY_NAMED = 0.05
_PLACES = 9


@dataclass(frozen=True, eq=False)
class AttackedMatrix:
    """One way to read the OP scores: its matrix, what resamples of the speakers give for it, and
    the comparisons it is one of, whose OO scores have the whole dominance. ``rocs`` are the
    statistics of its scores, two where it was fitted on either half of the utterances; ``permuted``
    has what it reads with the names of the speakers permuted.
    """

    name: str
    matrix: FloatArray
    resampled: PairDraws | None
    made: Comparisons
    rocs: tuple[Roc, ...]
    permuted: Permuted | None = None

    @cached_property
    def signed(self) -> float:
        return dominance(self.matrix)

    @property
    def deid(self) -> float:
        """DeID = 1 − D_diag(OP)/D_diag(OO) under this attacker (Noé 2022, eq. 9)."""
        return 1 - abs(self.signed) / self.made.sets["oo"].d_diag

    @cached_property
    def d_ece(self) -> float:
        """D_ECE, the mean of both ways."""
        return float(np.mean([roc.d_ece() for roc in self.rocs]))

    @cached_property
    def eer(self) -> float:
        """EER, the mean of both ways."""
        return float(np.mean([roc.eer() for roc in self.rocs]))

    @cached_property
    def worst(self) -> Zebra:
        """The way with the larger l_w."""
        return max((zebra_of(roc) for roc in self.rocs), key=lambda one: one.l_w)

    def over_oo(
        self, value: float, drawn: FloatArray, read: Callable[[Ends], Ends] = same
    ) -> Statistic:
        """A number over the dominance of OO, from which an interval is made."""
        of, drawn_of = self.made.sets["oo"].signed, self.made.plain["oo"].signed
        return Statistic(*ratio(value, of, drawn, drawn_of), self.made.setup.replicates, read)

    def beats(self, plain: AttackedMatrix, level: float) -> bool:
        """Whether the interval of the difference of the two stays above 0, and is worth a word."""
        value = (abs(self.signed) - abs(plain.signed)) / self.made.sets["oo"].signed
        if value < LEAST_DIFFERENCE:
            return False
        if self.resampled is None or plain.resampled is None:
            return True
        oo = self.made.sets["oo"]
        drawn = np.abs(self.resampled.signed) - np.abs(plain.resampled.signed)
        ends = self.over_oo(value * oo.signed, drawn).ends(len(oo.speakers), level)
        return ends is None or ends[0] > 0


def attacks_of(made: Comparisons) -> dict[str, AttackedMatrix]:
    """All attacks that the sets allow, the plain one first."""
    attacks: dict[str, AttackedMatrix] = {}
    halves = {half for both in made.ways.values() for half in both}
    others = [name for name in made.sets if name not in (*OWN_SETS, *halves)]
    for name in ("op", *others, *made.ways):
        plain, negated = (str(PLAIN), str(NEGATED)) if name == "op" else (name, f"{name} {NEGATED}")
        ways = [made.sets[way] for way in made.ways.get(name, (name,))]
        rocs = tuple(way.roc for way in ways)
        opposite = tuple(roc.negated() for roc in rocs)
        matrices = (
            [way.matrix for way in ways],
            [way.negated for way in ways if way.negated is not None],
        )
        drawn = (
            [kept[way.name] for way in ways if way.name in kept]
            for kept in (made.plain, made.negated)
        )
        blind = made.permuted.get(name, (None, None))
        for label, some, one, counts, luck in zip(
            (plain, negated), matrices, drawn, (rocs, opposite), blind, strict=True
        ):
            attacks[label] = replace(_joined(label, some, one, made, counts), permuted=luck)
    return attacks


def _joined(
    name: str,
    matrices: Sequence[FloatArray],
    drawn: Sequence[PairDraws],
    made: Comparisons,
    rocs: tuple[Roc, ...],
) -> AttackedMatrix:
    """One attack from its only way, or from two: logarithms of similarities averaged cell by
    cell.
    """
    if len(matrices) == 1:
        return AttackedMatrix(name, matrices[0], drawn[0] if drawn else None, made, rocs)
    whole = np.exp(np.mean(np.log(matrices), axis=0))
    resampled = drawn[0].mean_with(drawn[1]) if drawn else None
    if resampled is not None:
        moved = dominance(whole) - np.mean([dominance(one) for one in matrices])
        shares = speaker_dominance(whole) - np.mean(
            [speaker_dominance(m) for m in matrices], axis=0
        )
        resampled = replace(
            resampled,
            signed=resampled.signed + moved,
            share=(resampled.share + shares).astype(np.float32),
        )
    return AttackedMatrix(name, whole, resampled, made, rocs)


def strongest_of(attacks: Mapping[str, AttackedMatrix]) -> tuple[AttackedMatrix, bool]:
    """The attack that leaves least de-identification, and whether it beats the plain one."""
    plain = attacks[PLAIN]
    chosen = max(attacks.values(), key=lambda attack: round(abs(attack.signed), _PLACES))
    level = 1 - (1 - plain.made.setup.level) / (len(attacks) - 1)
    return chosen, chosen.beats(plain, level)


def lucks_of(attacks: Mapping[str, AttackedMatrix]) -> dict[str, Luck]:
    """What luck reads of the strongest of all attacks, by metric; l_w is that of the attack with
    the largest D_ECE.
    """
    blind = [one.permuted for one in attacks.values() if one.permuted is not None]
    if len(blind) < len(attacks):
        return {}
    whole = next(iter(attacks.values())).made.sets["oo"].d_diag
    signed = np.max([one.values[:, SIGNED] for one in blind], axis=0)
    deid = best_by_luck(1 - signed / whole, blind, least=True)
    others = {f"{name}_strongest": luck for name, luck in lucks_of_trials(blind).items()}
    return others if deid is None else {"deid_strongest": deid, **others}


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


def protection_of(attack: AttackedMatrix) -> SpeakerProtection:
    """Who is left unprotected against an attack: DeID_i = 1 ∓ d_i(OP)/D_diag(OO), with d_i the
    speaker's share of the signed difference and the sign that of the whole, so that the values
    average to DeID.
    """
    sets, level = attack.made.sets, attack.made.setup.level
    oo, op = sets["oo"], sets["op"]
    share = speaker_dominance(attack.matrix)
    sign = -1.0 if share.mean() < 0 else 1.0
    deid = 1 - sign * share / oo.d_diag
    low, high = np.full(share.size, np.nan), np.full(share.size, np.nan)
    if attack.resampled is not None:
        for i, drawn in enumerate(attack.resampled.share.T.astype(np.float64)):
            ends = attack.over_oo(sign * share[i], sign * drawn).ends(share.size, level)
            if ends is not None:
                low[i], high[i] = 1 - ends[1], 1 - ends[0]
    below = (high < deid.mean()) | np.isnan(high)
    return SpeakerProtection(
        oo.speakers,
        attack.name,
        attack.matrix,
        deid,
        low,
        high,
        standing_out(attack.matrix) & below,
        {name: sets[name].self_similarity for name in OWN_SETS},
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
