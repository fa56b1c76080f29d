"""Who attacks: what is enrolled, what a back-end was trained on, and how its scores are read.

Back-ends beyond cosine, wccn and plda train no network either and use no label of attacked speech;
docs/legal.md has what each does, needs and comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from unmask.base import FloatArray, lazy
from unmask.engine import Roc, fusion_weights
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.legal.conversations import refuse_dimensions
from unmask.privacy.legal.curve import CENTRED, CENTRED_NEGATED, NEGATED, PLAIN, VARIANTS
from unmask.scoring import (
    AlignedCosine,
    Alignment,
    Backend,
    Fused,
    average_groups,
    backend_named,
    centring,
    coral,
    procrustes,
    score_matrix,
    wasserstein_procrustes,
    whitening,
)
from unmask.trials import Embeddings

UNLABELLED = ("whitened", "coral", "wasserstein")
"""Alignments of enrolment with attacked speech, which need nothing else."""
ALIGNED = (*UNLABELLED, "procrustes")
"""Back-ends that are a cosine after an alignment."""
LEARNT = ("procrustes", "asnorm", "fusion")
"""Those that learn from training speakers, who must not be attacked."""
_PAIRED = ("procrustes", "fusion")
MEMBERS = ("cosine", "centred", "wccn", "plda")
"""What is fused."""
Pairs = tuple[Embeddings, Embeddings]
BACKENDS = ("cosine", "wccn", "plda", *UNLABELLED, *LEARNT)
"""Back-ends that an attacker can name."""
FREE = ("cosine", *UNLABELLED)
"""Those that need no training data."""
SCENARIOS = (
    "original enrolment",
    "ignorant",
    "semi-informed",
    "informed",
    "informed with originals",
)
"""The attackers of :func:`attack_scenarios`."""
TRIED = ("cosine", "centred", "wccn", "lda", "plda")
"""Back-ends that held-out attacks try."""


def centred(embeddings: Embeddings) -> Embeddings:
    """The ``embeddings`` at length one, less their own mean.

    An attacker centres what it enrols and what it attacks each by itself.
    """
    unit = embeddings.normalised()
    return replace(unit, vectors=unit.vectors - unit.vectors.mean(axis=0))


@dataclass(frozen=True, eq=False)
class Attacker:
    """What an attacker holds: enrolment speech of known voices, test speech of protected ones.

    Made by users, by :func:`attack_scenarios` and by assessments; taken by :func:`legal`.
    ``backend`` is a trained back-end or the name of one: ``cosine``; ``wccn``, ``plda`` and
    ``asnorm``, trained on ``train``, the attacker's own data; ``whitened``, ``coral`` and
    ``wasserstein``, which align enrolment with the attacked speech; ``procrustes`` and ``fusion``,
    which learn from ``pairs``: training speech as it is enrolled and the same as it is protected.
    ``enrols`` says whether the enrolment speech is
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
    pairs: Pairs | None = None

    def ready(self) -> Attacker:
        """The same attacker with its sets aligned, if its back-end asks for it, and a back-end that
        is trained.
        """
        name, attacked = self.backend, set(self.test.speakers.to_series())
        for one in (self.train, *(self.pairs or ())) if name in LEARNT else ():
            shared = set() if one is None else attacked & set(one.speakers.to_series())
            if shared:
                raise InputError(
                    f"back-end {name}: training and test speakers must differ, found"
                    f" {len(shared)} in both (first: {min(shared)})"
                )
        if name in _PAIRED and self.pairs is None:
            wanted = "pairs of original and protected training speech"
            raise InputError(f"back-end {name}", wanted, "none")
        if name in ALIGNED:
            return self._aligned(str(name))
        backend = self._fusion() if name == "fusion" else backend_named(name, self.train)
        return replace(self, backend=backend)

    def _aligned(self, name: str) -> Attacker:
        """Enrolment and test brought together by the alignment of a ``name`` of :data:`ALIGNED`."""
        enrol, test = self.enrol, self.test
        refuse_dimensions(enrol, test)
        there = centring(test.vectors)
        if name == "whitened":
            here, there = whitening(enrol.vectors), whitening(test.vectors)
        elif name == "coral":
            here = coral(enrol.vectors, test.vectors)
        elif name == "wasserstein":
            here = wasserstein_procrustes(enrol.vectors, test.vectors)
        else:
            assert self.pairs is not None
            original, protected = _matched(self.pairs)
            turn = procrustes(original.vectors, protected.vectors).matrix
            here = Alignment(centring(enrol.vectors).centre, turn)
        return replace(
            self,
            enrol=replace(enrol, vectors=here.apply(enrol.vectors)),
            test=replace(test, vectors=there.apply(test.vectors)),
            backend=AlignedCosine(name),
        )

    def _fusion(self) -> Backend:
        """:data:`MEMBERS` trained on ``train`` (on both sets of ``pairs`` where there is none),
        weighed by trials of one set of ``pairs`` against the other: of every second speaker, by
        members trained on the others, so that none is trusted for what it learnt by heart.
        """
        assert self.pairs is not None
        data = pooled(self.pairs) if self.train is None else self.train
        names = sorted(set.intersection(*(set(one.speakers.to_series()) for one in self.pairs)))
        if len(names) < 8:
            raise InputError(f"back-end fusion: expected 8 training speakers, found {len(names)}")
        weighed = names[::2]
        members = [backend_named(name, of_people(data, weighed, inside=False)) for name in MEMBERS]
        enrol, test = (of_people(one, weighed) for one in self.pairs)
        made = [score_matrix(member, enrol.vectors, test.vectors) for member in members]
        scores = np.stack(made, axis=-1)
        own, tested = (one.speakers.to_series().to_numpy() for one in (enrol, test))
        same, other = own[:, None] == tested, np.ones(scores.shape[:2], dtype=bool)
        if enrol.utterances is not None and test.utterances is not None:
            here, there = (
                ids.to_series().to_numpy() for ids in (enrol.utterances, test.utterances)
            )
            other = here[:, None] != there
        weights = fusion_weights(scores[same & other], scores[~same])
        return Fused([backend_named(name, data) for name in MEMBERS], weights)

    def allows(self, backend: str) -> bool:
        """Whether there are the data that a back-end of this name is trained on."""
        if backend in _PAIRED:
            return self.pairs is not None
        return backend in FREE or self.train is not None

    @property
    def backend_in_use(self) -> Backend:
        """The back-end of an attacker that is ready."""
        assert not isinstance(self.backend, str)
        return self.backend

    @property
    def centres(self) -> bool:
        """Whether the back-end takes the mean off each side by itself."""
        return self.backend in ALIGNED or isinstance(self.backend, AlignedCosine)

    @property
    def is_consistency(self) -> bool:
        """Whether what is enrolled comes from the run that is attacked."""
        if self.consistency is not None:
            return self.consistency
        enrol, test = self.enrol, self.test
        if self.enrols == "original" or enrol.dimension != test.dimension:
            return False
        if enrol.source is not None and test.source is not None:
            return enrol.source.sha256 == test.source.sha256
        direction = np.random.default_rng(0).normal(size=enrol.dimension)
        along = [(one.vectors * direction).sum(axis=1) for one in (enrol, test)]
        return bool(np.isin(*along).any())

    @lazy
    def readings(self) -> tuple[str, ...]:
        """The ways in which this attacker can read its scores."""
        return (PLAIN, NEGATED) if self.centred() is None else VARIANTS

    def centred(self) -> Attacker | None:
        """The same attacker with every set about its own mean; None where that leaves nothing, or
        where the back-end is already trained on others.
        """
        if self.centres or (self.pairs is not None and self.backend == "fusion"):
            return None
        if not isinstance(self.backend, str) and self.backend.name != "cosine":
            return None
        given = {"enrol": self.enrol, "test": self.test, "train": self.train}
        sets: dict[str, Any] = {
            name: centred(one) for name, one in given.items() if one is not None
        }
        if not all(one.vectors.any(axis=1).all() for one in sets.values()):
            return None
        return replace(self, **sets)

    def matrix(self, reading: str = PLAIN) -> FloatArray:
        """Scores of every enrolled speaker (in order of the code) with every test utterance.

        A speaker's model is the normalised mean of all the speaker's normalised enrolment vectors.
        """
        used = self.centred() if reading in (CENTRED, CENTRED_NEGATED) else self
        if used is None:
            raise InputError("attack: centred embeddings cannot be had")
        used = used.ready()
        codes = np.unique(used.enrol.speakers.codes, return_inverse=True)[1]
        models = average_groups(used.enrol.vectors, codes)
        scores = score_matrix(used.backend_in_use, models, used.test.vectors)
        return -scores if reading in (NEGATED, CENTRED_NEGATED) else scores

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all pairs of an enrolment and a test utterance."""
        used = self.ready()
        own, tested = (one.speakers.to_series().to_numpy() for one in (used.enrol, used.test))
        same = own[:, None] == tested[None]
        scores = score_matrix(used.backend_in_use, used.enrol.vectors, used.test.vectors)
        return scores[same], scores[~same]

    def among(self, people: set[str]) -> Attacker:
        """The same attacker on some of the ``people``."""
        return replace(self, enrol=of_people(self.enrol, people), test=of_people(self.test, people))

    def trained_on(self, people: set[str], *, inside: bool = True) -> Attacker:
        """The same attacker trained on some of its training ``people``, or on all others."""

        def some(data: Embeddings) -> Embeddings:
            if not inside and people.issuperset(data.speakers.to_series()):
                wanted = "training and test speakers must differ"
                raise InputError(f"attack: no speakers left to train on: {wanted}")
            return of_people(data, people, inside=inside)

        pairs = None if self.pairs is None else (some(self.pairs[0]), some(self.pairs[1]))
        return replace(self, train=self.train and some(self.train), pairs=pairs)

    def held_out(
        self, backends: Sequence[str] | None = None, *, folds: int = 2, seed: int = 0
    ) -> HeldOut:
        """Attack in ``folds`` groups of speakers, each with ``backends`` trained on the others.

        By default these are all of :data:`TRIED` where there is speech to train on, else the
        cosine. Where enrolment and test share utterances, half of each speaker's utterances (every
        second one by name) enrols and the other half tests, so that no utterance meets its own
        protected version. The groups depend on the speakers' names and the ``seed`` alone, so all
        attackers of one test set try the same trials.
        """
        if backends is None:
            backends = TRIED if self.train is not None else TRIED[:1]
        names = sorted(set(self.test.speakers.to_series()) & set(self.enrol.speakers.to_series()))
        if len(names) < 2 * folds or folds < 1:
            wanted = "at least 2 speakers per fold in enrolment and test"
            raise InputError("attack", wanted, f"{len(names)} for {folds} folds")
        enrol, test = self.enrol.normalised(), self.test.normalised()
        if enrol.utterances is None or test.utterances is None:
            raise InputError("attack: expected a name for every utterance, found none")
        if set(enrol.utterances.to_series()) & set(test.utterances.to_series()):
            enrol, test = every_second(enrol)[0], every_second(test)[1]
        train = self.train and self.train.normalised()
        normal = replace(self, enrol=enrol, test=test, train=train)
        order = np.random.default_rng(seed).permutation(len(names))
        parts = []
        for n in range(folds):
            group = {names[i] for i in order[n::folds]}
            fold = normal.among(group).trained_on(group, inside=False)
            parts.append({name: replace(fold, backend=name).ready() for name in backends})
        return HeldOut(tuple(parts))


def not_tried(tried: Collection[str], why: Callable[[str], str], *others: str) -> Notice:
    """Which of :data:`BACKENDS` were not ``tried`` and ``why`` each was not, and ``others``."""
    reasons: dict[str, list[str]] = {}
    for name in BACKENDS:
        if name not in tried:
            reasons.setdefault(why(name), []).append(name)
    parts = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    what = "; ".join([*parts, *others, "any extractor but that of these embeddings"])
    sentence = f"not tried: {what}. `unmask assess` tries all that its data allow"
    return Notice("not-tried", "", sentence)


def lacking(backend: str) -> str:
    """What a back-end of this name that is not free needs beyond enrolment and test."""
    return "training speech, as it is and protected" if backend in _PAIRED else "training speech"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """An attack whose back-ends never saw a tested speaker, with every back-end that was tried.

    Made by :meth:`Attacker.held_out`. ``folds`` hold, by the name of its back-end, an attacker on
    some of the speakers, for :func:`legal` and :func:`linkability` like any other.
    """

    folds: tuple[Mapping[str, Attacker], ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the back-ends tried."""
        return tuple(self.folds[0])

    def scores(self, backend: str | None = None) -> tuple[FloatArray, FloatArray]:
        """Target and nontarget scores of all folds together, of the strongest back-end if none
        is named.
        """
        target, nontarget = zip(
            *(fold[backend or self.strongest].scores() for fold in self.folds), strict=True
        )
        return np.concatenate(target), np.concatenate(nontarget)

    def roc(self, backend: str | None = None) -> Roc:
        """The ROC statistic of the scores."""
        return Roc.from_scores(*self.scores(backend))

    @lazy
    def strongest(self) -> str:
        """The back-end with the lowest C_llr^min on the very trials attacked.

        Chosen with hindsight, on purpose: a safeguard is judged by the best attack known.
        """
        return min(self.backends, key=lambda name: self.roc(name).min_cllr())


