"""What protection costs, with intervals: every condition and its difference from the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unmask import base
from unmask.base import FloatArray, IntArray, MetricRange, Part, Replicates, Tabular
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.utility.measuring import ORIGINAL, Measurements

WEAK = 0.3
"""Share of unprotected words a recogniser may get wrong before it is too weak to judge."""


class Metric(NamedTuple):
    """How a number follows from columns: Σ ``over`` / Σ ``of``, or the mean of ``over``; ``chance``
    is what speech that says nothing gives, ``paired`` ones stand with the control.
    """

    over: str
    of: str | None
    unit: str
    chance: float | None
    range: MetricRange
    paired: bool = True


METRICS: Mapping[str, Metric] = {
    "wer": Metric("word_errors", "words", "%", 1.0, MetricRange(0.0)),
    "cer": Metric("character_errors", "characters", "%", 1.0, MetricRange(0.0)),
    "rho_f0": Metric("rho_f0", None, "", 0.0, MetricRange(-1.0, 1.0), False),
    "semitones": Metric("semitones", None, "semitones", None, MetricRange(), False),
    "dnsmos_sig": Metric("sig", None, "MOS", None, MetricRange(1.0, 5.0), False),
    "dnsmos_bak": Metric("bak", None, "MOS", None, MetricRange(1.0, 5.0), False),
    "dnsmos_ovrl": Metric("ovrl", None, "MOS", None, MetricRange(1.0, 5.0)),
    "level": Metric("level", None, "dBFS", None, MetricRange(), False),
    "clipped": Metric("clipped", None, "%", None, MetricRange(0.0), False),
    "seconds": Metric("seconds", None, "s", None, MetricRange(0.0), False),
}
UAR = "uar"
Sums = tuple[FloatArray, FloatArray]
"""Σ of numerators and denominators by speaker, condition and class (one where there are none)."""
_RECALL = Metric("", None, "%", None, MetricRange(0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Utility(Tabular):
    """What each condition is worth: ``estimates_of[condition]``, ``original`` first.

    Of a safeguard every number stands with ``…_unprotected``, the same of the original, which is
    the control, and ``…_difference``, paired over shared draws of speakers. ``notices`` say what
    the numbers cannot carry. Made by :func:`utility_of`.
    """

    estimates_of: Mapping[str, tuple[Estimate, ...]]
    recogniser: str
    speakers: int
    utterances: int
    notices: tuple[Notice, ...]
    seed: int

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(self.estimates_of)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All estimates, condition by condition."""
        return tuple(estimate for some in self.estimates_of.values() for estimate in some)

    @property
    def parts(self) -> dict[str, Part]:
        """The estimates of each condition."""
        return {name: Part(some) for name, some in self.estimates_of.items()}

    def estimate(self, condition: str, metric: str) -> Estimate | None:
        """One number; None where it was not measured."""
        some = self.estimates_of.get(condition, ())
        return next((estimate for estimate in some if estimate.metric == metric), None)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        parts = self.estimates_of.items()
        return [base.estimate_row(one, condition=name) for name, some in parts for one in some]


def utility_of(
    measurements: Measurements, *, replicates: int = 1000, level: float = 0.95, seed: int = 0
) -> Utility:
    """All numbers of ``measurements`` with intervals over draws of speakers.

    ``replicates`` draws of ``seed`` serve every condition and metric, at a ``level`` of confidence;
    they are those of every other number about the same people.
    """
    if replicates < 0 or replicates == 1:
        raise InputError(f"replicates: expected 0 or at least 2, found {replicates}")
    names, owner = np.unique(measurements.speakers, return_inverse=True)
    conditions = measurements.conditions
    drawn = base.draws(len(names), replicates, seed)
    notices = [*measurements.notices, *_voiceless(measurements)]
    sums: dict[str, Sums] = {}
    counts: dict[str, dict[str, int]] = {}
    for metric, how in METRICS.items():
        if how.over in ("rho_f0", "semitones") and len(conditions) == 1:
            continue
        of = _sums(measurements, how, owner)
        if (of[1].sum(axis=0) > 0).all():
            sums[metric] = of
            counts[metric] = {how.of or "utterances": int(of[1][:, 0].sum())}
        elif any(np.isfinite(value[how.over]).any() for value in measurements.values.values()):
            sentence = "measured of no utterance in every condition: left out"
            notices.append(Notice("not-compared", metric, sentence))
    if measurements.labels is not None:
        sums[UAR] = _recalls(measurements, owner)
        counts[UAR] = {"utterances": len(owner)}
    if not sums:
        raise InputError("utility: expected something measured of every condition, found nothing")
    whole = np.ones((1, len(names)))
    made = Replicates(
        {metric: _values(of, drawn) for metric, of in sums.items()},
        {metric: _values(of, whole)[:, 0] for metric, of in sums.items()},
        len(names),
        "speaker",
        seed,
        replicates,
        {metric: METRICS.get(metric, _RECALL).range for metric in sums},
    )
    estimates = {
        name: tuple(
            estimate
            for metric in sums
            for estimate in _estimates(measurements, made, metric, n, counts[metric], level)
        )
        for n, name in enumerate(conditions)
    }
    notices += _weak(estimates, measurements.recogniser)
    for metric in filter(made.undefined, sums):
        sentence = (
            f"{made.undefined(metric)} of {replicates} replicates give no value and do not count:"
            " too few speakers for a reliable interval"
        )
        notices.append(Notice("empty-replicates", metric, sentence))
    few = base.few_speakers(len(names))
    notices += [Notice("few-speakers", ORIGINAL, few)] if few else []
    return Utility(estimates, measurements.recogniser, len(names), len(owner), tuple(notices), seed)


