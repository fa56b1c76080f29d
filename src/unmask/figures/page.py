"""A figure as one offline HTML page, and its parts for pages that hold several figures."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import vl_convert

from unmask.figures.figure import VEGA_LITE, Figure
from unmask.figures.theme import NIGHT, PAPER

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)

STYLE = f"""
figure.chart {{ margin: 0 0 2rem; display: flex; flex-wrap: wrap; gap: .7rem 1.4rem; }}
figure.chart > .drawing {{ background: {PAPER}; border-radius: 6px; padding: 12px;
  box-sizing: border-box; max-width: 100%; min-height: 12rem; overflow: hidden; }}
figure.chart canvas {{ max-width: 100%; height: auto !important; }}
figure.chart figcaption {{ flex: 1 1 15rem; max-width: 44rem; font-size: .92rem; line-height: 1.5;
  overflow-wrap: anywhere; }}
@media (prefers-color-scheme: dark) {{ figure.chart > .drawing {{ background: {NIGHT[PAPER]}; }} }}
@media print {{ figure.chart > .drawing {{ background: {PAPER}; }}
  figure.chart > [data-drawn=night] canvas {{ filter: invert(1) hue-rotate(180deg); }} }}
"""

_PAGE_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #111827; --muted: #4b5563; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e5e7eb; --muted: #b6bcc6; } }
body { margin: 0 auto; padding: 1.2rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font-family: system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 1.2rem; line-height: 1.35; margin: 0 0 1rem; overflow-wrap: anywhere; }
figcaption { color: var(--muted); }
"""


@cache
def javascript() -> str:
    """Everything that draws charts, to be inlined once per page; then call ``unmaskDraw()``."""
    script = resources.files("unmask.figures").joinpath("page.js").read_text(encoding="utf-8")
    snippet = script.replace("NIGHT", json.dumps(dict(NIGHT)))
    bundle: str = vl_convert.javascript_bundle(snippet, vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def script_json(value: Any) -> str:
    """JSON that can stand inside a ``script`` element whatever the strings in it hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def fragment(figure: Figure) -> str:
    """The figure as a ``figure`` element; the page around it holds ``STYLE`` and ``javascript``."""
    return (
        f'<figure class="chart" id="{escape(figure.name)}">\n'
        f'<div class="drawing" role="img" aria-label="{escape(figure.title)}"></div>\n'
        f'<script type="application/json">{script_json(figure.spec())}</script>\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
    )


def page(figure: Figure) -> str:
    """One self-contained page that loads nothing, which its content security policy enforces."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(figure.title)}</title>\n<style>{_PAGE_STYLE}{STYLE}</style>\n"
        f"</head>\n<body>\n<h1>{escape(figure.title)}</h1>\n{fragment(figure)}"
        f'<script type="module">{javascript()}\nwindow.unmaskDraw();</script>\n</body>\n</html>\n'
    )
