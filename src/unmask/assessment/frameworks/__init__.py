"""Steps of the frameworks of an assessment, in the order of the report: one module each."""

from unmask.assessment.frameworks.cpmap import FRAMEWORK as CP_MAPS
from unmask.assessment.frameworks.legal import FRAMEWORK as LEGAL, RECORDS
from unmask.assessment.frameworks.similarity import FRAMEWORK as SIMILARITY
from unmask.assessment.frameworks.trust import FRAMEWORK as TRUST, Trusted
from unmask.assessment.frameworks.utility import FRAMEWORK as COSTS, UTILITY
from unmask.assessment.frameworks.verification import FRAMEWORK as VERIFICATION
from unmask.assessment.frameworks.worst_case import FRAMEWORK as WORST_CASE, Growth, SystemGrowth
from unmask.assessment.frameworks.worst_case import by_table
from unmask.assessment.frameworks.zebra import FRAMEWORK as ZEBRA, LEARNT

FRAMEWORKS = (LEGAL, TRUST, SIMILARITY, ZEBRA, VERIFICATION, CP_MAPS, WORST_CASE, COSTS)
