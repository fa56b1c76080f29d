"""Results that show themselves: as text, as a table in a notebook, as a frame, as charts.

A result mixes in :class:`Tabular` and has ``estimates``; as a dataclass it needs ``repr=False``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar

from unmask._drawing import DRAWERS, WRITERS
from unmask.errors import InputError
from unmask.notices import Noticed

if TYPE_CHECKING:
    import polars as pl

    from unmask.estimate import Estimate

Row = Mapping[str, Any]
_SHARES = ("value", "low", "high", "chance", "luck", "first", "second", "difference")
_MOST_ROWS = 60
PERCENT, SHARE = "%", "share"
THRESHOLDS = ("threshold", "safe_threshold")
"""Metrics that are thresholds, which are shown with every digit."""
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_FORMULA = ("=", "+", "-", "@", "\t")


def machine_unit(unit: str) -> str:
    """The unit of a value as it is handed on: a fraction is a share, and percent when printed."""
    return SHARE if unit == PERCENT else unit


def estimate_row(estimate: Estimate, **columns: Any) -> dict[str, Any]:
    """One estimate as a row: ``columns`` first, then metric, parameters, value, unit, interval
    (``low``, ``high``), chance level, what luck reads of the strongest and its p-value, threshold.
    """
    interval = estimate.interval
    params = {name: value for name, value in estimate.params.items() if value is not None}
    return {
        **columns,
        "metric": estimate.metric,
        "params": " ".join(f"{name}={value}" for name, value in params.items()),
        "value": estimate.value,
        "unit": machine_unit(estimate.unit),
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "chance": estimate.chance,
        "luck": None if estimate.luck is None else estimate.luck.value,
        "p": None if estimate.luck is None else estimate.luck.p,
        "threshold": estimate.threshold,
    }


class Tabular(Noticed):
    """Mixed into every result, so that all of them answer alike.

    ``print(result)`` and a notebook show a table of its ``rows``; ``to_polars`` and ``to_pandas``
    give them as a frame, ``to_dict`` as plain values of the published JSON schema, ``figures`` as
    charts; ``warnings`` say what to be careful about. ``estimates`` are its numbers, and
    ``result["eer"]`` is the first of that metric. A result of several systems, safeguards,
    attackers or thresholds has ``parts``: ``result["plda"]`` is the part of that name, which is a
    result too, and metrics are asked of it; where there is one part, of the whole as well.
    """

    _of_whole: ClassVar = False
    """Whether estimates are of all parts together."""

    if TYPE_CHECKING:

        @property
        def estimates(self) -> tuple[Estimate, ...]:
            """All numbers of the result."""

    @property
    def parts(self) -> Mapping[Any, Any]:
        """What the result holds several of, by name."""
        return {}

    def rows(self) -> Sequence[Row]:
        """The rows of the table, all with the same columns; shares are fractions."""
        return [estimate_row(estimate) for estimate in self.estimates]

    def __getitem__(self, name: Any) -> Any:
        """The part of that name, or the first estimate of that metric."""
        parts = self.parts
        if name in parts:
            return parts[name]
        known = [part for part in parts if isinstance(part, str)]
        if len(known) < 2 or self._of_whole:
            for estimate in self.estimates:
                if estimate.metric == name:
                    return estimate
            known += dict.fromkeys(estimate.metric for estimate in self.estimates)
        raise KeyError(f"expected one of {', '.join(known)}, found {name}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values as in the published JSON schema of documents."""
        return dict(WRITERS[0](self).to_dict())

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame; a tag such as ``A`` is text, so values that mix numbers and
        text have a column ``text`` beside ``value``.
        """
        import polars as pl

        rows = [dict(row) for row in self.rows()]
        if any(isinstance(row.get("value"), str) for row in rows):
            for row in rows:
                text = row["value"] if isinstance(row["value"], str) else None
                row |= {"value": None if text is not None else row["value"], "text": text}
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            actual = "none: pip install pandas, or to_polars()"
            raise InputError("to_pandas", "pandas", actual) from None
        return pandas.DataFrame(self.to_polars().to_dict(as_series=False))

    def figures(
        self, *, width: str = "page", bare: bool = False, font: str = "sans", **options: Any
    ) -> Figures:
        """Charts of the result by name; they draw themselves in a notebook, and ``chart`` of each
        is an altair chart. For papers: ``width`` of a ``column`` or a ``page``, ``bare`` without
        title and caption, ``font`` ``sans`` or ``serif``. ``options`` are those of
        :func:`unmask.report.figures_of`.
        """
        layout = {"width": width, "bare": bare, "font": font}
        drawn = [figure for draw in DRAWERS for figure in draw(self, layout, **options)]
        return Figures({figure.name: figure for figure in drawn})

    def __repr__(self) -> str:
        """A title and aligned columns, those in which nothing stands left out, then warnings."""
        names, cells = _table(self.rows())
        if not names:
            return f"{type(self).__name__}: empty"
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (names, *cells[:_MOST_ROWS])
        ]
        more = [f"… {len(cells) - _MOST_ROWS} more rows"] if len(cells) > _MOST_ROWS else []
        return "\n".join([type(self).__name__, *lines, *more, *self._warned()])

    def _repr_html_(self) -> str:
        """The same as an HTML table, as notebooks show it."""
        names, cells = _table(self.rows())
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + "".join(f"<p>{escape(line)}</p>" for line in self._warned())

    def _warned(self) -> list[str]:
        """A line for each warning of a result that has any."""
        lines = [f"warning: {one_line(line)}" for line in self.warnings]
        more = [f"… {len(lines) - _MOST_ROWS} more warnings"] if len(lines) > _MOST_ROWS else []
        return [*lines[:_MOST_ROWS], *more]


@dataclass(frozen=True, eq=False, repr=False)
class Part(Tabular):
    """Some ``estimates`` of a result that belong together, such as those at one threshold."""

    estimates: tuple[Estimate, ...]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)


class Figures(dict[str, Any]):
    """Charts by name; a notebook draws all of them."""

    def save(
        self, folder: Any, *, formats: str | Sequence[str] = ("png", "svg", "html")
    ) -> list[Any]:
        """Write each as ``folder/name.format`` (also ``pdf``, ``json``); return the paths."""
        return [path for one in self.values() for path in one.save(folder, formats=formats)]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {figure.title}" for name, figure in self.items())

    def _repr_html_(self) -> str:
        return "".join(f"<figure>{figure._repr_svg_()}</figure>" for figure in self.values())


def _table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns in which something stands, and the cells as text."""
    cells = [{name: _cell(name, value, row) for name, value in row.items()} for row in rows]
    names = [name for name in (rows[0] if rows else ()) if any(row[name] for row in cells)]
    return names, [[row[name] for name in names] for row in cells]


def _cell(name: str, value: Any, row: Row) -> str:
    """A number to four digits, in percent where its unit says so, thresholds with all they have;
    nothing for None and NaN.
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, float):
        is_number = name in ("value", "low", "high") and row.get("metric") in THRESHOLDS
        if is_number or name == "threshold":
            return f"{value}"
        return digits(100 * value if row.get("unit") == SHARE and name in _SHARES else value)
    return PERCENT if (name, value) == ("unit", SHARE) else one_line(str(value))


def digits(value: float) -> str:
    """A number to four digits."""
    return f"{value:.4g}"


def visible(text: str) -> str:
    """The text with control characters, which move cursors and end images, replaced by a mark."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped_controls(text: str) -> str:
    """JSON with such characters, which stand within its strings alone, as escapes."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The same without line ends and tabs, for a cell or a message."""
    return " ".join(visible(text).split())


def no_formula(text: str) -> str:
    """A cell that a spreadsheet shows and does not compute: a quote goes before a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
