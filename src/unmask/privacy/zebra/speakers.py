"""ZEBRA at the level of speakers: about whom the scores disclose how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Roc, information
from unmask.errors import InputError
from unmask.privacy.similarity.sums import Tables
from unmask.trials import Scores


@dataclass(frozen=True, eq=False)
class SpeakerDisclosure:
    """D_ECE (bits), l_w and tag of each speaker's trials, calibrated over all trials.

    A nontarget trial belongs to the speakers on both sides. D_ECE of all trials is the mean of the
    target parts weighted by ``targets`` plus that of the nontarget parts weighted by
    ``nontargets``; NaN for a speaker who lacks trials of one kind. The largest l_w is that of all.
    """

    speakers: tuple[str, ...]
    d_ece: FloatArray
    l_w: FloatArray
    targets: IntArray
    nontargets: IntArray
    warnings: tuple[str, ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(information.tag(value) for value in self.l_w)

    def worst(self, number: int = 5) -> tuple[str, ...]:
        """The speakers about whom most is disclosed, by D_ECE."""
        order = np.argsort(np.nan_to_num(-self.d_ece, nan=np.inf), kind="stable")[:number]
        return tuple(self.speakers[i] for i in order)


def zebra_by_speaker(scores: Scores, *, system: str | None = None) -> SpeakerDisclosure:
    """D_ECE and l_w per speaker of a labelled list of trials with speakers on both sides."""
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError("per-speaker disclosure: expected speakers on both sides, found none")
    values = scores.scores(system)
    counted = scores.is_target | scores.is_nontarget
    values, is_target = values[counted], scores.is_target[counted]
    tables = Tables.of(Roc.from_scores(values[is_target], values[~is_target]))
    step = tables.lookup(values)
    enrol, test = scores.enrol_speaker.codes[counted], scores.test_speaker.codes[counted]
    wrong = np.flatnonzero(is_target & (enrol != test))
    if wrong.size:
        raise InputError(f"per-speaker disclosure: {wrong.size} target trials have two speakers")
    used, dense = np.unique(np.concatenate([enrol, test]), return_inverse=True)
    sides = np.split(dense.astype(np.int64), 2)
    own, targets = _mean(tables.z_target[step], [sides[0]], is_target, used.size)
    other, nontargets = _mean(tables.z_nontarget[step], sides, ~is_target, used.size)
    extreme = np.zeros(used.size)
    for side in sides:
        np.maximum.at(extreme, side, np.abs(tables.llr[step]))
    names = tuple(str(scores.enrol_speaker.names[int(code)]) for code in used)
    d_ece = (own + other) / (2 * np.log(2))
    told = [
        f"speaker {names[i]} has {targets[i]} target and {nontargets[i]} nontarget trials: no D_ECE"
        for i in np.flatnonzero(np.isnan(d_ece))
    ]
    return SpeakerDisclosure(names, d_ece, extreme / np.log(10), targets, nontargets, tuple(told))


def _mean(
    values: FloatArray, sides: list[IntArray], chosen: BoolArray, speakers: int
) -> tuple[FloatArray, IntArray]:
    """Mean value of the chosen trials of each speaker, and how many there are."""
    total, number = np.zeros(speakers), np.zeros(speakers, dtype=np.int64)
    for side in sides:
        total += np.bincount(side[chosen], values[chosen], minlength=speakers)
        number += np.bincount(side[chosen], minlength=speakers)
    with np.errstate(invalid="ignore"):
        return total / number, number
