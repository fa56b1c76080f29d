"""Results of a redacted run under labels: what is shown person by person, or group by group, stands
in the order of labels, since the order of aliases is that of the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from unmask.assessment.redact import Labels
from unmask.assessment.study import Study, Trialled
from unmask.base import IntArray
from unmask.engine import GroupRow, SystemResult
from unmask.privacy.legal import RiskCurve
from unmask.privacy.similarity import SimilaritySet, SpeakerProtection

T = TypeVar("T")
ROWS, PAIRS = (0,), (0, 1)
PER_SPEAKER: dict[type, Mapping[str, tuple[int, ...]]] = {
    Trialled: {"identified": ROWS, "recordings": ROWS},
    SimilaritySet: {"sums": PAIRS, "negated": PAIRS},
    SpeakerProtection: {
        "matrix": PAIRS,
        "deid": ROWS,
        "low": ROWS,
        "high": ROWS,
        "named": ROWS,
        "self_similarity": ROWS,
        "d_ece": ROWS,
        "l_w": ROWS,
    },
    RiskCurve: {"per_speaker": ROWS, "recordings": ROWS},
}
"""Fields of results that go along their ``speakers``, and the axes that do."""
UNDER_ALIASES: dict[type, str] = {RiskCurve: "speakers"}
"""Names that no report shows and that draw people in their order when intervals are asked for."""
OF_GROUP: dict[type, str] = {GroupRow: "name", SystemResult: "group"}
"""Results that stand in a row with those of other groups: the field that names the group."""
_NUMBERS = re.compile(r"(\d+)")


def labelled(value: T, labels: Labels) -> T:
    """The same value with labels in place of aliases wherever a text holds one; groups stand in the
    order of their labels. Numbers and arrays stay as they are.
    """
    return _relabelled(value, labels)  # type: ignore[no-any-return]


def for_display(study: Study) -> Study:
    """A study as a report tells of it: under labels where it is redacted."""
    labels = study.inputs.labels
    if labels is None:
        return study
    made = copy(study)
    made.trialled = labelled(study.trialled, labels)
    made.inputs = replace(
        study.inputs,
        tables=labelled(study.inputs.tables, labels),
        notices=labelled(study.inputs.notices, labels),
    )
    made.tables = {**made.inputs.tables, **made.inputs.lists}
    return made


def by_label(value: T, study: Study) -> T:
    """The same results, in a redacted report with the people of each in the order of their labels,
    which the charts that show every person take. Means of reordered numbers can differ in the last
    digit, so that tables are made of results as they are.
    """
    return value if study.inputs.labels is None else _arranged(value)


def _relabelled(value: Any, labels: Labels) -> Any:
    if isinstance(value, str):
        return labels.text(value)
    if isinstance(value, pl.Series):
        if value.dtype != pl.String:
            return value
        return pl.Series(value.name, [_relabelled(text, labels) for text in value])
    if isinstance(value, Mapping):
        return _of_mapping(value, labels)
    if isinstance(value, (tuple, list)):
        return _of_sequence(value, labels)
    if isinstance(value, (set, frozenset)):
        return type(value)(_relabelled(part, labels) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        left = _known(UNDER_ALIASES, value)
        names = [f.name for f in fields(value) if f.init and f.name != left]
        return _with_fields(value, {n: _relabelled(getattr(value, n), labels) for n in names})
    return value


def _of_mapping(value: Mapping[Any, Any], labels: Labels) -> Any:
    pairs = {
        key: (_relabelled(key, labels), _relabelled(part, labels)) for key, part in value.items()
    }
    if all(new is key or new == key for key, (new, _) in pairs.items()):
        changed = any(part is not value[key] for key, (_, part) in pairs.items())
        return dict(pairs.values()) if changed else value
    order = _order([str(key) for key in value], [str(new) for new, _ in pairs.values()])
    made = list(pairs.values())
    return dict(made[i] for i in order)


def _of_sequence(value: Any, labels: Labels) -> Any:
    parts = [_relabelled(part, labels) for part in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    if all(_known(OF_GROUP, part) for part in parts):
        old, new = ([_group(part) for part in some] for some in (value, parts))
        parts = [parts[i] for i in _order(old, new)]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _known(kinds: Mapping[type, T], value: object) -> T | None:
    """What is known of the class of a value, or of one that it is derived from."""
    return next((known for kind, known in kinds.items() if isinstance(value, kind)), None)


def _group(part: Any) -> str:
    """Which group a result is of, after the system that it shares with other groups."""
    return f"{getattr(part, 'system', '')} {getattr(part, str(_known(OF_GROUP, part)))}"


def _order(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Places in which those that were renamed stand in the order of their labels, within what the
    rest of their names have in common; the others stay where they are.
    """
    renamed = [i for i, name in enumerate(old) if name != new[i]]
    common = [re.sub(r"#[^#]*#", "", old[i]) for i in renamed]
    first = {name: n for n, name in reversed(list(enumerate(common)))}
    keys = {i: (first[name], _natural(new[i])) for i, name in zip(renamed, common, strict=True)}
    places = list(range(len(old)))
    for place, i in zip(renamed, sorted(renamed, key=keys.__getitem__), strict=True):
        places[place] = i
    return places


def _natural(text: str) -> list[Any]:
    """A key by which label 9 comes before label 10."""
    return [int(part) if part.isdigit() else part for part in _NUMBERS.split(text)]


def _arranged(value: Any) -> Any:
    if isinstance(value, Mapping):
        made = {key: _arranged(part) for key, part in value.items()}
        return made if any(made[key] is not value[key] for key in made) else value
    if isinstance(value, (tuple, list)):
        parts = [_arranged(part) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = _known(PER_SPEAKER, value)
    if own is None:
        return _with_fields(
            value, {f.name: _arranged(getattr(value, f.name)) for f in fields(value) if f.init}
        )
    result: Any = value
    people = result.speakers
    names = list(people)
    order = np.array(sorted(range(len(names)), key=lambda i: _natural(names[i])), dtype=np.int64)
    ordered: dict[str, Any] = {
        name: _taken(getattr(value, name), order, axes) for name, axes in own.items()
    }
    ordered["speakers"] = type(people)([names[i] for i in order])
    return replace(value, **ordered)


def _taken(value: Any, order: IntArray, axes: tuple[int, ...]) -> Any:
    """Arrays in another order of people, also those in a mapping or a dataclass of such arrays."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: _taken(part, order, axes) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _with_fields(
            value, {f.name: _taken(getattr(value, f.name), order, axes) for f in fields(value)}
        )
    for axis in axes:
        value = np.take(value, order, axis=axis)
    return value


def _with_fields(value: Any, made: Mapping[str, Any]) -> Any:
    """The same dataclass with the fields that changed."""
    changed = {name: part for name, part in made.items() if part is not getattr(value, name)}
    return replace(value, **changed) if changed else value
