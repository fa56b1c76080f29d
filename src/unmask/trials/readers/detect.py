"""What a text file is, from its first lines: separator, header, layout, the meaning of names.

If two layouts fit, neither is guessed.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from unmask.errors import InputError
from unmask.trials.formats import DIGITS, LAYOUTS, VOCABULARY, WORDS, Format
from unmask.trials.problems import unknown_systems
from unmask.trials.readers.files import Input
from unmask.trials.readers.text import Dialect, TextTable, sample_lines

_MOST_LABELS = 4
"""Words of a column of labels at most, one of which is unknown."""
EITHER = ("scores", "scores or a key")
with open(Path(__file__).with_name("columns.csv"), encoding="utf-8") as _file:
    COLUMNS = {row["role"]: tuple(row["names"].split()) for row in csv.DictReader(_file)}
GENERIC_SCORES = frozenset(name for name in COLUMNS["score"] if not name.endswith("_score"))
TRIAL_ROLES = ("enrol", "test", "label", "enrol_speaker", "test_speaker", "side", "score")
EMBEDDING_ROLES = ("vectors", "utterances", "speakers", "sessions")
_PREFIX = re.compile(r"^(enrol|enroll|enrolment|enrollment|test|trial|model|segment|claimed)_")
_ROLE = {name: role for role in TRIAL_ROLES for name in COLUMNS[role]}
_SEVERAL = ("score", "group")
# Names of columns of countermeasures, which judge recordings and not trials.
_CM_LABEL, _CM_SCORE = "cm_label", "cm_score"
NamedColumns = str | Mapping[str, str | Sequence[str]]
"""``enrol=ref_file,score=sc``, or such a mapping: a column, or its number, by role."""


def named_columns(columns: NamedColumns) -> dict[str, tuple[str, ...]]:
    """The columns of a table by role, as a user names them."""
    if isinstance(columns, str):
        words = columns.split(",")
    else:
        several = {r: [names] if isinstance(names, str) else names for r, names in columns.items()}
        words = [f"{role}={name}" for role, names in several.items() for name in names]
    named: dict[str, tuple[str, ...]] = {}
    for word in words:
        role, _, name = map(str.strip, word.partition("="))
        if role not in (*TRIAL_ROLES, "group") or not name:
            roles = f"ROLE=COLUMN with a role among {', '.join(TRIAL_ROLES)}, group"
            raise InputError("columns", roles, repr(word))
        if role in named and role not in _SEVERAL:
            raise InputError("columns", f"one column for {role}", f"{named[role][0]} and {name}")
        named[role] = (*named.get(role, ()), name)
    return named


@dataclass(frozen=True)
class Wanted:
    """What is asked of a file: its ``role`` in the words of messages, a format by its name, some of
    its ``systems``, and ``columns`` by their roles.
    """

    role: str
    format: str | None = None
    systems: Sequence[str] | None = None
    columns: NamedColumns | None = None

    @property
    def as_key(self) -> bool:
        return self.role == "a key"


def columns_of(
    columns: NamedColumns | None, key: object
) -> tuple[NamedColumns | None, NamedColumns | None]:
    """Named columns of scores and of their key, which has label, speakers and groups."""
    named = {} if columns is None else named_columns(columns)
    if not isinstance(key, str | PurePath) or "label" not in named:
        return columns, None
    of_scores = ("enrol", "test", "side", "score")
    of_key = {role: names for role, names in named.items() if role != "score"}
    return {role: names for role, names in named.items() if role in of_scores}, of_key


def normalise(name: str) -> str:
    """Lower case, with blanks, dots and hyphens as underscores."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def role_of(name: str) -> str | None:
    """Return the role a column's name stands for, if any."""
    return _ROLE.get(normalise(name))


def embedding_columns(names: Iterable[str]) -> dict[str, str]:
    """The names of the columns of vectors, utterances, speakers and sessions, by role."""
    plain = {normalise(name): name for name in names}
    known = {role: [n for n in COLUMNS[role] if n in plain] for role in EMBEDDING_ROLES}
    return {role: plain[names[0]] for role, names in known.items() if names}


def is_metadata(name: str) -> bool:
    """Whether a column describes a trial and is no system, even if it holds numbers."""
    plain = normalise(name)
    return plain in COLUMNS["metadata"] or bool(_PREFIX.match(plain)) or plain.startswith("unnamed")


def looks_like_header(fields: Sequence[str]) -> bool:
    """At least two names of known role, all names different, no number among them."""
    if len(set(fields)) < len(fields) or not all(fields) or any(map(is_number, fields)):
        return False
    roles = {role_of(field) for field in fields} - {None}
    return len(roles) >= 2 or ("test" in roles and _CM_LABEL in map(normalise, fields))


