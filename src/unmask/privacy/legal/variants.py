"""Ways to read the same scores: as they are, negated, centred, centred and negated.

A safeguard that pushes a voice away from its owner is recognised by the negated score; one that
moves all voices alike by the score about the mean of each side. Neither needs any label.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from unmask.privacy.legal.curve import Curve
from unmask.trials import Embeddings

PLAIN, NEGATED, CENTRED, CENTRED_NEGATED = "plain", "negated", "centred", "centred negated"
VARIANTS = (PLAIN, NEGATED, CENTRED, CENTRED_NEGATED)
C = TypeVar("C", bound=Curve)


def centred(embeddings: Embeddings) -> Embeddings:
    """The same embeddings of length one, less their own mean.

    An attacker centres what it enrols and what it attacks each by itself.
    """
    unit = embeddings.normalised()
    return Embeddings(
        unit.vectors - unit.vectors.mean(axis=0),
        unit.speakers,
        unit.utterances,
        unit.sessions,
        columns=unit.columns,
        source=unit.source,
    )


def variant_name(attacker: str, variant: str) -> str:
    """What an attacker is called that reads its scores so."""
    return attacker if variant == PLAIN else f"{attacker}, {variant}"


def base_name(name: str, curve: Curve) -> str:
    """The attacker that a variant belongs to."""
    return name if curve.variant == PLAIN else name.removesuffix(f", {curve.variant}")


def of_centred(curve: C) -> C:
    """A curve from centred embeddings, and that of their negated score, called so."""
    turned = curve.negated
    return replace(
        curve,
        variant=CENTRED,
        negated=None if turned is None else replace(turned, variant=CENTRED_NEGATED),
    )
