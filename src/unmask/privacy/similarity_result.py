"""What the three matrices of a safeguard say: de-identification and voice distinctiveness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unmask.arrays import FloatArray
from unmask.detection.bootstrap import Units
from unmask.detection.metrics import negated_warnings
from unmask.detection.replicates import Replicates
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.similarity_matrix import (
    LEAST_DOMINANCE,
    SimilaritySet,
    dominance,
    resampled_disclosure,
    resampled_dominance,
    speaker_dominance,
)

SETS = ("oo", "op", "pp")
LEAST_DIFFERENCE = 0.01


def gain(value: float | FloatArray, reference: float | FloatArray) -> FloatArray:
    """10·log10(value/reference) in dB; 0 gives −inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(10 * np.log10(np.asarray(value) / np.asarray(reference)))


@dataclass(frozen=True, eq=False)
class SpeakerProtection:
    """One value per speaker. ``deid`` and ``negated_deid`` average to those of all speakers;
    ``d_ece`` and ``l_w`` are those of the speaker's OP comparisons.

    ``turned`` says that an attacker does better with the sign of the scores turned.
    """

    speakers: tuple[str, ...]
    deid: FloatArray
    negated_deid: FloatArray
    turned: bool
    self_similarity: Mapping[str, FloatArray]
    d_ece: FloatArray
    l_w: FloatArray

    @property
    def attacked(self) -> FloatArray:
        """DeID under the sign of the scores that serves the attacker better."""
        return self.negated_deid if self.turned else self.deid

    def worst(self, number: int = 5) -> tuple[str, ...]:
        """The least protected speakers first, none where all are protected alike."""
        if np.ptp(self.attacked) < LEAST_DOMINANCE:
            return ()
        order = np.argsort(self.attacked, kind="stable")[:number]
        return tuple(self.speakers[i] for i in order)


@dataclass(frozen=True, eq=False)
class Pseudonymisation:
    """De-identification and gain of voice distinctiveness of one safeguard (Noé 2020, 2022).

    ``deid`` is a fraction, ``g_vd`` in dB. Intervals come from the speaker bootstrap on the
    matrices, the calibration held at that of all speakers.
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

    @property
    def negated_deid(self) -> float:
        """DeID as an attacker finds it who turns the sign of the OP scores."""
        negated = self.sets["op"].negated
        assert negated is not None
        return 1 - abs(dominance(negated)) / self.d_diag["oo"]

    @property
    def turned(self) -> bool:
        """Whether the negated OP scores identify clearly better than the scores."""
        return self.negated_deid < self.deid - LEAST_DIFFERENCE

    @cached_property
    def per_speaker(self) -> SpeakerProtection:
        """Who is left unprotected: DeID_i = 1 ∓ d_i(OP)/D_diag(OO), with d_i the speaker's share of
        the signed difference and the sign that of the whole, so that the values average to DeID.
        """
        op = self.sets["op"]
        assert op.negated is not None
        return SpeakerProtection(
            self.speakers,
            self._speaker_deid(op.matrix),
            self._speaker_deid(op.negated),
            self.turned,
            {name: self.sets[name].self_similarity for name in SETS},
            op.speaker_d_ece,
            op.speaker_l_w,
        )

    def _speaker_deid(self, matrix: FloatArray) -> FloatArray:
        share = speaker_dominance(matrix)
        return 1 - (-share if share.mean() < 0 else share) / self.d_diag["oo"]

    @cached_property
    def _drawn(self) -> Replicates | None:
        if not self.replicates:
            return None
        times = draws(len(self.speakers), self.replicates, self.seed)
        d_diag = {name: np.abs(resampled_dominance(self.sets[name].matrix, times)) for name in SETS}
        with np.errstate(divide="ignore", invalid="ignore"):
            values = {
                "deid": (1 - d_diag["op"] / d_diag["oo"])[None],
                "g_vd": gain(d_diag["pp"], d_diag["oo"])[None],
                "d_ece": resampled_disclosure(self.sets["op"].sums, times)[None],
                **{f"d_diag_{name}": d_diag[name][None] for name in SETS},
            }
        exact = {"deid": self.deid, "g_vd": self.g_vd, "d_ece": self.sets["op"].zebra.d_ece}
        exact |= {f"d_diag_{name}": self.d_diag[name] for name in SETS}
        sample = {name: np.array([exact[name]]) for name in values}
        units = len(self.speakers)
        return Replicates(values, sample, units, "speaker", self.seed, self.replicates)

    def interval(self, metric: str) -> Interval | None:
        """Interval of ``deid``, ``g_vd``, ``d_ece`` or ``d_diag_`` and the name of a set."""
        drawn = self._drawn
        return None if drawn is None else drawn.interval(metric, level=self.level)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the negated score first of all."""
        told = []
        for name in SETS:
            similarity_set = self.sets[name]
            roc = similarity_set.roc
            told += [f"{name.upper()}: {text}" for text in negated_warnings(roc, roc.negated())]
            if similarity_set.signed < 0:
                told.append(
                    f"{name.upper()}: D_diag is {similarity_set.signed:.4f} with its sign: speakers"
                    " are less like themselves than like others"
                )
        if self.turned:
            told.append(
                f"OP: with the score negated DeID is {100 * self.negated_deid:.1f} % instead of"
                f" {100 * self.deid:.1f} %: protected voices are less like their owner than like"
                " strangers, which identifies them just as well"
            )
        return tuple(told)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The row of Noé 2022, Table 2: DeID, G_VD, and D_ECE, l_w and tag of OP."""
        zebra = self.sets["op"].zebra
        return (
            self._estimate("deid", self.deid, "%", set_name=None),
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
            self._estimate("deid_negated", self.negated_deid, "%", set_name=None),
            self._estimate("deid_log", self.deid_log, "%", set_name=None),
            self._estimate("g_vd_log", self.g_vd_log, "dB", set_name=None),
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
        drawn = self._drawn
        interval = self.interval(metric) if drawn and metric in drawn.values else None
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
                "calibration": ("pav" if metric == "d_ece" else "pav,laplace")
                + ("" if interval is None else ",held"),
            },
            trials=self.trials,
        )


def draws(speakers: int, replicates: int, seed: int) -> FloatArray:
    """How often each speaker is drawn in each replicate: the draws of the detection bootstrap."""
    nothing = np.empty(0, dtype=np.int64)
    units = Units("speaker", nothing, nothing, nothing, (speakers,))
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    return np.stack([units.draw(np.random.default_rng(child)) for child in seeds])
