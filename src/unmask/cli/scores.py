"""Reading the score files that a command was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from unmask.cli import common
from unmask.trials import Scores, Source, read_scores


def sources(paths: Sequence[str]) -> dict[str, str] | list[str]:
    """Files by name where names were given (NAME=FILE), otherwise the files."""
    named = common.named_files(paths)
    plain = len(named) == len(paths) and all(name == path for name, path in named.items())
    if plain or len(named) < len(paths):
        return list(paths)
    return {Path(name).stem if name == path else name: path for name, path in named.items()}


def tell(files: Iterable[Source], *, quiet: bool) -> None:
    """What files were taken for, on stderr."""
    for source in files:
        if source.detected:
            common.remark(f"{source.name}: {source.detected}", quiet=quiet)


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
        sources(paths),
        key=key,
        speakers=speakers,
        format=format,
        systems=list(systems) if systems else None,
        missing=missing.value,
        duplicates=duplicates.value,
    )
    tell(table.sources, quiet=quiet)
    table.check_classes()
    return table
