"""Utility: what protection costs in words, melody and quality, beside what it achieves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unmask import figures as charts, utility as costs
from unmask.assessment import ORIGINAL, Results, Study
from unmask.assessment.frameworks import UTILITY
from unmask.estimate import Notice
from unmask.report.documents import Row
from unmask.report.headline import Rows, find, numbers_of
from unmask.report.section import Section, TableBlock, colours_of, noted
from unmask.report.words import shown

SILENCE = "silence"
_MAIN = re.compile(r"(wer|cer|rho_f0|semitones|dnsmos_ovrl|uar)(_difference|_unprotected)?$")
_NAMELESS = {
    "clipped": "some of its files are clipped",
    "left-out": "some utterances could not be measured and were left out",
    "unknown-words": "some words of the transcripts are unknown to it",
}
"""What a redacted report says, which names no file."""
_LISTENER = "a recogniser"
_LISTENERS = re.compile(r"(pocketsphinx(, digits|, grammar of \d+ words)?|given)?")
"""Recognisers whose names name nobody else."""
_COSTS = {
    "wer": ("Word error rate (%)", 100.0, False),
    "dnsmos_ovrl": ("DNSMOS, overall (1 to 5)", 1.0, True),
}


def section(study: Study, results: Results) -> Section:
    """Tables and sentences; the plane stands on the first screen."""
    if UTILITY not in results[UTILITY]:
        return _of_words(study, results[UTILITY])
    result: costs.Utility = results[UTILITY][UTILITY]
    names = [n for n in (ORIGINAL, *study.inputs.safeguards) if n in result.conditions]

    def rows(*, main: bool) -> list[Row]:
        parts = {
            name: [e for e in result.estimates_of[name] if bool(_MAIN.match(e.metric)) == main]
            for name in names
        }
        return [Row({"safeguard": name}, part) for name, part in parts.items() if part]

    tables = [
        TableBlock("Words, melody, quality", rows(main=True)),
        TableBlock("Level, clipping, duration, parts of DNSMOS", rows(main=False), folded=True),
    ]
    notices: Sequence[Notice] = result.notices
    if study.config.redact:
        labels = study.inputs.labels
        if labels is not None:
            notices = [replace(n, sentence=labels.public(n.sentence)) for n in notices]
        given = zip(result.notices, notices, strict=True)
        notices = [replace(n, sentence=_NAMELESS.get(o.code, n.sentence)) for o, n in given]
        if not _LISTENERS.fullmatch(who := result.recogniser):
            result = replace(result, recogniser=_LISTENER)
            notices = [
                replace(
                    n, **{p: getattr(n, p).replace(who, _LISTENER) for p in ("subject", "sentence")}
                )
                for n in notices
            ]
    answer = [said for name in names if name != ORIGINAL and (said := _said(result, name))]
    return Section(UTILITY, answer, [], tables, notices)


def _of_words(study: Study, every: Mapping[tuple[str, str], Sequence[costs.Utility]]) -> Section:
    """Word error rates of a challenge's sets, beside unprotected speech and the baseline."""
    rows, against, answer, base = [], [], [], study.config.table.baseline
    for (system, of_set), (own, *others) in every.items():
        where = {"system": system, "set": of_set}
        rates = [e for e in own.estimates_of[of_set] if e.metric.startswith("wer")]
        rows.append(Row(where, rates))
        shares = [shown(e, 1, scale=100) for e in rates[:2]]
        wrong = f"word error rate {shares[0]} % ({shares[1]} % unprotected)"
        answer.append(f"{system}, {of_set}: {wrong}.")
        for other in others:
            beside = [e for e in other.estimates_of[of_set] if e.metric == "wer_difference"]
            against.append(Row({**where, "against": str(base)}, beside))
    tables = [
        TableBlock("Words of every set", rows),
        TableBlock(f"Word error rate above that of {base}", against),
    ]
    notices = noted({", ".join(key): some[0] for key, some in every.items()})
    return Section(UTILITY, answer, [], tables, notices)


def _said(result: costs.Utility, name: str) -> str:
    parts = []
    wer, rho, mos = (result.estimate(name, m) for m in ("wer", "rho_f0", "dnsmos_ovrl"))
    bare = result.estimate(ORIGINAL, "wer")
    if wer is not None and bare is not None:
        parts.append(
            f"word error rate {shown(wer, 1, scale=100)} % ({shown(bare, 1, scale=100)} %"
            f" unprotected; {result.recogniser})"
        )
    parts += [f"pitch correlation {shown(rho, 2)}"] if rho is not None else []
    parts += [f"DNSMOS {shown(mos, 2)}"] if mos is not None else []
    return f"{name}: {'; '.join(parts)}." if parts else ""


def plane_of(study: Study, rows: Rows) -> charts.Figure | None:
    """Risk of the strongest attacker against what protection costs, of all safeguards of which
    both were measured; None where there is none.
    """
    utility = rows.get(UTILITY, ())
    metric = next((m for m in _COSTS if find(utility, m, safeguard=ORIGINAL)), None)
    if metric is None:
        return None
    title, scale, better = _COSTS[metric]
    points, chances = [], []
    for name in (ORIGINAL, *study.inputs.safeguards):
        risk = next((n for n in numbers_of(rows, name) if n.label == "Linkability"), None)
        cost = find(utility, metric, safeguard=name)
        if risk is not None and cost:
            x, y = risk.estimate, cost[0].estimate
            at = float(x.value), float(y.value), x.interval, y.interval
            said = f"{risk.attacker}, {risk.what}"
            points.append(charts.PlanePoint(name, *at, said, anchor=name == ORIGINAL))
            chances.append(risk.chance)
    if len(points) < 2 or points[0].system != ORIGINAL:
        return None
    silent = costs.METRICS[metric].chance if metric in costs.METRICS else None
    if silent is not None:
        points.append(charts.PlanePoint(SILENCE, min(chances), silent, anchor=True))
    return charts.cost_plane(
        points,
        cost=title,
        scale=scale,
        more_is_better=better,
        chance=min(chances),
        missing=[n for n in study.inputs.safeguards if not find(utility, metric, safeguard=n)],
        colours={**colours_of(study), SILENCE: "#000000"},
    ).plain()