def is_number(text: str) -> bool:
    """Whether text reads as a number (``inf`` and ``nan`` do)."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def interpret(
    names: Sequence[str], numeric: Iterable[str], wanted: Wanted, *, where: str
) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """The columns of a header by role, systems and metadata; ``numeric`` columns of no other role
    that are not known as metadata are systems. What ``columns`` names goes before.
    """
    given, systems = named_columns(wanted.columns or {}), wanted.systems
    for what, columns in given.items():
        for name in columns:
            if name not in names:
                raise InputError(where, f"a column {name!r} for {what}", ", ".join(names))
    roles = {role: columns[0] for role, columns in given.items() if role not in _SEVERAL}
    taken = {name for columns in given.values() for name in columns}
    for name in names:
        role = role_of(name)
        if role is None or role == "score" or name in taken or role in given:
            continue
        if role in roles:
            actual = f"{roles[role]!r} and {name!r}; rename one of them"
            raise InputError(where, f"one column for {role}", actual)
        roles[role] = name
    if "enrol" not in roles and "enrol_speaker" in roles:
        roles["enrol"] = roles["enrol_speaker"]
    _complete_countermeasures(roles, names, taken)
    others = [name for name in names if normalise(name) == "trial_id" and name not in taken]
    if "enrol" in roles and "test" not in roles and others:
        roles["test"] = others[0]
    numbers, kept = set(numeric), given.get("group", ())
    free = [name for name in names if name not in roles.values()]
    scored = [
        name
        for name in free
        if name not in kept
        and role_of(name) in ("score", None)
        and (role_of(name) == "score" or (name in numbers and not is_metadata(name)))
    ]
    unknown = [name for name in systems or () if name not in free]
    if unknown:
        raise unknown_systems(where, scored, unknown)
    chosen = given.get("score", scored) if systems is None else systems
    described = tuple(name for name in free if name not in scored and name not in chosen)
    return roles, tuple(chosen), described


def _complete_countermeasures(
    roles: dict[str, str], names: Sequence[str], taken: Collection[str]
) -> None:
    """Complete the roles of a list of recordings that a countermeasure judges.

    Its label is that of the countermeasure if there is no other, and a recording without a claimed
    speaker is tried against itself.
    """
    labels = [name for name in names if normalise(name) == _CM_LABEL and name not in taken]
    scores = [name for name in names if normalise(name) == _CM_SCORE]
    if "label" not in roles and labels:
        roles["label"] = labels[0]
    if "enrol" not in roles and "test" in roles and (labels or scores):
        roles["enrol"] = roles["test"]


def _is_whole(value: str) -> bool:
    return value.lstrip("+-").isdigit()


_VALUES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "score": ("a number", is_number),
    "number": ("a number", is_number),
    "digit": ("0 or 1", DIGITS.__contains__),
    "word": ("target or nontarget", lambda value: value.lower() in WORDS),
    "label": ("a label", lambda value: value.lower() in VOCABULARY),
}
"""What the values of a column are called and how they are known, by the column's role."""


