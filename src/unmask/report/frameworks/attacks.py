"""Who attacks whom: enrolment, training and test speech of every attacker, and its trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Battery, SystemResult, evaluate, group_masks
from unmask.errors import InputError
from unmask.privacy.legal import (
    CENTRED,
    CENTRED_NEGATED,
    NEGATED,
    PLAIN,
    count_above_in_scores,
    pooled,
    variant_name,
)
from unmask.privacy.legal import Attacker as LegalAttacker
from unmask.report.cache import Step, digest_of
from unmask.report.config import CONSISTENCY, ORIGINAL, Attacker, Config
from unmask.report.inputs import Inputs
from unmask.report.section import Section
from unmask.run import part
from unmask.trials import NONTARGET, TARGET, Embeddings, Ids, Scores

ATTACKS = "Attacks"
NOT_GIVEN = {
    "own": "no run of the attacker's own (again) was given, and the safeguard is not keyless",
    "related": "no related safeguard was given",
}
WEAKER = "made for the strongest reading of each attacker only"
NO_EXTRACTOR = (
    "Attackers train back-ends only; those of the published protocol train the extractor anew."
)


def description(enrol: str, train: Sequence[str]) -> str:
    """What an attacker knows, as a relative clause."""
    if "own" in train:
        return "who can run the safeguard and trained on its output"
    if "related" in train:
        return "who can run the safeguard and trained on a related one"
    return "who can run the safeguard" if enrol == "own" else "who knows nothing of the safeguard"


@dataclass(frozen=True)
class Variant:
    """How an attacker compares: a back-end, and how its scores are read."""

    backend: str
    reading: str = PLAIN

    @property
    def centred(self) -> bool:
        return self.reading in (CENTRED, CENTRED_NEGATED)

    @property
    def negated(self) -> bool:
        return self.reading in (NEGATED, CENTRED_NEGATED)


@dataclass(frozen=True, eq=False)
class Attack:
    """One attacker on one safeguard (``original`` for unprotected speech).

    Made by :func:`attacks_of`; steps of several frameworks take it. Its scores are computed once
    and held until :meth:`hold` lets them go.
    """

    safeguard: str
    attacker: str
    description: str
    backends: tuple[str, ...]
    enrol: Embeddings = field(repr=False)
    train: Embeddings = field(repr=False)
    test: Embeddings = field(repr=False)
    _scored: dict[tuple[str, bool], FloatArray] = field(
        init=False, default_factory=dict, repr=False
    )

    @cached_property
    def inputs(self) -> list[str]:
        """Digests of what goes into the attack."""
        return [digest_of(one) for one in (self.enrol, self.train, self.test)]

    def against(self, backend: str) -> LegalAttacker:
        """The attacker with one of its back-ends.

        What it enrols is never the attacked run, or the safeguard has no key.
        """
        return LegalAttacker(self.enrol, self.test, backend, self.train, consistency=False)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every way in which this attacker compares."""
        readings = self.against(self.backends[0]).readings
        return tuple(Variant(backend, reading) for backend in self.backends for reading in readings)

    def label(self, variant: Variant) -> str:
        """Attacker, back-end and reading."""
        return _label(self.attacker, variant)

    def matrix(self, variant: Variant) -> FloatArray:
        """Every enrolled speaker against every attacked utterance, scored once."""
        key = (variant.backend, variant.centred)
        if key not in self._scored:
            reading = CENTRED if variant.centred else PLAIN
            self._scored[key] = self.against(variant.backend).matrix(reading)
        scores = self._scored[key]
        return -scores if variant.negated else scores

    def hold(self, *variants: Variant) -> None:
        """Let go of all scores but those of ``variants``."""
        held = {(one.backend, one.centred) for one in variants}
        for key in self._scored.keys() - held:
            del self._scored[key]

    @cached_property
    def _models(self) -> pl.Series:
        """Names of the enrolled speakers, in the order of their codes."""
        return self.enrol.speakers.names.gather(self.enrol.speakers.used)

    @property
    def size(self) -> int:
        """How many trials there are."""
        return self.enrol.n_speakers * len(self.test)

    def same_trials(self, other: Attack) -> bool:
        """Whether another attack has the same models and tests in the same order."""
        assert self.test.utterances is not None
        assert other.test.utterances is not None
        pairs = (
            (self._models, other._models),
            (self.test.utterances.to_series(), other.test.utterances.to_series()),
            (self.test.speakers.to_series(), other.test.speakers.to_series()),
        )
        return all(mine.equals(theirs) for mine, theirs in pairs)

    def scores(self, *variants: Variant, names: Sequence[str] = ()) -> Scores:
        """The trials with the scores of these variants, by label unless names are given."""
        systems = names or [self.label(one) for one in variants]
        speakers = self._models
        enrol = Ids(np.repeat(np.arange(len(speakers), dtype=np.int32), len(self.test)), speakers)
        rows = np.tile(np.arange(len(self.test), dtype=np.int32), len(speakers))
        speaker = Ids(self.test.speakers.codes[rows], self.test.speakers.names)
        assert self.test.utterances is not None
        columns = {}
        for name, ids in self.test.columns.items():
            of_speaker = _first_value(self.enrol, name)
            if of_speaker is not None:
                columns[f"enrol_{name}"] = Ids(of_speaker.codes[enrol.codes], of_speaker.names)
                columns[f"test_{name}"] = Ids(ids.codes[rows], ids.names)
        return Scores(
            enrol,
            Ids(self.test.utterances.codes[rows], self.test.utterances.names),
            np.where(_same(enrol, speaker), TARGET, NONTARGET).astype(np.int8),
            enrol_speaker=enrol,
            test_speaker=speaker,
            columns=columns,
            systems={n: self.matrix(v).ravel() for n, v in zip(systems, variants, strict=True)},
        )


