"""Two systems on the same trials: differences, their intervals, which recognises speakers better
and how sure that is; of two safeguards, which protects less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from unmask._drawing import WRITERS
from unmask.base import Tabular, estimate_row
from unmask.engine.battery import Battery
from unmask.engine.evaluating import ReadOptions, ScoreData, table_of
from unmask.engine.evaluation import UNMOVED, Analysis, SystemResult, group_masks
from unmask.engine.metrics import inverted_notices, negated_notices
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.trials import Scores, Source, read_scores

if TYPE_CHECKING:
    from unmask.engine.groups import GroupGaps

CALIBRATED = ("act_dcf", "cllr")
"""Metrics of scores that an attacker can calibrate."""
_SAFEGUARD = re.compile(
    r"(?<![a-z0-9])(?:oo|op|pp|[ao]-[ao]|anon\d*|anonymi[sz]\w*|mcadams)(?![a-z0-9])"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Difference(Estimate):
    """How much more of a metric the ``second`` system has than the ``first``; ``second_better`` is
    how often, in replicates, the second recognises better.
    """

    first: Estimate
    second: Estimate
    second_better: float | None
    lower_is_better: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabular):
    """Two systems of :func:`compare`: ``result["eer"]`` is the estimate of the difference, with
    both sides in it, and the numbers of a system are under its name.

    ``scores`` and ``rocs`` are those of the two systems, for their charts. With ``privacy`` they
    are safeguards, of which the one that recognises better protects less. ``gaps`` are those
    between groups of speakers, of either system at the threshold of its own EER.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]
    sources: tuple[Source, ...]
    notices: tuple[Notice, ...]
    seed: int
    scores: Scores | None = None
    rocs: tuple[Roc, ...] = ()
    privacy: bool = False
    gaps: tuple[GroupGaps, ...] = ()

    @property
    def gains(self) -> str:
        """What more of is to the second's credit."""
        return "protects more" if self.privacy else "recognises better"

    def share(self, row: Difference) -> float | None:
        """How often, in replicates, the second gains; calibration protects no one."""
        if row.second_better is None or (self.privacy and row.first.metric in CALIBRATED):
            return None
        return abs(self.privacy - row.second_better)

    _of_whole: ClassVar = True

    @property
    def estimates(self) -> tuple[Difference, ...]:
        """The differences."""
        return self.differences

    @property
    def parts(self) -> dict[str, SystemResult]:
        """What is said of either system."""
        sides = {self.first: [d.first for d in self.differences]}
        sides |= {self.second: [d.second for d in self.differences]}
        named = zip(sides.items(), self.rocs, strict=True)
        return {name: SystemResult(name, None, tuple(own), roc) for (name, own), roc in named}

    def rows(self) -> list[dict[str, Any]]:
        """One row per metric: both values, their difference, how often the second recognises better
        or, of safeguards, protects more.
        """
        rows = []
        for row in self.differences:
            delta = estimate_row(row)
            rows.append(
                {
                    "metric": delta["metric"],
                    "params": delta["params"],
                    "first": row.first.value,
                    "second": row.second.value,
                    "difference": delta["value"],
                    **{name: delta[name] for name in ("unit", "low", "high")},
                    f"second_{self.gains.replace(' ', '_')}": self.share(row),
                }
            )
        return rows

    def _warned(self) -> list[str]:
        """What numbers rest on and the verdict, then warnings."""
        return [*WRITERS[0](self).notes, *super()._warned()]

    def worsens(self, metric: str) -> list[Difference]:
        """Differences of a ``metric`` by which the second system is worse: the interval excludes 0
        on the side of more errors or, of safeguards, of less protection.

        ``metric`` is a name such as ``eer``, or ``min_dcf@0.05`` for one of several priors.
        """
        name, _, at = metric.partition("@")
        rows = [
            row
            for row in self.differences
            if row.metric == name and (not at or at in {f"{p:g}" for p in _numbers(row)})
        ]
        if not rows:
            known = ", ".join(dict.fromkeys(row.metric for row in self.differences))
            raise InputError("metric", f"one of {known}", metric)
        made = []
        for row in rows:
            interval = row.interval
            if self.privacy and name in CALIBRATED:
                raise InputError(metric, "a number that protection moves", "one of calibration")
            if interval is not None and row.no_interval == UNMOVED and row.value == 0:
                continue
            if interval is None or isnan(interval.low):
                raise InputError(metric, "an interval of the difference", row.no_interval)
            up = row.lower_is_better != self.privacy
            made += [row] if (interval.low > 0 if up else interval.high < 0) else []
        return made

    @property
    def verdict(self) -> str:
        """One sentence on the EER: which system recognises better and how sure that is."""
        row = self["eer"]
        delta = row.value
        if not isinstance(delta, float) or delta == 0:
            return f"{self.first} and {self.second} have the same EER."
        better, worse = (self.second, self.first) if delta < 0 else (self.first, self.second)
        below = f"{100 * abs(delta):.2f} percentage points below that of {worse}"
        interval = row.interval
        less = f"as a safeguard {better} protects less"
        if interval is None or row.second_better is None or isnan(interval.low):
            here = f": on these trials, {less}" if self.privacy else ""
            return f"The EER of {better} is {below}{here}."
        sure = row.second_better if delta < 0 else 1 - row.second_better
        clear = interval.low > 0 or interval.high < 0
        ends = sorted(100 * abs(end) for end in (interval.low, interval.high))
        drawn = (
            f"lower in {100 * sure:.1f} % of {interval.replicates:,} bootstrap resamples of the "
            f"{interval.over}"
        )
        level = f"{100 * interval.level:g} % confidence interval"
        surer = ""
        if not clear and sure > (1 + interval.level) / 2:
            surer = f", as it allows for so few {interval.over}, which resamples show too little"
        if clear and self.privacy:
            return (
                f"{better} recognises speakers better (EER {below}, {level} {ends[0]:.2f} to "
                f"{ends[1]:.2f}, {drawn}): {less}."
            )
        none = "no clear difference in protection" if self.privacy else "no clear winner"
        return (
            f"{f'{better} recognises speakers better' if clear else none}: the EER of {better} is "
            f"{below}, and {drawn}; the {level} of the difference "
            f"{'excludes' if clear else 'includes'} 0{surer}."
        )


