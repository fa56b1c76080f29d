"""Reading the score files that a command was given."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.cli import common
from unmask.trials import Scores, read_key, read_scores


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
    trials = read_key(key, duplicates=duplicates.value) if key else None
    tables = [
        read_scores(
            path,
            key=trials,
            speakers=speakers,
            format=format,
            systems=list(systems) if systems else None,
            missing=missing.value,
            duplicates=duplicates.value,
        )
        for path in paths
    ]
    for table in tables:
        for source in table.sources:
            if source.detected:
                common.remark(f"{source.name}: {source.detected}", quiet=quiet)
    merged = tables[0] if len(tables) == 1 else Scores.merged(*tables)
    merged.check_classes()
    return merged
