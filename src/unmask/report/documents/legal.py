"""Documents of legal sweeps: what is printed of Linkability, Singling Out and inference."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from unmask.estimate import Estimate, Interval
from unmask.privacy.legal import SPLITS, TITLES, LegalSweep, strongest_of
from unmask.report.documents import Document, Row, document, with_groups
from unmask.report.words import note


@document.register
def _(sweep: LegalSweep) -> Document:
    """One row per attacker, length and number of speakers; chance beside every risk."""
    rows = []
    for attacker, length in product(sweep.attackers, sweep.lengths):
        ranks = sweep.ranks.get((attacker, length))
        candidates = () if ranks is None else (ranks.candidates,)
        for count in sorted({*sweep.counts(length), *candidates}):
            measured = {m: sweep.estimate(attacker, m, length, count) for m in sweep.metrics}
            estimates = [estimate for estimate in measured.values() if estimate is not None]
            for metric in (m for m, estimate in measured.items() if estimate is not None):
                estimates += sweep.details(attacker, metric, length, count)
            if ranks is not None and ranks.candidates == count:
                estimates += ranks.estimates
            where = {"attacker": attacker, "L": str(length), "N": str(count)}
            rows += [Row(where, estimates)] if estimates else []
    rows += [*_crowds(sweep, "L", "N", "d"), *_inferences(sweep)]
    always = [note(name) for name in ("readings", "validated", "no_verdict")]
    notes = [*sweep.sentences, *_how(sweep), *always]
    made = Document.of(sweep, rows, tables=_shown(sweep), notes=notes)
    return with_groups(made, sweep.gaps)


def _shown(sweep: LegalSweep) -> list[list[Row]]:
    """What people read: each attacker's strongest reading beside chance; inference; the rank."""
    risks: dict[tuple[str, str, str], list[Estimate]] = {}
    for attacker in sweep.attackers:
        for metric, length in product(sweep.metrics, sweep.lengths):
            curves = sweep.competing(metric, length, [attacker])
            for count in sorted({int(n) for curve in curves.values() for n in curve.counts}):
                risk = strongest_of(curves, count, seed=sweep.seed).estimate
                risks.setdefault((attacker, str(length), f"{count:,}"), []).append(risk)
                chance = risks.setdefault(("chance", "", f"{count:,}"), [])
                if metric not in {estimate.metric for estimate in chance}:
                    chance.append(_by_chance(risk))
    order = sorted(risks, key=lambda key: key[0] == "chance")
    names = ("attacker", "utterances", "speakers")
    inferred = _inferences(sweep)
    guessed = {inference: result for (_, inference), result in sweep.inferences.items()}
    inferred += [
        Row({"attacker": "chance", "attribute": one}, (_by_chance(result.estimates[0]),))
        for one, result in guessed.items()
    ]
    ranked = [
        Row({"attacker": a, "utterances": str(n), "speakers": f"{r.candidates:,}"}, r.estimates)
        for (a, n), r in sweep.ranks.items()
    ]
    table = [Row(dict(zip(names, key, strict=True)), risks[key]) for key in order]
    return [table, _crowds(sweep, "utterances", "speakers", ","), inferred, ranked]


def _crowds(sweep: LegalSweep, length: str, count: str, written: str) -> list[Row]:
    """Linkability among more people than there are, apart from what is measured."""
    return [
        Row({"attacker": crowd.attacker, length: str(n), count: f"{people:{written}}"}, [estimate])
        for n, crowd in sweep.crowds.items()
        for people, estimate in zip(crowd.counts, crowd.estimates, strict=True)
    ]


def _inferences(sweep: LegalSweep) -> list[Row]:
    return [
        Row({"attacker": attacker, "attribute": attribute}, result.estimates)
        for (attacker, attribute), result in sweep.inferences.items()
    ]


def _by_chance(estimate: Estimate) -> Estimate:
    """What chance reaches, under the name of what is measured."""
    return replace(estimate, value=float(estimate.chance or 0), interval=None, no_interval="")


def _how(sweep: LegalSweep) -> list[str]:
    """Over whom the intervals are, for each metric, and how the strongest attack was chosen."""
    over: dict[str, Interval | None] = {}
    for (_, metric, _), curve in sweep.curves.items():
        over.setdefault(metric, curve.estimates[0].interval)
    parts = [
        f"{TITLES[metric]} over {made.over.partition(',')[0]}"
        for metric, made in over.items()
        if made is not None
    ]
    lines = [note("splits", splits=SPLITS)]
    made = next((interval for interval in over.values() if interval is not None), None)
    if made is not None:
        about = f"{100 * made.level:g} % confidence intervals, {'; '.join(parts)}"
        lines.insert(0, f"In brackets: {about} (seed {made.seed}).")
    return lines
