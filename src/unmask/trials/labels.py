"""The words that mark a trial as target or nontarget."""

from __future__ import annotations

import numpy as np

from unmask.base import Labels
from unmask.trials.ids import Ids

TARGET, NONTARGET, OTHER = 1, 0, -1

DIGITS = {"1": TARGET, "0": NONTARGET}
WORDS = {
    "target": TARGET,
    "nontarget": NONTARGET,
    "tgt": TARGET,
    "imp": NONTARGET,
    "tar": TARGET,
    "non": NONTARGET,
    "true": TARGET,
    "false": NONTARGET,
    "spoof": OTHER,
}
VOCABULARY = {**DIGITS, **WORDS}
EXPECTED = "target/nontarget, tgt/imp, tar/non, 1/0, true/false or spoof"

_UNKNOWN = -2


def encode_labels(column: Ids) -> tuple[Labels, int | None]:
    """Labels of a column of words, and the first row with an unknown word (``None``: all known)."""
    table = np.array(
        [VOCABULARY.get(str(name).strip().lower(), _UNKNOWN) for name in column.names],
        dtype=np.int8,
    )
    labels: Labels = table[column.codes] if len(column) else np.zeros(0, np.int8)
    if (table == _UNKNOWN).any():
        bad = np.flatnonzero(labels == _UNKNOWN)
        if bad.size:
            return labels, int(bad[0])
    return labels, None
