"""What comes in: trials, scores and embeddings, one reader per file format."""

from unmask.trials.duplicates import OnProblem
from unmask.trials.embedding_reading import (
    SPEAKERS,
    UTTERANCES,
    VECTORS,
    holds_embeddings,
    read_embeddings,
)
from unmask.trials.embedding_writing import write_embeddings
from unmask.trials.embeddings import Embeddings
from unmask.trials.files import Input
from unmask.trials.formats import FORMATS, format_named
from unmask.trials.header import normalise
from unmask.trials.ids import Ids, lookup, share, text_ids
from unmask.trials.join import codes_like, match
from unmask.trials.kaldi import check_archive_folder
from unmask.trials.kaldi_archive import encode
from unmask.trials.labels import NONTARGET, TARGET
from unmask.trials.merging import merge_systems
from unmask.trials.messages import two_speakers
from unmask.trials.reading import read_any, read_key, read_scores
from unmask.trials.registry import Format
from unmask.trials.scores import Scores
from unmask.trials.source import Source
from unmask.trials.speakers import Speakers, assign, speaker_rule
from unmask.trials.spooled import Fraction, within
from unmask.trials.streamed_scores import ScoreBatch, StreamedScores
from unmask.trials.streaming import is_large
from unmask.trials.trial_list import TrialList, Trials
from unmask.trials.writing import write_key, write_scores

__all__ = [
    "FORMATS",
    "NONTARGET",
    "SPEAKERS",
    "TARGET",
    "UTTERANCES",
    "VECTORS",
    "Embeddings",
    "Format",
    "Fraction",
    "Ids",
    "Input",
    "OnProblem",
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
    "encode",
    "format_named",
    "holds_embeddings",
    "is_large",
    "lookup",
    "match",
    "merge_systems",
    "normalise",
    "read_any",
    "read_embeddings",
    "read_key",
    "read_scores",
    "share",
    "speaker_rule",
    "text_ids",
    "two_speakers",
    "within",
    "write_embeddings",
    "write_key",
    "write_scores",
]
