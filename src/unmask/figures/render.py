"""A Vega-Lite specification drawn as SVG, without a browser and without a network."""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def rendered(spec: dict[str, Any]) -> str:
    """The chart as SVG."""
    drawing: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    return drawing
