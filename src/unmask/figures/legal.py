"""The legally validated metrics: risk against the number of speakers, and of people trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from unmask.errors import InputError
from unmask.figures.encode import (
    attacker_lines,
    band,
    count_x,
    dashed,
    end_labels,
    in_grid,
    in_panel,
    is_wide,
    kinds,
    legend,
    lookup,
    panel_words,
    percent_y,
    tips,
)
from unmask.figures.figure import Figure, Layers, join, require_systems, table
from unmask.figures.speakers import rank_histograms, speaker_risks
from unmask.figures.theme import PALETTE, WIDE, shorten, system_colours
from unmask.privacy.legal import Curve, LearningCurve, LegalSweep, RiskCurve

_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000)
_APART, _MOST_TICKS = 1.6, 5
_TITLES = {
    "singling_out": ("Singling Out (%)", "N test speakers"),
    "linkability": ("Linkability (%)", "N′ enrolment speakers"),
    "one_minus_eer": ("1 − EER (%)", "N′ enrolment speakers"),
}
_CHANCE = "chance"
_HEIGHT = 150


def legal_figures(
    sweep: LegalSweep, *, colour: str = PALETTE[0], width: float = WIDE
) -> list[Figure]:
    """The panel, and for each length the risks of speakers and the ranks."""
    figures = [legal_panel(sweep, colour=colour, width=width)]
    for length in sweep.lengths:
        for metric in ("singling_out", "linkability"):
            curves = {
                name: curve
                for name in (sweep.attackers if metric in sweep.metrics else ())
                if isinstance(curve := sweep.shown(name, metric, length), RiskCurve)
            }
            if curves:
                name = f"speaker_risks_{metric}_{length}"
                figures.append(
                    speaker_risks(
                        curves, original=sweep.original, colour=colour, width=width, name=name
                    )
                )
        ranks = {name: r for (name, size), r in sweep.ranks.items() if size == length}
        if ranks:
            name = f"rank_histograms_{length}"
            figures.append(
                rank_histograms(
                    ranks, original=sweep.original, colour=colour, width=width, name=name
                )
            )
    return figures


def legal_panel(
    sweep: LegalSweep,
    *,
    colour: str = PALETTE[0],
    width: float = WIDE,
    name: str = "legal_panel",
    title: str = "Risk of re-identification against the number of speakers",
) -> Figure:
    """Rows are metrics, columns lengths; a line per attacker with its interval, chance dashed."""
    if not sweep.curves:
        raise InputError("legal panel: expected at least one curve, found none")
    across = len(sweep.lengths) if is_wide(width) else 1
    inner = int((width - 62 - 34 * across) / across)
    panels = [
        _panel(sweep, metric, length, colour, first=i == 0 or across == 1)
        for metric in sweep.metrics
        for i, length in enumerate(sweep.lengths)
    ]
    for i, length in enumerate(sweep.lengths * (len(sweep.metrics) if across == 1 else 1)):
        panels[i] += panel_words(f"L = {_spoken(length)}", lift=5)
    chart = in_grid(
        [panel.properties(width=min(inner, 380), height=150) for panel in panels],
        columns=across,
        spacing=14,
        description="Values of " + ", ".join(_TITLES[m][0] for m in sweep.metrics),
    ).resolve_scale(color="shared", strokeDash="shared")
    return Figure(name, title, _caption(sweep), chart)


def _spoken(length: int) -> str:
    return f"{length} utterance{'s' if length > 1 else ''}"


def _panel(sweep: LegalSweep, metric: str, length: int, colour: str, *, first: bool) -> Layers:
    curves = {n: sweep.shown(n, metric, length) for n in sweep.attackers}
    label, who = _TITLES[metric]
    x = _counts(who, list(curves.values()))
    y, low = (percent_y(column, label if first else None) for column in ("value", "low"))
    rows = join(
        table(
            **_columns(curve),
            attacker=attacker,
            scores=curve.variant,
            residual=curve.residual,
            attacks=curve.attacks,
        )
        for attacker, curve in curves.items()
    )
    domain = [*sweep.attackers, _CHANCE]
    named = alt.Legend(
        title="Attacker",
        orient="bottom",
        columns=0 if len(domain) < 6 else 3,
        symbolType="stroke",
        symbolSize=420,
        labelExpr=lookup(domain, [shorten(n) for n in domain]),
    )
    paint, dash = attacker_lines(
        sweep.attackers, original=sweep.original, colour=colour, legend=named, chance=_CHANCE
    )
    one = next(iter(curves.values()))
    chance = table(attacker=_CHANCE, count=one.counts, value=one.chance)
    points = alt.Chart(rows).mark_point(filled=True, size=14)
    return alt.layer(
        band(rows, x, low, paint, opacity=0.16),
        alt.Chart(chance).mark_line(strokeWidth=1.1, clip=True).encode(x, y, paint, dash),
        alt.Chart(rows).mark_line(strokeWidth=1.7, clip=True).encode(x, y, paint, dash),
        points.encode(
            x,
            y,
            paint,
            tooltip=tips(
                "attacker:N|Attacker; scores:N|Scores; count:Q|Speakers|,; value:Q|Value|.2%; "
                "low:Q|From|.2%; high:Q|To|.2%; chance:Q|Chance|.2%; "
                "residual:Q|Residual risk|.2%; attacks:Q|Attacks|,"
            ),
        ),
    )


def _columns(curve: Curve) -> dict[str, object]:
    """What every chart of a curve shows: the value, its interval and chance at each count."""
    fields = {"count": "counts"} | {name: name for name in ("value", "low", "high", "chance")}
    return {name: getattr(curve, field) for name, field in fields.items()}


def _counts(title: str, curves: Sequence[Curve], **axis: bool) -> alt.X:
    """The numbers of speakers of all curves."""
    least = min(int(curve.counts.min()) for curve in curves)
    most = max(int(curve.counts.max()) for curve in curves)
    ends = (least, max(most, least + 1))
    return count_x(title, ends, count_ticks(least, most), format=",", labelFlush=True, **axis)


def count_ticks(least: int, most: int) -> list[int]:
    """Both ends of an axis of counts, and round numbers between them that are far enough apart."""
    ticks = [least]
    apart = max(_APART, (most / least) ** (1 / _MOST_TICKS))
    for count in _TICKS:
        if count >= apart * ticks[-1] and most >= apart * count:
            ticks.append(count)
    return ticks if most == least else [*ticks, most]


def _caption(sweep: LegalSweep) -> str:
    parts = [
        "Lower is more protective; the distance to the black dashed line (chance) is what the"
        " attacker gains. Each attacker reads its scores in the way, plain, negated or centred,"
        " that succeeds most with most speakers. Bands are intervals over speakers.",
    ]
    if sweep.original is not None:
        parts.append(
            f"Grey ({shorten(sweep.original)}): unprotected speech, which an attack must"
            " recognise well before its low values are believed."
        )
    if "singling_out" in sweep.metrics:
        parts.append(
            "Chance of Singling Out is exp(−1), as in the paper; scores without any information"
            " reach a little less."
        )
    return " ".join(parts)


@dataclass(frozen=True)
class RiskLine:
    """The curve of one safeguard under its strongest attacker."""

    safeguard: str
    attacker: str
    metric: str
    length: int
    curve: Curve


def risk_comparison(
    lines: Sequence[RiskLine],
    *,
    colours: Mapping[str, str],
    original: str | None = None,
    width: float = WIDE,
    name: str = "risk_comparison",
    title: str = "Risk under the strongest attacker, against the number of speakers",
) -> Figure:
    """Metrics across, conversation lengths down; a line per safeguard, chance dashed."""
    require_systems({line.safeguard: line for line in lines}, chart="risk comparison")
    metrics = list(dict.fromkeys(line.metric for line in lines))
    lengths = list(dict.fromkeys(line.length for line in lines))
    across = len(metrics) if is_wide(width) else 1
    inner = min(300, int((width - 20 - 130 * across) / across))
    names = list(dict.fromkeys(line.safeguard for line in lines))
    colour = kinds("system", {name: colours[name] for name in names}, legend=None)
    panels = [
        _risk_panel(
            [one for one in lines if (one.metric, one.length) == (metric, length)], colour, colours
        ).properties(width=inner, height=_HEIGHT)
        for length in lengths
        for metric in metrics
    ]
    described = "Risk of every safeguard: " + ", ".join(names)
    chart = in_grid(panels, columns=across, spacing=22, description=described)
    caption = (
        "Each line is one safeguard under the attacker that succeeds most; lower is more"
        " protective. The black dashed line is chance: the distance to it is what the attacker"
        " gains. Bands are intervals over speakers."
    )
    if original is not None:
        caption += " Grey: unprotected speech."
    return Figure(name, title, caption, chart)


def _risk_panel(lines: Sequence[RiskLine], colour: alt.Color, colours: Mapping[str, str]) -> Layers:
    metric, first = lines[0].metric, lines[0].curve
    x = _counts("Speakers", [one.curve for one in lines], grid=False)
    y, low = (percent_y(field, _TITLES.get(metric, (metric,))[0]) for field in ("value", "low"))
    rows = join(
        table(system=one.safeguard, attacker=one.attacker, **_columns(one.curve)) for one in lines
    )
    chance = dashed(
        table(count=first.counts, value=first.chance), mark="line", strokeWidth=1.1, clip=True
    )
    base = alt.Chart(rows)
    last = max(int(one.curve.counts.max()) for one in lines)
    ends = {one.safeguard: float(one.curve.value[one.curve.counts.argmax()]) for one in lines}
    return alt.layer(
        band(rows, x, low, colour, opacity=0.13),
        chance.encode(x, y),
        base.mark_line(clip=True).encode(x, y, colour),
        base.mark_point(filled=True, size=22, opacity=1).encode(
            x,
            y,
            colour,
            tooltip=tips(
                "system:N|Safeguard; attacker:N|Strongest attacker; count:Q|Speakers|,; "
                "value:Q|Risk|.1%; low:Q|From|.1%; high:Q|To|.1%; chance:Q|Chance|.1%"
            ),
        ),
        *end_labels(ends, colours, x, y, last=last, span=1.0, height=_HEIGHT),
        panel_words(_spoken(lines[0].length)),
    )


def learning_curves(
    curves: Mapping[str, LearningCurve],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "learning_curves",
) -> Figure:
    """A line per attack with its interval; chance dashed."""
    if not curves:
        raise InputError("learning curves: expected at least one, found none")
    colours = colours or system_colours(curves)
    rows = join(
        table(
            count=[int(n) for n in curve.people],
            value=curve.value,
            low=curve.limits[0],
            high=curve.limits[1],
            attack=label,
        )
        for label, curve in curves.items()
    )
    people = [int(n) for curve in curves.values() for n in curve.people]
    ends = (min(people) / 1.1, max(people) * 1.1)
    ticks = [n for n in _TICKS if ends[0] <= n <= ends[1]]
    x = count_x("People trained on", ends, ticks or sorted(set(people)))
    y, low = percent_y("value", "Linkability (%)"), percent_y("low", "Linkability (%)")
    colour = kinds(
        "attack",
        {label: colours[label] for label in curves},
        legend=legend(width=width, title=None),
    )
    line = alt.Chart(rows).mark_line(point=True, strokeWidth=1.8)
    hover = tips("attack:N|Attack; count:Q|People trained on; value:Q|Linkability|.3f")
    chance = {1 / curve.candidates for curve in curves.values()}
    layers = alt.layer(
        band(rows, x, low, colour, opacity=0.12),
        dashed(table(value=sorted(chance))).encode(y),
        line.encode(x, y, colour, tooltip=hover),
    )
    chart = in_panel(layers, width=width, ratio=0.5, description="Linkability of each attack")
    some = next(iter(curves.values()))
    caption = (
        f"Linkability of single utterances among {some.candidates} candidates under attackers"
        " trained on more and more people, none of whom is attacked; bands are intervals over the"
        " people attacked, the dashed line is chance. Where a line still rises, more training"
        " speech would link more."
    )
    return Figure(name, "Would more training speech link more?", caption, chart)
