"""Densities of target and nontarget scores, by system and by trial config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from unmask.engine import Histogram
from unmask.figures import draw
from unmask.figures.figure import Figure, join, require, sentences, table
from unmask.figures.theme import INK, NARROW, NONTARGET, TARGET, WIDE, shorten
from unmask.stress import ConfigScores

_TARGET, _NONTARGET = "target (same voice)", "nontarget (other voice)"


def score_histograms(curves: Mapping[str, Histogram], *, width: float = WIDE) -> Figure:
    """One panel per system: both densities as steps, the EER threshold as a rule."""
    require(curves, "score histograms")
    columns = draw.panel_columns(len(curves), width=width)
    inner = (min(width, 560) - 84) if columns == 1 else (width - 70 - 46 * columns) / columns
    alone = len(curves) == 1
    height = 240 if alone and width > NARROW else 150
    panels = []
    for i, (system, curve) in enumerate(curves.items()):
        x = _scores(curve, "Score", ticks=4)
        label = "Density" if i % columns == 0 else None
        y = draw.axis(alt.Y, "density", label, (0, _top(curve)), tickCount=4)
        layers = [
            _areas(curve, x, y),
            *_threshold(curve.eer_threshold, "score:Q|EER threshold|.4~g"),
            _bins(system, curve),
            *([] if alone else [draw.panel_title(system)]),
        ]
        panels.append(alt.layer(*layers).properties(width=int(inner), height=height))
    described = f"Densities of target and nontarget scores of {', '.join(curves)}"
    chart = draw.in_grid(panels, columns=columns, spacing=18, description=described)
    hidden = [f"{c.infinite:,} ({shorten(n)})" for n, c in curves.items() if c.infinite]
    unset = [shorten(n) for n, c in curves.items() if not math.isfinite(c.eer_threshold)]
    caption = sentences(
        "The less the two densities overlap, the better voices are told apart; protected voices "
        "should overlap. The dashed line is the threshold of the equal error rate.",
        f"System: {next(iter(curves))}." if alone else "Panels have their own axes.",
        f"Infinite scores not shown: {', '.join(hidden)}." if hidden else "",
        f"The EER threshold lies at infinity for {', '.join(unset)}." if unset else "",
    )
    return Figure("score_histograms", "Scores of target and nontarget trials", caption, chart)


def _top(*curves: Histogram | ConfigScores) -> float:
    """The end of an axis that shows all densities."""
    return 1.06 * max(float(d.max(initial=0)) for c in curves for d in (c.target, c.nontarget)) or 1


def _scores(curve: Histogram | ConfigScores, title: str | None, *, ticks: int) -> alt.X:
    ends = (float(curve.edges[0]), float(curve.edges[-1]))
    return draw.axis(alt.X, "score", title, ends, tickCount=ticks, grid=False)


def _areas(curve: Histogram | ConfigScores, x: alt.X, y: alt.Y, hover: str = "") -> alt.Chart:
    """Both densities as steps, targets above."""
    steps = join(
        table(trials=kind, score=curve.edges, density=np.append(density, density[-1:]))
        for kind, density in ((_NONTARGET, curve.nontarget), (_TARGET, curve.target))
    )
    colour = draw.by(
        alt.Color,
        "trials",
        {_TARGET: TARGET, _NONTARGET: NONTARGET},
        legend=alt.Legend(title=None, orient="bottom", symbolType="square", direction="horizontal"),
    )
    style = {"interpolate": "step-after", "fillOpacity": 0.25, "line": {"strokeWidth": 1.4}}
    return draw.mark(steps, "area", x, y.stack(None), colour, hover=hover, **style)


def _threshold(score: float, hover: str = "") -> list[alt.Chart]:
    """A rule, where the threshold is finite."""
    style: draw.Style = {"color": INK, "strokeWidth": 1.2}
    rule = draw.dashed(table(score=score), alt.X("score:Q"), hover=hover, **style)
    return [rule] if math.isfinite(score) else []


def _bins(system: str, curve: Histogram) -> alt.Chart:
    """Invisible bars that answer the pointer."""
    bins = table(
        system=system,
        score=curve.edges[:-1],
        end=curve.edges[1:],
        target=curve.target,
        nontarget=curve.nontarget,
        density=np.maximum(curve.target, curve.nontarget),
    )
    places = (alt.X("score:Q"), alt.X2("end:Q"), alt.Y("density:Q"), alt.Y2Datum(0))
    hover = (
        "system:N|System; score:Q|Scores from|.4~g; end:Q|Scores to|.4~g; "
        "target:Q|Target density|.4~g; nontarget:Q|Nontarget density|.4~g"
    )
    return draw.mark(bins, "rect", *places, hover=hover, opacity=0)


def trial_bias_figure(
    configs: Sequence[ConfigScores],
    *,
    width: float = WIDE,
    name: str = "trial_bias",
    title: str = "Trial bias: the same system on other trials",
) -> Figure:
    """One panel per trial config below the other, all on the same axes."""
    require(configs, "trial bias", "trial config")
    y = draw.axis(alt.Y, "density", "Density", (0, _top(*configs)), tickCount=3)
    hover = "trials:N|Trials; score:Q|Scores from|.4~g; density:Q|Density|.4~g"
    panels = [
        alt.layer(
            _areas(config, _scores(config, below, ticks=6), y, hover),
            *_threshold(config.threshold),
            *draw.heading(
                shorten(config.name),
                f"EER {draw.percent(config.eer)}, {config.targets:,} target and "
                f"{config.nontargets:,} nontarget trials",
            ),
        ).properties(width=460 if draw.is_wide(width) else 250, height=120)
        for config, below in zip(configs, [None] * (len(configs) - 1) + ["Score"], strict=True)
    ]
    chart = alt.vconcat(*panels, spacing=30).properties(
        description=f"Score densities of {', '.join(c.name for c in configs)}"
    )
    rates = "; ".join(f"{c.name}: {draw.percent(c.eer)}" for c in configs)
    caption = (
        "Densities of the scores of one system on different trial configs, all on one axis. The "
        "system is the same; what differs is how hard the trials are. Dashed: the threshold of the "
        f"equal error rate ({rates})."
    )
    return Figure(name, title, caption, chart)
