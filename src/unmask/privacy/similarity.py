"""Voice similarity matrices, de-identification and voice distinctiveness (Noé 2020, 2022)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.privacy.similarity_align import aligned, segments_of
from unmask.privacy.similarity_lists import set_from_list, speakers_of_lists
from unmask.privacy.similarity_matrix import MEANS, SimilaritySet, similarity
from unmask.privacy.similarity_pairs import (
    Block,
    EmbeddingPairs,
    MatrixPairs,
    Pairs,
    Segments,
    Upper,
)
from unmask.privacy.similarity_result import SETS, Pseudonymisation
from unmask.privacy.similarity_sums import Progress, count, total
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
    workers: int | None = None,
    progress: Progress | None = None,
) -> Pseudonymisation:
    """DeID and G_VD from three square matrices of scores, segment by segment.

    Rows and columns of all three are the same segments in the same order, ``speakers`` names the
    speaker of each; in ``op`` rows are original and columns protected. The diagonals (a segment
    against itself, or against its own protected version) are never used. ``mean``: ``geometric``
    (2022) or ``arithmetic`` (2020). ``pairs="upper"`` keeps one order of each pair and mirrors it,
    as the VoicePrivacy recipe does.
    """
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
        backend=None,
        replicates=replicates,
        level=level,
        seed=seed,
        workers=workers,
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
    workers: int | None = None,
    progress: Progress | None = None,
) -> Pseudonymisation:
    """The same from embeddings: all pairs are scored in blocks and never held together.

    Segments are matched by utterance name, or by their order where neither set has names.
    """
    segments, protected_order = aligned(original, protected)
    scorer = resolve(backend)
    o = scorer.prepare(original.vectors)[segments.order]
    p = scorer.prepare(protected.vectors)[protected_order[segments.order]]
    sources = {
        "oo": EmbeddingPairs(scorer, o, o),
        "op": EmbeddingPairs(scorer, o, p),
        "pp": EmbeddingPairs(scorer, p, p),
    }
    return _assess(
        sources,
        segments,
        mean=mean,
        pairs=pairs,
        backend=scorer.name,
        replicates=replicates,
        level=level,
        seed=seed,
        workers=workers,
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
    sets, notes = {}, []
    for name, scores in lists.items():
        sets[name], own = set_from_list(
            scores, name, names, system=system, mean=mean, mirror=pairs == "upper"
        )
        if own:
            notes.append(f"{name.upper()}: {own:,} comparisons of a segment with itself left out")
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
    sources: dict[str, MatrixPairs] | dict[str, EmbeddingPairs],
    segments: Segments,
    *,
    mean: str,
    pairs: str,
    backend: str | None,
    replicates: int,
    level: float,
    seed: int,
    workers: int | None,
    progress: Progress | None,
) -> Pseudonymisation:
    _check_options(mean, pairs)
    upper = pairs == "upper"
    rule = Upper(segments.order) if upper else None
    steps = _Steps(progress, passes=7)
    sets = {
        name: similarity_set(
            Pairs(name.upper(), source, segments, rule, mirror=upper),
            mean=mean,
            negated=name == "op",
            workers=workers,
            steps=steps,
        )
        for name, source in sources.items()
    }
    return Pseudonymisation(
        sets,
        pairs,
        backend=backend,
        replicates=replicates,
        level=level,
        seed=seed,
        trials=_digest(segments),
    )


def similarity_set(
    pairs: Pairs,
    *,
    mean: str = "geometric",
    negated: bool = False,
    workers: int | None = None,
    steps: _Steps | None = None,
) -> SimilaritySet:
    """Calibrate one set on its own (PAV with Laplace, pooled) and average per pair of speakers."""
    steps = steps or _Steps(None, passes=1)
    roc = count(pairs, workers=workers, progress=steps.next())
    sums = total(pairs, roc, workers=workers, progress=steps.next())
    turned = None
    if negated:
        other = total(pairs, roc.negated(), negate=True, workers=workers, progress=steps.next())
        turned = similarity(other, mean)
    name = pairs.name.lower()
    return SimilaritySet(name, pairs.segments.names, mean, sums, roc, turned)


class _Steps:
    """Progress over several passes of equal length, told as one."""

    def __init__(self, progress: Progress | None, *, passes: int) -> None:
        self.progress = progress
        self.passes = passes
        self.done = 0

    def next(self) -> Progress | None:
        """The callback of the next pass."""
        if self.progress is None:
            return None
        outer, before, passes = self.progress, self.done, self.passes
        self.done += 1

        def tell(done: int, total: int) -> None:
            outer(before * total + done, passes * total)

        return tell


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
