"""From numbers to what people read: documents, tables, reports.

Documents and tables cost nothing but their own import; configs, charts and pages are imported when
a name of theirs is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unmask.report.documents import Document, Row, document, figures_of, json_schema
from unmask.report.table import FORMATS, render

if TYPE_CHECKING:
    from unmask.report.assessment import Assessment, assess
    from unmask.report.cache import Told
    from unmask.report.config import Config, check_config, config_schema, load_config
    from unmask.report.frameworks.legal import legal_attackers
    from unmask.report.inputs import check_inputs
    from unmask.report.starter import demo_config, starter_config
    from unmask.report.writing import summary_table, write_report

_HOMES = {
    "assessment": ("Assessment", "assess"),
    "cache": ("Told",),
    "config": ("Config", "check_config", "config_schema", "load_config"),
    "frameworks.legal": ("legal_attackers",),
    "inputs": ("check_inputs",),
    "starter": ("demo_config", "starter_config"),
    "writing": ("summary_table", "write_report"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"unmask.report.{home}"), name)
    raise AttributeError(f"module 'unmask.report' has no attribute {name!r}")


__all__ = [
    "FORMATS",
    "Assessment",
    "Config",
    "Document",
    "Row",
    "Told",
    "assess",
    "check_config",
    "check_inputs",
    "config_schema",
    "demo_config",
    "document",
    "figures_of",
    "json_schema",
    "legal_attackers",
    "load_config",
    "render",
    "starter_config",
    "summary_table",
    "write_report",
]
