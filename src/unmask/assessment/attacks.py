"""Who attacks whom: enrolment, training and test speech of every attacker, and its trials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from unmask.assessment.cache import digest_of
from unmask.assessment.config import ORIGINAL, AttackerConfig, Config
from unmask.assessment.inputs import Inputs
from unmask.assessment.runs import Speech
from unmask.assessment.splits import counterpart, utterances
from unmask.base import BoolArray, FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy import Permuted, legal as law
from unmask.privacy.similarity import renamed_trials
from unmask.scoring import Parallel
from unmask.trials import NONTARGET, TARGET, Embeddings, Ids, Scores, lookup

ATTACKS = "Attacks"
NOT_GIVEN = {
    "own": "no run of the attacker's own (again) was given, and the safeguard is not keyless",
    "related": "no related safeguard was given",
}
BY_WORDS = f"cosine{law.BESIDE}", law.NO_VOICE, law.WORDS
NO_PEOPLE = "from speech of other people, original and protected: see [training]"


def description(enrol: str, train: Sequence[str], *, trained: bool = False) -> str:
    """What an attacker knows, as a relative clause."""
    if trained and set(train) != {"original"}:
        which = "its output" if "own" in train else "the output of a related one"
        return f"who can run the safeguard and trained a speaker encoder on {which}"
    if "own" in train:
        return "who can run the safeguard and trained on its output"
    if "related" in train:
        return "who can run the safeguard and trained on a related one"
    return "who can run the safeguard" if enrol == "own" else "who knows nothing of the safeguard"


def needs(attacker: AttackerConfig, *, taught: bool) -> str:
    """What somebody must hold to be this attacker, who learns from other people if ``taught``."""
    held = ["an unprotected recording of each candidate"]
    if "own" in (attacker.enrol, *attacker.train):
        held.append("the safeguard, to run it on speech of one's own")
    if "related" in attacker.train:
        held.append("a similar safeguard")
    if taught:
        held.append("speech of other people")
    return f"{', '.join(held[:-1])} and {held[-1]}" if len(held) > 1 else held[0]


def matrix_attackers(config: Config, inputs: Inputs, safeguard: str) -> dict[str, law.Attacker]:
    """Who competes with plain and centred scores in the similarity matrices, by name: every
    back-end of an attacker that aligns the two sides by itself, those that training people teach
    where there are such, and extractors that were trained.

    They compare all original with all protected speech, as the matrices do.
    """

    def attacker(speech: Speech, pairs: Parallel | None = None) -> law.Attacker:
        sides = counterpart(speech.known["original"], speech.protected), speech.protected
        train = None if pairs is None else law.pooled(pairs)
        return law.Attacker(*sides, "cosine", train, release=False, parallel=pairs)

    named = dict.fromkeys(b for one in config.attackers for b in one.backends)
    whole = attacker(inputs.speech[safeguard], pairs_of(inputs.speech[safeguard].learnt))
    rivals = {name: replace(whole, backend=name) for name in named if whole.allows(name)}
    rivals = law.with_groups(rivals, known_groups(config.legal.side, whole))
    rivals.pop("cosine", None)
    if inputs.words is not None:
        told = replace(whole, words=inputs.words)
        rivals |= {b: replace(told, backend=b) for b in BY_WORDS}
    if not config.quick and law.lengths_vary(whole.enrol, whole.test):
        rivals[law.LENGTH] = replace(whole, backend=law.LENGTH)
    return rivals | {
        f"trained by {who}": attacker(speech)
        for (name, who), speech in inputs.trained.items()
        if name == safeguard
    }


def pairs_of(sets: Mapping[str, Embeddings]) -> Parallel | None:
    """Speech as it is and as the attacker's own run protects it, where there are both."""
    return (sets["original"], sets["own"]) if {"original", "own"} <= set(sets) else None


