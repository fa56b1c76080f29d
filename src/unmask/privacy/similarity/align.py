"""Original and protected segments side by side."""

from __future__ import annotations

import numpy as np

from unmask.base import IntArray
from unmask.errors import InputError
from unmask.privacy.similarity.pairs import Segments
from unmask.trials import Embeddings, Ids, share


def aligned(original: Embeddings, protected: Embeddings) -> tuple[Segments, IntArray]:
    """The original segments by speaker, and for each original row the row of its protected version.

    Refuses a speaker or an utterance that only one of the two sets has.
    """
    o, p = share(original.speakers, protected.speakers)
    _same_names(o, p, "speaker", original, protected)
    if (original.utterances is None) != (protected.utterances is None):
        raise InputError(
            "original and protected segments cannot be matched: only one of the two sets names"
            " its utterances"
        )
    if original.utterances is not None and protected.utterances is not None:
        order = _matched(original, protected)
    elif len(original) != len(protected):
        raise InputError(
            f"original and protected segments cannot be matched: {len(original)} and"
            f" {len(protected)} vectors without utterance names"
        )
    else:
        order = np.arange(len(original))
    differs = np.flatnonzero(o.codes != p.codes[order])
    if differs.size:
        row = int(differs[0])
        raise InputError(
            f"row {row + 1} of the original set is of speaker {o.decode(row)}, its protected"
            f" version of speaker {p.decode(int(order[row]))} ({differs.size} such rows)"
        )
    return segments_of(o), order


def segments_of(speakers: Ids) -> Segments:
    """Segments of the speakers that occur, in the order in which they first occur."""
    used, first, dense = np.unique(speakers.codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(used.size, dtype=np.int64)
    rank[order] = np.arange(used.size)
    return Segments.of(rank[dense], tuple(str(speakers.names[int(code)]) for code in used[order]))


def _matched(original: Embeddings, protected: Embeddings) -> IntArray:
    assert original.utterances is not None
    assert protected.utterances is not None
    o, p = share(original.utterances, protected.utterances)
    _same_names(o, p, "utterance", original, protected)
    row_of = np.empty(len(o.names), dtype=np.int64)
    row_of[p.codes] = np.arange(len(p))
    return np.asarray(row_of[o.codes])


def _same_names(a: Ids, b: Ids, what: str, original: Embeddings, protected: Embeddings) -> None:
    sides = ((a, b, original, "original"), (b, a, protected, "protected"))
    for mine, other, embeddings, role in sides:
        alone = np.setdiff1d(mine.used, other.used)
        if alone.size:
            where = f"{embeddings.source.name}: " if embeddings.source else ""
            raise InputError(
                f"{where}{what} {mine.names[int(alone[0])]} is in the {role} set only"
                f" ({alone.size} such {what}s)"
            )
