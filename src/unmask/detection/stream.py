"""Every detection metric of score files larger than memory, in two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from unmask.arrays import FloatArray
from unmask.detection.battery import Battery
from unmask.detection.bootstrap import Progress
from unmask.detection.evaluate import Evaluation, SystemResult
from unmask.detection.metrics import negated_warnings
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.trials.labels import NONTARGET, TARGET
from unmask.trials.streamed_key import StreamedKey
from unmask.trials.streaming import Batch, Stream

HELD = 1 << 22
_NOTE = "read in batches: no intervals, and repeated trials are not looked for"


def stream_scores(
    path: str | Path,
    *,
    key: str | Path | None = None,
    systems: Sequence[str] | None = None,
    format: str | None = None,
    battery: Battery | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """The table of :func:`evaluate` for text, gzip or parquet of any length.

    The first pass collects the distinct target scores, a second one per system counts the
    nontargets among them: memory grows with the distinct target scores and not with the file.
    Labels stand in the file or in ``key``, of which only the targets are kept. The trials of the
    signature are named by the file's own digest.
    """
    battery = battery or Battery()
    scores = Stream(path, role="scores" if key is None else "scores for a key", format=format)
    names = list(systems or scores.systems)
    for name in names:
        if name not in scores.systems:
            known = ", ".join(scores.systems)
            raise InputError(f"{path}: expected systems among {known}, found {name}")
    trials = None if key is None else Stream(key, role="a key")
    if trials is None and "label" not in scores.columns:
        raise InputError(f"{path}: the trials have no labels; give a key (--key)")
    if trials is not None and not {"enrol", "test"} <= scores.columns.keys():
        raise InputError(f"{path}: expected enrol and test identifiers to join by, found none")
    side = trials is not None and "side" in trials.columns and "side" in scores.columns
    joined = None if trials is None else StreamedKey(trials, side=side)
    results, warnings = [], []
    passes = _Passes(scores, joined, 2 * len(names), progress)
    for name in names:
        targets, counts, nontargets = passes.targets(name)
        roc = Roc.from_blocks(
            targets,
            passes.nontargets(name),
            target_weights=counts,
            thresholds=battery.thresholds,
            cllr=True,
        )
        warnings += [f"{name}: {text}" for text in negated_warnings(roc, roc.negated())]
        estimates = battery.estimates(roc, {}, trials=scores.sha256[:8], speakers=None)
        results.append(SystemResult(name, None, estimates, roc))
    sources = [scores.source(round(counts.sum()), nontargets)]
    if trials is not None:
        sources.append(trials.source(round(counts.sum()), nontargets))
    return Evaluation(tuple(results), tuple(sources), (*warnings, _NOTE), 0)


class _Passes:
    """Goes through the file once for targets and once for nontargets of each system."""

    def __init__(
        self, scores: Stream, key: StreamedKey | None, passes: int, progress: Progress | None
    ) -> None:
        self._scores = scores
        self._key = key
        self._done = 0
        self._size = scores.size
        self._total = passes * self._size
        self._progress = progress
        self._checked = key is None

    def targets(self, system: str) -> tuple[FloatArray, FloatArray, int]:
        """Distinct target scores, how often each occurs, and the number of nontargets."""
        held: list[FloatArray] = []
        scores, counts = np.zeros(0), np.zeros(0)
        waiting = nontargets = 0
        for values, label in self._pass(system):
            held.append(values[label == TARGET])
            waiting += held[-1].size
            nontargets += int((label == NONTARGET).sum())
            if waiting > HELD:
                scores, counts = _merged(scores, counts, held)
                held, waiting = [], 0
        if self._key is not None and not self._checked:
            self._key.check_all_seen(self._scores)
            self._checked = True
        scores, counts = _merged(scores, counts, held)
        if not scores.size or not nontargets:
            raise InputError(
                f"{self._scores.name}: expected trials of both classes, found "
                f"{round(counts.sum())} target and {nontargets} nontarget"
            )
        return scores, counts, nontargets

    def nontargets(self, system: str) -> Iterator[FloatArray]:
        """Nontarget scores, batch by batch."""
        for values, label in self._pass(system):
            yield values[label == NONTARGET]

    def _pass(self, system: str) -> Iterator[tuple[FloatArray, np.ndarray]]:
        batches = self._scores.batches(
            system=system, ids=self._key is not None, progress=self._tell()
        )
        for batch in batches:
            assert batch.scores is not None
            yield batch.scores, self._label(batch)
        self._done += self._size

    def _label(self, batch: Batch) -> np.ndarray:
        if self._key is None:
            assert batch.label is not None
            return batch.label
        return self._key.label(batch, self._scores)

    def _tell(self) -> Callable[[int], None] | None:
        if self._progress is None:
            return None
        progress, before = self._progress, self._done
        return lambda done: progress(before + done, self._total)


def _merged(
    scores: FloatArray, counts: FloatArray, more: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and their counts, with further scores put in."""
    added = np.concatenate([np.zeros(0), *more])
    distinct, place = np.unique(np.concatenate([scores, added]), return_inverse=True)
    weights = np.concatenate([counts, np.ones(added.size)])
    total: FloatArray = np.bincount(place, weights, minlength=distinct.size).astype(np.float64)
    return distinct, total
