"""What is refused before an attack is run, each in one line that says which and how many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import IntArray
from unmask.errors import InputError
from unmask.privacy.legal.conversations import source_name
from unmask.trials import Embeddings

_PIECE = 1 << 16


def check_pair(enrol: Embeddings, test: Embeddings, *, allow_shared_utterances: bool) -> None:
    """Refuse sets of different dimension, zero vectors, and utterances on both sides."""
    if enrol.dimension != test.dimension:
        raise InputError(
            f"embeddings: expected one dimension on both sides, found {enrol.dimension} in"
            f" enrolment and {test.dimension} in test"
        )
    for side, embeddings in (("enrolment", enrol), ("test", test)):
        refuse_zeros(embeddings, side)
    if not allow_shared_utterances:
        _refuse_shared(enrol, test)


def refuse_zeros(embeddings: Embeddings, side: str) -> None:
    """A vector of zeros has no direction."""
    zero = np.concatenate(
        [
            ~embeddings.vectors[start : start + _PIECE].any(axis=1)
            for start in range(0, len(embeddings), _PIECE)
        ]
    )
    if zero.any():
        first = int(zero.argmax())
        which = (
            f"row {first + 1}"
            if embeddings.utterances is None
            else embeddings.utterances.decode(first)
        )
        raise InputError(
            f"{source_name(embeddings)}: expected {side} vectors other than zero, found"
            f" {int(zero.sum())} zero vectors (first: {which})"
        )


def _refuse_shared(enrol: Embeddings, test: Embeddings) -> None:
    if enrol.utterances is None or test.utterances is None:
        return
    shared = _used(enrol.utterances.names, enrol.utterances.used).filter(
        _used(enrol.utterances.names, enrol.utterances.used).is_in(
            _used(test.utterances.names, test.utterances.used).implode()
        )
    )
    if len(shared):
        raise InputError(
            f"utterances: expected none on both sides, found {len(shared)} in enrolment and in"
            f" test (first: {shared[0]}); allow_shared_utterances lets this leak pass"
        )


def _used(names: pl.Series, codes: IntArray) -> pl.Series:
    return names.gather(codes)


def locate(names: pl.Series, table: pl.Series, *, who: str, where: str) -> IntArray:
    """Place of each name in ``table``; all must be there."""
    places = pl.DataFrame({"name": table, "place": np.arange(len(table))})
    found = pl.DataFrame({"name": names}).join(
        places, on="name", how="left", maintain_order="left"
    )["place"]
    if found.null_count():
        absent = names.filter(found.is_null())
        raise InputError(
            f"{who}: expected every one in {where}, found {len(absent)} of {len(names)} absent"
            f" (first: {absent[0]})"
        )
    return np.asarray(found.to_numpy(), dtype=np.int64)


def as_counts(counts: npt.ArrayLike, *, speakers: int, least: int, where: str) -> IntArray:
    """Speaker counts N, whole numbers from ``least`` to the speakers there are."""
    array = np.atleast_1d(np.asarray(counts))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InputError(f"counts: expected numbers of speakers, found {counts!r}")
    whole = array.astype(np.int64)
    bad = (whole != array) | (whole < least)
    if bad.any():
        raise InputError(
            f"counts: expected whole numbers of at least {least}, found {array[bad][0]}"
        )
    if whole.max() > speakers:
        raise InputError(
            f"counts: expected at most the {speakers} speakers in {where}, found"
            f" {int(whole.max())} ({int((whole > speakers).sum())} counts are larger)"
        )
    return whole


def side_codes(
    embeddings: Embeddings, names: pl.Series, attributes: Sequence[str]
) -> list[list[str]]:
    """The value of each attribute for each named speaker; it must be one per speaker."""
    speakers = embeddings.speakers.to_series()
    values: list[list[str]] = []
    for attribute in attributes:
        if attribute not in embeddings.columns:
            known = ", ".join(embeddings.columns) or "none"
            raise InputError(
                f"{source_name(embeddings)}: expected a column {attribute}, found {known}"
            )
        column = embeddings.columns[attribute].to_series()
        one = pl.DataFrame({"speaker": speakers, "value": column}).unique(maintain_order=True)
        unclear = one.filter(one["speaker"].is_duplicated())["speaker"].unique(maintain_order=True)
        if len(unclear):
            raise InputError(
                f"{attribute}: expected one value per speaker, found several for {len(unclear)}"
                f" speakers (first: {unclear[0]})"
            )
        table = dict(zip(one["speaker"], one["value"], strict=True))
        values.append([table[name] for name in names])
    return values


def pair_codes(
    enrol: tuple[Embeddings, pl.Series], test: tuple[Embeddings, pl.Series], side: Sequence[str]
) -> tuple[IntArray, IntArray] | tuple[None, None]:
    """Codes of enrolment and test speakers that are equal where all attributes match."""
    if not side:
        return None, None
    left, right = side_codes(*enrol, side), side_codes(*test, side)
    joined = ["\0".join(row) for row in [*zip(*left, strict=True), *zip(*right, strict=True)]]
    _, codes = np.unique(np.asarray(joined), return_inverse=True)
    return codes[: len(enrol[1])], codes[len(enrol[1]) :]
