"""A number with what is needed to trust it: interval, unit, chance level, counts, signature; and
what stands against reading it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Protocol

from unmask._version import __version__

Parameter = str | int | float | bool | None
BEYOND = 0.05
"""Adjusted p-value up to which something is said to be beyond chance."""


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval and how it was made.

    ``method`` names what was drawn, then how the interval follows from the draws, such as
    ``speaker,corrected``. Both ends are NaN where none can be given.
    """

    low: float
    high: float
    level: float
    method: str
    replicates: int
    seed: int

    def __str__(self) -> str:
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
    """

    value: float
    p: float
    attacks: int
    permutations: int
    people: int

    @property
    def beyond(self) -> bool:
        """Whether what was found is beyond chance: p is at most 0.05."""
        return self.p <= BEYOND + 1e-12


@dataclass(frozen=True)
class Estimate:
    """One measured number.

    ``metric`` is the name of the Python function that computes it; ``value`` is a fraction where
    ``unit`` is ``"%"`` (percent appears on display only); ``chance`` is what no information at all
    would give; ``n`` counts what the number rests on (``{"target": …, "nontarget": …}``);
    ``threshold`` is where an operating point lies (scores of at least it are accepted); ``trials``
    is the digest of the list of trials. ``no_interval`` says why there is no interval, where there
    is none: every number has an interval or a reason. ``luck`` stands beside the strongest of
    several attacks: what the best of them reads without information.
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
        object.__setattr__(self, "n", MappingProxyType(dict(self.n)))
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

    @property
    def by_luck(self) -> str:
        """What luck reads, as sentences have it; nothing where that is not known."""
        luck = self.luck
        if luck is None:
            return ""
        some = luck.people < self.n.get("speakers", 0)
        of = f" (from {luck.people:,} people)" if some else ""
        best = "it" if luck.attacks == 1 else f"the best of {luck.attacks:,}"
        few = f"; {luck.people} people cannot reach 0.05" if luck.people < 4 else ""
        return f"without information {best}{of} reads {self.luck_shown}{few}"

    @property
    def luck_shown(self) -> str:
        """``14.1 %, p = 0.005``; nothing where it is not known."""
        if self.luck is None:
            return ""
        scale, digits = (100, 1) if self.unit == "%" else (1, 3)
        value = f"{scale * self.luck.value:.{digits}f} {self.unit}".strip().replace("-", "−")
        return f"{value}, p = {self.luck.p:.3f}"

    @property
    def signature(self) -> str:
        """How the number was made, in one line, so that two numbers can be compared safely."""
        parts = [self.metric.upper()]
        parts += [f"{name}:{value}" for name, value in self.params.items() if value is not None]
        if self.interval is not None:
            parts += [f"ci:{self.interval}", f"seed:{self.interval.seed}"]
        if self.trials:
            parts.append(f"trials:{self.trials}")
        return "|".join([*parts, f"v:{__version__}"])


@dataclass(frozen=True)
class Notice:
    """Something to be careful about: a ``code`` for programs, a ``sentence`` for people.

    ``subject`` names what it is about, such as a safeguard, a metric or an attacker with its
    condition. Results hand them on as ``notices``; whoever selects does so by code.
    """

    code: str
    subject: str
    sentence: str
    severity: Literal["note", "warning"] = "warning"

    @property
    def line(self) -> str:
        """The sentence after its subject, where it has one."""
        return f"{self.subject}: {self.sentence}" if self.subject else self.sentence

    def about(self, subject: str) -> Notice:
        """The same of a part of ``subject``, or of ``subject`` itself where it had none."""
        return replace(self, subject=": ".join(filter(None, (subject, self.subject))))


class HasNotices(Protocol):
    """What hands ``notices`` on."""

    @property
    def notices(self) -> Sequence[Notice]: ...


class Noticed:
    """A result with ``notices``, whose lines are its warnings."""

    @property
    def warnings(self: HasNotices) -> tuple[str, ...]:
        """What to be careful about, in words."""
        return tuple(notice.line for notice in self.notices)
