"""How strong attacks are: the strongest of several, and whether a low risk is to be believed.

Whoever tries many attacks on the same speakers and reports the best reports luck as well. So the
attacker is chosen on one half of the speakers and judged by the other, over many splits. A low risk
is believed only of an attacker that is strong where nothing protects. Whether several attacks link
the same people is told by the overlap of the easiest and of the hardest tenth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from unmask.base import FEW_SPEAKERS, FloatArray, few_speakers, score_interval
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.privacy.legal.curve import TITLES, Curve, RiskCurve, base_name, spoken
from unmask.privacy.legal.links import Ranks
from unmask.privacy.legal.probe import Inference

SPLITS = 200
STRONG_ENOUGH = 0.5
SHARE = 0.1
EASIEST, HARDEST = "easiest", "hardest"
_LEAST_SPEAKERS = 4
_CHECKED = ("linkability", "one_minus_eer")
Curves = Mapping[tuple[str, str, int], Curve]


@dataclass(frozen=True)
class Strongest:
    """The attacker chosen most often, ``chosen_share`` of the times, among ``of`` attackers.

    Made by :func:`strongest_of`. ``estimate`` is the risk under the attacker chosen on other
    speakers where ``corrected``, else the largest value, which luck makes too large.
    """

    attacker: str
    estimate: Estimate
    chosen_share: float
    of: int
    corrected: bool

    @property
    def note(self) -> str:
        """Which correction was made for the choice."""
        if self.of == 1:
            return "one attack tried: nothing to choose"
        if self.corrected:
            return (
                f"best of {self.of} attacks, each chosen on half of the speakers and judged by the"
                f" other half; chosen in {100 * self.chosen_share:.0f} % of the splits"
            )
        return f"largest of {self.of} attacks, not corrected for the choice: errs towards more risk"


@dataclass(frozen=True)
class Worst:
    """The point of a panel with the largest risk: ``length`` utterances, ``count`` speakers."""

    length: int
    count: int
    strongest: Strongest


def extent(estimate: Estimate) -> tuple[float, float]:
    """By which risks are put in order: Linkability as people, then the low end of the interval.

    Of shares less than half a person apart the surer one counts as larger: of 60 people 100 % may
    be 56 to 60, and 99.9 %, whose spread is known, 58 to 60.
    """
    value, made = float(estimate.value), estimate.interval
    low = -np.inf if made is None or np.isnan(made.low) else made.low
    people = estimate.n.get("speakers", 0) if estimate.metric == "linkability" else 0
    return round(people * value) if people else value, low


def strongest_of(
    curves: Mapping[str, Curve], count: int, *, seed: int = 0, splits: int = SPLITS
) -> Strongest:
    """The strongest of the attackers of ``curves`` at ``count`` speakers, and its risk.

    Speakers are halved ``splits`` times, drawn with ``seed``. With c_i the mean over splits of the
    outcome of speaker i under the attacker that succeeds most on the half without i, the value is
    the mean of c_i and the interval its score interval with the variance of that mean or that of
    the attacker chosen most often, whichever is larger. Curves without outcomes of speakers (1 −
    EER) give the largest value.
    """
    at = {name: i for name, curve in curves.items() if (i := curve.index(count)) is not None}
    if not at:
        raise InputError(f"strongest attacker: no value for {count} speakers")
    largest = max(at, key=lambda name: float(curves[name].value[at[name]]))
    risks = {name: curve for name in at if isinstance(curve := curves[name], RiskCurve)}
    alone = Strongest(largest, curves[largest].estimate(at[largest]), 1.0, len(at), False)
    if len(risks) < len(at) or len(at) == 1:
        return alone
    outcomes = _common(risks, at)
    if outcomes.shape[1] < _LEAST_SPEAKERS:
        return alone
    cross, chosen = _cross_fitted(outcomes, splits, seed)
    which = int(np.argmax(chosen))
    name = list(risks)[which]
    estimate = _estimate(risks[name], at[name], cross)
    return Strongest(name, estimate, float(chosen[which]), len(at), True)


def _common(risks: Mapping[str, RiskCurve], at: Mapping[str, int]) -> FloatArray:
    """Outcomes of the speakers that all attackers attack: attackers × speakers."""
    first, *others = (
        pl.DataFrame({"speaker": curve.speakers, str(n): curve.per_speaker[:, at[name]]})
        for n, (name, curve) in enumerate(risks.items())
    )
    for table in others:
        first = first.join(table, on="speaker", how="inner", maintain_order="left")
    return first.drop("speaker").to_numpy().T


def _cross_fitted(outcomes: FloatArray, splits: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Mean outcome of each speaker under attackers chosen without it, and the share of choices."""
    attackers, speakers = outcomes.shape
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    rank = rng.random((splits, speakers)).argsort(axis=1).argsort(axis=1)
    half = rank < speakers // 2
    sums = half @ outcomes.T
    rest = outcomes.sum(axis=1) - sums
    by_half = (sums / (speakers // 2)).argmax(axis=1)
    by_rest = (rest / (speakers - speakers // 2)).argmax(axis=1)
    chosen = np.where(half, by_rest[:, None], by_half[:, None])
    cross = outcomes[chosen, np.arange(speakers)].mean(axis=0)
    share = np.bincount(np.concatenate([by_half, by_rest]), minlength=attackers) / (2 * splits)
    return cross, share


def _estimate(curve: RiskCurve, i: int, cross: FloatArray) -> Estimate:
    """The estimate of a curve with the cross-fitted value and interval."""
    plain = curve.estimate(i)
    value, speakers = float(cross.mean()), len(cross)
    interval = plain.interval
    if interval is not None:
        variance = max(float(cross.var(ddof=1)) / speakers, float(curve.variance[i]))
        low, high = score_interval(
            np.array([value]), np.array([variance]), speakers, level=interval.level
        )
        method = f"{interval.method},cross-fitted"
        interval = Interval(float(low[0]), float(high[0]), interval.level, method, 0, interval.seed)
    return replace(plain, value=value, interval=interval)


def sweep_notices(
    curves: Curves,
    inferences: Mapping[tuple[str, str], Inference],
    ranks: Mapping[tuple[str, int], Ranks],
    original: str | None,
    consistency: Sequence[str] = (),
) -> list[Notice]:
    """What all parts of a sweep say, each once with its attackers and lengths, and whether the
    attackers are strong enough to be believed.

    ``curves``, ``inferences`` and ``ranks`` are those of a sweep, ``original`` its attacker on
    unprotected speech, ``consistency`` the names of what is no attack.
    """
    conditions: dict[Notice, dict[str, list[int]]] = {}
    for (name, _, length), curve in curves.items():
        for notice in curve.remarks if name == base_name(name, curve) else ():
            conditions.setdefault(notice, {}).setdefault(name, []).append(length)
    for (name, length), rank in ranks.items():
        for notice in rank.notices:
            conditions.setdefault(notice, {}).setdefault(name, []).append(length)
    for (name, _), probe in inferences.items():
        for notice in probe.notices:
            conditions.setdefault(notice, {}).setdefault(name, [])
    joined = []
    for notice, names in conditions.items():
        alike: dict[tuple[int, ...], list[str]] = {}
        for name, lengths in names.items():
            alike.setdefault(tuple(lengths), []).append(name)
        subject = "; ".join(
            f"{', '.join(some)}{f', {spoken(*lengths)}' if lengths else ''}"
            for lengths, some in alike.items()
        )
        joined.append(Notice(notice.code, subject, f"{subject}: {notice.sentence}"))
    least = min((len(curve.speakers) for curve in curves.values()), default=FEW_SPEAKERS)
    few = few_speakers(least)
    larger = f"{few}; risks in a larger crowd are unknown"
    return [
        *([] if few is None else [Notice("few-speakers", "", larger)]),
        *_strength_notices(curves, original),
        *(Notice("consistency", name, f"{name}: {_CONSISTENCY}") for name in consistency),
        *_chance_notices(curves, original),
        *_isolation_notices(curves, original),
        *joined,
    ]


_CONSISTENCY = (
    "enrolment comes from the attacked run itself, which no attacker holds: this shows whether"
    " pseudonyms are consistent, not whether people are recognised; it does not compete for the"
    " strongest attack"
)


def _strength_notices(curves: Curves, original: str | None) -> list[Notice]:
    """An attack is believed if, on unprotected speech and the smallest count, its residual risk in
    Linkability (or in 1 − EER) reaches one half.
    """
    if original is None:
        sentence = (
            "no attacker on unprotected speech was given: whether the attacks are strong enough to"
            " be believed is not known"
        )
        return [Notice("no-control", "", sentence)]
    notices = []
    for (name, metric, length), curve in curves.items():
        if name != original or metric not in _CHECKED:
            continue
        least = int(curve.counts.argmin())
        if not curve.residual[least] >= STRONG_ENOUGH:
            sentence = (
                f"weak attacker: {TITLES[metric]} on unprotected speech reaches"
                f" {100 * curve.value[least]:.1f} % with {curve.counts[least]:,} speakers and"
                f" {spoken(length)} (chance {100 * curve.chance[least]:.1f} %); low risks with"
                f" {spoken(length)} cannot be believed"
            )
            notices.append(Notice("weak-control", f"{name}, {spoken(length)}", sentence))
    return notices


def _chance_notices(curves: Curves, original: str | None) -> list[Notice]:
    """Attacks no variant of which is better than chance: evidence of protection where the same
    attack succeeds on unprotected speech, else nothing.
    """
    variants: dict[tuple[str, str, int], list[Curve]] = {}
    for (name, metric, length), curve in curves.items():
        variants.setdefault((base_name(name, curve), metric, length), []).append(curve)
    notices = []
    for (name, metric, length), readings in variants.items():
        at_chance = np.all([curve.at_chance for curve in readings], axis=0)
        if name == original or not at_chance.any():
            continue
        control = variants.get((str(original), metric, length), [])
        counts = readings[0].counts[at_chance].tolist()
        for verdict, some in _by_control(control, counts).items():
            subject = f"{name}, {spoken(length)}"
            sentence = (
                f"{subject}: {TITLES[metric]} is no better than chance with"
                f" {', '.join(f'{n:,}' for n in some)} speakers; {verdict}"
            )
            notices.append(Notice("chance", subject, sentence))
    return notices


def _by_control(control: Sequence[Curve], counts: Sequence[int]) -> dict[str, list[int]]:
    """What to say of an attack at chance, and the counts to say it of.

    The control's strength is its residual risk against what no information reaches.
    """
    verdicts: dict[str, list[int]] = {}
    for count in counts:
        strength = []
        for curve in control:
            if (i := curve.index(int(count))) is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    chance = curve.chance_level[i]
                    residual = (curve.value[i] - chance) / (1 - chance)
                strength.append((float(residual), float(curve.value[i])))
        if not strength:
            verdict = "without the same attack on unprotected speech this tells nothing"
        else:
            above, value = max(strength)
            verdict = f"on unprotected speech the same attack reaches {100 * value:.0f} %"
            if not above >= STRONG_ENOUGH:
                verdict += ": too weak, this tells nothing"
        verdicts.setdefault(verdict, []).append(int(count))
    return verdicts


def _isolation_notices(curves: Curves, original: str | None) -> list[Notice]:
    """Where voices are isolated although nobody is linked: they keep a voice that is not theirs,
    and entries that resemble each other stand out under any predicate.
    """
    notices = []
    for (name, metric, length), curve in curves.items():
        linked = curves.get((name, "linkability", length))
        if metric != "singling_out" or linked is None or name == original:
            continue
        if base_name(name, curve) == name and linked.at_chance.all() and not curve.at_chance.all():
            subject = f"{name}, {spoken(length)}"
            sentence = (
                f"{subject}: people who cannot be linked are isolated all the same: protected"
                " voices that stay the same stand out whoever is enrolled"
            )
            notices.append(Notice("isolated", subject, sentence))
    return notices


@dataclass(frozen=True)
class Overlap:
    """How many people are in the same tenth under two attacks; made by :func:`overlaps`.

    ``which`` tenth, of ``size`` people out of ``speakers``; ``shared`` of them are in both.
    ``drawn`` counts those of either tenth whose place was drawn by lot, since others were linked as
    often: they lower the overlap towards chance.
    """

    first: str
    second: str
    which: str
    shared: int
    size: int
    speakers: int
    drawn: int

    @property
    def chance(self) -> float:
        """Share of the tenth that two unrelated attacks have in common: size/speakers."""
        return self.size / self.speakers

    @property
    def probability(self) -> float:
        """P(as many or more in common by chance), exact: hypergeometric with ``size`` marked of
        ``speakers`` and ``size`` drawn.
        """
        from scipy.stats import hypergeom

        return float(hypergeom.sf(self.shared - 1, self.speakers, self.size, self.size))

    @property
    def estimate(self) -> Estimate:
        """The share of the tenth that both have."""
        return Estimate(
            "overlap",
            self.shared / self.size,
            "%",
            None,
            self.chance,
            {"speakers": self.speakers, "tenth": self.size, "drawn": self.drawn},
            {"by_chance": round(self.probability, 6)},
            no_interval="an exact chance level and probability stand beside it",
        )


def overlaps(risks: Mapping[str, RiskCurve], *, share: float = SHARE) -> tuple[Overlap, ...]:
    """Overlap of the easiest and of the hardest ``share`` of people for each pair of attacks.

    ``risks`` are curves by the name of the attack, safeguard or length. People are ordered by their
    mean risk over the curve's numbers of candidates; those of equal risk by a lot that each attack
    draws anew, so that ties create no overlap. Only people attacked by both count.
    """
    if not 0 < share <= 0.5:
        raise InputError(f"share: expected more than 0 and at most 0.5, found {share:g}")
    made = []
    for (first, one), (second, other) in combinations(risks.items(), 2):
        tables = [
            dict(zip(c.speakers, c.per_speaker.mean(axis=1), strict=True)) for c in (one, other)
        ]
        names = sorted(tables[0].keys() & tables[1].keys())
        size = max(1, round(share * len(names)))
        if len(names) < 2 * size:
            continue
        sides = [
            _ordered(names, np.array([table[name] for name in names]), label)
            for table, label in zip(tables, (first, second), strict=True)
        ]
        for which, step in ((EASIEST, 1), (HARDEST, -1)):
            tenths, drawn = [], 0
            for order, risk in ((order[::step], risk[::step]) for order, risk in sides):
                tenths.append(set(order[:size]))
                equal = risk[: size + 1] == risk[size - 1]
                drawn += int(equal[:size].sum()) if equal[size] else 0
            shared = len(tenths[0] & tenths[1])
            made.append(Overlap(first, second, which, shared, size, len(names), drawn))
    return tuple(made)


def _ordered(names: Sequence[str], risk: FloatArray, label: str) -> tuple[list[str], FloatArray]:
    """People from the most to the least linked, with their risks; ties by a lot of the label."""
    lot = [hashlib.sha256(f"{label}\0{name}".encode()).hexdigest() for name in names]
    order = sorted(range(len(names)), key=lambda i: (-risk[i], lot[i]))
    return [names[i] for i in order], risk[order]
