"""The legally validated metrics over counts × lengths × attackers (Vauquier 2025, Figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.privacy.conversations import EnrolLength
from unmask.privacy.inference import Inference, inference
from unmask.privacy.legal_backend import train_backend
from unmask.privacy.legal_counts import Progress
from unmask.privacy.legal_curve import Curve
from unmask.privacy.legal_flags import sweep_warnings
from unmask.privacy.legal_sweep import LegalSweep
from unmask.privacy.legal_verification import verification
from unmask.privacy.linkability import Linkability, linkability
from unmask.privacy.ranks import Ranks
from unmask.privacy.singling_out import singling_out
from unmask.scoring import Backend
from unmask.scoring.job import Where
from unmask.scoring.where import kept_open
from unmask.trials import Embeddings, Source

METRICS = ("singling_out", "linkability", "one_minus_eer")
LENGTHS = (1, 3, 30)
FIRST_COUNT = 20
_STEPS = (1, 2, 5)


@dataclass(frozen=True, eq=False)
class Attacker:
    """What an attacker holds: enrolment speech of known voices, test speech of protected ones.

    ``backend`` is ``"cosine"``, ``"wccn"`` or ``"plda"`` (the last two are trained on ``train``,
    the attacker's own data) or a trained back-end.
    """

    enrol: Embeddings
    test: Embeddings
    backend: Backend | str = "cosine"
    train: Embeddings | None = None

    def trained(self) -> Backend:
        """The back-end, ready to score."""
        if isinstance(self.backend, str):
            return train_backend(self.backend, self.train)
        return self.backend


def with_backends(
    attackers: Mapping[str, Attacker], backends: Sequence[str]
) -> dict[str, Attacker]:
    """Each attacker once with every back-end; those without training data keep cosine only."""
    found: dict[str, Attacker] = {}
    for name, attacker in attackers.items():
        usable = [b for b in backends if b == "cosine" or attacker.train is not None]
        for backend in usable or ["cosine"]:
            label = name if len(usable) < 2 else f"{name} ({backend})"
            found[label] = Attacker(attacker.enrol, attacker.test, backend, attacker.train)
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
    singling: Mapping[str, Any] = field(default_factory=dict)
    draws: int | None = None
    place: Mapping[str, Any] = field(default_factory=dict)


def legal_sweep(
    attackers: Mapping[str, Attacker],
    *,
    counts: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    metrics: Sequence[str] = METRICS,
    original: str | None = None,
    asked: str | None = None,
    attributes: Mapping[str, Sequence[float]] | Sequence[str] = (),
    enrol_length: EnrolLength = None,
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
    risk is asked for; the strongest is always named beside it. ``attributes`` are columns for the
    inference criterion, with the cuts of their bands where they are numbers. ``lengths`` are those
    of 1, 3 and 30 that all attackers have speech for, unless given. A count beyond the
    speakers of some length or metric is left out there, with a warning; beyond all it is an error.
    ``on``, ``workers`` and ``state`` say where the scores of all three metrics are counted, as in
    :func:`unmask.cross_pairing`: the table is the same. With ``state`` a sweep that was killed goes
    on from there. Back-ends are trained, intervals drawn and attributes probed in this process.
    """
    Where(on, workers, state)
    if not attackers:
        raise InputError("attackers: expected at least one, found none")
    _known(metrics, METRICS, "metric")
    original = "original" if original is None and "original" in attackers else original
    _known([name for name in (original, asked) if name is not None], tuple(attackers), "attacker")
    plan = _Plan(
        None if counts is None else tuple(int(n) for n in np.unique(np.asarray(counts))),
        {
            "enrol_length": enrol_length,
            "side": tuple(side),
            "allow_shared_utterances": allow_shared_utterances,
            "level": level,
            "replicates": replicates,
            "seed": seed,
        },
        {"folds": folds, "draws": draws, "max_enrol": max_enrol},
        linkability_draws,
        {"on": on, "workers": workers, "state": state},
    )
    cuts = attributes if isinstance(attributes, Mapping) else dict.fromkeys(attributes, ())
    notes: list[str] = []
    if lengths is None:
        lengths, notes = _possible_lengths(attackers, metrics)
    steps = len(attackers) * (len(lengths) * len(metrics) + len(cuts))
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
            backend = attacker.trained()
            for length in lengths:
                for metric in metrics:
                    curve, lost = _curve(metric, attacker, backend, length, plan)
                    curves[name, metric, length] = curve
                    if lost:
                        notes.append(_lost(name, metric, length, lost))
                    if isinstance(curve, Linkability):
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
    return LegalSweep(
        curves=MappingProxyType(curves),
        ranks=MappingProxyType(ranks),
        inferences=MappingProxyType(inferences),
        original=original,
        asked=asked,
        seed=seed,
        warnings=(*notes, *sweep_warnings(curves, inferences, ranks, original)),
        sources=_sources(attackers.values()),
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
    most = _speakers(metric, attacker, length)
    wanted = plan.counts or default_counts(most)
    usable: npt.ArrayLike = [n for n in wanted if n <= most] or list(wanted)
    shared = {
        **plan.options, **plan.place, "backend": backend, "length": length, "counts": usable,
    }  # fmt: skip
    runs: dict[str, Callable[[], Curve]] = {
        "singling_out": lambda: singling_out(
            attacker.enrol, attacker.test, **shared, **plan.singling
        ),
        "linkability": lambda: linkability(
            attacker.enrol, attacker.test, **shared, draws=plan.draws
        ),
        "one_minus_eer": lambda: verification(attacker.enrol, attacker.test, **shared),
    }
    return runs[metric](), [n for n in wanted if n > most]


def _speakers(metric: str, attacker: Attacker, length: int) -> int:
    """How many speakers a count can have."""
    if metric != "singling_out":
        return attacker.enrol.n_speakers
    return int((np.bincount(attacker.test.speakers.codes) >= 2 * length).sum())


def _lost(name: str, metric: str, length: int, lost: Sequence[int]) -> str:
    return (
        f"{metric} of {name}, length {length}: too few speakers for"
        f" {', '.join(f'{n:,}' for n in lost)}, left out"
    )
