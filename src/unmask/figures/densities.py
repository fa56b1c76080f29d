"""Densities of target and nontarget scores, by system and by trial config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from unmask.engine import Histogram
from unmask.errors import InputError
from unmask.figures.cp_cells import heading
from unmask.figures.encode import (
    dashed,
    in_grid,
    is_wide,
    kinds,
    panel_columns,
    panel_title,
    percent,
    tips,
)
from unmask.figures.figure import Figure, Layers, join, require_systems, table
from unmask.figures.theme import INK, NARROW, NONTARGET, TARGET, WIDE, shorten
from unmask.stress import ConfigScores

_TARGET, _NONTARGET = "target (same voice)", "nontarget (other voice)"


def score_histograms(
    curves: Mapping[str, Histogram],
    *,
    width: float = WIDE,
    name: str = "score_histograms",
    title: str = "Scores of target and nontarget trials",
) -> Figure:
    """One panel per system: both densities as steps, the EER threshold as a rule."""
    require_systems(curves, chart="score histograms")
    columns = panel_columns(len(curves), width=width)
    inner = (min(width, 560) - 84) if columns == 1 else (width - 70 - 46 * columns) / columns
    height = 240 if len(curves) == 1 and width > NARROW else 150
    panels = [
        _panel(system, curve, first=i % columns == 0, alone=len(curves) == 1).properties(
            width=int(inner), height=height
        )
        for i, (system, curve) in enumerate(curves.items())
    ]
    described = f"Densities of target and nontarget scores of {', '.join(curves)}"
    chart = in_grid(panels, columns=columns, spacing=18, description=described)
    return Figure(name, title, _caption(curves), chart)


def _panel(system: str, curve: Histogram, *, first: bool, alone: bool) -> Layers:
    x = _scores(curve, "Score", ticks=4)
    top = 1.06 * float(max(curve.target.max(initial=0), curve.nontarget.max(initial=0))) or 1.0
    y = alt.Y(
        "density:Q",
        title="Density" if first else None,
        scale=alt.Scale(domain=[0, top], nice=False),
    ).axis(tickCount=4)
    layers = [_areas(curve).encode(x, y.stack(None))]
    if math.isfinite(curve.eer_threshold):
        rule = _threshold(curve.eer_threshold)
        layers.append(rule.encode(tooltip=tips("score:Q|EER threshold|.4~g")))
    layers.append(_bins(system, curve))
    if not alone:
        layers.append(panel_title(system))
    return alt.layer(*layers)


def _scores(curve: Histogram | ConfigScores, title: str | None, *, ticks: int) -> alt.X:
    scale = alt.Scale(domain=[float(curve.edges[0]), float(curve.edges[-1])], nice=False)
    return alt.X("score:Q", title=title, scale=scale).axis(tickCount=ticks, grid=False)


def _areas(curve: Histogram | ConfigScores) -> alt.Chart:
    """Both densities as steps, targets above."""
    steps = join(
        table(trials=kind, score=curve.edges, density=np.append(density, density[-1:]))
        for kind, density in ((_NONTARGET, curve.nontarget), (_TARGET, curve.target))
    )
    colour = kinds(
        "trials",
        {_TARGET: TARGET, _NONTARGET: NONTARGET},
        legend=alt.Legend(title=None, orient="bottom", symbolType="square", direction="horizontal"),
    )
    area = alt.Chart(steps).mark_area(
        interpolate="step-after", fillOpacity=0.25, line={"strokeWidth": 1.4}
    )
    drawn: alt.Chart = area.encode(colour)
    return drawn


def _threshold(score: float) -> alt.Chart:
    rule = dashed(table(score=score), color=INK, strokeWidth=1.2)
    drawn: alt.Chart = rule.encode(alt.X("score:Q"))
    return drawn


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
    drawn: alt.Chart = (
        alt.Chart(bins)
        .mark_rect(opacity=0)
        .encode(
            alt.X("score:Q"),
            alt.X2("end:Q"),
            alt.Y("density:Q"),
            y2=alt.datum(0),
            tooltip=tips(
                "system:N|System; score:Q|Scores from|.4~g; end:Q|Scores to|.4~g; "
                "target:Q|Target density|.4~g; nontarget:Q|Nontarget density|.4~g"
            ),
        )
    )
    return drawn


def _caption(curves: Mapping[str, Histogram]) -> str:
    parts = [
        "The less the two densities overlap, the better voices are told apart; protected voices "
        "should overlap. The dashed line is the threshold of the equal error rate."
    ]
    if len(curves) > 1:
        parts.append("Panels have their own axes.")
    else:
        parts.append(f"System: {next(iter(curves))}.")
    hidden = [f"{c.infinite:,} ({shorten(n)})" for n, c in curves.items() if c.infinite]
    if hidden:
        parts.append(f"Infinite scores not shown: {', '.join(hidden)}.")
    unset = [shorten(n) for n, c in curves.items() if not math.isfinite(c.eer_threshold)]
    if unset:
        parts.append(f"The EER threshold lies at infinity for {', '.join(unset)}.")
    return " ".join(parts)


def trial_bias_figure(
    configs: Sequence[ConfigScores],
    *,
    width: float = WIDE,
    name: str = "trial_bias",
    title: str = "Trial bias: the same system on other trials",
) -> Figure:
    """One panel per trial config below the other, all on the same axes."""
    if not configs:
        raise InputError("trial bias: expected at least one trial config, found none")
    top = 1.06 * max(float(max(c.target.max(), c.nontarget.max())) for c in configs)
    panels = [
        _config_panel(config, top=top or 1.0, last=i == len(configs) - 1).properties(
            width=460 if is_wide(width) else 250, height=120
        )
        for i, config in enumerate(configs)
    ]
    chart = alt.vconcat(*panels, spacing=30).properties(
        description=f"Score densities of {', '.join(c.name for c in configs)}"
    )
    rates = "; ".join(f"{c.name}: {percent(c.eer)}" for c in configs)
    caption = (
        "Densities of the scores of one system on different trial configs, all on one axis. The "
        "system is the same; what differs is how hard the trials are. Dashed: the threshold of the "
        f"equal error rate ({rates})."
    )
    return Figure(name, title, caption, chart)


def _config_panel(config: ConfigScores, *, top: float, last: bool) -> Layers:
    y = alt.Y("density:Q", title="Density", scale=alt.Scale(domain=[0, top], nice=False))
    layers = [
        _areas(config).encode(
            _scores(config, "Score" if last else None, ticks=6),
            y.stack(None).axis(tickCount=3),
            tooltip=tips("trials:N|Trials; score:Q|Scores from|.4~g; density:Q|Density|.4~g"),
        )
    ]
    if math.isfinite(config.threshold):
        layers.append(_threshold(config.threshold))
    layers += heading(
        shorten(config.name),
        f"EER {percent(config.eer)}, {config.targets:,} target and "
        f"{config.nontargets:,} nontarget trials",
    )
    return alt.layer(*layers)
