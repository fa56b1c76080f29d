"""What protection costs: words, melody, quality and labels of protected speech."""

from unmask.speech import Recogniser, normalised, recogniser, runs_code
from unmask.utility.measuring import COLUMNS, ORIGINAL, Measurements, case_study_utility, measure
from unmask.utility.measuring import read_measurements, write_measurements
from unmask.utility.result import METRICS, WEAK, Utility, utility_of
from unmask.utility.words import Errors, characters_apart, errors, read_labels, read_transcripts
from unmask.utility.words import read_words
