"""From numbers to what people read: documents, tables, reports.

Documents and tables cost nothing but their own import; charts and pages are imported when a name of
theirs is first used.
"""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.report.assessment import Assessment, check_inputs, run_assessment
    from unmask.report.documents import Document, Row, document, figures_of, json_schema
    from unmask.report.table import FORMATS, render
    from unmask.report.case import CaseRecord
    from unmask.report.writing import assess, check_report_folder, report_folder, summary_table
    from unmask.report.writing import write_inside, write_page, write_report

open_door(__name__)
