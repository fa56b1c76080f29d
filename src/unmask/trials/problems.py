"""What is said of files and trials that are refused, wherever they are looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray
from unmask.errors import InputError
from unmask.trials.formats import Format

LABEL = (
    "a label (target/nontarget, tgt/imp, tar/non, 1/0, true/false, same/different, SS/DS, H1/H2,"
    " Hp/Hd or spoof)"
)
TRIAL_BY_TRIAL = "compare systems trial by trial"


class Faults:
    """What is wrong with a file: of every kind, in their order, the first row and how many."""

    def __init__(self, where: Callable[[int], str]) -> None:
        self._where = where
        self._first: dict[tuple[int, ...], tuple[str, str, str]] = {}
        self._count: dict[tuple[int, ...], int] = {}

    def note(
        self,
        kind: tuple[int, ...],
        bad: BoolArray,
        row: int,
        expected: str,
        actual: str | pl.Series,
        *,
        counted: bool = True,
    ) -> None:
        """Note bad rows of a batch from ``row`` on; ``actual`` is their value or column."""
        count = int(np.count_nonzero(bad))
        if not count:
            return
        if kind not in self._first:
            first = int(np.flatnonzero(bad)[0])
            value = actual if isinstance(actual, str) else repr(actual[first])
            self._first[kind] = self._where(row + first), expected, value
        if counted:
            self._count[kind] = self._count.get(kind, 0) + count

    def refuse(self) -> None:
        """Raise the first kind of fault that there is."""
        if self._first:
            kind = min(self._first)
            count = f" ({self._count[kind]} in all)" if kind in self._count else ""
            place, expected, value = self._first[kind]
            raise InputError(place, expected, value + count)


def refuse_nan(values: FloatArray, where: Callable[[int], str], expected: str) -> None:
    """Refuse scores that are NaN; ``where`` names a row."""
    nan = np.flatnonzero(np.isnan(values))
    if nan.size:
        raise InputError(where(int(nan[0])), expected, f"NaN ({nan.size} in all)")


def no_trials(name: str) -> InputError:
    return InputError(f"{name}: the file holds no trials")


def unlabelled(name: str, columns: Sequence[str] = ()) -> InputError:
    """Refuse trials without labels; ``columns`` are those that look like labels."""
    cure = "give a key (--key)"
    if columns:
        cure = f"if column {columns[0]} has them, say so: --columns label={columns[0]}"
    if name == "table":
        named = repr(columns[0]) if columns else "…"
        cure = f'name their column, columns={{"label": {named}}}, or give a key'
    return InputError(f"{name}: the trials have no labels; {cure}")


def only_a_key(name: str, format: Format) -> InputError:
    return InputError(name, "scores", f"a key ({format.name}: {format.layout}) without scores")


def check_key(name: str, format: Format, has_label: bool, has_ids: bool) -> None:
    """Refuse a key without labels or without names of trials."""
    if not has_label:
        raise InputError(name, "a key", f"{format.name} without labels")
    if not has_ids:
        raise InputError(name, "a key with enrol and test identifiers", "none of them")


_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)


def no_number(text: object) -> str:
    """What stands where a number should, with what to do about a decimal comma."""
    if _DECIMAL_COMMA.fullmatch(str(text).strip()):
        return f"{str(text)!r} with a decimal comma: write decimal points"
    return f"{str(text)!r}"


def check_scored(name: str, empty: Mapping[str, bool]) -> tuple[list[str], tuple[str, ...]]:
    """Systems that have a score at all (``empty`` says which have none), and what is said of it."""
    scored = [system for system, is_empty in empty.items() if not is_empty]
    if not scored:
        raise InputError(name, "scores", "no column that holds any")
    others = [system for system, is_empty in empty.items() if is_empty]
    return scored, (f"columns without any score left out: {', '.join(others)}",) if others else ()


def no_score(place: str, count: int) -> InputError:
    actual = f"none ({count} trials lack one); missing='skip' goes on without them"
    return InputError(place, "a score", actual)


def side_in_one(name: str) -> InputError:
    actual = "it in one, where trials differ by it alone"
    return InputError(name, "the side of segments in both files", actual)


def no_identifiers(name: str, purpose: str = "join by") -> InputError:
    return InputError(name, f"enrol and test identifiers to {purpose}", "none")


def unknown_systems(place: str, known: Sequence[str], unknown: Sequence[str]) -> InputError:
    return InputError(place, f"systems among {', '.join(known) or 'none'}", ", ".join(unknown))


def check_systems(place: str, known: Sequence[str], asked: Sequence[str] | None) -> None:
    """Refuse systems that a file with scores does not have."""
    unknown = [name for name in asked or () if name not in known]
    if unknown and known:
        raise unknown_systems(place, known, unknown)


def no_class(name: str, counts: Mapping[str, int]) -> InputError:
    actual = f"{counts['target']} target and {counts['nontarget']} nontarget"
    return InputError(name, "trials of both classes", actual)


def two_speakers(name: str, count: int, enrol: str, test: str) -> InputError:
    return InputError(
        f"{name}: {count} target trials have two speakers, the first {enrol} and {test}: labels or "
        "speaker ids are wrong"
    )