def _sums(measurements: Measurements, how: Metric, owner: IntArray) -> Sums:
    """Of a ratio; undefined in one condition counts in none."""
    every = measurements.values.values()
    over = np.array([values[how.over] for values in every])
    of = np.array([values[how.of] if how.of else np.ones(len(owner)) for values in every])
    if how.over == "rho_f0":
        over[0] = np.where(np.isfinite(over[0]), over[0], 1.0)
    good = np.isfinite(over + of).all(axis=0)
    sums = np.zeros((2, owner.max() + 1, len(over), 1))
    for values, total in zip((over, of), sums, strict=True):
        np.add.at(total[:, :, 0], owner[good], values[:, good].T)
    return sums[0], sums[1]


def _recalls(measurements: Measurements, owner: IntArray) -> Sums:
    """Of the recall of each class: UAR is their mean, whatever the sizes of the classes."""
    assert measurements.labels is not None
    truth = measurements.labels.astype(np.int64)
    conditions = measurements.conditions
    sums = np.zeros((2, owner.max() + 1, len(conditions), len(measurements.classes)))
    for n, name in enumerate(conditions):
        np.add.at(sums[0, :, n], (owner, truth), measurements.predictions[name] == truth)
        np.add.at(sums[1, :, n], (owner, truth), 1.0)
    return sums[0], sums[1]


def _values(sums: Sums, times: FloatArray) -> FloatArray:
    """Σ over / Σ of by condition and draw, in which each speaker stands ``times`` times."""
    with np.errstate(invalid="ignore", divide="ignore"):
        over, of = (np.tensordot(times, one, axes=1) for one in sums)
        return np.asarray((over / of).mean(axis=-1).T)


def _estimates(
    measurements: Measurements,
    made: Replicates,
    metric: str,
    number: int,
    counts: Mapping[str, int],
    level: float,
) -> list[Estimate]:
    """A number of one condition; of a safeguard the control and the difference as well."""
    how, values = METRICS.get(metric, _RECALL), made.sample[metric]
    fixed: dict[str, Any] = {
        "unit": how.unit,
        "n": {**counts, "speakers": made.units},
        "params": {"recogniser": measurements.recogniser or None} if how.of else {},
        "no_interval": "" if made.replicates else "no replicates were asked for",
    }

    def one(name: str, system: int) -> Estimate:
        options = {**fixed, "chance": how.chance}
        if metric == UAR:
            options["chance"] = 1 / len(measurements.classes)
        if not system and metric in ("rho_f0", "semitones"):
            options["no_interval"] = fixed["no_interval"] or "a copy of itself"
        elif made.replicates:
            options["interval"] = made.interval(metric, level=level, system=system)
        return Estimate(name, float(values[system]), **options)

    numbers = [one(metric, number)]
    if number and how.paired:
        apart = (
            made.difference(metric, level=level, first=0, second=number)
            if made.replicates
            else None
        )
        difference = float(values[number] - values[0])
        numbers += [
            one(f"{metric}_unprotected", 0),
            Estimate(f"{metric}_difference", difference, interval=apart, **fixed),
        ]
    return numbers


def _voiceless(measurements: Measurements) -> list[Notice]:
    """Utterances that lost their melody have none to compare, and count in no mean of it."""
    before = np.isfinite(measurements.values[ORIGINAL]["rho_f0"])
    notices = []
    for name in measurements.conditions[1:]:
        lost = int((before & np.isnan(measurements.values[name]["rho_f0"])).sum())
        sentence = (
            f"{lost} of {int(before.sum())} utterances have too little pitch left to compare: they"
            " are left out of ρ_F0, which is higher than what listeners hear"
        )
        notices += [Notice("no-pitch", name, sentence)] if lost else []
    return notices


def _weak(estimates: Mapping[str, Sequence[Estimate]], recogniser: str) -> list[Notice]:
    """A recogniser that fails on unprotected speech cannot tell what protection costs."""
    control = next((e for e in estimates[ORIGINAL] if e.metric == "wer"), None)
    if control is None or float(control.value) <= WEAK:
        return []
    sentence = (
        f"{recogniser} gets {100 * float(control.value):.0f} % of unprotected words wrong: too weak"
        " to judge what protection costs"
    )
    return [Notice("weak-recogniser", recogniser, sentence)]
