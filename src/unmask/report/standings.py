"""How safeguards of which scores were given stand under each attacker: by set, sex, and on average
as the organisers of the challenges rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from unmask.assessment import (
    ATTACKERS,
    Stated,
    Study,
    TrialSet,
    convention_of,
    ranked_sets,
    shown_sets,
)
from unmask.base import FEW_SPEAKERS, few_speakers
from unmask.engine import CONVENTIONS, eer
from unmask.estimate import Estimate, Interval, Notice
from unmask.report.documents import Row
from unmask.report.headline import Card, Rows, find, numbers_of
from unmask.report.section import colours_of
from unmask.report.words import with_level
from unmask.trials import Scores

COMPARED = ("eer", "deid", "g_vd", "linkability")
"""Numbers of trials whose differences from the baseline are told."""
AVERAGED = (*COMPARED, "d_ece", "singling_out", *(f"{m}_difference" for m in COMPARED))
KEPT = ("eer", "eer_raw", "eer_challenge", "eer_stated", "eer_ranked", "d_ece", "l_w", "tag",
        *AVERAGED[1:4], *AVERAGED[5:])  # fmt: skip
MEAN = "mean"
_FROM = {"oo": (), "op": ("deid", "deid_difference"), "pp": ("g_vd", "g_vd_difference")}
"""Numbers of all three lists, by the list that they stand beside."""
AS_STATED = "as the tree's own files state it"


@dataclass(frozen=True)
class Standing:
    """A system under one attacker: numbers by set and metric (EER of a sex within a list of both as
    ``eer f`` and ``eer m``), whose speech each set is, and the weights of the sets that are ranked.
    """

    system: str
    attacker: str
    extractor: str
    part: str
    sets: Mapping[str, Mapping[str, Estimate]]
    people: Mapping[str, frozenset[str]]
    weights: Mapping[str, float]

    def mean(self, metric: str, chosen: Iterable[str] | None = None) -> Estimate | None:
        """The mean of a metric over the ranked sets, or those ``chosen``; None if one lacks it."""
        names = list(self.weights if chosen is None else chosen)
        found = [self.sets[name].get(metric) for name in names]
        estimates = [estimate for estimate in found if estimate is not None]
        if not names or len(estimates) < len(names):
            return None
        return mean(
            estimates,
            independent=self.apart(names),
            weights=[self.weights.get(name, 1.0) for name in names],
        )

    @property
    def corpora(self) -> set[str]:
        return {TrialSet.of(name).corpus for name in self.sets}

    def apart(self, names: Iterable[str]) -> bool:
        """Whether nobody is in two of the sets."""
        return all(not self.people[a] & self.people[b] for a, b in combinations(names, 2))

    def of_sex(self, sex: str) -> Estimate | None:
        """The mean EER of the lists of one sex; of that sex within lists of both, without such."""
        sets = shown_sets(self.sets)
        weights = ranked_sets(name for name, trial_set in sets.items() if trial_set.sex == sex)
        if not weights:
            return self.mean(f"eer {sex}")
        return replace(self, weights=weights).mean("eer")

    @property
    def rows(self) -> Iterator[Row]:
        """Every number under its conditions, the means last."""
        where = {"system": self.system, "trials": self.part.upper(), "attacker": self.attacker}
        for name, own in self.sets.items():
            for end in dict.fromkeys(key.partition(" ")[2] for key in own):
                some = [own[k] for m in KEPT if (k := f"{m} {end}".rstrip()) in own]
                yield Row({**where, "set": f"{name}, {end}" if end else name}, some)
        means = [estimate for estimate in map(self.mean, AVERAGED) if estimate is not None]
        if len(self.weights) > 1 and means:
            yield Row({**where, "set": f"{MEAN} of {', '.join(self.weights)}"}, means)


def standings(study: Study, rows: Rows) -> list[Standing]:
    """Every system under every attacker; systems in the order of the config, of each the attacker
    that is ranked first.
    """
    numbers: dict[tuple[str, str, str], dict[str, Estimate]] = {}
    for row in rows.get("verification", ()):
        where = row.conditions
        if "set" in where:
            own = numbers.setdefault((where["system"], where["attacker"], where["set"]), {})
            end = f" {where['group']}" if "group" in where else ""
            own |= {f"{estimate.metric}{end}": estimate for estimate in row.estimates}
    systems, ranks = list(study.inputs.safeguards), list(ATTACKERS)
    made: dict[tuple[int, int], Standing] = {}
    for system, given, part in study.lists.values():
        by, name, label = (given.extractor, part), given.set or "", given.label(system)
        own = numbers.get((system, ATTACKERS[by], name), {})
        if not own:
            continue
        own |= {
            rate.metric: Estimate(rate.metric, rate.value, "%", no_interval=AS_STATED)
            for rate in study.inputs.stated[system]
            if (rate.corpus, rate.part) == (label, part)
            or (rate.corpus, rate.part, rate.extractor) == (name, part, given.extractor)
        }
        own["eer_challenge"] = _by_rule(study.inputs.sets[label][part], getattr(given, part))
        beside = [find(rows.get("similarity", ()), m, safeguard=label)[:1] for m in _FROM[part]]
        own |= {match.estimate.metric: match.estimate for found in beside for match in found}
        empty = Standing(system, ATTACKERS[by], *by, {}, {}, {})
        standing = made.get(key := (systems.index(system), ranks.index(by)), empty)
        people = {**standing.people, name: _people(study.inputs.sets[label][part])}
        sets = {**standing.sets, name: own}
        made[key] = replace(standing, sets=sets, people=people, weights=ranked_sets(sets))
    return [made[key] for key in sorted(made)]


def mean(
    estimates: Sequence[Estimate], *, independent: bool, weights: Sequence[float] | None = None
) -> Estimate:
    """The mean of one metric over sets, with its interval.

    Of independent sets the distances from value to end add up in squares, the method of variance
    estimates recovery (Zou and Donner 2008): θ̄ − √(Σ wᵢ² (θᵢ − lᵢ)²), Σ wᵢ = 1; where sets share
    people they add up as they are, which no dependence exceeds.
    """
    first, size = estimates[0], len(estimates)
    if size == 1:
        return first
    values = np.array([float(e.value) for e in estimates])
    share = np.ones(size) if weights is None else np.array(weights)
    share = share / share.sum()
    average = float(share @ values)
    ends = [e.interval for e in estimates if e.interval is not None]
    interval = None
    if len(ends) == size and not any(np.isnan(e.low) for e in ends):
        below = share * (values - np.array([e.low for e in ends]))
        above = share * (np.array([e.high for e in ends]) - values)
        norm = 2 if independent else 1
        low, high = (float(np.linalg.norm(side, norm)) for side in (below, above))
        method = "mean of sets,variance recovery" if independent else "mean of sets,sum"
        interval = Interval(average - low, average + high, ends[0].level, method, 0, ends[0].seed)
    chances = np.array([e.chance or 0.0 for e in estimates])
    chance = None if first.chance is None else float(share @ chances)
    about: Any = {"n": {"sets": size}, "params": {"mean": "sets"}}
    about["no_interval"] = "" if interval is not None else first.no_interval or "a set has none"
    return Estimate(first.metric, average, first.unit, interval, chance, **about)


def ranked(protected: Sequence[Standing]) -> list[Standing]:
    """Each system under the attacker that is ranked: the best informed one."""
    first: dict[str, Standing] = {}
    for standing in protected:
        first.setdefault(standing.system, standing)
    return list(first.values())


def conclusions(study: Study, rows: Rows, every: Sequence[Standing]) -> list[Card]:
    """What to conclude of each system, over its sets, under the attacker that finds most, the worst
    first; of a single set also what the sections say of it.
    """
    made: list[tuple[float, Card]] = []
    known = {safeguard.name: safeguard for safeguard in study.config.safeguards}
    for chosen in ranked([standing for standing in every if standing.part != "oo"]):
        own = [
            (standing, rate)
            for standing in every
            if standing.system == chosen.system and (rate := standing.mean("eer"))
        ]
        tried = [(standing, rate) for standing, rate in own if standing.part != "oo"]
        if not tried:
            continue
        strong, rate = min(tried, key=lambda pair: float(pair[1].value))
        over = f", mean of {len(strong.weights)} sets" if len(strong.weights) > 1 else ""
        said = [f"Attacker: {strong.attacker}; 50 % is chance."]
        said += [f"Unprotected speech: {with_level(r)}." for one, r in own if one.part == "oo"][:1]
        if linked := strong.mean("linkability"):
            said.append(f"Linkability: {with_level(linked)}.")
        few = few_speakers(
            min(filter(None, map(len, strong.people.values())), default=FEW_SPEAKERS)
        )
        notices = [Notice("few-speakers", chosen.system, few)] if few else []
        verdict, of = f"Equal error rate {with_level(rate)}{over}", known[chosen.system]
        alone = [given.label(of.name) for given in of.scores if len(of.scores) == 1]
        numbers = [number for label in alone for number in numbers_of(rows, label)]
        about: Any = {"numbers": numbers, "notices": notices, "colour": colours_of(study)[of.name]}
        made.append((float(rate.value), Card(of.name, of.description, verdict, said, **about)))
    return [card for _, card in sorted(made, key=lambda one: one[0])]


def result_for_rank(every: Sequence[Standing], stated: Sequence[Stated], date: str | None) -> str:
    """The numbers of one system in the form of the challenges' file of that name: EERs computed
    here by the challenge's own rule, word error rates and recalls as the tree states them.
    """
    kinds = {"o": "original", "p": "anon"}
    blocks: dict[str, list[tuple[str, ...]]] = {}
    for name, metric in (("SER", "uar"), ("ASR", "wer")):
        blocks[name] = [("dataset", "split", name.lower(), metric.upper())]
        blocks[name] += sorted(
            (rate.corpus, rate.split, kinds[rate.part[1]], f"{100 * rate.value:.3f}")
            for rate in stated
            if rate.metric == metric
        )
    for name, extractor in (("ASV_eval", "given"), ("ASV_eval^anon", "trained")):
        blocks[name] = [("dataset", "split", "gender", "enrollment", "trial", "EER")]
        blocks[name] += sorted(
            (
                *(of.corpus, of.split, "_".join(filter(None, of[2:]))),
                *(kinds[letter] for letter in standing.part),
                f"{100 * float(own['eer_challenge'].value):.3f}",
            )
            for standing in every
            if standing.extractor == extractor and (extractor == "given" or standing.part == "pp")
            for of, own in ((TrialSet.of(of_set), own) for of_set, own in standing.sets.items())
        )
    lines = [f"---- Time: {date or 'not told'} ----"]
    for name, rows in blocks.items():
        if len(rows) > 1:
            wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += ["", f"---- {name} results ----"]
            lines += [" ".join(map(str.rjust, row, wide)) for row in rows]
    return "\n".join(lines) + "\n"


def _by_rule(scores: Scores, path: Path) -> Estimate:
    """The EER as the code of the challenge computes it that wrote a score file."""
    rule = convention_of(path)
    value = eer(scores.targets(), scores.nontargets(), estimator=CONVENTIONS[rule]["eer"])
    about: Any = {"chance": 0.5, "n": scores.counts, "params": {"convention": rule}}
    return Estimate(
        "eer_challenge", value, "%", no_interval="see EER", trials=scores.digest, **about
    )


def _people(scores: Scores) -> frozenset[str]:
    if scores.enrol_speaker is None or scores.test_speaker is None:
        return frozenset()
    sides = (scores.enrol_speaker, scores.test_speaker)
    return frozenset(name for ids in sides for name in ids.present)
