"""Attackers: who enrols what, and with which back-end, to recognise protected voices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unmask.base import BoolArray, FloatArray, length_normalised
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.scoring import (
    Backend,
    Cosine,
    Moments,
    Plda,
    Whitening,
    as_vectors,
    discriminants,
    score_blocks,
)
from unmask.trials import Embeddings

SHRINKAGE = 0.1
LDA_DIRECTIONS = 20


class Projected(Whitening):
    """Length-normalise, centre, project by any matrix, and take the cosine."""

    @property
    def name(self) -> str:
        return self.covariance


def centred(training: Embeddings) -> Backend:
    """Cosine about the mean of the training vectors."""
    rows = length_normalised(as_vectors(training.vectors))
    return Projected(rows.mean(axis=0), np.eye(training.dimension), "centred")


def lda(training: Embeddings) -> Backend:
    """Cosine in the directions of largest between- over within-speaker variance."""
    rows = length_normalised(as_vectors(training.vectors))
    centre = rows.mean(axis=0)
    directions = min(LDA_DIRECTIONS, training.n_speakers - 1, training.dimension)
    moments = Moments.of(rows - centre, training.speakers.codes)
    return Projected(centre, discriminants(moments, directions, SHRINKAGE), "lda")


BACKENDS: Mapping[str, Callable[[Embeddings], Backend]] = {
    "cosine": lambda training: Cosine(),
    "centred": centred,
    "wccn": lambda training: Whitening.fit(training, shrinkage=SHRINKAGE),
    "lda": lda,
    "plda": lambda training: Plda.fit(training, shrinkage=SHRINKAGE),
}
"""Back-ends an attacker can train; cosine needs no training."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Enrolment and test of some speakers, and back-ends trained on none of them."""

    enrol: Embeddings
    test: Embeddings
    backends: Mapping[str, Backend]

    def scores(self, backend: str) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all pairs of an enrolment and a test utterance."""
        model = self.backends[backend]
        enrol, test = model.prepare(self.enrol.vectors), model.prepare(self.test.vectors)
        mine = self.enrol.speakers.to_series().to_numpy()
        theirs = self.test.speakers.to_series().to_numpy()
        target, nontarget = [], []
        for start, stop, block in score_blocks(model, enrol, test):
            same = mine[start:stop, None] == theirs[None]
            target.append(block[same])
            nontarget.append(block[~same])
        return np.concatenate(target), np.concatenate(nontarget)


@dataclass(frozen=True, eq=False)
class Attack:
    """What an attacker makes of a protected set, with every back-end it tried.

    Each of ``folds`` goes into ``linkability``, ``singling_out`` and their like as it is:
    ``linkability(fold.enrol, fold.test, backend=fold.backends[name], counts=…)``.
    """

    attacker: str
    folds: tuple[Fold, ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the back-ends tried."""
        return tuple(self.folds[0].backends)

    def scores(self, backend: str | None = None) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all folds together, of the strongest back-end if none
        is named.
        """
        pairs = [fold.scores(backend or self.strongest) for fold in self.folds]
        return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])

    def roc(self, backend: str | None = None) -> Roc:
        """The ROC statistic of the scores."""
        return Roc.from_scores(*self.scores(backend))

    @cached_property
    def strongest(self) -> str:
        """The back-end with the lowest C_llr^min on the very trials attacked.

        Chosen with hindsight, on purpose: a safeguard is judged by the best attack known.
        """
        return min(self.backends, key=lambda name: self.roc(name).min_cllr())


@dataclass(frozen=True, eq=False)
class AttackModel:
    """Enrols ``enrolment``, trains ``backends`` on ``training``, and never on speakers it tests.

    Several training sets are pooled under the speakers' names: a back-end that sees the same
    speaker original and protected, or protected by several runs, learns to look away from what
    the safeguard changes.
    """

    name: str
    enrolment: Embeddings
    training: tuple[Embeddings, ...] = ()
    backends: Mapping[str, Callable[[Embeddings], Backend]] = field(
        default_factory=lambda: {"cosine": BACKENDS["cosine"]}
    )

    def attack(self, test: Embeddings, *, folds: int = 2, seed: int = 0) -> Attack:
        """Attack ``test`` in ``folds`` groups of speakers, each with back-ends of the others.

        Where enrolment and test share utterances, half of each speaker's utterances (every second
        one by name) enrols and the other half tests, so that no utterance meets its own protected
        version. The groups depend on the speakers' names and the seed alone, so all attackers of
        one test set try the same trials.
        """
        names = sorted(set(test.speakers.to_series()) & set(self.enrolment.speakers.to_series()))
        if len(names) < 2 * folds or folds < 1:
            raise InputError(
                f"attack: expected at least 2 speakers per fold in enrolment and test, found"
                f" {len(names)} for {folds} folds"
            )
        enrol, tested = _apart(self.enrolment.normalised(), test.normalised())
        order = np.random.default_rng(seed).permutation(len(names))
        groups = [{names[i] for i in order[n::folds]} for n in range(folds)]
        return Attack(self.name, tuple(self._fold(enrol, tested, group) for group in groups))

    def _fold(self, enrol: Embeddings, test: Embeddings, group: set[str]) -> Fold:
        seen = _pooled([_among(one, group, inside=False).normalised() for one in self.training])
        chosen = _among(enrol, group, inside=True), _among(test, group, inside=True)
        if seen is None and set(self.backends) != {"cosine"}:
            raise InputError(f"attacker {self.name}: its back-ends need a training set")
        trained = {
            name: Cosine() if seen is None else make(seen) for name, make in self.backends.items()
        }
        return Fold(*chosen, trained)


def attack_models(
    original: Embeddings,
    *,
    own: Sequence[Embeddings],
    related: Sequence[Embeddings] = (),
) -> dict[str, AttackModel]:
    """The attackers of Vauquier (2025) as far as back-ends go, and those with original enrolment.

    ``own`` are runs of the very safeguard that the attacker made, with keys of its own: never the
    run attacked, except for a safeguard that has no key. ``related`` are runs of a similar one.
    ``original`` is the control, to be run on unprotected speech. ``original enrolment`` enrols
    original speech (the ignorant attacker of the VoicePrivacy challenges). The other attackers
    enrol speech that they protected; their back-ends are trained on original speech (``ignorant``),
    on related protected speech too (``semi-informed``) or on their own (``informed``). Where the
    safeguard has a key, a run of the attacker's own disguises a voice otherwise than the run
    attacked: then an informed attacker may do better to enrol originals. No extractor is trained.
    """
    if not own:
        raise InputError("attackers: expected at least one run of the safeguard, found none")
    sets = {
        "original enrolment": (original, (original,)),
        "ignorant": (own[0], (original,)),
        **({"semi-informed": (own[0], (original, *related))} if related else {}),
        "informed": (own[0], (original, *own)),
        "informed with originals": (original, (original, *own)),
    }
    return {
        "original": AttackModel("original", original, (original,), BACKENDS),
        **{name: AttackModel(name, *given, BACKENDS) for name, given in sets.items()},
    }


def _apart(enrol: Embeddings, test: Embeddings) -> tuple[Embeddings, Embeddings]:
    if enrol.utterances is None or test.utterances is None:
        raise InputError("attack: expected a name for every utterance, found none")
    shared = set(enrol.utterances.to_series()) & set(test.utterances.to_series())
    if not shared:
        return enrol, test
    return enrol.select(_every_second(enrol, 0)), test.select(_every_second(test, 1))


def _every_second(embeddings: Embeddings, remainder: int) -> BoolArray:
    """Every second utterance of each speaker, counted by name."""
    assert embeddings.utterances is not None
    names = embeddings.utterances.to_series().to_numpy().astype(str)
    codes = embeddings.speakers.codes
    order = np.lexsort((names, codes))
    first = np.searchsorted(codes[order], codes[order])
    mask = np.zeros(len(embeddings), dtype=np.bool_)
    mask[order] = (np.arange(len(order)) - first) % 2 == remainder
    return mask


def _among(embeddings: Embeddings, group: set[str], *, inside: bool) -> Embeddings:
    chosen = embeddings.speakers.to_series().is_in(list(group)).to_numpy()
    mask = chosen if inside else ~chosen
    if not mask.any():
        where = "tested" if inside else "left to train on"
        raise InputError(f"attack: no speakers {where}: training and test speakers must differ")
    return embeddings.select(mask)


def _pooled(sets: Sequence[Embeddings]) -> Embeddings | None:
    if not sets:
        return None
    return Embeddings(
        np.concatenate([one.vectors for one in sets]),
        [name for one in sets for name in one.speakers.to_series()],
    )
