"""Linkability, Singling Out and inference: what the law asks (Vauquier 2025)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from unmask import figures as charts
from unmask.assessment import KNOWN, ORIGINAL, Config, Legal, Results, Study
from unmask.base import VERDICT
from unmask.engine import GroupGaps
from unmask.estimate import Estimate, Notice
from unmask.privacy import legal as law
from unmask.privacy.legal import RELEASE
from unmask.report.documents import Row, figures_of
from unmask.report.headline import ALL, CONTROL, SURE, WORST
from unmask.report.section import (
    Choice,
    Section,
    TableBlock,
    colours_of,
    group_blocks,
    group_choice,
    group_figures,
    noted,
)
from unmask.report.words import note, shown, whole_percent

CURVE = "one_minus_eer"
"""Shown as a curve beside the risks; its strongest attack stands among verification errors."""

ALONE = "by words alone"
EACH = "each attacker"


@figures_of.register(law.LegalSweep)
def _(sweep: law.LegalSweep, *, length: int | None = None) -> list[charts.Figure]:
    """Draw the panel, risks of speakers and ranks at one ``length``, then gaps between groups."""
    return [*charts.legal_figures(sweep, length=length), *group_figures(sweep.gaps)]


@figures_of.register(law.RiskCurve)
def _(curve: law.RiskCurve) -> list[charts.Figure]:
    line = charts.RiskLine("attacked", "attacker", curve.metric, 1, curve)
    colours = charts.system_colours(["attacked"])
    return [charts.risk_comparison([line], colours=colours).called(curve.metric)]


class LegalResults:
    """Curves of every attack on every safeguard, and of the same attacks on unprotected speech.

    ``sweeps`` are by safeguard and attacker, ``probes`` by safeguard and attribute. ``whole`` has
    all attackers of a safeguard in one sweep, ``shown`` for each of them the curve of the variant
    that is strongest among most speakers, ``told`` the curves on which the largest risks lie,
    and ``each`` the largest Linkability of every attacker.
    ``points`` has the largest risk of a metric, that of the fewest utterances among all candidates,
    and the largest one with the interval of verdicts.
    """

    def __init__(self, config: Config, results: Results) -> None:
        sweeps: Mapping[tuple[str, str], law.LegalSweep] = results["sweeps"]
        self.probes: Mapping[tuple[str, str], law.Inference] = results["probes"]
        self.release: Mapping[tuple[str, str], law.LegalSweep] = results["release"]
        self.words: Mapping[tuple[str, str], law.LegalSweep] = results["words"]
        # People with few recordings may have speech enough for some of the metrics only.
        self.metrics: tuple[str, ...] = tuple(
            metric
            for metric in config.legal.metrics
            if all(metric in sweep.metrics for sweep in sweeps.values())
        )
        self.first, self.seed = config.legal.lengths[0], config.seed
        told = (
            Notice(notice.code, name, notice.line)
            for (name, _), sweep in sweeps.items()
            for notice in sweep.skipped
            if notice.code in ("not-fitted", "not-centred", "talkative", "metric-left-out")
        )
        self.unfitted = list(dict.fromkeys(told))
        self.whole: dict[str, law.LegalSweep] = {}
        self.strongest = cache(lambda name, *at: self.whole[name].strongest(*at))
        self.shown: dict[str, dict[tuple[str, str, int], law.Curve]] = {}
        self.points: dict[tuple[str, str], dict[str, law.Strongest]] = {}
        self.told: dict[str, dict[tuple[str, str, int], law.Curve]] = {}
        self.each: dict[str, list[law.Strongest]] = {}
        for name in dict.fromkeys(name for name, _ in sweeps):
            by = {who: sweep for (safeguard, who), sweep in sweeps.items() if safeguard == name}
            curves = {key: curve for sweep in by.values() for key, curve in sweep.curves.items()}
            ranks = {key: rank for sweep in by.values() for key, rank in sweep.ranks.items()}
            crowds: dict[int, law.ExtrapolatedLinkability] = {}
            for one in (crowd for sweep in by.values() for crowd in sweep.crowds.values()):
                held = crowds.setdefault(one.length, one)
                crowds[one.length] = max(held, one, key=lambda crowd: crowd.measured[0])
            whole = law.LegalSweep(curves, ranks, {}, None, None, self.seed, crowds=crowds)
            self.whole[name], self.shown[name], self.told[name] = whole, {}, {}
            linking = [sweep for sweep in by.values() if "linkability" in sweep.metrics]
            self.each[name] = [sweep.worst("linkability") for sweep in linking]
            for who, metric, length in product(by, self.metrics, whole.lengths):
                if length not in by[who].lengths_of(metric):
                    continue
                best = by[who].strongest(metric, length)
                self.shown[name][who, metric, length] = curves[best.attacker, metric, length]
            for metric in self.metrics:
                most = self.strongest(name, metric, min(whole.lengths_of(metric)))
                worst = whole.worst(metric)
                self.points[name, metric] = {WORST: worst, ALL: most}
                key = worst.attacker, metric, worst.length
                who = next(who for who, sweep in by.items() if key in sweep.curves)
                self.told[name][who, *key[1:]] = curves[key]
            if "linkability" in self.metrics and config.intervals.level != VERDICT:
                linked = {k: one for k, one in curves.items() if isinstance(one, law.Linkability)}
                sure = {key: linkability.at_level(VERDICT) for key, linkability in linked.items()}
                sure_of = replace(whole, curves=sure).worst("linkability")
                self.points[name, "linkability"][SURE] = sure_of
        self.safeguards = tuple(name for name in self.whole if name != ORIGINAL)

    def worst_of(self, safeguard: str) -> list[law.Strongest]:
        """The largest risk of each metric."""
        return [self.points[safeguard, metric][WORST] for metric in self.metrics]

    def leading(self, safeguard: str, metric: str, length: int) -> tuple[str, law.Curve]:
        """The attack that is strongest among most speakers, and its curve."""
        label = self.strongest(safeguard, metric, length).attacker
        return label, self.whole[safeguard].curves[label, metric, length]

    def sweep(self, safeguard: str) -> law.LegalSweep:
        """Unprotected speech and every attacker of a safeguard in one sweep."""
        own = self.whole[safeguard].lengths
        control = {key: curve for key, curve in self.shown[ORIGINAL].items() if key[2] in own}
        curves = {**control, **self.shown[safeguard], **self.told[safeguard]}
        probes = {(name, a): i for (name, a), i in self.probes.items() if name == safeguard}
        crowds = self.whole[safeguard].crowds
        return law.LegalSweep(curves, {}, probes, ORIGINAL, None, self.seed, crowds=crowds)

    def overlaps(self) -> dict[str, tuple[law.Overlap, ...]]:
        """Whether the same people are linked by several attackers of a safeguard, under several
        safeguards, and with one utterance or more: by what the attacks differ in.
        """
        metric = "linkability"
        if metric not in self.metrics:
            return {}
        compared: dict[str, dict[str, Any]] = {}
        for name in self.safeguards:
            compared[f"attackers on {name}"] = {
                key[0]: c for key, c in self.shown[name].items() if key[1:] == (metric, self.first)
            }
            compared[f"lengths under {name}"] = {
                f"{length} utterances": self.leading(name, metric, length)[1]
                for length in self.whole[name].lengths_of(metric)
            }
        compared["safeguards"] = {
            name: self.leading(name, metric, self.first)[1] for name in self.safeguards
        }
        return {what: law.overlaps(curves) for what, curves in compared.items()}


def _gaps_by_safeguard(sweeps: Mapping[tuple[str, str], law.LegalSweep]) -> list[GroupGaps]:
    """The risks by group of each safeguard, under the strongest of all its attackers."""
    made: dict[tuple[str, str], list[law.LegalRiskGaps]] = {}
    for (name, _), sweep in sweeps.items():
        for gap in sweep.gaps if name != ORIGINAL else ():
            if isinstance(gap, law.LegalRiskGaps):
                made.setdefault((name, gap.risk), []).append(gap)
    gaps: list[GroupGaps] = []
    for (name, _), some in made.items():
        whole = law.combined_gaps(some)
        conditions = {"safeguard": name}
        gaps.append(replace(whole, system=f"{name}, {whole.system}", conditions=conditions))
    return gaps


def section(study: Study, groups: Results) -> Section:
    """Risk against the number of speakers, all safeguards together and each on its own."""
    results, colours = LegalResults(study.config, groups), colours_of(study)
    lines = []
    for name, whole in results.whole.items():
        for metric, length in product(results.metrics, whole.lengths):
            if length not in whole.lengths_of(metric):
                continue
            label, curve = results.leading(name, metric, length)
            who = ORIGINAL if name == ORIGINAL else label
            beyond = whole.crowds.get(length) if metric == "linkability" else None
            lines.append(charts.RiskLine(name, who, metric, length, curve, beyond))
    told = tuple(metric for metric in results.metrics if metric != CURVE) or results.metrics
    metric = told[0]
    worst = {name: results.points[name, metric][WORST] for name in results.whole}
    values = {n: whole_percent(float(w.estimate.value)) for n, w in worst.items()}
    each = ", ".join(f"{n} {values[n]}" for n in results.safeguards)
    title = f"{law.TITLES[metric]} at worst: {each}; unprotected {values[ORIGINAL]}"
    comparison = charts.risk_comparison(lines, colours=colours, original=ORIGINAL)
    comparison = comparison.called(title=title)
    sweeps = {name: results.sweep(name) for name in results.safeguards}
    panels = {}
    for name, sweep in sweeps.items():
        who = f"{worst[name].attacker} succeeds most, {values[name]} among"
        title = f"{name}: {who} {worst[name].count:,} speakers"
        rings = {metric: results.points[name, metric][WORST] for metric in results.metrics}
        panels[name] = charts.legal_panel(sweep, headlines=rings).called(title=title)
    answers = []
    for name, metric in product(results.safeguards, told):
        most = results.points[name, metric][WORST]
        estimate = most.estimate
        answers.append(
            f"{name}: {law.TITLES[metric]} up to {shown(estimate, 1, scale=100)} %, among"
            f" {most.count:,} speakers with {law.spoken(most.length)}, by"
            f" {most.attacker}; chance {100 * float(estimate.chance or 0):.1f} %."
        )
    gaps = _gaps_by_safeguard(groups["sweeps"])
    counts = {int(n) for line in lines for n in line.curve.counts}
    one = f"All attacks are among {min(counts):,} speakers: there is no curve to draw."
    choice = Choice.of("Every attacker on", "legal_panel", panels)
    drawn: list[charts.Figure | Choice] = [] if len(counts) == 1 else [comparison, choice]
    return Section(
        key="legal",
        answer=[*answers, *([one] if len(counts) == 1 else [])],
        figures=[*drawn, *group_choice(gaps, "groups_legal")],
        tables=[*tables(results), *group_blocks(gaps)],
        notices=[
            *results.unfitted,
            *noted(sweeps),
            *(
                Notice(notice.code, name, notice.sentence)
                for (name, setting), sweep in results.words.items()
                for notice in sweep.notices
                if setting == KNOWN and notice.code in ("words", "words-limited")
            ),
        ],
        options=_method(study.config.legal),
    )


def _method(legal: Legal) -> dict[str, str]:
    """How the risks were computed, as far as the config says."""

    def enrolled(number: int | str) -> str:
        if number == 1:
            return "one enrolment utterance"
        return f"{number if number == 'all' else f'up to {number}'} enrolment utterances"

    lists = "The expectation over all subsets of N′ speakers is exact"
    if legal.linkability_draws is not None:
        lists = f"It is averaged over {legal.linkability_draws:,} lists of N′ speakers drawn"
    known = " and ".join(legal.side)
    return {
        "linkability": enrolled(legal.linkability_enrol or "all"),
        "singling_out": enrolled(legal.singling_out_enrol or 30),
        "lists": lists,
        "side": f" The attacker knows {known} and compares those that match." if known else "",
    }


def tables(results: LegalResults) -> Iterator[TableBlock]:
    """One after another, those that are shown at once first."""
    strongest = {metric: _strongest(results, metric) for metric in results.metrics}
    named = set()
    for metric, rows in strongest.items():
        if metric != CURVE:
            named |= {(row.conditions["safeguard"], row.conditions["attacker"]) for row in rows}
            title = f"{law.TITLES[metric]}: the strongest attack"
            yield TableBlock(title, rows, note=note("strongest"))
    each = [
        _row(name, KNOWN, EACH, risk) for name in results.safeguards for risk in results.each[name]
    ]
    yield TableBlock("Linkability by each attacker", each)
    beyond = _beyond(results)
    yield TableBlock("Linkability beyond the people at hand", beyond, note=note("crowds"))
    probes = [
        Row({"safeguard": name, "attribute": attribute}, probe.estimates)
        for (name, attribute), probe in results.probes.items()
    ]
    yield TableBlock("Inference of attributes", probes)
    released = [
        _row(name, RELEASE, point, sweep.worst(metric))
        for (name, point), sweep in results.release.items()
        for metric in sweep.metrics
    ]
    yield TableBlock("Linked within the release", released, note=note("release"))
    words = [
        _row(name, setting, ALONE, sweep.worst(metric))
        for (name, setting), sweep in results.words.items()
        for metric in sweep.metrics
    ]
    yield TableBlock("By words alone", words, note=note("words"))
    yield TableBlock(law.TITLES[CURVE], strongest.get(CURVE, ()), folded=True, note=note("curve"))
    curves, details, variants = [], [], []
    for name, whole in results.whole.items():
        for (attacker, metric, length), curve in results.shown[name].items():
            base = {"safeguard": name, "attacker": attacker, "utterances": str(length)}
            curves += [
                Row({**base, "speakers": f"{n:,}"}, [curve.estimate(i)])
                for i, n in enumerate(curve.counts)
            ]
            last = int(curve.counts.argmax())
            details.append(Row({**base, "metric": metric}, curve.details(last)))
        for metric in results.metrics:
            length = whole.lengths_of(metric)[-1]
            for label, curve in whole.competing(metric, length).items():
                first = int(curve.counts.argmin())
                base = {"safeguard": name, "attacker": label, "utterances": str(length)}
                base["speakers"] = f"{curve.counts[first]:,}"
                variants.append(Row(base, [curve.estimate(first)]))
    yield TableBlock("Strongest variant of each attacker", _merged(curves), folded=True)
    yield TableBlock("Residual risk, worst decile", _merged(details), folded=True)
    ranks = [
        Row({"safeguard": name, "attacker": label, "utterances": str(length)}, rank.estimates)
        for name, sweep in results.whole.items()
        for (label, length), rank in sweep.ranks.items()
        if (name, label) in named
    ]
    yield TableBlock("Rank of the true speaker, in bits", ranks, folded=True)
    yield TableBlock("Every variant tried", _merged(variants), folded=True)
    same = []
    for what, some in results.overlaps().items():
        for one in some:
            pair = {"between": what, "first": one.first, "second": one.second, "tenth": one.which}
            same.append(Row(pair, [one.estimate]))
    yield TableBlock("Are the same people linked?", same, folded=True, note=note("overlap"))


def _beyond(results: LegalResults) -> list[Row]:
    """Linkability of the strongest attack on each safeguard among the most people asked about."""
    rows = []
    for name, whole in results.whole.items():
        for length, crowd in whole.crowds.items():
            last = int(crowd.counts.argmax())
            where = {"safeguard": name, "attacker": crowd.attacker, "setting": KNOWN}
            where |= {"utterances": str(length), "speakers": f"{crowd.counts[last]:,}"}
            rows.append(Row(where, [crowd.estimate(last)]))
    return rows


def _row(safeguard: str, setting: str, point: str, risk: law.Strongest) -> Row:
    where = {"safeguard": safeguard, "attacker": risk.attacker, "setting": setting, "point": point}
    where |= {"utterances": str(risk.length), "speakers": f"{risk.count:,}"}
    return Row(where, [risk.estimate])


def _strongest(results: LegalResults, metric: str) -> list[Row]:
    """The points of unprotected speech, wherever else a safeguard's stand, and of safeguards."""
    control = results.whole[ORIGINAL]
    points = {name: list(results.points[name, metric].items()) for name in results.whole}
    at = {(r.length, r.count) for name in results.safeguards for _, r in points[name]}
    at -= {(risk.length, risk.count) for _, risk in points[ORIGINAL]}
    for length, count in sorted(at):
        if any(c.index(count) is not None for c in control.competing(metric, length).values()):
            points[ORIGINAL].append((CONTROL, control.strongest(metric, length, count)))
    return [_row(name, KNOWN, *one) for name, some in points.items() for one in some]


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Rows of equal conditions as one, the metrics side by side."""
    joined: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
    for row in rows:
        joined.setdefault(tuple(row.conditions.items()), []).extend(row.estimates)
    return [Row(dict(key), estimates) for key, estimates in joined.items()]
