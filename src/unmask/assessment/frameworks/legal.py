"""Sweeps of every attacker for Linkability, Singling Out and inference (Vauquier 2025)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from unmask.assessment.attacks import AttackRun, Attacks, Variant, attacks_of
from unmask.assessment.cache import Step, Work, cache_of, digest_of
from unmask.assessment.config import KNOWN, ORIGINAL, Config, Legal
from unmask.assessment.inputs import read_inputs
from unmask.assessment.study import Framework, Plan, Study
from unmask.base import grouped
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy import legal as law
from unmask.privacy.legal import RELEASE

RECORDS = "record to record"
"""Within a release: one recording of each person is enrolled, not all that belong together."""
WITHIN = ("cosine", "wccn", "whitened")
"""Back-ends that are tried within a release; names of its enrolment half are known, but from record
to record.
"""


def with_fitting_lengths(config: Config, attacks: Attacks) -> tuple[Config, tuple[Notice, ...]]:
    """The config with those lengths that the attacked speech of some safeguard allows, and notices
    on the others.
    """
    if not attacks:
        return config, ()
    lengths = config.legal.lengths
    fitting = {name: _fitting(lengths, some) for name, some in attacks.items()}
    kept = tuple(sorted({n for some in fitting.values() for n in some}))
    lacking = grouped(
        (tuple(n for n, some in fitting.items() if x not in some), x) for x in lengths
    )
    lacking.pop((), None)
    notices = []
    for names, longer in lacking.items():
        whose = "" if len(names) == len(attacks) else f" of {' and '.join(names)}"
        most = max(max(fitting[name]) for name in names)
        sentence = f"conversations of {', '.join(map(str, longer))} utterances left out{whose},"
        sentence += f" nobody has two of them to attack: the longest are of {most}"
        notices.append(Notice("length-left-out", "", sentence))
    legal = config.legal.model_copy(update={"lengths": kept})
    return config.model_copy(update={"legal": legal}), tuple(notices)


def _fitting(lengths: tuple[int, ...], attacks: Iterable[AttackRun]) -> tuple[int, ...]:
    """Lengths of which somebody has two conversations to attack, or the longest that there is."""
    return law.fitting_lengths([attack.data for attack in attacks], lengths)


def _options(config: Config, people: int = 0) -> dict[str, Any]:
    """Options of a sweep but attributes; with enrolled ``people``, how far beyond them it goes."""
    options = config.legal.model_dump(exclude={"attributes"})
    known = {field.name for field in fields(law.LegalProtocol)} & set(options)
    protocol = law.LegalProtocol(**{name: options.pop(name) for name in known})
    protocol = replace(protocol, extrapolate=_reach(config.legal, people))
    return {**options, "protocol": protocol, **config.drawn}


def _reach(legal: Legal, people: int) -> int | None:
    """People that Linkability is continued to: as configured, or ten times those enrolled."""
    if not people or legal.extrapolate is not None:
        return (legal.extrapolate or None) if people else None
    able = people >= law.LEAST_PEOPLE and not legal.side and "linkability" in legal.metrics
    return law.FAR * people if able else None


def legal_attackers(
    config: Config, path: Path
) -> tuple[dict[str, law.Attacker], dict[str, Any], tuple[Notice, ...]]:
    """Attackers of the config at ``path``, those within each release too, the options of their
    sweep, and who could not be run.

    The control has the first back-end; names begin with the safeguard where there are several.
    """
    work = Work(cache_of(path.with_suffix("")))
    inputs = read_inputs(config, work, base=path.resolve().parent)
    attacks, missing = attacks_of(config, inputs)
    if not attacks:
        raise InputError(f"{path}: expected original and protected voices to attack, found none")
    (control,), *others = attacks.values()
    attackers = {ORIGINAL: law.Attacker(control.data.enrol, control.data.test, release=False)}
    for attack in (attack for some in others for attack in some):
        prefix = "" if len(others) == 1 else f"{attack.safeguard}, "
        attackers |= {f"{prefix}{label}": one for label, one in _attackers(attack).items()}
    for name, released in inputs.released.items():
        prefix = "" if len(others) == 1 else f"{name}, "
        within = _within(replace(released, words=inputs.words), WITHIN)
        attackers |= {f"{prefix}{label}": attacker for label, attacker in within.items()}
        if inputs.words is not None:
            attackers[f"{prefix}{law.WORDS}"] = replace(attacks[name][0].data, backend=law.WORDS)
    lengths = law.fitting_lengths(attackers.values(), config.legal.lengths)
    options = _options(config, control.data.enrol.n_speakers) | {"lengths": lengths}
    lacking = tuple(
        Notice("attacker-not-run", name, f"the {who} attacker was {why}")
        for (name, who), why in missing.items()
    )
    return attackers, {**options, "attributes": config.legal.attributes}, lacking


def _within(released: law.Attacker, backends: Sequence[str]) -> dict[str, law.Attacker]:
    """The attack within a release by each of the back-ends, and by the first with words beside."""
    beside = (f"{backends[0]}{law.BESIDE}", law.NO_VOICE)
    every = (*backends, *beside) if released.words else backends
    # The length of a vector is learnt from names, which are not known from record to record.
    learns = any(not law.known_backend(one).is_free for one in backends)
    if learns and law.lengths_vary(released.enrol, released.test):
        every = (*every, law.LENGTH)
    return {f"{RELEASE} ({one})": replace(released, backend=one) for one in every}


def _by_record(released: law.Attacker) -> law.Attacker:
    """The attack within a release with one recording of each person enrolled, another in each
    choice; with one of a list where that says who enrols.
    """
    if not isinstance(released.split, law.ReleaseSplit):
        return released
    split = replace(released.split, parts=law.Parts.RECORDS)
    return replace(released, split=split, train=None)


def _attackers(attack: AttackRun) -> dict[str, law.Attacker]:
    return {attack.label(Variant(name)): attack.against(name) for name in attack.backends}


def _pairs(attacker: law.Attacker) -> int:
    return attacker.enrol.n_speakers * attacker.test.n_speakers


def _swept(attackers: dict[str, law.Attacker], by: str | None, **how: Any) -> law.LegalSweep:
    """The attacks on all and, where a column tells groups of the attacked people, on each."""
    sweep = law.assess_attackers(attackers, **how)
    with suppress(InputError):
        return law.risk_gaps(sweep, attackers, by or "", protocol=how["protocol"])
    return sweep


def _steps(study: Study) -> Plan:
    """Sweeps of each attacker and variant, inference, attacks within the release, words alone."""
    config, inputs = study.config, study.inputs
    if inputs.original is None or not study.attacks:
        return {}
    legal, sweeps, probes, release, words = config.legal, {}, {}, {}, {}
    for key, attack in study.every.items():
        how = _options(config, attack.data.enrol.n_speakers)
        how["lengths"] = _fitting(legal.lengths, [attack])
        sweeps[key] = Step(
            f"linkability and singling out of {attack.safeguard}, {attack.attacker}",
            attack.inputs,
            {**how, "backends": attack.backends, "by": config.verification.by},
            partial(_swept, _attackers(attack), config.verification.by, **how),
            weight=len(attack.backends)
            * len(how["lengths"])
            * (0.2 + 3.5e-4 * how["replicates"] + 3e-7 * _pairs(attack.data)),
        )
    for name, protected in inputs.protected.items():
        for attribute, bands in legal.attributes.items():
            how = {"unprotected": inputs.original, "attribute": attribute, "bands": bands}
            what = f"inference of {attribute} from {name}"
            probes[name, attribute] = Step.of(
                what, law.attribute_inference, protected, weight=2.0, **how, **config.drawn
            )
    within = WITHIN[:1] if config.quick else WITHIN
    nameless = tuple(one for one in within if law.known_backend(one).is_free)
    said = [] if inputs.words is None else [inputs.words.digest]
    held = {(name, KNOWN): study.attacks[name][0].data for name in inputs.protected}
    held |= {(name, RELEASE): attacker for name, attacker in inputs.released.items()}
    for (name, setting), one in held.items() if said else ():
        fits = law.fitting_lengths([one], legal.lengths)
        how = _options(config) | {"lengths": fits}
        sets = [x for x in (one.attacked, one.enrol, one.test, one.train) if x is not None]
        alone = {law.WORDS: replace(one, backend=law.WORDS, words=inputs.words)}
        compute = partial(law.assess_attackers, alone, **how)
        what = f"words alone of {name}, {setting}"
        words[name, setting] = Step(what, [*map(digest_of, sets), *said], how, compute)
    for name, told in inputs.released.items():
        released = replace(told, words=inputs.words)
        fits = law.fitting_lengths([released], legal.lengths)
        how = _options(config) | {"lengths": fits}
        one_each = replace(how["protocol"], linkability_enrol=1)
        single = how | {"protocol": one_each, "metrics": ("linkability",), "lengths": (1,)}
        held_here = released.attacked, released.enrol, released.test
        contents = [digest_of(voices) for voices in held_here]
        for what, backends, some in ((RELEASE, within, how), (RECORDS, nameless, single)):
            attacker = _by_record(released) if what == RECORDS else released
            rounds = len(attacker.rounds(seed=config.seed))
            release[name, what] = Step(
                f"{what} of {name}",
                [*said, *contents],
                {**some, "backends": backends, "rounds": rounds},
                partial(law.assess_attackers, _within(attacker, backends), **some),
                weight=len(some["metrics"])
                * len(backends)
                * len(some["lengths"])
                * rounds
                * (0.04 + 7e-5 * some["replicates"] + 1e-7 * _pairs(attacker)),
            )
    return {"sweeps": sweeps, "probes": probes, "release": release, "words": words}


FRAMEWORK = Framework("legal", steps=_steps, main="sweeps")
