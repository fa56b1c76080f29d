"""The document of a forensic validation."""

from __future__ import annotations

from unmask.engine import ForensicValidation
from unmask.report.documents import Document, Row, document
from unmask.report.documents.engine import counts

_AS_GIVEN = "The likelihood ratios are judged as the system gave them."
_CLASSES = {"target": "same-speaker", "nontarget": "different-speaker"}
_FORENSIC = (
    "C_llr below 1 bit is information; C_llr^cal is what calibration loses of it; devPAV is 0 where"
    " LRs mean what they say.",
    "LRs beyond the smallest and the largest one supported (ELUB) rest on no data.",
)


@document.register
def _(result: ForensicValidation) -> Document:
    """One row of all numbers, in the order of the consensus on validation (Morrison 2021)."""
    made = f"Calibration: {result.calibration}." if result.calibration else _AS_GIVEN
    notes = [*counts(result["cllr"], _CLASSES), made, *_FORENSIC]
    title = "Validation of likelihood ratios"
    return Document.of(result, [Row({}, result.estimates)], notes=notes, title=title)
