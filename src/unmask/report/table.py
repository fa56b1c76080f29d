"""Tables for people: text, Markdown and LaTeX with intervals in the cells, CSV with everything."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from typing import Any, Self

from unmask.base import grouped, machine_unit, no_formula, one_line, visible
from unmask.display import THRESHOLDS
from unmask.errors import InputError
from unmask.estimate import Estimate, Parameter
from unmask.report.documents import Document, Row, number

WIDTH = 100
_LEAST_SHOWN, _FEW_DIGITS = 1e-7, 0.1
"""Rates, in percent, between which two decimals show fewer than two digits; less is rounding."""
_DWARFED = 20
DIGITS = {"%": 2, "bit": 3, "dB": 2}
with resources.files("unmask.report").joinpath("metrics.csv").open(encoding="utf-8") as _file:
    _METRICS = list(csv.DictReader(_file))
LABELS = {row["metric"]: row["label"] for row in _METRICS if row["label"]}
EXPLANATIONS = {row["metric"]: row["explanation"] for row in _METRICS if row["explanation"]}
OF_TRIALS = {row["metric"] for row in _METRICS if row["compares"]}
"""Metrics that differ by what is compared, which their headings tell."""
MODELS = "enrolled models"
COMPARED = {
    MODELS: "models",
    "utterance pairs": "pairs",
    "trials of people on both sides": "both sides",
}
"""What is compared (the condition ``trials``), and how headings tell it."""
_CAPITALS = {
    "safeguard", "attacker", "utterances", "speakers", "speaker", "attribute", "group", "system",
    "systems", "point", "threshold", "impostors", "metric",
}  # fmt: skip
SHOWN_PARAMETERS = ("p_target", "fpr", "length", "count", "below", "alpha")
OF_POINTS = (*THRESHOLDS, "far", "frr", "cost")
"""Numbers at a threshold, or thresholds themselves."""
_RULES = ("kaldi", "speechbrain", "asvspoof", "histogram")
_FEW_ROWS = 4
_METRICS_ACROSS = 7
_GAP = 3


def label(estimate: Estimate, of: str = "") -> str:
    """Heading of a metric: its usual name, what is compared (``of``), what distinguishes it, and
    its unit. DeID is called so under every attacker, whom the row names.
    """
    raw = estimate.metric == "eer" and estimate.params.get("est") == "raw"
    metric = "eer_raw" if raw else estimate.metric
    metric = "deid" if metric.startswith("deid") and estimate.params.get("attacker") else metric
    name = LABELS.get(metric, metric.replace("_", " "))
    name += f", {of}" if of and estimate.metric in OF_TRIALS else ""
    details = [
        f"{key.replace('_', ' ')} {_plain(estimate.params[key])}"
        for key in SHOWN_PARAMETERS
        if key in estimate.params
    ]
    if estimate.metric == "tpr_at_fpr":
        details = [f"FPR {100 * float(estimate.params['fpr'] or 0):g} %"]
    if estimate.metric in ("min_dcf", "act_dcf", "cost"):
        details[:1] = [_plain(estimate.params["p_target"])]
    if estimate.metric in ("eer", "d_sys") and estimate.params.get("est") in _RULES:
        name += f", {estimate.params['est']}"
    if estimate.metric in ("t_eer", "t_eer_nearest", "min_t_dcf"):
        details = [f"{estimate.params['cm']}"]
    if estimate.metric in OF_POINTS:
        details += _point(estimate)
    unit = f" [{estimate.unit}]" if estimate.unit else ""
    return f"{name}{f' ({chr(44).join(details)})' if details else ''}{unit}"


def _point(estimate: Estimate) -> list[str]:
    """At which threshold a number was taken: a given one, or by what rule it was set."""
    params = estimate.params
    alone = estimate.metric in THRESHOLDS
    if "threshold" in params:
        return [f"at {_plain(params['threshold'])}"]
    if "set_by" in params:
        return [str(params["set_by"]) if alone else f"threshold of {params['set_by']}"]
    safe = "safe for " if params.get("safe") and not alone else ""
    return [f"{safe}FAR ≤ {100 * float(params.get('far') or 0):g} %"]


def compared(row: Row) -> tuple[Row, str]:
    """The row without the condition that its headings tell, and what they tell."""
    of = COMPARED.get(row.conditions.get("trials", ""), "")
    kept = {name: one for name, one in row.conditions.items() if name != "trials" or not of}
    return replace(row, conditions=kept), of


def condition_label(name: str) -> str:
    """Heading of a condition's column."""
    return "Scores" if name == "table" else name.capitalize() if name in _CAPITALS else name


