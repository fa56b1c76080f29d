"""A figure as one offline HTML page, and its parts for pages that hold several figures."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from typing import Any

import vl_convert

from unmask.figures.figure import VEGA_LITE, Figure
from unmask.figures.theme import PAPER

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)

STYLE = f"""
figure.chart {{ margin: 0 0 2rem; }}
figure.chart > .drawing {{ background: {PAPER}; border-radius: 6px; padding: 12px;
  box-sizing: border-box; max-width: 100%; width: fit-content; overflow: hidden; }}
figure.chart canvas {{ max-width: 100%; height: auto !important; }}
figure.chart figcaption {{ max-width: 44rem; margin-top: .7rem; font-size: .92rem;
  line-height: 1.5; overflow-wrap: anywhere; }}
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

# Where the drawing is wider than its place, legends go below, panels into fewer columns and what is
# still too wide shrinks; then it is drawn again: letters keep their size and the pointer still hits
# what it points at.
_SNIPPET = """
const fitted = (node, columns, factor) => {
  if (Array.isArray(node)) return node.map((child) => fitted(child, columns, factor));
  if (node === null || typeof node !== "object") return node;
  const copy = { ...node };
  if (typeof copy.columns === "number")
    copy.columns = Math.max(1, Math.floor(copy.columns * columns));
  for (const key of ["width", "height"])
    if (typeof copy[key] === "number") copy[key] = Math.max(40, Math.floor(copy[key] * factor));
  for (const key of ["spec", "layer", "hconcat", "vconcat", "concat"])
    if (key in copy) copy[key] = fitted(copy[key], columns, factor);
  return copy;
};
const below = { legend: { orient: "bottom", direction: "vertical", columns: 1,
  layout: { bottom: { direction: "vertical", anchor: "start" } } } };
const draw = async (figure) => {
  const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const place = figure.querySelector(".drawing");
  const room = figure.clientWidth - 24;
  const options = { mode: "vega-lite", renderer: "canvas", actions: false };
  let columns = 1;
  let factor = 1;
  for (let turn = 0; turn < 5; turn += 1) {
    if (figure.drawing) figure.drawing.finalize();
    figure.drawing = await vegaEmbed(place, fitted(spec, columns, factor), options);
    const drawn = place.querySelector("canvas").width / (window.devicePixelRatio || 1);
    if (room <= 0 || drawn <= room + 1) break;
    if (turn === 0) {
      options.config = below;
      columns = room / drawn;
    } else factor *= room / drawn;
  }
};
window.unmaskDraw = () => document.querySelectorAll("figure.chart").forEach((f) => draw(f));
window.vegaEmbed = vegaEmbed;
let known = window.innerWidth;
let pending;
window.addEventListener("resize", () => {
  if (window.innerWidth === known) return;
  known = window.innerWidth;
  clearTimeout(pending);
  pending = setTimeout(window.unmaskDraw, 200);
});
"""


@cache
def javascript() -> str:
    """Everything that draws charts, to be inlined once per page; then call ``unmaskDraw()``."""
    bundle: str = vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGA_LITE)
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
