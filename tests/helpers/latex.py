"""Documents through LaTeX."""

import shutil
import subprocess

from unmask.report import render

PAPER = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs}
\setlength{\textwidth}{504pt}
\begin{document}
%s
\end{document}
"""


def has_tex():
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return False
    return subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode == 0


def compiled(made, tmp_path):
    """The document goes through LaTeX, and nothing stands over the edge."""
    (tmp_path / "made.tex").write_text(render(made, "latex"), encoding="utf-8")
    compiled_file(tmp_path / "made.tex", tmp_path)


def compiled_file(path, tmp_path):
    """The tables of a file go through LaTeX, and nothing stands over the edge."""
    (tmp_path / "t.tex").write_text(PAPER % path.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout, [
        line for line in done.stdout.splitlines() if "Overfull" in line
    ]
