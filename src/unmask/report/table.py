"""Tables for people: text, Markdown and LaTeX with intervals in the cells, CSV with everything."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unmask.base import machine_unit, no_formula, one_line, visible
from unmask.errors import InputError
from unmask.estimate import Estimate, Parameter
from unmask.report.documents import Document, Row, condition_names, number

WIDTH = 100
DIGITS = {"%": 2, "bit": 3, "dB": 2}
LABELS = {
    "eer": "EER",
    "eer_raw": "EER, raw",
    "min_dcf": "minDCF",
    "act_dcf": "actDCF",
    "cllr": "C_llr",
    "min_cllr": "C_llr^min",
    "d_ece": "D_ECE",
    "c_ece": "C_ECE",
    "l_w": "l_w",
    "tag": "Tag",
    "d_sys": "D_sys",
    "deid": "DeID",
    "g_vd": "G_VD",
    "d_diag": "D_diag",
    "tpr_at_fpr": "TPR",
    "linkability": "Linkability",
    "linkability_unseen": "Linkability, unseen people",
    "linkability_seen": "Linkability, people trained on",
    "linkability_unprotected": "Linkability, unprotected",
    "linkability_own_run": "Linkability, own run",
    "learning_gain": "Gain of the last step",
    "singling_out": "Singling Out",
    "one_minus_eer": "1 − EER",
    "identification_rate": "Identification rate",
    "mean_d": "MeanD",
    "max_d": "MaxD",
    "inference": "Inference",
    "inference_balanced": "Inference, balanced",
    "inference_unprotected": "Inference, unprotected",
    "extrapolate": "Worst-case false alarms",
    "worst_case_false_alarms": "Worst-case false alarms",
    "deid_d_ece": "DeID of D_ECE",
    "deid_min_cllr": "DeID of C_llr^min",
    "g_d_ece": "G of D_ECE",
    "g_min_cllr": "G of C_llr^min",
    "deid_strongest": "DeID, strongest",
    "deid_negated": "DeID, negated score",
    "deid_centred": "DeID, centred score",
    "deid_centred_negated": "DeID, centred and negated",
    "deid_log": "DeID, log domain",
    "g_vd_log": "G_VD, log domain",
    "d_diag_oo": "D_diag(OO)",
    "d_diag_op": "D_diag(OP)",
    "d_diag_pp": "D_diag(PP)",
    "c_ece_linear": "C_ECE, linear",
    "c_ece_isotonic": "C_ECE, isotonic",
    "cllr_linear": "C_llr, linear",
    "cllr_isotonic": "C_llr, isotonic",
    "g_vd_within": "G_VD within sessions",
    "unlinkability_between": "Unlinkability between sessions",
    "cp_mean": "Mean of cells",
    "cp_share_below": "Cells",
    "cp_hardest_decile": "Hardest tenth",
    "cp_win": "Win",
    "cp_tie": "Tie",
    "cp_lose": "Lose",
    "cp_x": "x",
    "cp_y": "y",
    "cp_cell": "Cell",
    "cp_gap": "Gap",
    "wer": "WER",
    "wer_unprotected": "WER, unprotected",
    "wer_difference": "WER, difference",
    "cer": "CER",
    "cer_unprotected": "CER, unprotected",
    "cer_difference": "CER, difference",
    "rho_f0": "ρ_F0",
    "semitones": "Pitch shift",
    "dnsmos_sig": "DNSMOS, speech",
    "dnsmos_bak": "DNSMOS, background",
    "dnsmos_ovrl": "DNSMOS",
    "dnsmos_ovrl_unprotected": "DNSMOS, unprotected",
    "dnsmos_ovrl_difference": "DNSMOS, difference",
    "uar": "UAR",
    "level": "Level",
    "clipped": "Clipped",
    "seconds": "Duration",
}
EXPLANATIONS = {
    "linkability": "Share of protected voices linked to their owner; chance is 1/N′",
    "singling_out": "How often one person is isolated; chance is 36.8 %",
    "one_minus_eer": "1 − equal error rate; chance is 50 %",
    "consistency": "How often a pseudo-voice is closest to itself under one key; no attack",
    "deid_strongest": "The same under the reading of the score that finds most resemblance",
    "deid": "Resemblance to the original voice that is gone; higher is more protective",
    "g_vd": "Distinctiveness of protected voices; 0 dB is as before",
    "d_ece": "Evidence disclosed on average, 0 to 0.721 bit; lower is more protective",
    "l_w": "Strongest evidence, as a power of ten of the odds; lower is more protective",
    "tag": "Category of the strongest evidence, 0 and A (weak) to F (strong)",
    "eer": "Equal error rate of the attacker; 50 % is a coin toss",
    "min_dcf": "Smallest detection cost over all thresholds; 1 is no information",
    "min_cllr": "Cross-entropy after oracle calibration; 1 bit is no information",
    "identified": "Share of the speaker's recordings linked to the speaker",
    "mean_d": "Bits of identity disclosed on average by the rank",
    "max_d": "Bits of identity disclosed at most by the rank",
    "identification_rate": "How often the true speaker comes first",
    "inference": "Accuracy of guessing the attribute from protected speech",
    "inference_balanced": "The same, every class weighing alike",
    "inference_unprotected": "Accuracy of guessing it from unprotected speech",
    "cp_mean": "Mean error over the well-defined cells of the map",
    "cp_share_below": "Share of cells below 5 %",
    "cp_hardest_decile": "Error on the hardest tenth of each kind of trial",
    "cp_win": "Share of cells in which the second system errs less",
    "cp_tie": "Share of cells without a difference",
    "cp_lose": "Share of cells in which the second system errs more",
    "wer": "Share of words a recogniser gets wrong; silence has 100 %",
    "rho_f0": "Correlation of the pitch with the original's; 1 is the same melody",
    "semitones": "Mean shift of the pitch",
    "dnsmos_ovrl": "Predicted opinion of listeners, 1 to 5",
    "worst_case_false_alarms": "How often the closest of N impostors is accepted",
}
_CONDITIONS = {
    "safeguard": "Safeguard",
    "attacker": "Attacker",
    "utterances": "Utterances",
    "speakers": "Speakers",
    "speaker": "Speaker",
    "attribute": "Attribute",
    "group": "Group",
    "system": "System",
    "systems": "Systems",
    "table": "Scores",
    "point": "Point",
    "threshold": "Threshold",
    "impostors": "Impostors",
    "metric": "Metric",
}
SHOWN_PARAMETERS = ("p_target", "fpr", "length", "count", "below")
_FEW_ROWS = 4
_METRICS_ACROSS = 7
_GAP = 3


def label(estimate: Estimate) -> str:
    """Heading of a metric: its usual name, what distinguishes it, and its unit."""
    name = LABELS.get(estimate.metric, estimate.metric.replace("_", " "))
    told = [
        f"{key.replace('_', ' ')} {_plain(estimate.params[key])}"
        for key in SHOWN_PARAMETERS
        if key in estimate.params
    ]
    if estimate.metric == "tpr_at_fpr":
        told = [f"FPR {100 * float(estimate.params['fpr'] or 0):g} %"]
    if estimate.metric in ("min_dcf", "act_dcf"):
        told = [_plain(estimate.params["p_target"])]
    unit = f" [{estimate.unit}]" if estimate.unit else ""
    return f"{name}{f' ({chr(44).join(told)})' if told else ''}{unit}"


def condition_label(name: str) -> str:
    """Heading of a condition's column."""
    return _CONDITIONS.get(name, name)


