"""Arrays on a torch device; torch is imported when one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def tensor(array: npt.NDArray[Any], device: str) -> Any:
    """A copy on the device; the array may be one that cannot be written to."""
    import torch

    return torch.from_numpy(np.array(array)).to(device)


def code_among(knots: Any, scores: Any) -> Any:
    """2j for a score in the gap below knot j, 2j + 1 for one that equals it; knots are distinct."""
    import torch

    below = torch.searchsorted(knots, scores)
    return 2 * below + (knots[below.clamp(max=len(knots) - 1)] == scores)