def attack_scenarios(
    original: Embeddings,
    protected: Embeddings,
    *,
    own: Sequence[Embeddings],
    related: Sequence[Embeddings] = (),
) -> dict[str, Attacker]:
    """The attackers of Vauquier (2025, 3.2) on one safeguard, by what they know, and the control.

    ``protected`` is attacked; ``own`` are runs of the same safeguard with keys of the attacker's
    own, ``related`` runs of related safeguards. ``original`` attacks original speech: the control.
    ``original enrolment`` enrols original speech (the ignorant attacker of the VoicePrivacy
    challenges). The other attackers enrol speech that they protected; their back-ends are trained
    on original speech (``ignorant``), on related protected speech too (``semi-informed``) or on
    their own (``informed``). Where the safeguard has a key, a run of the attacker's own disguises a
    voice otherwise than the run attacked: then an informed attacker may do better to enrol
    originals. No extractor is trained.
    """
    if not own:
        raise InputError("attackers: expected at least one run of the safeguard, found none")
    enrolled: dict[str, tuple[Embeddings, Sequence[Embeddings]]] = {
        "original enrolment": (original, ()),
        "ignorant": (own[0], ()),
        **({"semi-informed": (own[0], related)} if related else {}),
        "informed": (own[0], own),
        "informed with originals": (original, own),
    }
    return {
        "original": Attacker(original, original, train=original),
        **{
            name: Attacker(enrol, protected, train=pooled([original, *more]))
            for name, (enrol, more) in enrolled.items()
        },
    }


