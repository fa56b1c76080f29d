"""From numbers to what people read: documents, tables, JSON."""

from unmask.report.cache import Told
from unmask.report.config import Config, config_schema, load_config
from unmask.report.cpmap import document_of_cp_maps, render_cp_maps
from unmask.report.cpmap_figures import cp_figures
from unmask.report.demo import demo_config
from unmask.report.detection import document_of_comparison, document_of_evaluation
from unmask.report.detection_figures import counted_figures
from unmask.report.document import Document, Row, json_schema
from unmask.report.frameworks.legal import legal_attackers
from unmask.report.legal import document_of_legal
from unmask.report.privacy import document_of_privacy
from unmask.report.starter import starter_config
from unmask.report.summary import summary_table
from unmask.report.table import FORMATS, render
from unmask.report.worst_case import document_of_models, document_of_worst_case
from unmask.report.writing import write_report

__all__ = [
    "FORMATS",
    "Config",
    "Document",
    "Row",
    "Told",
    "config_schema",
    "counted_figures",
    "cp_figures",
    "demo_config",
    "document_of_comparison",
    "document_of_cp_maps",
    "document_of_evaluation",
    "document_of_legal",
    "document_of_models",
    "document_of_privacy",
    "document_of_worst_case",
    "json_schema",
    "legal_attackers",
    "load_config",
    "render",
    "render_cp_maps",
    "starter_config",
    "summary_table",
    "write_report",
]
