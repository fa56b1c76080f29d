"""The plane of what protection achieves and what it costs: risk against utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from unmask.errors import InputError
from unmask.figures.encode import crosses, dashed, in_panel, system_colour, tips
from unmask.figures.figure import Figure, table
from unmask.figures.theme import MUTED, WIDE, shorten

Ends = tuple[float, float]
_NAME = 5.5  # the height of a name in points of the risk


@dataclass(frozen=True)
class PlanePoint:
    """One safeguard, or an anchor: ``risk`` of its strongest attacker as a fraction, ``cost`` in
    units of the axis, each with the ends of its interval where it has one.

    ``attack`` says whose risk it is. An ``anchor`` is no safeguard: unprotected speech, silence.
    """

    system: str
    risk: float
    cost: float
    risk_ends: Ends | None = None
    cost_ends: Ends | None = None
    attack: str = ""
    anchor: bool = False


def pareto(points: Sequence[PlanePoint], *, more_is_better: bool = False) -> tuple[bool, ...]:
    """Which points no other beats: none with at most the risk and at most the cost, one of them
    less. Where ``more_is_better`` the cost is a quality, of which more is better.
    """
    sign = -1.0 if more_is_better else 1.0
    at = [(point.risk, sign * point.cost) for point in points]
    return tuple(not any(a <= x and b <= y and (a < x or b < y) for a, b in at) for x, y in at)


def cost_plane(
    points: Sequence[PlanePoint],
    *,
    cost: str = "Word error rate (%)",
    scale: float = 100.0,
    more_is_better: bool = False,
    risk: str = "Linkability, strongest attacker (%)",
    chance: float | None = None,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "plane",
    title: str = "What protection achieves and what it costs",
) -> Figure:
    """One point per safeguard with both intervals, anchors, and the front nobody beats.

    ``cost`` is the title of the axis along, its values times ``scale``; ``chance`` a dashed line of
    the risk by guessing.
    """
    if not points:
        raise InputError("plane: expected at least one safeguard, found none")
    front = pareto(points, more_is_better=more_is_better)
    systems = [point.system for point in points]
    ends = [
        (point.risk_ends or (point.risk,) * 2, point.cost_ends or (point.cost,) * 2)
        for point in points
    ]
    names_at = _names_at(points, scale)
    rows = table(
        system=systems,
        shown=[shorten(name) for name in systems],
        kind=["anchor" if point.anchor else "safeguard" for point in points],
        attack=[point.attack for point in points],
        risk=[100 * point.risk for point in points],
        cost=[scale * point.cost for point in points],
        risk_low=[100 * e[0][0] for e in ends],
        risk_high=[100 * e[0][1] for e in ends],
        cost_low=[scale * e[1][0] for e in ends],
        cost_high=[scale * e[1][1] for e in ends],
        name_at=names_at,
        front=["on the front" if one else "beaten by another" for one in front],
    )
    better = "→ more useful" if more_is_better else "← more useful"
    x = alt.X(
        "cost:Q", title=f"{cost}, {better}", scale=alt.Scale(nice=True, zero=not more_is_better)
    )
    y = alt.Y("risk:Q", title=f"{risk}, ↓ safer", scale=alt.Scale(domain=[0, 104], nice=False))
    colour = system_colour(systems, colours, width=width).legend(None)
    base = alt.Chart(rows)
    steps = sorted(
        ((scale * p.cost, 100 * p.risk) for p, one in zip(points, front, strict=True) if one),
    )
    steps_drawn = table(
        order=range(len(steps)), cost=[c for c, _ in steps], risk=[r for _, r in steps]
    )
    layers: list[alt.Chart] = []
    if chance is not None:
        layers.append(dashed(table(at=100 * chance)).encode(alt.Y("at:Q")))
    layers += [
        alt.Chart(steps_drawn)
        .mark_line(color=MUTED, strokeWidth=1, interpolate="step-after", strokeDash=[2, 2])
        .encode(x, y, order="order:Q"),
        *crosses(base, x, y, colour),
        base.mark_point(size=80, filled=True, opacity=1).encode(
            x,
            y,
            colour,
            alt.Shape(
                "kind:N",
                scale=alt.Scale(domain=["safeguard", "anchor"], range=["circle", "diamond"]),
                legend=None,
            ),
            tooltip=tips(
                "system:N|Safeguard; attack:N|Attack; risk:Q|Risk, %|.1f; cost:Q|Cost|.2f;"
                " front:N|Front"
            ),
        ),
        base.mark_rule(color=MUTED, strokeWidth=0.7).encode(x, y, alt.Y2("name_at:Q")),
        base.mark_text(align="left", dx=4, fontWeight="bold").encode(
            x, alt.Y("name_at:Q"), colour, text="shown:N"
        ),
    ]
    told = "; ".join(
        f"{p.system}: risk {100 * p.risk:.0f} %, cost {scale * p.cost:.3g}" for p in points
    )
    chart = in_panel(alt.layer(*layers), width=width, ratio=0.7, description=f"Plane: {told}")
    beaten = [shorten(s) for s, one, p in zip(systems, front, points, strict=True) if not one]
    caption = (
        "Each point is a safeguard: the lower, the less its strongest attacker finds; the further"
        f" to the {'right' if more_is_better else 'left'}, the more is left of the speech. Bars are"
        " intervals over speakers, thin lines lead to names. Diamonds are anchors: unprotected"
        " speech, which costs nothing, and silence, which protects all and says nothing. The dotted"
        " line is the front: what lies off it is beaten by another, no worse in either value and"
        " better in one, though intervals may overlap."
    )
    if chance is not None:
        caption += " Dashed black: guessing."
    if beaten:
        caption += f" Beaten: {', '.join(beaten)}."
    return Figure(name, title, caption, chart)


def _names_at(points: Sequence[PlanePoint], scale: float) -> list[float]:
    """The height of each point's name: as near as names of close points leave room, those of
    points further to the left lower, so that no rule crosses a name.
    """
    widest = max(abs(scale * point.cost) for point in points) or 1.0
    heights: dict[int, float] = {}
    for n in sorted(range(len(points)), key=lambda n: -points[n].cost):
        point = points[n]
        close = [
            at
            for m, at in heights.items()
            if abs(point.cost - points[m].cost) * scale < 0.2 * widest
        ]
        step = _NAME if point.risk < 0.5 else -_NAME
        free = (100 * point.risk + step * line for line in range(1, 2 * len(points) + 1))
        heights[n] = next(at for at in free if all(abs(at - one) >= _NAME for one in close))
    return [heights[n] for n in range(len(points))]
