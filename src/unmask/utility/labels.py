"""Labels that others predict from speech, such as emotion: unweighted average recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmask.base import FloatArray
from unmask.errors import InputError


def unweighted_average_recall(labels: Sequence[str], predictions: Sequence[str]) -> float:
    """UAR = mean over classes of the share of a class's utterances that are predicted rightly.

    Classes are those of ``labels``; chance is 1/classes whatever their sizes.
    """
    if len(labels) != len(predictions) or not len(labels):
        raise InputError(
            f"labels: expected as many as predictions, found {len(labels)} and {len(predictions)}"
        )
    truth, given = np.asarray(labels), np.asarray(predictions)
    return float(np.mean([np.mean(given[truth == one] == one) for one in np.unique(truth)]))


def recall_of(right: FloatArray, total: FloatArray) -> FloatArray:
    """UAR from how many of each class (last axis) were right, of how many; NaN where a class is
    missing.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.mean(right / total, axis=-1))
