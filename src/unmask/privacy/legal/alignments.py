"""Attackers that train no network: they bring enrolment and protected speech together first.

``whitened``
    Each side about its own mean and divided by its own spread. An attacker who enrols speech that
    it protected itself, as in the attack without learning of Bauer et al. (2025), so uses
    statistics of protected speech only.
``coral``
    Enrolment gets the second moments of protected speech (Sun, Feng and Saenko 2016).
``procrustes``
    Enrolment is turned by the rotation that takes original speech of training speakers to its
    protected version: the paired attack of Champion et al. (2021).
``wasserstein``
    The same without pairs and without training speakers: the Wasserstein–Procrustes attack of
    Champion et al. (2021) between what is enrolled and what is attacked.
``asnorm``
    Scores against those of a cohort of training speakers (Matějka et al. 2017).
``fusion``
    Several back-ends, weighed by logistic regression on trials of training speakers.

No label of attacked speech is used. ``whitened``, ``coral`` and ``wasserstein`` look at all
attacked speech at once, as whoever holds a protected collection can. ``procrustes``, ``asnorm`` and
``fusion`` learn from training speakers, none of whom may be attacked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import FloatArray, Vectors
from unmask.engine import fusion_weights
from unmask.errors import InputError
from unmask.scoring import (
    Alignment,
    Backend,
    centring,
    coral,
    fused,
    procrustes,
    score_blocks,
    train,
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
MEMBERS = ("cosine", "centred", "wccn", "plda")
"""What is fused."""
Pairs = tuple[Embeddings, Embeddings]


def aligned(name: str, enrol: Embeddings, test: Embeddings, pairs: Pairs | None) -> Pairs:
    """Enrolment and test brought together by the alignment of a ``name`` of :data:`ALIGNED`.

    ``pairs`` are training speech as it is enrolled and as it is protected, for ``procrustes``.
    """
    if enrol.dimension != test.dimension:
        raise InputError(
            f"embeddings: expected one dimension on both sides, found {enrol.dimension} in"
            f" enrolment and {test.dimension} in test"
        )
    there = centring(test.vectors)
    if name == "whitened":
        here, there = whitening(enrol.vectors), whitening(test.vectors)
    elif name == "coral":
        here = coral(enrol.vectors, test.vectors)
    elif name == "wasserstein":
        here = wasserstein_procrustes(enrol.vectors, test.vectors)
    else:
        original, protected = matched(_given(name, pairs))
        turn = procrustes(original.vectors, protected.vectors).matrix
        here = Alignment(centring(enrol.vectors).centre, turn)
    known, asked = here.apply(enrol.vectors), there.apply(test.vectors)
    return with_vectors(enrol, known), with_vectors(test, asked)


def with_vectors(embeddings: Embeddings, vectors: Vectors) -> Embeddings:
    """The same set with other vectors."""
    return Embeddings(
        vectors,
        embeddings.speakers,
        embeddings.utterances,
        embeddings.sessions,
        columns=embeddings.columns,
        source=embeddings.source,
    )


def matched(pairs: Pairs) -> Pairs:
    """The utterances that both sets have, in one order."""
    first, second = pairs
    if first.utterances is None or second.utterances is None:
        raise InputError("pairs: expected a name for every utterance, found none")
    here, there = (
        pl.DataFrame({"name": one.utterances.to_series(), row: np.arange(len(one))})
        for one, row in ((first, "first"), (second, "second"))
        if one.utterances is not None
    )
    both = here.join(there, on="name", how="inner", maintain_order="left")
    if len(both) < 2:
        raise InputError(
            "pairs: expected utterances that are in the original and in the protected training"
            f" set, found {len(both)}"
        )
    return first.select(both["first"].to_numpy()), second.select(both["second"].to_numpy())


def fusion(data: Embeddings | None, pairs: Pairs | None) -> Backend:
    """:data:`MEMBERS` trained on ``data`` (on both sets of ``pairs`` where there is none), and
    weighed by trials of one set of ``pairs`` against the other.

    The weights are learnt on every second speaker, from members trained on the others, so that no
    member is trusted for what it learnt by heart; the members in use are trained on all.
    """
    pairs = _given("fusion", pairs)
    data = pooled(pairs) if data is None else data
    names = sorted(set(pairs[0].speakers.to_series()) & set(pairs[1].speakers.to_series()))
    if len(names) < 8:
        raise InputError(f"back-end fusion: expected 8 training speakers, found {len(names)}")
    weighed = names[::2]
    members = [train(name, of_people(data, weighed, inside=False)) for name in MEMBERS]
    enrol, test = (of_people(one, weighed) for one in pairs)
    scores = np.stack(
        [scores_of(member, enrol.vectors, test.vectors) for member in members], axis=-1
    )
    own, tested = (one.speakers.to_series().to_numpy() for one in (enrol, test))
    same, other = own[:, None] == tested, np.ones(scores.shape[:2], dtype=bool)
    if enrol.utterances is not None and test.utterances is not None:
        here, there = (ids.to_series().to_numpy() for ids in (enrol.utterances, test.utterances))
        other = here[:, None] != there
    weights = fusion_weights(scores[same & other], scores[~same])
    return fused([train(name, data) for name in MEMBERS], weights)


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


def refuse_shared_speakers(name: str, test: Embeddings, *sets: Embeddings | None) -> None:
    """Training speakers are never attacked."""
    attacked = set(test.speakers.to_series())
    for one in sets:
        shared = set() if one is None else attacked & set(one.speakers.to_series())
        if shared:
            raise InputError(
                f"back-end {name}: training and test speakers must differ, found {len(shared)} in"
                f" both (first: {min(shared)})"
            )


def _given(name: str, pairs: Pairs | None) -> Pairs:
    if pairs is None:
        raise InputError(
            f"back-end {name}: expected pairs of original and protected training speech, found none"
        )
    return pairs


def scores_of(backend: Backend, enrol: npt.ArrayLike, test: npt.ArrayLike) -> FloatArray:
    """Scores of enrolment vectors with all test vectors."""
    sides = backend.prepare(enrol), backend.prepare(test)
    return np.concatenate([np.asarray(part, float) for _, _, part in score_blocks(backend, *sides)])