def known_groups(side: tuple[str, ...], attacker: law.Attacker) -> tuple[str, ...]:
    """The columns ``side``, where both sides of an attack have them."""
    known = set(attacker.enrol.columns) & set(attacker.test.columns)
    return side if set(side) <= known else ()


@dataclass(frozen=True)
class Variant:
    """How an attacker compares: a back-end, within the groups of which columns it is fitted, and
    how its scores are read.
    """

    backend: str
    reading: str = law.PLAIN
    by: tuple[str, ...] = ()

    @property
    def fitted(self) -> str:
        """The back-end, and within what it was fitted."""
        return f"{self.backend} by {' and '.join(self.by)}" if self.by else self.backend

    def of(self, attacker: str) -> str:
        """Attacker, back-end and reading."""
        return law.Reading(self.reading).of(f"{attacker} ({self.fitted})")


@dataclass(frozen=True, eq=False)
class AttackRun:
    """One attacker on one safeguard (``original`` for unprotected speech), with all its back-ends.

    Made by :func:`attacks_of`; steps of several frameworks take it. Its scores are computed once
    and held until :meth:`hold` lets them go. ``untried`` tells by back-end why it cannot run. Where
    the attacker knows columns (``side``) back-ends also compete fitted within each of their groups,
    and pairs of two groups score −inf.
    """

    safeguard: str
    attacker: str
    description: str
    backends: tuple[str, ...]
    data: law.Attacker = field(repr=False)
    enrols_own: bool = False
    untried: Mapping[str, str] = field(default_factory=dict)
    side: tuple[str, ...] = ()
    _scored: dict[Variant, FloatArray] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def inputs(self) -> list[str]:
        """Digests of what goes into the attack, which back-ends were registered, known columns."""
        data = self.data
        sets = (data.enrol, data.train, data.test, *(data.parallel or ()))
        tokens = (law.known_backend(name).token for name in self.backends)
        named = [*filter(None, tokens), *self.side, *([data.words.digest] if data.words else ())]
        return [*(digest_of(one) for one in sets if one is not None), *named]

    def among(self, people: set[str]) -> AttackRun:
        """The same attack among some of the people."""
        return replace(self, data=self.data.among(people))

    @property
    def people(self) -> tuple[str, ...]:
        """The attacked people, who are the same to every attacker on a safeguard."""
        return tuple(self.data.test.speakers.present)

    def within(self, people: set[str]) -> AttackRun:
        """The same attack on some of the attacked people, as if the others did not exist.

        No back-end sees training speech of the others. Candidates whom nobody attacks stay.
        """
        others = {name for name in self.people if name not in people}
        enrol = law.of_people(self.data.enrol, others, inside=False)
        test = law.of_people(self.data.test, people)
        data = replace(self.data, enrol=enrol, test=test).trained_on(others, inside=False)
        return replace(self, data=data)

    def learns_from_attacked(self, variant: Variant) -> bool:
        """Whether fewer attacked people change the scores of the others."""
        is_centred = law.Reading(variant.reading).scored == law.CENTRED
        return is_centred or self.against(variant.backend, variant.by).learns_from_attacked

    def against(self, backend: str, by: tuple[str, ...] = ()) -> law.Attacker:
        """The attacker with one of its back-ends."""
        return replace(self.data, backend=backend, by=by)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every way in which this attacker compares."""
        return tuple(
            Variant(backend, reading, by)
            for backend in self.backends
            for by in dict.fromkeys(((), known_groups(self.side, self.data)))
            if not (by and (backend.endswith(law.BESIDE) or backend == law.LENGTH))
            for reading in self.against(backend, by).readings
        )

    def label(self, variant: Variant) -> str:
        """Attacker, back-end and reading."""
        return variant.of(self.attacker)

    def matrix(self, variant: Variant) -> FloatArray:
        """Every enrolled speaker against every attacked utterance, scored once."""
        scored = _scored(variant)
        if scored not in self._scored:
            attack = self.against(scored.backend, scored.by).read(scored.reading)
            self._scored[scored] = attack.matrix()
        scores = self._scored[scored]
        scores = scores if variant == scored else -scores
        groups = self.against(variant.backend, variant.by).groups
        if groups is None:
            return scores
        return np.where(groups[0][self._first][:, None] == groups[1], scores, -np.inf)

    def hold(self, *variants: Variant) -> None:
        """Let go of all scores but those of ``variants``."""
        for key in self._scored.keys() - {_scored(variant) for variant in variants}:
            del self._scored[key]

    @cached_property
    def _models(self) -> pl.Series:
        """Names of the enrolled speakers, in the order of their codes."""
        return self.data.enrol.speakers.present

    @cached_property
    def _first(self) -> IntArray:
        """The first row of every enrolled speaker."""
        return np.unique(self.data.enrol.speakers.codes, return_index=True)[1]

    @cached_property
    def _own_model(self) -> IntArray:
        """The place of each attacked utterance's speaker among the models, −1 if not enrolled."""
        test = self.data.test.speakers
        return lookup(test.names, self._models)[test.codes].astype(np.int64)

    @property
    def is_target(self) -> BoolArray:
        """Whether model (row) and attacked utterance (column) are of one person."""
        return np.asarray(np.arange(len(self._models))[:, None] == self._own_model)

    def places_of(self, part: AttackRun) -> tuple[IntArray, IntArray]:
        """Rows and columns of the matrix that the people of a ``part`` of this attack have."""
        models = lookup(part._models, self._models)
        tested = np.isin(self.data.test.speakers.to_series().to_numpy(), part.people)
        return models.astype(np.int64), np.flatnonzero(tested)

    @property
    def size(self) -> int:
        """How many trials there are."""
        return self.data.enrol.n_speakers * len(self.data.test)

    @cached_property
    def trials(self) -> str:
        """Digest of models and tests in their order: the same for attacks on one list of trials."""
        tests = utterances(self.data.test), self.data.test.speakers.to_series()
        names = [self._models.to_list(), *(test.to_list() for test in tests)]
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()

    def permuted(self, variant: Variant, *, seed: int) -> Permuted:
        """The trials of a variant with the names of the attacked people permuted."""
        groups = self.against(variant.backend, variant.by).groups
        of_models = None if groups is None else groups[0][self._first]
        names = self._models.to_list()
        matrix = self.matrix(variant)
        own = self._own_model
        return renamed_trials(matrix, own, seed=seed, groups=of_models, names=names)

    def scores(
        self, *variants: Variant, names: Sequence[str] = (), like: Scores | None = None
    ) -> Scores:
        """The trials with the scores of these variants, by label unless names are given; ``like``
        are those of another variant, whose trials are taken.
        """
        every = zip(names or map(self.label, variants), variants, strict=True)
        systems = {name: self.matrix(variant).ravel() for name, variant in every}
        if like is not None:
            made = replace(like, systems=systems)
            vars(made)["digest"] = like.digest  # of the trials alone, and slow of many
            return made
        tests, models = len(self.data.test), len(self._models)
        enrol = Ids(np.repeat(np.arange(models), tests), self._models)
        rows = np.tile(np.arange(tests), models)
        assert self.data.test.utterances is not None
        columns, speakers = {}, self.data.enrol.speakers.codes
        _, first, of = np.unique(speakers, return_index=True, return_inverse=True)
        for name in (one for one in self.data.test.columns if one in self.data.enrol.columns):
            ids = self.data.enrol.columns[name]
            # An attribute that has one value for each speaker.
            if (ids.codes[first][of] == ids.codes).all():
                columns[f"enrol_{name}"] = ids.take(first).take(enrol.codes)
                columns[f"test_{name}"] = self.data.test.columns[name].take(rows)
        return Scores(
            enrol,
            self.data.test.utterances.take(rows),
            np.where(self.is_target.ravel(), TARGET, NONTARGET).astype(np.int8),
            enrol_speaker=enrol,
            test_speaker=self.data.test.speakers.take(rows),
            columns=columns,
            systems=systems,
        )


