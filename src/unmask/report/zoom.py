"""Zoom and move for charts of one panel with two continuous axes."""

from __future__ import annotations

from typing import Any

HINT = "Ctrl and wheel: zoom. Shift and drag: move. Double click: back."
_MOVE = "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!"
_ZOOM = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "encodings": ["x", "y"],
        "on": _MOVE,
        "translate": _MOVE,
        "zoom": "wheel![event.ctrlKey]",
    },
    "bind": "scales",
}


def zoomable(spec: dict[str, Any]) -> dict[str, Any] | None:
    """The specification with zoom, or None where the chart is not of that kind."""
    layers = spec.get("layer")
    if not layers or "params" in spec or any("params" in layer for layer in layers):
        return None
    place = next((i for i, layer in enumerate(layers) if _continuous(layer)), None)
    if place is None or not all(_plain(layer) for layer in layers):
        return None
    made = [_clipped(layer) for layer in layers]
    made[place] = {**made[place], "params": [_ZOOM]}
    return {**spec, "layer": made}


def _plain(layer: dict[str, Any]) -> bool:
    return "mark" in layer


def _continuous(layer: dict[str, Any]) -> bool:
    axes = [layer.get("encoding", {}).get(axis, {}) for axis in ("x", "y")]
    return all(axis.get("type") == "quantitative" and "field" in axis for axis in axes)


def _clipped(layer: dict[str, Any]) -> dict[str, Any]:
    mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
    if mark["type"] == "text":
        return layer
    return {**layer, "mark": {**mark, "clip": True}}
