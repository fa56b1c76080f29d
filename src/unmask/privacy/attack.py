"""Who attacks: what is enrolled, what a back-end was trained on, and how its scores are read.

Back-ends beyond cosine, wccn and plda train no network either and use no label of attacked speech;
docs/legal.md has what each does, needs and comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, lazy
from unmask.engine import Roc, fusion_weights
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.names import refuse_two_values
from unmask.privacy.recordings import (
    MOST_PARTS,
    ExchangedPeople,
    Parts,
    ReleaseSplit,
    drawn_names,
    groups_of,
    half_by_content,
    of_people,
    pooled,
    refuse_versions,
    rows_by_group,
    shown_group,
    versions_of,
)
from unmask.run import NUMPY
from unmask.scoring import (
    BACKENDS as BACKENDS,
    BESIDE as BESIDE,
    LENGTH as LENGTH,
    NO_VOICE as NO_VOICE,
    WIDE,
    WORDS as WORDS,
    AlignedCosine,
    Backend,
    ByGroup,
    Fused,
    Named,
    Parallel,
    Sides,
    average_groups,
    backend_named,
    fitted,
    known_backend as known_backend,
    score_matrix,
    sides_of,
    sides_of_means,
)
from unmask.trials import Embeddings, refuse_encoders

if TYPE_CHECKING:
    from unmask.privacy.words import Words

MEMBERS = ("cosine", "centred", "wccn", "plda")
"""What is fused."""


class Reading(StrEnum):
    """How an attacker reads its scores; none of the ways needs a label."""

    PLAIN = "plain"
    NEGATED = "negated"
    CENTRED = "centred"
    CENTRED_NEGATED = "centred negated"

    @property
    def scored(self) -> Reading:
        """The reading whose scores this one takes as they are, or negates."""
        return CENTRED if self in (CENTRED, CENTRED_NEGATED) else PLAIN

    def of(self, attacker: str) -> str:
        """What an attacker is called that reads its scores so."""
        return attacker if self == PLAIN else f"{attacker}, {self}"


READINGS = PLAIN, NEGATED, CENTRED, CENTRED_NEGATED = tuple(Reading)
ALIGNMENTS = ("whitened", "wasserstein")
"""What everybody tries who holds enrolment and attacked speech, and nothing else."""
SCENARIOS = (
    "original enrolment",
    "ignorant",
    "semi-informed",
    "informed",
    "informed with originals",
)
"""The attackers of :func:`attack_scenarios`."""
RELEASE = "within the release"
"""What :func:`within_release` does, as a name."""
DOUBLE_CENTRED = "double-centred"
"""Another attack: scores less their mean by row and by column, which needs no vectors."""
LEAST_SPEAKERS = 3
"""On a side that is read about its mean: of one voice nothing is left, of two only ±d."""
LEAST_IN_GROUP = 2
_NOTHING = 1e-9
_EXTRACTORS = "any extractor but that of these embeddings"


def centred(embeddings: Embeddings, by: Sequence[str] = ()) -> Embeddings:
    """The ``embeddings`` at length one, less their own mean, or less that of their group where they
    go ``by`` columns.

    An attacker centres what it enrols and what it attacks each by itself.
    """
    unit = embeddings.normalised()
    vectors = np.array(unit.vectors)
    for here in _means(embeddings, by):
        vectors[here] = vectors[here] - vectors[here].mean(axis=0)
    return unit.with_vectors(vectors)


def _means(embeddings: Embeddings, by: Sequence[str]) -> list[Any]:
    """The vectors of which a mean is taken: those of each group, or all."""
    return rows_by_group(groups_of(embeddings, by)) if by else [slice(None)]


@dataclass(frozen=True, eq=False)
class Attacker:
    """What an attacker holds: enrolment speech of known voices, test speech of protected ones.

    Parameters
    ----------
    enrol, test
        Speech of known voices, and the speech that is attacked.
    backend
        A trained back-end or a name: ``cosine``; ``wccn``, ``plda`` and ``asnorm``, trained on
        ``train``; ``whitened``, ``coral`` and ``wasserstein``, which align enrolment with the
        attacked speech; ``procrustes`` and ``fusion``, which learn from ``parallel``.
    train
        The attacker's own training speech, without any version of a test recording.
    enrols
        Whether enrolment is ``"original"`` or ``"protected"`` speech.
    knows
        What extractor or back-end was trained on, always with keys of the attacker's own:
        ``"original"`` speech (ignorant), speech of a ``"related"`` safeguard (semi-informed) or of
        the ``"same"`` one (informed).
    release
        Whether enrolment is from the run that is attacked: then recordings are linked to each
        other, not to a known person. By default found out (both sets from one file, or vectors in
        both). Where a safeguard without a key gives an attacker the same run, say False.
    parallel
        Training speech as it is enrolled, and the same as it is protected.
    by
        Columns of all sets (sex, language), known of each test recording: back-ends are fitted and
        means taken within each group, and only people of one group are compared.
    reverse
        The same attack with its sides changed, whose outcomes are averaged with these; read for
        this release, ``split`` takes its place.
    split
        How a release is attacked by itself, in rounds; :func:`within_release` makes it. ``enrol``
        and ``test`` are then those of the first round. One round has the people whose names are
        exchanged in pairs to tell chance.
    words
        What is said, for back-ends called ``"words"`` and ``"cosine + words"``.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> enrol, test = (um.Embeddings(rng.normal(size=(6, 4)), list("aabbcc")) for _ in "et")
    >>> attacker = um.Attacker(enrol, test, "whitened", enrols="original")
    >>> attacker.read("negated").matrix().shape
    (3, 6)
    """

    enrol: Embeddings
    test: Embeddings
    backend: Backend | str = "cosine"
    train: Embeddings | None = None
    enrols: Literal["original", "protected"] | None = None
    knows: Literal["original", "related", "same"] | None = None
    release: bool | None = None
    parallel: Parallel | None = None
    by: tuple[str, ...] = ()
    reverse: Attacker | None = None
    words: Words | None = None
    split: ReleaseSplit | ExchangedPeople | None = None

    @property
    def listens(self) -> str:
        """Whether it compares words, ``alone`` or ``beside`` the voice; empty where it does not."""
        if not isinstance(self.backend, str):
            return ""
        return "alone" if self.backend == WORDS else "beside" * self.backend.endswith(BESIDE)

    @property
    def channel(self) -> bool:
        """Whether it compares something else than the direction of vectors, with raw columns."""
        return isinstance(self.backend, str) and self.backend == LENGTH

    @property
    def ways(self) -> tuple[Attacker, ...]:
        """The rounds of the attack at one utterance: itself alone where it has no others."""
        return self.rounds()

    def rounds(
        self, length: int = 1, *, seed: int = 0, most: int = MOST_PARTS, least: int = 1
    ) -> tuple[Attacker, ...]:
        """The attackers of all rounds in which conversations of ``length`` are tried.

        A release is cut into ``most`` parts, of which those are tested that have ``least``
        conversations (:class:`ReleaseSplit`); where nobody has speech enough it is the first round
        of one utterance. Any other attack is one round, or two with its ``reverse``.
        """
        exchanged = self.exchanged
        if not isinstance(self.split, ReleaseSplit):
            attackers = [self]
            if self.reverse is not None:
                back = replace(self.reverse, backend=self.backend, by=self.by, words=self.words)
                attackers.append(back)
            return tuple(replace(one, reverse=None, split=exchanged) for one in attackers)
        release, trains = self.split.release, self.train is not None
        attackers = []
        for one in self.split.rounds(length, seed, most=most, least=least):
            enrol, test = release.select(one.enrol), release.select(one.test)
            train = enrol if trains else None
            attackers.append(replace(self, enrol=enrol, test=test, train=train, split=exchanged))
        return tuple(attackers) or (replace(self, split=exchanged),)

    @property
    def exchanged(self) -> ExchangedPeople | None:
        """Whose names are exchanged in pairs: nobody's where a known person is looked for."""
        if isinstance(self.split, ReleaseSplit):
            return self.split.exchanged
        if self.split is None and self.is_release:
            return ExchangedPeople.of(self.enrol, self.test)
        return self.split

    @property
    def attacked(self) -> Embeddings:
        """All speech that is tested in some round."""
        return self.split.release if isinstance(self.split, ReleaseSplit) else self.test

    def ready(self) -> Attacker:
        """The same attacker with its sets aligned, if its back-end asks for it, and a back-end that
        is trained.
        """
        self.refuse_encoders()
        if self.listens:
            from unmask.privacy.words import listening

            return listening(self)
        if self.channel:
            from unmask.privacy.channels import compare_channel

            return compare_channel(self)
        if self.by:
            return self._by_group()
        named = self._named if isinstance(self.backend, str) else None
        if named is None:
            return replace(self, backend=backend_named(self.backend, self.train))
        people = [set(voices.speakers.to_series()) for voices in (self.test, self.enrol)]
        # Pairs of enrolled people, made by the attacker's own run, are enrolment.
        strange = people[0] - people[1] if named.needs == "pairs" else people[0]
        for voices in self._taught:
            shared = strange & set(voices.speakers.to_series())
            if shared and named.apart:
                raise InputError(
                    f"back-end {named.name}: training and test speakers must differ, found"
                    f" {len(shared)} in both (first: {min(shared)})"
                )
            refuse_versions(voices, self.test, f"back-end {named.name}: training speech")
        if named.aligns:
            refuse_dimensions(self.enrol, self.test)
        made = fitted(
            named.name, train=self.train, enrol=self.enrol, test=self.test, pairs=self.parallel
        )
        if not named.aligns:
            return replace(self, backend=made)
        sides = zip(made, (self.enrol, self.test), strict=True)
        enrol, test = (side.with_vectors(apply(side.vectors)) for apply, side in sides)
        return replace(self, enrol=enrol, test=test, backend=AlignedCosine(named.name))

    @property
    def _taught(self) -> tuple[Embeddings, ...]:
        """The training speech that its back-end looks at, where that is fitted by name."""
        needs = self._named.needs if isinstance(self.backend, str) and self._named else "nothing"
        train = (self.train,) if needs in ("training", "pairs") and self.train is not None else ()
        return (*train, *(self.parallel or ())) if needs == "pairs" else train

    def _by_group(self) -> Attacker:
        """Ready within each group on both sides; where it does not align, vectors tell it."""
        name = f"back-end {self.backend if isinstance(self.backend, str) else self.backend.name}"
        name = f"{name} by {' and '.join(self.by)}"
        refuse_two_values([self.enrol, self.test], self.by)
        both = [groups_of(voices, self.by) for voices in (self.enrol, self.test)]
        shared = sorted(set(both[0]) & set(both[1]))
        if not shared:
            raise InputError(name, "a group that is on both sides", "none")
        parts = [self._within(group, name) for group in shared]
        backends = [attacker.backend_in_use for attacker in parts]
        label = f"{backends[0].name} by {' and '.join(self.by)}"
        aligns = isinstance(backends[0], AlignedCosine)
        sides = []
        for side, whole, groups in zip(("enrol", "test"), self._sides.values(), both, strict=True):
            own = [(groups == group).to_numpy() for group in shared]
            if aligns:  # who is of a group on one side only is compared with nobody, by any vector
                vectors = np.ones((len(whole), getattr(parts[0], side).dimension))
                for here, part in zip(own, parts, strict=True):
                    vectors[here] = getattr(part, side).vectors
            else:
                vectors = np.column_stack([whole.normalised().vectors, *own])
            sides.append(whole.with_vectors(vectors))
        made = AlignedCosine(label) if aligns else ByGroup(backends, label)
        return replace(self, enrol=sides[0], test=sides[1], backend=made)

    def _within(self, group: str, name: str) -> Attacker:
        """The attacker among the people of one group, ready."""

        def of(data: Embeddings) -> Embeddings:
            here = groups_of(data, self.by) == group
            if not here.any():
                raise InputError(name, f"training speech of {shown_group(group)}", "none")
            return data.select(here.to_numpy())

        enrol, test = of(self.enrol), of(self.test)
        fewest = min(enrol.n_speakers, test.n_speakers)
        if fewest < LEAST_IN_GROUP:
            wanted = f"{LEAST_IN_GROUP} people or more in each group on both sides"
            raise InputError(name, wanted, f"{fewest} of {shown_group(group)}")
        train = of(self.train) if self.train is not None and self.train in self._taught else None
        pairs = None
        if self.parallel is not None and self.parallel[0] in self._taught:
            pairs = of(self.parallel[0]), of(self.parallel[1])
        return replace(self, enrol=enrol, test=test, train=train, parallel=pairs, by=()).ready()

    @property
    def groups(self) -> tuple[IntArray, IntArray] | None:
        """Codes of enrolment and of test vectors, equal where both are of one group; None where it
        is fitted on all together.
        """
        if not self.by:
            return None
        refuse_two_values([self.enrol, self.test], self.by)
        both = [groups_of(voices, self.by).to_numpy() for voices in (self.enrol, self.test)]
        codes = np.unique(np.concatenate(both).astype(str), return_inverse=True)[1]
        return codes[: len(both[0])], codes[len(both[0]) :]

    def refuse_encoders(self) -> None:
        """Sets of one attacker come from one encoder."""
        parallel = zip(("training speech", "the same protected"), self.parallel or (), strict=False)
        refuse_encoders(
            {"enrolment": self.enrol, "test": self.test, "training": self.train} | dict(parallel)
        )

    def allows(self, backend: str) -> bool:
        """Whether there are the data that a back-end of this name is trained on."""
        named = known_backend(backend)
        given = self.parallel if named.needs == "pairs" else self.train
        return named.is_free or given is not None

    @property
    def _named(self) -> Named | None:
        """The back-end among those that have a name, if it is there; beside words the voice's."""
        name = self.backend if isinstance(self.backend, str) else self.backend.name
        return BACKENDS.get(name.removesuffix(BESIDE))

    @property
    def backend_in_use(self) -> Backend:
        """The back-end of an attacker that is ready."""
        assert not isinstance(self.backend, str)
        return self.backend

    @property
    def centres(self) -> bool:
        """Whether the back-end takes the mean off each side by itself, or has members that do; none
        is taken off words, which would be fitted on those attacked.
        """
        named = self._named
        moves = named is not None and (named.aligns or named.needs == "pairs")
        return moves or self.listens == "alone" or self.backend == NO_VOICE

    @property
    def is_release(self) -> bool:
        """Whether what is enrolled comes from the run that is attacked."""
        if self.release is not None:
            return self.release
        enrol, test = self.enrol, self.test
        if self.enrols == "original" or enrol.dimension != test.dimension:
            return False
        if enrol.source is not None and test.source is not None:
            return enrol.source.sha256 == test.source.sha256
        return bool(np.isin(enrol.marks, test.marks).any())

    @lazy
    def readings(self) -> tuple[Reading, ...]:
        """The ways in which this attacker can read its scores."""
        read = (PLAIN, NEGATED) if self.uncentred else READINGS
        # A log-likelihood ratio says which way evidence points: nothing is found by its negative.
        return tuple(one for one in read if one == one.scored) if self.channel else read

    def read(self, reading: Reading | str = PLAIN) -> Attack:
        """The attack of this attacker with one of its readings."""
        return Attack(self, Reading(reading))

    @lazy
    def uncentred(self) -> str:
        """Why it is not read about the means of its sets; empty where it can be."""
        if self.centres:
            return "the back-end takes means off by itself"
        if not isinstance(self.backend, str) and self.backend.name != "cosine":
            return f"back-end {self.backend.name} was trained elsewhere, about another mean"
        try:
            return self._becomes_nothing()
        except InputError as error:
            return str(error)

    def _becomes_nothing(self) -> str:
        """Where less the mean no voice, or no vector, is left; empty where some are everywhere."""
        by_direction = not self.channel
        for name, side in self._sides.items():
            people = min(len(set(side.speakers.codes[here])) for here in _means(side, self.by))
            if people < LEAST_SPEAKERS:
                of = " in a group" if self.by else ""
                return f"{name} has fewer than {LEAST_SPEAKERS} speakers{of}"
        taught = dict(zip(["training"], self._taught, strict=False))
        for name, voices in {**self._sides, **taught}.items() if by_direction else ():
            left = np.linalg.norm(centred(voices, self.by).vectors, axis=1) <= _NOTHING
            if left.any():
                return f"{left.sum()} vectors of {name} become zero"
        return ""

    def talkative(self) -> Iterator[str]:
        """Sides of which one speaker has more than half: less their mean that voice is gone."""
        for name, side in self._sides.items():
            for here in _means(side, self.by):
                counts = np.bincount(side.speakers.codes[here])
                if 2 * counts.max() > counts.sum():
                    yield f"{side.speakers.names[int(counts.argmax())]} in {name}"

    @property
    def _sides(self) -> dict[str, Embeddings]:
        return {"enrolment": self.enrol, "test": self.test}

    def centred(self) -> Attacker | None:
        """The same attacker with every set about its own mean, or that of each group, at length one
        again; None where it cannot be had (``uncentred``).
        """
        if self.uncentred:
            return None
        if self.channel:
            from unmask.privacy.channels import centred_columns

            return centred_columns(self)
        train = self.train
        if train is not None and train in self._taught:
            train = centred(train, self.by).normalised()
        enrol, test = (centred(side, self.by).normalised() for side in self._sides.values())
        return replace(self, enrol=enrol, test=test, train=train)

    @property
    def fits(self) -> bool:
        """Whether its back-end is fitted on enrolment or attacked speech of the same people."""
        named = self._named
        if self.listens or self.channel or (named and (named.aligns or named.needs == "attacked")):
            return True
        people = set(self.test.speakers.to_series())
        return self.train is not None and bool(people & set(self.train.speakers.to_series()))

    @property
    def learns_from_attacked(self) -> bool:
        """Whether its back-end, by name, looks at attacked speech or trains on attacked people."""
        named = self._named
        if self.listens or self.channel or (named and named.needs in ("attacked", "pairs")):
            return True
        people = set(self.test.speakers.present)
        return any(people & set(voices.speakers.present) for voices in self._taught)

    def _taught_with(self, some: Callable[[Embeddings], Embeddings]) -> Attacker:
        """The same attacker with each of its training sets as ``some`` gives it."""
        pairs = self.parallel and (some(self.parallel[0]), some(self.parallel[1]))
        return replace(self, train=self.train and some(self.train), parallel=pairs)

    def without_versions(self) -> Attacker:
        """The same attacker with no version of a test recording in its training speech."""
        return self._taught_with(lambda data: data.select(~versions_of(data, self.test)))

    def among(self, people: set[str]) -> Attacker:
        """The same attacker on some of the ``people``."""
        return replace(
            self,
            enrol=of_people(self.enrol, people),
            test=of_people(self.test, people),
            split=self.split and self.split.among(people),
        )

    def trained_on(self, people: set[str], *, inside: bool = True) -> Attacker:
        """The same attacker trained on some of its training ``people``, or on all others."""

        def some(data: Embeddings) -> Embeddings:
            if not inside and people.issuperset(data.speakers.to_series()):
                wanted = "training and test speakers must differ"
                raise InputError(f"attack: no speakers left to train on: {wanted}")
            return of_people(data, people, inside=inside)

        return self._taught_with(some)

    def held_out(
        self, backends: Sequence[str] | None = None, *, folds: int = 2, seed: int = 0
    ) -> HeldOut:
        """Attack in ``folds`` groups of speakers, each with ``backends`` trained on the others.

        By default these are all that can be trained on such speech where there is any, else the
        cosine. Where enrolment and test share utterances, half of each speaker's utterances (drawn
        by content) enrols and the other half tests, so that no utterance meets its own protected
        version. The groups depend on the speakers' names and the ``seed`` alone, so all
        attackers of one test set try the same trials.
        """
        if backends is None:
            usable = ("nothing",) if self.train is None else ("nothing", "training")
            tried = (one for one in BACKENDS.values() if one.needs in usable and not one.apart)
            backends = [backend.name for backend in tried]
        names = sorted(set(self.test.speakers.to_series()) & set(self.enrol.speakers.to_series()))
        if len(names) < 2 * folds or folds < 1:
            wanted = "at least 2 speakers per fold in enrolment and test"
            raise InputError("attack", wanted, f"{len(names)} for {folds} folds")
        enrol, test = self.enrol.normalised(), self.test.normalised()
        if enrol.utterances is None or test.utterances is None:
            raise InputError("attack: expected a name for every utterance, found none")
        if set(enrol.utterances.to_series()) & set(test.utterances.to_series()):
            # Both versions of a recording are of one half: that of what is enrolled.
            first = half_by_content(enrol, seed, sessions=False)
            enrolled = enrol.utterances.to_series().filter(first)
            enrol = enrol.select(first)
            test = test.select(~test.utterances.to_series().is_in(enrolled.implode()).to_numpy())
        train = self.train and self.train.normalised()
        normal = replace(self, enrol=enrol, test=test, train=train)
        order = np.random.default_rng(seed).permutation(len(names))
        parts = []
        for n in range(folds):
            group = {names[i] for i in order[n::folds]}
            fold = normal.among(group).trained_on(group, inside=False)
            parts.append({name: replace(fold, backend=name).ready() for name in backends})
        return HeldOut(tuple(parts))


