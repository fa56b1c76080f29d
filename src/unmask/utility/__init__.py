"""What protection costs: words, melody, quality and labels of protected speech."""

from unmask.utility.measuring import (
    COLUMNS as COLUMNS,
    ORIGINAL as ORIGINAL,
    Measurements as Measurements,
    case_study_utility as case_study_utility,
    measure as measure,
    read_measurements as read_measurements,
    write_measurements as write_measurements,
)
from unmask.utility.result import (
    METRICS as METRICS,
    WEAK as WEAK,
    Utility as Utility,
    utility_of as utility_of,
)
from unmask.utility.words import (
    Errors as Errors,
    Recogniser as Recogniser,
    normalised as normalised,
    read_labels as read_labels,
    read_transcripts as read_transcripts,
    recogniser as recogniser,
    runs_code as runs_code,
)
