"""``unmask formats``: which file formats are read."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from unmask.cli.options import option
from unmask.errors import InputError
from unmask.trials import FORMATS


def formats(
    kind: str | None = option("Only formats of this kind: score, key or embedding."),
) -> None:
    """List the file formats that are read, with layout and example."""
    if kind not in (None, "score", "key", "embedding"):
        raise InputError(f"expected --kind score, key or embedding, found {kind!r}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "kind", "layout", "example"):
        table.add_column(title, overflow="fold", no_wrap=title in ("name", "kind"))
    for entry in FORMATS:
        if kind in (None, entry.kind):
            table.add_row(entry.name, entry.kind, entry.layout, entry.example)
    Console().print(table, markup=False)
