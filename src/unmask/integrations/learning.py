"""Metrics in the order that scikit-learn has: labels, then scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask import engine
from unmask.errors import InputError

METRICS: dict[str, Callable[..., float]] = {
    name: getattr(engine, name)
    for name in ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "d_sys", "tpr_at_fpr")
}
"""Metrics of target and nontarget scores, by name."""
_GAINS = ("d_sys", "tpr_at_fpr")


def detection_metric(
    labels: npt.ArrayLike,
    scores: npt.ArrayLike,
    metric: str = "eer",
    *,
    prior: float | None = None,
    **options: Any,
) -> float:
    """A ``metric`` of :data:`METRICS` of ``labels`` (the larger value means target) and ``scores``.

    With a ``prior`` the scores are posterior probabilities of a target at that prior, and become
    LLRs: logit(p) − logit(prior). ``options`` are those of the metric, such as ``p_target``.
    """
    if metric not in METRICS:
        raise InputError("metric", ", ".join(METRICS), metric)
    kinds, values = np.asarray(labels), np.asarray(scores, np.float64)
    if prior is not None:
        with np.errstate(divide="ignore"):
            values = np.log(values) - np.log1p(-values) - np.log(prior / (1 - prior))
    if kinds.shape != values.shape:
        raise InputError("scores", f"one for each of {kinds.size} labels", f"shape {values.shape}")
    if len(known := np.unique(kinds)) != 2:
        raise InputError("labels", "two classes", f"{len(known)}")
    own = kinds == known[1]
    return float(METRICS[metric](values[own], values[~own], **options))


def scorer(metric: str = "eer", *, prior: float | None = None, **options: Any) -> Any:
    """A scikit-learn scorer for ``cross_val_score``, ``GridSearchCV`` and their like.

    It takes the decision function of an estimator, or else its probabilities; with a ``prior``
    probabilities alone, as :func:`detection_metric` says. Where less is better, scikit-learn
    negates the value.
    """
    from sklearn.metrics import make_scorer

    if metric not in METRICS:
        raise InputError("metric", ", ".join(METRICS), metric)
    response: Any = ("decision_function", "predict_proba") if prior is None else "predict_proba"
    how = {"greater_is_better": metric in _GAINS, "response_method": response}
    return make_scorer(detection_metric, metric=metric, prior=prior, **how, **options)
