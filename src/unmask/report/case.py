"""What an examiner files beside the numbers: whose case it is, and what was compared."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from unmask.errors import InputError

_SAME = "The recordings of a comparison are of one speaker."
_DIFFERENT = "The recordings of a comparison are of two speakers."
_ROWS = {
    "number": "Case",
    "examiner": "Examiner",
    "date": "Date",
    "purpose": "Purpose",
    "same_speaker": "Proposition H1",
    "different_speaker": "Proposition H2",
    "conditions": "Conditions",
    "note": "Note",
}
_TO_FILL_IN = ("number", "examiner", "date", "conditions")


@dataclass(frozen=True)
class CaseRecord:
    """The head of a page to file, all of it in the examiner's words.

    Attributes
    ----------
    title : str
        Heading of the page.
    number, examiner, date, purpose : str
        The case, who examined it, when and what for.
    same_speaker, different_speaker : str
        The two propositions, H1 and H2.
    conditions : str
        How the recordings were made: channel, duration, noise, language.
    note : tuple of str
        Anything else.
    """

    title: str = ""
    number: str = ""
    examiner: str = ""
    date: str = ""
    purpose: str = ""
    same_speaker: str = _SAME
    different_speaker: str = _DIFFERENT
    conditions: str = ""
    note: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> CaseRecord:
        """Read the table ``[case]`` of a TOML file; its keys are the attributes."""
        try:
            raw = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: expected TOML, found a mistake: {error}") from None
        table = raw.get("case")
        if not isinstance(table, dict):
            raise InputError(path, "a table [case]", ", ".join(raw) or "nothing")
        known = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                raise InputError(f"{path}, [case]", f"keys among {', '.join(known)}", key)
            values[key] = _words(path, key, value)
        return cls(**values)

    def with_words(self, *, title: str | None, notes: tuple[str, ...]) -> CaseRecord:
        """The same with another title, and with further notes."""
        return replace(self, title=title or self.title, note=(*self.note, *notes))

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Headings and words; empty words are a line to fill in by hand."""
        rows = []
        for name, heading in _ROWS.items():
            value = getattr(self, name)
            lines = value if isinstance(value, tuple) else (value,)
            rows += [(heading, line) for line in lines if line or name in _TO_FILL_IN]
        return rows


def _words(path: str | Path, key: str, value: object) -> str | tuple[str, ...]:
    """A value of the table as text; notes may be several."""
    if isinstance(value, datetime.date | datetime.datetime):
        value = value.isoformat()
    if key == "note":
        notes = value if isinstance(value, list) else [value]
        if all(isinstance(line, str) for line in notes):
            return tuple(notes)
    elif isinstance(value, str):
        return value
    raise InputError(f"{path}, [case] {key}", "text", repr(value))
