"""One shard of a run on disk: written under a temporary name, then renamed."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import write_whole


@dataclass(frozen=True, eq=False)
class Shard:
    """Vectors of up to ``size`` recordings: of which recording, which piece of it, how long.

    ``failures`` and ``remarks`` are lines by position of the recording in the shard.
    """

    vectors: npt.NDArray[np.float32]
    rows: IntArray
    segments: IntArray
    seconds: FloatArray
    size: int
    segmented: bool
    failures: dict[int, str]
    remarks: dict[int, str]


def write_shard(path: Path, shard: Shard) -> None:
    """Write a whole shard or none of it."""
    lines = {"failures": shard.failures, "remarks": shard.remarks}
    content = io.BytesIO()
    np.savez(
        content,
        vectors=shard.vectors,
        rows=shard.rows,
        segments=shard.segments,
        seconds=shard.seconds,
        size=shard.size,
        segmented=shard.segmented,
        lines=json.dumps(lines),
    )
    write_whole(path, content.getvalue())


def read_shard(path: Path) -> Shard:
    """Read what :func:`write_shard` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            lines = json.loads(str(file["lines"]))
            return Shard(
                vectors=file["vectors"],
                rows=file["rows"],
                segments=file["segments"],
                seconds=file["seconds"],
                size=int(file["size"]),
                segmented=bool(file["segmented"]),
                failures={int(n): text for n, text in lines["failures"].items()},
                remarks={int(n): text for n, text in lines["remarks"].items()},
            )
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"{path}: not a shard of a run: {error}; remove its folder") from None
