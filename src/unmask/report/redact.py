"""Neutral labels in place of the names of speakers and recordings, the same in all data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unmask.trials import Embeddings, Ids, Scores


@dataclass(frozen=True)
class Labels:
    """``speakers`` and ``utterances`` give the label of each name."""

    speakers: Mapping[str, str]
    utterances: Mapping[str, str]

    @classmethod
    def of(cls, voices: Sequence[Embeddings], scores: Sequence[Scores], seed: int) -> Labels:
        """Number all names that occur, in an order drawn by the seed."""
        speakers = [e.speakers for e in voices]
        speakers += [i for s in scores for i in (s.enrol_speaker, s.test_speaker) if i is not None]
        known = _names(speakers)
        files = _names(
            [e.utterances for e in voices if e.utterances is not None]
            + [i for s in scores for i in (s.enrol, s.test) if i is not None]
        )
        rng = np.random.default_rng(seed)
        named = _numbered(known, "Speaker", rng)
        # A model that bears a speaker's own name gets that speaker's label.
        rest = _numbered([name for name in files if name not in named], "Recording", rng)
        return cls(named, {**rest, **{name: named[name] for name in files if name in named}})

    def embeddings(self, embeddings: Embeddings) -> Embeddings:
        """The same vectors under labels."""
        return Embeddings(
            embeddings.vectors,
            _labelled(embeddings.speakers, self.speakers),
            _relabel(embeddings.utterances, self.utterances),
            embeddings.sessions,
            columns=embeddings.columns,
            source=embeddings.source,
        )

    def scores(self, scores: Scores) -> Scores:
        """The same trials under labels."""
        return replace(
            scores,
            enrol=_relabel(scores.enrol, self.utterances),
            test=_relabel(scores.test, self.utterances),
            enrol_speaker=_relabel(scores.enrol_speaker, self.speakers),
            test_speaker=_relabel(scores.test_speaker, self.speakers),
        )


def _names(columns: Iterable[Ids]) -> list[str]:
    return sorted({name for ids in columns for name in ids.names.gather(ids.used)})


def _numbered(names: list[str], word: str, rng: np.random.Generator) -> dict[str, str]:
    width = max(2, len(str(len(names))))
    order = rng.permutation(len(names)) + 1
    return {name: f"{word} {n:0{width}d}" for name, n in zip(names, order, strict=True)}


def _relabel(ids: Ids | None, labels: Mapping[str, str]) -> Ids | None:
    return None if ids is None else _labelled(ids, labels)


def _labelled(ids: Ids, labels: Mapping[str, str]) -> Ids:
    return Ids(ids.codes, pl.Series([labels.get(n, "") for n in ids.names], dtype=pl.String))
