"""One table of an assessment: systems down, the numbers of all frameworks across."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from unmask.assessment import (
    CONDITIONS,
    ORIGINAL,
    UNPROTECTED,
    Study,
    TableConfig,
    TrialSet,
    convention_of,
    shown_sets,
)
from unmask.estimate import Estimate
from unmask.privacy.similarity import GIVEN
from unmask.report.documents import Document, Row
from unmask.report.headline import WORST, Match, Rows, find, largest, listed
from unmask.report.standings import AS_STATED, COMPARED, Standing, mean, ranked
from unmask.report.table import LABELS, MODELS, label, shown_value
from unmask.report.words import note, with_level

COLUMNS = ("eer", "d_ece", "l_w", "tag", "deid", "g_vd", "linkability", "singling_out",
           "wer", "dnsmos_ovrl")  # fmt: skip
_STATED = {"eer_stated": "the tree's files", "eer_ranked": "the result file"}
_ALIKE = 0.005
"""EERs that differ by at most half a point may be of one list by two rules of interpolation."""
STRONGEST, MORE = "strongest", ("trials", "attacker")
ATTACKERS = "attackers"
MOST_SETS = 4


def overview(study: Study, rows: Rows, every: Sequence[Standing]) -> Document:
    """The table, from the ``rows`` of all sections by framework and what systems have by attacker.

    Safeguards of which scores were given have a row each, as the config's ``table`` says; every
    set, list and attacker stands in ``rows``. Safeguards of which voices were given have a row of
    enrolled models, the strongest attack on each number, and two of utterance pairs, the plain
    score and the strongest. Score tables have a row for each system.
    """
    config = study.config
    named = (ORIGINAL, *config.voices) if config.voices else ()
    models = [row for name in named for row in _strongest(name, rows)]
    pairs = [row for name in named for row in _pairs(name, rows)]
    made = []
    for row in rows.get("verification", ()):
        table = row.conditions.get("table", "")
        whole = "group" not in row.conditions and any(e.metric == "eer" for e in row.estimates)
        if table and whole:
            where = {"system": row.conditions["system"], "set": table, "trials": ""}
            made.append(Row({**where, "attacker": GIVEN}, _ordered(row.estimates)))
    best, plain = (
        [row for row in pairs if row.conditions["attacker"].startswith(STRONGEST) == one]
        for one in (True, False)
    )
    apart = ((models, MORE), (best, MORE), (plain, MORE), (made, ("set",)))
    shown = [[_only(row, ("system", *names)) for row in some] for some, names in apart]
    protected = [one for one in every if one.part != "oo"]
    chosen = protected if ATTACKERS in config.table.rows else ranked(protected)
    costs = Costs.of(study, rows)
    chosen = _sorted(study, costs, chosen)
    participants = _participants(study, costs, every, chosen) if chosen else []
    differences = _differences(config.table, costs, every, chosen) if config.table.baseline else []
    standing = [row for one in every for row in one.rows]
    all_rows = (*models, *pairs, *standing, *costs.rows, *made)
    kept = [_only(row, ("system", "set", "trials", "attacker")) for row in all_rows]
    about: Any = {"tables": [participants, differences, *shown], "stacked": bool(participants)}
    there = {estimate.metric for row in (*participants, *differences) for estimate in row.estimates}
    about["notes"] = list(_notes(study, costs, every, chosen, there)) if chosen else []
    about["warnings"] = list(_contradictions(chosen, costs, there))
    if rows.get("levels"):
        about = {"tables": [rows["levels"]], "stacked": True, "notes": [note("of_levels")]}
    about["asides"] = [*_stated_rates(ranked(chosen), there), *costs.beside(chosen, there)]
    return Document(kept, seed=config.seed, title=config.title, **about)


Rates = dict[tuple[str, str, str, str], Estimate]
"""Word error rates and recalls by system, part (OO, PP or PP − baseline), metric and set."""


@dataclass(frozen=True)
class Costs:
    """What was computed here (``own``), and what the tree's own files state."""

    own: Rates
    stated: Rates

    @classmethod
    def of(cls, study: Study, rows: Rows) -> Costs:
        own: Rates = {}
        for row in (row for row in rows.get("utility", ()) if "system" in row.conditions):
            system, against = row.conditions["system"], row.conditions.get("against", "")
            parts = {"wer": "PP", "wer_unprotected": "OO", "wer_difference": "PP − OO"}
            for e in row.estimates:
                part = f"PP − {against}" if against else parts[e.metric]
                metric = e.metric.removesuffix("_unprotected")
                own[system, part, metric, row.conditions["set"]] = replace(e, metric=metric)
        stated = {
            (system, rate.part.upper(), rate.metric, f"{rate.corpus}_{rate.split}"): Estimate(
                rate.metric, rate.value, "%", no_interval=AS_STATED
            )
            for system, rates in study.inputs.stated.items()
            for rate in rates
            if rate.metric in ("wer", "uar")
        }
        return cls(own, stated)

    def mean(self, one: Standing, metric: str, part: str = "") -> Estimate | None:
        """The mean over test sets, of words over corpora with trials only; that of the tree's own
        files where none was computed.
        """
        which = one.system, part or ("OO" if one.part == "oo" else "PP"), metric
        for rates in (self.own, self.stated):
            sets = {key[3]: e for key, e in rates.items() if key[:3] == which}
            corpora = {name: TrialSet.of(name).corpus for name in sets}
            known = [n for n in sets if metric == "uar" or corpora[n] in one.corpora]
            if chosen := [sets[name] for name in shown_sets(known)]:
                return mean(chosen, independent=True)
        return None

    def states_original(self, one: Standing) -> bool:
        """Whether words or emotions of unprotected speech are known."""
        bare = _unprotected(one)
        return any(self.mean(bare, metric) is not None for metric in ("wer", "uar"))

    def difference(self, one: Standing, base: Standing, metric: str) -> Estimate | None:
        """How much more than the baseline, paired where both were computed here."""
        name, both = f"{metric}_difference", (self.mean(base, metric), self.mean(one, metric))
        if made := self.mean(one, name, f"PP − {base.system}"):
            return made
        if both[0] is None or both[1] is None:
            return None
        apart = float(both[1].value) - float(both[0].value)
        return Estimate(name, apart, "%", no_interval=AS_STATED)

    @property
    def rows(self) -> Iterator[Row]:
        """All of them under their conditions."""
        for rates in (self.own, self.stated):
            for key, e in rates.items():
                again = rates is self.stated and key in self.own
                named = replace(e, metric=f"{e.metric}_stated") if again else e
                where = {"system": key[0], "set": key[3], "trials": key[1], "attacker": ""}
                yield Row(where, [named])

    def beside(self, listed: Sequence[Standing], there: Collection[str]) -> Iterator[str]:
        """Word error rates in the tree's own files beside those computed here."""
        for system in dict.fromkeys(standing.system for standing in listed):
            both = [key for key in self.own if key in self.stated and key[:2] == (system, "PP")]
            sets = shown_sets(key[3] for key in both)
            theirs, here = (
                ", ".join(shown_value(float(some[k].value), "%") for k in both if k[3] in sets)
                for some in (self.stated, self.own)
            )
            if both and "wer" in there:
                which = f"{system}, WER [%] of {', '.join(sets)}"
                yield f"{which}: in the tree's files {theirs}, here {here}"


