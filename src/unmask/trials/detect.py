"""Which layout a text file has, from a sample of its lines; if two fit, neither is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unmask.errors import InputError
from unmask.trials.header import is_number, looks_like_header
from unmask.trials.labels import DIGITS, VOCABULARY, WORDS
from unmask.trials.layouts import LAYOUTS
from unmask.trials.registry import Format
from unmask.trials.text import Dialect, columns_of_sample

_EXPECTED = {
    "score": "a number",
    "number": "a number",
    "digit": "0 or 1",
    "word": "target or nontarget",
    "label": "a label",
}


@dataclass(frozen=True)
class Sample:
    """First lines of a text file, cut into columns."""

    name: str
    dialect: Dialect
    header: tuple[str, ...] | None
    columns: Mapping[int, list[str]]

    @property
    def width(self) -> int:
        return len(self.columns)


def take_sample(name: str, lines: Sequence[str]) -> Sample:
    """Find separator and header of a text file."""
    first = lines[0]
    for separator in ("\t", ",", ";"):
        dialect = Dialect(separator, quoted=separator != "\t" or '"' in first)
        fields = dialect.split(first)
        if looks_like_header(fields):
            return _with_header(name, dialect, fields, lines)
    blank = Dialect(" ")
    if looks_like_header(blank.split(first)):
        return _with_header(name, blank, blank.split(first), lines)
    dialect = blank
    if len(first.split()) == 1:
        dialect = next((Dialect(s, quoted=True) for s in (",", ";") if s in first), blank)
    return Sample(name, dialect, None, columns_of_sample(lines, dialect, name, 1))


def _with_header(name: str, dialect: Dialect, fields: list[str], lines: Sequence[str]) -> Sample:
    if len(lines) < 2:
        raise InputError(f"{name}: the file has a header and no trials")
    columns = columns_of_sample(lines, dialect, name, 1)
    return Sample(name, dialect, tuple(fields), {i: c[1:] for i, c in columns.items()})


def candidates(unique: Mapping[int, set[str]]) -> list[Format]:
    """Layouts that fit, given the different values of each column."""
    return [
        layout
        for layout in LAYOUTS
        if len(layout.roles) == len(unique)
        and all(_fits(role, unique[i]) for i, role in enumerate(layout.roles))
    ]


def decisive(values: Iterable[str]) -> set[str]:
    """A few values that fit the layouts which all of them fit: of every kind of value that a
    column may hold, one that is not of that kind.
    """
    known = list(values)
    kinds: tuple[Callable[[str], bool], ...] = (
        is_number,
        _is_whole,
        lambda value: value in DIGITS,
        lambda value: value.lower() in WORDS,
        lambda value: value.lower() in VOCABULARY,
    )
    odd = (next((value for value in known if not kind(value)), None) for kind in kinds)
    return {value for value in odd if value is not None}


def _fits(role: str, values: set[str]) -> bool:
    if role in ("score", "number"):
        return all(map(is_number, values))
    if role == "digit":
        return values <= DIGITS.keys()
    if role == "word":
        return {value.lower() for value in values} <= WORDS.keys()
    if role == "label":
        return {value.lower() for value in values} <= VOCABULARY.keys()
    return not _looks_like_scores(values)


def _looks_like_scores(values: set[str]) -> bool:
    """Whether identifiers are out of the question: only numbers, and not all of them whole."""
    return all(map(is_number, values)) and not all(map(_is_whole, values))


def _is_whole(value: str) -> bool:
    return value.lstrip("+-").isdigit()


def _refuse_odd_line(sample: Sample, allowed: Sequence[Format]) -> None:
    """Name the line that keeps the file from a layout which at least half of the lines fit."""
    lines = len(sample.columns.get(0, ()))
    nearest = (lines / 2, lines, 0, "", "")
    for layout in allowed:
        if len(layout.roles) != sample.width:
            continue
        odd = {
            row: (column, role)
            for column, role in enumerate(layout.roles)
            if role not in ("enrol", "test")
            for row, value in enumerate(sample.columns[column])
            if not _fits(role, {value})
        }
        if odd and len(odd) <= nearest[0]:
            row = min(odd)
            nearest = (len(odd), row, *odd[row], f"{layout.name} ({layout.layout})")
    _, row, column, role, layout_name = nearest
    if layout_name:
        raise InputError(
            f"{sample.name}, line {row + 1}: expected {_EXPECTED[role]} in column {column + 1} as "
            f"in {layout_name}, which other lines fit, found {sample.columns[column][row]!r}"
        )


def choose(
    sample: Sample, found: Sequence[Format], allowed: Sequence[Format], *, role: str
) -> tuple[Format, str]:
    """Return the one layout that fits and serves as ``role``, and a remark if the role decided."""
    name = sample.name
    usable = [layout for layout in found if layout in allowed]
    if len(usable) == 1:
        others = [layout.name for layout in found if layout is not usable[0]]
        remark = f"read as {role}, so not as {' or '.join(others)}" if others else ""
        return usable[0], remark
    if not found:
        _refuse_odd_line(sample, allowed)
        listed = "; ".join(f"{layout.name}: {layout.layout}" for layout in allowed)
        raise InputError(
            f"{name}, line 1: expected one of the known layouts ({listed}) or a header, found none "
            "that all lines fit; see 'unmask formats'"
        )
    if not usable:
        listed = " or ".join(f"{layout.name} ({layout.layout})" for layout in found)
        raise InputError(f"{name}: expected {role}, found {listed}")
    listed = " and ".join(f"{layout.name} ({layout.layout})" for layout in usable)
    options = " or ".join(f"--format-in {layout.name}" for layout in usable)
    raise InputError(f"{name}: the layout is ambiguous, it fits {listed}; choose with {options}")
