"""What stands against reading a result as it is: for programs a code, for people a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

_MOST_LINES, _MOST_SUBJECTS = 5, 3


@dataclass(frozen=True)
class Notice:
    """Something to be careful about: a ``code`` for programs, a ``sentence`` for people.

    ``subject`` names what it is about, such as a safeguard, a metric or an attacker with its
    condition; the sentence does not. Results hand them on as ``notices``; whoever selects does so
    by code.
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
    """A result that may have ``notices``, whose lines are its warnings."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, in words."""
        return tuple(notice.line for notice in getattr(self, "notices", ()))


def told(notices: Iterable[Notice]) -> list[str]:
    """At most five lines: a sentence once with those it is about, a code once with how many more
    sentences it has; who wants all reads ``warnings``.
    """
    codes: dict[str, dict[str, list[Notice]]] = {}
    for notice in notices:
        codes.setdefault(notice.code, {}).setdefault(notice.sentence, []).append(notice)
    lines = []
    for sentences in codes.values():
        first, *others = sentences.values()
        more = sum(map(len, others))
        lines.append(_of_all(first) + (f" ({more} more like this in .warnings)" if more else ""))
    if len(lines) > _MOST_LINES:
        kinds = len(lines) - _MOST_LINES + 1
        lines[_MOST_LINES - 1 :] = [f"{kinds} more kinds of warnings in .warnings"]
    return lines


def _of_all(alike: Sequence[Notice]) -> str:
    """One line of notices that have one sentence."""
    subjects = list(dict.fromkeys(notice.subject for notice in alike if notice.subject))
    shown = "; ".join(subjects[:_MOST_SUBJECTS])
    rest = len(subjects) - _MOST_SUBJECTS
    return replace(alike[0], subject=f"{shown} and {rest} more" if rest > 0 else shown).line