def cell(estimate: Estimate) -> str:
    """``33.20 [31.02, 35.91]``: the value and its interval in the same precision."""
    if isinstance(estimate.value, str):
        return estimate.value
    made = estimate.interval
    ends = () if made is None or math.isnan(made.low) else (made.low, made.high)
    every = (estimate.value, *ends)
    if estimate.metric in THRESHOLDS:
        value, *shown = map(threshold_value, every)
    else:
        digits = rate_digits(estimate.unit, *every)
        value, *shown = (shown_value(one, estimate.unit, digits) for one in every)
    return f"{value} [{', '.join(shown)}]" if shown else value


def shown_value(value: float, unit: str, digits: int | None = None) -> str:
    """A number as tables show it: percent for fractions, fixed decimals, by unit if not given."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    scaled = 100 * value if unit == "%" else value
    text = f"{scaled:.{DIGITS.get(unit, 3) if digits is None else digits}f}"
    return text.replace("-", "−") if float(text) != 0 else text.lstrip("-")


def rate_digits(unit: str, value: float, *ends: float) -> int | None:
    """Decimals of a rate near 0 that two of its digits take; None where the usual ones serve.

    A rate of 0 is shown as precisely as the high end of its interval, since 0.00 [0.00, 0.00] would
    hide an end of 0.005 %; no value more precisely than a twentieth of its ends.
    """
    if math.isnan(value) or any(map(math.isnan, ends)):
        return None
    size, reach = abs(100 * value), 100 * max(map(abs, ends), default=0.0)
    largest = max(size, reach / _DWARFED) if size >= _LEAST_SHOWN else reach
    if unit != "%" or not _LEAST_SHOWN <= largest < _FEW_DIGITS:
        return None
    return 1 - math.floor(math.log10(largest))


def threshold_value(value: float) -> str:
    """A threshold with every digit it has, as it is read back: scores may lie close together."""
    return f"{value}" if math.isfinite(value) else shown_value(value, "")


def reasons(document: Document) -> list[str]:
    """Which numbers have no interval and why, in a sentence for each reason."""
    every = (e for rows in document.shown for row in rows for e in row.estimates if e.no_interval)
    metrics = grouped(
        (e.no_interval, LABELS.get(e.metric, e.metric.replace("_", " "))) for e in every
    )
    named = {why: ", ".join(dict.fromkeys(names)) for why, names in metrics.items()}
    return [f"No interval: {names} ({why})." for why, names in named.items()]


def _plain(value: Parameter) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Grid:
    """A table laid out: ``keys`` columns on the left name the rows, the others have numbers."""

    header: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    keys: int

    @classmethod
    def of(cls, rows: Sequence[Row], cells: Sequence[Mapping[str, Any]], empty: Any) -> Grid:
        """Conditions down, the headings of ``cells`` across, ``empty`` where a row has none."""
        names = list(dict.fromkeys(name for row in rows for name in row.conditions))
        headings = _merged(list(map(list, cells)))
        lines = [
            (*(row.conditions.get(n, "") for n in names), *(own.get(h, empty) for h in headings))
            for row, own in zip(rows, cells, strict=True)
        ]
        return cls((*names, *headings), lines, len(names))

    def turned(self, joint: str) -> Grid:
        """Metrics down; conditions across, put together by ``joint``."""
        names = [joint.join(filter(None, line[: self.keys])) or "value" for line in self.rows]
        columns = list(zip(self.header, *self.rows, strict=True))[self.keys :]
        return Grid(("metric", *names), columns, 1)

    def parts(self, sizes: Sequence[int], most: int) -> list[Self]:
        """Columns in parts that, with those of the keys, are at most ``most`` wide together."""
        keys = list(range(self.keys))
        parts: list[list[int]] = [[]]
        for i in range(self.keys, len(sizes)):
            if parts[-1] and sum(sizes[j] for j in (*keys, *parts[-1], i)) > most:
                parts.append([])
            parts[-1].append(i)

        def only(part: Sequence[int], line: Sequence[Any]) -> list[Any]:
            return [line[i] for i in (*keys, *part)]

        return [
            replace(self, header=only(part, self.header), rows=[only(part, r) for r in self.rows])
            for part in parts
        ]


def grid(rows: Sequence[Row], *, turn: bool = True) -> Grid:
    """Conditions down and metrics across; the other way round for few rows of many metrics, where
    they may ``turn``.
    """
    bare, cells = [], []
    for row, of in map(compared, rows):
        heads = row.columns or [label(estimate, of) for estimate in row.estimates]
        bare.append(row)
        cells.append(dict(zip(heads, map(cell, row.estimates), strict=True)))
    whole = Grid.of(bare, cells, "")
    across = len(whole.header) - whole.keys
    few = across > _METRICS_ACROSS and len(rows) <= min(across, _FEW_ROWS)
    return whole.turned(" ") if few and turn else whole


def _merged(lists: Sequence[Sequence[str]]) -> list[str]:
    """Every heading once; a new one stands before that which follows it in its own row."""
    merged: list[str] = []
    for names in lists:
        place = len(merged)
        for name in reversed(names):
            if name in merged:
                place = merged.index(name)
            else:
                merged.insert(place, name)
    return merged


def text(document: Document, *, width: int | None = None) -> str:
    """Aligned tables of at most ``width`` columns, wide ones in parts that repeat the keys of rows
    with something in them.

    Where a width is given, as that of a terminal, sentences are broken at words as well.
    """
    across, bare = width or WIDTH, list[str]()
    whole = [grid(rows, turn=not document.stacked) for rows in document.shown]
    if document.stacked:
        whole, bare = _stacked(whole, width)
        if width is None:
            across = max(across, *(sum(_sizes(one)) + _GAP * len(one.header) for one in whole))
    parts = [_rich(part, across) for one in whole for part in _split(one, across)]
    urgent, later = (
        [f"warning: {line}" for line in document.warnings if (line in document.urgent) == first]
        for first in (True, False)
    )
    lines = [*document.notes, *document.asides, *bare, *reasons(document), *later]
    if width is not None:
        fill = partial(textwrap.fill, width=max(width, 20), break_long_words=False)
        urgent, lines = [*map(fill, urgent)], [*map(fill, lines)]
    return "\n".join([*urgent, *parts, *lines]) + "\n"


def _stacked(whole: Sequence[Grid], width: int | None) -> tuple[list[Grid], list[str]]:
    """Intervals below their values; values alone where that is still too wide, and what to say."""

    def each(change: str) -> list[Grid]:
        return [
            replace(
                grid,
                header=[_UNIT.sub(r"\1\n\2", str(head)) for head in grid.header],
                rows=[[_INTERVAL.sub(change, str(value)) for value in row] for row in grid.rows],
            )
            for grid in whole
        ]

    made = each(r"\1\n\2")
    if width is None or all(sum(_sizes(grid)) + _GAP * len(grid.header) <= width for grid in made):
        return made, []
    return each(r"\1"), ["Confidence intervals: in tables/overview, or on a wider terminal"]


def _split(whole: Grid, width: int) -> list[Grid]:
    parts = whole.parts([size + _GAP for size in _sizes(whole)], width)
    if len(parts) == 1:
        return parts
    return [replace(part, rows=[r for r in part.rows if any(r[part.keys :])]) for part in parts]


def _rich(part: Grid, width: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    sizes = _sizes(part)
    # Where the table is too wide, keys may be broken to columns of ten.
    least = [min(size, 10) if i < part.keys else size for i, size in enumerate(sizes)]
    gaps = _GAP * (len(sizes) - 1)
    fits = sum(sizes) + gaps <= width
    for i, heading in enumerate(part.header):
        key = i < part.keys
        table.add_column(
            Text(heading),
            justify="left" if key else "right",
            no_wrap=fits or not key,
            min_width=None if fits or not key else 6,
        )
    for line in part.rows:
        table.add_row(*(Text(value) for value in line))
    out = io.StringIO()
    wide = max(width, sum(least) + gaps)
    Console(file=out, width=wide, color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _sizes(whole: Grid) -> list[int]:
    columns = zip(whole.header, *whole.rows, strict=True)
    return [max(len(line) for cell in c for line in cell.split("\n")) for c in columns]


def markdown(document: Document) -> str:
    """A pipe table, numbers to the right."""

    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(_MARKDOWN.sub(r"\\\g<0>", one_line(v)) for v in values) + " |"

    parts = []
    for whole in (grid(rows, turn=not document.stacked) for rows in document.shown):
        rule = ["---" if i < whole.keys else "---:" for i in range(len(whole.header))]
        table = (whole.header, rule, *whole.rows)
        parts.append("".join(f"{line(values)}\n" for values in table))
    warned = (f"Warning: {text}" for text in document.warnings)
    lines = [*document.notes, *document.asides, *reasons(document), *warned]
    return "\n".join(parts) + "".join(f"\n{line}\n" for line in lines)


_MARKDOWN = re.compile(r"\||<|\](?=\()")


_COLUMNS = (
    "metric", "value", "unit", "low", "high", "level", "no_interval", "chance", "threshold",
)  # fmt: skip


_LUCK = {"luck": "value", "p": "p", "permutations": "permutations"}


def comma_separated(document: Document) -> str:
    """One line per estimate in full precision: conditions, value, interval, counts, signature."""
    flat = [pair for row in document.rows for pair in row.of_estimates()]
    names = list(dict.fromkeys(name for conditions, _ in flat for name in conditions))
    counts = list(dict.fromkeys(n for _, e in flat for n in e.n))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    lucky = _LUCK if any(e.luck for _, e in flat) else {}
    if any(e.luck and e.luck.found is not None for _, e in flat):
        lucky = {**lucky, "luck_found": "found"}
    headings = (f"of_{name}" if name in (*_COLUMNS, *lucky) else name for name in names)
    writer.writerow([*headings, *_COLUMNS, *lucky, *(f"n_{name}" for name in counts), "signature"])
    for conditions, e in flat:
        ends = (e.interval.low, e.interval.high, e.interval.level) if e.interval else ("",) * 3
        unit = machine_unit(e.unit)
        values = [e.metric, e.value, unit, *ends, e.no_interval, e.chance, e.threshold]
        writer.writerow(
            [
                *(no_formula(conditions.get(name, "")) for name in names),
                *map(number, values),
                *(getattr(e.luck, name, "") for name in lucky.values()),
                *(e.n.get(name, "") for name in counts),
                e.signature,
            ]
        )
    return visible(out.getvalue())


_SYMBOL = re.compile(r"\b(D_ECE|C_ECE|C_llr|D_sys|G_VD|D_diag|l_w)(\^min)?(?![A-Za-z_])")
_SPECIAL = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "−": "$-$", "∞": r"$\infty$", "′": "$'$", "×": r"$\times$", "·": r"$\cdot$",
    "τ": r"$\tau$", "Δ": r"$\Delta$", "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$",
    "→": r"$\rightarrow$", "…": r"\dots{}", "–": "--",
    **{digit: f"$_{number}$" for number, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{digit: f"$^{number}$" for number, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
})  # fmt: skip
_INTERVAL = re.compile(r"(.+?) (\[[^\[\]]+, [^\[\]]+\])")
_MINUS = re.compile(r"(?<![^\[ ])-(?=\d)")
"""The sign of a threshold, which tables write as it is typed."""
_UNIT = re.compile(r"(?P<name>.+) (?P<unit>\[[^\[\],]+\])")
_COLUMN = 235.0
"""Points of one of two columns of a page, less a little."""
_PAGE = 495.0
"""Points of both columns of a page, less a little."""
_LETTER, _TINY, _BETWEEN = 4.4, 3.1, 6.0
"""Points of a letter of a footnote and of one of an interval below it, and between columns."""


def latex(document: Document) -> str:
    """A ``table`` with caption and label, to paste into a paper that loads booktabs.

    Where several columns of numbers have intervals, these stand below their values. What does not
    fit one column of a page spans both (``table*``). What to be careful about follows as comments.
    """
    grids = [
        part for rows in document.shown for part in _fitting(grid(rows, turn=not document.stacked))
    ]
    name = "table*" if any(_points(one) > _COLUMN for one in grids) else "table"
    small = name == "table*" or any(map(_is_stacked, grids))
    label = re.sub(r"[^a-z0-9]+", "-", document.title.lower()).strip("-") or "unmask"
    caption = " ".join(f"{part.rstrip('.')}." for part in (document.title, *document.notes) if part)
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{{name}}}",
        r"\centering",
        *([r"\footnotesize\setlength{\tabcolsep}{3pt}"] if small else []),
        *([rf"\caption{{{escaped(caption)}}}\medskip"] if caption else []),
        rf"\label{{tab:{label}}}",
        "\n\\par\\medskip\n".join(map(_tabular, grids)),
        rf"\end{{{name}}}",
        *(
            f"% {one_line(said)}"
            for said in (*document.asides, *reasons(document), *document.warnings)
        ),
    ]
    return "\n".join(lines) + "\n"


def _fitting(whole: Grid) -> list[Grid]:
    """A grid whose columns do not fit a page as several, one below the other, which all begin with
    the columns that name the rows.
    """
    if _points(whole) <= _PAGE:
        return [whole]
    return whole.parts([math.ceil(wide) for wide in _widths(whole)], int(_PAGE))


def _tabular(whole: Grid) -> str:
    stacked = _is_stacked(whole)
    columns = "l" * whole.keys + "r" * (len(whole.header) - whole.keys)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([_head(value) if stacked else escaped(value) for value in whole.header]),
        r"\midrule",
        ("\n\\addlinespace\n" if stacked else "\n").join(
            _line([_cell(v, stacked) for v in row]) for row in whole.rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text as LaTeX prints it: the symbols of metrics as mathematics, nothing as a command."""
    parts, end = [], 0
    line = one_line(text)
    for match in _SYMBOL.finditer(line):
        name, _, index = match[1].partition("_")
        low = index if len(index) == 1 else rf"{{\mathrm{{{index}}}}}"
        high = r"^{\min}" if match[2] else ""
        parts += [line[end : match.start()].translate(_SPECIAL), f"${name}_{low}{high}$"]
        end = match.end()
    return "".join([*parts, line[end:].translate(_SPECIAL)])


