"""DeID and G_VD of one safeguard, from embeddings, lists of trials or score matrices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.privacy.similarity.attackers import centred
from unmask.privacy.similarity.lists import sets_of_lists
from unmask.privacy.similarity.matrix import similarity_sets
from unmask.privacy.similarity.pairs import (
    Block,
    EmbeddingPairs,
    MatrixPairs,
    Pairs,
    PairSource,
    Segments,
    Upper,
    aligned,
    check_backend,
    prepared,
    segments_of,
)
from unmask.privacy.similarity.resampling import Setup
from unmask.privacy.similarity.result import SETS, Pseudonymisation, assessed
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings, Ids, Scores

SPEAKERS = ("speakers", "speaker_ids", "spk")
Speakers = Ids | Iterable[Any]


class Options(TypedDict, total=False):
    """The keywords that all kinds of data share, as :func:`pseudonymisation` explains them."""

    mean: str
    pairs: str
    replicates: int
    level: float
    seed: int


@overload
def pseudonymisation(
    original: Embeddings,
    protected: Embeddings,
    /,
    *,
    backend: Backend | str = ...,
    **options: Unpack[Options],
) -> Pseudonymisation: ...


@overload
def pseudonymisation(
    oo: Scores, op: Scores, pp: Scores, /, *, system: str | None = ..., **options: Unpack[Options]
) -> Pseudonymisation: ...


@overload
def pseudonymisation(
    oo: npt.ArrayLike,
    op: npt.ArrayLike,
    pp: npt.ArrayLike,
    speakers: Speakers,
    /,
    **options: Unpack[Options],
) -> Pseudonymisation: ...


def pseudonymisation(
    *data: Any,
    backend: Backend | str = "cosine",
    system: str | None = None,
    mean: str = "geometric",
    pairs: str = "all",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Pseudonymisation:
    """De-identification and gain of voice distinctiveness of one safeguard (Noé 2020, 2022).

    ``data`` is one of

    - the ``original`` and the ``protected`` embeddings: all pairs are scored by ``backend``
      (cosine, wccn, plda, …) in blocks and never held together. Segments are matched by utterance
      name, or by their order where neither set has names;
    - three lists of scored trials ``oo``, ``op``, ``pp`` with the speakers on both sides, of which
      ``system`` names the scores. Trials of a segment with itself, or with its own protected
      version (the same name on both sides), do not count, and a note tells how many there were.
      ``pairs="all"`` needs a trial of every ordered pair of speakers; ``pairs="upper"`` pools both
      orders;
    - three square matrices of scores ``oo``, ``op``, ``pp`` and the speaker of each segment
      (``speakers``). Rows and columns of all three are the same segments in the same order; in
      ``op`` rows are original and columns protected. The diagonals are never used.

    ``mean``: ``geometric`` (2022, eq. 6) or ``arithmetic`` (2020, eq. 2). ``pairs="upper"`` keeps
    one order of each pair and mirrors it, as the VoicePrivacy recipe does. Intervals at ``level``
    come from ``replicates`` resamples of the speakers drawn with ``seed``; 0 for none.

    Pairs are compared on the current :func:`~unmask.run.place`; all places but ``cuda`` give the
    same bits. A back-end other than cosine, wccn or plda runs in this process only.
    """
    setup = Setup(mean, pairs, replicates, level, seed)
    if len(data) == 3 and all(isinstance(one, Scores) for one in data):
        return _of_lists(dict(zip(SETS, data, strict=True)), setup, system)
    if len(data) == 2 and all(isinstance(one, Embeddings) for one in data):
        scorer = resolve(backend)
        check_backend(scorer)
        original, protected = data
        segments, order = aligned(original, protected)
        o = prepared(scorer, original, segments.order)
        p = prepared(scorer, protected, order[segments.order])
        sources: dict[str, PairSource] = {
            name: EmbeddingPairs.of(scorer, enrol, test)
            for name, enrol, test in zip(SETS, (o, o, p), (o, p, p), strict=True)
        }
        return _of_sources(sources, segments, setup, scorer.name)
    if len(data) == 4:
        ids = Ids.from_strings(data[3])
        segments = segments_of(ids)
        sources = {
            name: MatrixPairs(_square(scores, name.upper(), len(ids)), segments)
            for name, scores in zip(SETS, data, strict=False)
        }
        return _of_sources(sources, segments, setup, None)
    raise InputError(
        "expected two sets of embeddings, three lists of scores, or three matrices and the"
        f" speakers, found {', '.join(type(one).__name__ for one in data) or 'nothing'}"
    )


def _of_lists(lists: Mapping[str, Scores], setup: Setup, system: str | None) -> Pseudonymisation:
    sets, drawn, notes = sets_of_lists(lists, setup, system=system)
    digest = hashlib.sha256("|".join(one.digest for one in lists.values()).encode())
    return assessed(sets, drawn, setup, trials=digest.hexdigest()[:8], notes=notes)


def _of_sources(
    sources: Mapping[str, PairSource],
    segments: Segments,
    setup: Setup,
    backend: str | None,
) -> Pseudonymisation:
    rule = Upper(segments.order) if setup.mirror else None
    attack = centred(sources["op"], segments)
    every = {**sources, **({} if attack is None else {"centred": attack})}
    sets, drawn = similarity_sets(
        {name: Pairs(source, segments, rule) for name, source in every.items()},
        setup,
        negated=("op", "centred"),
        once=() if setup.mirror else ("oo", "pp"),
    )
    return assessed(sets, drawn, setup, backend=backend, trials=_digest(segments))


def _square(scores: npt.ArrayLike, name: str, size: int) -> Block:
    matrix = np.asarray(scores)
    if matrix.dtype not in (np.float32, np.float64):
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name}: expected a matrix of numbers") from None
    if matrix.shape != (size, size):
        raise InputError(
            f"{name}: expected a square matrix of {size} x {size} scores, one row and one column"
            f" per segment, found shape {matrix.shape}"
        )
    return matrix


def _digest(segments: Segments) -> str:
    """Eight hex digits of who spoke the segments, in the order given."""
    codes = np.empty(len(segments), dtype=np.int64)
    codes[segments.order] = segments.codes
    text = "\n".join(segments.names[code] for code in codes)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


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
