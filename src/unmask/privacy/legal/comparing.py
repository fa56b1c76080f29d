"""Two safeguards compared by Linkability: scores of one attacker on both, and the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.engine import Comparison, Difference
from unmask.privacy.legal.conversations import refuse_shared
from unmask.privacy.legal.from_scores import linkability_difference
from unmask.scoring import score
from unmask.trials import Embeddings, Ids, Scores, Speakers, Trials, read_embeddings, share


def linked_scores(
    enrol: str | Path, protected: Mapping[str, str | Path], *, speakers: Speakers | None = None
) -> Scores:
    """Cosine of every speaker of ``enrol``, averaged, with every recording that safeguards, by
    name, ``protected``; these are the systems. No recording may be on both sides.
    """
    original, tables = read_embeddings(enrol, speakers=speakers), []
    for name, path in protected.items():
        voices = read_embeddings(path, speakers=speakers)
        refuse_shared(original, voices)
        scored = score(original, voices, trials=_every_pair(original, voices))
        tables.append(replace(scored, systems={name: scored.scores()}))
    return Scores.merged(*tables)


def _every_pair(enrol: Embeddings, test: Embeddings) -> Trials:
    uttered = test.utterances or Ids.from_strings([str(row) for row in range(len(test))])
    here, there = share(enrol.speakers, test.speakers)
    models = np.repeat(here.used, len(test))
    row = np.tile(np.arange(len(test)), len(here.used))
    label = (models == there.codes[row]).astype(np.int8)
    return Trials(Ids(models.astype(np.int32), here.names), uttered.take(row), label)


def with_linkability(comparison: Comparison, **drawn: Any) -> Comparison:
    """The same with the difference of Linkability, where the trials compare every enrolled speaker
    with every recording; ``drawn`` as in :func:`linkability_difference`, or None for the usual.
    """
    names, scores = (comparison.first, comparison.second), comparison.scores
    how = {name: one for name, one in drawn.items() if one is not None}
    made = scores and linkability_difference(scores, *names, **how)
    if not made:
        return comparison
    one, two, apart = made
    row = Difference(
        **vars(apart), first=one, second=two, second_better=None, lower_is_better=False
    )
    return replace(comparison, differences=(*comparison.differences, row))
