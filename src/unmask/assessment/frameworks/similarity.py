"""Voice similarity matrices of every safeguard (Noé 2020, 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from unmask.assessment.attacks import matrix_attackers, pairs_of
from unmask.assessment.cache import Step, digest_of
from unmask.assessment.splits import counterpart
from unmask.assessment.study import Framework, Plan, Study, drawn_people
from unmask.estimate import Notice
from unmask.privacy import similarity as similar
from unmask.privacy.legal import Attacker, of_people
from unmask.scoring import backend_named
from unmask.stress import sex_column
from unmask.trials import Embeddings, Ids


def _steps(study: Study) -> Plan:
    """The three matrices of each safeguard, of all and of each group; sessions where named."""
    inputs, config = study.inputs, study.config
    how = {"mean": config.similarity.mean, **config.drawn}
    all_pairs = {**how, "pairs": config.similarity.pairs}
    matrices, grouped, within, anew, apart = {}, {}, {}, {}, {}
    for name, protected in inputs.protected.items():
        assert inputs.original is not None
        voices = (counterpart(inputs.original, protected), protected)
        rivals = matrix_attackers(config, inputs, name)
        if protected.n_speakers > config.similarity.max_people:
            people = drawn_people(voices, config.similarity.max_people, config.seed)
            voices = of_people(voices[0], people), of_people(voices[1], people)
            rivals = {label: attacker.among(people) for label, attacker in rivals.items()}
        matrices[name] = _compared(f"voice similarity of {name}", voices, rivals, all_pairs)
        speech = inputs.speech[name]
        taught = pairs_of(speech.learnt) or (voices[0], speech.known.get("own", protected))
        if taught[1].n_speakers >= similar.LEAST_PEOPLE:
            what = f"distinctiveness of {name}, back-end retrained"
            anew[name] = Step.of(what, similar.retrained, *voices, *taught, **how)
        by, groups = _groups(voices[0], config.verification.by)
        if groups and not config.quick:
            options = {**all_pairs, **config.of_trials}
            grouped[name] = _by_group(name, by, groups, voices, rivals, options)
        if protected.sessions is not None and protected.sessions.n_unique > 1:
            within[name] = Step.of(
                f"sessions of {name}", _over_sessions, *voices, weight=2.0, **how
            )
    whole = {
        name: tuple(sets[part] for part in ("oo", "op", "pp"))
        for name, sets in inputs.sets.items()
        if len(sets) == 3
    }
    for name, scores in whole.items():
        what, of = f"voice similarity of {name}", similar.pseudonymisation
        matrices[name] = Step.of(what, of, *scores, weight=2.0, **all_pairs)
        other = study.beside_baseline.get(name)
        if other is not None and other in whole:
            what = f"voice similarity of {name} against {config.table.baseline}"
            lists = (*whole[other], *scores)
            function = similar.safeguard_differences
            apart[name] = Step.of(what, function, *lists, weight=4.0, **all_pairs)
    plan: Plan = {"matrices": matrices, "groups": grouped, "sessions": within}
    return {**plan, "retrained": anew, "differences": apart}


def _over_sessions(
    original: Embeddings, protected: Embeddings, **how: Any
) -> similar.SessionAssessment:
    """Sessions of those people who have two, and two recordings in one of them. Where every session
    is of one person, the first, the second … of each are compared, by name.
    """
    assert protected.sessions is not None
    named = {"who": protected.speakers.to_series(), "session": protected.sessions.to_series()}
    rows, notes = pl.DataFrame(named), []
    if rows.unique()["session"].is_unique().all():
        rows = rows.with_columns(pl.col("session").rank("dense").over("who").cast(pl.String))
        sentence = "each session is of one person: the first, the second … of each are compared"
        notes.append(Notice("sessions-numbered", "sessions", sentence, "note"))
    counts = rows.group_by("who", "session").len(name="said").group_by("who")
    able = counts.agg(pl.len(), pl.max("said")).filter(pl.min_horizontal("len", "said") > 1)["who"]
    if lacking := rows["who"].n_unique() - len(able):
        sentence = f"{lacking:,} people without two sessions, or two recordings in one, left out"
        notes.append(Notice("left-out", "sessions", sentence))
    protected = replace(protected, sessions=Ids.from_strings(rows["session"]))
    sets = (of_people(voices, able.to_list()) for voices in (original, protected))
    made = similar.compare_sessions(*sets, **how)
    return replace(made, notes=(*made.notes, *notes))


def _compared(
    what: str,
    voices: tuple[Embeddings, Embeddings],
    rivals: Mapping[str, Attacker],
    how: Mapping[str, Any],
) -> Step:
    people = voices[1].n_speakers
    held = [x for one in rivals.values() for x in (one.enrol, one.test, one.train) if x]
    said = {attacker.words.digest for attacker in rivals.values() if attacker.words is not None}
    return Step(
        what,
        [*(digest_of(vectors) for vectors in (*voices, *held)), *said],
        {**how, "attackers": list(rivals), "backends": [one.backend for one in rivals.values()]},
        partial(_compare, *voices, attackers=rivals, **how),
        weight=(1 + len(rivals)) / 3 * (1 + how["replicates"] * (2e-3 + 1.5e-4 * people))
        + 3e-7 * len(voices[0]) * len(voices[1]),
    )


def _by_group(
    name: str,
    by: str,
    groups: Mapping[str, set[str]],
    voices: tuple[Embeddings, Embeddings],
    rivals: Mapping[str, Attacker],
    how: Mapping[str, Any],
) -> Step:
    """The step that assesses a safeguard in each group of people."""
    whole = _compared(f"voice similarity of {name} by {by}", voices, rivals, how)
    compute = partial(_compare_groups, *voices, groups, name, by, rivals, how)
    told = {**whole.params, "groups": {one: sorted(some) for one, some in groups.items()}}
    return replace(whole, params=told, compute=compute, weight=2 * whole.weight)


def _compare_groups(
    original: Embeddings,
    protected: Embeddings,
    groups: Mapping[str, set[str]],
    name: str,
    by: str,
    rivals: Mapping[str, Attacker],
    how: Mapping[str, Any],
) -> similar.GroupedPseudonymisation:
    """A safeguard in each group, without those sets that no report shows."""
    made = similar.by_group(
        original,
        protected,
        groups,
        system=name,
        by=by,
        backend=backend_named("cosine"),
        attackers=rivals,
        setup=similar.Setup(**how),
    )
    return replace(made, results={group: _shown(one) for group, one in made.results.items()})


def _shown(made: similar.Pseudonymisation) -> similar.Pseudonymisation:
    """A result without the sets of other attackers."""
    return replace(made, sets={name: made.sets[name] for name in ("oo", "op", "pp")})


def _compare(*voices: Embeddings, **how: Any) -> similar.Pseudonymisation:
    """The matrices, without those sets of other attackers that no report shows."""
    return _shown(similar.pseudonymisation(*voices, **how))


def _groups(speech: Embeddings, by: str | None) -> tuple[str, dict[str, set[str]]]:
    """The column by which people are grouped, or their sex; no groups where it tells none."""
    named = by if by in speech.columns else sex_column(speech)
    if named is None:
        return "", {}
    told = zip(speech.columns[named].to_series(), speech.speakers.to_series(), strict=True)
    groups: dict[str, set[str]] = {}
    for value, speaker in told:
        groups.setdefault(f"{named} {value}", set()).add(speaker)
    several = sum(map(len, groups.values())) > speech.n_speakers or len(groups) < 2
    return named, {} if several else dict(sorted(groups.items()))


FRAMEWORK = Framework("similarity", steps=_steps, main="matrices")