def cell(estimate: Estimate, *, interval: bool = True) -> str:
    """``33.20 [31.02, 35.91]``: the value and its interval in the same precision."""
    if isinstance(estimate.value, str):
        return estimate.value
    shown = shown_value(estimate.value, estimate.unit)
    if estimate.interval is None or math.isnan(estimate.interval.low) or not interval:
        return shown
    low, high = (
        shown_value(x, estimate.unit) for x in (estimate.interval.low, estimate.interval.high)
    )
    return f"{shown} [{low}, {high}]"


def shown_value(value: float, unit: str) -> str:
    """A number as tables show it: percent for fractions, fixed decimals by unit."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    scaled = 100 * value if unit == "%" else value
    text = f"{scaled:.{DIGITS.get(unit, 3)}f}"
    return text.replace("-", "−") if float(text) != 0 else text.lstrip("-")


def reasons(document: Document) -> list[str]:
    """Which numbers have no interval and why, in a sentence for each reason."""
    found: dict[str, list[str]] = {}
    for estimate in (e for rows in document.shown for row in rows for e in row.estimates):
        if estimate.no_interval:
            names = found.setdefault(estimate.no_interval, [])
            name = LABELS.get(estimate.metric, estimate.metric.replace("_", " "))
            names += [] if name in names else [name]
    return [f"No interval: {', '.join(names)} ({reason})." for reason, names in found.items()]


def _plain(value: Parameter) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Grid:
    """A table of strings: ``keys`` columns on the left are text, the others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int


