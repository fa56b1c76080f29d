"""Empirical cross-entropy over the prior: of scores, of what they disclose, of a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from unmask.base import FloatArray
from unmask.engine import EceProfile
from unmask.figures import draw
from unmask.figures.figure import Figure, Layers, join, require, table
from unmask.figures.theme import CHANCE, DASHED, PALETTE, SOLID, WIDE, shorten
from unmask.privacy import CalibrationDistortion, Disclosure

HIGHEST = 1.08
_RATIO = 0.78
_BITS = "log_odds:Q|Prior log-odds|.2f; bits:Q|Cross-entropy (bits)|.4f"

_NO_SCORES = "prior alone, no scores"
_ORACLE, _ACTUAL = "oracle (calibrated)", "actual (scores as LLRs)"


def _axes(title: str, ends: tuple[float, float], *, width: float) -> tuple[alt.X, alt.Y]:
    """Log-odds of the prior, and bits of cross-entropy."""
    bits: draw.Style = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1.0], "format": ".1f"}
    return (
        draw.axis(alt.X, "log_odds", title, ends, tickCount=10 if draw.is_wide(width) else 5),
        draw.axis(alt.Y, "bits", "Empirical cross-entropy (bits)", (0, HIGHEST), **bits),
    )


def ece_profile(
    curves: Mapping[str, EceProfile],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
) -> Figure:
    """ECE of every system, oracle solid and actual dashed, below the prior's entropy in black."""
    require(curves, "ECE profile")
    reference = next(iter(curves.values()))
    lines = [(_NO_SCORES, _ORACLE, reference.log_odds, reference.prior)]
    for system, curve in curves.items():
        lines += [
            (system, _ORACLE, curve.log_odds, curve.oracle),
            (system, _ACTUAL, curve.log_odds, curve.actual),
        ]
    rows = join(table(system=s, line=line, log_odds=x, bits=y) for s, line, x, y in lines)
    odds = np.concatenate([curve.log_odds for curve in curves.values()])
    ends = (float(odds.min()), float(odds.max()))
    channels = (
        *_axes("Prior log-odds of a target (natural log)", ends, width=width),
        draw.system_colour(list(curves), colours, width=width, first=_NO_SCORES),
        draw.line_kind({_ORACLE: SOLID, _ACTUAL: DASHED}, width=width),
    )
    hover = f"system:N|System; line:N|Line; {_BITS}"
    even = alt.Chart(rows).transform_filter("abs(datum.log_odds) < 1e-9")
    even = even.transform_filter(alt.datum.system != _NO_SCORES)
    dot = {"size": 46, "filled": True, "opacity": 1}
    chart = draw.in_panel(
        draw.mark(rows, "line", *channels, hover=hover, clip=True),
        draw.mark(even, "point", *channels, hover=hover, clip=True, **dot),
        width=width,
        ratio=_RATIO,
        description=f"Empirical cross-entropy of {', '.join(curves)} over the prior log-odds",
    )
    caption = (
        "Solid: oracle calibration; dashed: the scores taken as LLRs as they are. "
        "The closer an oracle curve comes to the black one, the less the scores disclose; on it, "
        "they disclose nothing. The gap between a dashed curve and its solid one is lost to poor "
        "calibration; above the black curve the scores mislead whoever takes them as LLRs. "
        "The dots at even odds are C_llr^min (solid) and C_llr (dashed). "
        "Divide log-odds by 2.303 for base 10."
    )
    cut = [shorten(name) for name, curve in curves.items() if not np.all(curve.actual <= HIGHEST)]
    if cut:
        caption += f" The panel is cut above {HIGHEST:g} bit; actual values go beyond it for "
        caption += ", ".join(cut) + "."
    return Figure(
        "ece_profile",
        "Empirical cross-entropy: what an attacker still does not know",
        caption,
        chart,
    )


_PRIOR = "perfect privacy"


