"""Every detection metric of whatever one has: a table, arrays, embeddings or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask.engine.evaluation import Analysis, Battery, Evaluation, evaluate_table
from unmask.engine.metrics import refuse_labels
from unmask.engine.streaming import evaluate_files
from unmask.errors import InputError
from unmask.trials import Embeddings, Input, Scores, holds_embeddings, is_frame, read_scores


def evaluate(
    data: Any,
    *,
    systems: Sequence[str] | None = None,
    by: str | None = None,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Every detection metric of every system, over all trials and, with ``by``, over its groups.

    ``data`` is a table of scores (:class:`Scores`, or a data frame with columns such as enrol,
    test, label and one per system), a pair of arrays (target scores, nontarget scores), a set of
    embeddings of which all pairs are compared (:func:`~unmask.engine.pairing.cross_pairing`), or
    with ``key`` the trials of a list (:func:`~unmask.scoring.score`; also of a file), or
    score files: a path, several, or a mapping of names to paths. Files may be larger than memory
    (:func:`~unmask.engine.streaming.evaluate_files`). ``options`` are those of that function:
    ``key`` and ``speakers`` or ``backend`` and ``pairs``. ``by`` is for tables: a column, or a name
    such as ``sex`` for the pair ``enrol_sex``, ``test_sex``.

    ``systems`` names those wanted, all unless given. ``battery`` says which priors, costs and
    false-positive rates are measured. Intervals of confidence ``level`` come from the joint speaker
    bootstrap (the trial bootstrap where no speakers are known, and a warning says so), less the
    bias that resampling shows (:mod:`unmask.base.intervals`). There are 1,000 ``replicates`` unless
    given, 0 leaves them out, and replicate i of ``seed`` draws the same speakers in every number.
    Beyond two million trials the default is the bootstrap of trials in bins
    (:mod:`.binned_bootstrap`), first order in the draws of speakers; a number asks for the
    bootstrap of all trials, which runs on the current place (:func:`unmask.run.run_on`).
    """
    analysis = Analysis.of(battery, replicates, level, seed)
    if options.get("key") is not None and (voices := _voices(data)) is not None:
        data, options = _scored(voices, **options), {}
    elif "backend" in options and not isinstance(data, Embeddings):
        raise InputError("backend", "embeddings and a key, or pairs of them", "scores")
    if not isinstance(data, Scores | Embeddings) and is_frame(data):
        data, options = read_scores(data, **options), {}
    else:
        data = of_arrays(data)
    if isinstance(data, Scores):
        if options:
            raise TypeError(f"evaluate: no option {', '.join(options)} for a table of scores")
        return evaluate_table(data, analysis, by=by, systems=systems)
    if isinstance(data, Embeddings):
        from unmask.engine.pairing import cross_pairing

        if by is not None or systems is not None:
            name = "by" if systems is None else "systems"
            raise InputError(name, "a table of scores", "embeddings")
        how: dict[str, Any] = {"replicates": replicates, "level": level, "seed": seed}
        return cross_pairing(data, battery=battery, **how, **options)
    return evaluate_files(data, analysis, systems=systems, by=by, **options)


def _voices(data: Any) -> Embeddings | str | Path | None:
    """Embeddings, or the one file of them, where scores are expected."""
    if isinstance(data, Embeddings):
        return data
    files = list(data.values()) if isinstance(data, Mapping) else data
    path = files[0] if isinstance(files, list | tuple) and len(files) == 1 else files
    if not isinstance(path, str | Path) or Path(path).is_dir():
        return path if isinstance(path, str | Path) else None
    if Path(path).suffix not in (".npz", ".npy", ".parquet", ".ark", ".scp", ".h5", ".hdf5"):
        return None
    with Input(path) as source:
        return path if holds_embeddings(source) else None


def _scored(voices: Embeddings | str | Path, **options: Any) -> Scores:
    from unmask.scoring import score

    usual = {"missing": "error", "duplicates": "error", "format": None, "stream": None}
    known = {"key", "backend", "speakers", *usual}
    for name, value in options.items():
        if name not in known or (name in usual and value not in (usual[name], False)):
            raise InputError(name, "score files", "embeddings")
    backend, speakers = options.get("backend", "cosine"), options.get("speakers")
    return score(voices, trials=options["key"], backend=backend, speakers=speakers)


def of_arrays(data: Any) -> Any:
    """The table of a pair (target scores, nontarget scores), or of such pairs by system on the same
    trials; any other ``data`` as they are.
    """
    named = data if isinstance(data, Mapping) else {"system": data}
    pairs = {
        name: pair
        for name, pair in named.items()
        if isinstance(pair, tuple) and len(pair) == 2 and not isinstance(pair[0], str | Path)
    }
    for name, given in named.items():
        if isinstance(given, np.ndarray) or (pairs and name not in pairs):
            raise InputError(name, "a pair (target scores, nontarget scores)", type(given).__name__)
    if not pairs:
        return data
    for pair in pairs.values():
        refuse_labels(*pair)
    tables = {name: Scores.from_arrays(*pair, system=name) for name, pair in pairs.items()}
    first, *others = tables.values()
    for table in others:
        if table.counts != first.counts:
            sizes = (
                "{target:,} target and {nontarget:,} nontarget scores".format(**t.counts)
                for t in (first, table)
            )
            raise InputError(next(iter(table.systems)), *sizes)
    systems = {name: table.scores(name) for name, table in tables.items()}
    return Scores(None, None, first.label, systems=systems)
