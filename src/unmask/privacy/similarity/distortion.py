"""What is learnt from protected speech: calibration distortion between two runs of a safeguard and
its intervals (Noé 2022, eq. 15, 16), and distinctiveness by a retrained recogniser.

In each resample of the speakers the map is fitted anew. Scores of both runs are counted in fine
bins per pair of speakers; a bin stands for the mean of its scores. What the bins move is taken off
every replicate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unmask.base import FloatArray, IntArray, Tabular, weighted_sum
from unmask.engine import (
    LARGEST_D_ECE,
    IsotonicCalibration,
    LinearCalibration,
    Roc,
    calibrate,
    cllr,
    information,
    weighted_line,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice, Parameter
from unmask.privacy.recordings import drawn_names, of_people
from unmask.privacy.similarity.intervals import (
    NOT_ASKED,
    POSITIVE,
    UNDEFINED,
    Setup,
    Statistic,
    decibels,
    gain,
)
from unmask.privacy.similarity.lists import RunScores, speaker_trials
from unmask.privacy.similarity.matrix import similarity_sets
from unmask.privacy.similarity.pairs import aligned, prepared
from unmask.privacy.similarity.resampling import BinLayout, Binned, counted, pav_of
from unmask.privacy.similarity.result import SimilarityResult
from unmask.privacy.zebra import LIMIT, POINTS, Disclosure, ScorePair, zebra_profiles
from unmask.run import NUMPY
from unmask.scoring import Backend, Rule, Sides, backend_named
from unmask.trials import Embeddings, Scores

METHODS = ("linear", "isotonic")
NO_SPEAKERS = "the speakers of these scores are not known"
MOST_PAIRS = 50_000_000
INFINITE = "the value is infinite"
_EVEN = 129


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationDistortion(Tabular):
    """How well a calibration learnt on one run of a safeguard serves on another (eq. 15, 16).

    Made by ``calibration_distortion``, drawn by the figure of calibration profiles.

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
    notices: tuple[Notice, ...] = ()
    intervals: tuple[Interval | None, Interval | None] = (None, None)
    no_interval: str = NO_SPEAKERS

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """C_ECE and C_llr of the calibrated second run; ``c_ece`` alone is that of ``linear``."""
        zebra = self.second.zebra
        params = {"calibration": self.method}
        if isinstance(self.calibration, IsotonicCalibration):
            params["laplace"] = str(self.calibration.laplace).lower()
        rows = (
            ("c_ece" if self.method == "linear" else f"c_ece_{self.method}", self.c_ece, 0.0),
            (f"cllr_{self.method}", self.cllr, 1.0),
        )
        return tuple(
            Estimate(
                metric,
                value,
                "bit",
                interval=interval,
                chance=chance,
                n={"target": zebra.targets, "nontarget": zebra.nontargets},
                params=params,
                no_interval="" if interval is not None else self.no_interval,
            )
            for (metric, value, chance), interval in zip(rows, self.intervals, strict=True)
        )


def calibration_distortion(
    first: ScorePair | Scores | RunScores,
    second: ScorePair | Scores | RunScores,
    *,
    method: str = "linear",
    laplace: bool = True,
    system: str | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    limit: float = LIMIT,
    points: int = POINTS,
) -> CalibrationDistortion:
    """C_ECE: the scores of ``second`` calibrated by a map trained on ``first`` (2022, eq. 15, 16).

    ``first`` is a run of the attacker's own, ``second`` the published one, of one safeguard on the
    same speech: (target, nontarget) scores, or lists of OP trials with the speakers on both sides,
    of which ``system`` names the scores. ``method``:
    ``linear`` is logistic regression, ``isotonic`` the PAV map, trained with Laplace unless
    ``laplace=False``; without it C_ECE is −inf as soon as one target falls into a block of pure
    nontargets. Where the speakers are known, intervals at ``level`` come from ``replicates``
    resamples of them drawn with ``seed``. The profiles have so many ``points`` from −``limit`` to
    ``limit``.
    """
    if isinstance(first, Scores) and isinstance(second, Scores):
        first, second = speaker_trials({"first run": first, "second run": second}, system=system)
    if isinstance(first, Scores) or isinstance(second, Scores):
        raise InputError("two runs: expected both as pairs of scores or both as lists of trials")
    if method not in METHODS:
        raise InputError(f"calibration: expected linear or isotonic, found {method}")
    runs: list[ScorePair] = [
        one.pair if isinstance(one, RunScores) else one for one in (first, second)
    ]
    one, two = zebra_profiles(
        {"first run": runs[0], "second run": runs[1]}, limit=limit, points=points
    ).values()
    calibration = calibrate(*runs[0], method, laplace=laplace)
    target, nontarget = (calibration.apply(scores) for scores in runs[1])
    notices = []
    if isinstance(calibration, LinearCalibration):
        if calibration.separable:
            sentence = "the first run's classes do not overlap: the linear scale is arbitrary"
            notices.append(Notice("separable", "", sentence))
        if calibration.scale < 0:
            sentence = "calibration inverts the scores: the lower, the more likely the same speaker"
            notices.append(Notice("turned-sign", "", sentence))
    assert two.cllr is not None
    with np.errstate(divide="ignore"):
        actual = information.ece(target, nontarget, two.log_odds)
    exact = information.expected_disclosure(target, nontarget), cllr(target, nontarget)
    intervals: tuple[Interval | None, Interval | None] = None, None
    reason = NO_SPEAKERS
    if isinstance(first, RunScores) and isinstance(second, RunScores):
        setup = Setup(replicates, level, seed)
        intervals = _intervals(first, second, exact, setup, method=method, laplace=laplace)
        reason = (UNDEFINED if np.isfinite(exact[0]) else INFINITE) if replicates else NOT_ASKED
    return CalibrationDistortion(
        method, *exact, two.cllr, one, two, actual, calibration, tuple(notices), intervals, reason
    )


