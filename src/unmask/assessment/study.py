"""What every framework works on, attacks as verification systems, and its part in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from unmask.assessment.attacks import ATTACKS, AttackRun, Attacks, Variant
from unmask.assessment.cache import Step, digest_of
from unmask.assessment.config import ORIGINAL, Config, ScoreSets
from unmask.assessment.halves import SCALES, Chosen, HalfNumbers, strongest_on_halves
from unmask.assessment.inputs import Inputs, list_name
from unmask.base import FloatArray, IntArray, grouped
from unmask.engine import SystemResult, evaluate
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy import Permuted, stretched
from unmask.privacy.legal import count_above_in_scores
from unmask.privacy.similarity import lucks_of_trials
from unmask.trials import Embeddings, Scores

WEAKER = "made for the strongest reading of each attacker only"
_LIGHT = 4_000_000
CONTENDERS = 3
"""How many of the strongest by each metric are tried on halves of the people."""


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
    permuted: Permuted
    notices: tuple[Notice, ...] = ()

    @property
    def label(self) -> str:
        """Attacker, back-end and reading."""
        return self.variant.of(self.attacker)

    @property
    def name(self) -> str:
        """Safeguard and attacker."""
        return self.safeguard if self.safeguard == ORIGINAL else f"{self.safeguard}, {self.label}"

    def value(self, metric: str) -> float:
        """A metric's value; ``identified`` is the mean over speakers."""
        if metric == "identified":
            return float(self.identified.mean())
        return float(self.result[metric].value)


def trial_step(attack: AttackRun, config: Config) -> Step:
    """Measure an attack in every variant, the strongest by D_ECE and by EER with intervals."""
    how = config.trials

    def compute() -> tuple[Trialled, ...]:
        models = attack.data.enrol.n_speakers
        trialled: dict[Variant, Trialled] = {}
        unfitted: dict[str, InputError] = {}
        scores: Scores | None = None
        for variant in attack.variants:
            try:
                scores = attack.scores(variant, like=scores)
            except InputError as error:
                unfitted[variant.fitted] = error
                continue
            result = evaluate(compared(scores, variant), **{**how, "replicates": 0}).results[0]
            bare = tuple(replace(e, no_interval=WEAKER) for e in result.estimates)
            trialled[variant] = Trialled(
                attack.safeguard,
                attack.attacker,
                variant,
                replace(result, estimates=bare),
                *_identified(scores, models),
                scores.digest,
                attack.permuted(variant, seed=config.seed),
            )
        if not trialled:
            raise next(iter(unfitted.values()))
        chosen = dict.fromkeys(strongest(tuple(trialled.values()), m).variant for m in SCALES)
        attack.hold(*chosen)
        for by in {one.by for one in chosen} if how["replicates"] else ():
            alike = [one for one in chosen if one.by == by]
            again = evaluate(compared(attack.scores(*alike), alike[0]), **how)
            for variant, result in zip(alike, again, strict=True):
                tried = trialled[variant]
                trialled[variant] = replace(tried, result=result, notices=again.notices)
        lost = tuple(
            Notice("not-fitted", attack.safeguard, f"{attack.attacker} ({name}): not tried, {why}")
            for name, why in unfitted.items()
        )
        return tuple(replace(one, notices=(*lost, *one.notices)) for one in trialled.values())

    what = f"verification of {attack.safeguard}, {attack.attacker}"
    params = {**how, "backends": attack.backends}
    trials = len(attack.backends) * (0.12 + 6e-7 * attack.size)
    seconds = trials + how["replicates"] * (8e-4 + 4e-9 * attack.size)
    return Step(what, attack.inputs, params, compute, weight=seconds)


def strongest(trialled: Sequence[Trialled], metric: str) -> Trialled:
    """The attack that discloses most by a metric; the first of equals."""
    sign = SCALES[metric].sign if metric in SCALES else 1.0
    return max(trialled, key=lambda tried: sign * tried.value(metric))


def contenders(trialled: Sequence[Trialled]) -> list[Trialled]:
    """The few attacks that disclose most by D_ECE or by EER, in their order.

    They alone are tried on halves of the people: others, far from the strongest, hardly ever get
    ahead of all of these, and fitting them would take longer than all else.
    """
    few: list[Trialled] = []
    for metric in SCALES:
        left = list(trialled)
        for _ in range(min(CONTENDERS, len(left))):
            best = strongest(left, metric)
            left.remove(best)
            few.append(best)
    return [attack for attack in trialled if attack in few]