def _differences(
    how: TableConfig, costs: Costs, every: Sequence[Standing], chosen: Sequence[Standing]
) -> list[Row]:
    """One row a system: how much more than the baseline each number is under the same attacker."""
    rows = []
    bases = {standing.attacker: standing for standing in every if standing.system == how.baseline}
    for standing in chosen:
        base = bases.get(standing.attacker)
        named = [name for name in how.rows if name != ATTACKERS]
        if base is None or standing is base or (named and standing.system not in named):
            continue
        names = {m: f"{m}_difference" for m in COMPARED}
        cells = {m: _source(standing, every, how, n).mean(n) for m, n in names.items()}
        cells |= {m: costs.difference(standing, base, m) for m in ("wer", "uar")}
        wanted = [m for m in cells if not how.columns or m in how.columns]
        there = {m: e for m in wanted if (e := cells[m]) is not None}
        heads = [label(replace(e, metric=m, params={})) for m, e in there.items()]
        bared = [replace(e, params={}, no_interval="") for e in there.values()]
        where = {"system": f"{standing.system} − {base.system}"}
        where |= {"attacker": standing.attacker} if ATTACKERS in how.rows else {}
        rows.append(Row(where, bared, heads))
    return rows


def _participants(
    study: Study, costs: Costs, every: Sequence[Standing], chosen: Sequence[Standing]
) -> list[Row]:
    """One row a system: EERs of sets and their mean, other frameworks, word errors and recalls."""
    how = study.config.table
    wanted = [name for name in how.rows if name != ATTACKERS]
    order = wanted or [ORIGINAL, *dict.fromkeys(standing.system for standing in chosen)]
    used = dict.fromkeys(name for standing in chosen for name in standing.sets)
    bare = [standing for standing in every if standing.part == "oo"]
    first = [_within(standing, used) for standing in bare[:1]] if ORIGINAL in order else []
    if not first and ORIGINAL in order and chosen:
        first = [_unprotected(chosen[0])] if costs.states_original(chosen[0]) else []
    listed = [*first, *(one for name in order for one in chosen if one.system == name)]
    sets = shown_sets(used)
    means = _grouping(sets, listed) if how.means == "auto" else how.means
    alike = len({standing.attacker for standing in chosen}) == 1
    rows = []
    for standing in listed:
        system = ORIGINAL if standing.part == "oo" else standing.system
        cells: dict[str, Estimate | None] = {}
        if not how.columns or "eer" in how.columns:
            cells |= _rates(standing, means, sets)
        own = {m: _source(standing, every, how, m).mean(m) for m in COMPARED[1:]}
        own |= {metric: costs.mean(standing, metric) for metric in ("wer", "uar")}
        cells |= {
            label(replace(e, params={})): e
            for m, e in own.items()
            if e is not None and (not how.columns or m in how.columns)
        }
        there = {head: e for head, e in cells.items() if e is not None}
        where = {"system": system} if alike else {"system": system, "attacker": standing.attacker}
        bared = [replace(e, params={}, no_interval="") for e in there.values()]
        rows.append(Row(where, bared, list(there)))
    return rows


