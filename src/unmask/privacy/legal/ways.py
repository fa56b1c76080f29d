"""An attack both ways: enrolment and test change places, and what it does to each is averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray
from unmask.privacy.attack import Attacker
from unmask.privacy.legal.curve import BOTH_SIDES, Curve, RiskCurve, mean_variance, risks
from unmask.privacy.legal.isolating import SinglingOut
from unmask.privacy.legal.linking import Above, Linkability
from unmask.privacy.luck import Permuted
from unmask.trials import Embeddings, lookup


def testable(test: Embeddings, needed: int) -> int:
    """How many speakers have as many utterances as are ``needed``."""
    return int((np.bincount(test.speakers.codes) >= needed).sum())


def possible(ways: Sequence[Attacker], needed: int, *, people: int) -> Sequence[Attacker]:
    """The ways in which as many ``people`` have the utterances that are ``needed``; all where there
    are none such.
    """
    return [way for way in ways if testable(way.test, needed) >= people] or ways


def averaged(curves: Sequence[Curve], ways: Sequence[Attacker], needed: int) -> Curve:
    """The mean of an attack's ``curves`` over the ``ways`` in which it can be run.

    Linkability and Singling Out become the mean over speakers of their mean outcome in the ways in
    which they are tested. The interval of Linkability is that of these means; the variance of
    Singling Out and the ends of 1 − EER are means of both ways, which no dependence exceeds. Left
    out is who has fewer utterances than ``needed`` both ways.
    """
    if len(ways) == 1:
        return curves[0]
    codes = [one.speakers.codes for way in ways for one in (way.enrol, way.test)]
    everyone = np.unique(np.concatenate(codes))
    most = np.max([np.bincount(some, minlength=everyone[-1] + 1) for some in codes[1::2]], axis=0)
    left_out = everyone.size - int((most >= needed).sum())
    negated = [one.negated for one in curves if one.negated is not None]
    mean = _mean(curves, left_out)
    return replace(mean, negated=_mean(negated, left_out)) if negated else mean


def _mean(curves: Sequence[Curve], left_out: int) -> Curve:
    first = curves[0]
    speakers = pl.concat([one.speakers for one in curves]).unique().sort()
    made: dict[str, Any] = {
        **{name: _over(curves, name).mean(axis=0) for name in ("value", "low", "high", "chance")},
        "attacks": _over(curves, "attacks").sum(axis=0),
        "short": max(one.short for one in curves),
        "permuted": _blind([one.permuted for one in curves]),
    }
    risky = [one for one in curves if isinstance(one, RiskCurve)]
    if risky:
        at = [lookup(one.speakers, speakers).astype(np.int64) for one in risky]
        made |= _risks(risky, at, len(speakers))
        if isinstance(first, Linkability):
            made |= _ranked([one for one in risky if isinstance(one, Linkability)], at)
        if isinstance(first, SinglingOut):
            made["threshold_rank"] = _over(curves, "threshold_rank").mean(axis=0)
            made["hits"] = _blind([o.hits for o in curves if isinstance(o, SinglingOut)])
    return replace(first, **made, speakers=speakers, left_out=left_out, notes=())


def _blind(ways: Sequence[Permuted | None]) -> Permuted | None:
    """The mean of all ways under the same renaming, or the same number of a deal."""
    known = [one for one in ways if one is not None]
    if len(known) < len(ways) or len({one.values.shape for one in known}) > 1:
        return None
    values = np.mean([one.values for one in known], axis=0)
    people, exhaustive = min(o.people for o in known), all(o.exhaustive for o in known)
    return Permuted(values, people, exhaustive)


def _over(curves: Sequence[Curve], field: str) -> FloatArray:
    return np.stack([getattr(one, field) for one in curves])


def _risks(curves: Sequence[RiskCurve], at: Sequence[IntArray], speakers: int) -> dict[str, Any]:
    """Mean outcomes of the speakers, whose numbers are ``at``, and what follows from them."""
    first = curves[0]
    outcomes = np.full((len(curves), speakers, len(first.counts)), np.nan)
    recordings = np.zeros(speakers, dtype=np.int64)
    for n, (one, where) in enumerate(zip(curves, at, strict=True)):
        outcomes[n, where] = one.per_speaker
        recordings[where] += one.recordings
    per_speaker = np.nanmean(outcomes, axis=0)
    variance = mean_variance(per_speaker)
    if first.method == BOTH_SIDES:
        variance = np.fmax(variance, np.sqrt(_over(curves, "variance")).mean(axis=0) ** 2)
    free = np.array([int((one.recordings - 1).sum()) for one in curves])
    noise = np.full(len(first.counts), np.nan)
    if free.any():
        noise = free @ np.nan_to_num(_over(curves, "noise")) / free.sum()
    elif len(curves) > 1 and (both := ~np.isnan(outcomes).any(axis=(0, 2))).any():
        noise = outcomes[:, both].var(axis=0, ddof=1).mean(axis=0)
    made = risks(per_speaker, variance, first.resampling)
    return {**made, "recordings": recordings, "noise": noise}


def _ranked(curves: Sequence[Linkability], at: Sequence[IntArray]) -> dict[str, Any]:
    """The conversations of all ways together, for the ranks."""
    counted = [one.above for one in curves]
    allowed = [one.allowed for one in counted if one.allowed is not None]
    above = Above(
        np.concatenate([one.at_or_above for one in counted]),
        np.concatenate([one.above for one in counted]),
        counted[0].others,
        np.concatenate(allowed) if allowed else None,
    )
    owner = [where[one.owner] for one, where in zip(curves, at, strict=True)]
    return {"above": above, "owner": np.concatenate(owner)}
