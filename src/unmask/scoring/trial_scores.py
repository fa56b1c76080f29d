"""From embeddings and a list of trials to scores: rows gathered by code, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import Codes, FloatArray, IntArray, Vectors
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp, one_blas_thread, ranges_of, run, text_lines
from unmask.scoring.backend import BACKENDS, backend_named
from unmask.scoring.cosine import COHORT, AsNorm, average_groups
from unmask.scoring.shards import rows_of
from unmask.scoring.sides import Backend
from unmask.trials import (
    Embeddings,
    Ids,
    Scores,
    Speakers,
    TrialList,
    lookup,
    read_embeddings,
    read_trials,
    refuse_encoders,
)

BLOCK = 1 << 18
_GATHERED = 1 << 10
_DEVICE = 1 << 26


def score(
    enrol: Embeddings | str | Path,
    test: Embeddings | str | Path | None = None,
    *,
    trials: TrialList | str | Path,
    backend: Backend | str | Path = "cosine",
    train: Embeddings | str | Path | None = None,
    cohort: Embeddings | str | Path | None = None,
    top: int = COHORT,
    models: str | Path | None = None,
    speakers: Speakers | None = None,
) -> Scores:
    r"""Score a list of trials with embeddings.

    The score of a trial is the inner product of the rows that the back-end gives for its two sides
    (:class:`Sides`). With a ``cohort`` it is normalised by it (AS-norm, Matějka et al. 2017). An
    enrolment identifier is a model, an utterance, or a speaker, who is then enrolled with all his
    or her utterances; several are length-normalised and averaged. Memory holds the
    embeddings and the list, never a matrix of all pairs. Blocks of trials run on the
    current place (:func:`run_on`).

    Parameters
    ----------
    enrol : Embeddings or path
        Voices of the enrolment side.
    test : Embeddings or path, optional
        Voices of the test side; those of ``enrol`` unless given.
    trials : TrialList or path
        Which pairs to score: a key, or two columns without labels.
    backend : Backend, str or path
        Name of a back-end, a saved PLDA, or an object with ``name`` and ``sides``.
    train : Embeddings or path, optional
        Labelled embeddings that a back-end such as ``plda`` or ``wccn`` is fitted to; of other
        people than those of the trials, else they are refused.
    cohort : Embeddings or path, optional
        Labelled embeddings of other people, whose average voices normalise the scores; those of
        the trials are refused.
    top : int
        How many of the closest cohort speakers count.
    models : path, optional
        Kaldi ``spk2utt``: a model and its enrolment utterances on each line.
    speakers : path, str or mapping, optional
        Who speaks in ``enrol`` and ``test``, as in :func:`read_embeddings`.

    Returns
    -------
    Scores
        The trials with one system, named after the back-end, and the speakers of both sides.

    Examples
    --------
    >>> import unmask as um
    >>> voices = um.Embeddings([[1, 0], [1, 1], [0, 1]], ["ann", "ann", "bob"], ["a1", "a2", "b1"])
    >>> trials = um.Trials(um.Ids.from_strings(["a1", "a1"]), um.Ids.from_strings(["a2", "b1"]),
    ...                    [1, 0])
    >>> um.score(voices, trials=trials).scores().round(3)
    array([0.707, 0.   ])
    """
    listed, where = (trials, None) if isinstance(trials, TrialList) else read_trials(trials)
    where = where or (lambda row: f"{listed.name}, row {row + 1}")
    rule = speakers if str(speakers).startswith("pattern:") else None
    enrolled = _voices(enrol, speakers)
    tested = enrolled if test is None else _voices(test, speakers)
    taught, others = (None if path is None else _voices(path, rule) for path in (train, cohort))
    sets = {"enrolment": enrolled, "test": tested, "training": taught, "cohort": others}
    refuse_encoders(sets)
    for voices in sets.values():
        if voices is not None and voices.dimension != enrolled.dimension:
            wanted = f"{enrolled.dimension} dimensions as in {enrolled.name}"
            raise InputError(voices.name, wanted, voices.dimension)
    known = _Models.read(models, enrolled) if models else _Models.of(enrolled)
    used, model = _named(listed.ids[0], known.names, where, known.wanted)
    uttered, row = _named(
        listed.ids[1], _utterances(tested), where, f"an utterance of {tested.name}"
    )
    _refuse_zero(enrolled, known.rows[np.isin(known.owner, used)])
    _refuse_zero(tested, uttered)
    vectors, owner = known.average(used, enrolled)
    spoken = [owner, tested.speakers.take(uttered)]
    spoken += [ids for ids in (listed.enrol_speaker, listed.test_speaker) if ids is not None]
    for purpose, voices in (("train on", taught), ("normalise by", others)):
        if voices is not None:
            _refuse_tested(voices, spoken, purpose)
    made = _fitted(backend, taught, others, top)
    with one_blas_thread():
        pairs = TrialRows(
            rows_of(made, vectors, "enrol", enrolled.name),
            rows_of(made, tested.vectors[uttered], "test", tested.name),
            model,
            row,
        )
    values = np.empty(len(listed))
    blocks = ranges_of(len(values), BLOCK)
    for (start, stop), part in zip(blocks, run(score_rows, pairs, blocks), strict=True):
        values[start:stop] = part["scores"]
    speakers_of = listed.enrol_speaker, listed.test_speaker
    if not listed.has_speakers:
        speakers_of = owner.take(model), tested.speakers.take(uttered[row])
    sources = [one.source for one in sets.values() if one is not None and one.source is not None]
    return Scores(
        *(listed.enrol, listed.test, listed.label),
        enrol_speaker=speakers_of[0],
        test_speaker=speakers_of[1],
        columns=listed.columns,
        sources=tuple(dict.fromkeys((*listed.sources, *sources))),
        systems={made.name: values},
    )


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Rows of two sides, and which of them each trial compares."""

    enrol: FloatArray
    test: FloatArray
    enrol_row: Codes
    test_row: Codes


