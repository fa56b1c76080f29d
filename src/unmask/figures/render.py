"""A Vega-Lite specification drawn as SVG, without a browser and without a network."""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from unmask.base import visible

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def rendered(spec: dict[str, Any]) -> str:
    """The chart as SVG."""
    drawing: str = vl_convert.vegalite_to_svg(
        shown(spec), vl_version=VEGA_LITE, allowed_base_urls=[]
    )
    return drawing


def shown(value: Any) -> Any:
    """The same specification, its names without characters that end the renderer."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {shown(name): shown(part) for name, part in value.items()}
    return [shown(part) for part in value] if isinstance(value, list) else value
