"""Voice similarity matrices, de-identification and voice distinctiveness (Noé 2020, 2022)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.privacy.similarity.align import aligned, segments_of
from unmask.privacy.similarity.centred import centred
from unmask.privacy.similarity.count import Progress
from unmask.privacy.similarity.intervals import resamples
from unmask.privacy.similarity.lists import sets_from_list, speakers_of_lists
from unmask.privacy.similarity.matrix import MEANS, SimilaritySet, similarity_sets
from unmask.privacy.similarity.pairs import (
    Block,
    EmbeddingPairs,
    MatrixPairs,
    Pairs,
    PairSource,
    Segments,
    Upper,
    prepared,
)
from unmask.privacy.similarity.result import SETS, Pseudonymisation
from unmask.privacy.similarity.sets import check_backend
from unmask.run import Where
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings, Ids, Scores

PAIRS = ("all", "upper")


def pseudonymisation(
    oo: npt.ArrayLike,
    op: npt.ArrayLike,
    pp: npt.ArrayLike,
    speakers: Ids | Iterable[Any],
    *,
    mean: str = "geometric",
    pairs: str = "all",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Pseudonymisation:
    """DeID and G_VD from three square matrices of scores, segment by segment.

    Rows and columns of all three are the same segments in the same order, ``speakers`` names the
    speaker of each; in ``op`` rows are original and columns protected. The diagonals (a segment
    against itself, or against its own protected version) are never used. ``mean``: ``geometric``
    (2022) or ``arithmetic`` (2020). ``pairs="upper"`` keeps one order of each pair and mirrors it,
    as the VoicePrivacy recipe does. ``on``, ``workers`` and ``state`` say where pairs are counted
    and added up, as in :func:`unmask.cross_pairing`; all places but ``cuda`` give the same bits.
    """
    where = Where(on, workers, state)
    _check_options(mean, pairs)
    ids = Ids.from_strings(speakers)
    segments = segments_of(ids)
    sources = {
        name: MatrixPairs(_square(scores, name.upper(), len(ids)), segments)
        for name, scores in zip(SETS, (oo, op, pp), strict=True)
    }
    return _assess(
        sources,
        segments,
        mean=mean,
        pairs=pairs,
        where=where,
        backend=None,
        replicates=replicates,
        level=level,
        seed=seed,
        progress=progress,
    )


def pseudonymisation_from_embeddings(
    original: Embeddings,
    protected: Embeddings,
    *,
    backend: Backend | str = "cosine",
    mean: str = "geometric",
    pairs: str = "all",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Pseudonymisation:
    """The same from embeddings: all pairs are scored in blocks and never held together.

    Segments are matched by utterance name, or by their order where neither set has names. A
    back-end other than cosine, whitening or PLDA runs in this process only.
    """
    where = Where(on, workers, state)
    scorer = resolve(backend)
    check_backend(scorer, where)
    _check_options(mean, pairs)
    segments, protected_order = aligned(original, protected)
    o = prepared(scorer, original, segments.order)
    p = prepared(scorer, protected, protected_order[segments.order])
    sources = {
        name: EmbeddingPairs.of(scorer, enrol, test)
        for name, enrol, test in zip(SETS, (o, o, p), (o, p, p), strict=True)
    }
    return _assess(
        sources,
        segments,
        mean=mean,
        pairs=pairs,
        where=where,
        backend=scorer.name,
        replicates=replicates,
        level=level,
        seed=seed,
        progress=progress,
    )


def pseudonymisation_from_scores(
    oo: Scores,
    op: Scores,
    pp: Scores,
    *,
    system: str | None = None,
    mean: str = "geometric",
    pairs: str = "all",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Pseudonymisation:
    """The same from three lists of scored trials with the speakers on both sides.

    Trials of a segment with itself, or with its own protected version (the same name on both
    sides), do not count, and a note tells how many there were. ``pairs="all"`` needs a trial of
    every ordered pair of speakers; ``pairs="upper"`` pools both orders.
    """
    _check_options(mean, pairs)
    lists = dict(zip(SETS, (oo, op, pp), strict=True))
    names = speakers_of_lists(lists)
    times = resamples(len(names), replicates, seed)
    sets: dict[str, SimilaritySet] = {}
    notes: list[str] = []
    for name, scores in lists.items():
        found, own = sets_from_list(
            scores, name, names, system=system, mean=mean, mirror=pairs == "upper", times=times
        )
        sets |= found
        if own:
            notes.append(f"{name.upper()}: {own:,} comparisons of a segment with itself left out")
    if "centred" not in sets:
        notes.append("OP: the centred score was not tried, which needs the names of the segments")
    digest = hashlib.sha256("|".join(lists[name].digest for name in SETS).encode())
    return Pseudonymisation(
        sets,
        pairs,
        replicates=replicates,
        level=level,
        seed=seed,
        trials=digest.hexdigest()[:8],
        notes=tuple(notes),
    )


def _assess(
    sources: Mapping[str, PairSource],
    segments: Segments,
    *,
    mean: str,
    pairs: str,
    where: Where,
    backend: str | None,
    replicates: int,
    level: float,
    seed: int,
    progress: Progress | None,
) -> Pseudonymisation:
    upper = pairs == "upper"
    rule = Upper(segments.order) if upper else None
    attack = centred(sources["op"], segments)
    every = {**sources, **({} if attack is None else {"centred": attack})}
    sets = similarity_sets(
        {name: Pairs(source, segments, rule) for name, source in every.items()},
        mean=mean,
        mirror=upper,
        negated=("op", "centred"),
        once=() if upper else ("oo", "pp"),
        times=resamples(segments.speakers, replicates, seed),
        where=where,
        progress=progress,
    )
    return Pseudonymisation(
        sets,
        pairs,
        backend=backend,
        replicates=replicates,
        level=level,
        seed=seed,
        trials=_digest(segments),
    )


def _check_options(mean: str, pairs: str) -> None:
    for what, value, known in (("mean", mean, MEANS), ("pairs", pairs, PAIRS)):
        if value not in known:
            raise InputError(f"{what}: expected {' or '.join(known)}, found {value}")


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
    place = np.empty(len(segments), dtype=np.int64)
    place[segments.order] = segments.codes
    text = "\n".join(segments.names[code] for code in place)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
