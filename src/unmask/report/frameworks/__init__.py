"""The frameworks of an assessment, in the order of the report: one module and one line each."""

from unmask.report.frameworks.cpmap import FRAMEWORK as CP_MAPS
from unmask.report.frameworks.legal import FRAMEWORK as LEGAL
from unmask.report.frameworks.similarity import FRAMEWORK as SIMILARITY
from unmask.report.frameworks.trust import FRAMEWORK as TRUST
from unmask.report.frameworks.utility import FRAMEWORK as UTILITY
from unmask.report.frameworks.verification import FRAMEWORK as VERIFICATION
from unmask.report.frameworks.worst_case import FRAMEWORK as WORST_CASE
from unmask.report.frameworks.zebra import FRAMEWORK as ZEBRA

FRAMEWORKS = (LEGAL, TRUST, SIMILARITY, ZEBRA, VERIFICATION, CP_MAPS, WORST_CASE, UTILITY)