def _label(attacker: str, variant: Variant) -> str:
    return variant_name(f"{attacker} ({variant.backend})", variant.reading)


def _same(first: Ids, second: Ids) -> BoolArray:
    place = {name: i for i, name in enumerate(first.names)}
    translated = np.array([place.get(name, -1) for name in second.names], dtype=np.int64)
    return np.asarray(first.codes == translated[second.codes])


def _first_value(embeddings: Embeddings, column: str) -> Ids | None:
    """The attribute of each speaker, if it has one value per speaker."""
    if column not in embeddings.columns:
        return None
    ids = embeddings.columns[column]
    codes = np.unique(embeddings.speakers.codes, return_index=True, return_inverse=True)
    value = ids.codes[codes[1]]
    if (value[codes[2]] != ids.codes).any():
        return None
    return Ids(value, ids.names)


@dataclass(frozen=True, eq=False)
class Attacks:
    """Attacks by safeguard, ``original`` first: the same back-ends on unprotected speech.

    ``consistency`` enrols the attacked run itself, by safeguard: how stable and distinct
    pseudo-voices are, and no attack. ``missing`` tells, by safeguard and attacker, why an attacker
    was not run.
    """

    of: Mapping[str, tuple[Attack, ...]]
    consistency: Mapping[str, Attack]
    missing: Mapping[tuple[str, str], str]

    @property
    def names(self) -> tuple[str, ...]:
        """Attackers that were run against some safeguard."""
        return tuple(
            dict.fromkeys(
                a.attacker for n, found in self.of.items() if n != ORIGINAL for a in found
            )
        )


