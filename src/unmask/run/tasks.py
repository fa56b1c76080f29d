"""Tasks: ranges of rows under a folder that holds their arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError

Range = tuple[int, int]


@dataclass(frozen=True)
class Task:
    """Enrolment rows and test rows of one block, under the folder that holds them."""

    folder: str
    rows: Range
    columns: Range


def load(folder: str | Path, name: str) -> npt.NDArray[Any]:
    """Map an array of a folder into memory."""
    path = Path(folder) / f"{name}.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError:
        raise _vanished(path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None


def _vanished(path: Path) -> InputError:
    return InputError(
        f"{path}: expected a file of the plan, found none: "
        "it vanished, or this machine does not see it"
    )