def score_rows(xp: Xp, shared: TrialRows, trials: Range) -> Arrays:
    """Scores of some trials: gathered rows, which are few enough to stay in a cache."""
    scores = np.empty(trials[1] - trials[0])
    step = xp.chunk(_GATHERED, _DEVICE, shared.enrol.shape[1])
    enrol, test = xp.put(shared.enrol), xp.put(shared.test)
    rows, columns = xp.put(shared.enrol_row), xp.put(shared.test_row)
    for start, stop in ranges_of(len(scores), step):
        some = slice(trials[0] + start, trials[0] + stop)
        both = enrol[rows[some]]
        both *= test[columns[some]]
        scores[start:stop] = xp.host(xp.totals(both, 1))
    return {"scores": scores}


@dataclass(frozen=True, eq=False)
class _Models:
    """Models: ``names``, and of each utterance its model (``owner``) and the row of its vector."""

    names: pl.Series
    owner: IntArray
    rows: IntArray
    wanted: str

    @classmethod
    def of(cls, voices: Embeddings) -> _Models:
        """Every utterance is a model, and every speaker, with all utterances."""
        uttered, rows = _utterances(voices), np.arange(len(voices), dtype=np.int64)
        names = pl.concat([uttered, voices.speakers.names], rechunk=True)
        owner = np.concatenate([rows, len(rows) + voices.speakers.codes])
        wanted = f"an utterance or a speaker of {voices.name}"
        return cls(names, owner, np.concatenate([rows, rows]), wanted)

    @classmethod
    def read(cls, path: str | Path, voices: Embeddings) -> _Models:
        """A Kaldi ``spk2utt``."""
        fields = [line.split() for line in text_lines(path)]
        short = next((n for n, words in enumerate(fields, 1) if len(words) < 2), None)
        if short is not None:
            actual = " ".join(fields[short - 1]) or "an empty line"
            raise InputError(f"{path}, line {short}", "a model and its utterances", actual)
        names = pl.Series([words[0] for words in fields], dtype=pl.String)
        again = np.flatnonzero(~names.is_first_distinct().to_numpy())
        if again.size:
            actual = f"{names[int(again[0])]} again"
            raise InputError(f"{path}, line {again[0] + 1}", "each model once", actual)
        owner = np.repeat(np.arange(len(fields)), [len(words) - 1 for words in fields])
        uttered = Ids.from_strings([word for words in fields for word in words[1:]])
        line = lambda row: f"{path}, line {owner[row] + 1}"  # noqa: E731
        used, row = _named(uttered, _utterances(voices), line, f"an utterance of {voices.name}")
        return cls(names, owner, used[row], f"a model of {path}")

    def average(self, used: IntArray, voices: Embeddings) -> tuple[Vectors, Ids]:
        """The vector of each model ``used``, the average where it has several, and its speaker."""
        number = np.full(len(self.names), -1, np.int64)
        number[used] = np.arange(len(used))
        model = number[self.owner]
        kept = np.argsort(model, kind="stable")[np.count_nonzero(model < 0) :]
        model, rows = model[kept], self.rows[kept]
        spoken = voices.speakers.codes[rows]
        owner = spoken[np.flatnonzero(np.diff(model, prepend=-1))]
        if (mixed := spoken != owner[model]).any():
            name = self.names[int(used[model[mixed.argmax()]])]
            raise InputError(f"{self.wanted}: expected one speaker in {name}, found several")
        vectors = voices.vectors[rows]
        vectors = average_groups(vectors, model) if len(rows) > len(used) else vectors
        return vectors, Ids(owner, voices.speakers.names)


