"""``unmask compare``: two systems on the same trials."""

from __future__ import annotations

from unmask.cli.common import Intervals, Output, Tables, Where
from unmask.cli.options import argument, group, option
from unmask.engine import Battery, compare as compare_systems
from unmask.errors import InputError
from unmask.report import document


def compare(
    tables: Tables,
    intervals: Intervals,
    where: Where,
    output: Output,
    scores: list[str] = argument(
        "Two score files, or one file with several systems.", "[NAME=]FILE..."
    ),
    system: tuple[str, ...] = option("The two systems, where the files have more."),
    battery: Battery = group(p_target=option("Prior of the detection costs.")),
) -> None:
    """Two systems on the same trials: differences with intervals, which is better, how sure."""
    if len(scores) > 2:
        raise InputError(f"compare takes one or two score files, found {len(scores)}")
    table = tables.scores(scores, output)
    names = system or tuple(table.systems)
    if len(names) != 2:
        raise InputError(
            "compare needs two systems: name them with --system; "
            f"there are {', '.join(table.systems)}"
        )
    with where.running("bootstrap", quiet=output.quiet):
        comparison = compare_systems(table, *names, battery=battery, **intervals.options)
    if output.figures is not None:
        with where.running("charts", quiet=output.quiet):
            output.draw(comparison)
    output.give(document(comparison))
