"""Text layouts without a header: detection over the whole file where needed, and reading."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.trials.detect import Sample, candidates, choose
from unmask.trials.files import Input
from unmask.trials.layouts import LAYOUTS
from unmask.trials.parsed import Parsed, labels_of
from unmask.trials.registry import Format
from unmask.trials.text import TextTable

LABEL_ROLES = ("label", "digit", "word")


def detect_layout(
    source: Input, sample: Sample, *, allowed: Sequence[Format], role: str
) -> tuple[Format, str]:
    """Layout of the file; when the sample fits several, the whole file is looked at."""
    unique = {i: set(values) for i, values in sample.columns.items()}
    found = candidates(unique)
    if len([layout for layout in found if layout in allowed]) > 1 and not source.drained:
        source.load()
        names = [str(i) for i in range(sample.width)]
        table = TextTable(source, sample.dialect, names, header=False, layout="as in line 1")
        columns, _ = table.read(names, [])
        found = candidates({i: set(columns[name].names) for i, name in enumerate(names)})
    return choose(sample, found, allowed, role=role)


def parse_plain(source: Input, sample: Sample, layout: Format, *, remark: str = "") -> Parsed:
    """Read a text file whose columns are those of ``layout``."""
    names = [role if role != "number" else f"number {i}" for i, role in enumerate(layout.roles)]
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