def _numbers(row: Difference) -> list[float]:
    return [value for value in row.params.values() if isinstance(value, float)]


def read_as_safeguards(names: Iterable[str]) -> tuple[Notice, ...]:
    """A notice of the first of ``names``, of systems or files, a word of which says that speech was
    protected: oo, op, pp, o-a, a-a, anon, mcadams; none where none does.
    """
    for name in names:
        if found := _SAFEGUARD.search(name.lower()):
            why = name if found[0] == name else f"{found[0]} in {name}"
            sentence = f"read as safeguards: {why}; --no-privacy (privacy=False) for verification"
            return (Notice("read-as-safeguards", "", sentence),)
    return ()


def compare(
    data: ScoreData,
    first: str | None = None,
    second: str | None = None,
    *,
    by: str | None = None,
    equalise: str | None = None,
    convention: str | None = None,
    battery: Battery | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    privacy: bool | None = None,
    **options: Unpack[ReadOptions],
) -> Comparison:
    """Compare two systems of one score table; both are bootstrapped on the same draws.

    Parameters
    ----------
    data : Scores, frame, mapping or path
        A table of scores, pairs of arrays (targets, nontargets) by system, or score files.
    first, second : str, optional
        Two of its systems; may be left out where it has two.
    by, equalise, convention, battery, replicates, level, seed
        Those of :func:`evaluate`.
    privacy : bool, optional
        The two are safeguards: who recognises speakers better protects less. Unless given, names of
        systems and files decide (:func:`read_as_safeguards`).
    **options
        Of files and frames those of :func:`read_scores`.

    Returns
    -------
    Comparison
        ``result["eer"]`` is the difference second − first, ``result.verdict`` one sentence.

    Examples
    --------
    >>> import unmask as um
    >>> old, new = ([1.0, 2.0, 3.0], [0.0, 1.5]), ([2.0, 2.5, 3.0], [0.0, 1.5])
    >>> um.compare({"old": old, "new": new}, replicates=0)["eer"].value
    -0.2
    """
    given: Any = data
    scores = table_of(given, **options)
    scores = read_scores(given, **options) if scores is None else scores
    names = list(scores.systems)
    if first is None and second is None and len(names) == 2:
        first, second = names
    if first is None or second is None or first == second:
        if len(names) == 1:
            wanted = 'two systems, such as {"a": (targets, nontargets), "b": …} or two files'
            raise InputError("compare", wanted, names[0])
        raise InputError(f"compare needs two systems by name: there are {', '.join(names)}")
    pair = scores.select_systems([first, second])
    if pair.counts["other"]:
        from unmask.engine.spoofing import is_countermeasure

        if cms := [name for name in (first, second) if is_countermeasure(name, None)]:
            found = f"the countermeasure {cms[0]}, which evaluate judges bona fide against spoof"
            raise InputError("compare", "verification systems", found)
    analysis = Analysis.of(battery, replicates, level, seed, convention, equalise)
    if analysis.battery.threshold or analysis.battery.far:
        raise InputError("thresholds are for one system at a time: use evaluate, not compare")
    measured = analysis.of_scores(pair, paired=True)
    rows = []
    keyed = analysis.battery.measured().items()
    both = [[e for e in measured.estimates_of(row) if e.metric != "tag"] for row in (0, 1)]
    for (key, about), one, two in zip(keyed, *both, strict=True):
        share = None
        if measured.replicates is not None:
            below = measured.replicates.share_below(key, first=0, second=1)
            share = below if about.lower_is_better else 1 - below
        delta = measured.difference(key, 0, 1, (one, two), f"{second} − {first}", level)
        sides = {"first": one, "second": two, "second_better": share}
        rows.append(Difference(**vars(delta), **sides, lower_is_better=about.lower_is_better))
    files = [source.name for source in scores.sources]
    told = read_as_safeguards([first, second, *files]) if privacy is None else ()
    privacy = bool(privacy or told)
    turned = [
        notice.about(name)
        for name, roc in zip((first, second), measured.rocs, strict=True)
        for notice in (negated_notices if privacy else inverted_notices)(roc)
    ]
    if np.array_equal(scores.scores(first), scores.scores(second)):
        sentence = "the same scores in every trial: is one file named twice?"
        turned.append(Notice("same-scores", f"{first} and {second}", sentence))
    about = scores.sources, (*turned, *told, *measured.notices), seed, pair, measured.rocs
    made = Comparison(first, second, tuple(rows), *about, privacy)
    if by is None:
        return made
    from unmask.engine.groups import gaps_of

    group_masks(pair, by)
    gaps, none = gaps_of(pair, analysis, by, [*made.parts.values()])
    return replace(made, gaps=gaps, notices=(*made.notices, *none))
