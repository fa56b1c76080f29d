"""Trial bias: the scores of two trial configs of one system, on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import numpy as np

from unmask.errors import InputError
from unmask.figures.cp_cells import heading
from unmask.figures.data import join, table
from unmask.figures.encode import is_wide, percent
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import DASHED, INK, NONTARGET, TARGET, WIDE, shorten
from unmask.stress import ConfigScores

_TARGET, _NONTARGET = "target (same voice)", "nontarget (other voice)"


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
        _panel(config, top=top or 1.0, last=i == len(configs) - 1).properties(
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


def _panel(config: ConfigScores, *, top: float, last: bool) -> Layers:
    ends = [float(config.edges[0]), float(config.edges[-1])]
    x = alt.X(
        "score:Q", title="Score" if last else None, scale=alt.Scale(domain=ends, nice=False)
    ).axis(tickCount=6, grid=False)
    y = alt.Y("density:Q", title="Density", scale=alt.Scale(domain=[0, top], nice=False))
    colour = alt.Color(
        "trials:N",
        scale=alt.Scale(domain=[_TARGET, _NONTARGET], range=[TARGET, NONTARGET]),
        legend=alt.Legend(title=None, orient="bottom", symbolType="square", direction="horizontal"),
    )
    steps = join(
        table(trials=kind, score=config.edges, density=np.append(density, density[-1:]))
        for kind, density in ((_NONTARGET, config.nontarget), (_TARGET, config.target))
    )
    layers: list[alt.Chart] = [
        alt.Chart(steps)
        .mark_area(interpolate="step-after", fillOpacity=0.25, line={"strokeWidth": 1.4})
        .encode(
            x,
            y.stack(None).axis(tickCount=3),
            colour,
            tooltip=[
                alt.Tooltip("trials:N", title="Trials"),
                alt.Tooltip("score:Q", title="Scores from", format=".4~g"),
                alt.Tooltip("density:Q", title="Density", format=".4~g"),
            ],
        )
    ]
    if math.isfinite(config.threshold):
        rule = alt.Chart(table(score=config.threshold)).mark_rule(
            color=INK, strokeDash=list(DASHED), strokeWidth=1.2
        )
        layers.append(rule.encode(alt.X("score:Q")))
    layers += heading(
        shorten(config.name),
        f"EER {percent(config.eer)}, {config.targets:,} target and "
        f"{config.nontargets:,} nontarget trials",
    )
    return alt.layer(*layers)
