"""The legally validated metrics: risk against the number of speakers, and of people trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from unmask.figures import draw
from unmask.figures.figure import Figure, Layers, captioned, join, require, table
from unmask.figures.speakers import rank_histograms, speaker_risks
from unmask.figures.theme import PALETTE, is_wide, shorten, system_colours, width
from unmask.privacy.legal import Curve, LearningCurve, LegalSweep, RiskCurve, spoken

_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000)
_APART, _MOST_TICKS = 1.6, 5
_TITLES = {
    "singling_out": ("Singling Out (%)", "N test speakers"),
    "linkability": ("Linkability (%)", "N′ enrolment speakers"),
    "one_minus_eer": ("1 − EER (%)", "N′ enrolment speakers"),
}
_CHANCE = "chance"
_HEIGHT = 150


def legal_figures(sweep: LegalSweep) -> list[Figure]:
    """The panel, and for each length the risks of speakers and the ranks."""
    figures = [legal_panel(sweep)]
    for length in sweep.lengths:
        for metric in ("singling_out", "linkability"):
            curves = {
                name: curve
                for name in (sweep.attackers if metric in sweep.metrics else ())
                if isinstance(curve := sweep.shown(name, metric, length), RiskCurve)
            }
            if curves:
                drawn = speaker_risks(curves, original=sweep.original)
                figures.append(drawn.called(f"{drawn.name}_{metric}_{length}"))
        ranks = {name: r for (name, size), r in sweep.ranks.items() if size == length}
        if ranks:
            drawn = rank_histograms(ranks, original=sweep.original)
            figures.append(drawn.called(f"{drawn.name}_{length}"))
    return figures


def legal_panel(sweep: LegalSweep, *, colour: str = PALETTE[0]) -> Figure:
    """Rows are metrics, columns lengths; a line per attacker with its interval, chance dashed."""
    require(sweep.curves, "legal panel", "curve")
    across = len(sweep.lengths) if is_wide() else 1
    inner = int((width() - 62 - 34 * across) / across)
    panels = [
        _panel(sweep, metric, length, colour, first=i == 0 or across == 1)
        for metric in sweep.metrics
        for i, length in enumerate(sweep.lengths)
    ]
    for i, length in enumerate(sweep.lengths * (len(sweep.metrics) if across == 1 else 1)):
        panels[i] += draw.above(f"L = {spoken(length)}", lift=5)
    sized = [panel.properties(width=min(inner, 380), height=_HEIGHT) for panel in panels]
    chart = alt.concat(*sized, columns=across, spacing=14)
    return captioned(
        "legal_panel",
        chart.resolve_scale(color="shared", strokeDash="shared"),
        metrics=[_TITLES[metric][0] for metric in sweep.metrics],
        original=sweep.original and shorten(sweep.original),
        singling_out="singling_out" in sweep.metrics,
    )


def _panel(sweep: LegalSweep, metric: str, length: int, colour: str, *, first: bool) -> Layers:
    curves = {n: sweep.shown(n, metric, length) for n in sweep.attackers}
    label, who = _TITLES[metric]
    x = _counts(who, list(curves.values()))
    y = draw.percent_axis(alt.Y, "value", label if first else None)
    rows = join(
        table(attacker=attacker, scores=curve.variant, **_columns(curve, "residual", "attacks"))
        for attacker, curve in curves.items()
    )
    short = {n: shorten(n) for n in (*sweep.attackers, _CHANCE)}
    paint, dash = draw.attacker_lines(
        short,
        original=sweep.original,
        colour=colour,
        chance=_CHANCE,
        title="Attacker",
        orient="bottom",
        columns=0 if len(short) < 6 else 3,
    )
    one = next(iter(curves.values()))
    chance = table(attacker=_CHANCE, count=one.counts, value=one.chance)
    hover = (
        "attacker:N|Attacker; scores:N|Scores; count:Q|Speakers|,; value:Q|Value|.2%; "
        "low:Q|From|.2%; high:Q|To|.2%; chance:Q|Chance|.2%; "
        "residual:Q|Residual risk|.2%; attacks:Q|Attacks|,"
    )
    return alt.layer(
        draw.band(rows, x, y, paint, opacity=0.16),
        draw.mark(chance, "line", x, y, paint, dash, strokeWidth=1.1, clip=True),
        draw.mark(rows, "line", x, y, paint, dash, strokeWidth=1.7, clip=True),
        draw.mark(rows, "point", x, y, paint, hover=hover, filled=True, size=14),
    )


def _columns(curve: Curve, *more: str) -> dict[str, object]:
    """What charts of a curve show at each count: the value, its interval, chance, and ``more``."""
    fields = ("value", "low", "high", "chance", *more)
    return {"count": curve.counts, **{name: getattr(curve, name) for name in fields}}


def _counts(title: str, curves: Sequence[Curve], **options: bool) -> alt.X:
    """The numbers of speakers of all curves."""
    least = min(int(curve.counts.min()) for curve in curves)
    most = max(int(curve.counts.max()) for curve in curves)
    ends, ticks = (least, max(most, least + 1)), count_ticks(least, most)
    how: draw.Style = {"values": ticks, "format": ",", "labelFlush": True, **options}
    return draw.axis(alt.X, "count", title, ends, log=True, **how)


def count_ticks(least: int, most: int) -> list[int]:
    """Both ends of an axis of counts, and round numbers between them that are far enough apart."""
    ticks = [least]
    apart = max(_APART, (most / least) ** (1 / _MOST_TICKS))
    for count in _TICKS:
        if count >= apart * ticks[-1] and most >= apart * count:
            ticks.append(count)
    return ticks if most == least else [*ticks, most]


@dataclass(frozen=True)
class RiskLine:
    """The curve of one safeguard under its strongest attacker."""

    safeguard: str
    attacker: str
    metric: str
    length: int
    curve: Curve


def risk_comparison(
    lines: Sequence[RiskLine], *, colours: Mapping[str, str], original: str | None = None
) -> Figure:
    """Metrics across, conversation lengths down; a line per safeguard, chance dashed."""
    require(lines, "risk comparison")
    metrics = list(dict.fromkeys(line.metric for line in lines))
    lengths = list(dict.fromkeys(line.length for line in lines))
    across = len(metrics) if is_wide() else 1
    inner = min(300, int((width() - 20 - 130 * across) / across))
    shades = {line.safeguard: colours[line.safeguard] for line in lines}
    panels = [
        _risk_panel(
            [one for one in lines if (one.metric, one.length) == (metric, length)], shades
        ).properties(width=inner, height=_HEIGHT)
        for length in lengths
        for metric in metrics
    ]
    chart, grey = alt.concat(*panels, columns=across, spacing=22), original is not None
    return captioned("risk_comparison", chart, safeguards=shades, original=grey)


def _risk_panel(lines: Sequence[RiskLine], colours: Mapping[str, str]) -> Layers:
    metric, first = lines[0].metric, lines[0].curve
    x = _counts("Speakers", [one.curve for one in lines], grid=False)
    y = draw.percent_axis(alt.Y, "value", _TITLES.get(metric, (metric,))[0])
    colour = draw.by(alt.Color, "system", colours)
    rows = join(
        table(system=one.safeguard, attacker=one.attacker, **_columns(one.curve)) for one in lines
    )
    chance = table(count=first.counts, value=first.chance)
    last = max(int(one.curve.counts.max()) for one in lines)
    ends = {
        one.safeguard: (last, float(one.curve.value[one.curve.counts.argmax()])) for one in lines
    }
    hover = (
        "system:N|Safeguard; attacker:N|Strongest attacker; count:Q|Speakers|,; "
        "value:Q|Risk|.1%; low:Q|From|.1%; high:Q|To|.1%; chance:Q|Chance|.1%"
    )
    return alt.layer(
        draw.band(rows, x, y, colour, opacity=0.13),
        draw.dashed(chance, x, y, kind="line", strokeWidth=1.1, clip=True),
        draw.mark(rows, "line", x, y, colour, clip=True),
        draw.dots(rows, x, y, colour, hover=hover, size=22),
        *draw.labels_at(ends, colours, x, y, height=_HEIGHT),
        draw.above(spoken(lines[0].length)),
    )


def learning_curves(curves: Mapping[str, LearningCurve]) -> Figure:
    """A line per attack with its interval; chance dashed."""
    require(curves, "learning curves", "attack")
    rows = join(
        table(attack=label, count=one.people, value=one.value, low=low, high=high)
        for label, one in curves.items()
        for low, high in [one.limits]
    )
    people = sorted({int(n) for curve in curves.values() for n in curve.people})
    ends = (people[0] / 1.1, people[-1] * 1.1)
    ticks = [n for n in _TICKS if ends[0] <= n <= ends[1]]
    x = draw.axis(alt.X, "count", "People trained on", ends, log=True, values=ticks or people)
    y = draw.percent_axis(alt.Y, "value", "Linkability (%)")
    colour = draw.by(alt.Color, "attack", system_colours(curves), legend=draw.legend(None))
    hover = "attack:N|Attack; count:Q|People trained on; value:Q|Linkability|.3f"
    chance = sorted({1 / curve.candidates for curve in curves.values()})
    chart = draw.in_panel(
        draw.band(rows, x, y, colour, opacity=0.12),
        draw.dashed(table(value=chance), y),
        draw.mark(rows, "line", x, y, colour, hover=hover, point=True, strokeWidth=1.8),
        ratio=0.5,
    )
    return captioned("learning_curves", chart, candidates=next(iter(curves.values())).candidates)
