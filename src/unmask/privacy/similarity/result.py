"""What the three matrices of a safeguard say: de-identification and voice distinctiveness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unmask.base import FloatArray, Tabular, few_speakers
from unmask.engine import negated_notices
from unmask.estimate import Estimate, Interval, Luck, Notice, Parameter
from unmask.privacy.attack import CENTRED, DOUBLE_CENTRED, LENGTH, NEGATED, PLAIN, READINGS, WORDS
from unmask.privacy.halves import FEW_PEOPLE, stretched
from unmask.privacy.similarity.attackers import (
    LEAST_DIFFERENCE,
    SETS,
    SpeakerProtection,
    StrongestAttack,
    attacks_of,
    competing_attacks,
    lucks_of,
    protection_of,
    strongest_of,
)
from unmask.privacy.similarity.halves import STRONGEST, Numbers
from unmask.privacy.similarity.intervals import (
    NOT_ASKED,
    POSITIVE,
    UNDEFINED,
    WITH_TRIALS,
    Ends,
    Statistic,
    decibels,
    gain,
    lost,
    modulus,
    ratio,
)
from unmask.privacy.similarity.matrix import (
    MOST_SPEAKERS,
    AttackedMatrix,
    Comparisons,
    MatrixView,
    SimilaritySet,
    view_of,
)

GIVEN = "given scores"
UTTERANCES, LISTED = "utterance pairs", "trials of people on both sides"
"""What the numbers of a result compare."""
Drawn = Mapping[str, tuple[float, FloatArray]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SimilarityResult(Tabular):
    """Similarity sets by name, and the ``intervals``, by metric, of what is read off them.

    Intervals at ``level`` come from ``replicates`` resamples of the speakers drawn with ``seed``,
    each calibrated anew.
    """

    sets: Mapping[str, SimilaritySet]
    intervals: Mapping[str, Interval]
    backend: str | None = None
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    trials: str = ""

    def interval(self, metric: str) -> Interval | None:
        """Interval of any metric of the estimates and details, where it has one."""
        return self.intervals.get(metric)

    def _number(
        self,
        metric: str,
        value: float | str,
        unit: str,
        own: SimilaritySet,
        chance: float | None,
        params: Mapping[str, Parameter],
        **more: int,
    ) -> Estimate:
        """One number, which rests on the comparisons of a set."""
        interval, grows = self.interval(metric), metric.startswith(("l_w", "tag"))
        why = WITH_TRIALS if grows else UNDEFINED if self.replicates else NOT_ASKED
        counts = {"target": round(own.roc.targets), "nontarget": round(own.roc.nontargets)}
        return Estimate(
            metric,
            value,
            unit,
            interval=interval,
            chance=chance,
            n={**counts, "speakers": len(own.speakers), **more},
            params=params,
            trials=self.trials,
            no_interval="" if interval is not None else why,
        )

    def _few(self) -> tuple[Notice, ...]:
        """What to say where intervals rest on few speakers."""
        few = few_speakers(len(next(iter(self.sets.values())).speakers))
        return (Notice("few-speakers", "", few),) if few and self.replicates else ()


@dataclass(frozen=True)
class Evidence:
    """What the scores of one attack disclose: D_ECE and EER, means of both ways where an attack was
    fitted on either half of the utterances; l_w, the larger of the two, and its tag.
    """

    d_ece: float
    l_w: float
    tag: str
    eer: float

    @classmethod
    def of(cls, attack: AttackedMatrix) -> Evidence:
        return cls(attack.d_ece, attack.worst.l_w, attack.worst.tag, attack.eer)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Pseudonymisation(SimilarityResult):
    """De-identification and gain of voice distinctiveness of one safeguard (Noé 2020, 2022).

    Made by :func:`pseudonymisation`, a part of a table of safeguards. ``deid`` is a fraction,
    ``g_vd`` in dB. ``sets`` holds ``oo``, ``op``, ``pp``, the OP comparisons with
    ``double-centred`` scores, where there are such, and those of other attackers by name.
    ``attacks`` has DeID for every way to read the OP scores (``plain``, ``negated``, …), and
    ``evidence`` what such scores disclose;
    ``attacker`` is the strongest of them, who ``beats_plain`` where the difference is more than
    resampling the speakers moves it. ``negated_discloses_more`` says whether D_ECE of the negated
    OP scores is larger by more than that. All numbers but DeID of other attacks are of the plain
    score; ``compared`` says of what. ``lucks`` has, by metric, what the strongest of the same
    attacks reads without information; ``drawn`` is DeID of the plain score in each resample.
    ``words`` is the attack by words alone, where they are known: it does not compete.
    """

    attacks: Mapping[str, float]
    evidence: Mapping[str, Evidence]
    attacker: str
    beats_plain: bool
    per_speaker: SpeakerProtection
    negated_discloses_more: bool
    pairs: str
    compared: str = UTTERANCES
    notes: tuple[Notice, ...] = ()
    lucks: Mapping[str, Luck] = field(default_factory=dict)
    words: tuple[float, Evidence] | None = None
    drawn: FloatArray | None = field(default=None, repr=False)

    def named(self, attack: str = PLAIN) -> str:
        """An attack in words: the back-end, and how its scores are read."""
        if attack in (*READINGS, DOUBLE_CENTRED, f"{DOUBLE_CENTRED} {NEGATED}"):
            name = self.backend or GIVEN
            return name if attack == PLAIN else f"{name}, {attack}"
        return attack.replace(f" {NEGATED}", f", {NEGATED}")

    def attacker_of(self, estimate: Estimate) -> str:
        """Who attacks in one of the estimates or details."""
        name = self.named(str(estimate.params.get("attacker") or PLAIN))
        tried = estimate.params.get("tried")
        return f"strongest of {tried}: {name}" if tried else name

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
    def strongest(self) -> StrongestAttack:
        """The attacker who finds most, and DeID against it: the lowest of all that were tried."""
        deid = self._estimate(
            "deid_strongest", self.attacks[self.attacker], "%", attacker=self.attacker
        )
        return StrongestAttack(self.attacker, deid, tuple(self.attacks))

    @property
    def most_evidence(self) -> tuple[str, Evidence]:
        """The attack with the largest D_ECE, and what it discloses."""
        return max(self.evidence.items(), key=lambda one: one[1].d_ece)

    @property
    def fewest_errors(self) -> tuple[str, Evidence]:
        """The attack with the lowest EER, and what it discloses."""
        return min(self.evidence.items(), key=lambda one: one[1].eer)

    @property
    def beyond_plain(self) -> tuple[float | None, Interval | None]:
        """DeID and its interval against an attacker who finds more than the plain score, if any."""
        if self.attacker == PLAIN:
            return None, None
        return self.attacks[self.attacker], self.interval("deid_strongest")

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """What to be careful about, the negated score first."""
        notices = []
        for name in SETS:
            own, roc = self.sets[name], self.sets[name].roc
            unclear = name == "op" and not self.negated_discloses_more
            for notice in negated_notices(roc):
                sentence = f"{notice.sentence}; {_UNCLEAR}" if unclear else notice.sentence
                subject = f"{name.upper()}, {self.compared}"
                notices.append(replace(notice, subject=subject, sentence=sentence))
            if own.signed < 0:
                sentence = (
                    f"D_diag is {own.signed:.4f} with its sign: speakers are less like themselves"
                    " than like others"
                )
                notices.append(Notice("negative-diagonal", name.upper(), sentence))
        lowest = self.attacks[self.attacker]
        if self.deid - lowest >= LEAST_DIFFERENCE:
            luck = self.lucks.get("deid_strongest")
            by_luck = luck is not None and not luck.beyond and luck.decides(len(self.speakers))
            beats = self.beats_plain and not by_luck
            code = "stronger-reading" if beats else "unclear-reading"
            why = _why(self.attacker) if beats else _UNCLEAR
            if by_luck:
                why = f"luck reads as much, {self.strongest.deid.by_luck}"
            sentence = (
                f"against the {self.attacker} score DeID is {100 * lowest:.1f} % instead of"
                f" {100 * self.deid:.1f} %: {why}".replace("-0.0 %", "0.0 %").replace(" -", " −")
            )
            notices.append(Notice(code, "OP", sentence))
        if self.replicates and not self.lucks:
            sentence = "what luck reads of the strongest attack is not known: it takes all pairs"
            notices.append(Notice("no-luck", "OP", sentence, "note"))
        return (*notices, *self._few())

    def _few(self) -> tuple[Notice, ...]:
        """Say of fewer than fifteen people what the strongest attack's interval may lack."""
        if len(self.speakers) >= FEW_PEOPLE:
            return super()._few()
        return tuple(
            replace(few, sentence=f"{few.sentence}; {_FEW_FOR_STRONGEST}") for few in super()._few()
        )

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The row of Noé 2022, Table 2: DeID, G_VD, and D_ECE, l_w and tag of OP; DeID against the
        strongest attacker beside that of the papers.
        """
        zebra = self.sets["op"].zebra
        return (
            self._estimate("deid", self.deid, "%"),
            self.strongest.deid,
            self._estimate("g_vd", self.g_vd, "dB"),
            self._estimate("d_ece", zebra.d_ece, "bit", of="op", chance=0.0),
            self._estimate("l_w", zebra.l_w, of="op", chance=0.0),
            self._estimate("tag", zebra.tag, of="op"),
            *self._evidence("strongest", *self.most_evidence, "d_ece", "l_w", "tag"),
            *self._evidence("strongest", *self.fewest_errors, "eer"),
            *self._said(),
        )

    def _evidence(self, of: str, attacker: str, one: Evidence, *names: str) -> Iterator[Estimate]:
        """What an attack discloses: all of it, or the ``names`` asked for."""
        for name in names or _EVIDENCE:
            unit, chance = _EVIDENCE[name]
            value = getattr(one, name)
            yield self._estimate(f"{name}_{of}", value, unit, chance=chance, attacker=attacker)

    def _said(self) -> Iterator[Estimate]:
        """DeID, D_ECE, l_w, tag and EER of words alone."""
        if self.words is not None:
            yield self._estimate(f"deid_{WORDS}", self.words[0], "%", attacker=WORDS)
            yield from self._evidence(WORDS, WORDS, self.words[1])

    @property
    def details(self) -> tuple[Estimate, ...]:
        """The normalised twins (eq. 17–20), D_diag in all its forms, and the negated score."""
        ratios = ("deid_d_ece", "deid_min_cllr", "g_d_ece", "g_min_cllr", "deid_log", "g_vd_log")
        estimates = [
            self._estimate(name, getattr(self, name), "%" if name.startswith("deid") else "dB")
            for name in ratios
        ]
        estimates += [
            self._estimate(_metric(name), value, "%", attacker=name)
            for name, value in self.attacks.items()
            if name != PLAIN
        ]
        for name in SETS:
            own = self.sets[name]
            estimates += [
                self._estimate(f"d_diag_{name}", own.d_diag, of=name, chance=0.0),
                self._estimate(f"d_diag_{name}_signed", own.signed, of=name),
                self._estimate(f"d_diag_{name}_log", own.d_diag_log, "bit", of=name),
            ]
        return tuple(estimates)

    def _estimate(
        self,
        metric: str,
        value: float | str,
        unit: str = "",
        *,
        of: str | None = None,
        chance: float | None = None,
        attacker: str | None = None,
    ) -> Estimate:
        """One number of the set ``of`` or a ratio of sets, of the plain score or an attacker."""
        oo = self.sets["oo"]
        params: dict[str, Parameter] = {
            "set": of,
            "mean": self.mean,
            "pairs": self.pairs,
            "backend": self.backend,
            "calibration": "pav" if metric in _WITHOUT_LAPLACE else "pav,laplace",
            "attacker": attacker,
            "tried": len(self.attacks) if metric.endswith("_strongest") else None,
            "bins": oo.bins or None,
            "partners": oo.partners or None,
        }
        made = self._number(metric, value, unit, self.sets[of or "op"], chance, params)
        return replace(made, luck=self.lucks.get(metric))


_WITHOUT_LAPLACE = (
    "d_ece",
    "d_ece_strongest",
    "d_ece_words",
    "deid_d_ece",
    "deid_min_cllr",
    "g_d_ece",
    "g_min_cllr",
)
_EVIDENCE: dict[str, tuple[str, float | None]] = {
    "d_ece": ("bit", 0.0),
    "l_w": ("", 0.0),
    "tag": ("", None),
    "eer": ("%", 0.5),
}
"""Unit and chance level of what an attack discloses."""
_COMMON = "a shift common to all protected voices masks identity but is easily removed"
_LENGTHS = "the length of a vector, which no cosine looks at, tells who speaks"
_WHY: dict[str, str] = {
    PLAIN: "",
    CENTRED: _COMMON,
    DOUBLE_CENTRED: _COMMON,
    LENGTH: _LENGTHS,
    CENTRED.of(LENGTH): _LENGTHS,
}
_FEW_FOR_STRONGEST = "that of the strongest attack may hold the truth in fewer than 95 of 100 cases"
_UNCLEAR = "resampling the speakers does not tell the two apart"


def _why(attacker: str) -> str:
    """Why an attacker finds more than the plain score."""
    base = attacker.removesuffix(NEGATED).strip() or PLAIN
    brings = f"{base} aligns protected with original voices"
    reasons = [_WHY.get(base, "what is said tells who speaks" if WORDS in base else brings)]
    if attacker.endswith(NEGATED):
        reasons.append(
            "protected voices are less like their owner than like strangers, which identifies them"
            " just as well"
        )
    return "; ".join(filter(None, reasons))


def _metric(attacker: str) -> str:
    """Name of DeID under an attacker."""
    return "deid" if attacker == PLAIN else f"deid_{attacker.replace(' ', '_').replace('-', '_')}"


def assessed(
    made: Comparisons,
    *,
    backend: str | None = None,
    compared: str = UTTERANCES,
    trials: str = "",
    notes: tuple[Notice, ...] = (),
    halves: Sequence[Numbers] = (),
) -> Pseudonymisation:
    """The result of three sets, with all that its resamples say; of replicates DeID is kept.

    ``halves`` are the strongest numbers of halves of the people, by which the intervals of the
    strongest are stretched.
    """
    sets, setup = made.sets, made.setup
    made.check_original("oo", why=" by these scores: DeID and G_VD are not defined")
    attacks = competing_attacks(made)
    every = attacks_of(made)
    said = {WORDS: every[WORDS]} if WORDS in every else {}
    strongest, beats_plain = strongest_of(attacks, made)
    statistics = _statistics(made, attacks, said) if setup.replicates else {}
    if statistics:
        statistics["deid_strongest"] = statistics[_metric(strongest)]
    intervals = setup.intervals(statistics, len(sets["oo"].speakers))
    op, oo = (made.readings[name][0].resampled for name in ("op", "oo"))
    if op is not None and oo is not None and np.allclose(op.signed, oo.signed, equal_nan=True):
        # Speech of a sample in which nobody is protected: another reading sees no more of others.
        plain, best = intervals["deid"], intervals["deid_strongest"]
        low, high = min(plain.low, best.low), max(plain.high, best.high)
        intervals["deid_strongest"] = replace(best, low=low, high=high)
    whole = sets["oo"].d_diag
    left = {name: 1 - abs(attack.signed) / whole for name, attack in attacks.items()}
    values = {
        "deid_strongest": left[strongest],
        "d_ece_strongest": max(attack.d_ece for attack in attacks.values()),
        "eer_strongest": min(attack.eer for attack in attacks.values()),
    }
    for metric, scale in STRONGEST.items():
        if metric in intervals:
            people = len(sets["oo"].speakers)
            shown = intervals[metric], scale, values[metric], people
            intervals[metric] = stretched(*shown, [numbers[metric] for numbers in halves])
    return Pseudonymisation(
        sets=sets,
        attacks=left,
        evidence={name: Evidence.of(attack) for name, attack in attacks.items()},
        lucks=lucks_of(attacks, made) | (lucks_of(said, made, WORDS) if said else {}),
        words=next(((1 - abs(x.signed) / whole, Evidence.of(x)) for x in said.values()), None),
        attacker=strongest,
        beats_plain=beats_plain,
        per_speaker=protection_of(strongest, attacks[strongest], made),
        intervals=intervals,
        negated_discloses_more=_negated_discloses_more(made),
        pairs=setup.pairs,
        compared=compared,
        backend=backend,
        **setup.options,
        trials=trials,
        notes=notes,
        drawn=1 - abs(statistics["deid"].drawn[: setup.replicates]) if statistics else None,
    )


def _statistics(
    made: Comparisons, attacks: Mapping[str, AttackedMatrix], said: Mapping[str, AttackedMatrix]
) -> dict[str, Statistic]:
    """What intervals are made from, by metric, of ``attacks`` and of words alone."""
    sets, number = made.sets, made.setup.replicates
    own = {name: made.readings[name][0].draws for name in SETS}
    information = {name: (1 - sets[name].roc.min_cllr(), 1 - own[name].min_cllr) for name in SETS}
    disclosed = {name: (sets[name].zebra.d_ece, own[name].d_ece) for name in SETS}
    logs = {name: (sets[name].signed_log, own[name].signed_log) for name in SETS}
    signed = {name: (sets[name].signed, own[name].signed) for name in SETS}
    evidence = {name: Statistic(*signed[name], number, bounds=(-1.0, 1.0)) for name in SETS}

    def over_oo(pairs: Drawn, name: str) -> tuple[float, FloatArray]:
        return ratio(pairs[name][0], pairs["oo"][0], pairs[name][1], pairs["oo"][1])

    def twin(pairs: Drawn, name: str, read: Callable[[Ends], Ends]) -> Statistic:
        return Statistic(*over_oo(pairs, name), number, read, POSITIVE, evidence[name])

    statistics = {
        "g_vd": Statistic(*over_oo(signed, "pp"), number, decibels),
        "d_ece": made.disclosed(made.readings["op"][0])[0],
        "d_ece_oo": made.disclosed(made.readings["oo"][0])[0],
        "deid_d_ece": twin(disclosed, "op", lost),
        "deid_min_cllr": twin(information, "op", lost),
        "g_d_ece": twin(disclosed, "pp", decibels),
        "g_min_cllr": twin(information, "pp", decibels),
        "deid_log": Statistic(*over_oo(logs, "op"), number, lost),
        "g_vd_log": Statistic(*over_oo(logs, "pp"), number, decibels),
    }
    for name in SETS:
        separates = made.readings[name][0].separates_everybody
        dominance = replace(evidence[name], separates_everybody=separates)
        statistics[f"d_diag_{name}"] = replace(dominance, read=modulus)
        statistics[f"d_diag_{name}_signed"] = dominance
        statistics[f"d_diag_{name}_log"] = Statistic(*logs[name], number, modulus)
    for name, attack in {**attacks, **said}.items():
        statistics[_metric(name)] = made.over_oo(
            attack.signed,
            attack.draws.signed,
            lost,
            separates_everybody=attack.separates_everybody,
        )
    most = max(attacks.values(), key=lambda attack: attack.d_ece)
    least = min(attacks.values(), key=lambda attack: attack.eer)
    statistics["d_ece_strongest"], _ = made.disclosed(most)
    _, statistics["eer_strongest"] = made.disclosed(least)
    for of, attack in said.items():
        statistics[f"d_ece_{of}"], statistics[f"eer_{of}"] = made.disclosed(attack)
    return statistics


def _negated_discloses_more(made: Comparisons) -> bool:
    """Whether D_ECE of the negated OP scores is larger by more than resampling moves it."""
    op, (plain, negated) = made.sets["op"], made.readings["op"]
    if not op.zebra.notices:
        return False
    if plain.resampled is None:
        return True
    value = op.zebra.negated_d_ece - op.zebra.d_ece
    drawn = negated.draws.d_ece - plain.draws.d_ece
    ends = Statistic(value, drawn, made.setup.replicates).ends(len(op.speakers), made.setup.level)
    return ends is None or ends[0] > 0


def quadrants(
    result: Pseudonymisation, *, order: str = "given", most: int = MOST_SPEAKERS
) -> MatrixView:
    """OO upper left, OP upper right, PP lower right; lower left, the other way round, OP as the
    strongest attacker reads it.

    ``cluster`` puts speakers side by side whose original and protected voices are alike (average
    linkage), for all quadrants alike; ``given`` keeps the order of the input.
    """
    oo, op, pp = (result.matrices[name] for name in ("oo", "op", "pp"))
    parts = ("original", "protected")
    read = result.per_speaker.matrix.T
    view = view_of([[oo, op], [read, pp]], [oo, pp], result.speakers, parts, order, most)
    return view if result.attacker == PLAIN else replace(view, read_by=result.attacker)
