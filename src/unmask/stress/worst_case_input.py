"""Pairs of speakers from what users have: score lists with speaker ids, embeddings."""

from __future__ import annotations

import numpy as np

from unmask.arrays import FloatArray
from unmask.errors import InputError
from unmask.stress.worst_case_pairs import PairScores
from unmask.trials import Embeddings, Scores


def pairs_of_scores(
    scores: Scores, *, system: str | None = None, both_ways: bool = True
) -> PairScores:
    """Nontarget scores by (enrolled speaker, test speaker).

    ``both_ways`` counts a score for either speaker as the target, which suits symmetric systems and
    lists that hold each pair of speakers once.
    """
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError("worst case: expected the speaker of each side of a trial, found none")
    rows = scores.is_nontarget
    return PairScores.from_trials(
        scores.enrol_speaker.to_series().to_numpy()[rows],
        scores.test_speaker.to_series().to_numpy()[rows],
        scores.scores(system)[rows],
        both_ways=both_ways,
    )


def pairs_of_embeddings(embeddings: Embeddings, *, per_pair: int | None = None) -> PairScores:
    """Cosines of all utterances of every two speakers, or ``per_pair`` of them."""
    unit = embeddings.normalised()
    vectors = unit.vectors
    present, codes = np.unique(unit.speakers.codes, return_inverse=True)
    names = [str(unit.speakers.names[int(code)]) for code in present]

    def block(speaker: int) -> FloatArray:
        return np.asarray(vectors[codes == speaker] @ vectors.T, dtype=np.float64)

    return PairScores.from_blocks(block, codes, names, per_pair=per_pair)
