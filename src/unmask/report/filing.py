"""The filing copy: two pages to read and an annex, on A4, with nothing that needs a screen."""

from __future__ import annotations

import base64
import datetime
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from markupsafe import Markup

from unmask._version import __version__
from unmask.figures import Figure, svg
from unmask.report.assessment import Assessment
from unmask.report.html import View, template_part
from unmask.report.section import Choice, Section

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SECONDS = 180
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:(\d{14})")


def filing_html(assessment: Assessment) -> str:
    """The filing copy as one page for the printer."""
    date = assessment.date
    return View(assessment).render(
        "filing.html.j2",
        policy=POLICY,
        style=Markup(template_part("filing.css")),
        running=Markup(_css_string(assessment.config.title)),
        dated=Markup(_css_string(f"unmask {__version__}{f', {date}' if date else ''}")),
        figures_of=first_figures,
        picture=picture,
    )


def first_figures(section: Section) -> list[Figure]:
    """What the report shows at once: the first figure, or all of the first choice."""
    return [
        figure
        for part in section.figures[:1]
        for figure in ([f for _, f in part.figures] if isinstance(part, Choice) else [part])
    ]


def picture(figure: Figure) -> Markup:
    """The figure, with title and caption, as an image that loads nothing."""
    data = base64.b64encode(svg(figure).encode()).decode()
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, figure.title)


def _css_string(text: str) -> str:
    """Text as a string of a style sheet, whatever characters it holds."""
    return (
        '"' + "".join(c if c.isalnum() and c.isascii() else f"\\{ord(c):06x}" for c in text) + '"'
    )


def browser() -> str | None:
    """A Chromium that prints, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def print_pdf(page: Path, pdf: Path, *, date: str | None) -> bool:
    """Print ``page`` into ``pdf`` where there is a Chromium; ``date`` is its date, or none."""
    command = browser()
    if command is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={profile}",
            f"--print-to-pdf={pdf}",
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        ]
        try:
            subprocess.run(
                [command, *options, page.resolve().as_uri()],
                check=True,
                capture_output=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.SubprocessError):
            pdf.unlink(missing_ok=True)
            return False
    if not pdf.is_file():
        return False
    pdf.write_bytes(_dated(pdf.read_bytes(), date))
    return True


def _dated(content: bytes, date: str | None) -> bytes:
    """The same document, made at ``date`` or at no time in particular."""
    try:
        day = datetime.date.fromisoformat(date or "")
    except ValueError:
        day = datetime.date(1970, 1, 1)
    stamp = day.strftime("%Y%m%d000000").encode()
    return _DATES.sub(lambda match: b"/" + match[1] + b" (D:" + stamp, content)
