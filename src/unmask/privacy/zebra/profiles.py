"""ZEBRA: how much evidence of identity the scores of one or several systems disclose (Noé 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, as_scores
from unmask.engine import (
    IsotonicCalibration,
    LinearCalibration,
    Roc,
    Zebra,
    calibrate,
    cllr,
    information,
    zebra_of,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.trials import Scores

LIMIT = 10.0
POINTS = 161
METHODS = ("linear", "isotonic")
NO_SPEAKERS = "the speakers of these scores are not known"

ScorePair = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What the scores of one system disclose, and its profiles over the prior log-odds, in bits.

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
        n = {"target": self.zebra.targets, "nontarget": self.zebra.nontargets}
        found: list[tuple[str, float | str, str, float | None]] = [
            ("d_ece", self.zebra.d_ece, "bit", 0.0),
            ("l_w", self.zebra.l_w, "", 0.0),
            ("tag", self.zebra.tag, "", None),
            ("min_cllr", self.min_cllr, "bit", 1.0),
        ]
        if self.cllr is not None:
            found.append(("cllr", self.cllr, "bit", 1.0))
        return tuple(
            Estimate(
                metric,
                value,
                unit,
                chance=chance,
                n=n,
                trials=self.trials,
                no_interval="a profile has none: evaluate gives the intervals of these scores",
            )
            for metric, value, unit, chance in found
        )


def disclosure_of(
    roc: Roc, *, system: str = "system", limit: float = LIMIT, points: int = POINTS
) -> Disclosure:
    """Disclosure from a statistic that has been counted already, without the actual profile."""
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
    """Profiles and disclosure of every system, given (target, nontarget) scores or a table."""
    trials = ""
    if isinstance(systems, Scores):
        trials = systems.digest
        systems = {
            name: (systems.targets(name), systems.nontargets(name)) for name in systems.systems
        }
    found = {}
    for name, (target, nontarget) in systems.items():
        a, b = as_scores(target, f"{name}: target"), as_scores(nontarget, f"{name}: nontarget")
        roc = Roc.from_scores(a, b)
        oracle = disclosure_of(roc, system=name, limit=limit, points=points)
        found[name] = Disclosure(
            name,
            oracle.zebra,
            oracle.min_cllr,
            oracle.log_odds,
            oracle.prior,
            oracle.oracle,
            information.ece(a, b, oracle.log_odds),
            cllr(a, b),
            trials,
        )
    return found


@dataclass(frozen=True, eq=False)
class CalibrationDistortion:
    """How well a calibration learnt on one run of a safeguard serves on another (eq. 15, 16).

    ``c_ece`` is the D_ECE formula on the second run's scores calibrated by the first: at most the
    second run's D_ECE for a map that rises, 0 if nothing is gained, negative (down to −inf) if the
    calibration misleads. ``cllr`` is the C_llr of the same LLRs, ``raw_cllr`` that of the second
    run's scores as they are. ``actual`` is the ECE profile of the calibrated scores. ``intervals``
    are those of ``c_ece`` and ``cllr``, where the speakers of the scores are known.
    """

    method: str
    c_ece: float
    cllr: float
    raw_cllr: float
    first: Disclosure
    second: Disclosure
    actual: FloatArray
    calibration: LinearCalibration | IsotonicCalibration = field(repr=False)
    warnings: tuple[str, ...] = ()
    intervals: tuple[Interval | None, Interval | None] = (None, None)
    no_interval: str = NO_SPEAKERS

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """C_ECE and C_llr of the calibrated second run; ``c_ece`` alone is that of ``linear``."""
        zebra = self.second.zebra
        n = {"target": zebra.targets, "nontarget": zebra.nontargets}
        params = {"calibration": self.method}
        name = "c_ece" if self.method == "linear" else f"c_ece_{self.method}"
        reasons = ["" if made is not None else self.no_interval for made in self.intervals]
        if isinstance(self.calibration, IsotonicCalibration):
            params["laplace"] = str(self.calibration.laplace).lower()
        return (
            Estimate(
                name,
                self.c_ece,
                "bit",
                interval=self.intervals[0],
                chance=0.0,
                n=n,
                params=params,
                no_interval=reasons[0],
            ),
            Estimate(
                f"cllr_{self.method}",
                self.cllr,
                "bit",
                interval=self.intervals[1],
                chance=1.0,
                n=n,
                params=params,
                no_interval=reasons[1],
            ),
        )


def calibration_distortion(
    first: ScorePair,
    second: ScorePair,
    *,
    method: str = "linear",
    laplace: bool = True,
    limit: float = LIMIT,
    points: int = POINTS,
) -> CalibrationDistortion:
    """C_ECE: calibrate the (target, nontarget) scores of ``second`` by a map trained on ``first``.

    The two are runs of one safeguard on the same speech. ``linear``: logistic regression.
    ``isotonic``: the PAV map, trained with Laplace unless ``laplace=False``; without it C_ECE is
    −inf as soon as one target falls into a block of pure nontargets.
    """
    if method not in METHODS:
        raise InputError(f"calibration: expected linear or isotonic, found {method}")
    both = {"first run": first, "second run": second}
    profiles = zebra_profiles(both, limit=limit, points=points)
    calibration = calibrate(*first, method, laplace=laplace)
    target, nontarget = (calibration.apply(scores) for scores in second)
    told = []
    if isinstance(calibration, LinearCalibration):
        if calibration.separable:
            told.append("the first run's classes do not overlap: the linear scale is arbitrary")
        if calibration.scale < 0:
            told.append("the linear calibration turns the sign of the scores")
    raw = profiles["second run"].cllr
    assert raw is not None
    with np.errstate(divide="ignore"):
        actual = information.ece(target, nontarget, profiles["second run"].log_odds)
    return CalibrationDistortion(
        method,
        information.expected_disclosure(target, nontarget),
        cllr(target, nontarget),
        raw,
        profiles["first run"],
        profiles["second run"],
        actual,
        calibration,
        tuple(told),
    )
