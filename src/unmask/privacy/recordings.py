"""Sets of recordings: whose they are, their parts and groups, and versions of the same.

Whatever is split here is split by content: recordings of a person stand in an order that is drawn
by seed and content. A safeguard that alternates two voices by the names of files gains nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import BoolArray, Groups, IntArray, scattered
from unmask.errors import InputError
from unmask.trials import Contents, Embeddings, Ids

_START = 0x7374617274


def drawn_codes(embeddings: Embeddings, seed: int, *stream: int) -> Contents:
    """Draw a number for each recording from the ``seed`` and from its content, nothing else."""
    return scattered(embeddings.content_codes, seed, *stream)


def rows_by_content(embeddings: Embeddings, seed: int) -> IntArray:
    """Put rows in the order of their speakers' names, and of each speaker by seed and content.

    Recordings of one content keep the order of session and of all other columns; whatever is equal
    in all of these is interchangeable. No order of rows or names of recordings counts.
    """
    codes, speakers = drawn_codes(embeddings, seed), embeddings.speakers.alphabetical().codes
    keys: list[npt.NDArray[Any]] = [codes, speakers]
    if len(np.unique(codes)) < len(codes):
        ties = [embeddings.columns[name] for name in sorted(embeddings.columns)]
        if embeddings.sessions is not None:
            ties.append(embeddings.sessions)
        keys = [*(column.alphabetical().codes for column in ties), *keys]
    return np.lexsort(keys)


def half_by_content(embeddings: Embeddings, seed: int, *, sessions: bool = True) -> BoolArray:
    """Tell which rows are of the first half of each speaker's speech.

    It is every other utterance in the order of :func:`rows_by_content`; where ``sessions`` count
    and a speaker has several, every other session.
    """
    cut = _Cut.of(embeddings, seed)
    turn = cut.slot
    if sessions and embeddings.sessions is not None:
        session, count = cut.sessions(embeddings.sessions)
        turn = np.where(count[cut.owner] > 1, session, turn)
    first = np.empty(len(embeddings), dtype=bool)
    first[cut.rows] = turn % 2 == 0
    return first


def halves_by_content(embeddings: Embeddings, seed: int) -> tuple[Embeddings, Embeddings]:
    """Halve the speech of each speaker, by the content of utterances."""
    first = half_by_content(embeddings, seed, sessions=False)
    return embeddings.select(first), embeddings.select(~first)


@dataclass(frozen=True, eq=False)
class _Cut:
    """Recordings by speaker and content.

    Attributes
    ----------
    rows
        Where each of them stands in the set.
    owner, slot
        The number of its speaker, ascending, and its own among those of the speaker.
    counts
        Recordings of each speaker.
    names
        Names of the speakers.
    """

    rows: IntArray
    owner: IntArray
    slot: IntArray
    counts: IntArray
    names: pl.Series

    @classmethod
    def of(cls, embeddings: Embeddings, seed: int) -> _Cut:
        """Sort the recordings."""
        speakers, rows = embeddings.speakers.alphabetical(), rows_by_content(embeddings, seed)
        groups = Groups(speakers.codes[rows].astype(np.int64))
        owner = np.asarray(groups.codes, dtype=np.int64)
        return cls(rows, owner, groups.slot, groups.counts, speakers.names)

    @property
    def first(self) -> IntArray:
        """Places, in this order, of the first recording of each speaker."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    def sessions(self, sessions: Ids) -> tuple[IntArray, IntArray]:
        """Number the sessions of each speaker, in the order of their first recordings.

        Returns the number of each recording's session, and how many each speaker has.
        """
        codes = sessions.codes[self.rows].astype(np.int64)
        pairs = self.owner * (int(codes.max(initial=0)) + 1) + codes
        _, begins, which = np.unique(pairs, return_index=True, return_inverse=True)
        order = np.argsort(begins, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        owners = self.owner[begins[order]]
        count = np.bincount(owners, minlength=len(self.counts))
        before = np.cumsum(count) - count
        return np.asarray(rank[which] - before[self.owner]), count


class Parts(StrEnum):
    """What a person leaves out of enrolment in a round, to be tested."""

    UTTERANCES = "utterances"
    """A fifth of a person's conversations."""
    SESSIONS = "sessions"
    """Whole sessions."""
    RECORDS = "record to record"
    """All recordings but the one that is enrolled."""


MOST_PARTS = 5
MOST_CHOICES = 20


@dataclass(frozen=True, eq=False)
class ExchangedPeople:
    """The people of a release who are tested, with their numbers of ``utterances``.

    Each pair of their recordings is scored both ways, so their names are exchanged in pairs.
    Without ``has_level`` no exchange tells what luck reads. ``digest`` is that of the contents by
    which the release is split.
    """

    names: pl.Series
    utterances: IntArray
    has_level: bool = True
    digest: str = ""

    @classmethod
    def of(cls, *sets: Embeddings) -> ExchangedPeople:
        """Take those who have two utterances in all ``sets`` together."""
        named = pl.concat([one.speakers.to_series() for one in sets]).rename("name")
        table = named.to_frame().group_by("name").len().filter(pl.col("len") > 1).sort("name")
        contents = np.sort(np.concatenate([one.content_codes for one in sets]))
        digest = hashlib.sha256(contents.astype("<u8").tobytes()).hexdigest()[:8]
        return cls(table["name"], table["len"].to_numpy().astype(np.int64), digest=digest)

    def among(self, people: Collection[str]) -> ExchangedPeople:
        """Take some of them."""
        some = self.names.is_in(list(people))
        kept = self.utterances[some.to_numpy()]
        return replace(self, names=self.names.filter(some), utterances=kept)

    @property
    def is_even(self) -> bool:
        """Whether all have as many utterances."""
        return len(np.unique(self.utterances)) < 2


@dataclass(frozen=True, eq=False)
class Round:
    """Which rows of a release are enrolled and which are tested."""

    enrol: BoolArray
    test: BoolArray


@dataclass(frozen=True, eq=False)
class ReleaseSplit:
    """How a ``release`` is attacked by itself: in rounds, each of which tests a part of everybody.

    Names of recordings, their order and where they lie do not count.
    """

    release: Embeddings
    parts: Parts = Parts.UTTERANCES

    def among(self, people: Collection[str]) -> ReleaseSplit:
        """Split the recordings of some ``people``."""
        return replace(self, release=of_people(self.release, people))

    @property
    def exchanged(self) -> ExchangedPeople:
        """Whose names are exchanged in pairs.

        From record to record people with more recordings are enrolled otherwise than those with
        fewer: then p would be up to three times too small, and none is told.
        """
        people = ExchangedPeople.of(self.release)
        return replace(people, has_level=self.parts != Parts.RECORDS or people.is_even)

    def rounds(
        self, length: int = 1, seed: int = 0, *, most: int = MOST_PARTS, least: int = 1
    ) -> tuple[Round, ...]:
        """Cut each person's speech into conversations of ``length`` and these into parts.

        There are ``most`` parts, as many as conversations or sessions where these are fewer. In
        each round everybody leaves out one part, the next in turn from a start that is drawn; who
        has fewer parts than there are rounds begins again. A part is tested that has ``least``
        conversations, where something is left to enrol; all else is enrolled.
        """
        cut = _Cut.of(self.release, seed)
        if self.parts == Parts.RECORDS:
            return self._choices(cut)
        if self.parts == Parts.SESSIONS:
            assert self.release.sessions is not None
            unit, units = cut.sessions(self.release.sessions)
        else:
            unit, units = cut.slot // length, cut.counts // length
        parts = np.minimum(units, most)
        part = np.where(unit < units[cut.owner], unit % np.maximum(parts, 1)[cut.owner], -1)
        # Recordings by person and part, and the number of each among those of its part.
        sizes = np.zeros((len(parts), most), dtype=np.int64)
        dealt = part >= 0
        np.add.at(sizes, (cut.owner[dealt], part[dealt]), 1)
        place = _places(cut.owner * (most + 1) + part + 1)
        talks = sizes // length
        testable = (talks >= least) & (cut.counts[:, None] > sizes)
        if not testable.any():
            return ()
        start = drawn_codes(self.release, seed, _START)[cut.rows[cut.first]]
        start = (start % np.maximum(parts, 1).astype(np.uint64)).astype(np.int64)
        people = np.arange(len(parts))
        rounds = []
        for turn in range(int(parts[testable.any(axis=1)].max())):
            left = (start + turn) % np.maximum(parts, 1)
            out = (part == left[cut.owner]) & testable[people, left][cut.owner]
            tested = out & (place < (talks[people, left] * length)[cut.owner])
            rounds.append(_round(cut.rows, ~out, tested))
        return tuple(rounds)

    def _choices(self, cut: _Cut) -> tuple[Round, ...]:
        """Enrol one recording of each person, another in each choice, and test all others."""
        several = cut.counts > 1
        if not several.any():
            return ()
        choices = min(MOST_CHOICES, math.lcm(*np.unique(cut.counts[several]).tolist()))
        rounds = []
        for choice in range(choices):
            enrolled = cut.slot == choice % cut.counts[cut.owner]
            rounds.append(_round(cut.rows, enrolled, ~enrolled))
        return tuple(rounds)


def _round(rows: IntArray, enrolled: BoolArray, tested: BoolArray) -> Round:
    """Put both into the order of the release."""
    sides = np.zeros((2, len(rows)), dtype=bool)
    sides[0, rows], sides[1, rows] = enrolled, tested
    return Round(sides[0], sides[1])


def _places(keys: IntArray) -> IntArray:
    """Count how many of the same key stand before each."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    begins = np.ones(len(keys), dtype=bool)
    begins[1:] = ranked[1:] > ranked[:-1]
    at = np.arange(len(keys))
    places = np.empty_like(at)
    places[order] = at - np.maximum.accumulate(np.where(begins, at, 0))
    return places


def drawn_names(names: Sequence[str], number: int, seed: int = 0) -> list[str]:
    """Draw as many of the ``names``, which are told in order."""
    order = np.random.default_rng(seed).permutation(len(names))[:number]
    return [names[i] for i in sorted(order.tolist())]


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
