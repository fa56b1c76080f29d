"""What tasks of a job share and send back: named arrays, in as few bytes as they need."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from unmask.run.store import Arrays


@dataclass(frozen=True, eq=False)
class ArrayFields:
    """A dataclass whose fields are arrays, or None where there is none, as named arrays."""

    def arrays(self) -> Arrays:
        """All that there are, by field."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """From arrays among which there may be others."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: array for name, array in arrays.items() if name in names})
