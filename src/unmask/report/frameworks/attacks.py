"""Who attacks whom: enrolment, training and test speech of every attacker, and its trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Battery, SystemResult, curves, evaluate, group_masks
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.legal import (
    CENTRED,
    CENTRED_NEGATED,
    NEGATED,
    PLAIN,
    VARIANTS,
    centred,
    count_above_in_scores,
    variant_name,
)
from unmask.report.cache import Progress, Step, digest_of_embeddings
from unmask.report.config import CONSISTENCY, ORIGINAL, Attacker, Config
from unmask.report.inputs import Inputs
from unmask.run import reporting
from unmask.scoring import average_groups, backend_named, score_blocks
from unmask.trials import NONTARGET, TARGET, Embeddings, Ids, Scores

NOT_GIVEN = {
    "own": "no run of the attacker's own (again) was given, and the safeguard is not keyless",
    "related": "no related safeguard was given",
}
WEAKER = "made for the strongest reading of each attacker only"
NO_EXTRACTOR = (
    "Attackers train back-ends only; those of the published protocol train the extractor anew."
)


def shown(estimate: Estimate, digits: int, *, scale: float = 1.0) -> str:
    """Value and interval as sentences have them."""
    text = f"{scale * float(estimate.value):.{digits}f}"
    if estimate.interval is not None:
        low, high = scale * estimate.interval.low, scale * estimate.interval.high
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text.replace("-", "−")


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
    """One attacker on one safeguard (``original`` for unprotected speech)."""

    safeguard: str
    attacker: str
    description: str
    backends: tuple[str, ...]
    enrol: Embeddings = field(repr=False)
    train: Embeddings = field(repr=False)
    test: Embeddings = field(repr=False)

    @cached_property
    def inputs(self) -> list[str]:
        """Digests of what goes into the attack."""
        return [digest_of_embeddings(one) for one in (self.enrol, self.train, self.test)]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every way in which this attacker compares."""
        readings = VARIANTS if self._can_centre else (PLAIN, NEGATED)
        return tuple(Variant(backend, reading) for backend in self.backends for reading in readings)

    @cached_property
    def _can_centre(self) -> bool:
        """Whether something is left of every vector about the mean of its set."""
        sets = (self.enrol, self.train, self.test)
        return all(centred(one).vectors.any(axis=1).all() for one in sets)

    def label(self, variant: Variant) -> str:
        """Attacker, back-end and reading."""
        return _label(self.attacker, variant)

    def matrix(self, variant: Variant) -> FloatArray:
        """Every enrolled speaker against every attacked utterance.

        A speaker's model is the normalised mean of all the speaker's normalised enrolment vectors.
        """
        enrol, train, test = self.enrol, self.train, self.test
        if variant.centred:
            enrol, train, test = centred(enrol), centred(train), centred(test)
        backend = backend_named(variant.backend, train)
        models = backend.prepare(average_groups(enrol.vectors, self._models[0]))
        tests = backend.prepare(test.vectors)
        parts = [np.asarray(part, float) for _, _, part in score_blocks(backend, models, tests)]
        found = np.concatenate(parts)
        return -found if variant.negated else found

    @cached_property
    def _models(self) -> tuple[IntArray, pl.Series]:
        """Dense codes of the enrolment speakers, and their names."""
        speakers = self.enrol.speakers
        codes = np.unique(speakers.codes, return_inverse=True)[1]
        return codes, speakers.names.gather(speakers.used)

    def scores(self, *variants: Variant, names: Sequence[str] = ()) -> Scores:
        """The trials with the scores of these variants, by label unless names are given."""
        systems = names or [self.label(one) for one in variants]
        speakers = self._models[1]
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
    train = _pooled([known[data] for data in one.train if data in known])
    told = description(one.enrol, one.train)
    return Attack(safeguard, one.name, told, one.backends, known[one.enrol], train, test)


def _pooled(sets: Sequence[Embeddings]) -> Embeddings:
    """Training sets under the speakers' names; ``cosine`` alone may have none of its own."""
    if len(sets) == 1:
        return sets[0]
    return Embeddings(
        np.concatenate([one.vectors for one in sets]),
        Ids.concatenate([one.speakers for one in sets]),
    )


