"""What comes in: trials, scores and embeddings, one reader per file format."""

from unmask.trials.embeddings import Embeddings
from unmask.trials.ids import Ids
from unmask.trials.merging import merge_systems
from unmask.trials.reading import read_key, read_scores
from unmask.trials.scores import Scores
from unmask.trials.source import Source
from unmask.trials.trial_list import Trials

__all__ = [
    "Embeddings",
    "Ids",
    "Scores",
    "Source",
    "Trials",
    "merge_systems",
    "read_key",
    "read_scores",
]
