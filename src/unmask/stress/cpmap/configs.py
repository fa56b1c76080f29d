"""Trial configs: which trials belong to one, where it stands on a C-P map, how it biases scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, as_scores
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.estimate import Interval, Notice
from unmask.stress.cpmap.maps import CpMap
from unmask.trials import Ids, Scores, TrialList, match, trial_codes

LARGEST_MISFIT = 0.2
_CHANCE = 1.36  # Kolmogorov and Smirnov: the distance that 5 % of samples exceed, times √n


@dataclass(frozen=True, eq=False)
class CpConfig:
    """A trial config: a name, and which targets and which nontargets of a map belong to it."""

    name: str
    target: BoolArray
    nontarget: BoolArray


@final
@dataclass(frozen=True)
class PositionIntervals:
    """Intervals of a position; None where a number is fixed by definition or at its bound."""

    x: Interval | None
    y: Interval | None
    value: Interval
    gap: Interval | None


@dataclass(frozen=True)
class CpPosition:
    """A subset of the trials placed on a map, by :func:`cp_position`.

    ``x`` and ``y``: the share of hardest targets and nontargets whose mean hardness is that of the
    subset, at most 1; ``easier`` tells that the subset is easier than all trials, in either class.
    ``misfit`` is how far its trials are from the hardest share in shape (the largest distance of
    the two distribution functions of hardness, in the worse class); where it is too large no cell
    stands for the subset, and ``x``, ``y`` and ``cell`` are NaN. ``value``: the metric on the
    subset itself. ``cell``: the map's value where it is placed. ``gap``: ``value`` minus that of
    all trials, the benchmark-deployment gap of Li 2022.
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
    misfit: float
    intervals: PositionIntervals | None = None

    @property
    def placed(self) -> bool:
        """Whether a cell of the map stands for the subset."""
        return not np.isnan(self.x)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to know about where it stands."""
        if not self.placed:
            sentence = (
                "its trials are no mixture that a cell of the map stands for (hardness differs from"
                f" the nearest one by {self.misfit:.2f} in distribution): its value is given, but"
                " no position"
            )
            return (Notice("no-position", self.name, sentence),)
        sentence = "a class is easier than in all trials, so it stands at the edge of the map"
        return (Notice("easier", self.name, sentence),) if self.easier else ()


def cp_position(
    cp_map: CpMap,
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    target_chosen: npt.ArrayLike,
    nontarget_chosen: npt.ArrayLike,
    *,
    name: str = "subset",
) -> CpPosition:
    """Place a subset of the trials that made ``cp_map``.

    ``target`` and ``nontarget`` are the scores that made the map; the masks ``target_chosen`` and
    ``nontarget_chosen`` say which trials belong to the subset ``name``.

    Trials stand at places 0 … 1 along each axis, hardest first. The hardest share x has the mean
    place x/2, so a subset of mean place m is put at min(1, 2m): a prefix lands on its own cell. A
    subset that is no mixture like that (a middle band, the easy half) is given no position: its
    places are further than 0.2, beyond what chance explains (1.36/√n), from an even spread over
    (0, min(1, 2m)).
    """
    from scipy.stats import kstest

    targets, nontargets = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    t = _mask(target_chosen, targets.size, cp_map.target_place, f"{name} target")
    n = _mask(nontarget_chosen, nontargets.size, cp_map.nontarget_place, f"{name} nontarget")
    places = cp_map.target_place[t], cp_map.nontarget_place[n]
    doubled = [2 * float(place.mean()) for place in places]
    roc, metric = Roc.from_scores(targets[t], nontargets[n]), cp_map.metric
    if metric.name == "eer":
        value = roc.eer(estimator="raw")
    else:
        value = roc.min_dcf(p_target=metric.p_target, c_miss=metric.c_miss, c_fa=metric.c_fa)
    x, y = (min(share, 1.0) for share in doubled)
    apart = [
        float(kstest(place, "uniform", (0.0, share), method="asymp").statistic)
        for place, share in zip(places, (x, y), strict=True)
    ]
    if any(
        distance > LARGEST_MISFIT + _CHANCE / place.size**0.5
        for distance, place in zip(apart, places, strict=True)
    ):
        x = y = float("nan")
    return CpPosition(
        name=name,
        x=x,
        y=y,
        value=value,
        cell=float("nan") if np.isnan(x) else cp_map.at(x, y),
        gap=value - cp_map.full,
        targets=int(t.sum()),
        nontargets=int(n.sum()),
        easier=max(doubled) > 1 + 1e-9,
        misfit=max(apart),
    )


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


@dataclass(frozen=True, eq=False)
class ConfigScores:
    """Scores of one trial config: densities of both classes over ``edges``, and their raw EER."""

    name: str
    edges: FloatArray
    target: FloatArray
    nontarget: FloatArray
    eer: float
    threshold: float
    targets: int
    nontargets: int


def trial_bias(
    configs: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, bins: int = 60
) -> tuple[ConfigScores, ...]:
    """Densities of the scores of every config over the same ``bins`` (Li 2022, Figure 1).

    ``configs`` gives (target, nontarget) scores of one system by the name of the trial config. The
    system is the same in all: what differs is which trials were put to it. Infinite scores lie in
    no bin, but count in the densities.
    """
    if not configs:
        raise InputError("trial bias: expected at least one trial config, found none")
    scores = {
        name: (as_scores(pair[0], f"{name} target"), as_scores(pair[1], f"{name} nontarget"))
        for name, pair in configs.items()
    }
    every = np.concatenate([part for pair in scores.values() for part in pair])
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if every.size else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    width = edges[1] - edges[0]
    densities = []
    for name, pair in scores.items():
        point = Roc.from_scores(*pair).eer_point(estimator="raw")
        target, nontarget = (np.histogram(s, edges)[0] / (s.size * width) for s in pair)
        sizes = pair[0].size, pair[1].size
        densities.append(
            ConfigScores(name, edges, target, nontarget, point.value, point.threshold, *sizes)
        )
    return tuple(densities)


def trial_configs(
    scores: Scores, subset: TrialList | None, subset_name: str
) -> tuple[tuple[CpConfig, ...], list[Notice]]:
    """The trial configs that can be told from a table, all trials first, and the ``subset``."""
    counted = np.asarray(scores.is_target | scores.is_nontarget)
    masks: dict[str, BoolArray] = {"all trials": counted}
    notices: list[Notice] = []
    if scores.enrol is not None and scores.test is not None:
        both = Ids.concatenate([scores.enrol, scores.test]).alphabetical()
        left, right = np.split(both.codes.astype(np.int64), 2)
        sides = left[counted], right[counted]
        if full_cross_pairing(*sides):
            masks = {"full cross-pairing": counted}
        if scores.enrol_speaker is not None:
            fixed = np.zeros(counted.size, bool)
            fixed[counted] = enrolment_fixed(*sides, scores.enrol_speaker.codes[counted])
            if _has_both(scores, fixed):
                masks["enrolment-fixed"] = fixed
            else:
                sentence = "enrolment-fixed cross-pairing leaves a class empty: not placed"
                notices.append(Notice("empty-class", "", sentence))
    if subset is not None:
        rows = match(trial_codes(subset.ids, scores.ids), scores.codes)
        unknown = np.flatnonzero(rows < 0)
        if unknown.size:
            first = " ".join(ids.decode(int(unknown[0])) for ids in subset.ids[:2])
            raise InputError(
                f"{subset_name}: {unknown.size} of its {len(subset)} trials have no score (first:"
                f" {first})"
            )
        if subset.label is not None and scores.label is not None:
            conflict = int((subset.label != scores.label[rows]).sum())
            if conflict:
                problem = f"{conflict} trials are labelled otherwise than in the scores"
                raise InputError(f"{subset_name}: {problem}")
        masks[subset_name] = mask = np.zeros(len(scores), bool)
        mask[rows] = True
        if not _has_both(scores, mask):
            raise InputError(f"{subset_name}: expected trials of both classes, found one only")
    configs = (
        CpConfig(name, mask[scores.is_target], mask[scores.is_nontarget])
        for name, mask in masks.items()
    )
    return tuple(configs), notices


def enrolment_fixed(
    enrol: npt.NDArray[np.integer], test: npt.NDArray[np.integer], speaker: npt.NDArray[np.integer]
) -> BoolArray:
    """The trials of enrolment-fixed cross-pairing among those of a list (Li 2022, section 2). One
    enrolment is fixed per ``speaker``, the one with most trials (the lowest code), and compared
    with all utterances that are not fixed; a pair that stands in the other order only counts too.
    """
    pairs, counts = np.unique(np.stack([speaker, enrol]), axis=1, return_counts=True)
    best = np.lexsort([pairs[1], -counts, pairs[0]])
    first = np.r_[True, np.diff(pairs[0][best]) != 0]
    fixed = pairs[1][best][first]
    enrolled, tested = np.isin(enrol, fixed), np.isin(test, fixed)
    size = 1 + max(int(enrol.max(initial=0)), int(test.max(initial=0)))
    there = enrol.astype(np.int64) * size + test
    back = test.astype(np.int64) * size + enrol
    reversed_only = ~enrolled & tested & ~np.isin(back, there)
    return np.asarray((enrolled & ~tested) | reversed_only)


def full_cross_pairing(enrol: IntArray, test: IntArray) -> bool:
    """Whether a list pairs every utterance with every other (in one order or in both)."""
    pairs = np.unique(np.sort(np.stack([enrol, test]), axis=0), axis=1)
    utterances = np.unique(pairs).size
    different = int((pairs[0] != pairs[1]).sum())
    return different == utterances * (utterances - 1) // 2


def _has_both(scores: Scores, mask: BoolArray) -> bool:
    return bool((mask & scores.is_target).any() and (mask & scores.is_nontarget).any())