def _unprotected(one: Standing) -> Standing:
    """A row of unprotected speech of which there are no scores, for what else is known of it."""
    return replace(one, attacker=UNPROTECTED, part="oo", sets={name: {} for name in one.sets})


def _sorted(study: Study, costs: Costs, chosen: Sequence[Standing]) -> list[Standing]:
    """Systems as the table's ``sort`` says: by EER, or by WER or UAR within the conditions of EER
    in which the organisers rank, the most private condition first. Those without the number come
    last.
    """
    how = study.config.table.sort
    if how == "given":
        return list(chosen)
    bounds = conditions_of(study)

    def key(standing: Standing) -> tuple[float, ...]:
        rate, cost = standing.mean("eer"), costs.mean(standing, how) if how != "eer" else None
        if rate is None:
            return (1.0, 0.0)
        if how == "eer":
            return (0.0, -float(rate.value))
        met = sum(float(rate.value) >= bound for bound in bounds)
        value = float("inf") if cost is None else float(cost.value)
        return (0.0, -float(met), -value if how == "uar" and cost is not None else value)

    return sorted(chosen, key=key)


def conditions_of(study: Study) -> tuple[float, ...]:
    """The least EERs of the conditions of the challenge whose tree this is."""
    files = (getattr(given, part) for _, given, part in study.lists.values())
    return CONDITIONS[convention_of(next(files))]