def _cell(value: str, stacked: bool) -> str:
    value = _MINUS.sub("−", value)
    parts = _INTERVAL.fullmatch(value) if stacked else None
    if parts is None:
        return escaped(value)
    return rf"\shortstack{{{escaped(parts[1])}\\{{\tiny {escaped(parts[2])}}}}}"


def _head(value: str) -> str:
    """A heading with its unit below, where columns are narrow."""
    parts = _UNIT.fullmatch(value)
    if parts is None:
        return escaped(value)
    return rf"\shortstack{{{escaped(parts['name'])}\\{{{escaped(parts['unit'])}}}}}"


def _line(cells: Sequence[str]) -> str:
    """Cells of a row; a bracket that would be read as an option of the row before is kept apart."""
    line = " & ".join(cells) + r" \\"
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


def _is_stacked(whole: Grid) -> bool:
    """Whether several columns have intervals, which then stand below their values."""
    numbers = list(zip(*whole.rows, strict=True))[whole.keys :]
    return sum(any(map(_INTERVAL.fullmatch, column)) for column in numbers) > 1


def _points(whole: Grid) -> float:
    """About how wide a grid is in print."""
    return sum(_widths(whole))


def _widths(whole: Grid) -> list[float]:
    """About how wide each column is in print."""
    below = _TINY if _is_stacked(whole) else 0.0

    def wide(text: str) -> float:
        parts = below and (_INTERVAL.fullmatch(text) or _UNIT.fullmatch(text))
        return max(_LETTER * len(parts[1]), below * len(parts[2])) if parts else _LETTER * len(text)

    columns = zip(whole.header, *whole.rows, strict=True)
    return [max(map(wide, column)) + _BETWEEN for column in columns]


FORMATS: dict[str, Callable[[Document], str]] = {
    "text": text,
    "json": lambda document: f"{document.to_json()}\n",
    "csv": comma_separated,
    "md": markdown,
    "latex": latex,
}


def render(document: Document, format: str = "text", *, width: int | None = None) -> str:
    """A document as text, JSON, CSV, Markdown or LaTeX.

    Parameters
    ----------
    document
        What :func:`document` made of a result.
    format
        ``text``, ``json``, ``csv``, ``md`` or ``latex``.
    width
        Columns of the terminal that ``text`` must fit; unlimited by default.

    Returns
    -------
    str
        The whole text, which ends with a new line.

    Examples
    --------
    >>> import unmask as um
    >>> estimate = um.Estimate("eer", 0.05, "%", chance=0.5)
    >>> print(um.render(um.document(estimate), "csv").splitlines()[1][:9])
    eer,0.05,
    """
    if format not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}, found {format}")
    return text(document, width=width) if format == "text" else FORMATS[format](document)