def attacks_of(config: Config, inputs: Inputs) -> Attacks:
    """Every attacker on every safeguard for which its data are there."""
    if inputs.original is None or not inputs.protected:
        return Attacks({}, {}, {})
    original = inputs.enrolment(inputs.original)
    control = inputs.attacked(inputs.original)
    backends = tuple(dict.fromkeys(b for one in config.attackers for b in one.backends))
    of: dict[str, tuple[Attack, ...]] = {
        ORIGINAL: (Attack(ORIGINAL, ORIGINAL, "", backends, original, original, control),)
    }
    consistency = {}
    missing = {}
    for name, protected in inputs.protected.items():
        test = inputs.attacked(protected)
        run = inputs.enrolment(protected)
        known = {"original": original}
        if name in inputs.keyless:
            known["own"] = run
        elif name in inputs.again:
            known["own"] = inputs.enrolment(inputs.again[name])
        if name in inputs.related:
            known["related"] = inputs.enrolment(inputs.related[name])
        found = []
        for one in config.attackers:
            lacking = [NOT_GIVEN[data] for data in one.needs if data not in known]
            if lacking:
                missing[name, one.name] = f"not run, {' and '.join(lacking)}"
            else:
                found.append(_attack(name, one, known, test))
        if not found:
            told = "; ".join(f"{who}: {why}" for (n, who), why in missing.items() if n == name)
            raise InputError(f"attackers: none can attack {name} ({told})")
        of[name] = tuple(found)
        consistency[name] = Attack(name, CONSISTENCY, "", ("cosine",), run, run, test)
    return Attacks(of, consistency, missing)


def _attack(
    safeguard: str, one: Attacker, known: Mapping[str, Embeddings], test: Embeddings
) -> Attack:
    train = pooled([known[data] for data in one.train if data in known])
    told = description(one.enrol, one.train)
    return Attack(safeguard, one.name, told, one.backends, known[one.enrol], train, test)


@dataclass(frozen=True, eq=False)
class Trialled:
    """An attack as a verification system: metrics, and who is found.

    ``identified`` is the share of each speaker's attacked utterances whose closest enrolled
    speaker is the right one, among all ``candidates``.
    """

    safeguard: str
    attacker: str
    variant: Variant
    result: SystemResult
    speakers: tuple[str, ...]
    identified: FloatArray
    recordings: IntArray
    candidates: int
    trials: str
    warnings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Attacker, back-end and reading."""
        return _label(self.attacker, self.variant)

    @property
    def name(self) -> str:
        """Safeguard and attacker."""
        return self.safeguard if self.safeguard == ORIGINAL else f"{self.safeguard}, {self.label}"

    def value(self, metric: str) -> float:
        """A metric's value; ``identified`` is the mean over speakers."""
        if metric == "identified":
            return float(self.identified.mean())
        return float(self.result[metric].value)


@dataclass(frozen=True, eq=False)
class Trials:
    """Every variant of one attack."""

    variants: tuple[Trialled, ...]


def trial_step(attack: Attack, config: Config) -> Step:
    """Score the trials of an attack in every variant and measure them.

    Intervals are made for the strongest variant by D_ECE and by EER; the others are there to show
    what they were chosen from.
    """
    params = {**config.trials, "backends": attack.backends}

    def compute() -> Trials:
        if attack.size > config.verification.max_trials:
            raise InputError(
                f"verification.max_trials: {attack.enrol.n_speakers:,} speakers and"
                f" {len(attack.test):,} utterances make more than"
                f" {config.verification.max_trials:,} trials"
            )
        battery = Battery(p_target=params["p_target"], fpr=params["fpr"])
        how = {name: params[name] for name in ("replicates", "level", "seed")}
        found = {}
        for variant in attack.variants:
            scores = attack.scores(variant)
            result = evaluate(scores, battery=battery, **{**how, "replicates": 0}).results[0]
            bare = [replace(e, no_interval=WEAKER) for e in result.estimates]
            result = replace(result, estimates=tuple(bare))
            found[variant] = _trialled(attack, variant, scores, result)
        chosen = dict.fromkeys(strongest(tuple(found.values()), m).variant for m in MOST)
        attack.hold(*chosen)
        if how["replicates"]:
            again = evaluate(attack.scores(*chosen), battery=battery, **how)
            for variant, result in zip(chosen, again, strict=True):
                found[variant] = replace(found[variant], result=result, warnings=again.warnings)
        return Trials(tuple(found.values()))

    what = f"verification of {attack.safeguard}, {attack.attacker}"
    seconds = 1 + attack.size * params["replicates"] / 5e6
    return Step(what, attack.inputs, params, compute, weight=seconds)