def _within(one: Standing, names: Collection[str]) -> Standing:
    """Unprotected speech on the sets of the attackers that are shown."""
    sets = {name: own for name, own in one.sets.items() if name in names}
    return replace(one, sets=sets, weights={n: w for n, w in one.weights.items() if n in names})


def _grouping(sets: Mapping[str, TrialSet], listed: Sequence[Standing]) -> str:
    """EERs of up to four sets; of more their means by language, else by sex, else none."""
    if len(sets) <= MOST_SETS:
        return "set"
    if 1 < len({one.language for one in sets.values() if one.language}) <= MOST_SETS:
        return "language"
    return "sex" if all(standing.of_sex(sex) for standing in listed for sex in "fm") else "none"


def _rates(one: Standing, means: str, sets: Mapping[str, TrialSet]) -> dict[str, Estimate | None]:
    """EERs of a row by the headings of their columns, the mean last."""
    made: dict[str, Estimate | None] = {}
    if means == "set":
        made = {short: one.sets.get(name, {}).get("eer") for name, short in _short(sets).items()}
    elif means == "sex":
        made = {sex: one.of_sex(sex) for sex in "fm"}
    elif means == "language":
        for language in dict.fromkeys(of.language for of in sets.values() if of.language):
            own = [n for n in one.weights if n in sets and sets[n].language == language]
            made[language] = one.mean("eer", own)
    if len(one.weights) > 1 or not made:
        made["mean"] = one.mean("eer")
    return {f"EER {head} [%]".replace("  ", " "): value for head, value in made.items()}


def _short(sets: Mapping[str, TrialSet]) -> dict[str, str]:
    """What tells a set from the others, in few letters."""
    differ = [i for i in range(4) if len({trial_set[i] for trial_set in sets.values()}) > 1]
    return {name: " ".join(filter(None, (one[i] for i in differ))) for name, one in sets.items()}


def _source(one: Standing, every: Sequence[Standing], how: TableConfig, metric: str) -> Standing:
    """Whose a number is: this attacker's; DeID and G_VD any one's on the system where attackers
    have no rows, that of an extractor as it is given first.
    """
    if one.part == "oo" or ATTACKERS in how.rows or not metric.startswith(("deid", "g_vd")):
        return one
    same = sorted((o for o in every if o.system == one.system), key=lambda o: o.extractor)
    return next((other for other in same if other.mean(metric) is not None), one)


