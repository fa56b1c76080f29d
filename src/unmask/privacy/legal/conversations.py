"""Conversations: L utterances of one speaker averaged into one embedding (Vauquier 2025, 3.4).

Also what is refused before an attack is run, each in one line that says which and how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import FloatArray, Groups, IntArray, Sampling, lazy
from unmask.errors import InputError
from unmask.privacy.attack import Attacker, refuse_dimensions
from unmask.privacy.names import refuse_two_values
from unmask.privacy.recordings import ExchangedPeople, groups_of, rows_by_content
from unmask.run import Range, Xp
from unmask.scoring import Backend, Sides, sides_of_means
from unmask.trials import Embeddings, Ids, lookup

EnrolLength = int | Literal["all"] | None
"""Utterances averaged in enrolment; None is the depth of Vauquier 2025, 3.4."""
Codes = tuple[IntArray, IntArray]
Metric = Literal["singling_out", "linkability", "one_minus_eer"]
ENROL_LENGTH: Mapping[str, int | Literal["all"]] = {"singling_out": 30}
"""Utterances averaged in enrolment where that is not said, else all (Vauquier 2025, 3.4)."""
_APART: WeakKeyDictionary[Ids, WeakSet[Ids]] = WeakKeyDictionary()
"""Utterances that were found to share none."""
TIE = 1e-6
"""Scores that differ by at most this share of the largest absolute score are tied."""
_ROWS = 1 << 15
_AT_ONCE = 1 << 9


@dataclass(frozen=True, kw_only=True)
class LegalProtocol:
    """The protocol of Singling Out, Linkability and 1 − EER; defaults are the paper's.

    Parameters
    ----------
    linkability_enrol, singling_out_enrol, one_minus_eer_enrol
        Utterances averaged in enrolment, or ``"all"``. By default all for Linkability, 30 (or what
        there is) for Singling Out, and for 1 − EER as for Linkability.
    linkability_draws
        Lists of N' to sample; None is the expectation over all lists.
    folds, draws, max_enrol
        Folds, draws of N test speakers and most enrolment speakers of Singling Out.
    max_conversations
        Most conversations of one test speaker.
    swap
        Singling Out enrols the test set and tests the enrolment set, as the paper does with its
        sets A and B. An attacker that enrols original speech keeps its sides.
    side
        Columns that the attacker knows to match as well.
    allow_shared_utterances
        Let utterances be on both sides, which is a leak.
    extrapolate
        Number of people to which Linkability of the strongest attack is continued.

    Examples
    --------
    >>> import unmask as um
    >>> um.LegalProtocol(folds=5, side=("gender",)).folds
    5
    """

    linkability_enrol: EnrolLength = None
    singling_out_enrol: EnrolLength = None
    one_minus_eer_enrol: EnrolLength = None
    linkability_draws: int | None = None
    folds: int = 10
    draws: int = 5
    max_enrol: int = 495
    max_conversations: int = 10
    swap: bool = False
    side: tuple[str, ...] = ()
    allow_shared_utterances: bool = False
    extrapolate: int | None = None

    def __post_init__(self) -> None:
        for name in ("folds", "draws", "max_enrol", "max_conversations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, found {getattr(self, name)}")
        object.__setattr__(self, "side", tuple(self.side))

    def depth(self, metric: Metric) -> EnrolLength:
        """Utterances averaged in enrolment for a metric, None where that is not said."""
        if metric == "one_minus_eer" and self.one_minus_eer_enrol is None:
            return self.linkability_enrol
        asked: EnrolLength = getattr(self, f"{metric}_enrol")
        return asked


USUAL = LegalProtocol()


@dataclass(frozen=True, eq=False)
class Conversations:
    """Unit vectors, each the normalised mean of normalised utterances of one speaker, sorted by
    speaker: ``speakers[r]`` is the row's index in ``names``. ``left_out`` speakers had too few
    utterances, ``short`` ones are averaged over fewer than asked for. ``sizes`` says over how many
    utterances each row is averaged.
    """

    vectors: FloatArray
    speakers: IntArray
    names: pl.Series
    sizes: IntArray
    left_out: int = 0
    short: int = 0

    @property
    def per_speaker(self) -> IntArray:
        """Number of conversations of each speaker."""
        return np.bincount(self.speakers, minlength=len(self.names))


def enrolment(embeddings: Embeddings, *, length: EnrolLength, seed: int) -> Conversations:
    """One embedding per speaker over ``length`` utterances drawn at random, or ``"all"``; a speaker
    with fewer gives all there are, and is counted as ``short``.
    """
    rows, rank, total, names = _drawn(embeddings, seed)
    most = total if length == "all" else np.full(len(total), _positive(length))
    sizes = np.minimum(total, most)
    vectors = average(embeddings, rows[rank < np.repeat(sizes, total)], sizes)
    return Conversations(
        vectors, np.arange(len(total)), names, sizes, short=int((total < most).sum())
    )


def conversations(
    embeddings: Embeddings, *, length: int, least: int, most: int, seed: int
) -> Conversations:
    """Up to ``most`` disjoint conversations of ``length`` utterances per speaker; who has fewer
    than ``least``·``length`` utterances is left out, and counted.
    """
    rows, rank, total, names = _drawn(embeddings, seed)
    kept = np.minimum(total // _positive(length), most)
    enough = kept >= least
    if not enough.any():
        wanted = f"a speaker with at least {least * length} utterances"
        actual = f"at most {total.max()} (all {len(total)} speakers)"
        raise InputError(f"length {length}", wanted, actual)
    kept = np.where(enough, kept, 0)
    chosen = rows[rank < np.repeat(kept * length, total)]
    sizes = np.full(int(kept.sum()), length)
    vectors = average(embeddings, chosen, sizes)
    speakers = np.repeat(np.arange(enough.sum()), kept[enough])
    names = names.filter(pl.Series(enough))
    return Conversations(vectors, speakers, names, sizes, left_out=int((~enough).sum()))


def average(embeddings: Embeddings, rows: IntArray, sizes: IntArray) -> FloatArray:
    """Normalise each vector, average runs of ``sizes`` rows, normalise again; in pieces."""
    means = np.empty((len(sizes), embeddings.dimension))
    ends = np.cumsum(sizes)
    equal = bool((sizes == sizes[0]).all())
    first = 0
    while first < len(sizes):
        offset = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, offset + _ROWS, side="right")))
        part = np.asarray(embeddings.vectors[rows[offset : int(ends[last - 1])]], dtype=np.float64)
        part = part / np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
        if equal:
            means[first:last] = part.reshape(last - first, -1, part.shape[1]).sum(axis=1)
        else:
            starts = ends[first:last] - sizes[first:last] - offset
            means[first:last] = np.add.reduceat(part, starts, axis=0)
        first = last
    length = np.sqrt(np.einsum("ij,ij->i", means, means))[:, None]
    if not length.all():
        actual = f"{(length == 0).sum()} whose utterances cancel out"
        raise InputError(embeddings.name, "conversations that can be normalised", actual)
    means /= length
    return means


def _positive(length: int | None) -> int:
    if length is None or isinstance(length, bool) or int(length) != length or length < 1:
        raise InputError(f"length: expected a whole number of at least 1, found {length}")
    return int(length)


def _drawn(embeddings: Embeddings, seed: int) -> tuple[IntArray, IntArray, IntArray, pl.Series]:
    """Rows by the name of the speaker, in an order within each that is drawn by seed and content;
    the number of each row within its speaker; utterances per speaker; the names.
    """
    speakers, rows = embeddings.speakers.alphabetical(), rows_by_content(embeddings, seed)
    groups = Groups(speakers.codes[rows])
    return rows, groups.slot, groups.counts, speakers.names


def refuse_zeros(embeddings: Embeddings, side: str) -> None:
    """A vector of zeros has no direction."""
    zero = ~embeddings.vectors.any(axis=1)
    if zero.any():
        first, names = int(zero.argmax()), embeddings.utterances
        which = f"row {first + 1}" if names is None else names.decode(first)
        actual = f"{zero.sum()} zero vectors (first: {which})"
        raise InputError(embeddings.name, f"{side} vectors other than zero", actual)


def as_counts(counts: npt.ArrayLike, *, speakers: int, least: int, where: str) -> IntArray:
    """Speaker counts N, whole numbers from ``least`` to the speakers there are."""
    array = np.atleast_1d(np.asarray(counts))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InputError(f"counts: expected numbers of speakers, found {counts!r}")
    whole = array.astype(np.int64)
    bad = (whole != array) | (whole < least)
    if bad.any():
        raise InputError("counts", f"whole numbers of at least {least}", array[bad][0])
    if whole.max() > speakers:
        actual = f"{whole.max()} ({(whole > speakers).sum()} counts are larger)"
        raise InputError("counts", f"at most the {speakers} speakers in {where}", actual)
    return whole


def side_codes(sides: Sequence[tuple[Embeddings, pl.Series]], columns: Sequence[str]) -> Codes:
    """Codes of the named speakers of both sets, equal where all ``columns`` match."""
    refuse_two_values([embeddings for embeddings, _ in sides], columns)
    values = []
    for embeddings, names in sides:
        table = dict(
            zip(embeddings.speakers.to_series(), groups_of(embeddings, columns), strict=True)
        )
        values.append([table[name] for name in names])
    codes = np.unique(values[0] + values[1], return_inverse=True)[1]
    return codes[: len(values[0])], codes[len(values[0]) :]


@dataclass(frozen=True, eq=False)
class Rows(Sides):
    """Sides, where with side information a pair whose ``codes`` of enrolment and test rows differ
    cannot be one speaker: it scores −inf.
    """

    codes: Codes | None = None

    def exact(self, enrol: IntArray, test: IntArray) -> FloatArray:
        """Double-precision scores of pairs; equal vectors give equal scores, wherever they are."""
        scores = np.empty(test.size)
        for start in range(0, test.size, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            scores[some] = (self.test[test[some]] * self.enrol[enrol[some]]).sum(axis=1)
        if self.codes is None:
            return scores
        return np.where(self.codes[1][test] == self.codes[0][enrol], scores, -np.inf)

    @lazy
    def single(self) -> Rows:
        """The same in single precision."""
        kind: Any = np.float32
        return Rows(self.enrol.astype(kind), self.test.astype(kind), self.codes)

    def scores(self, xp: Xp, rows: Range, columns: Range, out: Any = None) -> Any:
        """Scores of some enrolment rows with some test rows."""
        scores = super().scores(xp, rows, columns, out)
        if self.codes is None:
            return scores
        enrol, test = map(xp.put, self.codes)
        different = enrol[slice(*rows), None] != test[slice(*columns)]
        return xp.fill(scores, different, -np.inf)


def rounding(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Bound on the difference of two single-precision scores of each row from the truth.

    An inner product of d terms errs by at most (d + 2)·u·‖a‖·‖b‖ with u = 2⁻²⁴, rounding of the
    vectors to single precision included; a difference of two such scores by twice that.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", others, others).max()))
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(2 * (rows.shape[1] + 4) * 2.0**-24 * lengths * longest)


@dataclass(frozen=True, eq=False)
class AttackData:
    """What every metric begins with: one voice per enrolment speaker (``enrolled``), the test
    conversations (``tested``), with side information ``codes`` of the speakers on both sides, equal
    where all columns match, ``seeds`` for what is drawn afterwards, ``fields`` of a curve.
    ``everyone`` are the names of those who are tested, however few their utterances; within a
    release ``exchanged`` are those whose names are exchanged in pairs. In one of several rounds a
    speaker weighs ``weights`` (one of the names in ``tested``), by the attempts of all rounds.
    """

    enrolled: Conversations
    tested: Conversations
    backend: Backend
    codes: Codes | None
    seeds: Sequence[np.random.SeedSequence]
    fields: Mapping[str, Any]
    everyone: pl.Series
    exchanged: ExchangedPeople | None = None
    weights: FloatArray | None = None

    @property
    def true(self) -> IntArray:
        """Number in enrolment of every test speaker who is enrolled."""
        return lookup(self.tested.names, self.enrolled.names).astype(np.int64)

    def rows(self, speakers: Any = slice(None)) -> tuple[FloatArray, FloatArray, Codes | None]:
        """Rows of both sides whose inner products are scores, of some enrolment speakers or all,
        and the codes of both where there is side information.
        """
        enrolled = self.enrolled.vectors[speakers], self.enrolled.sizes[speakers]
        sides = sides_of_means(self.backend, *enrolled, self.tested.vectors, self.tested.sizes)
        if self.codes is None:
            return sides.enrol, sides.test, None
        codes = self.codes[0][speakers], self.codes[1][self.tested.speakers]
        return sides.enrol, sides.test, codes


def attack_data(
    enrol: Embeddings,
    test: Embeddings,
    metric: Metric,
    length: int,
    backend: Backend | str,
    protocol: LegalProtocol,
    how: Sampling,
    exchanged: ExchangedPeople | None = None,
) -> AttackData:
    """Check both sets and draw their conversations.

    Singling Out needs two conversations of ``length`` of a speaker, who may be anybody; the others
    one, of somebody who is enrolled: all others are left out and counted.
    """
    refuse_dimensions(enrol, test)
    refuse_zeros(enrol, "enrolment")
    refuse_zeros(test, "test")
    if not protocol.allow_shared_utterances:
        allow = "; LegalProtocol(allow_shared_utterances=True) lets this leak pass"
        refuse_shared(enrol, test, allow)
    strangers = 0
    if metric != "singling_out":
        names = enrol.speakers.present
        own = lookup(test.speakers.names, names)[test.speakers.codes] >= 0
        strangers = test.n_speakers - len(np.unique(test.speakers.codes[own]))
        if not own.any():
            actual = f"none of {strangers} (first: {test.speakers.decode(0)})"
            raise InputError("test speakers", "one who is enrolled", actual)
        test = test.select(own) if strangers else test
    used = Attacker(enrol, test, backend).ready()
    enrol, test, scorer = used.enrol, used.test, used.backend_in_use
    asked = protocol.depth(metric)
    depth = ENROL_LENGTH.get(metric, "all") if asked is None else asked
    seeds = np.random.SeedSequence(how.seed).spawn(4)
    enrolled = enrolment(enrol, length=depth, seed=how.seed)
    tested = conversations(
        test,
        length=length,
        least=2 if metric == "singling_out" else 1,
        most=1 if metric == "one_minus_eer" else protocol.max_conversations,
        seed=how.seed,
    )
    both, side = ((enrol, enrolled.names), (test, tested.names)), protocol.side
    fields = {
        "metric": metric,
        "length": length,
        "enrol_length": depth,
        "backend": scorer.name,
        "side": side,
        "left_out": tested.left_out,
        "strangers": strangers,
        "short": 0 if asked is None else enrolled.short,
        "resampling": how,
        "split": "" if exchanged is None else exchanged.digest,
    }
    codes = side_codes(both, side) if side else None
    everyone = test.speakers.present
    return AttackData(enrolled, tested, scorer, codes, seeds[2:], fields, everyone, exchanged)


def refuse_shared(enrol: Embeddings, test: Embeddings, allow: str = "") -> None:
    """No utterance is on both sides; ``allow`` says how this could be let pass."""
    one, other = enrol.utterances, test.utterances
    if one is None or other is None or other in _APART.setdefault(one, WeakSet()):
        return
    leak = one.present.filter(one.present.is_in(other.present.implode()))
    if len(leak):
        actual = f"{len(leak)} in enrolment and in test (first: {leak[0]})"
        raise InputError("utterances", "none on both sides", f"{actual}{allow}")
    _APART[one].add(other)