def disclosure_profiles(
    disclosures: Mapping[str, Disclosure],
    *,
    negated: Mapping[str, Disclosure] | None = None,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "zebra_profiles",
    title: str = "ZEBRA: what the scores disclose at every prior",
) -> Figure:
    """Oracle profiles of several systems; labels tell (D_ECE, l_w, tag) of each.

    ``negated`` holds the disclosure of the negated scores of systems where it is the larger one.
    """
    require(disclosures, "ZEBRA profiles")
    first = next(iter(disclosures.values()))
    shades = draw.colours_for(list(disclosures), colours)
    turned = {f"{system}, negated": system for system in negated or {}}
    every = {**disclosures, **{name: (negated or {})[system] for name, system in turned.items()}}
    chart = _profiles(
        first,
        {system: (d.log_odds, d.oracle) for system, d in every.items()},
        colours=shades | {name: shades[system] for name, system in turned.items()},
        notes={system: d.note for system, d in every.items()},
        width=width,
        dotted=list(turned),
    )
    caption = (
        "Black, dashed: no evidence at all, perfect privacy. The nearer a profile is to it, the "
        "less the scores disclose after oracle calibration. In brackets: expected disclosure "
        "D_ECE in bit (0 is perfect, 0.721 everything), worst case l_w in powers of ten of a "
        "likelihood ratio, and its tag (0 and A best, F worst)."
    )
    if turned:
        caption += " Dotted: the same scores with their sign turned, where they disclose more so."
    return Figure(name, title, caption, chart)


def calibration_profiles(
    distortions: Sequence[CalibrationDistortion],
    *,
    width: float = WIDE,
    name: str = "calibration_distortion",
    title: str = "Does a calibration learnt on one run of the safeguard serve on another?",
) -> Figure:
    """Both runs after oracle calibration, and the second calibrated by the first (Noé 2022, 8)."""
    require(distortions, "calibration distortion")
    lines: dict[str, tuple[FloatArray, FloatArray]] = {}
    notes: dict[str, str] = {}
    for run in (distortions[0].first, distortions[0].second):
        lines[f"{run.system}, oracle"] = (run.log_odds, run.oracle)
        notes[f"{run.system}, oracle"] = run.note
    for made in distortions:
        lines[f"{made.method} calibration"] = (made.second.log_odds, made.actual)
        notes[f"{made.method} calibration"] = f"C_ECE {made.c_ece:.3f}, C_llr {made.cllr:.2f}"
    colours = dict(zip(lines, ("#0072B2", "#6b7280", *PALETTE[1:]), strict=False))
    chart = _profiles(distortions[0].first, lines, colours=colours, notes=notes, width=width)
    caption = (
        "Blue and grey: the two runs after oracle calibration, with (D_ECE, l_w, tag). The others: "
        "scores of the second run, calibrated as an attacker can who learnt on the first. Above "
        "the black line such an attacker is misled, and better off tossing a coin. The panel is "
        f"cut above {HIGHEST:g} bit."
    )
    return Figure(name, title, caption, chart)


def _profiles(
    first: Disclosure,
    lines: Mapping[str, tuple[FloatArray, FloatArray]],
    *,
    colours: Mapping[str, str],
    notes: Mapping[str, str],
    width: float,
    dotted: Sequence[str] = (),
) -> Layers:
    """Profiles with their names and ``notes`` at even odds, below the prior's own."""
    every = {_PRIOR: (first.log_odds, first.prior), **lines}
    shades = {_PRIOR: CHANCE, **draw.colours_for(list(lines), colours)}
    rows = join(table(system=name, log_odds=x, bits=y) for name, (x, y) in every.items())
    ends = float(first.log_odds[0]), float(first.log_odds[-1])
    x, y = _axes("Prior log-odds of a target, logit π (natural log)", ends, width=width)
    labels = draw.labels_at(
        {name: (0.0, float(min(bits.max(), HIGHEST))) for name, (_, bits) in every.items()},
        shades,
        x,
        y,
        ends=(0.0, HIGHEST),
        height=_RATIO * draw.main_panel(width),
        labels={_PRIOR: _PRIOR}
        | {name: f"{shorten(name, limit=22)} ({notes[name]})" for name in lines},
    )
    dash = alt.condition(
        alt.FieldOneOfPredicate(field="system", oneOf=list(dotted)),
        alt.value([1.5, 2]),
        alt.value(list(SOLID)),
    )
    is_prior = alt.datum.system == _PRIOR
    base = alt.Chart(rows).encode(x, y, draw.by(alt.Color, "system", shades))
    hover = f"system:N|Profile; {_BITS}"
    profiles = base.transform_filter(~is_prior).encode(strokeDash=dash)
    prior = base.transform_filter(is_prior)
    return draw.in_panel(
        draw.mark(profiles, "line", hover=hover, clip=True),
        draw.mark(prior, "line", hover=hover, clip=True, strokeDash=list(DASHED)),
        *labels,
        width=width,
        ratio=_RATIO,
        description=f"Empirical cross-entropy profiles of {', '.join(lines)}",
    )
