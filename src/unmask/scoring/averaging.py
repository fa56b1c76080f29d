"""One vector for several utterances."""

from __future__ import annotations

import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.scoring.backend import Codes, as_vectors, length_normalised
from unmask.scoring.moments import group_means


def average_groups(vectors: npt.ArrayLike, groups: Codes) -> FloatArray:
    """Length-normalise, average over each group, normalise again; rows in order of the code.

    A group is a speaker, or a conversation of L utterances. Rows with a negative code belong to
    no group and are left out.
    """
    rows = as_vectors(vectors)
    if groups.shape != (rows.shape[0],):
        raise InputError(
            f"groups: expected {rows.shape[0]} codes, one per vector, found shape {groups.shape}"
        )
    member = groups >= 0
    if not member.any():
        raise InputError("averaging: no vector belongs to a group")
    means = group_means(length_normalised(rows[member]), groups[member])[1]
    return length_normalised(means)