Attacks = Mapping[str, tuple[AttackRun, ...]]
"""Attacks by safeguard, ``original`` first: the same back-ends on unprotected speech."""


def attacks_of(config: Config, inputs: Inputs) -> tuple[Attacks, dict[tuple[str, str], str]]:
    """Every attacker on every safeguard for which its data are there, and by safeguard and attacker
    why others were not run.
    """
    if inputs.original is None or not inputs.protected:
        return {}, {}
    original = inputs.enrolment(inputs.original)
    control = law.of_people(inputs.attacked(inputs.original), set(original.speakers.present))
    named = dict.fromkeys(b for attacker in config.attackers for b in attacker.backends)
    backends = tuple(b for b in named if not law.known_backend(b).apart)
    unprotected = law.Attacker(original, control, train=original, release=False)
    of: dict[str, tuple[AttackRun, ...]] = {
        ORIGINAL: (
            AttackRun(ORIGINAL, ORIGINAL, "", backends, unprotected, side=config.legal.side),
        )
    }
    missing = {}
    for name, given in inputs.speech.items():
        attacks = []
        for attacker in config.attackers:
            speech = inputs.trained.get((name, attacker.name)) if attacker.trains else given
            lacking = [NOT_GIVEN[data] for data in attacker.needs if data not in given.known]
            if speech is None:
                missing[name, attacker.name] = f"not run, {inputs.untrained[name, attacker.name]}"
            elif lacking and not attacker.trains:
                missing[name, attacker.name] = f"not run, {' and '.join(lacking)}"
            else:
                attack = _attack(name, attacker, inputs, speech, quick=config.quick)
                attacks.append(replace(attack, side=config.legal.side))
        if not attacks:
            reasons = "; ".join(f"{who}: {why}" for (n, who), why in missing.items() if n == name)
            raise InputError(f"attackers: none can attack {name} ({reasons})")
        of[name] = tuple(attacks)
    return of, missing


