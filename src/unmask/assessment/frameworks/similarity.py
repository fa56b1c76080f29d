"""Voice similarity matrices of every safeguard (Noé 2020, 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from unmask.assessment.attacks import matrix_attackers
from unmask.assessment.cache import Step, digest_of
from unmask.assessment.splits import counterpart
from unmask.assessment.study import Framework, Plan, Study
from unmask.privacy import similarity as similar
from unmask.privacy.legal import Attacker, of_people
from unmask.stress import sex_column
from unmask.trials import Embeddings


def _steps(study: Study) -> Plan:
    """The three matrices of each safeguard, of all and of each sex (or of each group by which
    verification goes); sessions where protected utterances name theirs.
    """
    inputs, config = study.inputs, study.config
    how = {"mean": config.similarity.mean, **config.drawn}
    all_pairs = {**how, "pairs": config.similarity.pairs}
    matrices, grouped, within = {}, {}, {}
    for name, protected in inputs.protected.items():
        assert inputs.original is not None
        voices = (counterpart(inputs.original, protected), protected)
        rivals = matrix_attackers(config, inputs, name)
        matrices[name] = _compared(f"voice similarity of {name}", voices, rivals, all_pairs)
        groups = {} if config.quick else _groups(voices[0], config.verification.by)
        for group, people in groups.items():
            some = of_people(voices[0], people), of_people(voices[1], people)
            among = {label: one.among(people) for label, one in rivals.items()}
            what = f"voice similarity of {name}, {group}"
            grouped[name, group] = _compared(what, some, among, {**all_pairs, **config.of_trials})
        if protected.sessions is not None and protected.sessions.n_unique > 1:
            within[name] = Step.of(
                f"sessions of {name}", similar.compare_sessions, *voices, weight=2.0, **how
            )
    for name, sets in inputs.sets.items():
        scores = [sets[part] for part in ("oo", "op", "pp") if part in sets]
        if len(scores) == 3:
            what, of = f"voice similarity of {name}", similar.pseudonymisation
            matrices[name] = Step.of(what, of, *scores, weight=2.0, **all_pairs)
    return {"matrices": matrices, "groups": grouped, "sessions": within}


def _compared(
    what: str,
    voices: tuple[Embeddings, Embeddings],
    rivals: Mapping[str, Attacker],
    how: Mapping[str, Any],
) -> Step:
    people = voices[1].n_speakers
    held = [x for one in rivals.values() for x in (one.enrol, one.test, one.train) if x]
    return Step(
        what,
        [digest_of(one) for one in (*voices, *held)],
        {**how, "attackers": list(rivals), "backends": [one.backend for one in rivals.values()]},
        partial(similar.pseudonymisation, *voices, attackers=rivals, **how),
        weight=(1 + len(rivals)) / 3 * (1 + how["replicates"] * (2e-3 + 1.5e-4 * people))
        + 3e-7 * len(voices[0]) * len(voices[1]),
    )


def _groups(speech: Embeddings, by: str | None) -> dict[str, set[str]]:
    """People by a column, that of the sex where it is not there; none where a column does not tell
    people apart, or has two values for one.
    """
    named = by if by in speech.columns else sex_column(speech)
    if named is None:
        return {}
    told = zip(speech.columns[named].to_series(), speech.speakers.to_series(), strict=True)
    groups: dict[str, set[str]] = {}
    for value, speaker in told:
        groups.setdefault(f"{named} {value}", set()).add(speaker)
    several = sum(map(len, groups.values())) > speech.n_speakers or len(groups) < 2
    return {} if several else dict(sorted(groups.items()))


FRAMEWORK = Framework("similarity", steps=_steps, main="matrices")