def _trialled(attack: Attack, variant: Variant, scores: Scores, result: SystemResult) -> Trialled:
    models = attack.enrol.n_speakers
    return Trialled(
        attack.safeguard,
        attack.attacker,
        variant,
        result,
        *_identified(scores, models),
        models,
        scores.digest,
    )


MOST = {"d_ece": 1.0, "eer": -1.0}


def strongest(found: Sequence[Trialled], metric: str = "d_ece") -> Trialled:
    """The attack that discloses most by a metric; the first of equals."""
    sign = MOST.get(metric, 1.0)
    return max(found, key=lambda one: sign * one.value(metric))


def leaders(found: Sequence[Trialled], metric: str) -> tuple[Trialled, ...]:
    """The strongest variant of each attacker by a metric, in the order of the attackers."""
    names = dict.fromkeys(one.attacker for one in found)
    return tuple(strongest([o for o in found if o.attacker == name], metric) for name in names)


@dataclass(frozen=True, eq=False)
class Groups:
    """An attack on groups of speakers, such as women and men."""

    label: str
    results: tuple[SystemResult, ...]
    warnings: tuple[str, ...]


def group_step(attack: Attack, variant: Variant, config: Config, by: str) -> Step:
    """Measure an attack within and between the groups of a column."""
    how = {name: config.trials[name] for name in ("replicates", "level", "seed")}

    def compute() -> Groups:
        scores = attack.scores(variant)
        parts = []
        told: list[str] = []
        masks = group_masks(scores, by)
        for index, (group, mask) in enumerate(masks):
            chosen = scores.select(mask)
            if not (chosen.is_target.any() and chosen.is_nontarget.any()):
                told.append(f"group {group} has no trials of both kinds and is left out")
                continue
            with part(index, len(masks)):
                found = evaluate(chosen, **how)
            parts.append(replace(found.results[0], group=group))
            told += [f"group {group}: {line}" for line in found.warnings]
        return Groups(attack.label(variant), tuple(parts), tuple(told))

    what = f"groups of {by} under {attack.safeguard}, {attack.attacker}"
    params = {**how, "by": by, "variant": [variant.backend, variant.reading]}
    return Step(what, attack.inputs, params, compute, weight=1.5)


def _identified(scores: Scores, models: int) -> tuple[tuple[str, ...], FloatArray, IntArray]:
    """Speakers, the share of their utterances that are found, and how many utterances they have."""
    assert scores.test_speaker is not None
    matrix = scores.scores().reshape(models, -1).T
    true = scores.is_target.reshape(models, -1).T
    known = true.any(axis=1)
    above = count_above_in_scores(matrix[known], true[known].argmax(axis=1))
    owner = scores.test_speaker.codes[: len(matrix)][known]
    used, dense = np.unique(owner, return_inverse=True)
    recordings = np.bincount(dense)
    hits = np.bincount(dense, weights=above.at_or_above == 0) / recordings
    names = tuple(str(scores.test_speaker.names[int(code)]) for code in used)
    return names, hits, recordings


@dataclass(frozen=True, eq=False)
class Table:
    """Systems on one list of trials: a table that was given, or the strongest attacks as systems.

    ``inputs`` are its digests, ``size`` counts its trials; ``load`` gives the scores, which nobody
    computes before a step needs them. ``references`` tell hard trials from easy.
    """

    name: str
    systems: tuple[str, ...]
    size: int
    inputs: Sequence[str]
    load: Callable[[], Scores]
    speakers: bool = True
    references: Sequence[str] = ()


