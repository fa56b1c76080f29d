"""Documents of gaps between groups, and their part in documents of other results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.engine import GroupGaps
from unmask.report.documents import Document, Row, document
from unmask.report.table import LABELS
from unmask.report.words import note


@document.register
def _(gaps: GroupGaps) -> Document:
    """Numbers by group, the gaps, and what equal groups read."""
    rows, tables, notes = group_parts([gaps])
    return Document(rows, notes=notes, seed=gaps.seed, tables=tables)


def group_parts(every: Sequence[GroupGaps]) -> tuple[list[Row], list[list[Row]], list[str]]:
    """Rows of numbers by group and of gaps, tables of both, and what is to be said of them."""
    numbers, shown, gaps, equal, notes = [], [], [], [], []
    for one in every:
        where = {**(one.conditions or {"system": one.system}), "at": one.point}
        for row in one.groups:
            people = {"group": row.name, "people": row.size}
            if row.attacker:
                people["attacker"] = row.attacker
            estimate = row.estimates[0]
            if estimate.chance is not None:
                people["chance"] = f"{100 * estimate.chance:.1f} %"
            numbers.append(Row({**where, **people}, row.estimates))
            if estimate.luck is not None:
                # Machines have the level in columns of its own.
                people["without information"] = estimate.luck_shown
            shown.append(Row({**where, **people}, row.estimates))
        gaps.append(Row({**where, "groups": one.column}, one.gaps))
        alike = [
            replace(e, value=e.chance, interval=None) for e in one.gaps if e.chance is not None
        ]
        equal += [Row({**where, "groups": "if equal"}, alike)] if alike else []
        about = f"{one.system}, {one.point}"
        notes += [f"{about}: {LABELS[name]} is {one.sentence(name)}" for name in one.metrics]
        notes += [notice.about(about).line + "." for notice in one.notices]
    kinds = dict.fromkeys("rates" if "fnmr" in one.metrics else "risks" for one in every)
    notes += [note(f"groups_{kind}") for kind in kinds]
    notes += [note("groups")] * ("rates" in kinds)
    return [*numbers, *gaps], [shown, [*gaps, *equal]], notes
