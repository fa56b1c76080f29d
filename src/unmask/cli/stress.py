"""``unmask cpmap`` and ``worstcase``: hard trials, and the closest of N voices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import typer

from unmask import figures as charts, stress
from unmask.cli.common import Intervals, Output, Tables, named_files, refuse, writable_file
from unmask.cli.options import argument, group, option, output_file
from unmask.errors import InputError
from unmask.report import document, figures_of
from unmask.run import is_pipe, write_whole
from unmask.scoring import backend_named
from unmask.trials import Embeddings, Input, Scores, holds_embeddings, read_embeddings, read_key

OF_SCORES = (
    *("key", "system", "proxy_system", "one_way", "min_impostors", "missing", "duplicates"),
    "columns",
)
OF_EMBEDDINGS = ("backend", "per_pair")
"""Options that the other kind of input has no use for."""
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")


def cpmap(
    tables: Tables,
    output: Output,
    intervals: Intervals = group(),
    scores: list[str] = argument(),
    system: tuple[str, ...] = (),
    reference: tuple[str, ...] = option("-r"),
    combine: Literal["rank", "mean"] = "rank",
    grid: int = 100,
    metric: tuple[str, ...] = ("eer",),
    p_target: float = 0.01,
    delta: tuple[str, ...] = (),
    subset: tuple[str, ...] = (),
    below: float = 0.05,
    cells: Path | None = output_file(callback=writable_file),
) -> None:
    table = tables.scores(scores, output)
    mapped = len(table.systems)
    columns = {*table.systems, *table.columns}
    files = [name for name in reference if name not in columns and Path(name).is_file()]
    named = [name for name in reference if name not in files]
    if files:
        table = Scores.merged(table, tables.scores(files, output))
    names = list(table.systems)
    placed = {Path(one).name: read_key(one, duplicates=tables.duplicates) for one in subset}
    assessments = []
    for one in dict.fromkeys(metric):
        with output.running("bootstrap"):
            assessment = stress.cp_maps(
                table,
                systems=system or names[:mapped],
                references=[*named, *names[mapped:]],
                combine=combine,
                grid=grid,
                metric=stress.CpMetric(one, p_target),
                deltas=[_pair(text, names) for text in delta] or None,
                subset=placed,
                below=below,
                **intervals.options,
            )
        assessments.append(assessment)
    if cells is not None:
        write_whole(cells, stress.cells_table(assessments).write_csv().encode())
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


def worstcase(
    context: typer.Context,
    tables: Tables,
    output: Output,
    intervals: Intervals = group(ci=option(default=stress.GROUPS, min=0)),
    scores: list[str] = argument(),
    system: tuple[str, ...] = (),
    by: str | None = None,
    population: float | None = None,
    model: tuple[str, ...] = (),
    table: bool = False,
    proxy: str | None = None,
    proxy_system: str | None = None,
    split: bool = True,
    threshold: tuple[float, ...] = (),
    dcf: tuple[float, ...] = (),
    target_rate: tuple[float, ...] = (),
    one_way: bool = False,
    skip_single: bool = False,
    min_impostors: int = option(default=3, min=3),
    backend: str = "cosine",
    per_pair: int = option(default=20, min=2),
) -> None:
    if population is not None and not population >= 1:
        raise InputError(f"population: expected at least 1, found {population:g}")
    files = named_files(scores)
    data: dict[str, tuple[Scores | Embeddings, stress.ImpostorProtocol]] = {}
    other: Scores | Embeddings | None = None
    shared = stress.ImpostorProtocol(skip_single=skip_single, split=split)
    if all(map(_are_embeddings, files.values())):
        refuse(context, OF_SCORES, "is for score files, found embeddings")
        own = replace(shared, backend=backend_named(backend), per_pair=per_pair)
        for name, path in files.items():
            voices = read_embeddings(path, format=tables.format_in, speakers=tables.speakers)
            data[name if name != path else Path(path).stem] = voices, own
        other = None if proxy is None else read_embeddings(proxy, speakers=tables.speakers)
        inputs = tuple(e.source for e, _ in data.values() if isinstance(e, Embeddings) and e.source)
        output.sources(inputs)
    else:
        refuse(context, OF_EMBEDDINGS, "is for embeddings, found scores")
        table_of = tables.scores(scores, output, systems=system)
        inputs = table_of.sources
        if proxy is not None:
            chosen = [proxy_system] if proxy_system else ()
            other = replace(tables, format_in=None).scores([proxy], output, systems=chosen)
            inputs = (*inputs, *other.sources)
        own = replace(shared, both_ways=not one_way, min_impostors=min_impostors)
        data = {name: (table_of, replace(own, system=name)) for name in table_of.systems}
    studied: dict[str, tuple[Scores | Embeddings, stress.ImpostorProtocol]] = {}
    for name, (read, own) in data.items():
        parts, left_out = stress.groups_of(read, by)
        if by is None:
            column = stress.sex_column(read)
            said = "no column says the sex of speakers: impostors of both sexes are pooled"
            output.remark(f"within {column}; --by none pools" if column else said)
        for part_name in left_out:
            output.remark(f"{part_name}: no target trials, left out")
        for part_name, part in parts.items():
            words = [
                text for text, many in ((name, len(data)), (part_name, len(parts))) if many > 1
            ]
            studied[", ".join(words) or part_name] = part, own
    if table:
        names = stress.MODELS if model in ((), ("auto",)) else model
        with replace(output, on="local", workers=None, state=None).running("models"):
            result: Any = [
                stress.compare_models(
                    stress.speaker_pairs(part, own), models=names, split=split, population=part_name
                )
                for part_name, (part, own) in studied.items()
            ]
    else:
        with output.running("worst case"):
            result = {
                part_name: stress.worst_case_study(
                    part,
                    threshold,
                    population=None if population is None else round(population),
                    model=model or "auto",
                    p_target=dcf,
                    target_rates=target_rate,
                    proxy=other,
                    protocol=own,
                    level=intervals.level,
                    groups=intervals.ci or 0,
                    seed=intervals.seed,
                )
                for part_name, (part, own) in studied.items()
            }
        if output.figures is not None:
            with output.layout():
                output.save(_figures(result, together=len(data) > 1))
    output.give(document(result, inputs=inputs))


def _figures(studies: Mapping[str, Any], *, together: bool) -> list[charts.Figure]:
    drawn = []
    for name, study in studies.items():
        which = (f"_{_SAFE.sub('-', name)}", f" ({name})") if len(studies) > 1 else ("", "")
        some = figures_of(study)
        drawn += [f.called(f"{f.name}{which[0]}", f"{f.title}{which[1]}") for f in some]
    return [*drawn, charts.worst_case_of_systems(studies)] if together else drawn


def _are_embeddings(path: str) -> bool:
    if path == "-" or is_pipe(path):
        return False  # what is looked at there cannot be read again
    if Path(path).is_dir():
        return True
    with Input(path) as source:
        if source.container != "text":
            source.load()
        return holds_embeddings(source)