@dataclass(frozen=True)
class TextSample:
    """First lines of a text file, cut into columns."""

    source: Input
    dialect: Dialect
    header: tuple[str, ...] | None
    columns: list[list[str]]
    titled: bool = False

    @classmethod
    def of(cls, source: Input, columns: NamedColumns | None = None) -> TextSample:
        """Separator and header of a text file; ``columns`` that are named must stand there."""
        wanted = {name for names in named_columns(columns or {}).values() for name in names}
        name, lines = source.name, sample_lines(source)
        first = lines[0]
        dialects = [Dialect(mark, quoted=mark != "\t" or '"' in first) for mark in ("\t", ",", ";")]
        for dialect in (*dialects, Dialect(" ")):
            fields = dialect.split(first)
            if wanted <= set(fields) if wanted else looks_like_header(fields):
                if len(lines) < 2:
                    raise InputError(f"{name}: the file has a header and no trials")
                table = _columns(lines, dialect, name)
                return cls(source, dialect, tuple(fields), [one[1:] for one in table], True)
        dialect = Dialect(" ")
        if any(len(line.split()) == 1 for line in lines):
            dialect = next((one for one in dialects[1:] if one.separator in first), dialect)
        numbers = tuple(str(number + 1) for number in range(len(dialect.split(first))))
        if wanted and not wanted <= set(numbers):
            fields = max((one.split(first) for one in (*dialects, dialect)), key=len)
            lost = sorted(wanted.difference(fields))
            raise InputError(f"{name}, line 1", f"columns {', '.join(lost)}", ", ".join(fields))
        return cls(source, dialect, numbers if wanted else None, _columns(lines, dialect, name))

    def layout(self, wanted: Wanted, *, keep: bool) -> tuple[Format, str] | None:
        """Layout of the file and why it is that one; ``None`` for a table with a header. Where the
        sample fits several, the whole file is looked at, and held in memory with ``keep``.
        """
        name, format = self.source.name, wanted.format
        layout = next((layout for layout in LAYOUTS if layout.name == format), None)
        if layout is None and self.header is not None:
            return None
        if layout is None and format is not None:
            raise InputError(f"{name}, line 1", f"a header ({format})", "none")
        remark = "format given"
        if layout is None:
            layout, remark = self._detect(wanted.role, keep=keep)
            commas = self.dialect.separator == "," and layout.roles[-2:] == ("digit", "score")
            if commas and all(value.isdigit() for value in self.columns[-1]):
                raise InputError(
                    f"{name}: the layout is ambiguous, the last two columns are a label and a"
                    " score or one score with a decimal comma; choose with --format-in"
                    f" {layout.name}, or write points"
                )
        width, needed = len(self.columns), len(layout.roles)
        if width != needed:
            raise InputError(f"{name}, line 1", f"{needed} columns ({layout.layout})", width)
        return layout, remark

    def _detect(self, role: str, *, keep: bool) -> tuple[Format, str]:
        """The one layout that fits and serves as ``role``, and a remark if the role decided."""
        source, name = self.source, self.source.name
        needed = {"label", "digit", "word", "test_speaker"} if role == "a key" else {"score"}
        allowed = [layout for layout in LAYOUTS if role in EITHER or needed & set(layout.roles)]
        unique = [set(values) for values in self.columns]
        fitting = candidates(unique)
        if len([layout for layout in fitting if layout in allowed]) > 1 and not source.drained:
            if keep:
                source.load()
            names = [str(i) for i in range(len(unique))]
            table = TextTable(source, self.dialect, names, layout="as in line 1")
            for _, frame in table.frames(names):
                for i, column in enumerate(frame):
                    values = column.fill_null("").unique().to_list()
                    unique[i] = decisive([*decisive(unique[i]), *values])
            fitting = candidates(unique)
        fitting = fitting or by_speakers(self.columns)
        usable = [layout for layout in fitting if layout in allowed]
        if len(usable) == 1:
            others = [layout.name for layout in fitting if layout is not usable[0]]
            return usable[0], f"read as {role}, so not as {' or '.join(others)}" if others else ""
        if not fitting:
            self._refuse_unknown_header()
            self._refuse_odd_label(role)
            self._refuse_odd_line(allowed)
            width, widths = len(unique), sorted({len(layout.roles) for layout in allowed})
            if width not in widths:
                wanted = f"a header, or {', '.join(map(str, widths[:-1]))} or {widths[-1]} columns"
                actual = f"{width}; names must not contain blanks unless tabs separate columns"
                raise InputError(f"{name}, line 1", wanted, actual)
            same = [layout for layout in allowed if len(layout.roles) == width]
            known = "; ".join(f"{layout.name}: {layout.layout}" for layout in same)
            wanted = f"one of the known layouts of {width} columns ({known}) or a header"
            actual = "none that all lines fit; see 'unmask formats', or name columns (--columns)"
            raise InputError(f"{name}, line 1", wanted, actual)
        listed = [f"{layout.name} ({layout.layout})" for layout in usable or fitting]
        if not usable:
            self._refuse_numbered_label(role)
            swapped = "; are FILE and --key swapped?" if role == "a key" else ""
            raise InputError(name, role, " or ".join(listed) + swapped)
        options = " or ".join(f"--format-in {layout.name}" for layout in usable)
        fits = " and ".join(listed)
        raise InputError(f"{name}: the layout is ambiguous, it fits {fits}; choose with {options}")

    def _refuse_unknown_header(self) -> None:
        """Say how to name columns that have words in line 1 and numbers or labels below."""
        if not self.columns:
            return
        first, *rows = zip(*self.columns, strict=True)
        if any(is_number(word) or word.lower() in VOCABULARY for word in first):
            return
        below = {name: set(values) for name, *values in self.columns}
        labels = [n for n, values in below.items() if _fits("label", values)]
        scores = [n for n, values in below.items() if n not in labels and _fits("score", values)]
        if rows and scores:
            sides = (name for name in first if name not in {*labels, *scores})
            told = [*zip(("enrol", "test"), sides, strict=False), *(("label", n) for n in labels)]
            told += [("score", name) for name in scores]
            named = ",".join(f"{role}={name}" for role, name in told)
            actual = f"{', '.join(first)}; name its columns, as in --columns {named}"
            raise InputError(f"{self.source.name}, line 1", "a header with known names", actual)

    def _refuse_odd_label(self, role: str) -> None:
        """Name the word that keeps a column of few words from being labels."""
        for column in self.columns:
            words = Counter(word.lower() for word in column)
            odd = [word for word in words if word not in VOCABULARY]
            if role == "a key" and len(odd) == 1 and 1 < len(words) <= _MOST_LABELS:
                line = [word.lower() for word in column].index(odd[0]) + 1
                known = ", ".join(sorted(words.keys() - set(odd)))
                wanted = f"a label such as target or nontarget, as {known} in other lines"
                raise InputError(f"{self.source.name}, line {line}", wanted, repr(odd[0]))

    def _refuse_numbered_label(self, role: str) -> None:
        """A last column of two whole numbers is one of labels that can mean either."""
        last = set(self.columns[-1]) if self.columns else set()
        if role == "a key" and len(last) == 2 and all(word.isdigit() for word in last):
            wanted = "labels target and nontarget, or 1 and 0"
            actual = f"{' and '.join(sorted(last))}, which can mean either"
            raise InputError(f"{self.source.name}, column {len(self.columns)}", wanted, actual)

    def _refuse_odd_line(self, allowed: Sequence[Format]) -> None:
        """Name the line that keeps the file from a layout which at least half of the lines fit."""
        lines = max(map(len, self.columns), default=0)
        nearest = (lines / 2, lines, 0, "", "")
        for layout in allowed:
            if len(layout.roles) != len(self.columns):
                continue
            odd = {
                row: (column, role)
                for column, role in enumerate(layout.roles)
                if role in _VALUES
                for row, value in enumerate(self.columns[column])
                if not _fits(role, [value])
            }
            if odd and len(odd) <= nearest[0]:
                row = min(odd)
                nearest = (len(odd), row, *odd[row], f"{layout.name} ({layout.layout})")
        _, row, column, role, layout_name = nearest
        if layout_name:
            raise InputError(
                f"{self.source.name}, line {row + 1}: expected {_VALUES[role][0]} in column"
                f" {column + 1} as in {layout_name}, which other lines fit, found"
                f" {self.columns[column][row]!r}"
            )


