"""From embeddings and a list of trials to scores: rows gathered by code, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import Codes, FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp, one_blas_thread, ranges_of, run, text_lines
from unmask.scoring.backend import backend_named, fitted, known_backend
from unmask.scoring.cosine import COHORT, AsNorm, average_groups
from unmask.scoring.shards import rows_of
from unmask.scoring.sides import Backend
from unmask.trials import (
    Embeddings,
    Ids,
    Scores,
    Source,
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
Where = Callable[[int], str]
"""Names a row of the list of trials in messages."""


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
        Labelled embeddings that a back-end such as ``plda`` or ``wccn`` is fitted to.
    cohort : Embeddings or path, optional
        Labelled embeddings of other people, whose average voices normalise the scores.
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
    listed, where = _trials(trials)
    rule = speakers if str(speakers).startswith("pattern:") else None
    enrolled = _voices(enrol, speakers)
    tested = enrolled if test is None else _voices(test, speakers)
    taught, others = (None if one is None else _voices(one, rule) for one in (train, cohort))
    sets = {"enrolment": enrolled, "test": tested, "training": taught, "cohort": others}
    refuse_encoders(sets)
    _refuse_widths(sets)
    side = _Enrolment.of(enrolled, listed, where, models)
    column = listed.ids[1]
    of_name, _ = _named(column, _utterances(tested), where, f"an utterance of {_name(tested)}")
    made = _fitted(backend, taught, others, top, enrolled, tested)
    rows = _rows(made, side, enrolled, tested)
    pairs = TrialRows(*rows, side.codes, of_name[column.codes])
    values = np.empty(len(listed))
    blocks = ranges_of(len(values), BLOCK)
    for (start, stop), part in zip(blocks, run(score_rows, pairs, blocks), strict=True):
        values[start:stop] = part["scores"]
    spoken = listed.enrol_speaker, listed.test_speaker
    if not listed.has_speakers:
        spoken = side.speakers, tested.speakers.take(pairs.test_row)
    sources = [one.source for one in sets.values() if one is not None and one.source is not None]
    return Scores(
        listed.enrol,
        listed.test,
        listed.label,
        enrol_speaker=spoken[0],
        test_speaker=spoken[1],
        columns=listed.columns,
        sources=(*listed.sources, *_remarked(sources, side.remark)),
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
class _Enrolment:
    """Models of a list of trials: ``rows`` of the embeddings, the ``model`` each belongs to, the
    model of every trial (``codes``), and who speaks in it.
    """

    rows: IntArray
    model: IntArray
    codes: Codes
    speakers: Ids
    remark: str

    @property
    def averages(self) -> bool:
        return bool(len(self.rows) > self.model.max() + 1)

    @classmethod
    def of(
        cls, voices: Embeddings, trials: TrialList, where: Where, models: str | Path | None
    ) -> _Enrolment:
        column = trials.ids[0]
        used, known = column.used, _utterances(voices)
        number = np.full(len(column.names), -1, np.int32)
        number[used] = np.arange(len(used), dtype=np.int32)
        if models is not None:
            names, owner, rows = _read_models(models, known, _name(voices))
            at, _ = _named(column, names, where, f"a model of {models}")
            of_model = np.full(len(names), -1, np.int64)
            of_model[at[used]] = number[used]
            kept = of_model[owner] >= 0
            rows, model = rows[kept], of_model[owner][kept]
        else:
            spoken = voices.speakers
            wanted = f"an utterance or a speaker of {_name(voices)}"
            at, as_speaker = _named(column, known, where, wanted, spoken.names)
            of_speaker = np.full(len(spoken.names), -1, np.int64)
            of_speaker[at[as_speaker]] = number[as_speaker]
            mine = np.flatnonzero(of_speaker[spoken.codes] >= 0)
            alone = np.setdiff1d(used, as_speaker)
            rows = np.concatenate([at[alone].astype(np.int64), mine])
            model = np.concatenate([number[alone], of_speaker[spoken.codes[mine]]])
        order = np.lexsort((rows, model))
        rows, model = rows[order], model[order].astype(np.int64)
        first = np.flatnonzero(np.diff(model, prepend=-1))
        owner = voices.speakers.codes[rows[first]]
        mixed = voices.speakers.codes[rows] != owner[model]
        if mixed.any():
            name = column.names[int(used[model[int(mixed.argmax())]])]
            wanted = f"utterances of one speaker in model {name}"
            raise InputError(str(models or _name(voices)), wanted, "several")
        several = f"{len(first):,} models of {len(rows):,} utterances"
        remark = several if len(rows) > len(first) else ""
        codes = number[column.codes]
        return cls(rows, model, codes, Ids(owner[codes], voices.speakers.names), remark)


def _trials(trials: TrialList | str | Path) -> tuple[TrialList, Where]:
    if isinstance(trials, str | Path):
        return read_trials(trials)
    return trials, lambda row: f"{trials.name}, row {row + 1}"


def _voices(given: Embeddings | str | Path, speakers: Speakers | None) -> Embeddings:
    if isinstance(given, Embeddings):
        return given
    return read_embeddings(given, speakers=speakers)


def _name(voices: Embeddings) -> str:
    return voices.source.name if voices.source else "the embeddings"


def _utterances(voices: Embeddings) -> pl.Series:
    """The name of every row."""
    if voices.utterances is None:
        raise InputError(_name(voices), "a name for every utterance", "none")
    return voices.utterances.to_series()


def _named(
    column: Ids, known: pl.Series, where: Where, wanted: str, others: pl.Series | None = None
) -> tuple[Codes, IntArray]:
    """Where each name of a column stands among the ``known``, or else among ``others``, and which
    names stand there; the first trial that names neither is an error.
    """
    used = column.used
    at = np.full(len(column.names), -1, np.int32)
    at[used] = lookup(column.names.gather(used), known)
    absent = used[at[used] < 0]
    if len(absent) and others is not None:
        at[absent] = lookup(column.names.gather(absent), others)
    unknown = at[column.codes] < 0
    if unknown.any():
        row, names = int(unknown.argmax()), int((at[used] < 0).sum())
        actual = f"{column.decode(row)} ({names:,} such names in all)"
        raise InputError(where(row), wanted, actual)
    return at, absent


def _read_models(
    path: str | Path, known: pl.Series, voices: str
) -> tuple[pl.Series, IntArray, IntArray]:
    """Names of models, and for each of their utterances the model and the row."""
    fields = [line.split() for line in text_lines(path)]
    for number, words in enumerate(fields, 1):
        if len(words) < 2:
            wanted = "a model and its utterances"
            raise InputError(f"{path}, line {number}", wanted, " ".join(words) or "an empty line")
    names = pl.Series([words[0] for words in fields], dtype=pl.String)
    if names.n_unique() < len(names):
        row = int(np.flatnonzero(~names.is_first_distinct().to_numpy())[0])
        raise InputError(f"{path}, line {row + 1}", "each model once", f"{names[row]} again")
    owner = np.repeat(np.arange(len(fields)), [len(words) - 1 for words in fields])
    uttered = pl.Series([word for words in fields for word in words[1:]], dtype=pl.String)
    rows = lookup(uttered, known)
    if (rows < 0).any():
        bad = int((rows < 0).argmax())
        actual = f"{uttered[bad]} ({int((rows < 0).sum()):,} in all)"
        raise InputError(f"{path}, line {owner[bad] + 1}", f"an utterance of {voices}", actual)
    return names, owner, rows.astype(np.int64)


def _refuse_widths(sets: dict[str, Embeddings | None]) -> None:
    first, *others = [one for one in sets.values() if one is not None]
    for one in others:
        if one.dimension != first.dimension:
            wanted = f"{first.dimension} dimensions as in {_name(first)}"
            raise InputError(_name(one), wanted, one.dimension)


def _fitted(
    backend: Backend | str | Path,
    train: Embeddings | None,
    cohort: Embeddings | None,
    top: int,
    enrol: Embeddings,
    test: Embeddings,
) -> Backend:
    """The back-end of a name, fitted to what it needs, its scores normalised by the cohort."""
    if backend == "asnorm":
        if cohort is None:
            raise InputError("back-end asnorm", "embeddings of a cohort", "none")
        backend = "cosine"
    if isinstance(backend, str) and Path(backend).suffix != ".npz":
        if known_backend(backend).aligns:
            wanted = "a back-end that gives a pair of vectors a score"
            raise InputError(f"back-end {backend}", wanted, "one that aligns two sets of voices")
        made: Backend = fitted(backend, train=train, enrol=enrol, test=test)
    else:
        made = backend_named(backend)
    return made if cohort is None else AsNorm.fit(cohort, top=top, backend=made)


def _rows(
    backend: Backend, side: _Enrolment, enrol: Embeddings, test: Embeddings
) -> tuple[FloatArray, FloatArray]:
    """Rows of the models, in their order, and of all test vectors."""
    vectors = enrol.vectors[side.rows]
    if side.averages:
        vectors = average_groups(vectors, side.model)
    with one_blas_thread():
        return (
            rows_of(backend, vectors, "enrol", _name(enrol)),
            rows_of(backend, test.vectors, "test", _name(test)),
        )


def _remarked(sources: list[Source], remark: str) -> list[Source]:
    """Each file once; that of enrolment says how models were made."""
    if sources and remark:
        sources = [replace(sources[0], detected=f"{sources[0].detected}; {remark}"), *sources[1:]]
    return list({source.sha256: source for source in reversed(sources)}.values())[::-1]
