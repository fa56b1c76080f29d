"""One table of an assessment: systems × sets down, the numbers of all frameworks across."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from unmask.assessment import ORIGINAL, Config, set_label
from unmask.estimate import Estimate, Interval
from unmask.privacy.similarity import GIVEN
from unmask.report.documents import Document, Row
from unmask.report.headline import WORST, Match, Rows, find, largest
from unmask.report.table import MODELS
from unmask.trials import Scores

COLUMNS = ("eer", "d_ece", "l_w", "tag", "deid", "g_vd", "linkability", "singling_out")
AVERAGED = ("eer", "d_ece", "deid", "g_vd", "linkability", "singling_out")
ALL = "mean of all sets"
STRONGEST, MORE = "strongest", ("trials", "attacker")
_GENDER = re.compile(r"(?:^|[_-])(f|m)(?:$|[_-])")
_FROM = {"deid": "OP", "g_vd": "PP"}
"""Which trials a number of all three lists stands beside."""


def overview(config: Config, rows: Rows, tables: Mapping[str, Scores]) -> Document:
    """The table, from the ``rows`` of all sections by framework and the score ``tables``.

    Safeguards of which scores were given have a row for each set and each list OO, OP, PP, and the
    averages over sets: all, and those of women and of men where names of sets end in f or m.
    Safeguards of which voices were given have a row of enrolled models, the strongest attack on
    each number, and two of utterance pairs, the plain score and the strongest. Score tables have a
    row for each system.
    """
    notes: list[str] = []
    voices = [one.name for one in config.safeguards if one.given and not one.hidden]
    named = (ORIGINAL, *voices) if voices else ()
    models = [row for name in named for row in _strongest(name, rows)]
    pairs = [row for name in named for row in _pairs(name, rows)]
    made: list[Row] = []
    for one in config.safeguards:
        labels = {set_label(one.name, given.set): given.set or "" for given in one.scores}
        parts = [row for label in labels for row in _of_set(one.name, label, labels[label], rows)]
        made += parts
        people = {of_set: _people(tables.get(label)) for label, of_set in labels.items()}
        made += _averages(one.name, parts, people, notes)
    own = tuple(set_label(s.name, given.set) for s in config.safeguards for given in s.scores)
    for row in rows.get("verification", ()):
        table = row.conditions.get("table", "")
        whole = "group" not in row.conditions and any(e.metric == "eer" for e in row.estimates)
        if table and whole and not table.startswith(own):
            where = {"system": row.conditions["system"], "set": table, "trials": ""}
            made.append(Row({**where, "attacker": GIVEN}, _ordered(row.estimates)))
    links = (e.params.get("count") for row in made for e in row.estimates if _is_link(e))
    counts = sorted({int(count) for count in links if count is not None})
    best, plain = (
        [row for row in pairs if row.conditions["attacker"].startswith(STRONGEST) == one]
        for one in (True, False)
    )
    used = [name for name in ("set", "trials") if any(row.conditions[name] for row in made)]
    apart = ((models, MORE), (best, MORE), (plain, MORE), (made, used))
    shown = [[_only(row, ("system", *names)) for row in some] for some, names in apart]
    kept = [_only(row, tuple(row.conditions)) for row in (*models, *pairs, *made)]
    if counts:
        span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        notes.insert(0, f"Linkability among all enrolled speakers of a set (N′ = {span})")
        lone = [row for row in made if any(map(_is_link, row.estimates))]
        if not all(any(e.metric == "singling_out" for e in row.estimates) for row in lone):
            notes.append("Singling Out needs two recordings of each speaker that is tested")
    about: Any = {"notes": list(dict.fromkeys(notes)), "tables": shown}
    return Document(kept, seed=config.seed, title=config.title, **about)


def _only(row: Row, names: Sequence[str]) -> Row:
    """The row under some of its conditions, and its numbers without what made them."""
    where = {name: row.conditions[name] for name in names}
    return Row(where, [replace(e, params={}, no_interval="") for e in row.estimates])


def _of_set(system: str, label: str, name: str, rows: Rows) -> Iterator[Row]:
    for part in ("OO", "OP", "PP"):
        estimates = [
            estimate
            for table in (label, f"{label} {part}")
            for row in rows.get("verification", ())
            if row.conditions.get("table") == table
            and row.conditions.get("system") == part
            and "group" not in row.conditions
            for estimate in row.estimates
        ]
        estimates += [
            match.estimate
            for metric, where in _FROM.items()
            if where == part
            for match in find(rows.get("similarity", ()), metric, safeguard=label)[:1]
        ]
        if estimates:
            where = {"system": system, "set": name, "trials": part, "attacker": GIVEN}
            yield Row(where, _ordered(estimates))


def _strongest(name: str, rows: Rows) -> Iterator[Row]:
    """The numbers of the strongest attack on a safeguard of which voices were given."""

    def matches(key: str, metric: str, **more: str) -> list[Match]:
        return find(rows.get(key, ()), metric, safeguard=name, **more)

    tried = matches("verification", "eer")
    chosen = sorted(tried, key=lambda match: float(match.estimate.value))[:1]
    evidence = largest(matches("zebra", "d_ece"))
    if evidence is not None:
        chosen.append(evidence)
        for metric in ("l_w", "tag"):
            chosen += matches("zebra", metric, attacker=evidence.attacker)[:1]
    for metric in ("linkability", "singling_out"):
        worst = largest(matches("legal", metric, point=WORST))
        chosen += [worst] if worst else []
    if chosen:
        attacker = f"{STRONGEST} of {len(tried)}" if tried else STRONGEST
        where = {"system": name, "set": "", "trials": MODELS, "attacker": attacker}
        yield Row(where, _ordered([match.estimate for match in chosen]))


def _pairs(name: str, rows: Rows) -> Iterator[Row]:
    """DeID of the plain score and G_VD, then DeID of the strongest attack."""
    for metrics in (("deid", "g_vd"), ("deid_strongest",)):
        some = [find(rows.get("similarity", ()), m, safeguard=name)[:1] for m in metrics]
        found = [match for matches in some for match in matches]
        if found:
            where = {n: found[0].conditions[n] for n in ("trials", "attacker")}
            yield Row({"system": name, "set": "", **where}, [match.estimate for match in found])


def _averages(
    system: str, rows: Sequence[Row], people: Mapping[str, frozenset[str]], notes: list[str]
) -> Iterator[Row]:
    """Means over the sets of women, of men, and of all, for each list of trials."""
    names = list(dict.fromkeys(row.conditions["set"] for row in rows))
    letters = {name: sign[1] for name in names if (sign := _GENDER.search(name))}
    groups = {f"mean of {sex}": [n for n in names if letters.get(n) == sex] for sex in "fm"}
    groups[ALL] = names
    for title, chosen in groups.items():
        if len(chosen) < 2:
            continue
        apart = all(not people[a] & people[b] for a, b in combinations(chosen, 2))
        notes.append(
            "Intervals of means take sets of different people as independent"
            if apart
            else "Sets of a mean share people: its intervals add up, as if they erred together"
        )
        for part in dict.fromkeys(row.conditions["trials"] for row in rows):
            members = [
                {e.metric: e for e in row.estimates}
                for row in rows
                if row.conditions["trials"] == part and row.conditions["set"] in chosen
            ]
            means = [
                mean([one[metric] for one in members], independent=apart)
                for metric in AVERAGED
                if all(metric in one for one in members)
            ]
            if means and len(members) == len(chosen):
                where = {"system": system, "set": title, "trials": part, "attacker": GIVEN}
                yield Row(where, tuple(means))


def mean(estimates: Sequence[Estimate], *, independent: bool) -> Estimate:
    """The mean of one metric over sets, with its interval.

    Of independent sets the distances from value to end add up in squares, the method of variance
    estimates recovery (Zou and Donner 2008): θ̄ − √(Σ (θᵢ − lᵢ)²)/k; where sets share people they
    add up as they are, which no dependence exceeds.
    """
    values = np.array([float(e.value) for e in estimates])
    first, size, average = estimates[0], len(estimates), float(values.mean())
    ends = [e.interval for e in estimates if e.interval is not None]
    interval = None
    if len(ends) == size and not any(np.isnan(e.low) for e in ends):
        below = values - np.array([e.low for e in ends])
        above = np.array([e.high for e in ends]) - values
        norm = 2 if independent else 1
        reach = [float(np.linalg.norm(side, norm)) / size for side in (below, above)]
        low, high = average - reach[0], average + reach[1]
        method = "mean of sets,variance recovery" if independent else "mean of sets,sum"
        interval = Interval(low, high, ends[0].level, method, 0, ends[0].seed)
    chances = [e.chance or 0.0 for e in estimates]
    chance = None if first.chance is None else float(np.mean(chances))
    about: Any = {"n": {"sets": size}, "params": {"mean": "sets"}}
    about["no_interval"] = "" if interval is not None else "a set has none"
    return Estimate(first.metric, average, first.unit, interval, chance, **about)


def _people(scores: Scores | None) -> frozenset[str]:
    if scores is None or scores.enrol_speaker is None or scores.test_speaker is None:
        return frozenset()
    sides = (scores.enrol_speaker, scores.test_speaker)
    return frozenset(name for ids in sides for name in ids.names.gather(ids.used))


def _ordered(estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
    by_name = {e.metric: e for e in reversed(estimates)}
    return tuple(by_name[metric] for metric in COLUMNS if metric in by_name)


def _is_link(estimate: Estimate) -> bool:
    return estimate.metric == "linkability" and "variant" in estimate.params
