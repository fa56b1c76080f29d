"""Tables for papers: LaTeX with the symbols of the papers, a caption, a label, booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmask.base import one_line
from unmask.report.documents import Document
from unmask.report.table import Grid, grid, reasons

_SYMBOL = re.compile(r"\b(D_ECE|C_ECE|C_llr|D_sys|G_VD|D_diag|l_w)(\^min)?(?![A-Za-z_])")
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "−": "$-$", "∞": r"$\infty$", "′": "$'$", "×": r"$\times$", "·": r"$\cdot$",
    "τ": r"$\tau$", "Δ": r"$\Delta$", "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$",
    "→": r"$\rightarrow$", "…": r"\dots{}", "–": "--",
    **{digit: f"$_{number}$" for number, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{digit: f"$^{number}$" for number, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}  # fmt: skip
_INTERVAL = re.compile(r"(.+?) (\[[^\[\]]+, [^\[\]]+\])")
_STACKED = 3


def latex(document: Document) -> str:
    """A ``table`` with caption and label, to paste into a paper that loads booktabs.

    Where more than three columns of numbers have intervals, these stand below their values, and the
    table spans both columns of a page (``table*``). What to be careful about follows as comments.
    """
    grids = [grid(rows) for rows in document.shown]
    wide = any(map(_is_wide, grids))
    name = "table*" if wide else "table"
    caption = " ".join(f"{part.rstrip('.')}." for part in (document.title, *document.notes) if part)
    lines = [
        rf"\begin{{{name}}}",
        r"\centering",
        *([r"\footnotesize\setlength{\tabcolsep}{3pt}"] if wide else []),
        *([rf"\caption{{{escaped(caption)}}}"] if caption else []),
        rf"\label{{tab:{_slug(document.title) or 'unmask'}}}",
        "\n\\par\\medskip\n".join(map(_tabular, grids)),
        rf"\end{{{name}}}",
        *(f"% {one_line(said)}" for said in (*reasons(document), *document.warnings)),
    ]
    return "\n".join(lines) + "\n"


def _tabular(whole: Grid) -> str:
    stacked = _is_wide(whole)
    columns = "l" * whole.keys + "r" * (len(whole.header) - whole.keys)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([escaped(value) for value in whole.header]),
        r"\midrule",
        *(_line([_cell(v, stacked) for v in row]) for row in whole.rows),
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
        parts += [_plain(line[end : match.start()]), f"${name}_{low}{high}$"]
        end = match.end()
    return "".join([*parts, _plain(line[end:])])


def _plain(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def _cell(value: str, stacked: bool) -> str:
    found = _INTERVAL.fullmatch(value) if stacked else None
    if found is None:
        return escaped(value)
    return rf"\shortstack{{{escaped(found[1])}\\{{\tiny {escaped(found[2])}}}}}"


def _line(cells: Sequence[str]) -> str:
    """Cells of a row; a bracket that would be read as an option of the row before is kept apart."""
    line = " & ".join(cells) + r" \\"
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


def _is_wide(whole: Grid) -> bool:
    """Whether more columns have intervals than fit beside their values."""
    numbers = list(zip(*whole.rows, strict=True))[whole.keys :]
    return sum(any(map(_INTERVAL.fullmatch, column)) for column in numbers) > _STACKED


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
