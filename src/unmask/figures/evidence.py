"""Empirical cross-entropy over the prior: of scores, of what they disclose, of a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from unmask.base import FloatArray
from unmask.engine import EceProfile
from unmask.figures.encode import (
    colours_for,
    in_panel,
    is_wide,
    kinds,
    labels_at,
    line_kind,
    main_panel,
    system_colour,
    tips,
)
from unmask.figures.figure import Figure, Layers, join, require_systems, table
from unmask.figures.theme import CHANCE, DASHED, PALETTE, SOLID, WIDE, shorten
from unmask.privacy import CalibrationDistortion, Disclosure

HIGHEST = 1.08

_NO_SCORES = "prior alone, no scores"
_ORACLE, _ACTUAL = "oracle (calibrated)", "actual (scores as LLRs)"


def _axes(title: str, lowest: float, highest: float, *, width: float) -> tuple[alt.X, alt.Y]:
    """Log-odds of the prior, and bits of cross-entropy."""
    odds = alt.Scale(domain=[lowest, highest], nice=False)
    bits = alt.Scale(domain=[0, HIGHEST])
    return (
        alt.X("log_odds:Q", title=title, scale=odds).axis(tickCount=10 if is_wide(width) else 5),
        alt.Y("bits:Q", title="Empirical cross-entropy (bits)", scale=bits).axis(
            values=[0, 0.2, 0.4, 0.6, 0.8, 1.0], format=".1f"
        ),
    )


def ece_profile(
    curves: Mapping[str, EceProfile],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "ece_profile",
    title: str = "Empirical cross-entropy: what an attacker still does not know",
) -> Figure:
    """ECE of every system, oracle solid and actual dashed, below the prior's entropy in black."""
    require_systems(curves, chart="ECE profile")
    reference = next(iter(curves.values()))
    rows = join(
        [
            table(
                system=_NO_SCORES, line=_ORACLE, log_odds=reference.log_odds, bits=reference.prior
            ),
            *(
                table(system=system, line=line, log_odds=curve.log_odds, bits=bits)
                for system, curve in curves.items()
                for line, bits in ((_ORACLE, curve.oracle), (_ACTUAL, curve.actual))
            ),
        ]
    )
    lowest = min(float(curve.log_odds.min()) for curve in curves.values())
    highest = max(float(curve.log_odds.max()) for curve in curves.values())
    encoded = alt.Chart(rows).encode(
        *_axes("Prior log-odds of a target (natural log)", lowest, highest, width=width),
        system_colour(list(curves), colours, width=width, first=_NO_SCORES),
        line_kind({_ORACLE: SOLID, _ACTUAL: DASHED}, width=width),
        tooltip=tips(
            "system:N|System; line:N|Line; log_odds:Q|Prior log-odds|.2f; "
            "bits:Q|Cross-entropy (bits)|.4f"
        ),
    )
    dots = (
        encoded.transform_filter("abs(datum.log_odds) < 1e-9")
        .transform_filter(alt.datum.system != _NO_SCORES)
        .mark_point(size=46, filled=True, opacity=1, clip=True)
    )
    chart = in_panel(
        alt.layer(encoded.mark_line(clip=True), dots),
        width=width,
        ratio=0.78,
        description=f"Empirical cross-entropy of {', '.join(curves)} over the prior log-odds",
    )
    return Figure(name, title, _caption(curves), chart)


def _caption(curves: Mapping[str, EceProfile]) -> str:
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
    return caption


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
    require_systems(disclosures, chart="ZEBRA profiles")
    first = next(iter(disclosures.values()))
    turned = {_turned(system): d for system, d in (negated or {}).items()}
    shown = dict(zip(disclosures, colours_for(list(disclosures), colours), strict=True))
    shown |= {_turned(system): shown[system] for system in negated or {}}
    every = {**disclosures, **turned}
    notes = {system: d.note for system, d in every.items()}
    lines = {system: (d.log_odds, d.oracle) for system, d in every.items()}
    chart = _profiles(first, lines, colours=shown, notes=notes, width=width, dotted=list(turned))
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
    require_systems({d.method: d for d in distortions}, chart="calibration distortion")
    first = distortions[0].first
    lines: dict[str, tuple[FloatArray, FloatArray]] = {}
    notes: dict[str, str] = {}
    for run in (distortions[0].first, distortions[0].second):
        lines[f"{run.system}, oracle"] = (run.log_odds, run.oracle)
        notes[f"{run.system}, oracle"] = run.note
    for made in distortions:
        lines[f"{made.method} calibration"] = (made.second.log_odds, made.actual)
        notes[f"{made.method} calibration"] = f"C_ECE {made.c_ece:.3f}, C_llr {made.cllr:.2f}"
    colours = dict(zip(lines, ("#0072B2", "#6b7280", *PALETTE[1:]), strict=False))
    chart = _profiles(first, lines, colours=colours, notes=notes, width=width)
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
    colours: Mapping[str, str] | None,
    notes: Mapping[str, str],
    width: float,
    dotted: Sequence[str] = (),
) -> Layers:
    rows = join(
        [
            table(system=_PRIOR, log_odds=first.log_odds, bits=first.prior),
            *(
                table(system=system, log_odds=log_odds, bits=bits)
                for system, (log_odds, bits) in lines.items()
            ),
        ]
    )
    ends = float(first.log_odds[0]), float(first.log_odds[-1])
    x, y = _axes("Prior log-odds of a target, logit π (natural log)", *ends, width=width)
    shades = dict(zip(lines, colours_for(list(lines), colours), strict=True))
    peaks = {_PRIOR: (first.log_odds, first.prior), **lines}
    ratio = 0.78
    labels = labels_at(
        {name: (0.0, float(min(bits.max(), HIGHEST))) for name, (_, bits) in peaks.items()},
        {
            name: f"{shorten(name, limit=22)} ({notes[name]})" if name in notes else name
            for name in peaks
        },
        {_PRIOR: CHANCE, **shades},
        x,
        y,
        ends=(0.0, HIGHEST),
        height=ratio * main_panel(width),
    )
    encoded = alt.Chart(rows).encode(
        x,
        y,
        kinds("system", {_PRIOR: CHANCE, **shades}, legend=None),
        tooltip=tips(
            "system:N|Profile; log_odds:Q|Prior log-odds|.2f; bits:Q|Cross-entropy (bits)|.4f"
        ),
    )
    is_prior = alt.datum.system == _PRIOR
    layers = alt.layer(
        encoded.transform_filter(~is_prior)
        .mark_line(clip=True)
        .encode(
            strokeDash=alt.condition(
                alt.FieldOneOfPredicate(field="system", oneOf=list(dotted)),
                alt.value([1.5, 2]),
                alt.value([1, 0]),
            )
        ),
        encoded.transform_filter(is_prior).mark_line(clip=True, strokeDash=list(DASHED)),
        *labels,
    )
    described = f"Empirical cross-entropy profiles of {', '.join(lines)}"
    drawn: Layers = in_panel(layers, width=width, ratio=ratio, description=described)
    return drawn


def _turned(system: str) -> str:
    return f"{system}, negated"
