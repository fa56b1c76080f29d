"""What is said, as an attacker reads it: rows of transcripts whose inner products are scores.

A text is its words and their runs of 3 to 5 characters, the blanks around a word among them; in
scripts without blanks between words also each character and each two in a row. A term
t of a text d weighs tf(t, d)·ln((1 + n)/df(t)): so often it is in d, and so many of the n different
texts of enrolment and training have it (Spärck Jones 1972). Terms that none of these has do not
count, and rows are at length one. No attacked text is looked at.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csr_array

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.attack import BESIDE, WORDS, Attacker, trial_weights
from unmask.privacy.recordings import (
    ReleaseSplit,
    drawn_names,
    of_people,
    rows_by_content,
    versions_of,
)
from unmask.run import one_blas_thread, store
from unmask.scoring import NO_VOICE, AlignedCosine, Cosine, Fused, score_matrix
from unmask.trials import Embeddings, Ids, lookup

MOST = 4096
"""Columns of a row at most."""
_WEIGHED = 1000
"""Utterances at most on each side of the trials by which voice and words are weighed."""
_LEAST_PEOPLE = 8
_WITHOUT_BLANKS = re.compile(
    "["
    "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u0e00-\u0e7f"  # Thai
    "\u0e80-\u0eff"  # Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "]+"
)
"""A run of characters of a script that writes no blanks between words."""


@dataclass(frozen=True, eq=False)
class Words:
    """What is said in utterances of these ``names``: the numbers of ``texts``, or of ``vectors`` of
    a model of language.
    """

    names: tuple[str, ...]
    numbers: IntArray
    texts: tuple[str, ...] = ()
    vectors: FloatArray | None = None
    source: str = "transcripts"

    @classmethod
    def of(cls, said: Mapping[str, str] | Embeddings, source: str = "transcripts") -> Words:
        """Transcripts by utterance, without case and punctuation, or vectors of them."""
        from unmask.speech import normalised

        if isinstance(said, Embeddings):
            if said.utterances is None:
                raise InputError(source, "an utterance for every vector", "none")
            vectors = np.asarray(said.normalised().vectors, np.float64)
            names = tuple(said.utterances.to_series())
            return cls(names, np.arange(len(said)), vectors=vectors, source=source)
        texts = [normalised(text) for text in said.values()]
        if not all(texts):
            raise InputError(source, f"words of {list(said)[texts.index('')]}", "none")
        number = {text: n for n, text in enumerate(dict.fromkeys(texts))}
        return cls(tuple(said), np.array([number[t] for t in texts]), tuple(number), source=source)

    @property
    def digest(self) -> str:
        """Of all that is said."""
        return store.digest(replace(self, source=""))

    def told(self, speech: Embeddings, *, optional: bool = False) -> Embeddings:
        """The same speech with the numbers of what is said; as it is where that is ``optional`` and
        nothing of it is known.
        """
        found = np.full(len(speech), -1)
        if speech.utterances is not None:
            found = lookup(speech.utterances.names, pl.Series(self.names))[speech.utterances.codes]
        lost = found < 0
        if optional and lost.all():
            return speech
        if lost.any():
            first = speech.utterances.decode(int(lost.argmax())) if speech.utterances else "no name"
            wanted = f"the words of every utterance of {speech.name}"
            raise InputError(self.source, wanted, f"none of {lost.sum():,} (first: {first})")
        column = Ids.from_strings([str(n) for n in self.numbers[found.astype(np.int64)]])
        return replace(speech, columns={**speech.columns, WORDS: column})

    def refuse_unknown(self, sets: Iterable[Embeddings | None]) -> None:
        """Nothing is told of an utterance that no set has."""
        known = {name for one in sets if one and one.utterances for name in one.utterances.names}
        if strange := [name for name in self.names if name not in known]:
            actual = f"{len(strange):,} others (first: {strange[0]})"
            raise InputError(self.source, "utterances that are enrolled or attacked", actual)

    def limits(self, name: str, *sets: Embeddings) -> tuple[Notice, ...]:
        """That there are too many texts for all their terms."""
        number = len(np.unique(np.concatenate([spoken_in(voices) for voices in sets])))
        sentence = f"{number:,} different texts: only the {MOST:,} terms that most have count"
        return (Notice("words-limited", name, sentence),) * (bool(self.texts) and number > MOST)

    def rows(self, fit: Sequence[Embeddings], *sets: Embeddings) -> list[FloatArray]:
        """A row at length one for each utterance of the ``sets``, all in one space; weights and
        terms are those of what is said in ``fit``.
        """
        numbers = [spoken_in(voices) for voices in sets]
        every, at = np.unique(np.concatenate(numbers), return_inverse=True)
        if self.vectors is not None:
            rows = self.vectors[every]
        else:
            known = np.unique(np.concatenate([spoken_in(voices) for voices in fit]))
            rows = tf_idf(*([self.texts[n] for n in some] for some in (known, every)))
        return np.split(rows[at], np.cumsum([len(some) for some in numbers])[:-1])


def spoken_in(speech: Embeddings) -> IntArray:
    """The number of what is said in each utterance."""
    return speech.columns[WORDS].to_series().cast(pl.Int64).to_numpy()


def tf_idf(known: Sequence[str], asked: Sequence[str]) -> FloatArray:
    """Dense rows of the texts ``asked`` by terms of those ``known``, with the inner products of
    TF-IDF rows at length one: the Cholesky factor, with pivots, of their matrix. Of more than
    :data:`MOST` texts only as many terms count, those that most of the texts known have. A text
    without a known term resembles none but its like.
    """
    vocabulary: dict[str, int] = {}
    having = np.bincount(_counts(known, vocabulary, grows=True).indices)
    rows = _counts(asked, vocabulary)
    rows.data *= np.log((1 + len(known)) / having)[rows.indices]
    if many := len(asked) > MOST:
        rows = rows[:, np.sort(np.argsort(-having, kind="stable")[:MOST])]
    length = np.sqrt(rows.power(2).sum(axis=1))
    rows.data /= np.repeat(length, np.diff(rows.indptr))
    if many:
        made = rows.toarray()
    else:
        with one_blas_thread():
            factor, order, rank, _ = dpstrf((rows @ rows.T).toarray(), lower=1)
        made = np.tril(factor)[np.argsort(order), :rank]
    return made if length.all() else np.column_stack([made, length == 0])


def _counts(texts: Sequence[str], vocabulary: dict[str, int], *, grows: bool = False) -> csr_array:
    """How often each term of the vocabulary, which ``grows`` by those of the texts, is in each."""
    counts, columns, ends = array("d"), array("q"), array("q", [0])
    for text in texts:
        for term, count in Counter(_terms(text)).items():
            at = vocabulary.setdefault(term, len(vocabulary)) if grows else vocabulary.get(term)
            if at is not None:
                counts.append(count)
                columns.append(at)
        ends.append(len(columns))
    parts = np.array(counts), np.array(columns), np.array(ends)
    return csr_array(parts, shape=(len(texts), len(vocabulary)))


def _terms(text: str) -> Iterator[str]:
    for word in text.split():
        yield f"\0{word}"
        padded = f" {word} "
        yield from (padded[i : i + n] for n in (3, 4, 5) for i in range(len(padded) - n + 1))
    for run in _WITHOUT_BLANKS.findall(text):
        yield from run
        yield from map("".join, pairwise(run))


def with_words(
    attackers: Mapping[str, Attacker], words: Words, *, original: str = "original"
) -> dict[str, Attacker]:
    """Add attacks by words to ``attackers`` on protected speech.

    Each attacker competes once more with words next to the voice. Once for the same texts words
    alone compete, as the weight 0 of the voice (:data:`NO_VOICE`), and stand next to the headline
    under their own name. The attacker on unprotected speech, called ``original``, is what attacks
    by voice are compared with.
    """
    chosen, said = dict(attackers), set[Any]()
    for name, one in attackers.items():
        if name != original and not one.channel:
            told = hearing(one, words)
            chosen[f"{name}{BESIDE}"] = replace(told, backend=f"{one.backend}{BESIDE}")
            texts = one.is_release, *(tuple(spoken_in(side)) for side in (told.enrol, told.test))
            if texts not in said:
                for backend in (WORDS, NO_VOICE):
                    label = f"{backend}, {name}" if said else backend
                    chosen[label] = replace(told, backend=backend)
                said.add(texts)
    every = (way for attacker in attackers.values() for way in attacker.ways)
    words.refuse_unknown(x for o in every for x in (o.enrol, o.test, o.train, *(o.parallel or ())))
    return chosen


def hearing(attacker: Attacker, words: Words) -> Attacker:
    """An attacker who knows what is said, in training speech only where all of that is told."""
    split = attacker.split
    if isinstance(split, ReleaseSplit):
        split = replace(split, release=words.told(split.release))
    pairs = [words.told(voices, optional=True) for voices in attacker.parallel or ()]
    return replace(
        attacker,
        enrol=words.told(attacker.enrol),
        test=words.told(attacker.test),
        train=attacker.train and words.told(attacker.train, optional=True),
        parallel=(pairs[0], pairs[1]) if pairs else None,
        reverse=attacker.reverse and hearing(attacker.reverse, words),
        split=split,
        words=words,
    )


def listening(attacker: Attacker) -> Attacker:
    """The attacker ready to compare words, with the voice unless they are alone. Averages over
    utterances keep both parts of (x/‖x‖, y/‖y‖), the voice x and the row y of what is said.
    """
    name, fit, train = str(attacker.backend), [attacker.enrol], attacker.train
    if attacker.words is None:
        raise InputError(f"back-end {name}", "transcripts", "none")
    if train is not None and WORDS in train.columns:
        rest = ~versions_of(train, attacker.test)
        fit += [train.select(rest)] if rest.any() else []
    known, tested = attacker.words.rows(fit, attacker.enrol, attacker.test)
    if attacker.listens == "alone" or name == NO_VOICE:
        enrol, test = attacker.enrol.with_vectors(known), attacker.test.with_vectors(tested)
        return replace(attacker, enrol=enrol, test=test, backend=AlignedCosine(name))
    used = replace(attacker, backend=name.removesuffix(BESIDE))
    voice = used.ready()
    enrol, test = (
        voices.with_vectors(np.hstack([voices.normalised().vectors, rows]))
        for voices, rows in ((voice.enrol, known), (voice.test, tested))
    )
    weights = _weights(used, voice, attacker.words, fit)
    ends = voice.enrol.dimension, enrol.dimension
    made = Fused((voice.backend_in_use, Cosine()), weights, name, ends)
    return replace(voice, enrol=enrol, test=test, backend=made)


def _weights(
    attacker: Attacker, voice: Attacker, words: Words, fit: Sequence[Embeddings]
) -> FloatArray:
    """Weights of the scores of ``voice``, which is ready, and of words: learnt from trials of
    training people who are not attacked, by a back-end trained on half of them, drawn; where
    there are none, one over the deviation of scores between different enrolled people.
    """
    backend, pairs, learns = voice.backend_in_use, (voice.enrol, voice.enrol), False
    others = attacker.parallel or (attacker.train and (attacker.train, attacker.train))
    if others and all(WORDS in voices.columns for voices in others):
        people = sorted(set(others[0].speakers.present))
        apart = not set(people) & set(attacker.test.speakers.present)
        learns = apart and len(people) >= _LEAST_PEOPLE and not isinstance(backend, AlignedCosine)
    if learns and others:
        some = drawn_names(people, len(people) // 2)
        pairs = of_people(others[0], some), of_people(others[1], some)
        if backend.name != "cosine":
            rest = attacker.trained_on(set(some), inside=False)
            backend = rest.ready().backend_in_use
    known, tested = (
        x.select(np.sort(rows_by_content(x, 0)[:: -(-len(x) // _WEIGHED)])) for x in pairs
    )
    by_voice = score_matrix(backend, known.vectors, tested.vectors)
    scores = [by_voice, score_matrix(Cosine(), *words.rows(fit, known, tested))]
    if learns:
        return trial_weights(scores, known, tested, WORDS)
    who = [voices.speakers.to_series().to_numpy() for voices in (known, tested)]
    strangers = np.stack(scores)[:, who[0][:, None] != who[1]]
    deviation = strangers.std(axis=1) if strangers.size else np.ones(2)
    return np.asarray(1 / np.where(deviation > 0, deviation, 1.0))
