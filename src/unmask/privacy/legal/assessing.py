"""All attackers at every length and count: who is tried, in which readings, and who is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray, Sampling
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.attack import READINGS, Attacker, Reading, not_tried, with_groups
from unmask.privacy.channels import lengths_left_out
from unmask.privacy.legal.conversations import (
    USUAL,
    AttackData,
    LegalProtocol,
    Metric,
    attack_data,
)
from unmask.privacy.legal.curve import (
    BOTH_SIDES,
    TITLES,
    Curve,
    RiskCurve,
    base_name,
    mean_variance,
    risks,
    spoken,
    with_negated,
)
from unmask.privacy.legal.isolating import SinglingOut, singling_out, singling_out_of
from unmask.privacy.legal.linking import Above, Linkability, Ranks, linkability, linkability_of
from unmask.privacy.legal.probe import Inference, attribute_inference
from unmask.privacy.legal.sweep import HEADLINE, LegalSweep
from unmask.privacy.legal.verification import one_minus_eer
from unmask.privacy.luck import Permuted
from unmask.privacy.names import attacker_notices
from unmask.privacy.recordings import ExchangedPeople, ReleaseSplit
from unmask.run import advance, kept, part
from unmask.trials import Embeddings, lookup

if TYPE_CHECKING:
    from unmask.privacy.legal.crowd import ExtrapolatedLinkability

METRICS: Mapping[str, Callable[..., Curve]] = {
    "singling_out": singling_out,
    "linkability": linkability,
    "one_minus_eer": one_minus_eer,
}
LENGTHS = (1, 3, 30)
_TALKATIVE = (
    "centred scores: more than half of a side are of one speaker ({who}), whose voice is taken"
    " away with the mean"
)


def default_counts(speakers: int) -> tuple[int, ...]:
    """20, 50, 100, 200, 500, … below the number of speakers, and that number."""
    steps = (step * 10**power for power in range(1, 10) for step in (1, 2, 5))
    return (*(n for n in steps if 20 <= n < speakers), speakers)


def assess_attackers(
    attackers: Mapping[str, Attacker],
    *,
    counts: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    metrics: Sequence[str] = tuple(METRICS),
    original: str | None = None,
    asked: str | None = None,
    attributes: Mapping[str, Sequence[float]] | Sequence[str] = (),
    variants: Sequence[str] = READINGS,
    protocol: LegalProtocol = USUAL,
    level: float = Sampling.level,
    replicates: int = Sampling.replicates,
    seed: int = 0,
) -> LegalSweep:
    """Singling Out, Linkability and 1 − EER of every attacker at every length and count.

    Every attacker reads its scores in all ``variants``. One of several attackers whose back-end
    cannot be fitted is left out, with a notice. With side columns every back-end that is fitted by
    name competes once more, fitted within each of their groups: "informed (wccn by sex)". An attack
    within a release (:func:`within_release`) is run in rounds, and what it does to each speaker
    averaged over all attempts. The table is the same wherever scores are counted
    (:func:`unmask.run_on`).

    Parameters
    ----------
    attackers
        Attackers by name.
    counts
        Numbers of speakers; by default 20, 50, 100, … and all. One beyond the speakers of some
        length or metric is left out there, with a notice; beyond all it is an error.
    lengths
        Utterances of a conversation. By default those of 1, 3 and 30 that all attackers have speech
        for, and where 30 is too long the longest that half of the people have speech for.
    metrics
        Of ``singling_out``, ``linkability`` and ``one_minus_eer``.
    original
        Name of the attacker on unprotected speech, which shows whether attacks are strong enough to
        be believed; by default the one called ``original``.
    asked
        Name of the attacker whose risk is asked for; the strongest always stands beside it.
    attributes
        Columns to infer, with the cuts of their bands where they are numbers.
    variants
        Readings of scores: plain, negated, centred, centred negated.
    protocol
        What is enrolled, drawn, known and allowed.
    level, replicates, seed
        Those of each metric.

    Returns
    -------
    LegalSweep
        Curves, ranks and inference of all attackers, and the strongest of them.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices = np.repeat(rng.normal(size=(30, 8)), 4, axis=0)
    >>> names = np.repeat([f"s{n:02}" for n in range(30)], 4)
    >>> enrol, test = (um.Embeddings(voices + rng.normal(size=voices.shape), names) for _ in "et")
    >>> protected = um.Embeddings(rng.normal(size=voices.shape), names)
    >>> held = {"original": um.Attacker(enrol, test), "ignorant": um.Attacker(enrol, protected)}
    >>> found = um.assess_attackers(held, counts=[20], lengths=[1], metrics=["linkability"])
    >>> print(found["linkability"])
    linkability 6.57 % [2.316, 17.8] (95 %), chance 5 %
    """
    if not attackers:
        raise InputError("attackers: expected at least one, found none")
    original = "original" if original is None and "original" in attackers else original
    _known(metrics, METRICS, "metric")
    _known([name for name in (original, asked) if name is not None], attackers, "attacker")
    _known(variants, READINGS, "variant")
    for name, attacker in attackers.items():
        attacker.refuse_encoders()
        if attacker.enrol.n_speakers < 2:
            found = "of one person" if attacker.enrol.n_speakers else "none"
            raise InputError(name, "voices of two people or more to enrol", found)
    given, attackers = attackers, with_groups(attackers, protocol.side, original=original)
    intervals: dict[str, Any] = {"level": level, "replicates": replicates, "seed": seed}
    cuts = attributes if isinstance(attributes, Mapping) else dict.fromkeys(attributes, ())
    skipped: list[Notice] = [*attacker_notices(given, original)]
    if lengths is None:
        isolates = "singling_out" in metrics
        lengths = fitting_lengths(attackers.values(), conversations=2 if isolates else 1)
        if longer := [str(n) for n in LENGTHS if n not in lengths]:
            sentence = (
                f"conversations of {', '.join(longer)} utterances left out, no test speaker has"
                f" enough: the longest are of {max(lengths)}"
            )
            skipped.append(Notice("length-left-out", "", sentence))
    asked_for = dict.fromkeys((Reading.PLAIN, *map(Reading, variants)))
    scored = tuple(dict.fromkeys(reading.scored for reading in asked_for))
    tested: list[IntArray] = []
    for attacker in attackers.values():
        is_release = isinstance(attacker.split, ReleaseSplit)
        if protocol.swap and attacker.enrols != "original" and not is_release:
            tested += [np.bincount(one.enrol.speakers.codes) for one in attacker.rounds()]
        else:
            tested += _tested_at_once(attacker)
    points, too_long = _possible_points(tested, lengths, metrics)
    skipped += too_long
    steps = len(attackers) * (len(scored) * len(points) + len(cuts))
    curves: dict[tuple[str, str, int], Curve] = {}
    ranks: dict[tuple[str, int], Ranks] = {}
    inferences: dict[tuple[str, str], Inference] = {}
    unfitted: dict[str, str] = {}
    index = 0
    for name, attacker in attackers.items():
        if attacker.listens == "alone" and attacker.words is not None:
            skipped += attacker.words.limits(name, attacker.enrol, attacker.test)
        for reading in scored:
            try:
                ready = ready_rounds(attacker, reading, points, seed)
            except InputError as error:
                if name in (original, asked) or len(attackers) == len(unfitted) + 1:
                    raise
                unfitted[name] = str(error)
                break
            if ready is None:
                if not attacker.centres:
                    sentence = f"centred scores not tried, {attacker.uncentred}"
                    skipped.append(Notice("not-centred", name, sentence))
                index += len(points)
                continue
            if reading == Reading.CENTRED and (who := ", ".join(attacker.talkative())):
                skipped.append(Notice("talkative", "", _TALKATIVE.format(who=who)))
            for length, metric in points:
                with part(index, steps):
                    how = metric, length, counts, protocol, intervals
                    curve, lost = kept(partial(curve_of, ready[length, metric], *how))
                index += 1
                if curve.negated is not None:
                    curve = with_negated(curve, curve.negated, reading)
                if attacker.channel:
                    curve = replace(curve, negated=None)
                for one in (curve, curve.negated):
                    if one is not None and one.variant in asked_for:
                        curves[Reading(one.variant).of(name), metric, length] = one
                if reading == Reading.CENTRED:
                    continue
                if lost:
                    subject = f"{TITLES[metric]} of {name}, {spoken(length)}"
                    sentence = f"too few speakers for {lost}, left out"
                    skipped.append(Notice("count-left-out", subject, sentence))
                if isinstance(curve, Linkability):
                    ranks[name, length] = curve.ranks
        if name in unfitted or name not in given or attacker.listens or attacker.channel:
            index += len(cuts)
            continue
        control = None if original is None else attackers[original].attacked
        for attribute, bands in cuts.items():
            with part(index, steps):
                inferences[name, attribute] = attribute_inference(
                    attacker.attacked, attribute, unprotected=control, bands=bands, **intervals
                )
                advance(1, 1)
            index += 1
    sets = [s for a in attackers.values() for s in (a.enrol, a.test, a.train) if s is not None]
    attacks = {name: one for name, one in attackers.items() if name != original}
    done = {name: one for name, one in attacks.items() if name not in unfitted}
    words = tuple(name for name, one in done.items() if one.listens == "alone")
    refused = [Notice("not-fitted", name, f"not tried, {why}") for name, why in unfitted.items()]
    sweep = LegalSweep(
        curves=MappingProxyType(curves),
        ranks=MappingProxyType(ranks),
        inferences=MappingProxyType(inferences),
        original=original,
        asked=asked,
        seed=seed,
        sources=tuple(dict.fromkeys(s.source for s in sets if s.source is not None)),
        release=tuple(n for n, one in done.items() if n not in words and one.is_release),
        words=words,
        channels=tuple(name for name, one in attackers.items() if one.channel),
        skipped=(*refused, *skipped),
        untried=_untried(list(attacks.values()), variants),
    )
    if protocol.extrapolate is None:
        return sweep
    return replace(sweep, crowds={n: _crowd(sweep, attackers, n, protocol) for n in sweep.lengths})


def _crowd(
    sweep: LegalSweep, attackers: Mapping[str, Attacker], length: int, protocol: LegalProtocol
) -> ExtrapolatedLinkability:
    """Linkability of the attack that is strongest among most people, among more of them."""
    from unmask.privacy.legal.crowd import crowd_of

    if "linkability" not in sweep.metrics:
        raise InputError("extrapolate", "linkability among the metrics", ", ".join(sweep.metrics))
    best = sweep.strongest("linkability", length).attacker
    curve = sweep.curves[best, "linkability", length]
    assert isinstance(curve, Linkability)
    attacker = attackers[base_name(best, curve)]
    point, reading = (length, "linkability"), Reading(curve.variant)
    ready = ready_rounds(attacker, reading, [point], curve.resampling.seed)
    ways = possible(ready[point] if ready else (), length, people=1)
    most = protocol.extrapolate or 0
    counts = [n for n in default_counts(most) if n > curve.above.others + 1] or [most]
    return crowd_of(ways, curve, counts, protocol=protocol, attacker=best)


ISOLATED = {"most": 2, "least": 2}
"""Singling Out tests half of a person's conversations in a round, two of them at least."""