@dataclass(frozen=True, eq=False)
class Trialled:
    """An attack as a verification system: metrics, curves, and who is found.

    ``identified`` is the share of each speaker's attacked utterances whose closest enrolled
    speaker is the right one, among all ``candidates``.
    """

    safeguard: str
    attacker: str
    variant: Variant
    result: SystemResult
    det: curves.DetCurve
    ece: curves.EceProfile
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
    how = config.verification
    replicates = config.intervals.replicates if how.replicates is None else how.replicates
    params = {
        "p_target": how.p_target,
        "fpr": how.fpr,
        "replicates": replicates,
        "level": config.intervals.level,
        "seed": config.seed,
        "backends": attack.backends,
    }
    models = attack.enrol.n_speakers
    battery = Battery(p_target=how.p_target, fpr=how.fpr)

    def compute(progress: Progress) -> Trials:
        if models * len(attack.test) > how.max_trials:
            raise InputError(
                f"verification.max_trials: {models:,} speakers and {len(attack.test):,} utterances"
                f" make more than {how.max_trials:,} trials"
            )
        found = {}
        for variant in attack.variants:
            scores = attack.scores(variant)
            result = evaluate(scores, battery=battery, replicates=0, seed=config.seed).results[0]
            bare = [replace(e, no_interval=WEAKER) for e in result.estimates]
            result = replace(result, estimates=tuple(bare))
            found[variant] = _trialled(attack, variant, scores, result, how.p_target[0])
        chosen = dict.fromkeys(strongest(tuple(found.values()), m).variant for m in MOST)
        if replicates:
            with reporting(progress):
                again = evaluate(
                    attack.scores(*chosen),
                    battery=battery,
                    replicates=replicates,
                    level=config.intervals.level,
                    seed=config.seed,
                )
            for variant, result in zip(chosen, again, strict=True):
                found[variant] = replace(found[variant], result=result, warnings=again.warnings)
        return Trials(tuple(found.values()))

    seconds = 1 + models * len(attack.test) * replicates / 5e6
    what = f"verification of {attack.safeguard}, {attack.attacker}"
    return Step(what, attack.inputs, params, compute, weight=seconds)


def _trialled(
    attack: Attack, variant: Variant, scores: Scores, result: SystemResult, p_target: float
) -> Trialled:
    models = attack.enrol.n_speakers
    return Trialled(
        attack.safeguard,
        attack.attacker,
        variant,
        result,
        curves.det_curve(result.roc, p_target=p_target),
        curves.ece_profile(scores.targets(), scores.nontargets(), result.roc),
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
    how = config.verification
    replicates = config.intervals.replicates if how.replicates is None else how.replicates
    params = {
        "by": by,
        "replicates": replicates,
        "level": config.intervals.level,
        "seed": config.seed,
        "variant": [variant.backend, variant.reading],
    }

    def compute(progress: Progress) -> Groups:
        scores = attack.scores(variant)
        parts = []
        told: list[str] = []
        masks = group_masks(scores, by)
        for done, (group, mask) in enumerate(masks, start=1):
            part = scores.select(mask)
            if not (part.is_target.any() and part.is_nontarget.any()):
                told.append(f"group {group} has no trials of both kinds and is left out")
                continue
            found = evaluate(
                part, replicates=replicates, level=config.intervals.level, seed=config.seed
            )
            parts.append(replace(found.results[0], group=group))
            told += [f"group {group}: {line}" for line in found.warnings]
            progress(done, len(masks))
        return Groups(attack.label(variant), tuple(parts), tuple(told))

    what = f"groups of {by} under {attack.safeguard}, {attack.attacker}"
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


def joined_scores(
    chosen: Mapping[str, tuple[Attack, Variant]],
) -> Iterator[tuple[list[str], Scores]]:
    """Scores of attacks on one list of trials in one table; a table each where lists differ."""
    groups: dict[str, tuple[list[str], Scores]] = {}
    for name, (attack, variant) in chosen.items():
        scores = attack.scores(variant, names=[name])
        if scores.digest not in groups:
            groups[scores.digest] = ([name], scores)
            continue
        names, table = groups[scores.digest]
        if not _same_order(table, scores):
            groups[f"{scores.digest} {name}"] = ([name], scores)
            continue
        names.append(name)
        joined = replace(table, systems={**table.systems, name: scores.scores()})
        groups[scores.digest] = (names, joined)
    yield from groups.values()


def _same_order(a: Scores, b: Scores) -> bool:
    return all(
        x is not None and y is not None and x.to_series().equals(y.to_series())
        for x, y in ((a.enrol, b.enrol), (a.test, b.test))
    )
