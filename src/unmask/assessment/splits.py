"""Who enrols and who is attacked: utterances by a list or by a part of each speaker's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from unmask.assessment.config import Config
from unmask.errors import InputError
from unmask.privacy.legal import rows_by_content
from unmask.run import text_lines
from unmask.trials import Embeddings, lookup


def utterances(embeddings: Embeddings) -> pl.Series:
    """The name of every utterance, which all that was read has."""
    assert embeddings.utterances is not None
    return embeddings.utterances.to_series()


def in_order_of(original: Embeddings, other: Embeddings) -> Embeddings:
    """Put recordings in the order of the original's of the same names; any others come last.

    Attacks on both are then lists of the same trials, in whatever order files have their rows.
    """
    position = lookup(utterances(other), utterances(original))
    order = np.argsort(np.where(position < 0, len(original), position), kind="stable")
    return other if (np.diff(order) == 1).all() else other.select(order)


def only(
    embeddings: Embeddings, names: Iterable[str], *, what: str, inside: bool = True
) -> Embeddings:
    """The utterances of these names, or all others; ``what`` tells what they do."""
    assert embeddings.utterances is not None
    known = embeddings.utterances.names.is_in(list(names)).to_numpy()
    kept = known[embeddings.utterances.codes] == inside
    if not kept.any():
        wanted = f"expected utterances that {what}, found none: see split"
        raise InputError(f"{embeddings.name}: {wanted}")
    return embeddings if kept.all() else embeddings.select(kept)


def counterpart(original: Embeddings, protected: Embeddings) -> Embeddings:
    """The original of those utterances that a safeguard has."""
    return only(original, utterances(protected), what="a safeguard has")


def enrolling(
    config: Config, original: Embeddings, others: Mapping[str, Embeddings]
) -> frozenset[str]:
    """Names of the utterances that enrol: those listed, or a part of each speaker's, by seed.

    A speaker's utterances are put in an order that is drawn by the seed and the content of the
    originals, so the choice of one speaker depends on nobody else and on no name; where some of
    ``others`` have fewer utterances, the same part of these enrols as of the rest. With one
    utterance a speaker can only be attacked.
    """
    if config.split.utterances is not None:
        lines = text_lines(config.split.utterances)
        return frozenset(line.strip() for line in lines if line.strip())
    share = config.split.enrol
    names = utterances(original)
    order = np.empty(len(names), dtype=np.int64)
    order[rows_by_content(original, config.seed)] = np.arange(len(names))
    held = np.zeros(len(names), dtype=np.int64)
    for voices in others.values():
        held += names.is_in(utterances(voices).implode()).to_numpy()
    alike = ("speaker", "held")
    rows = pl.DataFrame(
        {"name": names, "order": order, "speaker": original.speakers.codes, "held": held}
    ).sort(*alike, "order")
    within = (pl.int_range(pl.len()) + 0.5) / pl.len()
    rows = rows.with_columns(at=within.over(*alike)).sort("speaker", "at", "order")
    size = pl.len().over("speaker")
    wanted = (
        (pl.lit(share) * size).round().cast(pl.Int64).clip(1)
        if isinstance(share, float) and share < 1
        else pl.lit(int(share))
    )
    place = pl.int_range(pl.len()).over("speaker")
    chosen = rows.filter((place < wanted) & (place < size - 1))["name"]
    if not len(chosen):
        raise InputError("split: expected speakers with two utterances or more, found none")
    return frozenset(chosen)
