"""From numbers to what people read: documents, tables, JSON."""

from unmask.report.cpmap import document_of_cp_maps, render_cp_maps
from unmask.report.detection import document_of_comparison, document_of_evaluation
from unmask.report.document import Document, Row, json_schema
from unmask.report.privacy import document_of_privacy
from unmask.report.table import FORMATS, render

__all__ = [
    "FORMATS",
    "Document",
    "Row",
    "document_of_comparison",
    "document_of_cp_maps",
    "document_of_evaluation",
    "document_of_privacy",
    "json_schema",
    "render",
    "render_cp_maps",
]
