"""DeID and G_VD of one safeguard, or of many side by side (the table of Noé 2022), from embeddings,
lists of trials or score matrices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray, Sampling, Tabular, as_array, as_numbers, estimate_row
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.privacy.attack import (
    ALIGNMENTS,
    BESIDE,
    CENTRED,
    DOUBLE_CENTRED,
    LENGTH,
    NO_VOICE,
    PLAIN,
    WORDS,
    Attacker,
    not_tried,
    with_groups,
)
from unmask.privacy.channels import lengths_vary
from unmask.privacy.names import name_notices, refuse_two_values
from unmask.privacy.recordings import column_of, first_half, of_people, people_by_group
from unmask.privacy.similarity.attackers import SETS
from unmask.privacy.similarity.distortion import (
    UNTAUGHT,
    CalibrationDistortion,
    Retrained,
    cross_scores,
    distortions,
    retrained,
)
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.lists import RunScores, sets_of_lists, speaker_trials
from unmask.privacy.similarity.matrix import similarity_sets
from unmask.privacy.similarity.pairs import (
    Block,
    MatrixPairs,
    Segments,
    aligned,
    double_centred,
    prepared,
    segments_of,
)
from unmask.privacy.similarity.result import LISTED, Pseudonymisation, assessed
from unmask.privacy.similarity.session_pairs import SessionAssessment, compare_sessions
from unmask.run import load_arrays, part, progress
from unmask.scoring import (
    BACKENDS,
    Backend,
    PairGrid,
    Rule,
    Sides,
    backend_named,
)
from unmask.trials import Embeddings, Ids, Scores, refuse_encoders, text_ids

if TYPE_CHECKING:
    from unmask.engine import GroupGaps
    from unmask.privacy.words import Words

ALL = "all"
_ENROLMENT = "enrolment from several utterances or from a run of the attacker's own"
_GIVEN = (
    "not tried: any back-end or extractor but that of the given scores, which needs embeddings or"
    " recordings. `unmask assess` tries all that its data allow"
)
SPEAKERS = ("speakers", "speaker_ids", "spk")
Speakers = Ids | Iterable[Any]
Lists = tuple[Scores, Scores, Scores]
Matrices = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, Speakers]


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
    attackers: Mapping[str, Attacker] | None = ...,
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
    attackers: Mapping[str, Attacker] | None = None,
    system: str | None = None,
    mean: str = "geometric",
    pairs: str = "all",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Pseudonymisation:
    """De-identification and gain of voice distinctiveness of one safeguard (Noé 2020, 2022).

    DeID = 1 − D_diag(OP)/D_diag(OO) (2022, eq. 9), G_VD = 10·log10(D_diag(PP)/D_diag(OO)) (eq. 10).
    What is fitted on these very recordings is fitted on originals of one half of each speaker's
    utterances and protected speech of the other and judged on just these, then the other way round.
    Pairs are compared on the current :func:`~unmask.run.run_on`; all places but ``cuda`` give the
    same bits.

    Parameters
    ----------
    *data
        One of three. The original and the protected embeddings: segments are matched by utterance
        name, or by order where neither set has names. Or three lists of scored trials OO, OP, PP
        with the speakers on both sides; trials of a segment with itself, or with its own protected
        version, do not count. Or three square matrices of scores ``oo``, ``op``, ``pp`` and the
        speaker of each segment; in ``op`` rows are original, and diagonals are never used.
    backend
        Of embeddings: how they are compared (cosine, wccn, plda, …).
    attackers
        Of embeddings: who else competes, by name, with the plain, negated and centred score of OP.
        Each holds the same segments as ``enrol`` (original) and ``test`` (protected). One that
        cannot be fitted is left out, with a note.
    system
        Of lists: which scores, where there are several.
    mean
        ``"geometric"`` (2022, eq. 6) or ``"arithmetic"`` (2020, eq. 2).
    pairs
        ``"all"`` ordered pairs of speakers, or ``"upper"``: one order of each, mirrored, as the
        VoicePrivacy recipe does (of lists both orders are pooled).
    replicates, level, seed
        Resamples of the speakers for intervals (0 for none), their confidence, and the draws.

    Returns
    -------
    Pseudonymisation
        ``deid`` (a fraction), ``g_vd`` (dB), ``d_diag`` and ``matrices`` by ``oo``, ``op``, ``pp``.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(list("abcdef"), 4)
    >>> same = np.equal.outer(speakers, speakers)
    >>> oo, op, pp = (rng.normal(distance * same) for distance in (4, 1, 3))
    >>> result = um.pseudonymisation(oo, op, pp, speakers, replicates=0)
    >>> print(f"DeID {result.deid:.2f}, G_VD {result.g_vd:.2f} dB")
    DeID 0.64, G_VD -0.48 dB
    """
    setup = Setup(replicates, level, seed, mean, pairs)
    if len(data) == 3 and all(isinstance(one, Scores) for one in data):
        made, notes = sets_of_lists(dict(zip(SETS, data, strict=True)), setup, system=system)
        digest = _digest("|".join(one.digest for one in data))
        return assessed(made, compared=LISTED, trials=digest, notes=notes)
    if len(data) == 2 and all(isinstance(one, Embeddings) for one in data):
        return _of_embeddings(*data, backend_named(backend), attackers or {}, setup)
    if len(data) == 4:
        ids = text_ids(data[3], "speakers", "matrices")
        segments = segments_of(ids)
        squares = {
            name: MatrixPairs(_square(scores, name.upper(), len(ids)), segments)
            for name, scores in zip(SETS, data, strict=False)
        }
        if (attack := double_centred(squares["op"])) is not None:
            squares[DOUBLE_CENTRED] = attack
        rule = _rule(segments, setup)
        pairs_of = {name: [segments.pairs(source, rule)] for name, source in squares.items()}
        return _assessed(pairs_of, segments, setup)
    raise InputError(
        "expected two sets of embeddings, three lists of scores, or three matrices and the"
        f" speakers, found {', '.join(type(one).__name__ for one in data) or 'nothing'}"
    )


def _of_embeddings(
    original: Embeddings,
    protected: Embeddings,
    backend: Backend,
    attackers: Mapping[str, Attacker],
    setup: Setup,
) -> Pseudonymisation:
    """The three sets and all attacks; those fitted on either half of the utterances come last."""
    segments, _, o, p = prepared(backend, original, protected)
    own = {"oo": o, "op": Sides(o.enrol, p.test), "pp": p}
    rule = _rule(segments, setup)
    whole = {name: [segments.pairs(source, rule)] for name, source in own.items()}
    crossed: dict[str, list[PairGrid]] = {}
    first, notes = first_half(original)[segments.order], []
    for name, attacker in {"": Attacker(original, protected, backend), **attackers}.items():
        refuse_encoders({"the enrolment": attacker.enrol, "the test": attacker.test})
        e, t = (
            aligned(original, side, compared=False)[1][segments.order]
            for side in (attacker.enrol, attacker.test)
        )
        for reading in (PLAIN, CENTRED):
            label = reading.of(name) if name else str(reading)
            if label == PLAIN:
                continue
            try:
                groups = _groups(attacker, e, t) if attacker.by else None
                if reading not in attacker.readings:
                    if not attacker.centres:
                        why = f"not tried, {attacker.uncentred}"
                        notes.append(Notice("not-centred", label, why))
                    continue
                if reading == CENTRED and (who := ", ".join(attacker.talkative())):
                    told = f"more than half of a side are of one speaker ({who}), whose voice goes"
                    notes.append(Notice("talkative", label, told))
                attack = attacker.read(reading)
                if attacker.fits or reading == CENTRED:
                    crossed[label] = [
                        segments.crossed(way, here, groups)
                        for way, here in zip(
                            attack.crossed(e, t, first), (first, ~first), strict=True
                        )
                    ]
                else:
                    made = attack.sides()
                    sides = Sides(made.enrol[e], made.test[t])
                    whole[label] = [segments.pairs(sides, _rule(segments, setup, groups))]
            except InputError as error:
                notes.append(Notice("not-fitted", label, f"not tried, {error}"))
                break
    one_way = [
        reading.of(name)
        for name, attacker in attackers.items()
        for reading in attacker.readings
        if attacker.channel
    ]
    grids = {**whole, **crossed}
    return _assessed(grids, segments, setup, backend.name, tuple(notes), one_way=one_way)


def _assessed(
    pairs: Mapping[str, Sequence[PairGrid]],
    segments: Segments,
    setup: Setup,
    backend: str | None = None,
    notes: tuple[Notice, ...] = (),
    one_way: Collection[str] = (),
) -> Pseudonymisation:
    """The result of scores by set and attack, all read negated too but those ``one_way``."""
    once = () if setup.mirror else ("oo", "pp")
    made = similarity_sets(pairs, setup, negated=pairs.keys() - {"oo", "pp"}, once=once)
    codes = np.empty(len(segments), dtype=np.int64)
    codes[segments.order] = segments.codes
    spoken = "\n".join(segments.names[code] for code in codes)
    trials = _digest(spoken)
    return assessed(made, backend=backend, trials=trials, notes=notes, one_way=one_way)


def _rule(segments: Segments, setup: Setup, groups: IntArray | None = None) -> Rule | None:
    """Which pairs count: one order of each where they are mirrored, those within ``groups``."""
    if setup.mirror:
        return Rule(segments.order, "<", groups)
    return None if groups is None else Rule(groups, "==")


def _groups(attacker: Attacker, enrol: IntArray, test: IntArray) -> IntArray:
    """The group of each segment, which both its versions have."""
    assert attacker.groups is not None
    here, there = attacker.groups
    if (here[enrol] != there[test]).any():
        wanted = "one value for both versions of a recording"
        raise InputError(" and ".join(attacker.by), wanted, "several")
    return here[enrol].astype(np.int64)


def _square(scores: npt.ArrayLike, name: str, size: int) -> Block:
    matrix = as_array(scores, name)
    matrix = matrix if matrix.dtype == np.float32 else as_numbers(matrix, name)
    if matrix.shape != (size, size):
        raise InputError(
            f"{name}: expected a square matrix of {size} x {size} scores, one row and one column"
            f" per segment, found shape {matrix.shape}"
        )
    return matrix


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_matrices(path: str | Path) -> tuple[Block, Block, Block, Ids]:
    """The square matrices ``oo``, ``op`` and ``pp`` and the speaker of each row.

    Speakers stand under ``speakers``, ``speaker_ids`` or ``spk``.
    """
    arrays = load_arrays(path, str(path))
    named = next((name for name in SPEAKERS if name in arrays), None)
    missing = [name for name in ("oo", "op", "pp") if name not in arrays]
    if named is None or missing:
        raise InputError(
            f"{path}: expected the arrays oo, op, pp and one of {', '.join(SPEAKERS)},"
            f" found {', '.join(arrays) or 'nothing'}"
        )
    speakers = text_ids(arrays[named], "speakers", str(path))
    return arrays["oo"], arrays["op"], arrays["pp"], speakers


@dataclass(frozen=True, eq=False, repr=False)
class SafeguardRow(Tabular):
    """One safeguard on one set of speech: a row of :class:`PrivacyAssessment`.

    ``distortions`` where it was run twice, ``sessions`` where they were assessed, ``retrained``
    where there are people to retrain a recogniser on.
    """

    system: str
    dataset: str
    result: Pseudonymisation
    distortions: tuple[CalibrationDistortion, ...] = ()
    sessions: SessionAssessment | None = None
    retrained: Retrained | None = None

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The row of Table 2: DeID (plain, strongest), G_VD, D_ECE, C_ECE where known, l_w, tag;
        G_VD by a retrained recogniser.
        """
        row = list(self.result.estimates)
        row[4:4] = [e for d in self.distortions[:1] for e in d.estimates[:1]]
        return (*row, *(self.retrained.estimates if self.retrained is not None else ()))

    @property
    def details(self) -> tuple[Estimate, ...]:
        """Everything else: twins, D_diag, all calibrations, sessions."""
        more = [e for d in self.distortions for e in d.estimates]
        over = self.sessions.estimates if self.sessions is not None else ()
        return (*self.result.details, *more, *over)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to be careful about; few speakers are the set's, and said once."""
        notices = [*self.result.notices]
        notices += [n.about(f"C_ECE, {d.method}") for d in self.distortions for n in d.notices]
        if self.sessions is not None:
            notices += [
                n.about("sessions") for n in self.sessions.notices if n.code != "few-speakers"
            ]
        if self.retrained is None and self.result.backend is not None:
            notices.append(UNTAUGHT)
        return tuple(notices)


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyAssessment(Tabular):
    """What :func:`compare_safeguards` found, in the order of sets, then systems."""

    safeguards: tuple[SafeguardRow, ...]
    seed: int = 0
    gaps: tuple[GroupGaps, ...] = ()
    notes: tuple[Notice, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The table: every estimate with its set and its safeguard."""
        return [
            estimate_row(estimate, dataset=row.dataset, system=row.system)
            for row in self.safeguards
            for estimate in row.estimates
        ]

    @property
    def parts(self) -> dict[Any, SafeguardRow]:
        """The first safeguard of each name, and that of each pair (system, dataset)."""
        first = {row.system: row for row in reversed(self.safeguards)}
        ordered = {name: first[name] for name in self.systems}
        return ordered | {(row.system, row.dataset): row for row in self.safeguards}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those of every safeguard."""
        return tuple(estimate for row in self.safeguards for estimate in row.estimates)

    def __iter__(self) -> Iterator[SafeguardRow]:
        return iter(self.safeguards)

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.system for s in self.safeguards))

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.dataset for s in self.safeguards))

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Each about its safeguard and set; few speakers are the set's alone; last what was not
        tried.
        """
        several = len(self.datasets) > 1
        notices = [
            notice.about(s.dataset if several else "")
            if notice.code == "few-speakers"
            else notice.about(f"{s.system}, {s.dataset}" if several else s.system)
            for s in self.safeguards
            for notice in s.notices
        ]
        ordered = dict.fromkeys(sorted(notices, key=lambda n: n.code == "few-speakers"))
        return (*ordered, *self.notes, self._not_tried())

    def _not_tried(self) -> Notice:
        """One back-end and alignments compare single utterances, original with protected."""
        backend = self.safeguards[0].result.backend
        if backend is None:
            return Notice("not-tried", "", _GIVEN)
        given = {one.needs for one in BACKENDS.values() if one.is_free or one.name == backend}
        return not_tried({backend, *ALIGNMENTS}, lambda named: named.needs in given, _ENROLMENT)


@overload
def compare_safeguards(
    original: Embeddings,
    protected: Mapping[str, Embeddings],
    /,
    *,
    again: Mapping[str, Embeddings] | None = ...,
    by: str | None = ...,
    side: Sequence[str] = ...,
    with_sessions: bool = ...,
    backend: Backend | str = ...,
    words: Words | None = ...,
    laplace: bool = ...,
    **options: Unpack[Options],
) -> PrivacyAssessment: ...


@overload
def compare_safeguards(
    scores: Mapping[str, Lists] | Mapping[str, Matrices],
    /,
    *,
    again: Mapping[str, Scores] | None = ...,
    laplace: bool = ...,
    **options: Unpack[Options],
) -> PrivacyAssessment: ...


def compare_safeguards(
    *data: Any,
    again: Mapping[str, Any] | None = None,
    by: str | None = None,
    side: Sequence[str] = (),
    with_sessions: bool = False,
    backend: Backend | str = "cosine",
    words: Words | None = None,
    laplace: bool = True,
    **options: Unpack[Options],
) -> PrivacyAssessment:
    """Assess every safeguard on the same original speech (the table of Noé 2022).

    Parameters
    ----------
    *data
        The original embeddings and those of the protected speech by name of the safeguard. Or, by
        name, the three lists of scored trials, or the three matrices and the speakers, that
        :func:`pseudonymisation` takes.
    again
        A run of the attacker's own of some safeguards (embeddings, or lists of OP trials), on which
        it learns to calibrate the scores of the published run (2022, eq. 15).
    by
        Of embeddings: a column of the original set, such as gender; each part is assessed alone.
    side
        Of embeddings: columns of both sets that the attacker knows. Alignments also compete fitted
        within each of their groups, whose recordings alone are compared.
    with_sessions
        Of embeddings: adds :func:`compare_sessions`.
    backend
        Of embeddings: how they are compared.
    words
        Of embeddings: what is said (:class:`unmask.privacy.Words`), for an attack by words alone,
        which stands beside the others, and one by voice and words, which competes.
    laplace
        Whether the isotonic map of a second run is trained with Laplace.
    **options
        ``mean``, ``pairs``, ``replicates``, ``level`` and ``seed`` of :func:`pseudonymisation`.

    Returns
    -------
    PrivacyAssessment
        A :class:`SafeguardRow` for each safeguard and part of the speech.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices, who = np.repeat(rng.normal(size=(8, 16)), 4, axis=0), np.repeat(list("abcdefgh"), 4)
    >>> def said(kept):
    ...     return um.Embeddings(kept * voices + rng.normal(size=voices.shape), who)
    >>> table = um.compare_safeguards(said(2), {"weak": said(1), "strong": said(0)}, replicates=0)
    >>> for row in table:
    ...     print(f"{row.system}: DeID {row.result.deid:.2f}")
    weak: DeID 0.11
    strong: DeID 0.96
    """
    original, systems = data if len(data) == 2 else (None, *data)
    second = again or {}
    unknown = [name for name in second if name not in systems]
    if unknown:
        raise InputError(f"second run of {unknown[0]}: there is no first run of that name")
    if not systems:
        raise InputError("expected at least one protected set, found none")
    if original is None and (by is not None or side or with_sessions):
        raise InputError("by, side and sessions need embeddings, found scores")
    if second and original is None and any(len(own) != 3 for own in systems.values()):
        raise InputError("a second run needs embeddings or lists of trials, found matrices")
    notes: tuple[Notice, ...] = ()
    if words is not None:
        if original is None:
            raise InputError("words need embeddings, found scores")
        words.refuse_unknown([original, *systems.values()])
        original = words.told(original)
        systems = {name: words.told(own) for name, own in systems.items()}
        notes = words.limits(WORDS, original, *systems.values())
    for name in side:
        column_of(original, name)
    if original is not None:
        everything = [original, *systems.values(), *second.values()]
        refuse_two_values(everything, side)
        notes = (*notes, *name_notices(original, systems))
    given: dict[str, Any] = dict(options)
    drawn = {name: given[name] for name in ("replicates", "level", "seed") if name in given}
    shared = {name: value for name, value in given.items() if name != "pairs"}
    parts: dict[str, Any] = {ALL: original}
    if by is not None:
        from unmask.engine import group_masks

        parts = {name: original.select(mask) for name, mask in group_masks(original, by)}
        people_by_group(original, by)
    rows: list[SafeguardRow] = []
    for (dataset, speech), (system, own) in product(parts.items(), systems.items()):
        runs: Sequence[RunScores] = ()
        over, learnt_anew = None, None
        with part(len(rows), len(parts) * len(systems)):
            if speech is None:
                try:
                    result = pseudonymisation(*own, **given)
                except InputError as error:
                    raise InputError(f"{system}: {error}") from None
            else:
                chosen = _like(speech, own, by)
                names = (*ALIGNMENTS, "cosine") if side else ALIGNMENTS
                rivals = {n: Attacker(speech, chosen, n, enrols="original") for n in names}
                rivals = with_groups(rivals, side)
                rivals.pop("cosine", None)
                for name in (f"cosine{BESIDE}", NO_VOICE, WORDS) if words is not None else ():
                    rivals[name] = Attacker(speech, chosen, name, enrols="original", words=words)
                if lengths_vary(speech, chosen):
                    rivals[LENGTH] = Attacker(speech, chosen, LENGTH, enrols="original")
                result = pseudonymisation(
                    speech, chosen, backend=backend, attackers=rivals, **given
                )
        if system in second and speech is None:
            runs = speaker_trials({"again": second[system], "op": own[1]})
        elif system in second:
            both = _like(speech, second[system], by), chosen
            runs = [cross_scores(speech, run, backend=backend) for run in both]
        if with_sessions:
            with progress(None):
                over = compare_sessions(speech, chosen, backend=backend, **shared)
        if speech is not None:
            with progress(None), suppress(InputError):
                learnt_anew = retrained(speech, chosen, **shared)
        learnt = distortions(*runs, laplace=laplace, **drawn) if runs else ()
        rows.append(SafeguardRow(system, dataset, result, learnt, over, learnt_anew))
    parted = {s: {r.dataset: r.result for r in rows if r.system == s} for s in systems if by}
    gaps = tuple(deid_gaps(system, str(by), some) for system, some in parted.items())
    return PrivacyAssessment(tuple(rows), given.get("seed", 0), gaps, notes)


def deid_gaps(system: str, by: str, groups: Mapping[str, Pseudonymisation]) -> GroupGaps:
    """DeID of the plain score in each group of a column, and the gaps between the groups."""
    from unmask.engine import GroupGaps, GroupRow, Spread, gaps_between

    first, drawn = next(iter(groups.values())), [result.drawn for result in groups.values()]
    how = Sampling(first.replicates, first.level, first.seed)
    table = np.array([np.empty(0) if one is None else one for one in drawn])
    values, people = np.array([(result.deid, len(result.speakers)) for result in groups.values()]).T
    spreads = {"deid": Spread(values, table, table, people.astype(int), people.astype(int))}
    gaps, notices = gaps_between(spreads, how, params={"by": by})
    rows = [GroupRow(n, len(result.speakers), result.estimates[:1]) for n, result in groups.items()]
    return GroupGaps(system, by, "plain score", tuple(rows), gaps, notices, how.seed)


def _like(part: Embeddings, protected: Embeddings, by: str | None) -> Embeddings:
    """The protected segments of the speakers of a part."""
    return protected if by is None else of_people(protected, set(part.speakers.present))
