"""Where a trial config stands on a C-P map: cross-pairing designs, a deployment's own trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import BoolArray, FloatArray, IntArray, as_scores
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.stress.cpmap import CpMap


@dataclass(frozen=True)
class CpPosition:
    """A subset of the trials placed on a map.

    ``x`` and ``y``: the share of hardest targets and nontargets whose mean hardness is that of the
    subset, at most 1; ``easier`` tells that the subset is easier than all trials, in either class.
    ``value``: the metric on the subset itself. ``cell``: the map's value where it is placed.
    ``gap``: ``value`` minus that of all trials, the benchmark-deployment gap of Li 2022.
    """

    name: str
    x: float
    y: float
    value: float
    cell: float
    gap: float
    targets: int
    nontargets: int
    easier: bool


def cp_position(
    cp_map: CpMap,
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    target_chosen: npt.ArrayLike,
    nontarget_chosen: npt.ArrayLike,
    *,
    name: str = "subset",
) -> CpPosition:
    """Place a subset of the trials that made ``cp_map``; masks say which trials belong to it.

    Trials stand at places 0 … 1 along each axis, hardest first. The hardest share x has the mean
    place x/2, so a subset of mean place m is put at min(1, 2m): a prefix lands on its own cell.
    """
    targets, nontargets = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    t = _mask(target_chosen, targets.size, cp_map.target_place, f"{name} target")
    n = _mask(nontarget_chosen, nontargets.size, cp_map.nontarget_place, f"{name} nontarget")
    x, y = 2 * float(cp_map.target_place[t].mean()), 2 * float(cp_map.nontarget_place[n].mean())
    roc, metric = Roc.from_scores(targets[t], nontargets[n]), cp_map.metric
    if metric.name == "eer":
        value = roc.eer(estimator="raw")
    else:
        value = roc.min_dcf(p_target=metric.p_target, c_miss=metric.c_miss, c_fa=metric.c_fa)
    placed = min(x, 1.0), min(y, 1.0)
    return CpPosition(
        name=name,
        x=placed[0],
        y=placed[1],
        value=value,
        cell=cp_map.at(*placed),
        gap=value - cp_map.full,
        targets=int(t.sum()),
        nontargets=int(n.sum()),
        easier=max(x, y) > 1 + 1e-9,
    )


def enrolment_fixed(
    enrol: npt.NDArray[np.integer], test: npt.NDArray[np.integer], speaker: npt.NDArray[np.integer]
) -> BoolArray:
    """The trials of enrolment-fixed cross-pairing among those of a list (Li 2022, section 2).

    ``enrol`` and ``test`` are codes of utterances in one common numbering, ``speaker`` the code of
    the enrolment's speaker. One enrolment is fixed per speaker, the one with most trials (of
    several, the lowest code); trials that test a fixed enrolment utterance are left out.
    """
    pairs, counts = np.unique(np.stack([speaker, enrol]), axis=1, return_counts=True)
    best = np.lexsort([pairs[1], -counts, pairs[0]])
    first = np.r_[True, np.diff(pairs[0][best]) != 0]
    fixed = pairs[1][best][first]
    return np.asarray(np.isin(enrol, fixed) & ~np.isin(test, fixed))


def full_cross_pairing(enrol: IntArray, test: IntArray) -> bool:
    """Whether a list pairs every utterance with every other (in one order or in both)."""
    pairs = np.unique(np.sort(np.stack([enrol, test]), axis=0), axis=1)
    utterances = np.unique(pairs).size
    different = int((pairs[0] != pairs[1]).sum())
    return different == utterances * (utterances - 1) // 2


def _mask(chosen: npt.ArrayLike, size: int, place: FloatArray, name: str) -> BoolArray:
    mask = np.asarray(chosen)
    if mask.dtype != np.bool_ or mask.shape != (size,) or place.size != size:
        raise InputError(
            f"{name} trials: expected a boolean per trial of the map ({place.size}), "
            f"found {mask.dtype} of shape {mask.shape} for {size} scores"
        )
    if not mask.any():
        raise InputError(f"no {name} trials: both classes need at least one trial")
    return mask