def ready_rounds(
    attacker: Attacker, reading: Reading, points: Iterable[tuple[int, str]], seed: int
) -> dict[tuple[int, str], Sequence[Attacker]] | None:
    """Make the rounds of an attacker ready, for each length and metric; None where its sets cannot
    be read so. Metrics that are tried in the same rounds share what is fitted.
    """
    ready: dict[tuple[int, str], Sequence[Attacker]] = {}
    fitted: dict[tuple[int, bool], Sequence[Attacker]] = {}
    for length, metric in points:
        isolates = metric == "singling_out"
        key = (length, isolates) if isinstance(attacker.split, ReleaseSplit) else (0, False)
        if key not in fitted:
            rounds = attacker.rounds(length, seed=seed, **(ISOLATED if isolates else {}))
            made = [one.read(reading).ready for one in rounds]
            fitted[key] = [one for one in made if one is not None]
            if len(fitted[key]) < len(made):
                return None
        ready[length, metric] = fitted[key]
    return ready


def curve_of(
    ways: Sequence[Attacker],
    metric: str,
    length: int,
    counts: Sequence[int] | None,
    protocol: LegalProtocol,
    intervals: Mapping[str, Any],
) -> tuple[Curve, str]:
    """A metric of attackers who are ready, averaged over all ``ways`` in which the attack can be
    run, and the counts that are beyond its speakers.
    """
    often = 1
    if metric == "singling_out":
        often = 2
        if protocol.swap and ways[0].enrols != "original":
            ways = [replace(way, enrol=way.test, test=way.enrol) for way in ways]
    tried = possible(ways, often * length, people=often)
    most = min(way.enrol.n_speakers for way in tried)
    if metric == "singling_out":
        most = min(testable(way.test, 2 * length) for way in tried)
    sizes = default_counts(most) if counts is None else sorted({int(n) for n in counts})
    usable = [n for n in sizes if n <= most] or sizes
    known = replace(protocol, side=tuple(dict.fromkeys((*protocol.side, *ways[0].by))))
    made: list[Curve] = []
    for n, attempt in enumerate(_attempts(tried, metric, length, usable, known, intervals)):
        with part(n, len(tried)):
            made.append(attempt())
    lost = ", ".join(f"{n:,}" for n in sizes if n > most)
    return averaged(made, ways, often * length), lost


