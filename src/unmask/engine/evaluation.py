"""One system or many on a list of trials: the whole table of metrics with its intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unmask.engine.battery import Battery
from unmask.engine.bootstrap import Progress
from unmask.engine.metrics import negated_warnings
from unmask.engine.resample import resample
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.run import Where
from unmask.trials import Ids, Scores, Source


@dataclass(frozen=True, eq=False)
class SystemResult:
    """Metrics of one system on one group of trials (``group`` is None for all of them)."""

    system: str
    group: str | None
    estimates: tuple[Estimate, ...]
    roc: Roc = field(repr=False)

    def __getitem__(self, metric: str) -> Estimate:
        """The first estimate of a metric, by the name of its function."""
        for estimate in self.estimates:
            if estimate.metric == metric:
                return estimate
        raise KeyError(metric)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What :func:`evaluate` found."""

    results: tuple[SystemResult, ...]
    sources: tuple[Source, ...]
    warnings: tuple[str, ...]
    seed: int

    def __iter__(self) -> Iterator[SystemResult]:
        return iter(self.results)


def evaluate(
    scores: Scores,
    *,
    systems: Sequence[str] | None = None,
    by: str | None = None,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Every detection metric of every system, over all trials and, with ``by``, over its groups.

    Intervals come from the joint speaker bootstrap (the trial bootstrap where no speakers are
    known, and a warning says so), less the bias that resampling shows
    (:mod:`unmask.base.intervals`). There are 1,000 ``replicates`` unless given, 0 leaves them out.
    Beyond two million trials the default is the bootstrap of trials in bins (:mod:`.binned`), first
    order in the draws of speakers; a number asks for the bootstrap of all trials. ``on``,
    ``workers`` and ``state`` say where that is counted, as in :func:`cross_pairing`.
    """
    where = Where(on, workers, state)
    battery = battery or Battery()
    names = list(systems or scores.systems)
    chosen = scores.select_systems(names)
    results: list[SystemResult] = []
    warnings: list[str] = []
    groups: list[tuple[str | None, Scores]] = [(None, chosen)]
    groups += [
        (name, chosen.select(mask)) for name, mask in (group_masks(scores, by) if by else [])
    ]
    for group, part in groups:
        told_of = f"group {group}: " if group is not None else ""
        if group is not None and not (part.is_target.any() and part.is_nontarget.any()):
            warnings.append(
                f"{told_of}left out, it has {int(part.is_target.sum())} target and "
                f"{int(part.is_nontarget.sum())} nontarget trials"
            )
            continue
        measured, told = resample(
            part,
            battery=battery,
            replicates=replicates,
            seed=seed,
            where=where,
            progress=progress,
        )
        warnings += [told_of + text for text in told]
        for row, name in enumerate(names):
            roc = measured.rocs[row]
            warnings += [
                f"{told_of}{name}: {text}" for text in negated_warnings(roc, roc.negated())
            ]
            results.append(
                SystemResult(
                    name,
                    group,
                    measured.estimates(battery, level=level, system=row, scores=part),
                    roc,
                )
            )
    return Evaluation(tuple(results), scores.sources, tuple(dict.fromkeys(warnings)), seed)


def group_masks(
    scores: Scores, by: str
) -> list[tuple[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]]:
    """Groups of trials by a metadata column.

    A name such as ``sex`` stands for the pair ``enrol_sex``, ``test_sex``: trials with one value on
    both sides are a group of that name, mixed trials one of both names.
    """
    columns = scores.columns
    if by in columns:
        ids = columns[by]
        named = [(str(ids.names[int(code)]), ids.codes == code) for code in ids.used]
        return sorted(named, key=lambda pair: pair[0])
    sides = [columns.get(f"{side}_{by}") for side in ("enrol", "test")]
    if sides[0] is None or sides[1] is None:
        known = ", ".join(columns) or "none"
        raise InputError(f"no column {by} to group by: the columns are {known}")
    both = Ids.concatenate([sides[0], sides[1]]).alphabetical()
    names = both.names.to_list()
    one, other = np.split(both.codes.astype(np.int64), 2)
    pair = np.minimum(one, other) * len(names) + np.maximum(one, other)
    found = ((int(key), *divmod(int(key), len(names))) for key in np.unique(pair))
    return [(names[a] if a == b else f"{names[a]}-{names[b]}", pair == key) for key, a, b in found]
