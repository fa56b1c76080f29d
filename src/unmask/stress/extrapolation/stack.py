"""The mean of several models that fit about equally well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.stress.extrapolation.base import Model

STACK = "stack"


@dataclass(frozen=True, eq=False)
class Stack(Model):
    """Rates are the mean of the members' rates."""

    members: tuple[Model, ...]
    name: str = STACK

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        return np.asarray(np.mean([one.rates(counts, thresholds) for one in self.members], axis=0))

    def numbers(self) -> Mapping[str, FloatArray]:
        arrays: dict[str, FloatArray] = {"names": np.array([one.name for one in self.members])}
        for k, member in enumerate(self.members):
            arrays |= {f"{k}.{key}": value for key, value in member.numbers().items()}
        return arrays