def distortions(
    first: Scores | RunScores, second: Scores | RunScores, **options: Any
) -> tuple[CalibrationDistortion, ...]:
    """Every calibration of the second run by the first."""
    return tuple(calibration_distortion(first, second, method=m, **options) for m in METHODS)


def cross_scores(
    original: Embeddings, protected: Embeddings, *, backend: Backend | str = "cosine"
) -> RunScores:
    """Scores of originals against all protected segments but their own, with the speakers."""
    if len(original) ** 2 > MOST_PAIRS:
        raise InputError(
            f"{len(original) ** 2:,} comparisons are more than calibration takes at once"
            f" ({MOST_PAIRS:,}): choose fewer segments"
        )
    scorer = backend_named(backend)
    segments, _, o, p = prepared(scorer, original, protected)
    parts: dict[bool, list[tuple[FloatArray, IntArray, IntArray]]] = {True: [], False: []}
    pairs = segments.pairs(Sides(o.enrol, p.test))
    for tile in pairs.tiles(NUMPY, (0, len(segments), 0, len(segments))):
        rows, columns = segments.codes[slice(*tile.rows)], segments.codes[slice(*tile.columns)]
        speakers = np.broadcast_arrays(rows[:, None], columns)
        for same, part in parts.items():
            chosen = tile.trials(target=same)
            part.append((tile.scores[chosen].astype(np.float64), *(s[chosen] for s in speakers)))
    own, others = (
        [np.concatenate(column) for column in zip(*part, strict=True)] for part in parts.values()
    )
    return RunScores(own[0], others[0], own[1], others[1], others[2], segments.size)


