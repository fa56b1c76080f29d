"""A number with what is needed to trust it: interval, unit, chance level, counts, signature."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from unmask._version import __version__
from unmask.display import PERCENT, THRESHOLDS, Tabular, digits
from unmask.notices import HasNotices as HasNotices, Notice as Notice, Noticed as Noticed

Parameter = str | int | float | bool | None
BEYOND = 0.05
"""Adjusted p-value up to which something is said to be beyond chance."""
LEAST_PEOPLE, LEAST_IN_PAIRS = 4, 7
"""People whose names, permuted or exchanged in pairs, can show so small a p-value."""


def frozen(values: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    """A copy that nobody changes."""
    return MappingProxyType(dict(values))


copyreg.pickle(MappingProxyType, lambda view: (frozen, (dict(view),)))


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval and how it was made.

    Parameters
    ----------
    low, high : float
        The ends; NaN where none can be given.
    level : float
        Confidence level, such as 0.95.
    method : str
        What was drawn, then how the ends follow from the draws, such as ``speaker,corrected``.
    replicates : int
        Number of draws.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> import unmask as um
    >>> print(um.Interval(0.201, 0.284, 0.95, "speaker,corrected", 1000, 0))
    [0.201, 0.284] (95 %)
    """

    low: float
    high: float
    level: float
    method: str
    replicates: int
    seed: int

    def __str__(self) -> str:
        return f"[{digits(self.low)}, {digits(self.high)}] ({100 * self.level:g} %)"

    @property
    def made(self) -> str:
        """How it was made, as signatures have it: method, replicates, level."""
        return f"{self.method},{self.replicates},{100 * self.level:g}%"

    @property
    def over(self) -> str:
        """What was drawn, in the plural, as sentences need it."""
        return f"{self.method.partition(',')[0]}s"


@dataclass(frozen=True)
class Luck:
    """What the strongest of the same ``attacks`` reads where there is no information.

    ``value`` is the mean of the best over ``permutations`` of the names of ``people`` (or deals of
    their conversations); ``p`` the share of them that reach what was found, itself among them.
    ``in_pairs``: people were exchanged in pairs, within a release; ``is_unequal``: their numbers of
    utterances are so unlike that p may be up to twice too small.
    Where scores are counted in bins, which moves a number, ``found`` is what stands against
    ``value``: the same number on the same bins.
    """

    value: float
    p: float
    attacks: int
    permutations: int
    people: int
    in_pairs: bool = False
    is_unequal: bool = False
    found: float | None = None

    @property
    def beyond(self) -> bool:
        """Whether what was found is beyond chance: p is at most 0.05."""
        return self.p <= BEYOND + 1e-12

    @property
    def limits(self) -> str:
        """What p cannot tell, as sentences have it; nothing where it tells all."""
        if self.people < (LEAST_IN_PAIRS if self.in_pairs else LEAST_PEOPLE):
            return f"{self.people} people cannot reach 0.05"
        if self.is_unequal:
            return "numbers of utterances are unlike: p may be up to twice too small"
        return ""

    def decides(self, people: int) -> bool:
        """Whether it tells of so many people: of fewer that were drawn only what it shows counts,
        since they may be too few to show it.
        """
        return self.beyond or self.people >= people


@dataclass(frozen=True, repr=False)
class Estimate(Tabular):
    """One measured number with what is needed to trust it.

    Parameters
    ----------
    metric : str
        Name of the Python function that computes it.
    value : float or str
        The number, a fraction where ``unit`` is ``"%"``; or a tag, such as a category of ZEBRA.
    unit : str, optional
        Percent appears on display only.
    interval : Interval, optional
        Confidence interval over speakers.
    chance : float, optional
        What no information at all would give.
    n : mapping of str to int, optional
        What the number rests on, such as ``{"target": 60, "nontarget": 1770}``.
    params : mapping, optional
        Parameters of the metric.
    trials : str, optional
        Digest of the list of trials.
    threshold : float, optional
        Where an operating point lies: scores of at least it are accepted.
    no_interval : str, optional
        Why there is no interval, where there is none.
    luck : Luck, optional
        What the best of several attacks reads without information.

    Examples
    --------
    >>> import unmask as um
    >>> um.Estimate("eer", 0.2403, "%", chance=0.5)
    eer 24.03 %, chance 50 %
    """

    metric: str
    value: float | str
    unit: str = ""
    interval: Interval | None = None
    chance: float | None = None
    n: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, Parameter] = field(default_factory=dict)
    trials: str = ""
    threshold: float | None = None
    no_interval: str = ""
    luck: Luck | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", frozen(self.n))
        object.__setattr__(self, "params", frozen(self.params))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The number itself."""
        return (self,)

    def __repr__(self) -> str:
        """``eer 24.03 % [20.12, 28.35] (95 %), chance 50 %``; a threshold has all its digits."""
        if self.metric in THRESHOLDS:
            made = self.interval
            ends = "" if made is None else f" [{made.low}, {made.high}] ({100 * made.level:g} %)"
            return f"{self.metric} {self.value}{ends}"
        scale = 100 if self.unit == PERCENT else 1
        unit = f" {self.unit}" if self.unit else ""
        value = self.value if isinstance(self.value, str) else digits(scale * self.value)
        text = f"{self.metric} {value}{unit}"
        made = self.interval
        if made is not None:
            text += f" {replace(made, low=scale * made.low, high=scale * made.high)}"
        return (
            text if self.chance is None else f"{text}, chance {digits(scale * self.chance)}{unit}"
        )

    @property
    def by_luck(self) -> str:
        """What luck reads, as sentences have it; nothing where that is not known."""
        luck = self.luck
        if luck is None:
            return ""
        some = luck.people < self.n.get("speakers", 0)
        of = f" (from {luck.people:,} people)" if some else ""
        best = "it" if luck.attacks == 1 else f"the best of {luck.attacks:,}"
        limits = f"; {luck.limits}" if luck.limits else ""
        return f"without information {best}{of} reads {self.luck_shown}{limits}"

    @property
    def luck_shown(self) -> str:
        """``14.1 %, p = 0.005``; nothing where it is not known."""
        if self.luck is None:
            return ""
        scale, digits = (100, 1) if self.unit == "%" else (1, 3)
        value = f"{scale * self.luck.value:.{digits}f} {self.unit}".strip().replace("-", "−")
        if self.luck.found is not None:
            same = f"{scale * self.luck.found:.{digits}f} {self.unit}".strip()
            value = f"{value} where the same bins show {same}"
        return f"{value}, p = {self.luck.p:.3f}"

    @property
    def signature(self) -> str:
        """How the number was made, in one line, so that two numbers can be compared safely."""
        parts = [self.metric.upper()]
        parts += [f"{name}:{value}" for name, value in self.params.items() if value is not None]
        if self.interval is not None:
            parts += [f"ci:{self.interval.made}", f"seed:{self.interval.seed}"]
        if self.trials:
            parts.append(f"trials:{self.trials}")
        return "|".join([*parts, f"v:{__version__}"])
