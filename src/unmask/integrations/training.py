"""A metric of torchmetrics, whose value over many processes is that of all scores together."""

from __future__ import annotations

from typing import Any

import torch
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from unmask.engine import Battery, Roc


class DetectionMetric(Metric):
    """Every number of a ``battery`` over the scores of all batches, epochs and processes.

    The state are the scores of both classes, which processes concatenate: merging is exact, and
    the order of batches changes nothing. ``compute`` gives tensors by key, such as ``eer``,
    ``min_dcf@0.01`` and ``cllr``.
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False
    target: list[Any]
    nontarget: list[Any]

    def __init__(self, battery: Battery | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.battery = battery or Battery()
        for name in ("target", "nontarget"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, scores: Any, labels: Any) -> None:
        """Add a batch of ``scores`` with ``labels``, true or above 0 for targets."""
        values = scores.detach().reshape(-1)
        if values.dtype not in (torch.float32, torch.float64):
            values = values.float()
        own = labels.reshape(-1) > 0
        self.target.append(values[own])
        self.nontarget.append(values[~own])

    def compute(self) -> dict[str, Any]:
        """Every number, a tensor by key."""
        both = [dim_zero_cat(state).cpu().numpy() for state in (self.target, self.nontarget)]
        roc = Roc.from_scores(*both, thresholds=self.battery.thresholds, cllr=True)
        values = self.battery.values(roc)
        return {key: torch.tensor(value, dtype=torch.float64) for key, value in values.items()}
