"""Two systems on the same trials: differences, their intervals, which is better and how sure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from unmask.base import Tabular, estimate_row
from unmask.engine.evaluation import Analysis, Battery, why_none
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice, Noticed
from unmask.trials import Scores, Source, read_scores


@dataclass(frozen=True, eq=False)
class Difference:
    """One metric of two systems; ``second_better`` is how often the second is in replicates."""

    first: Estimate
    second: Estimate
    difference: Estimate
    second_better: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Noticed, Tabular):
    """Two systems of :func:`compare` by metric: ``result["eer"].difference`` is an estimate.

    ``scores`` and ``rocs`` are those of the two systems, for their charts.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]
    sources: tuple[Source, ...]
    notices: tuple[Notice, ...]
    seed: int
    scores: Scores | None = None
    rocs: tuple[Roc, ...] = ()

    def __getitem__(self, metric: str) -> Difference:
        """The first row of a metric."""
        for row in self.differences:
            if row.first.metric == metric:
                return row
        raise KeyError(metric)

    def rows(self) -> list[dict[str, Any]]:
        """One row per metric: both values, their difference, how often the second is better."""
        rows = []
        for row in self.differences:
            delta = estimate_row(row.difference)
            rows.append(
                {
                    "metric": delta["metric"],
                    "params": delta["params"],
                    "first": row.first.value,
                    "second": row.second.value,
                    "difference": delta["value"],
                    **{name: delta[name] for name in ("unit", "low", "high")},
                    "second_better": row.second_better,
                }
            )
        return rows

    @property
    def verdict(self) -> str:
        """One sentence on the EER: which system is better and how sure that is."""
        row = self["eer"]
        delta = row.difference.value
        if not isinstance(delta, float) or delta == 0:
            return f"{self.first} and {self.second} have the same EER."
        better, worse = (self.second, self.first) if delta < 0 else (self.first, self.second)
        message = (
            f"EER of {better} is {100 * abs(delta):.2f} percentage points below that of {worse}"
        )
        interval = row.difference.interval
        if interval is None or row.second_better is None or isnan(interval.low):
            return f"The {message}."
        sure = row.second_better if delta < 0 else 1 - row.second_better
        clear = interval.low > 0 or interval.high < 0
        return (
            f"{f'{better} is better' if clear else 'no clear winner'}: the {message}, as it is "
            f"below in {100 * sure:.1f} % of {interval.replicates:,} resamplings of the "
            f"{interval.over}; the {100 * interval.level:g} % interval of the difference "
            f"{'excludes' if clear else 'includes'} 0."
        )


def compare(
    data: Any,
    first: str | None = None,
    second: str | None = None,
    *,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare two systems of one score table; both are bootstrapped on the same draws.

    ``data`` is a table of scores (:class:`Scores` or a data frame), or score files: a path,
    several, or a mapping of names to paths, read with the ``options`` of :func:`read_scores`
    (``key``, ``speakers``, …). ``first`` and ``second`` name two of its systems, and may be left
    out where it has two. ``battery``, ``replicates``, ``level`` and ``seed`` are those of
    :func:`evaluate`.
    """
    if isinstance(data, Scores) and options:
        raise TypeError(f"compare: no option {', '.join(options)} for a table of scores")
    scores = data if isinstance(data, Scores) else read_scores(data, **options)
    names = list(scores.systems)
    if first is None and second is None and len(names) == 2:
        first, second = names
    if first is None or second is None or first == second:
        raise InputError(f"compare needs two systems by name: there are {', '.join(names)}")
    pair = scores.select_systems([first, second])
    analysis = Analysis.of(battery, replicates, level, seed)
    measured = analysis.of_scores(pair, paired=True)
    rows = []
    keyed = analysis.battery.measured().items()
    sides = [[e for e in measured.estimates(row) if e.metric != "tag"] for row in (0, 1)]
    for (key, about), one, two in zip(keyed, *sides, strict=True):
        interval = share = None
        if measured.replicates is not None:
            if not about.no_interval:
                interval = measured.replicates.difference(key, level=level, first=0, second=1)
            below = measured.replicates.share_below(key, first=0, second=1)
            share = below if about.lower_is_better else 1 - below
        delta = float(two.value) - float(one.value) if two.value != one.value else 0.0
        difference = replace(
            one,
            value=delta,
            interval=interval,
            chance=0.0,
            params={**one.params, "of": f"{second} − {first}"},
            threshold=None,
            no_interval=about.no_interval or why_none(interval, measured.no_interval),
        )
        rows.append(Difference(one, two, difference, share))
    return Comparison(
        first, second, tuple(rows), scores.sources, measured.notices, seed, pair, measured.rocs
    )
