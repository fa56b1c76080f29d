"""Sections of the frameworks of an assessment, each made from the results of its steps."""

from unmask.report.frameworks.cpmap import section as _cp_maps
from unmask.report.frameworks.legal import section as _legal
from unmask.report.frameworks.similarity import section as _similarity
from unmask.report.frameworks.trust import section as _trust
from unmask.report.frameworks.utility import section as _utility
from unmask.report.frameworks.verification import section as _verification
from unmask.report.frameworks.worst_case import section as _worst_case
from unmask.report.frameworks.zebra import section as _zebra

SECTIONS = {
    "legal": _legal,
    "trust": _trust,
    "similarity": _similarity,
    "zebra": _zebra,
    "verification": _verification,
    "cpmap": _cp_maps,
    "worst_case": _worst_case,
    "utility": _utility,
}
