"""The legally validated metrics over counts × lengths × attackers (Vauquier 2025, Figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.privacy.legal.attributes import Inference, inference
from unmask.privacy.legal.backends import train_backend
from unmask.privacy.legal.conversations import EnrolLength
from unmask.privacy.legal.counts import Progress
from unmask.privacy.legal.curve import Curve
from unmask.privacy.legal.flags import sweep_warnings
from unmask.privacy.legal.isolated import singling_out
from unmask.privacy.legal.links import Linkability, linkability
from unmask.privacy.legal.lists_eer import verification
from unmask.privacy.legal.ranks import Ranks
from unmask.privacy.legal.sweep import LegalSweep
from unmask.privacy.legal.variants import (
    CENTRED,
    PLAIN,
    VARIANTS,
    centred,
    of_centred,
    variant_name,
)
from unmask.run import Where, kept_open
from unmask.scoring import Backend
from unmask.trials import Embeddings, Source

METRICS = ("singling_out", "linkability", "one_minus_eer")
LENGTHS = (1, 3, 30)
FIRST_COUNT = 20
_STEPS = (1, 2, 5)


@dataclass(frozen=True, eq=False)
class Attacker:
    """What an attacker holds: enrolment speech of known voices, test speech of protected ones.

    ``backend`` is ``"cosine"``, ``"wccn"`` or ``"plda"`` (the last two are trained on ``train``,
    the attacker's own data) or a trained back-end. ``enrols`` says whether the enrolment speech is
    ``"original"`` or ``"protected"``; ``knows`` what the extractor or the back-end was trained on:
    ``"original"`` speech (ignorant), speech from a ``"related"`` safeguard (semi-informed) or from
    the ``"same"`` one (informed), always with keys of the attacker's own. Enrolment from the run
    that is attacked is no attack: it shows whether pseudonyms are consistent. ``consistency`` says
    so; left at None it is found out (both sets from one file, or vectors in both). A safeguard
    without a key gives an attacker the same run: say ``consistency=False`` there.
    """

    enrol: Embeddings
    test: Embeddings
    backend: Backend | str = "cosine"
    train: Embeddings | None = None
    enrols: Literal["original", "protected"] | None = None
    knows: Literal["original", "related", "same"] | None = None
    consistency: bool | None = None

    def trained(self) -> Backend:
        """The back-end, ready to score."""
        if isinstance(self.backend, str):
            return train_backend(self.backend, self.train)
        return self.backend

    @property
    def is_consistency(self) -> bool:
        """Whether what is enrolled comes from the run that is attacked."""
        if self.consistency is None:
            return self.enrols != "original" and one_run(self.enrol, self.test)
        return self.consistency

    def centred(self) -> Attacker | None:
        """The same attacker with every set about its own mean; None where that leaves nothing, or
        where the back-end is already trained on others.
        """
        if not isinstance(self.backend, str) and self.backend.name != "cosine":
            return None
        enrol, test = centred(self.enrol), centred(self.test)
        train = None if self.train is None else centred(self.train)
        sets = (enrol, test) if train is None else (enrol, test, train)
        if not all(some.vectors.any(axis=1).all() for some in sets):
            return None
        return replace(self, enrol=enrol, test=test, train=train)


def one_run(enrol: Embeddings, test: Embeddings) -> bool:
    """Whether two sets come from one file, or share vectors."""
    if enrol.source is not None and test.source is not None:
        return enrol.source.sha256 == test.source.sha256
    if enrol.dimension != test.dimension:
        return False
    direction = np.random.default_rng(0).normal(size=enrol.dimension)
    along = [(some.vectors * direction).sum(axis=1) for some in (enrol, test)]
    return bool(np.isin(*along).any())


def with_backends(
    attackers: Mapping[str, Attacker], backends: Sequence[str]
) -> dict[str, Attacker]:
    """Each attacker once with every back-end; those without training data keep cosine only."""
    found: dict[str, Attacker] = {}
    for name, attacker in attackers.items():
        usable = [b for b in backends if b == "cosine" or attacker.train is not None]
        for backend in usable or ["cosine"]:
            label = name if len(usable) < 2 else f"{name} ({backend})"
            found[label] = replace(attacker, backend=backend)
    return found


def default_counts(speakers: int) -> tuple[int, ...]:
    """20, 50, 100, 200, 500, … below the number of speakers, and that number."""
    steps = (step * 10**power for power in range(1, 10) for step in _STEPS)
    return (*(n for n in steps if FIRST_COUNT <= n < speakers), speakers)


@dataclass(frozen=True)
class _Plan:
    """Options that every metric of a sweep shares."""

    counts: tuple[int, ...] | None
    options: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    swap: bool = False


def legal_sweep(
    attackers: Mapping[str, Attacker],
    *,
    counts: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    metrics: Sequence[str] = METRICS,
    original: str | None = None,
    asked: str | None = None,
    attributes: Mapping[str, Sequence[float]] | Sequence[str] = (),
    variants: Sequence[str] = VARIANTS,
    linkability_enrol: EnrolLength = None,
    singling_out_enrol: EnrolLength = None,
    one_minus_eer_enrol: EnrolLength = None,
    swap: bool = False,
    linkability_draws: int | None = None,
    folds: int = 10,
    draws: int = 5,
    max_enrol: int = 495,
    side: Sequence[str] = (),
    allow_shared_utterances: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> LegalSweep:
    """Singling Out, Linkability and 1 − EER of every attacker at every length and count.

    ``original`` names the attacker on unprotected speech (by default the one called ``original``):
    it shows whether the attack is strong enough to be believed. ``asked`` names the attacker whose
    risk is asked for; the strongest is always named beside it. Every attacker reads its scores in
    all ``variants``: plain, negated, centred, centred negated. Enrolment averages as many
    utterances as the paper's, whatever the length: all for Linkability and for 1 − EER, 30 (or all
    where there are fewer) for Singling Out; ``linkability_enrol`` and its like set another number
    or ``"all"``. ``swap`` changes the sides for Singling Out, which then enrols the test set and
    tests the enrolment set, as the paper does with its sets A and B; an attacker that enrols
    original speech keeps its sides. ``attributes`` are columns for the inference criterion, with
    the cuts of their bands where they are numbers. ``lengths`` are those of 1, 3 and 30 that all
    attackers have speech for, unless given. A count beyond the speakers of some length or metric is
    left out there, with a warning; beyond all it is an error. ``on``, ``workers`` and ``state`` say
    where the scores of all three metrics are counted, as in :func:`unmask.cross_pairing`: the table
    is the same. With ``state`` a sweep that was killed goes on from there. Back-ends are trained,
    intervals drawn and attributes probed in this process.
    """
    Where(on, workers, state)
    if not attackers:
        raise InputError("attackers: expected at least one, found none")
    _known(metrics, METRICS, "metric")
    original = "original" if original is None and "original" in attackers else original
    _known([name for name in (original, asked) if name is not None], tuple(attackers), "attacker")
    _known(variants, VARIANTS, "variant")
    plan = _Plan(
        None if counts is None else tuple(int(n) for n in np.unique(np.asarray(counts))),
        {
            "side": tuple(side),
            "allow_shared_utterances": allow_shared_utterances,
            "level": level,
            "replicates": replicates,
            "seed": seed,
            "on": on,
            "workers": workers,
            "state": state,
        },
        {
            "singling_out": {
                "enrol_length": singling_out_enrol,
                "folds": folds,
                "draws": draws,
                "max_enrol": max_enrol,
            },
            "linkability": {"enrol_length": linkability_enrol, "draws": linkability_draws},
            "one_minus_eer": {
                "enrol_length": linkability_enrol
                if one_minus_eer_enrol is None
                else one_minus_eer_enrol
            },
        },
        swap,
    )
    cuts = attributes if isinstance(attributes, Mapping) else dict.fromkeys(attributes, ())
    notes: list[str] = []
    if lengths is None:
        lengths, notes = _possible_lengths(attackers, metrics)
    readings = 1 + any(variant.startswith(CENTRED) for variant in variants)
    steps = len(attackers) * (readings * len(lengths) * len(metrics) + len(cuts))
    curves: dict[tuple[str, str, int], Curve] = {}
    ranks: dict[tuple[str, int], Ranks] = {}
    inferences: dict[tuple[str, str], Inference] = {}
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, steps)

    with kept_open():
        for name, attacker in attackers.items():
            for reading in range(readings):
                used = attacker if reading == 0 else attacker.centred()
                if used is None:
                    notes.append(f"{name}: centred embeddings cannot be had, not tried")
                    done += len(lengths) * len(metrics) - 1
                    step()
                    continue
                backend = used.trained()
                for length, metric in product(lengths, metrics):
                    curve, lost = _curve(metric, used, backend, length, plan)
                    curve = of_centred(curve) if reading else curve
                    for one in (curve, curve.negated):
                        if one is not None and one.variant in (PLAIN, *variants):
                            curves[variant_name(name, one.variant), metric, length] = one
                    if lost and not reading:
                        notes.append(_lost(name, metric, length, lost))
                    if isinstance(curve, Linkability) and not reading:
                        ranks[name, length] = curve.ranks
                    step()
            for attribute, bands in cuts.items():
                control = None if original in (None, name) else attackers[str(original)].test
                inferences[name, attribute] = inference(
                    attacker.test,
                    attribute,
                    unprotected=attacker.test if name == original else control,
                    bands=bands,
                    level=level,
                    replicates=replicates,
                    seed=seed,
                )
                step()
    consistency = tuple(
        name for name, one in attackers.items() if name != original and one.is_consistency
    )
    return LegalSweep(
        curves=MappingProxyType(curves),
        ranks=MappingProxyType(ranks),
        inferences=MappingProxyType(inferences),
        original=original,
        asked=asked,
        seed=seed,
        warnings=(*notes, *sweep_warnings(curves, inferences, ranks, original, consistency)),
        sources=_sources(attackers.values()),
        consistency=consistency,
    )


def _possible_lengths(
    attackers: Mapping[str, Attacker], metrics: Sequence[str]
) -> tuple[list[int], list[str]]:
    """The usual lengths that every attacker has a speaker for, and a note on the others."""
    conversations_needed = 2 if "singling_out" in metrics else 1
    most = min(int(np.bincount(a.test.speakers.codes).max()) for a in attackers.values())
    possible = [length for length in LENGTHS if conversations_needed * length <= most]
    lost = [str(length) for length in LENGTHS if length not in possible]
    notes = [f"length {', '.join(lost)}: no test speaker has enough utterances, left out"]
    return possible or [1], notes if lost else []


def _sources(attackers: Iterable[Attacker]) -> tuple[Source, ...]:
    """The files that were read, each once."""
    sets = [s for a in attackers for s in (a.enrol, a.test, a.train) if s is not None]
    return tuple(dict.fromkeys(s.source for s in sets if s.source is not None))


def _known(names: Sequence[str], allowed: tuple[str, ...], what: str) -> None:
    for name in names:
        if name not in allowed:
            raise InputError(f"{what}: expected one of {', '.join(allowed)}, found {name}")


def _curve(
    metric: str, attacker: Attacker, backend: Backend, length: int, plan: _Plan
) -> tuple[Curve, list[int]]:
    """The curve of one metric, and the counts that are larger than the speakers there are."""
    enrol, test = attacker.enrol, attacker.test
    if plan.swap and metric == "singling_out" and attacker.enrols != "original":
        enrol, test = test, enrol
    most = _speakers(metric, enrol, test, length)
    wanted = plan.counts or default_counts(most)
    usable: npt.ArrayLike = [n for n in wanted if n <= most] or list(wanted)
    run: Callable[..., Curve] = _METRICS[metric]
    options = {**plan.options, **plan.own[metric]}
    found = run(enrol, test, **options, backend=backend, length=length, counts=usable)
    return found, [n for n in wanted if n > most]


_METRICS: Mapping[str, Callable[..., Curve]] = {
    "singling_out": singling_out,
    "linkability": linkability,
    "one_minus_eer": verification,
}


def _speakers(metric: str, enrol: Embeddings, test: Embeddings, length: int) -> int:
    """How many speakers a count can have."""
    if metric != "singling_out":
        return enrol.n_speakers
    return int((np.bincount(test.speakers.codes) >= 2 * length).sum())


def _lost(name: str, metric: str, length: int, lost: Sequence[int]) -> str:
    return (
        f"{metric} of {name}, length {length}: too few speakers for"
        f" {', '.join(f'{n:,}' for n in lost)}, left out"
    )
