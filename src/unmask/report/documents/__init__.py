"""A result to hand on: inputs, conditions, estimates, warnings; the same for every command."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import singledispatch
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any

from unmask._version import __version__
from unmask.base import Tabular, escaped_controls, machine_unit
from unmask.estimate import Estimate, Luck
from unmask.trials import Source

SCHEMA = "unmask/1"
_OF_INPUTS = (
    "name", "sha256", "format", "target", "nontarget", "missing", "duplicates", "speakers",
    "encoder", "sound", "role",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Estimates under one set of conditions, such as ``{"system": …, "group": …}``.

    Columns of a table are metrics, unless ``columns`` names the system that each estimate is of:
    then ``conditions`` tell the metric.
    """

    conditions: Mapping[str, str]
    estimates: Sequence[Estimate]
    columns: Sequence[str] = ()

    def of_estimates(self) -> list[tuple[Mapping[str, str], Estimate]]:
        """Each estimate with its own conditions."""
        if not self.columns:
            return [(self.conditions, estimate) for estimate in self.estimates]
        named = zip(self.columns, self.estimates, strict=True)
        return [({"system": column}, estimate) for column, estimate in named]


@dataclass(frozen=True)
class Document:
    """The result of a command, ready for any output format.

    ``conditions`` hold what all rows share; ``notes`` are sentences that belong to the result, such
    as a verdict, ``asides`` those too long for a caption, while ``warnings`` tell what to be
    careful about, trials of ``inputs`` that were left out among it, the ``urgent`` ones before all
    else. ``title`` heads it in print.
    ``tables`` are what people are shown, where that is not all ``rows`` in one table; ``stacked``
    ones have intervals below their values, and stay in one piece. ``facts`` are headings and words
    that a page to file has at its head, ``tally`` its counts by speaker.
    """

    rows: Sequence[Row]
    inputs: Sequence[Source] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    seed: int = 0
    title: str = ""
    tables: Sequence[Sequence[Row]] = ()
    stacked: bool = False
    asides: Sequence[str] = ()
    urgent: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tally: Sequence[tuple[str, int, int]] = ()

    def __post_init__(self) -> None:
        left_out = [
            f"{one.name}: {one.missing:,} trials without score or label and {one.duplicates:,}"
            " repeated trials were left out"
            for one in self.inputs
            if one.missing or one.duplicates
        ] + [
            f"{source.name}: {source.spoof:,} spoof trials were set aside"
            for source in self.inputs
            if source.spoof
        ][:1]
        object.__setattr__(self, "warnings", tuple(dict.fromkeys([*self.warnings, *left_out])))

    @classmethod
    def of(cls, result: Any, rows: Sequence[Row], **more: Any) -> Document:
        """Rows of a result, with its sources, its warnings and its seed."""
        urgent = [notice.line for notice in result.notices if notice.code == "inverted"]
        about = {"warnings": result.warnings, "urgent": urgent, "seed": result.seed}
        return cls(rows, result.sources, **about, **more)

    @property
    def shown(self) -> list[Sequence[Row]]:
        """Tables for people, those without a row left out."""
        return [rows for rows in self.tables if rows] or [self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values as in the published JSON Schema: NaN as null, infinities as strings."""
        warnings = list(self.warnings)
        undefined = sum(
            isinstance(e.value, float) and math.isnan(e.value)
            for row in self.rows
            for e in row.estimates
        )
        if undefined:
            warnings.append(f"{undefined} values are not defined and stand as null")
        return {
            "schema": SCHEMA,
            "version": __version__,
            "signature": self.signature,
            "inputs": [{name: asdict(one)[name] for name in _OF_INPUTS} for one in self.inputs],
            "conditions": dict(self.conditions),
            "results": [
                {
                    "metric": e.metric,
                    "value": number(e.value),
                    "unit": machine_unit(e.unit),
                    "interval": e.interval and [number(e.interval.low), number(e.interval.high)],
                    "level": e.interval and e.interval.level,
                    "no_interval": e.no_interval or ("" if e.interval else "none was made") or None,
                    "chance": number(e.chance),
                    **({} if e.luck is None else {"luck": _luck(e.luck)}),
                    "threshold": number(e.threshold),
                    "n": dict(e.n),
                    "params": {name: number(value) for name, value in e.params.items()},
                    "conditions": dict(conditions),
                    "signature": e.signature,
                }
                for row in self.rows
                for conditions, e in row.of_estimates()
            ],
            "notes": list(self.notes),
            "warnings": warnings,
            "seed": self.seed,
        }

    def to_json(self) -> str:
        """The document as JSON, two blanks of indentation."""
        return escaped_controls(
            json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        )

    @property
    def signature(self) -> str:
        """What all numbers share: the trials they rest on, the version, and whether it was a quick
        look.
        """
        lists = sorted({e.trials for row in self.rows for e in row.estimates if e.trials})
        run = [f"run:{self.conditions['run']}"] if "run" in self.conditions else []
        trials = (f"trials:{digest}" for digest in lists)
        return "|".join(["unmask", *run, *trials, f"v:{__version__}"])


def _luck(luck: Luck) -> dict[str, Any]:
    """What the strongest of the same attacks reads without information, as plain values."""
    return {name: value for name, value in asdict(luck).items() if value is not None}


def with_groups(made: Document, gaps: Sequence[Any]) -> Document:
    """The document with numbers by group and the gaps between groups, where there are such."""
    if not gaps:
        return made
    from unmask.report.documents.groups import group_parts

    rows, tables, notes = group_parts(gaps)
    shown, said = [*made.shown, *tables], [*made.notes, *notes]
    return replace(made, rows=[*made.rows, *rows], tables=shown, notes=said)


@singledispatch
def document(result: Any, **options: Any) -> Document:
    """The document of a result: rows, inputs, notes and warnings, for :func:`render`.

    Parameters
    ----------
    result
        What a public function of this package returned.
    **options
        ``inputs`` and ``details`` of safeguards, ``further`` C-P maps by another metric,
        ``inputs`` of worst-case studies by group and of comparisons of models.

    Returns
    -------
    Document
        With ``to_dict``, ``to_json`` and a ``signature``.

    Examples
    --------
    >>> import unmask as um
    >>> made = um.document(um.evaluate(([2.0, 3.0, 1.0], [0.0, 1.5, -1.0]), replicates=0))
    >>> made.to_dict()["results"][0]["metric"], made.signature.split("|")[0]
    ('eer', 'unmask')
    """
    _load(result)
    return _registered(document, result)(result, **options)  # type: ignore[no-any-return]


@singledispatch
def figures_of(result: Any, **options: Any) -> list[Any]:
    """All figures of a result, for :func:`unmask.figures.save_all`.

    An evaluation takes the prior ``p_target`` of its detection cost; an assessment of safeguards
    the ``order`` of the speakers; C-P maps ``further`` maps by another metric.
    """
    import_module("unmask.report.frameworks")
    return _registered(figures_of, result)(result, **options)  # type: ignore[no-any-return]


def _load(result: Any) -> None:
    """Load the module of documents named after the package of a result, or of the first."""
    if isinstance(result, Mapping):
        result = tuple(result.values())
    first = result[0] if isinstance(result, list | tuple) and result else result
    for package in reversed(type(first).__module__.split(".")):
        if find_spec(f"{__name__}.{package}") is not None:
            import_module(f"{__name__}.{package}")
            break


def _registered(function: Any, result: Any) -> Any:
    """What was registered for a result, once its module has been loaded."""
    registered = function.dispatch(type(result))
    if registered is function.dispatch(object):
        if function is document and isinstance(result, Tabular):
            return _plain
        raise TypeError(f"expected a result of unmask, found {type(result).__name__}")
    return registered


def _plain(result: Tabular) -> Document:
    """The estimates of a result that has no table of its own, in one row."""
    seed = getattr(result, "seed", 0)
    return Document([Row({}, result.estimates)], warnings=result.warnings, seed=seed)


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of :meth:`Document.to_dict`."""
    text = resources.files("unmask.report").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def number(value: Any) -> Any:
    """A value that JSON can hold: NaN is null, infinity the string "inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
