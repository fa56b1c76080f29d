"""From numbers to what people read: documents, tables, JSON."""

from unmask.report.config import Config, config_schema, load_config
from unmask.report.cpmap import document_of_cp_maps, render_cp_maps
from unmask.report.detection import document_of_comparison, document_of_evaluation
from unmask.report.document import Document, Row, json_schema
from unmask.report.privacy import document_of_privacy
from unmask.report.starter import starter_config
from unmask.report.table import FORMATS, render

__all__ = [
    "FORMATS",
    "Config",
    "Document",
    "Row",
    "config_schema",
    "document_of_comparison",
    "document_of_cp_maps",
    "document_of_evaluation",
    "document_of_privacy",
    "json_schema",
    "load_config",
    "render",
    "render_cp_maps",
    "starter_config",
]
