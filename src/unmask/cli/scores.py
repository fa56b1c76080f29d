"""Reading the score files that a command was given."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.cli import common
from unmask.trials import Scores, read_scores


def load(
    paths: Sequence[str],
    *,
    key: str | None,
    speakers: str | None,
    systems: Sequence[str] | None,
    format: str | None,
    missing: common.Missing,
    duplicates: common.Missing,
    quiet: bool,
) -> Scores:
    """One table of all systems in all files; what was detected is told on stderr."""
    table = read_scores(
        paths,
        key=key,
        speakers=speakers,
        format=format,
        systems=list(systems) if systems else None,
        missing=missing.value,
        duplicates=duplicates.value,
    )
    for source in table.sources:
        if source.detected:
            common.remark(f"{source.name}: {source.detected}", quiet=quiet)
    table.check_classes()
    return table
