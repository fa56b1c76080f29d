"""Score matrices of segments from one npz file."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from unmask.errors import InputError
from unmask.privacy.similarity.pairs import Block
from unmask.trials import Ids

SPEAKERS = ("speakers", "speaker_ids", "spk")


def read_matrices(path: str | Path) -> tuple[Block, Block, Block, Ids]:
    """The square matrices ``oo``, ``op`` and ``pp`` and the speaker of each row.

    Speakers stand under ``speakers``, ``speaker_ids`` or ``spk``.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile, AttributeError) as error:
        raise InputError(f"{path}: expected an npz file of score matrices: {error}") from None
    named = next((name for name in SPEAKERS if name in arrays), None)
    missing = [name for name in ("oo", "op", "pp") if name not in arrays]
    if named is None or missing:
        raise InputError(
            f"{path}: expected the arrays oo, op, pp and one of {', '.join(SPEAKERS)},"
            f" found {', '.join(arrays) or 'nothing'}"
        )
    return arrays["oo"], arrays["op"], arrays["pp"], Ids.from_strings(arrays[named])