def _columns(lines: Sequence[str], dialect: Dialect, name: str) -> list[list[str]]:
    """Transpose sample lines into columns; all lines must have as many fields as the first."""
    table = [dialect.split(line) for line in lines]
    width = len(table[0])
    for number, fields in enumerate(table, 1):
        if len(fields) != width:
            raise InputError(f"{name}, line {number}", f"{width} columns as in line 1", len(fields))
    return [list(column) for column in zip(*table, strict=True)]


def candidates(unique: Sequence[set[str]]) -> list[Format]:
    """Layouts that fit, given the different values of each column: 0 and 1 alone, before two
    names, are labels; what names speakers of both sides is told by more than its columns.
    """
    fitting = [
        layout
        for layout in LAYOUTS
        if len(layout.roles) == len(unique)
        and "test_speaker" not in layout.roles
        and all(map(_fits, layout.roles, unique))
    ]
    labelled = any(layout.name == "voxceleb" for layout in fitting)
    return [layout for layout in fitting if layout.name != "voxsrc" or not labelled]


def by_speakers(columns: Sequence[Sequence[str]]) -> list[Format]:
    """Layouts of Bob: some claimed identities are real, and every probe has one real one."""
    for layout in LAYOUTS:
        if "test_speaker" in layout.roles and len(layout.roles) == len(columns):
            claimed, real, probe, score = (
                columns[layout.roles.index(role)]
                for role in ("enrol_speaker", "test_speaker", "test", "score")
            )
            one = len(set(zip(probe, real, strict=True))) == len(set(probe)) and all(
                map(all, columns)
            )
            if one and any(map(str.__eq__, claimed, real)) and _fits("score", score):
                return [layout]
    return []


def decisive(values: Iterable[str]) -> set[str]:
    """A few values that fit the layouts which all fit: of every kind, one not of that kind."""
    known = list(values)
    kinds = (_is_whole, *(fits for _, fits in _VALUES.values()))
    odd = (next((value for value in known if not kind(value)), None) for kind in kinds)
    return {value for value in odd if value is not None}


def _fits(role: str, values: Iterable[str]) -> bool:
    if role in _VALUES:
        return all(map(_VALUES[role][1], values))
    if all(map(_VALUES["word"][1], values)):
        return False
    return not all(map(is_number, values)) or all(map(_is_whole, values))