def halves_step(safeguard: str, chosen: Chosen, seed: int) -> Step:
    """Try the contenders against a safeguard on halves of the people, the strongest of each."""

    def compute() -> HalfNumbers:
        # Copies, whose scores go with them.
        copies = [(replace(attack), variants) for attack, variants in chosen]
        return strongest_on_halves(copies, seed)

    data = [digest for attack, _ in chosen for digest in attack.inputs]
    tried = [
        [attack.attacker, variant.fitted, variant.reading]
        for attack, variants in chosen
        for variant in variants
    ]
    seconds = sum(len(variants) * (0.6 + 4e-6 * attack.size) for attack, variants in chosen)
    params = {"seed": seed, "tried": tried}
    return Step(f"halves of {safeguard}", data, params, compute, weight=seconds)


def result_among(
    attack: Trialled, tried: Sequence[Trialled], metric: str, halves: HalfNumbers | None = None
) -> SystemResult:
    """The metrics of an attack as they are shown among all that were ``tried``.

    Where it is the strongest of them by a metric, what luck reads of that is added, and the
    interval of the metric is stretched by what ``halves`` of the people show.
    """
    if attack is not strongest(tried, metric):
        return attack.result
    lucks = lucks_of_trials([each.permuted for each in tried])
    told = {"eer": ("eer",), "d_ece": ("d_ece", "l_w")}[metric]
    estimates = []
    for estimate in attack.result.estimates:
        if estimate.metric in told:
            estimate = replace(estimate, luck=lucks.get(estimate.metric))
        if estimate.metric == metric and estimate.interval is not None and halves is not None:
            people, numbers = len(attack.speakers), halves[metric].tolist()
            shown = estimate.interval, SCALES[metric], attack.value(metric), people, numbers
            estimate = replace(estimate, interval=stretched(*shown))
        estimates.append(estimate)
    return replace(attack.result, estimates=tuple(estimates))


def compared(scores: Scores, variant: Variant) -> Scores:
    """The trials of people who are compared: all, or those within a group."""
    if not variant.by:
        return scores
    return scores.select(np.isfinite(next(iter(scores.systems.values()))))


def _identified(scores: Scores, models: int) -> tuple[tuple[str, ...], FloatArray, IntArray, int]:
    """Speakers, the share of their utterances found, how many these are, among how many people."""
    assert scores.test_speaker is not None
    matrix = scores.scores().reshape(models, -1).T
    true = scores.is_target.reshape(models, -1).T
    known = true.any(axis=1)
    above = count_above_in_scores(matrix[known], true[known].argmax(axis=1))
    owner = scores.test_speaker.codes[: len(matrix)][known]
    used, dense = np.unique(owner, return_inverse=True)
    recordings = np.bincount(dense)
    hits = np.bincount(dense, weights=above.first) / recordings
    names = tuple(str(scores.test_speaker.names[int(code)]) for code in used)
    candidates = 1 / np.mean(1 / np.maximum(np.isfinite(matrix[known]).sum(axis=1), 1))
    return names, hits, recordings, round(candidates)


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
    alone: Callable[[str], Table] = field(repr=False, kw_only=True)

    def step(
        self, what: str, function: Callable[..., Any], options: Mapping[str, Any], weight: float
    ) -> Step:
        """``function`` of the scores and ``options``; ``what`` of this table it makes."""
        params = {**options, "systems": self.systems}
        return Step(
            f"{what} of {self.name}",
            self.inputs,
            params,
            lambda: function(self.load(), **options),
            weight,
        )