def grid(rows: Sequence[Row]) -> Grid:
    """Conditions down and metrics across; the other way round for few rows of many metrics."""
    names = condition_names(rows)
    cells = [
        dict(zip(row.columns or map(label, row.estimates), map(cell, row.estimates), strict=True))
        for row in rows
    ]
    headings = _merged([list(found) for found in cells])
    lines = [
        tuple(row.conditions.get(name, "") for name in names)
        + tuple(found.get(heading, "") for heading in headings)
        for row, found in zip(rows, cells, strict=True)
    ]
    if len(headings) <= _METRICS_ACROSS or len(rows) > min(len(headings), _FEW_ROWS):
        return Grid((*names, *headings), tuple(lines), len(names))
    columns = [
        " ".join(value for value in line[: len(names)] if value) or "value" for line in lines
    ]
    turned = [
        (heading, *(line[len(names) + i] for line in lines)) for i, heading in enumerate(headings)
    ]
    return Grid(("metric", *columns), tuple(turned), 1)


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
    across = width or WIDTH
    parts = [_rich(part, across) for rows in document.shown for part in _split(grid(rows), across)]
    told = [
        *document.notes,
        *reasons(document),
        *(f"warning: {line}" for line in document.warnings),
    ]
    if width is not None:
        told = [textwrap.fill(line, max(width, 20), break_long_words=False) for line in told]
    return "\n".join([*parts, *told]) + "\n"


def _split(whole: Grid, width: int) -> list[Grid]:
    sizes = [size + _GAP for size in _sizes(whole)]
    fixed = sum(sizes[: whole.keys])
    parts: list[list[int]] = [[]]
    used = fixed
    for i in range(whole.keys, len(whole.header)):
        if parts[-1] and used + sizes[i] > width:
            parts.append([])
            used = fixed
        parts[-1].append(i)
        used += sizes[i]
    keys = list(range(whole.keys))
    return [
        Grid(
            tuple(whole.header[i] for i in keys + part),
            tuple(
                tuple(line[i] for i in keys + part)
                for line in whole.rows
                if len(parts) == 1 or any(line[i] for i in part)
            ),
            whole.keys,
        )
        for part in parts
    ]


def _rich(part: Grid, width: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    fits = _needed(part) <= width
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
    least = _needed(part, of_keys=10)
    Console(file=out, width=max(width, least), color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _needed(part: Grid, *, of_keys: int | None = None) -> int:
    """Columns that a table takes; text may be broken to columns ``of_keys`` wide."""
    sizes = _sizes(part)
    if of_keys is not None:
        sizes[: part.keys] = [min(size, of_keys) for size in sizes[: part.keys]]
    return sum(size + _GAP for size in sizes) - _GAP


def _sizes(whole: Grid) -> list[int]:
    """How wide each column is."""
    return [max(map(len, column)) for column in zip(whole.header, *whole.rows, strict=True)]


def markdown(document: Document) -> str:
    """A pipe table, numbers to the right."""

    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(_MARKDOWN.sub(r"\\\g<0>", one_line(v)) for v in values) + " |"

    parts = []
    for whole in map(grid, document.shown):
        rule = ["---" if i < whole.keys else "---:" for i in range(len(whole.header))]
        lines = (line(values) for values in (whole.header, rule, *whole.rows))
        parts.append("".join(f"{one}\n" for one in lines))
    warned = (f"Warning: {text}" for text in document.warnings)
    told = [*document.notes, *reasons(document), *warned]
    return "\n".join(parts) + "".join(f"\n{text}\n" for text in told)


_MARKDOWN = re.compile(r"\||<|\](?=\()")


_COLUMNS = (
    "metric", "value", "unit", "low", "high", "level", "no_interval", "chance", "threshold",
)  # fmt: skip


def comma_separated(document: Document) -> str:
    """One line per estimate in full precision: conditions, value, interval, counts, signature."""
    flat = [pair for row in document.rows for pair in row.of_estimates()]
    names = list(dict.fromkeys(name for conditions, _ in flat for name in conditions))
    counts = list(dict.fromkeys(n for _, e in flat for n in e.n))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    headings = (f"of_{name}" if name in _COLUMNS else name for name in names)
    writer.writerow([*headings, *_COLUMNS, *(f"n_{name}" for name in counts), "signature"])
    for conditions, e in flat:
        ends = (e.interval.low, e.interval.high, e.interval.level) if e.interval else ("",) * 3
        unit = machine_unit(e.unit)
        values = [e.metric, e.value, unit, *ends, e.no_interval, e.chance, e.threshold]
        writer.writerow(
            [
                *(no_formula(conditions.get(name, "")) for name in names),
                *map(number, values),
                *(e.n.get(name, "") for name in counts),
                e.signature,
            ]
        )
    return visible(out.getvalue())


def _json(document: Document) -> str:
    return document.to_json() + "\n"


def _latex(document: Document) -> str:
    from unmask.report.latex import latex

    return latex(document)


FORMATS: dict[str, Callable[[Document], str]] = {
    "text": text,
    "json": _json,
    "csv": comma_separated,
    "md": markdown,
    "latex": _latex,
}


def render(document: Document, format: str = "text", *, width: int | None = None) -> str:
    """The ``document`` in a ``format``: text, json, csv, md or latex; text as wide as ``width``."""
    if format not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}, found {format}")
    return text(document, width=width) if format == "text" else FORMATS[format](document)