def _attempts(
    rounds: Sequence[Attacker],
    metric: str,
    length: int,
    counts: Sequence[int],
    protocol: LegalProtocol,
    intervals: Mapping[str, Any],
) -> Iterator[Callable[[], Curve]]:
    """What computes the curve of each round of an attack."""
    how = Sampling(intervals["replicates"], intervals["level"], intervals["seed"])
    if metric == "one_minus_eer":
        for one in rounds:
            more = {"backend": one.backend_in_use, "protocol": protocol, **intervals}
            yield partial(one_minus_eer, one.enrol, one.test, counts=counts, length=length, **more)
        return
    asked = cast("Metric", metric)
    data = []
    for one in rounds:
        sets = one.enrol, one.test, asked, length, one.backend_in_use, protocol, how
        data.append(attack_data(*sets, one.exchanged))
    if metric == "singling_out":
        for each in data:
            yield partial(singling_out_of, each, counts, protocol, how)
        return
    for each in weighed(data):
        yield partial(linkability_of, each, counts, protocol.linkability_draws, how)


def weighed(rounds: Sequence[AttackData]) -> list[AttackData]:
    """Weigh the people of each round by their attempts there.

    The number of a person is the mean of all attempts: the mean over rounds of means over people
    is the mean over people where the mean of a person weighs as many times the average as the
    person has attempts in the round.
    """
    if len(rounds) == 1:
        return list(rounds)
    names = pl.concat([one.tested.names for one in rounds]).unique().sort()
    at = [lookup(one.tested.names, names).astype(np.int64) for one in rounds]
    attempts = np.zeros((len(rounds), len(names)))
    for n, (one, where) in enumerate(zip(rounds, at, strict=True)):
        attempts[n, where] = one.tested.per_speaker
    share = len(rounds) * attempts / attempts.sum(axis=0)
    made = []
    for n, (one, where) in enumerate(zip(rounds, at, strict=True)):
        made.append(replace(one, weights=share[n, where] * len(where) / len(names)))
    return made


