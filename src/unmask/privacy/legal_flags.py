"""Checks before a low risk is believed: is the attacker strong where nothing protects?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unmask.privacy.inference import Inference
from unmask.privacy.legal_curve import Curve
from unmask.privacy.ranks import Ranks

STRONG_ENOUGH = 0.5
_CHECKED = ("linkability", "one_minus_eer")


def sweep_warnings(
    curves: Mapping[tuple[str, str, int], Curve],
    inferences: Mapping[tuple[str, str], Inference],
    ranks: Mapping[tuple[str, int], Ranks],
    original: str | None,
) -> list[str]:
    """Warnings of all parts, each with its attacker and length, and of the strength check."""
    where: dict[str, dict[str, list[str]]] = {}
    for (name, _, length), curve in curves.items():
        for line in curve.warnings:
            where.setdefault(line, {}).setdefault(name, []).append(str(length))
    for (name, length), rank in ranks.items():
        for line in rank.warnings:
            where.setdefault(line, {}).setdefault(name, []).append(str(length))
    for (name, _), probe in inferences.items():
        for line in probe.warnings:
            where.setdefault(line, {}).setdefault(name, [])
    told = [f"{_conditions(names)}: {line}" for line, names in where.items()]
    return [*strength_warnings(curves, original), *told]


def _conditions(names: Mapping[str, Sequence[str]]) -> str:
    """Attackers and lengths that a warning is about."""
    return "; ".join(
        f"{name}, length {', '.join(lengths)}" if lengths else name
        for name, lengths in names.items()
    )


def strength_warnings(
    curves: Mapping[tuple[str, str, int], Curve], original: str | None
) -> list[str]:
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
