"""What protection costs: words, melody, quality and labels of protected speech."""

from unmask.utility.measuring import (
    COLUMNS,
    ORIGINAL,
    Measurements,
    case_study_utility,
    measure,
    read_measurements,
    write_measurements,
)
from unmask.utility.recognisers import Recogniser, recogniser, runs_code
from unmask.utility.result import METRICS, WEAK, Utility, unweighted_average_recall, utility_of
from unmask.utility.transcripts import read_labels, read_transcripts
from unmask.utility.words import Errors, normalised

__all__ = [
    "COLUMNS",
    "METRICS",
    "ORIGINAL",
    "WEAK",
    "Errors",
    "Measurements",
    "Recogniser",
    "Utility",
    "case_study_utility",
    "measure",
    "normalised",
    "read_labels",
    "read_measurements",
    "read_transcripts",
    "recogniser",
    "runs_code",
    "unweighted_average_recall",
    "utility_of",
    "write_measurements",
]
