"""Utility: what protection costs in words, melody and quality, beside what it achieves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unmask import figures as charts, utility as costs
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.report.cache import Step
from unmask.report.config import ORIGINAL, Config
from unmask.report.documents import Document, Row, document
from unmask.report.extractors import recordings_of
from unmask.report.frameworks.study import Framework, Plan, Results, Study
from unmask.report.headline import Rows, find, numbers_of
from unmask.report.section import Section, TableBlock, shown
from unmask.run import content_digest
from unmask.speech import Recording

SILENCE = "silence"
UTILITY = "utility"
_MAIN = re.compile(r"(wer|cer|rho_f0|semitones|dnsmos_ovrl|uar)(_difference|_unprotected)?$")
_NAMELESS = {
    "clipped": "some of its files are clipped",
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


@document.register
def _(result: costs.Utility) -> Document:
    """One row per condition: the number, the same of unprotected speech, the difference."""
    return Document(
        [Row({"safeguard": name}, some) for name, some in result.estimates_of.items()],
        conditions={"recogniser": result.recogniser} if result.recogniser else {},
        warnings=[one.line for one in result.notices],
        seed=result.seed,
    )


def check_code(config: Config, *, allow_code: bool) -> None:
    """A config may name a command or a model to fetch only where its user allows code."""
    named = config.utility.recogniser
    if config.utility.given and costs.runs_code(named) and not allow_code:
        code = f"{named}, which names code to run: --allow-code lets a config do so"
        raise InputError("utility.recogniser", "pocketsphinx", code)


def _steps(study: Study) -> Plan:
    """One step for all safeguards, since their intervals share draws."""
    how, drawn, what = study.config.utility, study.config.drawn, "utility of all safeguards"
    if not how.given:
        return {}
    if how.measurements is not None:
        read = partial(_read, how.measurements, study.inputs.safeguards, drawn)
        params = {**drawn, "names": study.inputs.safeguards}
        data = [content_digest(how.measurements)]
        return {UTILITY: {UTILITY: Step(what, data, params, read)}}
    voices = {one.name: one for one in study.config.safeguards if not one.hidden and one.audio}
    if study.config.original.audio is None or not voices:
        raise InputError("utility: expected audio of the original and of safeguards, found none")
    original = recordings_of(study.config.original)
    protected = {name: recordings_of(one) for name, one in voices.items()}
    every = [one for files in (original, *protected.values()) for one in files]
    data = [f"{one!r} {one.digest}" for one in every]
    params = {**drawn, **how.model_dump(mode="json"), "names": [*protected]}
    if how.transcripts is not None:
        data.append(content_digest(how.transcripts))
        with suppress(InputError):  # what is wrong with it costs this section alone
            params["recogniser"] = repr(costs.recogniser(how.recogniser, grammar=how.grammar))
    measure = partial(_measured, study.config, original, protected)
    step = Step(what, data, params, measure, weight=0.1 * len(every))
    return {UTILITY: {UTILITY: step}}


def _read(path: Path, names: Sequence[str], drawn: Mapping[str, Any]) -> costs.Utility:
    measured = costs.read_measurements(path)
    missing = [name for name in measured.conditions if name not in (ORIGINAL, *names)]
    if len(missing) == len(measured.conditions) - 1:
        known = f"one of the safeguards {', '.join(names)}"
        raise InputError(path, known, ", ".join(missing) or "none")
    return costs.utility_of(measured, **drawn)


def _measured(
    config: Config, original: Sequence[Recording], protected: Mapping[str, Sequence[Recording]]
) -> costs.Utility:
    how = config.utility
    words: dict[str, Any] = {}
    if how.transcripts is not None:
        words["transcripts"] = costs.read_transcripts(how.transcripts)
        words["recogniser"] = costs.recogniser(how.recogniser, grammar=how.grammar)
    measured = costs.measure(original, protected, pitched=how.melody, mos=how.dnsmos, **words)
    return costs.utility_of(measured, **config.drawn)


def _section(study: Study, results: Results) -> Section:
    """Tables and sentences; the plane stands on the first screen."""
    result: costs.Utility = results[UTILITY][UTILITY]
    names = [n for n in result.conditions if n in (ORIGINAL, *study.inputs.safeguards)]

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
        notices = [replace(n, sentence=_NAMELESS.get(n.code, n.sentence)) for n in notices]
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


def _said(result: costs.Utility, name: str) -> str:
    parts = []
    wer, rho, mos = (result.estimate(name, m) for m in ("wer", "rho_f0", "dnsmos_ovrl"))
    bare = result.estimate(ORIGINAL, "wer")
    if wer is not None and bare is not None:
        parts.append(
            f"{shown(wer, 1, scale=100)} % of words wrong, {shown(bare, 1, scale=100)} % of"
            f" unprotected ones ({result.recogniser})"
        )
    parts += [f"pitch correlated by {shown(rho, 2)}"] if rho is not None else []
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
        colours={**study.colours, SILENCE: "#000000"},
    ).plain()


FRAMEWORK = Framework(UTILITY, _section, steps=_steps, main=UTILITY)