@dataclass(eq=False)
class Study:
    """What every framework of an assessment works on.

    ``missing`` tells, by safeguard and attacker, why an attacker was not run; ``tables`` are the
    score tables by name; ``left_out`` is what the config drops; ``trialled`` holds every variant of
    every attack by safeguard, once the attacks have been tried. ``asked`` is the config as it was
    given, ``config`` what is run of it. Of many people as many are ``tested`` as make the trials
    that the config allows.
    """

    config: Config
    inputs: Inputs
    attacks: Attacks
    missing: Mapping[tuple[str, str], str]
    tables: Mapping[str, Scores]
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    trialled: Mapping[str, Sequence[Trialled]] = field(default_factory=dict)
    asked: Config | None = None
    is_tried: bool = False

    @property
    def every(self) -> dict[tuple[str, str], AttackRun]:
        """All attacks by safeguard and attacker, in order."""
        return {(run.safeguard, run.attacker): run for n in self.attacks for run in self.attacks[n]}

    @cached_property
    def tested(self) -> dict[tuple[str, str], AttackRun]:
        """All attacks as they are tried as verification systems: among everybody or, where these
        would be too many trials, among the same people of all.
        """
        every, most = self.every, self.config.verification.max_trials
        sizes = [(run.size, run.data.enrol.n_speakers) for run in every.values()]
        fewest = min((int(n * (most / size) ** 0.5) for size, n in sizes if size > most), default=0)
        if not fewest:
            return every
        people = drawn_people((run.data.enrol for run in every.values()), fewest, self.config.seed)
        return {key: run.among(people) for key, run in every.items()}

    @property
    def fewer(self) -> tuple[Notice, ...]:
        """What is measured among some of the people only."""
        people = {run.data.enrol.n_speakers for run in self.every.values()}
        most, drawn = max(people, default=0), []
        if self.tested != self.every:
            some = max(run.data.enrol.n_speakers for run in self.tested.values())
            what = "detection metrics, ZEBRA, C-P maps and the worst case"
            drawn.append(("verification.max_trials", some, what))
        voices = max((vectors.n_speakers for vectors in self.inputs.protected.values()), default=0)
        if voices > (some := self.config.similarity.max_people):
            drawn.append(("similarity.max_people", some, "voice similarity"))
        return tuple(
            Notice("people-drawn", "", f"{what} among {some:,} of {most:,} people, drawn ({key})")
            for key, some, what in drawn
        )

    @property
    def attackers(self) -> tuple[str, ...]:
        """Attackers that were run against some safeguard."""
        return tuple(dict.fromkeys(who for name, who in self.every if name != ORIGINAL))

    @property
    def light(self) -> bool:
        """Whether several processes may hold all of it: attacks and tables of few trials."""
        tables = sum(len(scores) * len(scores.systems) for scores in self.tables.values())
        return max((run.size for run in self.every.values()), default=0) + tables <= _LIGHT

    @property
    def people(self) -> str:
        """How many people were attacked; several numbers where safeguards differ."""
        return _span(
            run.data.test.n_speakers for (n, _), run in self.every.items() if n != ORIGINAL
        )

    @property
    def utterances(self) -> str:
        """How many utterances were attacked."""
        return _span(
            len(run.data.test) for (name, _), run in self.every.items() if name != ORIGINAL
        )

    def trials(self) -> dict[tuple[str, str], Step]:
        """A step that tries each attack."""
        return {key: trial_step(attack, self.config) for key, attack in self.tested.items()}

    def halves(self) -> dict[str, Step]:
        """A step for each safeguard that tries its strongest attacks on halves of the people.

        None where no intervals are asked for. Before any attack was tried, the first stands for
        the strongest.
        """
        if not self.config.of_trials["replicates"]:
            return {}
        steps = {}
        for name, (attack, variant) in self.strongest().items():
            chosen = [(attack, [variant] * CONTENDERS)]
            if self.is_tried:
                some = contenders(self.trialled[name])
                by_attacker = grouped((each.attacker, each.variant) for each in some)
                chosen = [(self.tested[name, who], own) for who, own in by_attacker.items()]
            steps[name] = halves_step(name, chosen, self.config.seed)
        return steps

    def tried(self, done: Mapping[tuple[str, str], Sequence[Trialled]]) -> None:
        """Take the tried attacks; of their scores only those of the strongest are held."""
        self.trialled = grouped((name, tried) for (name, _), some in done.items() for tried in some)
        self.is_tried = True
        best = {id(attack): [variant] for attack, variant in self.strongest().values()}
        for attack in self.tested.values():
            attack.hold(*best.get(id(attack), ()))

    def strongest(self) -> dict[str, tuple[AttackRun, Variant]]:
        """The attack with the lowest equal error rate on each safeguard; before any was tried, the
        first.
        """
        if not self.is_tried:
            first = {n: self.tested[n, some[0].attacker] for n, some in self.attacks.items()}
            return {n: (run, Variant(run.backends[0])) for n, run in first.items()}
        best = {name: strongest(trialled, "eer") for name, trialled in self.trialled.items()}
        return {n: (self.tested[n, tried.attacker], tried.variant) for n, tried in best.items()}

    @property
    def lists(self) -> dict[str, tuple[str, ScoreSets, str]]:
        """The tables that are lists of a safeguard: whose, what the config says, and which part."""
        every = [(one.name, given) for one in self.config.safeguards for given in one.scores]
        return {
            list_name(given.label(name), part): (name, given, part)
            for name, given in every
            for part in self.inputs.sets.get(given.label(name), ())
        }

    @property
    def beside_baseline(self) -> dict[str, str]:
        """Labels of other systems' sets, and of those of the baseline on the same trials by the
        same extractor.
        """
        every = [(one.name, given) for one in self.config.safeguards for given in one.scores]
        base = self.config.table.baseline
        own = {(g.set, g.extractor): g.label(name) for name, g in every if name == base}
        return {
            g.label(name): own[g.set, g.extractor]
            for name, g in every
            if name != base and (g.set, g.extractor) in own
        }

    def compared(self) -> list[Table]:
        """The strongest attacks, those on one list of trials in one table, and the given tables;
        of many lists of safeguards only where the config names frameworks.
        """
        lists = self.lists if len(self.inputs.sets) > 1 and not self.config.frameworks else {}
        groups: dict[Any, dict[str, tuple[AttackRun, Variant]]] = {}
        for name, (attack, variant) in self.strongest().items():
            groups.setdefault((attack.trials, variant.by), {})[name] = (attack, variant)
        references = {table.name: table.reference for table in self.config.scores}
        given = [
            _given_table(name, scores, references.get(name, ()))
            for name, scores in self.tables.items()
            if name not in lists
        ]
        return [*map(_attack_table, groups.values()), *given]


