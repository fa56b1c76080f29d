"""ZEBRA: how much evidence of identity the scores of one or several systems disclose (Noé 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, Tabular, as_scores
from unmask.engine import Roc, Zebra, cllr, information, zebra_of
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice, Noticed
from unmask.trials import Scores

LIMIT = 10.0
POINTS = 161

ScorePair = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class Disclosure(Tabular):
    """What the scores of one system disclose, and its profiles over the prior log-odds, in bits.

    Made by :func:`zebra_profiles` from scores and by :func:`disclosure_of` from a statistic, drawn
    by the figure of disclosure profiles.

    ``prior``: no evidence at all (eq. 12). ``oracle``: after oracle calibration; the area between
    the two over π is D_ECE (eq. 13). ``actual``: the scores read as LLRs (eq. 11), None where only
    the ROC statistic is at hand.
    """

    system: str
    zebra: Zebra
    min_cllr: float
    log_odds: FloatArray
    prior: FloatArray
    oracle: FloatArray
    actual: FloatArray | None = None
    cllr: float | None = None
    trials: str = ""

    @property
    def label(self) -> str:
        """``name (D_ECE, l_w, tag)`` as in the papers' legends."""
        return f"{self.system} ({self.note})"

    @property
    def note(self) -> str:
        """``D_ECE, l_w, tag``; what rounding leaves below a D_ECE of 0 is 0."""
        return f"{max(0.0, self.zebra.d_ece):.3f}, {self.zebra.l_w:.3f}, {self.zebra.tag}"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """D_ECE, l_w, tag, C_llr^min, and C_llr where the scores were read as LLRs."""
        d_ece, l_w, tag = (replace(one, trials=self.trials) for one in self.zebra.estimates)
        losses = {"min_cllr": self.min_cllr} | ({} if self.cllr is None else {"cllr": self.cllr})
        more = (replace(d_ece, metric=m, value=v, chance=1.0) for m, v in losses.items())
        return (d_ece, l_w, tag, *more)


def disclosure_of(
    roc: Roc, *, system: str = "system", limit: float = LIMIT, points: int = POINTS
) -> Disclosure:
    """Disclosure from a statistic that has been counted already, without the actual profile.

    ``system`` names it in legends; the profile has so many ``points`` of log-odds from −``limit``
    to ``limit``.
    """
    log_odds = np.linspace(-limit, limit, points)
    return Disclosure(
        system,
        zebra_of(roc),
        roc.min_cllr(),
        log_odds,
        information.prior_ece(log_odds),
        information.oracle_ece(roc.pav, log_odds),
    )


def zebra_profiles(
    systems: Mapping[str, ScorePair] | Scores, *, limit: float = LIMIT, points: int = POINTS
) -> dict[str, Disclosure]:
    """Profiles and disclosure of every system, given (target, nontarget) scores or a table.

    ``limit`` and ``points`` as in :func:`disclosure_of`.
    """
    trials = ""
    if isinstance(systems, Scores):
        trials = systems.digest
        systems = {
            name: (systems.targets(name), systems.nontargets(name)) for name in systems.systems
        }
    profiles = {}
    for name, (target, nontarget) in systems.items():
        a, b = as_scores(target, f"{name}: target"), as_scores(nontarget, f"{name}: nontarget")
        oracle = disclosure_of(Roc.from_scores(a, b), system=name, limit=limit, points=points)
        actual = information.ece(a, b, oracle.log_odds)
        profiles[name] = replace(oracle, actual=actual, cllr=cllr(a, b), trials=trials)
    return profiles


@dataclass(frozen=True, eq=False)
class SpeakerDisclosure(Noticed):
    """D_ECE (bits), l_w and tag of each speaker's trials, calibrated over all trials.

    Made by :func:`zebra_by_speaker`. A nontarget trial belongs to the speakers on both sides. D_ECE
    of all trials is the mean of the target parts weighted by ``targets`` plus that of the nontarget
    parts weighted by ``nontargets``; NaN for a speaker who lacks trials of one kind. The largest
    l_w is that of all.
    """

    speakers: tuple[str, ...]
    d_ece: FloatArray
    l_w: FloatArray
    targets: IntArray
    nontargets: IntArray
    notices: tuple[Notice, ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(information.tag(value) for value in self.l_w)

    def worst(self, number: int = 5) -> tuple[str, ...]:
        """The speakers about whom most is disclosed, by D_ECE."""
        order = np.argsort(np.nan_to_num(-self.d_ece, nan=np.inf), kind="stable")[:number]
        return tuple(self.speakers[i] for i in order)


def zebra_by_speaker(scores: Scores, *, system: str | None = None) -> SpeakerDisclosure:
    """D_ECE and l_w per speaker of a labelled list of trials with speakers on both sides.

    ``system`` names the column of scores where there are several.
    """
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError("per-speaker disclosure: expected speakers on both sides, found none")
    counted = scores.is_target | scores.is_nontarget
    values, is_target = scores.scores(system)[counted], scores.is_target[counted]
    roc = Roc.from_scores(values[is_target], values[~is_target])
    enrol, test = scores.enrol_speaker.codes[counted], scores.test_speaker.codes[counted]
    wrong = np.flatnonzero(is_target & (enrol != test))
    if wrong.size:
        raise InputError(f"per-speaker disclosure: {wrong.size} target trials have two speakers")
    used, dense = np.unique(np.concatenate([enrol, test]), return_inverse=True)
    sides = np.split(dense.astype(np.int64), 2)
    llr = roc.pav.apply(values)
    own, targets = _mean(information.z(llr[is_target]), [sides[0]], is_target, used.size)
    other, nontargets = _mean(information.z(-llr[~is_target]), sides, ~is_target, used.size)
    extreme = np.zeros(used.size)
    for side in sides:
        np.maximum.at(extreme, side, np.abs(roc.pav_laplace.apply(values)))
    names = tuple(str(scores.enrol_speaker.names[int(code)]) for code in used)
    d_ece = (own + other) / (2 * np.log(2))
    few = "speaker {} has {} target and {} nontarget trials: no D_ECE"
    notices = tuple(
        Notice("few-trials", "", few.format(names[i], targets[i], nontargets[i]))
        for i in np.flatnonzero(np.isnan(d_ece))
    )
    return SpeakerDisclosure(names, d_ece, extreme / np.log(10), targets, nontargets, notices)


def _mean(
    values: FloatArray, sides: list[IntArray], chosen: BoolArray, speakers: int
) -> tuple[FloatArray, IntArray]:
    """Mean of the values of the chosen trials of each speaker, and how many there are."""
    total, number = np.zeros(speakers), np.zeros(speakers, dtype=np.int64)
    for side in sides:
        total += np.bincount(side[chosen], values, minlength=speakers)
        number += np.bincount(side[chosen], minlength=speakers)
    with np.errstate(invalid="ignore"):
        return total / number, number
