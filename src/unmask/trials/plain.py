"""Text layouts without a header: detection over the whole file where needed, and reading."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.errors import InputError
from unmask.trials.detect import Sample, candidates, choose, decisive
from unmask.trials.files import Input
from unmask.trials.layouts import LAYOUTS
from unmask.trials.parsed import Parsed, labels_of
from unmask.trials.registry import Format
from unmask.trials.text import TextTable

LABEL_ROLES = ("label", "digit", "word")
EITHER = ("scores", "scores or a key")


def layout_of(
    source: Input, sample: Sample, *, format: str | None, role: str, keep: bool = True
) -> tuple[Format, str] | None:
    """Layout of a text file and why it is that one; ``None`` for a table with a header.

    When the sample fits several, the whole file is looked at, and with ``keep`` held in memory to
    be read once more.
    """
    named = None if format is None else layout_named(format)
    if format is not None and named is None and sample.header is None:
        raise InputError(f"{source.name}, line 1: expected a header ({format}), found none")
    if sample.header is not None and named is None:
        return None
    if named is not None:
        layout, remark = named, "format given"
    else:
        labels_needed = role == "a key"
        allowed = [
            layout
            for layout in LAYOUTS
            if (layout.has_labels if labels_needed else layout.has_scores) or role in EITHER
        ]
        layout, remark = _detect(source, sample, allowed=allowed, role=role, keep=keep)
    if sample.width != len(layout.roles):
        raise InputError(
            f"{source.name}, line 1: expected {len(layout.roles)} columns ({layout.layout}), "
            f"found {sample.width}"
        )
    return layout, remark


def _detect(
    source: Input, sample: Sample, *, allowed: Sequence[Format], role: str, keep: bool
) -> tuple[Format, str]:
    unique = {i: set(values) for i, values in sample.columns.items()}
    found = candidates(unique)
    if len([layout for layout in found if layout in allowed]) > 1 and not source.drained:
        if keep:
            source.load()
        names = [str(i) for i in range(sample.width)]
        table = TextTable(source, sample.dialect, names, header=False, layout="as in line 1")
        for frame in table.frames():
            for i, name in enumerate(names):
                values = frame[name].fill_null("").unique().to_list()
                unique[i] = decisive([*decisive(unique[i]), *values])
        found = candidates(unique)
    return choose(sample, found, allowed, role=role)


def column_names(layout: Format) -> list[str]:
    """One name for each column of a layout."""
    return [role if role != "number" else f"number {i}" for i, role in enumerate(layout.roles)]


def parse_plain(source: Input, sample: Sample, layout: Format, *, remark: str = "") -> Parsed:
    """Read a text file whose columns are those of ``layout``."""
    names = column_names(layout)
    table = TextTable(source, sample.dialect, names, header=False, layout=layout.layout)
    marks = [role for role in layout.roles if role in LABEL_ROLES]
    identifiers = [role for role in layout.roles if role in ("enrol", "test")]
    numbers = [name for name in names if name == "score"]
    ids, values = table.read([*identifiers, *marks], numbers)
    label = labels_of(ids[marks[0]], table.line) if marks else None
    return Parsed(
        source.name,
        layout,
        table.line,
        enrol=ids.get("enrol"),
        test=ids.get("test"),
        label=label,
        systems={source.stem: values["score"]} if values else {},
        remarks=(remark,) if remark else (),
    )


def layout_named(name: str) -> Format | None:
    """Return the headerless layout of that name, if there is one."""
    return next((layout for layout in LAYOUTS if layout.name == name), None)