def with_backends(
    attackers: Mapping[str, Attacker], backends: Sequence[str], *, original: str = "original"
) -> dict[str, Attacker]:
    """Each of ``attackers`` once with every one of ``backends`` that its data allow. The one on
    unprotected speech, called ``original``, is no attack but what attacks are compared with: it
    keeps its name and the first of them.
    """
    chosen: dict[str, Attacker] = {}
    for name, attacker in attackers.items():
        usable = [b for b in backends if attacker.allows(b)]
        usable = usable[:1] if name == original else usable
        for backend in usable or ["cosine"]:
            label = name if len(usable) < 2 else f"{name} ({backend})"
            chosen[label] = replace(attacker, backend=backend)
    return chosen


def every_second(embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Every second utterance of each speaker, counted by name, and the others."""
    assert embeddings.utterances is not None
    names = {"speaker": embeddings.speakers.codes, "name": embeddings.utterances.to_series()}
    rank = pl.DataFrame(names).select(pl.col("name").rank("ordinal").over("speaker"))
    first = rank.to_series().to_numpy() % 2 == 1
    return embeddings.select(first), embeddings.select(~first)


def _matched(pairs: Pairs) -> Pairs:
    """The utterances that both sets have, in one order."""
    first, second = pairs
    if first.utterances is None or second.utterances is None:
        raise InputError("pairs: expected a name for every utterance, found none")
    names = first.utterances.to_series(), second.utterances.to_series()
    here = pl.DataFrame({"name": names[0], "first": np.arange(len(first))})
    there = pl.DataFrame({"name": names[1], "second": np.arange(len(second))})
    both = here.join(there, on="name", how="inner", maintain_order="left")
    if len(both) < 2:
        wanted = "utterances that are in the original and in the protected training set"
        raise InputError("pairs", wanted, len(both))
    return first.select(both["first"].to_numpy()), second.select(both["second"].to_numpy())


def pooled(sets: Sequence[Embeddings]) -> Embeddings:
    """Training sets as one, under the speakers' names.

    A back-end that sees the same speaker original and protected, or protected by several runs,
    learns to look away from what the safeguard changes.
    """
    if len(sets) == 1:
        return sets[0]
    return Embeddings(
        np.concatenate([one.vectors for one in sets]),
        [name for one in sets for name in one.speakers.to_series()],
    )


def of_people(
    embeddings: Embeddings, people: Collection[str], *, inside: bool = True
) -> Embeddings:
    """The utterances of some ``people``, or of all others where not ``inside``."""
    chosen = embeddings.speakers.to_series().is_in(list(people)).to_numpy()
    return embeddings.select(chosen if inside else ~chosen)