def _possible_points(
    tested: Sequence[IntArray], lengths: Sequence[int], metrics: Sequence[str]
) -> tuple[list[tuple[int, str]], list[Notice]]:
    """Pairs of a length and a metric, less Singling Out where nobody has two conversations.

    ``tested`` are utterances of each person in every set that is tested. Singling Out takes whoever
    has two conversations there, other metrics whoever has one.
    Where nothing else is asked for it is kept, and says itself what is missing.
    """
    points = list(product(lengths, metrics))
    longest = min(int(utterances.max()) for utterances in tested) // 2
    lacking = [point for point in points if point[1] == "singling_out" and point[0] > longest]
    if len(lacking) == len(points):
        return points, []
    left = [point for point in points if point not in lacking]
    if lacking and not longest:
        wanted = "it takes two test utterances of a person"
        sentence = f"{TITLES['singling_out']} not measured, {wanted}"
        return left, [Notice("metric-left-out", "", sentence)]
    notices = []
    for length, metric in lacking:
        sentence = (
            f"conversations of {length} utterances left out, nobody has two of them to attack: the"
            f" longest are of {longest}"
        )
        notices.append(Notice("length-left-out", TITLES[metric], sentence))
    return left, notices


def _untried(attackers: Sequence[Attacker], variants: Sequence[str]) -> tuple[Notice, ...]:
    """Back-ends that no attacker on protected speech tried, and readings not asked for."""
    used = (attacker.backend for attacker in attackers)
    tried = {one if isinstance(one, str) else one.name for one in used}
    missing = [str(reading) for reading in READINGS if reading not in (Reading.PLAIN, *variants)]
    others = [f"scores read {', '.join(missing)} (not asked for)"] * bool(missing)
    why = lengths_left_out(attackers)
    if why is not None:
        others.append(f"the length of vectors ({why})")
    able = lambda named: any(attacker.allows(named.name) for attacker in attackers)  # noqa: E731
    return (not_tried(tried, able, *others),) if attackers else ()


