"""How far a training is, for whoever watches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """How far a training is: ``loss`` of the last steps, ``speed`` in crops per second,
    ``remaining`` seconds, and the last validation EER if there was one.
    """

    step: int
    steps: int
    loss: float
    speed: float
    remaining: float
    eer: float | None