def _notes(
    study: Study,
    costs: Costs,
    every: Sequence[Standing],
    chosen: Sequence[Standing],
    there: Set[str],
) -> Iterator[str]:
    """Who attacks and what the means are of, as far as it is of the metrics that are ``there``."""
    config, of = study.config, chosen[0]
    columns: dict[str, list[str]] = {}
    for metric in (one for one in COMPARED if one in there):
        sources = (_source(standing, every, config.table, metric) for standing in chosen)
        who = {standing.attacker for standing in sources if standing.mean(metric) is not None}
        if len(who) == 1:
            columns.setdefault(who.pop(), []).append(LABELS[metric])
    whole = len(columns) == 1
    told = (f"{'Attacker' if whole else listed(some)}: {who}" for who, some in columns.items())
    if columns:
        yield "; ".join(told)
    for one in chosen if ATTACKERS not in config.table.rows and "eer" in there else ():
        others = [o for o in every if o.system == one.system and o.weights == one.weights]
        rates = {o.attacker: rate for o in others if o.part != "oo" and (rate := o.mean("eer"))}
        least = min(rates, key=lambda name: float(rates[name].value), default=one.attacker)
        if least != one.attacker:
            yield f"{one.system}: the attacker {least} finds more, EER {with_level(rates[least])}"
    if len(of.weights) > 1 and there & {*COMPARED}:
        uneven = len(set(of.weights.values())) > 1
        weighed = " (common sentences weigh a quarter of the others)" if uneven else ""
        yield f"Means over {', '.join(of.weights)}{weighed}"
        if of.apart(of.weights):
            yield "Intervals of means take sets of different people as independent"
        else:
            yield "Sets of a mean share people: its intervals add up, as if they erred together"
    name = "linkability"
    links = [own[name] for one in chosen for own in one.sets.values() if name in there & own.keys()]
    if counts := sorted({int(link.params["count"] or 0) for link in links}):
        span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        yield f"Linkability among all enrolled speakers of a set (N′ = {span})"
    if "deid" in there:
        yield "DeID of the scores as they are; the report has the strongest reading of them too"
    found = {key[2] for key in costs.stated} - {key[2] for key in costs.own}
    if stated := [metric.upper() for metric in ("wer", "uar") if metric in found & there]:
        yield f"{' and '.join(stated)}: from the tree's own files, which have no intervals"
    if (how := config.table.sort) != "given":
        bounds = ", ".join(f"{100 * bound:g}" for bound in conditions_of(study))
        within = (
            f"{how.upper()} within the challenge's conditions (mean EER of at least {bounds} %)"
        )
        yield f"Rows sorted by {'EER' if how == 'eer' else within}"
    if any(one.endswith("_difference") for one in there):
        signs = {"eer": "EER above 0", "deid": "DeID above 0", name: "Linkability below 0"}
        more = listed([sign for metric, sign in signs.items() if metric in there])
        said = f"Differences from {config.table.baseline} are paired by speaker"
        yield f"{said}; more protective: {more}" if more else said


def _stated_rates(shown: Sequence[Standing], there: Collection[str]) -> Iterator[str]:
    """EERs in the tree's own files beside those made here."""
    for standing in shown if "eer" in there else ():
        for metric, where in _STATED.items():
            names = [name for name in shown_sets(standing.sets) if metric in standing.sets[name]]
            if names:
                theirs, own = (_listed_rates(standing, names, m) for m in (metric, "eer_challenge"))
                which = f"{standing.system}, {standing.attacker}, EER [%] of {', '.join(names)}"
                yield f"{which}: in {where} {theirs}, here by the challenge's rule {own}"


def _listed_rates(standing: Standing, names: Iterable[str], metric: str) -> str:
    rates = (float(standing.sets[name][metric].value) for name in names)
    return ", ".join(shown_value(rate, "%") for rate in rates)


def _contradictions(every: Sequence[Standing], costs: Costs, there: Set[str]) -> Iterator[str]:
    """Result files whose EERs are not those of the scores: their other numbers may be of another
    run as well.
    """
    found = {(system, metric) for system, _, metric, _ in costs.stated}
    for standing in every:
        used = [m for m in ("wer", "uar") if (standing.system, m) in found and m in there]
        names = [
            name
            for name, own in standing.sets.items()
            if "eer_ranked" in own
            and abs(float(own["eer_ranked"].value) - float(own["eer_challenge"].value)) > _ALIKE
        ]
        if names and used and standing.part != "oo":
            theirs, own = (
                _listed_rates(standing, names[:2], m) for m in ("eer_ranked", "eer_challenge")
            )
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            rates = " and ".join(metric.upper() for metric in used)
            yield (
                f"{standing.system}: its result file is not of these scores: EER [%] of"
                f" {', '.join(names[:2])}{more} is {theirs} there and {own} here"
                f" ({standing.attacker}); its {rates} may be of another run"
            )


def _only(row: Row, names: Sequence[str]) -> Row:
    """The row under some of its conditions, and its numbers without what made them."""
    where = {name: row.conditions[name] for name in names}
    return Row(where, [replace(e, params={}, no_interval="") for e in row.estimates])


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
        chosen += [one for m in ("wer", "dnsmos_ovrl") for one in matches("utility", m)[:1]]
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


def _ordered(estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
    by_name = {e.metric: e for e in reversed(estimates)}
    return tuple(by_name[metric] for metric in COLUMNS if metric in by_name)
