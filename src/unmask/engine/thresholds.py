"""Which threshold, and how wrong one is there: operating points with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unmask.base import Tabular
from unmask.engine.battery import Battery
from unmask.engine.evaluating import evaluate
from unmask.engine.evaluation import Evaluation
from unmask.estimate import Estimate, Notice

_METRICS = ("eer", "min_dcf", "threshold", "safe_threshold", "far", "frr", "cost")


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Tabular):
    """What :func:`operating_point` found: its table prints; ``result["far"]`` is one number, that
    of a system ``result.evaluation["plda"]["far"]``.
    """

    evaluation: Evaluation

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Thresholds, FAR, FRR and costs, those of EER and minimum cost first."""
        return tuple(one for one in self.evaluation.estimates if one.metric in _METRICS)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is to be said of the numbers."""
        return self.evaluation.notices

    def rows(self) -> list[dict[str, Any]]:
        """One row per system, group and number; with a development list, of both lists."""
        return [row for row in self.evaluation.rows() if row["metric"] in _METRICS]


def operating_point(
    data: Any,
    nontarget: Any = None,
    *,
    threshold: float | Sequence[float] = (),
    far: float | Sequence[float] = (),
    dev: Any = None,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Thresholds:
    """Errors at a threshold, or the threshold for a demanded false-alarm rate.

    A score equal to the threshold is accepted: FAR is the share of nontargets of at least it, FRR
    that of targets below it. A demanded FAR gets the smallest threshold that keeps it, and the
    *safe* one, where the upper end of the interval of FAR keeps it.

    Parameters
    ----------
    data : Scores, frame, array-like or path
        As in :func:`evaluate`; target scores, where ``nontarget`` is given.
    nontarget : array-like, optional
        Nontarget scores.
    threshold : float or sequence of float
        Thresholds to judge.
    far : float or sequence of float
        Demanded false-alarm rates.
    dev : Scores or array pair, optional
        A development list with other speakers: its thresholds are judged on ``data``.
    p_target, c_miss, c_fa : float
        Prior and costs of :func:`min_dcf`.
    replicates : int, optional
        Bootstrap replicates over speakers, 1,000 unless given; 0 for no intervals.
    level : float
        Confidence of the intervals.
    seed : int
        Seed of all draws.

    Returns
    -------
    Thresholds
        It prints as a table.

    Examples
    --------
    >>> import unmask as um
    >>> point = um.operating_point([1.0, 2.0, 3.0], [0.0, 1.5], threshold=1.5, replicates=0)
    >>> point["far"], point["frr"]
    (far 50 %, frr 33.33 %)
    """
    given = [(one,) if isinstance(one, int | float) else tuple(one) for one in (threshold, far)]
    battery = Battery((p_target,), c_miss, c_fa, threshold=given[0], far=given[1])
    how = {"replicates": replicates, "level": level, "seed": seed}
    return Thresholds(evaluate(data, nontarget, battery=battery, dev=dev, **how))
