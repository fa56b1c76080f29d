"""What ``unmask worstcase`` was given: a score file or embeddings, whole or by groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from unmask.cli import common
from unmask.engine import group_masks
from unmask.errors import InputError
from unmask.trials import Embeddings, Input, Scores, holds_embeddings

OF_SCORES = (
    "key",
    "system",
    "proxy_system",
    "one_way",
    "min_impostors",
    "missing",
    "duplicates",
)
"""Options that embeddings have no use for."""

OF_EMBEDDINGS = ("backend", "per_pair")
"""Options that score files have no use for."""


def are_embeddings(path: str) -> bool:
    """Whether a path holds embeddings and not scores."""
    if path == "-":
        return False
    if Path(path).is_dir():
        return True
    with Input(path) as source:
        if source.container != "text":
            source.load()
        return holds_embeddings(source)


def refuse(context: typer.Context, options: tuple[str, ...], why: str) -> None:
    """An option that would have no effect is an error."""
    for name in options:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name.replace('_', '-')}: {why}")


def only_system(table: Scores) -> str:
    """The name of the one system there is."""
    if len(table.systems) > 1:
        raise InputError(
            f"system: expected one of {', '.join(table.systems)}, found none (--system)"
        )
    return next(iter(table.systems))


def groups_of_scores(table: Scores, by: str | None, *, quiet: bool) -> dict[str, Scores]:
    """Trials within each group, or all; groups without target trials are told and left out."""
    if by is None:
        return {"all": table}
    groups = {group: table.select(mask) for group, mask in group_masks(table, by)}
    parts = {group: part for group, part in groups.items() if part.is_target.any()}
    for group in sorted(set(groups) - set(parts)):
        common.remark(f"{group}: no target trials, left out", quiet=quiet)
    if not parts:
        raise InputError(f"by {by}: expected a group with target trials, found none")
    return parts


def groups_of_embeddings(voices: Embeddings, by: str | None) -> Iterator[tuple[str, Embeddings]]:
    """Utterances of each group, or all."""
    if by is None:
        yield "all", voices
        return
    if by not in voices.columns:
        known = ", ".join(voices.columns) or "none"
        raise InputError(f"no column {by} to group by: the columns are {known}")
    column = voices.columns[by]
    for code in sorted(column.used, key=lambda code: str(column.names[int(code)])):
        yield str(column.names[int(code)]), voices.select(column.codes == code)