def _voices(given: Embeddings | str | Path, speakers: Speakers | None) -> Embeddings:
    if isinstance(given, Embeddings):
        return given
    return read_embeddings(given, speakers=speakers)


def _utterances(voices: Embeddings) -> pl.Series:
    if voices.utterances is None:
        raise InputError(voices.name, "a name for every utterance", "none")
    return voices.utterances.to_series()


def _named(
    column: Ids, known: pl.Series, where: Callable[[int], str], wanted: str
) -> tuple[IntArray, Codes]:
    """Which of the ``known`` a column names, and which each row is; an unknown one is an error."""
    at = np.full(len(column.names), -1, np.int32)
    at[column.used] = lookup(column.present, known)
    row = at[column.codes]
    if (unknown := row < 0).any():
        first, names = int(unknown.argmax()), int((at[column.used] < 0).sum())
        actual = f"{column.decode(first)} ({names:,} unknown in all)"
        raise InputError(where(first), wanted, actual)
    number = np.empty(len(column.names), np.int32)
    number[column.used] = np.arange(len(column.used))
    return at[column.used].astype(np.int64), number[column.codes]


def _refuse_tested(voices: Embeddings, tested: Sequence[Ids], purpose: str) -> None:
    """Refuse training or cohort voices of people who are tested: their trials look too good."""
    names = pl.concat([ids.present for ids in tested]).unique()
    own = voices.speakers.present
    shared = own.filter(own.is_in(names.implode()))
    if len(shared):
        wanted = f"embeddings to {purpose} of other speakers than those of the trials"
        raise InputError(voices.name, wanted, f"{len(shared):,} of both (first: {shared[0]})")


def _refuse_zero(voices: Embeddings, rows: IntArray) -> None:
    """Refuse a vector of length zero by its name: it has no direction to compare."""
    used = np.unique(rows)
    zero = used[~voices.vectors[used].any(axis=1)]
    if zero.size:
        name = _utterances(voices)[int(zero[0])]
        actual = f"length zero for {name} ({zero.size:,} such vectors in all)"
        raise InputError(f"{voices.name}, row {zero[0] + 1:,}", "a vector with a direction", actual)


def _fitted(
    backend: Backend | str | Path, train: Embeddings | None, cohort: Embeddings | None, top: int
) -> Backend:
    """The back-end of a name, fitted to what it needs, its scores normalised by the cohort."""
    name = "cosine" if backend == "asnorm" else backend
    if backend == "asnorm" and cohort is None:
        raise InputError("back-end asnorm", "embeddings of a cohort", "none")
    named = BACKENDS.get(str(name))
    if named is not None and named.aligns:
        wanted = "a back-end that gives a pair of vectors a score"
        raise InputError(f"back-end {name}", wanted, "one that aligns two sets of voices")
    if train is not None and (named is None or named.needs == "nothing"):
        raise InputError(f"train: no effect on the back-end {getattr(name, 'name', name)}")
    made = backend_named(name, train)
    return made if cohort is None else AsNorm.fit(cohort, top=top, backend=made)
