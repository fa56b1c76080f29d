"""What comes in: trials, scores and embeddings, one reader per file format."""

from unmask.trials.embedding_reading import read_embeddings
from unmask.trials.embedding_writing import write_embeddings
from unmask.trials.embeddings import Embeddings
from unmask.trials.formats import FORMATS, format_named
from unmask.trials.ids import Ids
from unmask.trials.merging import merge_systems
from unmask.trials.reading import read_any, read_key, read_scores
from unmask.trials.registry import Format
from unmask.trials.scores import Scores
from unmask.trials.source import Source
from unmask.trials.trial_list import Trials
from unmask.trials.writing import write_key, write_scores

__all__ = [
    "FORMATS",
    "Embeddings",
    "Format",
    "Ids",
    "Scores",
    "Source",
    "Trials",
    "format_named",
    "merge_systems",
    "read_any",
    "read_embeddings",
    "read_key",
    "read_scores",
    "write_embeddings",
    "write_key",
    "write_scores",
]