@dataclass(eq=False)
class Study:
    """What every framework of an assessment works on.

    ``tables`` are the score tables by name; ``trialled`` holds every variant of every attack by
    safeguard, once the attacks have been tried.
    """

    config: Config
    inputs: Inputs
    attacks: Attacks
    colours: Mapping[str, str]
    tables: Mapping[str, Scores]
    trialled: Mapping[str, Sequence[Trialled]] = field(default_factory=dict)

    def trial_steps(self) -> dict[tuple[str, str], Step]:
        """Every attack as a verification system, by safeguard and attacker."""
        return self.per_attack(lambda attack: trial_step(attack, self.config))

    def per_attack(self, make: Callable[[Attack], Step]) -> dict[tuple[str, str], Step]:
        """A step for each attack, by safeguard and attacker."""
        return {
            (name, attack.attacker): make(attack)
            for name, found in self.attacks.of.items()
            for attack in found
        }

    def tried(self, done: Mapping[tuple[str, str], Trials]) -> None:
        """Take the tried attacks; of their scores only those of the strongest are held."""
        trialled: dict[str, list[Trialled]] = {}
        for (name, _), found in done.items():
            trialled.setdefault(name, []).extend(found.variants)
        self.trialled = trialled
        strongest = {id(attack): variant for attack, variant in self.strongest().values()}
        for attacks in self.attacks.of.values():
            for attack in attacks:
                attack.hold(*([strongest[id(attack)]] if id(attack) in strongest else []))

    def strongest(self) -> dict[str, tuple[Attack, Variant]]:
        """The attack with the lowest equal error rate on each safeguard."""
        best = {name: strongest(found, "eer") for name, found in self.trialled.items()}
        return {
            name: (
                next(a for a in self.attacks.of[name] if a.attacker == one.attacker),
                one.variant,
            )
            for name, one in best.items()
        }

    def compared(self) -> list[Table]:
        """The strongest attacks, those on one list of trials in one table, and the given tables."""
        groups: list[dict[str, tuple[Attack, Variant]]] = []
        for name, (attack, variant) in self.strongest().items():
            same = (g for g in groups if next(iter(g.values()))[0].same_trials(attack))
            group = next(same, None)
            if group is None:
                groups.append({name: (attack, variant)})
            else:
                group[name] = (attack, variant)
        references = {one.name: one.reference for one in self.config.scores}
        return [
            *map(_attack_table, groups),
            *(
                Table(
                    name,
                    tuple(scores.systems),
                    len(scores),
                    [digest_of(scores)],
                    lambda scores=scores: scores,  # type: ignore[misc]
                    scores.enrol_speaker is not None,
                    references.get(name, ()),
                )
                for name, scores in self.tables.items()
            ),
        ]


def _attack_table(group: Mapping[str, tuple[Attack, Variant]]) -> Table:
    names = tuple(group)
    (first, variant), *others = group.values()

    def load() -> Scores:
        table = first.scores(variant, names=names[:1])
        more = {n: a.matrix(v).ravel() for n, (a, v) in zip(names[1:], others, strict=True)}
        return replace(table, systems={**table.systems, **more})

    inputs = [one for attack, v in group.values() for one in (*attack.inputs, attack.label(v))]
    name = ATTACKS if len(names) > 1 else f"{ATTACKS} on {names[0]}"
    return Table(name, names, first.size, inputs, load)


Plan = dict[str, Mapping[Any, Step]]
"""Steps of a framework in named groups; what is found comes back in the same groups."""
TRIALS = "trials"


@dataclass(frozen=True)
class Framework:
    """How a framework takes part in an assessment.

    ``steps`` are planned from the inputs, ``later`` ones when the attacks have been tried;
    ``section`` makes its part of the report from their results. ``trials`` tells that it looks at
    the tried attacks; without results in the group ``main`` there is no section.
    """

    key: str
    section: Callable[[Study, Mapping[str, Mapping[Any, Any]]], Section]
    steps: Callable[[Study], Plan] = lambda study: {}
    later: Callable[[Study], Plan] = lambda study: {}
    trials: bool = False
    main: str | None = None
