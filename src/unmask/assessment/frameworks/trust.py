"""Controls, held-out people and learning curves of trained attackers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unmask.assessment.attacks import AttackRun
from unmask.assessment.cache import Step, digest_of
from unmask.assessment.config import ORIGINAL
from unmask.assessment.inputs import Inputs
from unmask.assessment.runs import Speech
from unmask.assessment.study import Framework, Plan, Study, strongest
from unmask.estimate import Estimate
from unmask.privacy import legal as law
from unmask.trials import Embeddings


@dataclass(frozen=True, eq=False)
class Trusted:
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
        people = set(best.test.speakers.present)
        trained = attacker.train
        assert trained is not None
        if people & set(trained.speakers.present):
            seen = attacker.among(people).trained_on(people)
        else:
            known = [inputs.enrolment(voices) for voices in speech.known.values()]
            seen = replace(best, train=law.pooled(known)) if backend in ("wccn", "plda") else None
    curve = law.learning_curve(dict(sorted(series.items())), level=level)
    people = set(best.test.speakers.present)

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
        first, second = law.halves_by_content(speech.learnt["own"], seed)
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
            tried
            for tried in study.trialled.get(name, ())
            if tried.attacker == who
            and not (tried.variant.by or tried.variant.backend.endswith(law.BESIDE))
            and tried.variant.backend != law.LENGTH
            and (extractor or not law.known_backend(tried.variant.backend).is_free)
        ]
        if variants:
            backend = strongest(variants, "eer").variant.backend
            data, params = [*attack.inputs, *_held(speech)], {**how, "backend": backend}
            compute = partial(trusted, attack, backend, study.inputs, speech, **how)
            steps[name, who] = Step(f"learning curve of {who} on {name}", data, params, compute)
    return {"trusted": steps}


FRAMEWORK = Framework("trust", later=_later, trials=True, main="trusted")
