"""Are the trained attackers to be trusted? Controls, held-out people and learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unmask import figures as charts
from unmask.estimate import Estimate, Notice, Noticed
from unmask.privacy import legal as law
from unmask.report.cache import Step, digest_of
from unmask.report.config import ORIGINAL
from unmask.report.documents import Row
from unmask.report.extractors import Speech
from unmask.report.frameworks.attacks import AttackRun
from unmask.report.frameworks.study import Framework, Plan, Results, Study, strongest
from unmask.report.headline import residual
from unmask.report.inputs import Inputs
from unmask.report.section import Choice, Section, TableBlock, note, shown
from unmask.trials import Embeddings

_OVERFIT = 0.1
_WEAK = {"unprotected": "weak-control", "own_run": "weak-own-run"}
"""Controls at which an attacker must succeed, and the code of what it means where it does not."""


@dataclass(frozen=True, eq=False)
class Trusted(Noticed):
    """What a trained attacker reaches where it should succeed, and on people it never saw.

    ``controls`` are Linkability by what is attacked: ``unprotected`` speech, ``own_run`` (speech of
    the attacker's own run, enrolled from the same run), ``unseen`` people, and people that it was
    trained on, ``seen``.
    """

    safeguard: str
    attacker: str
    backend: str
    controls: Mapping[str, Estimate]
    curve: law.LearningCurve

    @property
    def label(self) -> str:
        """Attacker and back-end."""
        return f"{self.attacker} ({self.backend})"

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What stands against believing a low risk of this attacker."""
        sentences = []
        for name, code in _WEAK.items():
            control = self.controls.get(name)
            if control is not None and not residual(control) >= law.STRONG_ENOUGH:
                sentences.append((code, note(code, linked=shown(control, 1, scale=100))))
        seen, unseen = self.controls.get("seen"), self.controls["unseen"]
        if seen is not None and seen.interval is not None and unseen.interval is not None:
            apart = float(seen.value) - float(unseen.value)
            if apart > _OVERFIT and seen.interval.low > unseen.interval.high:
                linked, others = (shown(one, 1, scale=100) for one in (seen, unseen))
                sentences.append(("overfitted", note("overfitted", linked=linked, others=others)))
        sentences += [(notice.code, notice.sentence) for notice in self.curve.notices]
        return tuple(Notice(code, f"{self.safeguard}, {self.label}", s) for code, s in sentences)


def trusted(
    attack: AttackRun, backend: str, inputs: Inputs, speech: Speech, *, level: float, seed: int
) -> Trusted:
    """Controls and learning curve of an attack with one of its back-ends.

    ``speech`` is all that its attacker holds through its extractor.
    """
    attacker = attack.against(backend)
    if speech.shares or law.known_backend(backend).is_free:
        series = {speech.people: [attacker]}
        for part in speech.shares.values():
            own = attack.enrols_own and "own" in part.known
            enrol = inputs.enrolment(part.known["own" if own else "original"])
            train = law.pooled(list(part.learnt.values()))
            sides = enrol, inputs.attacked(part.protected)
            fewer = law.Attacker(*sides, backend, train, release=False)
            series[part.people] = [fewer]
        best, seen = attacker, None
    else:
        series = law.on_fewer(attacker, seed=seed)
        best = series[max(series)][0]
        people = set(best.test.speakers.to_series())
        trained = attacker.train
        assert trained is not None
        if people & set(trained.speakers.to_series()):
            seen = attacker.among(people).trained_on(people)
        else:
            known = [inputs.enrolment(one) for one in speech.known.values()]
            seen = replace(best, train=law.pooled(known)) if backend in ("wccn", "plda") else None
    curve = law.learning_curve(dict(sorted(series.items())), level=level)
    people = set(best.test.speakers.to_series())

    def beside(speech_of: Embeddings) -> law.Attacker:
        """The same back-end, one set on both sides."""
        enrol, test = inputs.enrolment(speech_of), inputs.attacked(speech_of)
        return replace(best, enrol=enrol, test=test).among(people)

    tried = {"unseen": best, "unprotected": beside(speech.known["original"])}
    if "own" in speech.known:
        tried["own_run"] = beside(speech.known["own"])
    if seen is not None:
        tried["seen"] = seen
    elif "own" in speech.learnt and not law.known_backend(backend).apart:
        first, second = law.every_second(speech.learnt["own"])
        if first.n_speakers >= curve.candidates:
            tried["seen"] = replace(best, enrol=first, test=second).without_versions()
    controls = {}
    for name, one in tried.items():
        estimate = law.linked(one, candidates=curve.candidates).estimate(0)
        controls[name] = replace(estimate, metric=f"linkability_{name}")
    return Trusted(attack.safeguard, attack.attacker, backend, controls, curve)


def _held(speech: Speech) -> list[str]:
    """What an attacker holds, with its part in the attack, by content."""
    sets = {"known": speech.known, "learnt": speech.learnt, "": {"protected": speech.protected}}
    held = [f"{part} {n} {digest_of(x)}" for part, some in sets.items() for n, x in some.items()]
    shares = [f"{n} {one}" for n, part in speech.shares.items() for one in _held(part)]
    return [f"{speech.people} people", *held, *shares]


def _later(study: Study) -> Plan:
    """Each trained attacker with its strongest trained back-end."""
    how: dict[str, Any] = {"level": study.config.intervals.level, "seed": study.config.seed}
    steps = {}
    for (name, who), attack in study.every.items():
        if name == ORIGINAL:
            continue
        extractor = study.inputs.trained.get((name, who))
        speech = extractor or study.inputs.speech[name]
        variants = [
            one
            for one in study.trialled.get(name, ())
            if one.attacker == who
            and not one.variant.by
            and (extractor or not law.known_backend(one.variant.backend).is_free)
        ]
        if variants:
            backend = strongest(variants, "eer").variant.backend
            data, params = [*attack.inputs, *_held(speech)], {**how, "backend": backend}
            compute = partial(trusted, attack, backend, study.inputs, speech, **how)
            steps[name, who] = Step(f"learning curve of {who} on {name}", data, params, compute)
    return {"trusted": steps}


def _section(study: Study, results: Results) -> Section:
    """What trained attackers reach where they must succeed, and how they learn."""
    attackers: Mapping[tuple[str, str], Trusted] = results["trusted"]
    curves_of: dict[str, dict[str, law.LearningCurve]] = {}
    for (name, _), one in attackers.items():
        curves_of.setdefault(name, {})[one.label] = one.curve
    drawn = {name: charts.learning_curves(some) for name, some in curves_of.items()}
    panels = Choice.of("Learning curves on", "learning_curves", drawn)
    rows, curves = [], []
    for one in attackers.values():
        where = {"safeguard": one.safeguard, "attacker": one.label}
        rows.append(Row(where, list(one.controls.values())))
        curves += [
            Row({**where, "people trained on": str(estimate.params["trained_on"])}, [estimate])
            for estimate in one.curve.estimates
        ]
    rising = [one for one in attackers.values() if one.curve.verdict == "rises"]
    answer = [
        f"{one.safeguard}, {one.label}: {notice.sentence}."
        for one in rising
        for notice in one.curve.notices
    ]
    steady = sum(one.curve.verdict == "steady" for one in attackers.values())
    answer.append(note("curves", every=len(attackers), rising=len(rising), steady=steady))
    tables = [
        TableBlock("What trained attackers reach", rows, note=note("controls")),
        TableBlock("Learning curves", curves, folded=True),
    ]
    notices = [notice for one in attackers.values() for notice in one.notices]
    return Section("trust", answer, [panels], tables, notices)


FRAMEWORK = Framework("trust", _section, later=_later, trials=True, main="trusted")
