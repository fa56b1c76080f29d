"""The frameworks of an assessment, in the order of the report: one module and one line each."""

from unmask.report.frameworks import cpmap, legal, similarity, verification, worst_case, zebra

FRAMEWORKS = (
    legal.FRAMEWORK,
    similarity.FRAMEWORK,
    zebra.FRAMEWORK,
    verification.FRAMEWORK,
    cpmap.FRAMEWORK,
    worst_case.FRAMEWORK,
)

__all__ = ["FRAMEWORKS"]
