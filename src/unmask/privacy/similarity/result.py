"""What the three matrices of a safeguard say: de-identification and voice distinctiveness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unmask.base import FloatArray, few_speakers
from unmask.engine import negated_warnings
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.similarity.attackers import (
    CENTRED,
    CENTRED_NEGATED,
    NEGATED,
    PLAIN,
    Attack,
    SpeakerProtection,
    StrongestAttack,
    attacks_of,
    deid_statistic,
    speaker_ends,
    standing_out,
    strongest_of,
)
from unmask.privacy.similarity.intervals import (
    NOT_ASKED,
    POSITIVE,
    SAME,
    WITH_TRIALS,
    Ends,
    Statistic,
    decibels,
    gain,
    interval_of,
    lost,
    modulus,
    ratio,
)
from unmask.privacy.similarity.matrix import SimilaritySet
from unmask.privacy.similarity.resample import Resampled

SETS = ("oo", "op", "pp")
_LARGEST_D_ECE = 1 / (2 * np.log(2))


@dataclass(frozen=True, eq=False)
class Pseudonymisation:
    """De-identification and gain of voice distinctiveness of one safeguard (Noé 2020, 2022).

    ``deid`` is a fraction, ``g_vd`` in dB. Intervals come from resamples of the speakers, each
    calibrated anew. ``sets`` holds ``oo``, ``op`` and ``pp``, and ``centred``, the OP comparisons
    with their scores centred, where that could be done.
    """

    sets: Mapping[str, SimilaritySet]
    pairs: str
    backend: str | None = None
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    trials: str = ""
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.sets["oo"].d_diag == 0:
            raise InputError(
                "OO: D_diag is 0, original voices cannot be told apart by these scores:"
                " DeID and G_VD are not defined"
            )

    @property
    def speakers(self) -> tuple[str, ...]:
        return self.sets["oo"].speakers

    @property
    def mean(self) -> str:
        return self.sets["oo"].mean

    @property
    def matrices(self) -> Mapping[str, FloatArray]:
        """The similarity matrices, by ``oo``, ``op`` and ``pp``."""
        return {name: self.sets[name].matrix for name in SETS}

    @property
    def d_diag(self) -> Mapping[str, float]:
        """Diagonal dominance (Noé 2022, eq. 8)."""
        return {name: self.sets[name].d_diag for name in SETS}

    @property
    def signed_d_diag(self) -> Mapping[str, float]:
        """The same with its sign: negative where speakers are less like themselves than others."""
        return {name: self.sets[name].signed for name in SETS}

    @property
    def d_diag_log(self) -> Mapping[str, float]:
        """Diagonal dominance of log2 similarities, in bits."""
        return {name: self.sets[name].d_diag_log for name in SETS}

    @property
    def deid(self) -> float:
        """DeID = 1 − D_diag(OP)/D_diag(OO) (Noé 2022, eq. 9)."""
        return 1 - self.d_diag["op"] / self.d_diag["oo"]

    @property
    def g_vd(self) -> float:
        """G_VD = 10·log10(D_diag(PP)/D_diag(OO)) (Noé 2022, eq. 10), in dB."""
        return float(gain(self.d_diag["pp"], self.d_diag["oo"]))

    @property
    def deid_log(self) -> float:
        """DeID with D_diag in the log domain."""
        return 1 - self.d_diag_log["op"] / self.d_diag_log["oo"]

    @property
    def g_vd_log(self) -> float:
        """G_VD with D_diag in the log domain, in dB."""
        return float(gain(self.d_diag_log["pp"], self.d_diag_log["oo"]))

    @property
    def deid_d_ece(self) -> float:
        """1 − D_ECE(OP)/D_ECE(OO) (Noé 2022, eq. 17)."""
        return 1 - self.sets["op"].zebra.d_ece / self.sets["oo"].zebra.d_ece

    @property
    def deid_min_cllr(self) -> float:
        """(C_llr^min(OP) − C_llr^min(OO))/(1 − C_llr^min(OO)) (Noé 2022, eq. 18)."""
        oo, op = self.sets["oo"].roc.min_cllr(), self.sets["op"].roc.min_cllr()
        return (op - oo) / (1 - oo)

    @property
    def g_d_ece(self) -> float:
        """10·log10(D_ECE(PP)/D_ECE(OO)) (Noé 2022, eq. 19), in dB."""
        return float(gain(self.sets["pp"].zebra.d_ece, self.sets["oo"].zebra.d_ece))

    @property
    def g_min_cllr(self) -> float:
        """10·log10((1 − C_llr^min(PP))/(1 − C_llr^min(OO))) (Noé 2022, eq. 20), in dB."""
        oo, pp = self.sets["oo"].roc.min_cllr(), self.sets["pp"].roc.min_cllr()
        return float(gain(max(0.0, 1 - pp), 1 - oo))

    @cached_property
    def attacks(self) -> Mapping[str, Attack]:
        """The OP scores as attackers may read them: ``plain``, ``negated``, ``centred``, …."""
        return attacks_of(self.sets)

    def attacked_deid(self, attacker: str) -> float:
        """DeID as one of :attr:`attacks` finds it."""
        return 1 - abs(self.attacks[attacker].signed) / self.d_diag["oo"]

    @property
    def negated_deid(self) -> float:
        """DeID as an attacker finds it who turns the sign of the OP scores."""
        return self.attacked_deid(NEGATED)

    @cached_property
    def strongest(self) -> StrongestAttack:
        """The attacker who finds most, and DeID against him.

        Another than the plain score is named only where it beats it by more than resampling the
        speakers moves the difference; the lowest DeID of those is taken.
        """
        value = self.attacked_deid(self._attacker)
        deid = self._estimate("deid_strongest", value, "%", set_name=None)
        return StrongestAttack(self._attacker, deid, tuple(self.attacks))

    @cached_property
    def _attacker(self) -> str:
        return strongest_of(
            self.attacks, self.sets["oo"], level=self.level, replicates=self.replicates
        )

    @cached_property
    def per_speaker(self) -> SpeakerProtection:
        """Who is left unprotected: DeID_i = 1 ∓ d_i(OP)/D_diag(OO), with d_i the speaker's share of
        the signed difference and the sign that of the whole, so that the values average to DeID;
        all under the strongest attacker.
        """
        op, attack = self.sets["op"], self.attacks[self._attacker]
        deid, low, high = speaker_ends(
            attack, self.sets["oo"], level=self.level, replicates=self.replicates
        )
        below = (high < deid.mean()) | np.isnan(high)
        return SpeakerProtection(
            self.speakers,
            attack.name,
            deid,
            low,
            high,
            standing_out(attack.matrix) & below,
            {name: self.sets[name].self_similarity for name in SETS},
            op.speaker_d_ece,
            op.speaker_l_w,
        )

    @cached_property
    def _statistics(self) -> Mapping[str, Statistic]:
        """What intervals are made from, by metric; nothing where no replicates were asked for."""
        own: dict[str, Resampled] = {}
        for name in SETS:
            drawn = self.sets[name].resampled
            if drawn is None:
                return {}
            own[name] = drawn
        oo = self.sets["oo"]
        information = {
            name: (1 - self.sets[name].roc.min_cllr(), 1 - own[name].min_cllr) for name in SETS
        }
        disclosed = {name: (self.sets[name].zebra.d_ece, own[name].d_ece) for name in SETS}
        logs = {name: (self.sets[name].signed_log, own[name].signed_log) for name in SETS}
        signed = {name: (self.sets[name].signed, own[name].signed) for name in SETS}

        def over_oo(
            pairs: Mapping[str, tuple[float, FloatArray]], name: str
        ) -> tuple[float, FloatArray]:
            return ratio(pairs[name][0], pairs["oo"][0], pairs[name][1], pairs["oo"][1])

        number = self.replicates
        evidence = {name: Statistic(*signed[name], number, bounds=(-1.0, 1.0)) for name in SETS}
        most = (0.0, _LARGEST_D_ECE)

        def twin(
            pairs: Mapping[str, tuple[float, FloatArray]], name: str, read: Callable[[Ends], Ends]
        ) -> Statistic:
            return Statistic(*over_oo(pairs, name), number, read, POSITIVE, evidence[name])

        found = {
            "deid": Statistic(*over_oo(signed, "op"), number, lost),
            "g_vd": Statistic(*over_oo(signed, "pp"), number, decibels),
            "d_ece": Statistic(*disclosed["op"], number, bounds=most, evidence=evidence["op"]),
            "d_ece_oo": Statistic(*disclosed["oo"], number, bounds=most, evidence=evidence["oo"]),
            "deid_d_ece": twin(disclosed, "op", lost),
            "deid_min_cllr": twin(information, "op", lost),
            "g_d_ece": twin(disclosed, "pp", decibels),
            "g_min_cllr": twin(information, "pp", decibels),
            "deid_log": Statistic(*over_oo(logs, "op"), number, lost),
            "g_vd_log": Statistic(*over_oo(logs, "pp"), number, decibels),
        }
        for name in SETS:
            found[f"d_diag_{name}"] = Statistic(*signed[name], number, modulus, (-1.0, 1.0))
            found[f"d_diag_{name}_signed"] = evidence[name]
            found[f"d_diag_{name}_log"] = Statistic(*logs[name], number, modulus)
        for name, attack in self.attacks.items():
            made = deid_statistic(attack, oo, number)
            if made is not None:
                found[_metric(name)] = made
        found["deid_strongest"] = found[_metric(self._attacker)]
        return found

    def interval(self, metric: str) -> Interval | None:
        """Interval of any metric of :attr:`estimates` or :attr:`details`, where it has one."""
        return interval_of(
            self._statistics.get(metric),
            speakers=len(self.speakers),
            level=self.level,
            replicates=self.replicates,
            seed=self.seed,
        )

    @property
    def beyond_plain(self) -> tuple[float | None, Interval | None]:
        """DeID and its interval against an attacker who beats the plain score, if there is one."""
        if self._attacker == PLAIN:
            return None, None
        return self.attacked_deid(self._attacker), self.interval("deid_strongest")

    @cached_property
    def negated_discloses_more(self) -> bool:
        """Whether D_ECE of the negated OP scores is larger by more than resampling moves it."""
        op = self.sets["op"]
        if not op.zebra.warnings:
            return False
        if op.resampled is None or op.resampled_negated is None:
            return True
        value = op.zebra.negated_d_ece - op.zebra.d_ece
        drawn = op.resampled_negated.d_ece - op.resampled.d_ece
        ends = Statistic(value, drawn, self.replicates).ends(len(self.speakers), self.level)
        return ends is None or ends[0] > 0

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the negated score first of all."""
        told = []
        for name in SETS:
            similarity_set = self.sets[name]
            roc = similarity_set.roc
            if name != "op" or self.negated_discloses_more:
                told += [f"{name.upper()}: {text}" for text in negated_warnings(roc, roc.negated())]
            if similarity_set.signed < 0:
                told.append(
                    f"{name.upper()}: D_diag is {similarity_set.signed:.4f} with its sign: speakers"
                    " are less like themselves than like others"
                )
        if self._attacker != PLAIN:
            told.append(
                f"OP: against the {self._attacker} score DeID is"
                f" {100 * self.attacked_deid(self._attacker):.1f} % instead of"
                f" {100 * self.deid:.1f} %: {_WHY[self._attacker]}"
            )
        few = few_speakers(len(self.speakers))
        return (*told, *([few] if few and self.replicates else []))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The row of Noé 2022, Table 2: DeID, G_VD, and D_ECE, l_w and tag of OP; DeID against the
        strongest attacker beside that of the papers.
        """
        zebra = self.sets["op"].zebra
        return (
            self._estimate("deid", self.deid, "%", set_name=None),
            self.strongest.deid,
            self._estimate("g_vd", self.g_vd, "dB", set_name=None),
            self._estimate("d_ece", zebra.d_ece, "bit", chance=0.0),
            self._estimate("l_w", zebra.l_w, chance=0.0),
            self._estimate("tag", zebra.tag, chance=0.0),
        )

    @property
    def details(self) -> tuple[Estimate, ...]:
        """The normalised twins (eq. 17–20), D_diag in all its forms, and the negated score."""
        estimates = [
            self._estimate("deid_d_ece", self.deid_d_ece, "%", set_name=None),
            self._estimate("deid_min_cllr", self.deid_min_cllr, "%", set_name=None),
            self._estimate("g_d_ece", self.g_d_ece, "dB", set_name=None),
            self._estimate("g_min_cllr", self.g_min_cllr, "dB", set_name=None),
            self._estimate("deid_log", self.deid_log, "%", set_name=None),
            self._estimate("g_vd_log", self.g_vd_log, "dB", set_name=None),
        ]
        estimates += [
            self._estimate(_metric(name), self.attacked_deid(name), "%", set_name=None)
            for name in self.attacks
            if name != PLAIN
        ]
        for name in SETS:
            own = self.sets[name]
            estimates += [
                self._estimate(f"d_diag_{name}", own.d_diag, chance=0.0, set_name=name),
                self._estimate(f"d_diag_{name}_signed", own.signed, set_name=name),
                self._estimate(f"d_diag_{name}_log", own.d_diag_log, "bit", set_name=name),
            ]
        return tuple(estimates)

    def _estimate(
        self,
        metric: str,
        value: float | str,
        unit: str = "",
        *,
        chance: float | None = None,
        set_name: str | None = "op",
    ) -> Estimate:
        interval = self.interval(metric)
        roc = self.sets[set_name or "op"].roc
        return Estimate(
            metric,
            value,
            unit,
            interval=interval,
            chance=None if isinstance(value, str) else chance,
            n={
                "target": round(roc.targets),
                "nontarget": round(roc.nontargets),
                "speakers": len(self.speakers),
            },
            params={
                "set": set_name,
                "mean": self.mean,
                "pairs": self.pairs,
                "backend": self.backend,
                "calibration": "pav" if metric in _WITHOUT_LAPLACE else "pav,laplace",
                "attacker": self._attacker if metric == "deid_strongest" else None,
                "bins": self.sets["oo"].bins or None,
                "partners": self.sets["oo"].partners or None,
            },
            trials=self.trials,
            no_interval="" if interval is not None else self._why_none(metric),
        )

    def _why_none(self, metric: str) -> str:
        if metric in ("l_w", "tag"):
            return WITH_TRIALS
        return SAME if self.replicates else NOT_ASKED


_WITHOUT_LAPLACE = ("d_ece", "deid_d_ece", "deid_min_cllr", "g_d_ece", "g_min_cllr")
_WHY = {
    NEGATED: "protected voices are less like their owner than like strangers, which identifies them"
    " just as well",
    CENTRED: "what all voices of a side have in common hides whose they are, and is easily taken"
    " out",
    CENTRED_NEGATED: "less what all voices of a side have in common, protected voices are less like"
    " their owner than like strangers, which identifies them just as well",
}


def _metric(attacker: str) -> str:
    """Name of DeID under an attacker."""
    return "deid" if attacker == PLAIN else f"deid_{attacker.replace(' ', '_')}"
