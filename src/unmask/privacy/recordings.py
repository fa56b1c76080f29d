"""Sets of recordings: whose they are, their halves and groups, and versions of the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unmask.base import BoolArray, IntArray
from unmask.errors import InputError
from unmask.trials import Embeddings, Ids


def first_half(embeddings: Embeddings) -> BoolArray:
    """Which rows are of the first half of each speaker's speech: every second utterance by name (by
    order where there are no names), whole sessions where a speaker has several.
    """
    named = pl.int_range(pl.len())
    rows = pl.DataFrame({"speaker": embeddings.speakers.codes})
    if embeddings.utterances is not None:
        rows, named = rows.with_columns(name=embeddings.utterances.to_series()), pl.col("name")
    turn = named.rank("ordinal").over("speaker")
    if embeddings.sessions is not None:
        rows = rows.with_columns(session=embeddings.sessions.to_series())
        whole = pl.col("session").rank("dense").over("speaker")
        turn = pl.when(whole.max().over("speaker") > 1).then(whole).otherwise(turn)
    return np.asarray(rows.select(turn).to_series().to_numpy() % 2 == 1)


def every_second(embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Every second utterance of each speaker, counted by name, and the others."""
    first = first_half(replace(embeddings, sessions=None))
    return embeddings.select(first), embeddings.select(~first)


def of_people(
    embeddings: Embeddings, people: Collection[str], *, inside: bool = True
) -> Embeddings:
    """The utterances of some ``people``, or of all others where not ``inside``."""
    chosen = embeddings.speakers.to_series().is_in(list(people)).to_numpy()
    return embeddings.select(chosen if inside else ~chosen)


def pooled(sets: Sequence[Embeddings]) -> Embeddings:
    """Training sets as one, under the speakers' names.

    A back-end that sees the same speaker original and protected, or protected by several runs,
    learns to look away from what the safeguard changes.
    """
    if len(sets) == 1:
        return sets[0]
    told = {voices.encoder for voices in sets}
    shared = set.intersection(*(set(voices.columns) for voices in sets))
    return Embeddings(
        np.concatenate([voices.vectors for voices in sets]),
        [name for voices in sets for name in voices.speakers.to_series()],
        columns={c: Ids.concatenate([one.columns[c] for one in sets]) for c in sorted(shared)},
        encoder=told.pop() if len(told) == 1 else "",
    )


def column_of(embeddings: Embeddings, attribute: str) -> Ids:
    """A column of the set, which must be there."""
    if attribute not in embeddings.columns:
        known = ", ".join(embeddings.columns) or "none"
        raise InputError(f"{embeddings.name}: expected a column {attribute}, found {known}")
    return embeddings.columns[attribute]


def groups_of(embeddings: Embeddings, columns: Sequence[str]) -> pl.Series:
    """The group of every vector: what it has in the ``columns``, one value for each speaker."""
    speakers, values = embeddings.speakers.to_series(), {}
    for name in columns:
        values[name] = column_of(embeddings, name).to_series()
        one = pl.DataFrame({"speaker": speakers, "value": values[name]}).unique(maintain_order=True)
        unclear = one.filter(one["speaker"].is_duplicated())["speaker"].unique(maintain_order=True)
        if len(unclear):
            actual = f"several for {len(unclear)} speakers (first: {unclear[0]})"
            raise InputError(name, "one value per speaker", actual)
    return pl.DataFrame(values).select(pl.concat_str(pl.all(), separator="\0")).to_series()


def people_by_group(embeddings: Embeddings, by: str) -> dict[str, set[str]]:
    """The people of each group of a column, of which each has one and there are two or more."""
    both = pl.DataFrame({"group": groups_of(embeddings, [by])}).with_columns(
        speaker=embeddings.speakers.to_series()
    )
    found = both.unique().group_by("group").agg("speaker").sort("group")
    groups = {group: set(people) for group, people in found.iter_rows()}
    place = f"{embeddings.name}, {by}"
    if "" in groups:
        first = f"none of {len(groups[''])} (first: {min(groups[''])})"
        raise InputError(place, "a group of every speaker", first)
    if len(groups) < 2:
        raise InputError(place, "two groups or more", f"one: {', '.join(groups)}")
    return groups


def shown_group(group: str) -> str:
    """A group as sentences name it."""
    return " and ".join(group.split("\0")) or "no value"


def rows_by_group(groups: pl.Series) -> list[IntArray]:
    """The rows of each group."""
    values = groups.to_numpy().astype(str)
    return [np.flatnonzero(values == value) for value in np.unique(values)]


def versions_of(held: Embeddings, test: Embeddings) -> BoolArray:
    """Which vectors are of recordings of the test set; none where they have no names."""
    if held.utterances is None or test.utterances is None:
        return np.zeros(len(held), dtype=bool)
    here, there = (
        x.speakers.to_series() + "\0" + u.to_series()
        for x, u in ((held, held.utterances), (test, test.utterances))
    )
    return here.is_in(there.implode()).to_numpy()


def refuse_versions(held: Embeddings, test: Embeddings, what: str) -> None:
    """No recording of the test set (same speaker, same utterance) is held in any version."""
    leak = versions_of(held, test)
    if leak.any():
        assert held.utterances is not None
        actual = f"{leak.sum()} (first: {held.utterances.decode(int(leak.argmax()))})"
        raise InputError(what, "no version of a test recording", actual)
