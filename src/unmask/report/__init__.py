"""From numbers to what people read: documents, tables, reports.

Documents and tables cost nothing but their own import; configs, charts and pages are imported when
a name of theirs is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unmask._extras import report_extra
from unmask.report.documents import (
    Document as Document,
    Row as Row,
    document as document,
    figures_of as figures_of,
    json_schema as json_schema,
)
from unmask.report.table import FORMATS as FORMATS, render as render

if TYPE_CHECKING:
    from unmask.report.assessment import (
        Assessment as Assessment,
        assess as assess,
        check_inputs as check_inputs,
    )
    from unmask.report.cache import (
        Kept as Kept,
        Listener as Listener,
        kept_assessments as kept_assessments,
    )
    from unmask.report.config import Config as Config, config_schema as config_schema
    from unmask.report.frameworks.legal import legal_attackers as legal_attackers
    from unmask.report.starter import demo_config as demo_config, starter_config as starter_config
    from unmask.report.toml import check_config as check_config, load_config as load_config
    from unmask.report.writing import summary_table as summary_table, write_report as write_report

_HOMES = {
    "assessment": ("Assessment", "assess", "check_inputs"),
    "cache": ("Kept", "Listener", "kept_assessments"),
    "config": ("Config", "config_schema"),
    "frameworks.legal": ("legal_attackers",),
    "starter": ("demo_config", "starter_config"),
    "toml": ("check_config", "load_config"),
    "writing": ("summary_table", "write_report"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            with report_extra():
                return getattr(import_module(f"unmask.report.{home}"), name)
    raise AttributeError(f"module 'unmask.report' has no attribute {name!r}")