def fitting_lengths(
    attackers: Iterable[Attacker], lengths: Sequence[int] = LENGTHS, *, conversations: int = 2
) -> tuple[int, ...]:
    """Those of ``lengths`` of which 20 people that each of the ``attackers`` tests, or half of
    them, have as many ``conversations``; in place of longer ones the longest that half of the
    people have. The shortest where none fits, and the metrics tell why.

    Within a release half of somebody's speech is tested at once, or one conversation of two.
    """
    counts = [count for attacker in attackers for count in _tested_at_once(attacker)]
    recordings = [-np.sort(-count[count > 0]) for count in counts]
    enough = [min(HEADLINE, max(2, -(-len(one) // 2)), len(one)) for one in recordings]
    most = min(int(r[n - 1]) // conversations for r, n in zip(recordings, enough, strict=True))
    usual = min(int(np.median(recording)) // conversations for recording in recordings)
    kept = [length for length in lengths if length <= most]
    if len(kept) < len(lengths) and usual > max(kept, default=0):
        kept.append(usual)
    return tuple(kept or [min(lengths)])


def _tested_at_once(attacker: Attacker) -> list[IntArray]:
    """Utterances of each person that are tested in each round; at most half of a release."""
    if isinstance(attacker.split, ReleaseSplit):
        return [np.bincount(attacker.split.release.speakers.codes) // 2]
    return [np.bincount(one.test.speakers.codes) for one in attacker.rounds()]


def _known(names: Iterable[str], allowed: Iterable[str], what: str) -> None:
    for name in names:
        if name not in allowed:
            raise InputError(f"{what}: expected one of {', '.join(allowed)}, found {name}")


def testable(test: Embeddings, needed: int) -> int:
    """How many speakers have as many utterances as are ``needed``."""
    return int((np.bincount(test.speakers.codes) >= needed).sum())


def possible(ways: Sequence[Attacker], needed: int, *, people: int) -> Sequence[Attacker]:
    """The ways in which as many ``people`` have the utterances that are ``needed``; all where there
    are none such.
    """
    return [way for way in ways if testable(way.test, needed) >= people] or ways


def averaged(curves: Sequence[Curve], ways: Sequence[Attacker], needed: int) -> Curve:
    """The mean of an attack's ``curves`` over the rounds, or ``ways``, in which it is run.

    Linkability becomes the mean over speakers of the mean of all their attempts, Singling Out that
    of their mean outcome in the rounds in which they are tested. The interval of Linkability is
    that of these means; the variance of Singling Out and the ends of 1 − EER are means over rounds,
    which no dependence exceeds. Left out is who has fewer utterances than ``needed`` in all.
    """
    if len(ways) == 1:
        return curves[0]
    codes = [voices.speakers.codes for way in ways for voices in (way.enrol, way.test)]
    everyone = np.unique(np.concatenate(codes))
    most = np.max([np.bincount(some, minlength=everyone[-1] + 1) for some in codes[1::2]], axis=0)
    left_out = everyone.size - int((most >= needed).sum())
    negated = [curve.negated for curve in curves if curve.negated is not None]
    mean = _mean(curves, left_out, ways[0].exchanged)
    if not negated:
        return mean
    return replace(mean, negated=_mean(negated, left_out, ways[0].exchanged))


def _mean(curves: Sequence[Curve], left_out: int, exchanged: ExchangedPeople | None) -> Curve:
    first = curves[0]
    speakers = pl.concat([curve.speakers for curve in curves]).unique().sort()
    made: dict[str, Any] = {
        **{name: _over(curves, name).mean(axis=0) for name in ("value", "low", "high")},
        # Of most rounds: in one of twenty the mean of permuted names differs by luck.
        "chance": np.median(_over(curves, "chance"), axis=0),
        "attacks": _over(curves, "attacks").sum(axis=0),
        "short": max(curve.short for curve in curves),
        "permuted": _blind([curve.permuted for curve in curves]),
    }
    risky = [curve for curve in curves if isinstance(curve, RiskCurve)]
    if risky:
        at = [lookup(curve.speakers, speakers).astype(np.int64) for curve in risky]
        made |= _risks(risky, at, len(speakers))
        if exchanged is not None:
            # A recording that is tested in several rounds is one recording.
            most = exchanged.utterances[lookup(speakers, exchanged.names).astype(np.int64)]
            made["recordings"] = np.minimum(made["recordings"], most // first.length)
        if isinstance(first, Linkability):
            made |= _ranked([curve for curve in risky if isinstance(curve, Linkability)], at)
            made |= {name: _over(curves, name).mean(axis=0) for name in ("strict", "tied")}
        if isinstance(first, SinglingOut):
            made["threshold_rank"] = _over(curves, "threshold_rank").mean(axis=0)
            made["hits"] = _blind([o.hits for o in curves if isinstance(o, SinglingOut)])
    return replace(first, **made, speakers=speakers, left_out=left_out, notes=())


def _blind(ways: Sequence[Permuted | None]) -> Permuted | None:
    """The mean of all ways under the same renaming, or the same number of a deal."""
    known = [permuted for permuted in ways if permuted is not None]
    if len(known) < len(ways) or len({permuted.values.shape for permuted in known}) > 1:
        return None
    values = np.mean([permuted.values for permuted in known], axis=0)
    people, exhaustive = min(o.people for o in known), all(o.exhaustive for o in known)
    return replace(known[0], values=values, people=people, exhaustive=exhaustive)


def _over(curves: Sequence[Curve], field: str) -> FloatArray:
    return np.stack([getattr(curve, field) for curve in curves])


def _risks(curves: Sequence[RiskCurve], at: Sequence[IntArray], speakers: int) -> dict[str, Any]:
    """Mean outcomes of the speakers, whose numbers are ``at``, and what follows from them."""
    first = curves[0]
    outcomes = np.full((len(curves), speakers, len(first.counts)), np.nan)
    recordings = np.zeros(speakers, dtype=np.int64)
    for n, (curve, where) in enumerate(zip(curves, at, strict=True)):
        outcomes[n, where] = curve.per_speaker
        recordings[where] += curve.recordings
    weights = np.ones(outcomes.shape[:2])
    if isinstance(first, Linkability):
        for n, (curve, where) in enumerate(zip(curves, at, strict=True)):
            weights[n, where] = curve.recordings
    weights = np.where(np.isnan(outcomes[:, :, 0]), 0.0, weights)
    tried = np.nan_to_num(outcomes) * weights[:, :, None]
    per_speaker = tried.sum(axis=0) / weights.sum(axis=0)[:, None]
    variance = mean_variance(per_speaker)
    if first.method == BOTH_SIDES:
        variance = np.fmax(variance, np.sqrt(_over(curves, "variance")).mean(axis=0) ** 2)
    free = np.array([int((curve.recordings - 1).sum()) for curve in curves])
    noise = np.full(len(first.counts), np.nan)
    if free.any():
        noise = free @ np.nan_to_num(_over(curves, "noise")) / free.sum()
    elif len(curves) > 1 and (both := ~np.isnan(outcomes).any(axis=(0, 2))).any():
        noise = outcomes[:, both].var(axis=0, ddof=1).mean(axis=0)
    made = risks(per_speaker, variance, first.resampling)
    return {**made, "recordings": recordings, "noise": noise}


def _ranked(curves: Sequence[Linkability], at: Sequence[IntArray]) -> dict[str, Any]:
    """The conversations of all ways together, for the ranks."""
    counted = [linkability.above for linkability in curves]
    allowed = [counts.allowed for counts in counted if counts.allowed is not None]
    above = Above(
        np.concatenate([counts.at_or_above for counts in counted]),
        np.concatenate([counts.above for counts in counted]),
        counted[0].others,
        np.concatenate(allowed) if allowed else None,
    )
    owner = [where[linkability.owner] for linkability, where in zip(curves, at, strict=True)]
    return {"above": above, "owner": np.concatenate(owner)}
