"""``unmask cpmap``: performance on every mixture of easy and hard trials."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from unmask.cli.common import Intervals, Output, Tables, Where
from unmask.cli.options import argument, group, option
from unmask.errors import InputError
from unmask.report import document
from unmask.run import write_whole
from unmask.stress import cells_table, cp_maps
from unmask.trials import Scores, read_key


def cpmap(
    tables: Tables,
    where: Where,
    output: Output,
    intervals: Intervals = group(
        ci=option(
            "Bootstrap replicates of the intervals; 0 for none.",
            min=0,
            show_default="1000, none beyond 200,000 trials",
        )
    ),
    scores: list[str] = argument(
        "Score files of one trial list, one system or more each.", "[NAME=]FILE..."
    ),
    system: tuple[str, ...] = option("Systems in the order of the roadmap.", show_default="all"),
    reference: tuple[str, ...] = option(
        "What tells hard trials from easy: a system, a numeric column, or a score file; "
        "may be repeated. A compared system that orders alone is at a disadvantage.",
        "--reference",
        "-r",
        show_default="all compared systems; a single system's own scores",
    ),
    combine: Literal["rank", "mean"] = option(
        "Several references: mean of ranks or of scores.", default="rank"
    ),
    grid: int = option("Cells along each axis, up to 1000.", default=100),
    metric: tuple[str, ...] = option(
        "Value of a cell; twice for both, side by side.", default=["eer"], metavar="<eer|min_dcf>"
    ),
    p_target: float = option("Prior of the detection cost.", default=0.01),
    delta: tuple[str, ...] = option(
        "Compare B with A; may be repeated. A tree of comparisons makes the roadmap.",
        metavar="A:B",
        show_default="each system with the one before",
    ),
    subset: str | None = option("Trials of your deployment (a key), placed on the maps."),
    below: float = option("Give the share of cells under this value.", default=0.05),
    cells: Path | None = option("Write the cells of all maps as CSV there."),
) -> None:
    table = tables.scores(scores, output)
    mapped = len(table.systems)
    columns = {*table.systems, *table.columns}
    files = [name for name in reference if name not in columns and Path(name).is_file()]
    named = [name for name in reference if name not in files]
    if files:
        table = Scores.merged(table, tables.scores(files, output))
    names = list(table.systems)
    assessments = []
    for one in dict.fromkeys(metric):
        with where.running("bootstrap", quiet=output.quiet):
            assessment = cp_maps(
                table,
                systems=system or names[:mapped],
                references=[*named, *names[mapped:]],
                combine=combine,
                grid=grid,
                metric=one,
                p_target=p_target,
                deltas=[_pair(text, names) for text in delta] or None,
                subset=None if subset is None else read_key(subset, duplicates=tables.duplicates),
                subset_name="deployment" if subset is None else Path(subset).name,
                below=below,
                **intervals.options,
            )
        assessments.append(assessment)
    if cells is not None:
        write_whole(cells, cells_table(assessments).write_csv().encode())
        output.remark(f"cells in {cells}")
    further = {"further": assessments[1:]}
    output.draw(assessments[0], **further)
    output.give(document(assessments[0], **further))


def _pair(text: str, names: list[str]) -> tuple[str, str]:
    """``A:B`` as two systems, whose names may hold colons themselves."""
    cuts = [i for i, letter in enumerate(text) if letter == ":"]
    pairs = [(text[:cut], text[cut + 1 :]) for cut in cuts]
    known = [pair for pair in pairs if set(pair) <= set(names)]
    if known or len(pairs) == 1:
        return (known or pairs)[0]
    raise InputError(f"--delta: expected A:B with two of {', '.join(names)}, found {text}")
