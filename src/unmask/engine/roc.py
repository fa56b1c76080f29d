"""The ROC statistic: exact, mergeable, weighted. Everything that counts errors goes through it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, as_numbers, as_scores, as_weights, lazy, reject_nan
from unmask.engine import information, operating
from unmask.engine.operating import OperatingPoint, Pav, Polygon, first_of_blocks
from unmask.errors import InputError

_PIECE = 1 << 20
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, eq=False)
class Roc:
    r"""Counts of nontargets below, at and between the distinct target scores.

    With distinct target scores :math:`t_1 < … < t_m` it holds how many targets lie at each
    :math:`t_j` (``target``), how many nontargets equal it (``equal``) and how many lie in each of
    the gaps below, between and above them (``between``, m + 1 counts). Between two target scores
    Pmiss is constant, so no other score can be a corner of the ROC's hull: the counts suffice for
    the ROC, EER, minDCF, PAV, C_llr^min, D_ECE and l_w, exactly. Nontarget counts of disjoint sets
    of trials add up (:meth:`__add__`), so memory grows with the targets and not with the trials.

    A threshold τ accepts scores of at least τ. ``scores`` may hold further thresholds at which
    rates are wanted (their ``target`` count is 0), ``marks`` names some of them. ``loss`` holds the
    summed softplus of the scores read as LLRs, (targets, nontargets), where C_llr was asked for.

    Parameters
    ----------
    scores : array
        Distinct target scores and further thresholds, ascending.
    target, equal : array
        Targets and nontargets at each of them.
    between : array
        Nontargets below, between and above them.
    loss : tuple of float, optional
        Summed softplus of both classes, for C_llr.
    marks : mapping of str to array, optional
        Thresholds by name, all of them among the scores.

    Examples
    --------
    >>> import unmask as um
    >>> roc = um.Roc.from_scores([1.0, 2.0, 3.0], [0.0, 1.5], thresholds=[0.5])
    >>> round(roc.eer(), 3)
    0.2
    >>> roc.at_threshold(0.5).p_fa
    0.5
    """

    scores: FloatArray
    target: FloatArray
    equal: FloatArray
    between: FloatArray
    loss: tuple[float, float] | None = None
    marks: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_scores(
        cls,
        target: npt.ArrayLike,
        nontarget: npt.ArrayLike,
        *,
        target_weights: npt.ArrayLike | None = None,
        nontarget_weights: npt.ArrayLike | None = None,
        thresholds: Iterable[float] = (),
        cllr: bool = False,
        marks: Mapping[str, FloatArray] | None = None,
    ) -> Roc:
        """Count ``target`` and ``nontarget`` scores: one sort of each, merged by binary search.

        ``target_weights`` and ``nontarget_weights`` say how much each trial counts, 1 unless given;
        ``thresholds`` and named ``marks`` are further scores at which rates are wanted; ``cllr``
        asks for C_llr.
        """
        targets = as_scores(target, "target")
        nontargets = as_scores(nontarget, "nontarget")
        weights = as_weights(nontarget_weights, nontargets.size, "nontarget")
        grid = _grid(targets, thresholds, marks)
        return cls._counted(targets, target_weights, grid, [(nontargets, weights)], cllr, marks)

    @classmethod
    def from_blocks(
        cls,
        target: npt.ArrayLike,
        blocks: Iterable[npt.ArrayLike],
        *,
        target_weights: npt.ArrayLike | None = None,
        thresholds: Iterable[float] = (),
        cllr: bool = False,
        marks: Mapping[str, FloatArray] | None = None,
    ) -> Roc:
        """Count from a stream of ``blocks`` of nontarget scores, read once.

        Equals :meth:`from_scores` of all of them together; ``target``, ``target_weights``,
        ``thresholds``, ``cllr`` and ``marks`` are those there.
        """
        targets = as_scores(target, "target")
        grid = _grid(targets, thresholds, marks)
        pieces = ((piece, None) for piece in _pieces(blocks, max(_PIECE, grid.size)))
        return cls._counted(targets, target_weights, grid, pieces, cllr, marks)

    @classmethod
    def from_counts(
        cls,
        scores: FloatArray,
        target: npt.ArrayLike,
        below: IntArray,
        equal: IntArray,
        total: int,
        loss: tuple[float, float] | None = None,
    ) -> Roc:
        """From counts that were taken elsewhere, in blocks: at each of ``scores`` lie ``target``
        targets and ``equal`` nontargets, under it ``below`` of the ``total`` nontargets.
        """
        between = np.append(below, total) - np.concatenate([[0], below + equal])
        ties, between = equal.astype(np.float64), between.astype(np.float64)
        return cls(scores, np.asarray(target, np.float64), ties, between, loss)

    @classmethod
    def _counted(
        cls,
        targets: FloatArray,
        target_weights: npt.ArrayLike | None,
        grid: FloatArray,
        pieces: Iterable[tuple[FloatArray, FloatArray | None]],
        cllr: bool,
        marks: Mapping[str, FloatArray] | None,
    ) -> Roc:
        """The statistic at the scores of a grid, of pieces of nontargets and their weights."""
        weights = as_weights(target_weights, targets.size, "target")
        first, last = _cumulative(targets, weights, grid)
        below, upto = np.zeros((2, grid.size))
        total = loss = 0.0
        for piece, weight in pieces:
            lower, upper = _cumulative(piece, weight, grid)
            below += lower
            upto += upper
            total += float(piece.size if weight is None else weight.sum())
            loss += information.summed_softplus(piece, weight) if cllr else 0.0
        if total == 0:
            raise InputError("no nontarget scores: both classes need at least one trial")
        between = np.append(below, total) - np.concatenate([[0.0], upto])
        losses = (information.summed_softplus(-targets, weights), loss) if cllr else None
        return cls(grid, last - first, upto - below, between, losses, marks or {})

    def __add__(self, other: Roc) -> Roc:
        """Merge two statistics of the same targets: the nontargets add up."""
        if not (
            np.array_equal(self.scores, other.scores) and np.array_equal(self.target, other.target)
        ):
            raise InputError("only ROC statistics over the same target scores can be merged")
        loss = None
        if self.loss is not None and other.loss is not None:
            loss = (self.loss[0], self.loss[1] + other.loss[1])
        equal, between = self.equal + other.equal, self.between + other.between
        return Roc(self.scores, self.target, equal, between, loss, self.marks)

    def negated(self) -> Roc:
        """The statistic of the negated scores (without ``loss``)."""
        return Roc(-self.scores[::-1], self.target[::-1], self.equal[::-1], self.between[::-1])

    @property
    def targets(self) -> float:
        """Number (or total weight) of target trials."""
        return float(self.target.sum())

    @property
    def nontargets(self) -> float:
        """Number (or total weight) of nontarget trials."""
        return float(self.equal.sum() + self.between.sum())

    @lazy
    def below(self) -> FloatArray:
        """Nontargets below each score."""
        return np.asarray(np.cumsum(self.between[:-1] + self.equal) - self.equal)

    @property
    def bins(self) -> tuple[FloatArray, FloatArray]:
        """Targets and nontargets of all bins: 2j lies below score j, 2j + 1 at it."""
        target = np.zeros(2 * self.scores.size + 1)
        nontarget = np.empty_like(target)
        target[1::2] = self.target
        nontarget[1::2] = self.equal
        nontarget[::2] = self.between
        return target, nontarget

    @lazy
    def _segments(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Targets, nontargets and number of each of the non-empty :attr:`bins`."""
        target, nontarget = self.bins
        bins = np.flatnonzero((target > 0) | (nontarget > 0))
        return target[bins], nontarget[bins], bins

    def _start(self, bins: IntArray) -> FloatArray:
        """Lowest score that belongs to a bin: a gap begins right above the score below it."""
        with np.errstate(over="ignore"):  # right above the highest finite number is infinity
            gap = np.nextafter(self.scores[np.maximum(bins // 2 - 1, 0)], np.inf)
        at = self.scores[np.minimum(bins // 2, self.scores.size - 1)]
        return np.where(bins == 0, -np.inf, np.where(bins % 2 == 0, gap, at))

    def _point(self, value: float, vertex: int) -> OperatingPoint:
        target, _, bins = self._segments
        threshold = np.inf
        if vertex == 0:
            threshold = -np.inf
        elif vertex < bins.size:
            threshold = float(self._start(bins[vertex : vertex + 1])[0])
            if not target[vertex] and target[vertex - 1]:
                threshold = float(np.nextafter(self.scores[bins[vertex - 1] // 2], np.inf))
        elif self.scores[-1] == np.inf:
            threshold = np.nan
        polygon = self.polygon
        return OperatingPoint(
            value, threshold, float(polygon.p_miss[vertex]), float(polygon.p_fa[vertex])
        )

    @lazy
    def polygon(self) -> Polygon:
        """The ROC polygon: a point at every distinct score and at ±inf; ties are diagonals."""
        target, nontarget, _ = self._segments
        return Polygon.of(target, nontarget)

    @property
    def _corners(self) -> IntArray:
        """The points of the polygon that are there whatever further thresholds are counted at."""
        alone = self._segments[0] == 0
        return np.flatnonzero(np.concatenate([[True], ~(alone[:-1] & alone[1:]), [True]]))

    @lazy
    def _first(self) -> IntArray:
        """The first of the non-empty bins of each PAV block."""
        return first_of_blocks(*self._segments[:2])

    def block_ends(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest score of each PAV block that has both classes.

        Such a block begins with a target, which is exact, and ends with a nontarget: that is exact
        where its score is one of ``scores``, and else the middle of its gap.
        """
        bins = self._segments[2]
        ends = bins[self._first], bins[np.append(self._first[1:], bins.size) - 1]
        return self._middle(ends[0]), self._middle(ends[1])

    def _middle(self, bins: IntArray) -> FloatArray:
        last = self.scores.size - 1
        below = self.scores[np.clip((bins - 1) // 2, 0, last)]
        above = self.scores[np.minimum(bins // 2, last)]
        return np.where(
            below == above, above, np.where(np.isinf(above), below, (below + above) / 2)
        )

    @lazy
    def pav(self) -> Pav:
        """Oracle calibration: isotonic regression of the labels on the scores, ties pooled."""
        target, nontarget, bins = self._segments
        first = self._first
        return Pav(
            self._start(bins[first[1:]]),
            np.add.reduceat(target, first),
            np.add.reduceat(nontarget, first),
            self.targets,
            self.nontargets,
        )

    @lazy
    def pav_laplace(self) -> Pav:
        """The same with one target and one nontarget added at each end."""
        return self.pav.with_laplace()

    @lazy
    def hull(self) -> Polygon:
        """The ROC convex hull, whose segments are the PAV blocks."""
        return Polygon.of(self.pav.target, self.pav.nontarget)

    def eer_point(self, *, estimator: str = "rocch") -> OperatingPoint:
        """EER by an ``estimator`` (:meth:`eer`) and its threshold: that of the rule itself
        (``kaldi``, ``speechbrain``), or where the ROC polygon crosses Pmiss = Pfa.
        """
        if estimator not in operating.EER_ESTIMATORS:
            raise InputError("EER estimator", ", ".join(operating.EER_ESTIMATORS), estimator)
        if estimator == "kaldi":
            value, row = operating.kaldi_error(self.target, self.below, self.nontargets)
            return self.at_threshold(float(self.scores[row]))._replace(value=value)
        crossing, corners = operating.equal_error(self.polygon)[0], self._corners
        points = Polygon(self.polygon.p_fa[corners], self.polygon.p_miss[corners])
        vertex = int(corners[operating.equal_error(points)[1]])
        if estimator == "rocch":
            crossing = operating.equal_error(self.hull)[0]
        elif estimator != "raw":
            whole = estimator == "speechbrain"
            crossing, row = operating.nearest_error(self.target, self.equal, self.between, whole)
            if row >= 0 and whole:
                return self._point(crossing, vertex)._replace(threshold=float(self.scores[row]))
        return self._point(crossing, vertex)

    def eer(self, *, estimator: str = "rocch") -> float:
        """Equal error rate; ``estimator``: on the hull (``rocch``), on the polygon (``raw``), or by
        the rule of a toolkit (``kaldi``, ``speechbrain``, ``asvspoof``; :func:`unmask.eer`).
        """
        return self.eer_point(estimator=estimator).value

    def min_dcf_point(
        self, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0
    ) -> OperatingPoint:
        """Least normalised detection cost over all thresholds, ±inf included, and where it is;
        prior ``p_target`` and costs ``c_miss``, ``c_fa`` as in :class:`~.operating.Cost`.
        """
        cost = operating.Cost(p_target, c_miss, c_fa)
        costs = cost.of(self.polygon.p_miss, self.polygon.p_fa)
        best = int(np.argmin(costs))
        return self._point(float(costs[best]), best)

    def min_dcf(self, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0) -> float:
        """The cost of :meth:`min_dcf_point` at ``p_target`` with costs ``c_miss`` and ``c_fa``."""
        return self.min_dcf_point(p_target=p_target, c_miss=c_miss, c_fa=c_fa).value

    def at_threshold(self, threshold: float) -> OperatingPoint:
        """Pmiss and Pfa where scores of at least ``threshold`` are accepted.

        The threshold must be one of the target scores, ±inf, or one given as ``thresholds``:
        elsewhere the statistic holds no exact count.
        """
        j = int(np.searchsorted(self.scores, threshold))
        if threshold == np.inf and (j == self.scores.size or self.scores[j] != np.inf):
            return OperatingPoint(np.nan, threshold, 1.0, 0.0)
        if threshold != -np.inf and (j == self.scores.size or self.scores[j] != threshold):
            raise InputError(f"no exact count at {threshold}: name it in thresholds=…")
        miss = float(self.target[:j].sum())
        rejected = 0.0 if threshold == -np.inf else float(self.below[j])
        # Accepted trials over all: 1 − rejected/all may lie just above a demand that is kept.
        p_fa = (self.nontargets - rejected) / self.nontargets
        return OperatingPoint(np.nan, threshold, miss / self.targets, p_fa)

    def judged(
        self, threshold: float | str, number: Literal["p_miss", "p_fa"] | operating.Cost
    ) -> OperatingPoint:
        """An error rate, or a cost, at a ``threshold`` or at the first mark of that name."""
        at = float(self.marks[threshold][0]) if isinstance(threshold, str) else threshold
        point = self.at_threshold(at)
        if isinstance(number, str):
            return point._replace(value=float(getattr(point, number)))
        return point._replace(value=float(number.of(point.p_miss, point.p_fa)))

    def far_point(self, far: float) -> OperatingPoint:
        """Miss rate at the smallest score of the statistic whose false-alarm rate is at most
        ``far``; exact where the marks of :func:`~.operating.far_marks` were counted.
        """
        rates = 1.0 - self.below / self.nontargets
        row = int(np.searchsorted(-rates, -far * (1 + 1e-12)))
        point = self.at_threshold(float(self.scores[row]) if row < rates.size else np.inf)
        if point.p_fa > far * (1 + 1e-12):
            # Nontarget trials of score +inf pass every threshold: none keeps the demand.
            return OperatingPoint(np.nan, np.nan, np.nan, np.nan)
        return point._replace(value=point.p_miss)

    def false_alarms(self, mark: str) -> FloatArray:
        """False-alarm rates at all thresholds of a ``mark``."""
        row = np.searchsorted(self.scores, self.marks[mark])
        beyond = row == self.scores.size
        rates = 1.0 - self.below[np.minimum(row, self.scores.size - 1)] / self.nontargets
        return np.where(beyond, 0.0, np.maximum(rates, 0.0))

    def act_dcf_point(
        self, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0
    ) -> OperatingPoint:
        """Normalised cost at the Bayes threshold of ``p_target``, ``c_miss`` and ``c_fa``, scores
        read as LLRs, and its error rates.
        """
        cost = operating.Cost(p_target, c_miss, c_fa)
        return self.judged(cost.bayes_threshold, cost)

    def act_dcf(self, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0) -> float:
        """Normalised cost at the Bayes threshold log(Cfa(1−p)/(Cmiss·p)) of prior p = ``p_target``
        and costs ``c_miss``, ``c_fa``.
        """
        return self.act_dcf_point(p_target=p_target, c_miss=c_miss, c_fa=c_fa).value

    def tpr_point(self, fpr: float) -> OperatingPoint:
        """Share of targets accepted where Pfa = ``fpr`` on the ROC polygon; threshold and rates are
        those of the first point with no more false alarms.
        """
        return self._point(*operating.accepted_at(self.polygon, fpr))

    def tpr_at_fpr(self, fpr: float) -> float:
        """True-positive rate at the false-positive rate ``fpr``."""
        return self.tpr_point(fpr).value

    def cllr(self) -> float:
        """C_llr of the scores read as LLRs, in bits (needs ``cllr=True`` when counting)."""
        if self.loss is None:
            raise InputError("C_llr was not counted: build the statistic with cllr=True")
        mean = self.loss[0] / self.targets + self.loss[1] / self.nontargets
        return float(mean / (2 * np.log(2)))

    def min_cllr(self) -> float:
        """C_llr of the oracle LLRs, in bits."""
        return information.min_cllr(self.pav)

    def d_ece(self) -> float:
        """ZEBRA's expected privacy disclosure D_ECE in bits (Noé 2022, eq. 13)."""
        return information.d_ece(self.pav)

    def l_w(self) -> float:
        """ZEBRA's worst-case disclosure l_w: largest |oracle LLR| in base 10, with Laplace."""
        return information.l_w(self.pav_laplace)

    def tag(self) -> str:
        """ZEBRA's categorical tag of l_w (Noé 2022, Table 1)."""
        return information.tag(self.l_w())

    def d_sys(self, *, estimator: str = "pav") -> float:
        """Linkability D_sys of Gomez-Barrero 2017, ω = 1: from the PAV blocks, or by a
        ``histogram`` between the marks of that name.
        """
        if estimator == "pav":
            return information.d_sys(self.pav)
        edges = self.marks["histogram"]
        row = np.searchsorted(self.scores, edges)
        counts = []
        for below, total in (
            (np.cumsum(self.target) - self.target, self.targets),
            (self.below, self.nontargets),
        ):
            counts.append(np.diff(below[row[:-1]], append=total))
        return information.d_sys_of_bins(edges, *counts)


def _grid(
    targets: FloatArray, thresholds: Iterable[float], marks: Mapping[str, FloatArray] | None
) -> FloatArray:
    """The distinct target scores and further thresholds, in order."""
    named = (marks or {}).values()
    extra = np.concatenate([np.asarray(tuple(thresholds), np.float64), *named])
    reject_nan(extra, "threshold")
    return np.unique(np.concatenate([targets, extra]))


def _cumulative(
    scores: FloatArray, weights: FloatArray | None, grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weight of the scores under each grid point, and at most at it."""
    order = None if weights is None else np.argsort(scores)
    ordered = np.sort(scores) if order is None else scores[order]
    below, upto = (np.searchsorted(ordered, grid, side=side) for side in _SIDES)
    if weights is None:
        reject_nan(ordered[-1:], "nontarget")
        return below.astype(np.float64), upto.astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return total[below], total[upto]


def _pieces(blocks: Iterable[npt.ArrayLike], size: int) -> Iterator[FloatArray]:
    """Regroup blocks of any length into pieces of about ``size``, without copying long ones."""
    waiting: list[FloatArray] = []
    held = 0
    for block in blocks:
        scores = as_numbers(block, "nontarget").reshape(-1)
        for start in range(0, scores.size, size):
            piece = scores[start : start + size]
            waiting.append(piece)
            held += piece.size
            if held >= size:
                yield np.concatenate(waiting)
                waiting, held = [], 0
    if held:
        yield np.concatenate(waiting)
