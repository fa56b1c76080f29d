"""Calibration and fusion of tables of scores: fitted to a development list, or cross-fitted so that
no map judges a speaker whom it saw; maps as files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray, visible
from unmask.engine.battery import Battery
from unmask.engine.calibration import IsotonicCalibration, isotonic, read_table, steady_logistic
from unmask.engine.comparison import Comparison, compare
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import text_lines, write_whole
from unmask.trials import Ids, Scores

SHOWN = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")
"""Metrics before and after calibration."""
_FORMAT = "unmask calibration 1"
_LOG = "log:"


@dataclass(frozen=True)
class Fusion:
    """llr = Σ weight·x + offset over the scores of ``systems``, one or more, and the columns of
    ``quality``, in this order.

    Attributes
    ----------
    is_penalised : bool
        Whether the classes overlapped so little that Firth's penalty was needed.
    best : str
        The system with the lowest C_llr^min where the map was fitted; empty if that is not known.
    """

    systems: tuple[str, ...]
    quality: tuple[str, ...]
    weights: tuple[float, ...]
    offset: float
    is_penalised: bool = False
    best: str = ""

    def apply(self, scores: Scores) -> FloatArray:
        """Natural-log LLRs of a table with these systems, by name or else in this order."""
        given = list(scores.systems)
        if len(given) != len(self.systems):
            wanted = f"the systems of the map ({', '.join(self.systems)})"
            raise InputError(scores.name, wanted, ", ".join(given))
        order = list(self.systems) if set(given) == set(self.systems) else given
        return mapped(self, _design(scores, self.quality, order))


Map = Fusion | IsotonicCalibration


@dataclass(frozen=True)
class Fitting:
    """How a map is fitted, as :func:`calibrate` says."""

    estimator: str = "linear"
    prior: float = 0.5
    laplace: bool = True
    quality: tuple[str, ...] = ()
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.estimator not in ("linear", "isotonic"):
            raise InputError("calibration estimator", "linear or isotonic", self.estimator)
        if self.estimator == "isotonic" and self.quality:
            raise InputError("quality: has no effect on the isotonic map")
        if self.folds < 3:
            raise InputError("folds", "3 or more", self.folds)

    def fit(
        self, systems: Sequence[str], columns: Sequence[FloatArray], own: BoolArray, non: BoolArray
    ) -> Map:
        """The map of some trials, ``own`` of targets and ``non`` of nontargets."""
        if self.estimator == "isotonic":
            return isotonic(columns[0][own], columns[0][non], laplace=self.laplace)
        slopes, offset, is_penalised = steady_logistic(columns, own, non, prior=self.prior)
        return Fusion(
            tuple(systems), self.quality, tuple(slopes.tolist()), offset, is_penalised=is_penalised
        )


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedScores:
    """LLRs of :func:`calibrate` and :func:`fuse`.

    ``scores`` hold them as one system, ``map`` made them. Where they were cross-fitted, ``fits``
    maps made them and ``map`` is that of all trials, for other data; ``penalised_fits`` of these
    maps needed Firth's penalty, and they judge ``penalised_trials``. ``raw`` are the scores they
    come from, ``best`` the system of those with the lowest C_llr^min where the map was fitted.
    """

    scores: Scores
    map: Map
    raw: Scores
    best: str
    fits: int = 1
    notices: tuple[Notice, ...] = field(default=())
    penalised_fits: int = 0
    penalised_trials: int = 0

    def __repr__(self) -> str:
        return visible(f"CalibratedScores({len(self.scores):,} LLRs; {self.sentence})")

    @property
    def sentence(self) -> str:
        """The map in words."""
        said = "isotonic map (PAV)"
        if isinstance(self.map, Fusion):
            names = (*self.map.systems, *self.map.quality)
            terms = [f"{w:+.6g}·{x}" for w, x in zip(self.map.weights, names, strict=True)]
            said = f"LLR = {' '.join(terms)} {self.map.offset:+.6g}".replace("= +", "= ")
        crossed = f"; cross-fitted by speaker with {self.fits} fits, this one is of all trials"
        return said.replace(" -", " − ").replace(" +", " + ") + crossed * (self.fits > 1)

    def against_raw(
        self,
        *,
        battery: Battery | None = None,
        replicates: int | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> Comparison:
        """The numbers before and after, with intervals and their paired difference, as
        :func:`compare` has them; before is the ``best`` of the systems. The map is taken as given:
        replicates draw speakers of these trials and fit nothing.
        """
        (after,) = self.scores.systems
        both = {self.best: self.raw.scores(self.best), after: self.scores.scores()}
        how: dict[str, Any] = {"replicates": replicates, "level": level, "seed": seed}
        table = replace(self.raw, systems=both)
        made = compare(table, self.best, after, battery=battery, privacy=False, **how)
        shown = [difference for difference in made.differences if difference.first.metric in SHOWN]
        kept = tuple(replace(difference, second_better=None) for difference in shown)
        return replace(made, differences=kept, notices=(*self.notices, *made.notices))


def fuse(
    scores: Scores | Sequence[Scores],
    *,
    train: Scores | Sequence[Scores] | Fusion | None = None,
    prior: float = 0.5,
    quality: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
) -> CalibratedScores:
    """Fuse the scores of several systems into one LLR: Σ w_k·s_k + offset.

    Weights come from the logistic regression of :func:`calibrate`, with a column per system.

    Parameters
    ----------
    scores : Scores or sequence of Scores
        A table with several systems, or tables of one list that are joined by trial.
    train : Scores, sequence of Scores or Fusion, optional
        Development list of other speakers, or a map to apply; cross-fitted without one.
    prior : float
        Prior at which the weights are fitted.
    quality : sequence of str
        Columns of numbers that enter additively, as in :func:`calibrate`.
    folds : int
        Groups of speakers for cross-fitting.
    seed : int
        Of the draw of these groups.

    Returns
    -------
    CalibratedScores
        The LLRs with the map.

    Examples
    --------
    Of two Gaussian scores with means ±1, that of variance v gets the weight 2/v.

    >>> import numpy as np, unmask as um
    >>> def table(seed):
    ...     rng, mean = np.random.default_rng(seed), np.repeat([1.0, -1.0], 20_000)
    ...     scores = {"a": mean + rng.normal(size=40_000), "b": mean + 2 * rng.normal(size=40_000)}
    ...     return um.Scores(None, None, mean > 0, systems=scores)
    >>> fused = um.fuse(table(0), train=table(1))
    >>> [round(weight, 1) for weight in fused.map.weights]
    [2.0, 0.5]
    """
    how = Fitting("linear", prior, True, tuple(quality), folds, seed)
    given = _joined(scores)
    if len(given.systems) < 2:
        raise InputError(given.name, "two systems or more to fuse", ", ".join(given.systems))
    return calibrated(given, train if isinstance(train, Map) else _joined(train), how, "fusion")


def calibrated(
    scores: Scores, train: Scores | Map | None, how: Fitting, name: str = ""
) -> CalibratedScores:
    """LLRs of all ``systems`` of a table by a map, one fitted to ``train``, or cross-fitted."""
    systems, fits = list(scores.systems), 1
    if not name:
        if len(systems) > 1:
            raise InputError(scores.name, "one system to calibrate", ", ".join(systems))
        name = "calibrated" if systems[0] != "calibrated" else "calibrated again"
    notices = _apart(train, scores) if isinstance(train, Scores) else []
    if isinstance(train, Map):
        map = train
        best, more = _best_for(map, scores)
        notices += more
    else:
        fitted = scores if train is None else train
        fitted.check_classes()
        fitted_map = how.fit(
            [*fitted.systems], _columns(fitted, how), fitted.is_target, fitted.is_nontarget
        )
        alone = _best_alone(fitted)
        best = alone if alone in systems else systems[list(fitted.systems).index(alone)]
        map = _labelled(fitted_map, next(iter(fitted.systems)), alone)
    penalty = 0, 0
    if train is None:
        llr, fits, penalty = _crossfitted(scores, how)
    else:
        llr = map.apply(scores) if isinstance(map, Fusion) else map.apply(scores.scores())
    notices += _map_notices(map, fits, penalty, len(scores))
    if train is not None:
        notices += _system_notices(map, systems, is_applied=isinstance(train, Map))
    table = replace(scores, systems={name: llr})
    return CalibratedScores(table, map, scores, best, fits, tuple(notices), *penalty)


def _best_alone(scores: Scores) -> str:
    """The system with the lowest C_llr^min on these labelled trials."""
    least = {
        name: Roc.from_scores(scores.targets(name), scores.nontargets(name)).min_cllr()
        for name in scores.systems
    }
    return min(least, key=lambda name: least[name])


def _labelled(map: Map, system: str, best: str) -> Map:
    """The map with what it was fitted to: the best of its systems, or its only one."""
    if isinstance(map, Fusion):
        return replace(map, best=best)
    return replace(map, system=system)


def _best_for(map: Map, scores: Scores) -> tuple[str, list[Notice]]:
    """Which of the systems at hand was best where an applied map was fitted.

    A map that does not say so (or names other systems) leaves it to the labels at hand.
    """
    systems = list(scores.systems)
    if not isinstance(map, Fusion) or len(systems) == 1:
        return systems[0], []
    if map.best in systems:
        return map.best, []
    if map.best in map.systems and len(map.systems) == len(systems):
        return systems[map.systems.index(map.best)], []
    if scores.label is None or not (scores.is_target.any() and scores.is_nontarget.any()):
        return systems[0], []
    best = _best_alone(scores)
    sentence = f"the map does not say which system was best; on these trials it is {best}"
    return best, [Notice("best-of-these", "fusion", sentence, "note")]


def save_map(map: Map, path: str | Path) -> None:
    """Write a map as JSON; infinite LLRs are written as words."""
    parts: dict[str, Any] = {"kind": type(map).__name__, **asdict(map)}
    if isinstance(map, IsotonicCalibration):
        llr = [float(x) if np.isfinite(x) else str(x) for x in map.llr]
        parts |= {"score": map.score.tolist(), "llr": llr, "system": map.system}
    text = json.dumps({"format": _FORMAT, **parts}, indent=1, ensure_ascii=False)
    write_whole(Path(path), f"{text}\n".encode())


def read_map(path: str | Path) -> Map:
    """Read what :func:`save_map` wrote."""
    text = "\n".join(text_lines(path))
    try:
        parts = json.loads(text)
        if (parts.pop("format"), kind := parts.pop("kind"))[0] != _FORMAT:
            raise ValueError("another format")
        if kind == "IsotonicCalibration":
            score, llr = (np.array(parts[name], np.float64) for name in ("score", "llr"))
            laplace, system = bool(parts["laplace"]), str(parts.get("system", ""))
            made: Map = IsotonicCalibration(score, llr, laplace, system)
            sound = score.ndim == 1 and 0 < score.size == llr.size and not np.isnan(llr).any()
            sound = sound and bool((np.diff(score) >= 0).all())
        else:
            names = tuple(parts["systems"]), tuple(parts["quality"])
            weights, offset = tuple(parts["weights"]), parts["offset"]
            if parts.get("separable"):
                raise ValueError("its classes did not overlap: fit it again")
            is_penalised, best = bool(parts.get("is_penalised")), str(parts.get("best", ""))
            made = Fusion(*names, weights, offset, is_penalised, best)
            sound = len(made.weights) == len(made.systems) + len(made.quality)
            sound = sound and bool(np.isfinite([*made.weights, made.offset]).all())
        if not sound:
            raise ValueError("numbers that do not fit")
    except (
        *(ValueError, LookupError, TypeError),
        *(ArithmeticError, AttributeError, RecursionError),
    ) as error:
        wanted = "a map that unmask calibrate or fuse saved"
        raise InputError(path, wanted, f"another file ({error})") from None
    return made


def _joined(scores: Any) -> Any:
    if scores is None or isinstance(scores, Scores) or not isinstance(scores, Sequence):
        return scores if scores is None else read_table(scores)
    return Scores.merged(*scores)


def _columns(scores: Scores, how: Fitting) -> list[FloatArray]:
    if how.estimator == "isotonic":
        return [scores.scores()]
    return _design(scores, how.quality, list(scores.systems))


def _design(scores: Scores, quality: Sequence[str], systems: Sequence[str]) -> list[FloatArray]:
    """Scores of systems, then columns of quality, all finite."""
    columns = [scores.scores(name) for name in systems]
    for name, values in zip(systems, columns, strict=True):
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax()) + 1
            wanted = "finite scores for a linear map"
            raise InputError(f"{scores.name}, row {row}", wanted, f"{values[row - 1]} of {name}")
    return columns + [_quality(scores, name) for name in quality]


def _quality(scores: Scores, name: str) -> FloatArray:
    own, known = name.removeprefix(_LOG), scores.columns
    if own not in known:
        columns = ", ".join(known) or "none"
        raise InputError(scores.name, f"a column {own} of quality", f"the columns {columns}")
    numbers = known[own].names.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    with np.errstate(all="ignore"):
        values: FloatArray = (np.log(numbers) if name != own else numbers)[known[own].codes]
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        wanted = f"a {'positive' if name != own else 'finite'} number in column {own}"
        actual = known[own].decode(row) or "nothing"
        raise InputError(f"{scores.name}, row {row + 1}", wanted, actual)
    return values


def mapped(map: Map, columns: Sequence[FloatArray]) -> FloatArray:
    """A map of the columns it was fitted to."""
    if not isinstance(map, Fusion):
        return map.apply(columns[0])
    total = np.full(len(columns[0]), map.offset)
    for weight, column in zip(map.weights, columns, strict=True):
        total += weight * column
    return total


def _crossfitted(scores: Scores, how: Fitting) -> tuple[FloatArray, int, tuple[int, int]]:
    """LLRs by maps of the trials without a speaker of either fold of a trial, and how many maps.

    The last two numbers are the maps that needed Firth's penalty and the trials they judge.
    """
    if scores.enrol_speaker is None or scores.test_speaker is None:
        wanted = "speakers to cross-fit by (--speakers), or a development list (--train)"
        raise InputError(scores.name, wanted, "neither")
    fold = np.sort(fold_of(scores.enrol_speaker, scores.test_speaker, how), axis=0)
    columns, systems = _columns(scores, how), list(scores.systems)
    pairs = np.unique(fold[0] * how.folds + fold[1])
    llr = np.empty(len(scores))
    penalised_maps = penalised_trials = 0
    for pair in pairs:
        i, j = divmod(int(pair), how.folds)
        seen = ~np.isin(fold, (i, j)).any(axis=0)
        is_target, is_nontarget = scores.is_target & seen, scores.is_nontarget & seen
        if not (is_target.any() and is_nontarget.any()):
            wanted = f"trials of both classes without the speakers of folds {i + 1} and {j + 1}"
            found = f"{is_target.sum()} target and {is_nontarget.sum()} nontarget"
            raise InputError(scores.name, wanted, f"{found}; give more speakers or --train")
        judged = (fold[0] == i) & (fold[1] == j)
        map = how.fit(systems, columns, is_target, is_nontarget)
        llr[judged] = mapped(map, [column[judged] for column in columns])
        if isinstance(map, Fusion) and map.is_penalised:
            penalised_maps += 1
            penalised_trials += int(judged.sum())
    return llr, len(pairs), (penalised_maps, penalised_trials)


def fold_of(enrol: Ids, test: Ids, how: Fitting) -> IntArray:
    """The folds of both speakers of each trial, drawn; all are of one size but for one speaker."""
    both = Ids.concatenate([enrol, test]).alphabetical()
    drawn = np.random.default_rng(how.seed).permutation(len(both.names)) % how.folds
    return drawn[both.codes].reshape(2, -1)


def _apart(train: Scores, scores: Scores) -> list[Notice]:
    """Refuse lists that share speakers, or where these are not known, identifiers."""
    sides = ("enrol_speaker", "test_speaker"), ("enrol", "test")
    for what, columns in zip(("speakers", "utterances or models"), sides, strict=True):
        given = [[getattr(table, side) for side in columns] for table in (train, scores)]
        if any(column is None for table in given for column in table):
            continue
        names = [pl.concat([ids.present for ids in table]) for table in given]
        shared = names[0].filter(names[0].is_in(names[1].implode())).unique(maintain_order=True)
        if len(shared):
            wanted = f"a development list of other {what} than {scores.name}"
            actual = f"{len(shared):,} of both (first: {shared[0]})"
            raise InputError(train.name, wanted, actual)
        if what == "speakers":
            return []
    sentence = f"speakers are not known: {train.name} and {scores.name} may share some"
    return [Notice("speakers-not-known", "calibration", sentence)]


def _map_notices(map: Map, fits: int, penalty: tuple[int, int], trials: int) -> list[Notice]:
    """That maps needed Firth's penalty: how many, and how many trials they judge."""
    if not isinstance(map, Fusion):
        return []
    penalised_maps, penalised_trials = penalty
    if penalised_maps:
        sentence = (
            f"the classes hardly overlap in {penalised_maps} of {fits} cross-fitted maps, which"
            f" judge {penalised_trials:,} of {trials:,} trials: they were fitted with Firth's"
            " penalty, which keeps LLRs moderate"
        )
        return [Notice("penalised-maps", "calibration", sentence)]
    if map.is_penalised and fits == 1:
        sentence = (
            "the classes hardly overlap where the map was fitted: it was fitted with Firth's"
            f" penalty, which keeps LLRs moderate, and judges all {trials:,} trials"
        )
        return [Notice("penalised-maps", "calibration", sentence)]
    return []


def _system_notices(map: Map, systems: Sequence[str], *, is_applied: bool) -> list[Notice]:
    """That a map was fitted to systems of other names.

    Files of a development list have other names as a rule: for one system it is said of a map that
    was read and applied.
    """
    names = map.systems if isinstance(map, Fusion) else (map.system,)
    if "" in names or set(names) == set(systems):
        return []
    if len(systems) == 1:
        if not is_applied:
            return []
        sentence = f"the map was fitted to {names[0]} and is applied to {systems[0]}"
        return [Notice("another-system", "calibration", sentence)]
    pairs = ", ".join(f"{new} as {old}" for old, new in zip(names, systems, strict=True))
    return [Notice("by-order", "fusion", f"systems taken in their order: {pairs}", "note")]
