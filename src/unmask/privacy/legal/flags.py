"""Checks before a low risk is believed: is the attacker strong where nothing protects?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unmask.base import FEW_SPEAKERS, FloatArray, few_speakers
from unmask.privacy.legal.attributes import Inference
from unmask.privacy.legal.curve import Curve
from unmask.privacy.legal.ranks import Ranks
from unmask.privacy.legal.variants import base_name

STRONG_ENOUGH = 0.5
_CHECKED = ("linkability", "one_minus_eer")
Curves = Mapping[tuple[str, str, int], Curve]


def sweep_warnings(
    curves: Curves,
    inferences: Mapping[tuple[str, str], Inference],
    ranks: Mapping[tuple[str, int], Ranks],
    original: str | None,
    consistency: Sequence[str] = (),
) -> list[str]:
    """Warnings of all parts, each with its attacker and length, and of the strength check."""
    where: dict[str, dict[str, list[str]]] = {}
    for (name, _, length), curve in curves.items():
        if name == base_name(name, curve):
            for line in curve.remarks:
                where.setdefault(line, {}).setdefault(name, []).append(str(length))
    for (name, length), rank in ranks.items():
        for line in rank.warnings:
            where.setdefault(line, {}).setdefault(name, []).append(str(length))
    for (name, _), probe in inferences.items():
        for line in probe.warnings:
            where.setdefault(line, {}).setdefault(name, [])
    joined = [f"{_conditions(names)}: {line}" for line, names in where.items()]
    return [
        *_few(curves),
        *strength_warnings(curves, original),
        *[_pseudonyms(name) for name in consistency],
        *chance_warnings(curves, original),
        *isolation_warnings(curves, original),
        *joined,
    ]


def _few(curves: Curves) -> list[str]:
    """Few speakers leave wide intervals, and say nothing of a larger crowd."""
    least = min((len(curve.speakers) for curve in curves.values()), default=FEW_SPEAKERS)
    text = few_speakers(least)
    return [] if text is None else [f"{text}; risks in a larger crowd are unknown"]


def _pseudonyms(name: str) -> str:
    return (
        f"{name}: enrolment comes from the attacked run itself, which no attacker holds: this shows"
        " whether pseudonyms are consistent, not whether people are recognised; it does not compete"
        " for the strongest attack"
    )


def _conditions(names: Mapping[str, Sequence[str]]) -> str:
    """Attackers and lengths that a warning is about."""
    return "; ".join(
        f"{name}, length {', '.join(lengths)}" if lengths else name
        for name, lengths in names.items()
    )


def chance_warnings(curves: Curves, original: str | None) -> list[str]:
    """Attacks no variant of which is better than chance, and what the control makes of that.

    Where the same attack succeeds on unprotected speech this is evidence of protection; where it is
    weak there too, or no such control was given, it tells nothing.
    """
    variants: dict[tuple[str, str, int], list[Curve]] = {}
    for (name, metric, length), curve in curves.items():
        variants.setdefault((base_name(name, curve), metric, length), []).append(curve)
    lines = []
    for (name, metric, length), found in variants.items():
        if name == original:
            continue
        counts = found[0].counts
        at_chance = np.all([curve.at_chance for curve in found], axis=0)
        if not at_chance.any():
            continue
        control = variants.get((str(original), metric, length), [])
        for said, some in _by_control(control, counts[at_chance].tolist()).items():
            where = ", ".join(f"{n:,}" for n in some)
            lines.append(
                f"{name}, length {length}: {metric}: no better than chance with {where}"
                f" speakers; {said}"
            )
    return lines


def isolation_warnings(curves: Curves, original: str | None) -> list[str]:
    """Where voices are isolated although nobody is linked: they keep a voice that is not theirs.

    Singling Out counts whoever is isolated. Entries of one protected voice that resemble each other
    stand out under any predicate, made from the speaker or from a stranger.
    """
    lines = []
    for (name, metric, length), curve in curves.items():
        linked = curves.get((name, "linkability", length))
        if metric != "singling_out" or linked is None or name == original:
            continue
        if base_name(name, curve) == name and linked.at_chance.all() and not curve.at_chance.all():
            lines.append(
                f"{name}, length {length}: singling_out: isolates voices of people who cannot be"
                " linked: protected voices that stay the same stand out whoever is enrolled"
            )
    return lines


def _by_control(control: Sequence[Curve], counts: Sequence[int]) -> dict[str, list[int]]:
    """What to say of an attack at chance, and the counts to say it of."""
    said: dict[str, list[int]] = {}
    for count in counts:
        strength = [
            (float(_above_chance(curve)[i]), float(curve.value[i]))
            for curve in control
            if (i := curve.place(int(count))) is not None
        ]
        if not strength:
            line = "without a control on unprotected speech this is uninformative"
        else:
            above, value = max(strength)
            line = f"control on unprotected speech {100 * value:.0f} %"
            if not above >= STRONG_ENOUGH:
                line += ": too weak, this is uninformative"
        said.setdefault(line, []).append(int(count))
    return said


def _above_chance(curve: Curve) -> FloatArray:
    """Residual risk against what no information reaches."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (curve.value - curve.chance_level) / (1 - curve.chance_level)


def strength_warnings(curves: Curves, original: str | None) -> list[str]:
    """An attack is believed if, on unprotected speech and the smallest count, its residual risk in
    Linkability (or in 1 − EER) reaches one half.
    """
    if original is None:
        return [
            "no attacker on unprotected speech was given: whether the attacks are strong enough to"
            " be believed is not known"
        ]
    lines = []
    for (name, metric, length), curve in curves.items():
        if name != original or metric not in _CHECKED:
            continue
        least = int(curve.counts.argmin())
        if not curve.residual[least] >= STRONG_ENOUGH:
            lines.append(
                f"weak attacker: on unprotected speech {metric} reaches"
                f" {100 * curve.value[least]:.1f} % with {curve.counts[least]:,} speakers, length"
                f" {length} (chance {100 * curve.chance[least]:.1f} %); low risks at this length"
                " cannot be believed"
            )
    return lines
