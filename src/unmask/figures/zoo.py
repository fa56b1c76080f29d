"""Zoo plots beside the matrices that they come from (Noé 2022, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from unmask.figures.data import require_systems, table
from unmask.figures.encode import is_wide, panel_title
from unmask.figures.figure import Figure, Layers
from unmask.figures.similarity import matrix_panel
from unmask.figures.theme import DASHED, MUTED, WIDE
from unmask.privacy import Zoo
from unmask.privacy.similarity import MatrixView

_COLOURS = {
    "doves": "#009E73",
    "chameleons": "#E69F00",
    "phantoms": "#56B4E9",
    "worms": "#D55E00",
    "": "#6b7280",
}
_REST = "none of them"


def zoo_plots(
    zoos: Mapping[str, Zoo],
    *,
    matrices: Mapping[str, MatrixView] | None = None,
    width: float = WIDE,
    name: str = "zoo",
    title: str = "Zoo plot: who is recognised, who is confused with others",
) -> Figure:
    """One row per set: the similarity matrix where given, and the plot of all speakers."""
    require_systems(zoos, chart="zoo plot")
    views = matrices or {}
    side = 250 if is_wide(width) and views else 300 if is_wide(width) else 220
    rows = []
    for i, (system, zoo) in enumerate(zoos.items()):
        plot = _plot(system, zoo, side)
        if system in views:
            panel = matrix_panel(views[system], side, title=system, key=f"zoo{i}")
            rows += [panel, plot]
        else:
            rows.append(plot)
    columns = 2 if is_wide(width) else 1
    chart = (
        alt.concat(*rows, columns=columns, spacing=30)
        .resolve_scale(color="independent")
        .properties(description=f"Zoo plots of {', '.join(zoos)}")
    )
    told = "; ".join(
        f"{system}: "
        + ", ".join(
            f"{corner.count} {kind} (by chance {corner.expected:.1f}, p = {corner.p_value:.2g})"
            for kind, corner in zoo.corners.items()
        )
        for system, zoo in zoos.items()
    )
    caption = (
        "Every point is a speaker. To the right: recognised well; up: confused with others. "
        "Dashed: outer quartiles; their corners are doves (lower right), chameleons (upper right), "
        f"phantoms (lower left) and worms (upper left). {told}."
    )
    return Figure(name, title, caption, chart)


def _plot(system: str, zoo: Zoo, side: int) -> Layers:
    corner = [kind or _REST for kind in zoo.corner_of()]
    rows = table(
        speaker=list(zoo.speakers), target=zoo.target, impostor=zoo.impostor, corner=corner
    )
    kinds = [kind or _REST for kind in _COLOURS]
    x = alt.X("target:Q", title=f"Mean target {zoo.score}", scale=alt.Scale(zero=False, padding=12))
    y = alt.Y(
        "impostor:Q", title=f"Mean impostor {zoo.score}", scale=alt.Scale(zero=False, padding=12)
    )
    lines = {
        axis: alt.Chart(table(at=list(zoo.quartiles[axis]))).mark_rule(
            color=MUTED, strokeDash=list(DASHED), strokeWidth=0.8
        )
        for axis in ("target", "impostor")
    }
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, size=46, opacity=0.9)
        .encode(
            x,
            y,
            alt.Color(
                "corner:N",
                title="Corner",
                scale=alt.Scale(domain=kinds, range=list(_COLOURS.values())),
            ),
            tooltip=[
                alt.Tooltip("speaker:N", title="Speaker"),
                alt.Tooltip("corner:N", title="Corner"),
                alt.Tooltip("target:Q", title="Mean target", format=".3f"),
                alt.Tooltip("impostor:Q", title="Mean impostor", format=".3f"),
            ],
        )
    )
    return alt.layer(
        lines["target"].encode(x="at:Q"),
        lines["impostor"].encode(y="at:Q"),
        points,
        panel_title(system),
    ).properties(width=side, height=side)
