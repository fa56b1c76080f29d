"""A figure as one offline HTML page, and its parts for pages that hold several figures."""

from __future__ import annotations

import json
from functools import cache
from html import escape
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

_REST = 1500
"""Milliseconds before charts out of sight are drawn."""

_PAGE_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #111827; --muted: #4b5563; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e5e7eb; --muted: #b6bcc6; } }
body { margin: 0 auto; padding: 1.2rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font-family: system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 1.2rem; line-height: 1.35; margin: 0 0 1rem; overflow-wrap: anywhere; }
figcaption { color: var(--muted); }
"""

# A chart is drawn when it comes near the screen; those that nobody saw yet are drawn when there is
# nothing else to do, so that a printer gets them. Where the drawing is wider than its place,
# legends go below, panels into fewer columns and what is still too wide shrinks; then it is drawn
# again: letters keep their size and the pointer still hits what it points at. Where there is room,
# panels but squares grow wider.
_SNIPPET = """
const night = matchMedia("(prefers-color-scheme: dark)");
const inNight = NIGHT;
const recoloured = (node) => {
  if (typeof node === "string") return inNight[node] ?? node;
  if (Array.isArray(node)) return node.map(recoloured);
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) =>
    [key, key === "datasets" || key === "values" ? value : recoloured(value)]));
};
const inside = ["spec", "layer", "hconcat", "vconcat", "concat"];
const square = (node) => {
  if (Array.isArray(node)) return node.some(square);
  if (Math.abs(node.width - node.height) < 0.2 * node.width) return true;
  return inside.some((key) => key in node && square(node[key]));
};
const fitted = (node, fit) => {
  if (Array.isArray(node)) return node.map((child) => fitted(child, fit));
  if (node === null || typeof node !== "object") return node;
  const copy = { ...node };
  if (typeof copy.columns === "number")
    copy.columns = Math.max(1, Math.floor(copy.columns * fit.columns));
  if (typeof copy.width === "number") copy.width = Math.max(40, Math.floor(copy.width * fit.x));
  if (typeof copy.height === "number") copy.height = Math.max(40, Math.floor(copy.height * fit.y));
  if (fit.narrow && copy.encoding)
    copy.encoding = Object.fromEntries(Object.entries(copy.encoding).map(([name, channel]) =>
      [name, channel.legend ? { ...channel, legend: { ...channel.legend, orient: "bottom",
        direction: channel.legend.gradientLength ? "horizontal" : "vertical", columns: 1,
        labelLimit: fit.narrow - 60, titleLimit: fit.narrow - 20 } } : channel]));
  for (const key of inside) if (key in copy) copy[key] = fitted(copy[key], fit);
  return copy;
};
const below = { legend: { orient: "bottom", direction: "vertical", columns: 1,
  layout: { bottom: { direction: "vertical", anchor: "start" } } } };
const draw = async (figure) => {
  const plain = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const spec = night.matches ? recoloured(plain) : plain;
  const place = figure.querySelector(".drawing");
  const room = figure.clientWidth - 24;
  const options = { mode: "vega-lite", renderer: "canvas", actions: false };
  const fit = { columns: 1, x: 1, y: 1 };
  const wide = room > 800 ? room - 260 : room;
  for (let turn = 0; turn < 5; turn += 1) {
    if (figure.drawing) figure.drawing.finalize();
    figure.drawing = await vegaEmbed(place, fitted(spec, fit), options);
    const drawn = place.querySelector("canvas").width / (window.devicePixelRatio || 1);
    if (room <= 0) break;
    if (drawn <= room + 1) {
      if (turn > 0 || square(spec) || drawn > 0.95 * wide) break;
      fit.x = Math.min(wide / drawn, 1.6);
    } else if (fit.narrow === undefined) {
      options.config = below;
      fit.narrow = room;
      fit.x = 1;
      fit.columns = room / drawn;
    } else {
      fit.x *= room / drawn;
      fit.y = Math.max(fit.x, 0.7);
    }
  }
  place.setAttribute("data-drawn", night.matches ? "night" : "day");
};
const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (!entry.isIntersecting) return;
  near.unobserve(entry.target);
  draw(entry.target);
}), { rootMargin: "300px 0px" });
const figures = () => [...document.querySelectorAll("figure.chart")];
window.unmaskDraw = () => figures().forEach((figure) => {
  near.unobserve(figure);
  near.observe(figure);
});
night.addEventListener("change", window.unmaskDraw);
let known = window.innerWidth;
let pending;
window.addEventListener("resize", () => {
  if (window.innerWidth === known) return;
  known = window.innerWidth;
  clearTimeout(pending);
  pending = setTimeout(window.unmaskDraw, 200);
});
const idle = window.requestIdleCallback ?? ((next) => setTimeout(next, 50));
const rest = async () => {
  const figure = figures().find((one) => !one.querySelector("canvas"));
  if (figure === undefined) return;
  await draw(figure);
  idle(rest);
};
setTimeout(() => idle(rest), REST);
"""


@cache
def javascript() -> str:
    """Everything that draws charts, to be inlined once per page; then call ``unmaskDraw()``."""
    snippet = _SNIPPET.replace("NIGHT", json.dumps(dict(NIGHT))).replace("REST", str(_REST))
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