@dataclass(frozen=True, eq=False)
class BinnedRun:
    """One run in bins; ``score`` is the mean score of each."""

    binned: Binned
    score: FloatArray

    @classmethod
    def of(cls, run: RunScores) -> BinnedRun:
        """Count the scores of a run."""
        layout = BinLayout.of(Roc.from_scores(*run.pair), run.speakers)
        even = np.quantile(run.nontarget, np.linspace(0, 1, _EVEN), method="nearest")
        layout = replace(layout, edges=np.union1d(layout.edges, even))
        scores = np.concatenate(run.pair)
        one, other = (np.concatenate([run.owner, side]) for side in (run.first, run.second))
        bins = layout.lookup(scores)
        number = np.bincount(bins, minlength=layout.bins)
        total = np.bincount(bins, scores, minlength=layout.bins)
        known = np.flatnonzero(number)
        score = np.interp(np.arange(layout.bins), known, total[known] / number[known])
        return cls(Binned.of(counted(layout, scores, one, other), layout), score)

    def weighted(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the targets and of the nontargets of a resample in each bin."""
        weight = times[self.binned.first] * times[self.binned.second]
        return times @ self.binned.own, self.binned.weighted(weight.astype(np.float32))


def _intervals(
    first: RunScores,
    second: RunScores,
    exact: tuple[float, float],
    setup: Setup,
    *,
    method: str,
    laplace: bool,
) -> tuple[Interval | None, Interval | None]:
    """Intervals of C_ECE and of C_llr, whose values for all speakers are ``exact``."""
    if first.speakers != second.speakers:
        raise InputError("two runs of one safeguard have the same speakers")
    times = setup.weights(first.speakers)
    if times is None or first.speakers < 2 or not np.isfinite(exact).all():
        return None, None
    runs = BinnedRun.of(first), BinnedRun.of(second)
    coarse = _distortion(*runs, np.ones(first.speakers), method, laplace)
    drawn = np.array([_distortion(*runs, row, method, laplace) for row in times])
    drawn += np.subtract(exact, coarse)
    bounds, number = {"c_ece": (-np.inf, LARGEST_D_ECE), "cllr": POSITIVE}, setup.replicates
    statistics = {
        name: Statistic(value, column, number, bounds=bounds[name])
        for name, value, column in zip(bounds, exact, drawn.T, strict=True)
    }
    intervals = setup.intervals(statistics, first.speakers)
    return intervals.get("c_ece"), intervals.get("cllr")


def _distortion(
    first: BinnedRun, second: BinnedRun, times: FloatArray, method: str, laplace: bool
) -> tuple[float, float]:
    """C_ECE and C_llr of a resample; NaN where a class is empty."""
    target, nontarget = first.weighted(times)
    tested, others = second.weighted(times)
    if not all(counts.any() for counts in (target, nontarget, tested, others)):
        return np.nan, np.nan
    if method == "linear":
        llr = weighted_line(first.score, target, nontarget).apply(second.score)
    else:
        pav, bins = pav_of(target, nontarget), np.arange(target.size, dtype=np.float64)
        by_bin = (pav.with_laplace() if laplace else pav).apply(bins)
        llr = np.interp(second.score, first.score, by_bin)
    hits, misses = tested / tested.sum(), others / others.sum()
    c_ece = weighted_sum(information.z(llr), hits)
    c_ece += weighted_sum(information.z(-llr), misses)
    loss = weighted_sum(information.softplus(-llr), hits)
    loss += weighted_sum(information.softplus(llr), misses)
    return c_ece / (2 * np.log(2)), loss / (2 * np.log(2))


BACKEND, LEAST_PEOPLE = "wccn", 8
"""What learns most from few people, and how many of them it takes."""
_NONE = f"no recogniser was retrained on protected speech, which takes {LEAST_PEOPLE} people"
UNTAUGHT = Notice("not-retrained", "G_VD", _NONE, "note")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Retrained(SimilarityResult):
    """G_VD with each kind of speech compared by a back-end trained on its own kind.

    ``people`` is the number of people whom a back-end learnt from, none of whom it compares.
    """

    people: int

    @property
    def g_vd(self) -> float:
        """10·log10(D_diag(PP)/D_diag(OO)) (Noé 2022, eq. 10), in dB."""
        return float(gain(self.sets["pp"].d_diag, self.sets["oo"].d_diag))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """G_VD, under the name of the recogniser."""
        who, own = f"{self.backend} retrained on protected speech", self.sets["pp"]
        params: dict[str, Parameter] = {
            "attacker": who,
            "mean": own.mean,
            "trained_on": self.people,
        }
        return (self._number("g_vd_retrained", self.g_vd, "dB", own, None, params),)

    def said(self, given: Estimate) -> str:
        """Whose fault a loss of distinctiveness is that the ``given`` recogniser sees."""
        (own,) = self.estimates
        first, second = (f"{float(estimate.value):+.1f} dB" for estimate in (given, own))
        told = f"G_VD is {first}, and {second} by a recogniser retrained on protected speech"
        if given.interval is None or own.interval is None:
            verdict = "without intervals neither can be blamed"
        elif given.interval.high >= 0:
            verdict = "no loss of distinctiveness is shown that could be the recogniser's fault"
        elif own.interval.low > given.interval.high:
            verdict = "what retraining brings back was the recogniser's fault"
        elif own.interval.high < 0:
            verdict = f"as far as {self.people:,} people teach, the loss is the safeguard's"
        else:
            verdict = "whose fault the loss is remains open"
        return f"{told}: {verdict}".replace("-", "−")


def retrained(
    original: Embeddings, protected: Embeddings, *taught: Embeddings, **how: Any
) -> Retrained:
    """G_VD with OO compared by a back-end trained on original speech and PP by one trained on
    protected speech: an untouched voice reads 0 dB, however much training helps.

    ``taught`` is original and protected speech to learn from, the two sets themselves by default.
    Where its people are among those compared, they are taken in halves, drawn by the seed: each
    half is compared by what the other half taught, and people of two halves not at all.
    ``how`` are mean, replicates, level and seed of :func:`pseudonymisation`.
    """
    setup = Setup(**how)
    segments, order = aligned(original, protected)
    people, teachers = np.array(segments.names), taught or (original, protected)
    known = set(teachers[1].speakers.present)
    if len(known) < LEAST_PEOPLE:
        raise InputError("retraining", f"{LEAST_PEOPLE} people or more to learn from", len(known))
    apart = known.isdisjoint(segments.names)
    half = np.zeros(len(people), dtype=np.int64)
    if not apart:
        some = drawn_names(sorted(segments.names), len(people) // 2, setup.seed)
        half[np.isin(people, some)] = 1
    halves = half[segments.codes]
    spoken = original.vectors[segments.order], protected.vectors[order[segments.order]]
    pairs = {}
    for name, vectors, teacher in zip(("oo", "pp"), spoken, teachers, strict=True):
        rows = np.empty(vectors.shape)
        for one in np.unique(half):
            others = of_people(teacher, people[half == one].tolist(), inside=False)
            here = halves == one
            rows[here] = backend_named(BACKEND, others).sides(vectors[here]).enrol
        pairs[name] = [segments.pairs(Sides(rows, rows), Rule(halves, "=="))]
    made = similarity_sets(pairs, setup, once=tuple(pairs))
    made.check_original("oo")
    statistics = {}
    if setup.replicates:
        pp = made.readings["pp"][0]
        statistics["g_vd_retrained"] = made.over_oo(pp.signed, pp.draws.signed, decibels)
    return Retrained(
        sets=made.sets,
        intervals=setup.intervals(statistics, segments.size),
        people=len(known) if apart else len(known) // 2,
        backend=BACKEND,
        **setup.options,
    )
