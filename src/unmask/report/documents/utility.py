"""Documents of what protection costs."""

from __future__ import annotations

from unmask import utility as costs
from unmask.report.documents import Document, Row, document


@document.register
def _(result: costs.Utility) -> Document:
    """One row per condition: the number, the same of unprotected speech, the difference."""
    return Document(
        [Row({"safeguard": name}, some) for name, some in result.estimates_of.items()],
        conditions={"recogniser": result.recogniser} if result.recogniser else {},
        warnings=[notice.line for notice in result.notices],
        seed=result.seed,
    )
