"""What comes in: trials, scores and embeddings, one reader per file format."""

from unmask.trials.embeddings import Embeddings
from unmask.trials.formats import FORMATS
from unmask.trials.ids import Ids, lookup, share, text_ids
from unmask.trials.join import codes_like, match
from unmask.trials.large import ScoreBatch, StreamedScores, is_large, streamed_scores
from unmask.trials.problems import two_speakers
from unmask.trials.readers.detect import normalise
from unmask.trials.readers.files import Input
from unmask.trials.readers.kaldi import check_archive_folder
from unmask.trials.readers.parquet import ParquetFile
from unmask.trials.reading import (
    SPEAKERS,
    UTTERANCES,
    VECTORS,
    holds_embeddings,
    read_any,
    read_embeddings,
    read_key,
    read_scores,
)
from unmask.trials.scores import Scores
from unmask.trials.source import Source
from unmask.trials.speakers import Speakers, assign, read_speakers, speaker_rule
from unmask.trials.trial_list import NONTARGET, TARGET, OnProblem, TrialList, Trials
from unmask.trials.writing import embedding_format, write

__all__ = [
    "FORMATS",
    "NONTARGET",
    "SPEAKERS",
    "TARGET",
    "UTTERANCES",
    "VECTORS",
    "Embeddings",
    "Ids",
    "Input",
    "OnProblem",
    "ParquetFile",
    "ScoreBatch",
    "Scores",
    "Source",
    "Speakers",
    "StreamedScores",
    "TrialList",
    "Trials",
    "assign",
    "check_archive_folder",
    "codes_like",
    "embedding_format",
    "holds_embeddings",
    "is_large",
    "lookup",
    "match",
    "normalise",
    "read_any",
    "read_embeddings",
    "read_key",
    "read_scores",
    "read_speakers",
    "share",
    "speaker_rule",
    "streamed_scores",
    "text_ids",
    "two_speakers",
    "write",
]