def _attack(
    safeguard: str, one: AttackerConfig, inputs: Inputs, speech: Speech, *, quick: bool
) -> AttackRun:
    """An attacker with the back-ends its data allow, trained on others or its own enrolment."""
    known = {data: inputs.enrolment(some) for data, some in speech.known.items()}
    apart = all(data in speech.learnt for data in one.train)
    sets = speech.learnt if apart else known
    train = law.pooled([sets[data] for data in one.train if data in sets])
    pairs = pairs_of(sets) if one.enrol == "original" and "own" in one.train else None
    usable = tuple(
        b
        for b in one.backends
        if not law.known_backend(b).apart
        or (pairs if law.known_backend(b).needs == "pairs" else apart)
    )
    untried: dict[str, str] = {b: NO_PEOPLE for b in one.backends if b not in usable}
    # What is enrolled is never the attacked run, or the safeguard has no key.
    data = law.Attacker(
        known[one.enrol],
        inputs.attacked(speech.protected),
        train=train,
        release=False,
        parallel=pairs,
        words=inputs.words,
    )
    usable = usable or ("cosine",)
    if inputs.words is not None:
        usable = tuple(dict.fromkeys((*usable, f"{usable[0]}{law.BESIDE}", law.NO_VOICE)))
    # A quick look has a few fixed attacks, all by the direction of vectors.
    if not quick and law.lengths_vary(data.enrol, data.test):
        usable = (*usable, law.LENGTH)
    clause = description(one.enrol, one.train, trained=one.trains)
    own = one.enrol == "own"
    return AttackRun(safeguard, one.name, clause, usable, data, own, untried)


def _scored(variant: Variant) -> Variant:
    """The variant whose scores this one takes as they are, or negates."""
    return replace(variant, reading=law.Reading(variant.reading).scored)