@dataclass(frozen=True, eq=False)
class Attack:
    """An attacker and how it reads its scores; made by :meth:`Attacker.read`."""

    attacker: Attacker
    reading: Reading = PLAIN

    @lazy
    def ready(self) -> Attacker | None:
        """The attacker with its sets as they are read and a back-end that is trained; None where
        they cannot be read so.
        """
        used = self.attacker.centred() if self.reading.scored == CENTRED else self.attacker
        return used and used.ready()

    @property
    def _used(self) -> Attacker:
        if self.ready is None:
            raise InputError(f"attack: {self.attacker.uncentred}: it cannot be read centred")
        if self.attacker.fits or self.reading.scored == CENTRED:
            refuse_versions(self.attacker.enrol, self.attacker.test, "attack: enrolment")
        return self.ready

    def _scores(self, enrolled: npt.ArrayLike, counts: IntArray) -> FloatArray:
        """Scores of averages over so many enrolled vectors with every test utterance."""
        used = self._used
        tested = np.ones(len(used.test), dtype=np.int64)
        sides = sides_of_means(used.backend_in_use, enrolled, counts, used.test.vectors, tested)
        scores = sides.pairs(WIDE).kept(NUMPY, (0, len(sides.enrol)))
        return scores if self.reading == self.reading.scored else -scores

    def matrix(self) -> FloatArray:
        """Scores of every enrolled speaker (in order of the code) with every test utterance.

        A speaker's model is the normalised mean of all the speaker's normalised enrolment vectors.
        """
        enrol = self._used.enrol
        codes = np.unique(enrol.speakers.codes, return_inverse=True)[1]
        return self._scores(average_groups(enrol.vectors, codes), np.bincount(codes))

    def sides(self) -> Sides:
        """Rows of all enrolment and of all test utterances, whose inner products are scores."""
        used = self._used
        made = sides_of(used.backend_in_use, used.enrol.vectors, used.test.vectors)
        return made if self.reading == self.reading.scored else made.negated()

    def crossed(self, enrol: IntArray, test: IntArray, first: BoolArray) -> tuple[Sides, Sides]:
        """Rows of recordings whose original and protected versions are all there is.

        ``enrol`` and ``test`` are the places of both versions of each recording. The attack is
        fitted on originals of the ``first`` half and protected speech of the other and gives rows
        of just these, then the other way round: no fit sees two versions of one recording.
        """
        ways = []
        attacker = self.attacker
        for here in (first, ~first):
            sides = attacker.enrol.select(enrol[here]), attacker.test.select(test[~here])
            half = replace(attacker, enrol=sides[0], test=sides[1])
            ways.append(Attack(half.without_versions(), self.reading).sides())
        return ways[0], ways[1]

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all pairs of an enrolment and a test utterance."""
        enrol, test = self.attacker.enrol, self.attacker.test
        own, tested = (voices.speakers.to_series().to_numpy() for voices in (enrol, test))
        same = own[:, None] == tested[None]
        enrolled = self._used.enrol.vectors
        scores = self._scores(enrolled, np.ones(len(enrolled), dtype=np.int64))
        return scores[same], scores[~same]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """An attack whose back-ends never saw a tested speaker, with every back-end that was tried.

    Made by :meth:`Attacker.held_out`. ``folds`` hold, by the name of its back-end, an attacker on
    some of the speakers, which is taken like any other.
    """

    folds: tuple[Mapping[str, Attacker], ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the back-ends tried."""
        return tuple(self.folds[0])

    def scores(self, backend: str | None = None) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all folds together, of the strongest back-end if none
        is named.
        """
        parts = [fold[backend or self.strongest].read().scores() for fold in self.folds]
        target, nontarget = zip(*parts, strict=True)
        return np.concatenate(target), np.concatenate(nontarget)

    def roc(self, backend: str | None = None) -> Roc:
        """The ROC statistic of the scores."""
        return Roc.from_scores(*self.scores(backend))

    @lazy
    def strongest(self) -> str:
        """The back-end with the lowest C_llr^min on the very trials attacked.

        Chosen with hindsight, on purpose: a safeguard is judged by the best attack known.
        """
        return min(self.backends, key=lambda name: self.roc(name).min_cllr())


def attack_scenarios(
    original: Embeddings,
    protected: Embeddings,
    *,
    own: Sequence[Embeddings],
    related: Sequence[Embeddings] = (),
) -> dict[str, Attacker]:
    """The attackers of Vauquier (2025, 3.2) on one safeguard, by what they know, and the control.

    ``protected`` is attacked; ``own`` are runs of the same safeguard with keys of the attacker's
    own, ``related`` runs of related safeguards. ``original`` attacks original speech: the control.
    ``original enrolment`` enrols original speech (the ignorant attacker of the VoicePrivacy
    challenges). The other attackers enrol speech that they protected; their back-ends are trained
    on original speech (``ignorant``), on related protected speech too (``semi-informed``) or on
    their own (``informed``). Where the safeguard has a key, a run of the attacker's own disguises a
    voice otherwise than the run attacked: then an informed attacker may do better to enrol
    originals. No extractor is trained.
    """
    if not own:
        raise InputError("attackers: expected at least one run of the safeguard, found none")
    enrolled: dict[str, tuple[Embeddings, Sequence[Embeddings]]] = {
        "original enrolment": (original, ()),
        "ignorant": (own[0], ()),
        **({"semi-informed": (own[0], related)} if related else {}),
        "informed": (own[0], own),
        "informed with originals": (original, own),
    }
    return {
        "original": Attacker(original, original, train=original),
        **{
            name: Attacker(enrol, protected, train=pooled([original, *more]))
            for name, (enrol, more) in enrolled.items()
        },
    }


def within_release(
    release: Embeddings, backend: Backend | str = "cosine", parts: Parts | str = Parts.UTTERANCES
) -> Attacker:
    """Who links recordings of one release to each other, holding nothing else.

    In each of five rounds everybody leaves out a part of the utterances, which is tested; all else
    is enrolled. What is in a part goes by the content of recordings, not by their names, so that
    renaming or reordering them changes nothing. Who has one utterance is enrolled and not tested.

    Parameters
    ----------
    release
        Protected speech.
    backend
        What compares; one that is trained learns from names of what is enrolled in the round only.
    parts
        ``"utterances"``; ``"sessions"`` leaves out whole sessions; ``"record to record"`` enrols
        one recording of each person, in twenty choices, and tests all others.

    Returns
    -------
    Attacker
        The first round, with the others as its ``split``.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> vectors = np.random.default_rng(0).normal(size=(6, 4))
    >>> attacker = um.within_release(um.Embeddings(vectors, list("aaabbb")))
    >>> [(len(one.enrol), len(one.test)) for one in attacker.rounds()]
    [(4, 2), (4, 2), (4, 2)]
    """
    split = ReleaseSplit(release, Parts(parts))
    if split.parts == Parts.SESSIONS and release.sessions is None:
        raise InputError("release: expected a session for every recording, found none")
    rounds = split.rounds()
    if not rounds:
        what = "sessions" if split.parts == Parts.SESSIONS else "utterances"
        raise InputError(f"release: expected a speaker with two {what}, found none")
    enrol, test = release.select(rounds[0].enrol), release.select(rounds[0].test)
    # Names of one recording each are enrolled from record to record: nothing is learnt from them.
    train = None if split.parts == Parts.RECORDS else enrol
    return Attacker(enrol, test, backend, train, release=True, split=split)


def with_backends(
    attackers: Mapping[str, Attacker], backends: Sequence[str], *, original: str = "original"
) -> dict[str, Attacker]:
    """Each of ``attackers`` once with every one of ``backends`` that its data allow. The one on
    unprotected speech, called ``original``, is no attack but what attacks are compared with: it
    keeps its name and the first of them.
    """
    chosen: dict[str, Attacker] = {}
    for name, attacker in attackers.items():
        usable = [b for b in backends if attacker.allows(b)]
        usable = usable[:1] if name == original else usable
        for backend in usable or ["cosine"]:
            label = name if len(usable) < 2 else f"{name} ({backend})"
            chosen[label] = replace(attacker, backend=backend)
    return chosen


def with_groups(
    attackers: Mapping[str, Attacker], columns: Sequence[str], *, original: str | None = None
) -> dict[str, Attacker]:
    """Every one of ``attackers`` and, where its back-end is fitted by name, the same fitted within
    each group of the ``columns``, under a name that says so. The one on unprotected speech, called
    ``original``, is what attacks are compared with.
    """
    chosen: dict[str, Attacker] = {}
    for name, one in attackers.items():
        chosen[name] = one
        fitted_by_name = isinstance(one.backend, str) and not one.by and not one.listens
        fitted_by_name = fitted_by_name and not one.channel
        if columns and name != original and fitted_by_name:
            base = name.removesuffix(f"({one.backend})").rstrip()
            label = f"{one.backend} by {' and '.join(columns)}"
            label = label if name == one.backend else f"{base} ({label})"
            chosen[label] = replace(one, by=tuple(columns))
    return chosen


def refuse_dimensions(enrol: Embeddings, test: Embeddings) -> None:
    """Vectors of different encoders or dimensions have no score."""
    refuse_encoders({"enrolment": enrol, "test": test})
    if enrol.dimension != test.dimension:
        actual = f"{enrol.dimension} in enrolment and {test.dimension} in test"
        raise InputError("embeddings", "one dimension on both sides", actual)


def not_tried(tried: Collection[str], able: Callable[[Named], bool], *others: str) -> Notice:
    """Which named back-ends were not ``tried``, though the data were ``able`` to or what they need
    beyond enrolment and test, and ``others``.
    """
    reasons: dict[str, list[str]] = {}
    for backend in BACKENDS.values():
        if backend.name not in tried:
            more = ", as it is and protected" * (backend.needs == "pairs")
            why = "not asked for" if able(backend) else f"need training speech{more}"
            reasons.setdefault(why, []).append(backend.name)
    parts = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    beyond = "how much the recordings of a person scatter", _EXTRACTORS
    what = "; ".join([*parts, *others, *beyond])
    sentence = f"not tried: {what}. `unmask assess` tries all that its data allow"
    return Notice("not-tried", "", sentence)


def _fusion(
    enrol: Embeddings, attacked: npt.ArrayLike, train: Embeddings | None, pairs: Parallel
) -> Backend:
    """:data:`MEMBERS` trained on ``train`` (on both sets of ``pairs`` where there is none), weighed
    by trials of one set of ``pairs`` against the other: of half of the speakers, drawn (of fewer
    where these would be more than a million), by members trained on the others, so that none is
    trusted for what it learnt by heart.
    """
    data = pooled(pairs) if train is None else train
    names = sorted(set.intersection(*(set(pair.speakers.to_series()) for pair in pairs)))
    if len(names) < 8:
        raise InputError(f"back-end fusion: expected 8 training speakers, found {len(names)}")
    number = len(names) // max(2, math.ceil(math.sqrt(len(pairs[0]) * len(pairs[1]) / 1e6)))
    weighed = drawn_names(names, max(number, 1))
    members = [backend_named(name, of_people(data, weighed, inside=False)) for name in MEMBERS]
    known, tested = (of_people(pair, weighed) for pair in pairs)
    made = [score_matrix(member, known.vectors, tested.vectors) for member in members]
    weights = trial_weights(made, known, tested)
    return Fused([backend_named(name, data) for name in MEMBERS], weights)


def trial_weights(
    scores: Sequence[FloatArray], known: Embeddings, tested: Embeddings, told: str | None = None
) -> FloatArray:
    """Weights of ``scores`` of all pairs of two sets, but of one utterance with itself, or of one
    value of the column ``told``.
    """
    speakers = [voices.speakers.to_series().to_numpy() for voices in (known, tested)]
    same, other = speakers[0][:, None] == speakers[1], np.ones(scores[0].shape, dtype=bool)
    ids = [voices.columns[told] if told else voices.utterances for voices in (known, tested)]
    if ids[0] is not None and ids[1] is not None:
        other = ids[0].to_series().to_numpy()[:, None] != ids[1].to_series().to_numpy()
    trials = np.stack(scores, axis=-1)
    return fusion_weights(trials[same & other], trials[~same])


BACKENDS["fusion"] = Named("fusion", _fusion, "pairs", apart=True)