def drawn_people(sets: Iterable[Embeddings], most: int, seed: int) -> set[str]:
    """As many as ``most`` of the people in all ``sets``, the same for one seed."""
    names = sorted(set.intersection(*(set(voices.speakers.present) for voices in sets)))
    order = np.random.default_rng(seed).permutation(len(names))[:most]
    return {names[i] for i in order}


def _given_table(name: str, scores: Scores, references: Sequence[str]) -> Table:
    return Table(
        name,
        tuple(scores.systems),
        len(scores),
        [digest_of(scores)],
        lambda: scores,
        scores.enrol_speaker is not None,
        references,
        alone=lambda system: _given_table(name, scores.select_systems([system]), ()),
    )


def _span(numbers: Iterable[int]) -> str:
    """``40`` or ``40 to 60``."""
    some = sorted(numbers)
    return " to ".join(f"{n:,}" for n in dict.fromkeys((some[0], some[-1])))


def _attack_table(group: Mapping[str, tuple[AttackRun, Variant]]) -> Table:
    names = tuple(group)
    (first, variant), *others = group.values()

    def load() -> Scores:
        table = first.scores(variant, names=names[:1])
        more = {n: a.matrix(v).ravel() for n, (a, v) in zip(names[1:], others, strict=True)}
        return compared(replace(table, systems={**table.systems, **more}), variant)

    inputs = [one for attack, v in group.values() for one in (*attack.inputs, attack.label(v))]
    whole = ORIGINAL in names and len(names) > 1
    name = ATTACKS if whole else f"{ATTACKS} on {' and '.join(names)}"

    def alone(system: str) -> Table:
        return replace(_attack_table({system: group[system]}), name=name)

    return Table(name, names, first.size, inputs, load, alone=alone)


Plan = dict[str, Mapping[Any, Step]]
"""Steps of a framework in named groups; their results come back in the same groups."""
Results = Mapping[str, Mapping[Any, Any]]
TRIALS = "trials"
HALVES = "halves"
"""Groups of steps that several frameworks share."""


@dataclass(frozen=True)
class Framework:
    """How a framework takes part in an assessment.

    ``steps`` are planned from the inputs, ``later`` ones when the attacks have been tried.
    ``trials`` tells that it looks at the tried attacks; without results in the group ``main`` there
    is nothing to report.
    """

    key: str
    steps: Callable[[Study], Plan] = lambda study: {}
    later: Callable[[Study], Plan] = lambda study: {}
    trials: bool = False
    main: str | None = None
