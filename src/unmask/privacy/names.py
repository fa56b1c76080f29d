"""Names are claims: people who may be one, voices that may be stored under another name.

A release in which one person has two names, or in which voices were stored under the wrong name,
reads as protected although nobody is. Whether names are right cannot be proved from recordings, so
these checks only tell, with "may be", and change no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from unmask.base import FloatArray, IntArray, Vectors, visible
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.recordings import groups_of, half_by_content, pooled, shown_group
from unmask.trials import Embeddings

if TYPE_CHECKING:
    from unmask.privacy.attack import Attacker

DOUBLE_NAMES = "double-names"
"""Code of the notice that two people of the original speech may be one."""
MISPLACED = "misplaced-voices"
"""Code of the notice that protected voices may be stored under another name."""
NAMES_DOUBTED = (DOUBLE_NAMES, MISPLACED)

LEAST_PEOPLE = 3
"""Two people have no second-best candidate that a pair could be compared with."""
_LEAST_DIMENSION = 2

_STRANGER_QUANTILE = 0.95
_COUNT_QUANTILE = 0.99
_MAD_TO_DEVIATION = 1.4826
_MOST_NAMED = 3
_ROWS_AT_ONCE = 1024
_NOTHING = 1e-9

Spelling = Callable[[str], str]
"""How a report writes the name of a person, for instance as a neutral label."""


@dataclass(frozen=True)
class AlikePeople:
    """Pairs of names whose voices are as alike as recordings of one person.

    Attributes
    ----------
    pairs
        Two names each, the most alike first.
    similarities
        Mean cosine over all recordings of both, one for each pair.
    within
        Median over people of the mean cosine of their own recordings.
    """

    pairs: tuple[tuple[str, str], ...]
    similarities: tuple[float, ...]
    within: float

    def notice(self, subject: str, spell: Spelling = str) -> Notice | None:
        """Tell the pairs by name, or nothing where there are none."""
        if not self.pairs:
            return None
        shown = [visible(f"{spell(one)} and {spell(other)}") for one, other in self.pairs]
        how_many = "1 pair" if len(shown) == 1 else f"{len(shown):,} pairs"
        sentence = (
            f"{how_many} of names may be one person each, by the original voices"
            f" ({_listed(shown)}): one person under two names is linked less often"
        )
        return Notice(DOUBLE_NAMES, subject, sentence)


@dataclass(frozen=True)
class MisplacedVoices:
    """Protected voices that are closest to the original voice of somebody else.

    Attributes
    ----------
    pairs
        The name that a protected voice has, and whose voice it resembles.
    people
        How many people were compared.
    bar
        Number of such voices that right names reach by chance in 1 of 100 releases.
    """

    pairs: tuple[tuple[str, str], ...]
    people: int
    bar: int

    def notice(self, subject: str, spell: Spelling = str) -> Notice | None:
        """Tell the voices by name, or nothing where there are no more than chance explains."""
        if len(self.pairs) <= self.bar:
            return None
        shown = [visible(f"{spell(name)} resembles {spell(owner)}") for name, owner in self.pairs]
        sentence = (
            f"the protected voices of {len(shown):,} of {self.people:,} people may be stored under"
            f" another name ({_listed(shown)}): attacks look for them under the wrong name"
        )
        return Notice(MISPLACED, subject, sentence)


def alike_people(original: Embeddings) -> AlikePeople:
    """Find names of ``original`` speech that may belong to one person.

    s(i, j) is the mean cosine, about the mean of all, over all pairs of recordings; w is the median
    over people of the same mean within a person. A pair is told if each is the other's closest
    and s(i, j) is nearer to w than to the larger of their two second-closest.
    """
    means, counts, names = _mean_voices(original)
    several = counts >= 2
    too_few = len(names) < LEAST_PEOPLE or original.dimension < _LEAST_DIMENSION
    if too_few or not several.any():
        return AlikePeople((), (), float("nan"))
    # Σ over pairs of one's own recordings: |n·mean|² is n(n − 1) pairs and n recordings themselves.
    size = counts[several]
    lengths = (means[several] ** 2).sum(axis=1)
    within = float(np.median((size * lengths - 1) / (size - 1)))
    best = np.empty(len(names), dtype=np.int64)
    first, second = np.empty(len(names)), np.empty(len(names))
    for start in range(0, len(names), _ROWS_AT_ONCE):
        here = np.arange(start, min(start + _ROWS_AT_ONCE, len(names)))
        similar = means[here] @ means.T
        similar[here - start, here] = -np.inf
        best[here] = similar.argmax(axis=1)
        first[here] = similar.max(axis=1)
        similar[here - start, best[here]] = -np.inf
        second[here] = similar.max(axis=1)
    people = np.arange(len(names))
    mutual = (best[best] == people) & (people < best)
    rival = np.maximum(second, second[best])
    told = np.flatnonzero(mutual & (np.abs(first - within) < np.abs(first - rival)))
    told = told[np.argsort(-first[told], kind="stable")]
    pairs = tuple((names[i], names[best[i]]) for i in told)
    return AlikePeople(pairs, tuple(first[told].tolist()), within)


def misplaced_voices(original: Embeddings, protected: Embeddings) -> MisplacedVoices:
    """Find ``protected`` voices that may be stored under another name.

    Rows are protected voices, columns original voices, each side about its own mean. A voice counts
    if it is closest to somebody else, who is closest to nobody more, and stands out of its row as
    only 5 % of original voices do among strangers.
    """
    from scipy.stats import binom

    known, _, owners = _mean_voices(original)
    voices, _, names = _mean_voices(protected)
    bar = int(binom.ppf(_COUNT_QUANTILE, len(names), 1 - _STRANGER_QUANTILE))
    none = MisplacedVoices((), len(names), bar)
    limit = _stranger_limit(original)
    if limit is None or known.shape[1] != voices.shape[1] or known.shape[1] < _LEAST_DIMENSION:
        return none
    known, voices = _unit(known), _unit(voices)
    best = np.empty(len(names), dtype=np.int64)
    standing = np.empty(len(names))
    closest, closeness = np.zeros(len(owners), dtype=np.int64), np.full(len(owners), -np.inf)
    for start in range(0, len(names), _ROWS_AT_ONCE):
        here = np.arange(start, min(start + _ROWS_AT_ONCE, len(names)))
        scores = voices[here] @ known.T
        best[here] = scores.argmax(axis=1)
        standing[here] = _standing_out(scores)
        # The closest protected voice of each original one, over all blocks.
        nearest = scores.max(axis=0)
        nearer = nearest > closeness
        closest[nearer] = here[scores.argmax(axis=0)[nearer]]
        closeness[nearer] = nearest[nearer]
    stored = [(names[k], owners[best[k]]) for k in range(len(names))]
    mutual = closest[best] == np.arange(len(names))
    told = np.flatnonzero(mutual & (standing > limit))
    told = told[np.argsort(-standing[told], kind="stable")]
    pairs = tuple(stored[k] for k in told if stored[k][0] != stored[k][1])
    return MisplacedVoices(pairs, len(names), bar)


def attacker_notices(attackers: Mapping[str, Attacker], original: str | None) -> Iterator[Notice]:
    """Tell which names of attackers' speech may be wrong, where originals are known as such.

    Original speech is that of the control, the attacker called ``original``, or what attackers
    enrol who say so.
    """
    control = None if original is None else attackers.get(original)
    known: dict[int, Embeddings] = {}
    tested: dict[tuple[int, int], tuple[str, Embeddings, Embeddings]] = {}
    whole = None
    if control is not None:
        alone = control.enrol is control.test
        whole = control.enrol if alone else pooled([control.enrol, control.test])
        known[id(whole)] = whole
    for name, attacker in attackers.items():
        if name == original or attacker.by or attacker.listens or attacker.is_release:
            continue
        speech = attacker.enrol if attacker.enrols == "original" else whole
        if speech is not None:
            if whole is None:
                known[id(speech)] = speech
            tested.setdefault((id(speech), id(attacker.test)), (name, speech, attacker.test))
    doubted = [alike_people(speech).notice("original speech") for speech in known.values()]
    for name, speech, voices in tested.values():
        doubted.append(misplaced_voices(speech, voices).notice(name))
    yield from dict.fromkeys(filter(None, doubted))


def name_notices(
    original: Embeddings, protected: Mapping[str, Embeddings], spell: Spelling = str
) -> Iterator[Notice]:
    """Tell which names may be wrong, of original speech and of each protected set."""
    doubted = [alike_people(original).notice("original", spell)]
    for name, voices in protected.items():
        doubted.append(misplaced_voices(original, voices).notice(name, spell))
    yield from filter(None, doubted)


def refuse_two_values(sets: Sequence[Embeddings], columns: Sequence[str]) -> None:
    """Refuse a person who has two values of a side column, in one set or in two.

    A value that is spelled in two ways would rule out the right person.
    """
    for column in columns:
        tables = [
            pl.DataFrame(
                {"person": voices.speakers.to_series(), "value": groups_of(voices, [column])}
            )
            for voices in sets
            if column in voices.columns
        ]
        if not tables:
            continue
        values = pl.concat([table.unique(maintain_order=True) for table in tables])
        values = values.unique(maintain_order=True)
        several = values.filter(values["person"].is_duplicated())
        if several.is_empty():
            continue
        first = several["person"][0]
        mine = [shown_group(value) for value in several.filter(pl.col("person") == first)["value"]]
        people = several["person"].n_unique()
        more = f", and two for {people - 1:,} more" if people > 1 else ""
        actual = f"{' and '.join(mine)} for {first}{more}"
        raise InputError(column, "one value for a person in all sets", actual)


def _listed(shown: Sequence[str]) -> str:
    """Join the first names and count the rest."""
    rest = len(shown) - _MOST_NAMED
    more = f"; {rest:,} more" if rest > 0 else ""
    return "; ".join(shown[:_MOST_NAMED]) + more


def _mean_voices(speech: Embeddings) -> tuple[FloatArray, IntArray, list[str]]:
    """Average the vectors of each person, taken about the mean of all and at length one.

    Returns
    -------
    tuple
        Means that are not at length one again, recordings of each person, and names.
    """
    people = speech.speakers.present
    codes = np.unique(speech.speakers.codes, return_inverse=True)[1]
    counts = np.bincount(codes)
    # Slices keep one copy of the vectors at most in memory, whatever their precision.
    total = np.zeros(speech.dimension)
    for _, vectors in speech.slices():
        total += _unit(vectors).sum(axis=0)
    sums = np.zeros((len(counts), speech.dimension))
    for start, vectors in speech.slices():
        about_mean = _unit(_unit(vectors) - total / len(speech))
        here = codes[start : start + len(vectors)]
        ones = np.ones(len(here)), (here, np.arange(len(here)))
        sums += csr_array(ones, shape=(len(counts), len(here))) @ about_mean
    return sums / counts[:, None], counts, people.to_list()


def _unit(vectors: Vectors) -> FloatArray:
    """Bring rows to length one; rows of nothing stay as they are."""
    rows = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > _NOTHING, length, np.inf))


def _standing_out(scores: FloatArray) -> FloatArray:
    """How far the best of each row stands out: (score − median)/(1.4826 · MAD); NaN is left out."""
    centre = np.nanmedian(scores, axis=1)
    deviation = np.nanmedian(np.abs(scores - centre[:, None]), axis=1)
    distance = np.nanmax(scores, axis=1) - centre
    spread = _MAD_TO_DEVIATION * deviation
    standing = np.divide(distance, spread, out=np.zeros_like(distance), where=spread > 0)
    return np.asarray(standing)


def _stranger_limit(original: Embeddings) -> float | None:
    """How far the closest stranger stands out for all but 5 % of original voices.

    One half of everybody's recordings is compared with the other half, one's own voice left out.
    None where too few people have two recordings.
    """
    halved = half_by_content(original, 0)
    if halved.all():
        return None
    rows, columns = original.select(halved), original.select(~halved)
    voices, _, names = _mean_voices(rows)
    known, _, owners = _mean_voices(columns)
    if len(owners) < LEAST_PEOPLE or len(names) < LEAST_PEOPLE:
        return None
    place = {name: k for k, name in enumerate(owners)}
    voices, known = _unit(voices), _unit(known)
    standing = np.empty(len(names))
    for start in range(0, len(names), _ROWS_AT_ONCE):
        here = np.arange(start, min(start + _ROWS_AT_ONCE, len(names)))
        scores = voices[here] @ known.T
        for k in here:
            if names[k] in place:
                scores[k - start, place[names[k]]] = np.nan
        standing[here] = _standing_out(scores)
    return float(np.quantile(standing, _STRANGER_QUANTILE))
