"""What a file format is called and looks like; one description each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["score", "key", "embedding"]


@dataclass(frozen=True)
class Format:
    """A file format.

    ``roles`` gives the columns of a text layout without header, in order: ``enrol``, ``test``,
    ``score``, ``number`` (read past), ``label`` (any vocabulary), ``digit`` (labels 0 and 1) or
    ``word`` (labels in words).
    """

    name: str
    kind: Kind
    source: str
    layout: str
    example: str
    container: str = "text"
    roles: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()

    @property
    def has_scores(self) -> bool:
        return self.kind == "score"

    @property
    def has_labels(self) -> bool:
        return self.kind == "key" or bool({"label", "digit", "word"} & set(self.roles))
