"""What comes in: trials, scores and embeddings, one reader per file format."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.trials.embeddings import SLICE, Contents, Embeddings, joined_embeddings
    from unmask.trials.embeddings import refuse_encoders, refuse_repeated, short_encoder
    from unmask.trials.formats import FORMATS, NONTARGET, OTHER, TARGET, OnProblem, Sound, Source
    from unmask.trials.formats import Units, natural
    from unmask.trials.ids import Ids, lookup, match, refuse_twins, share, text_ids, trial_codes
    from unmask.trials.making import MadeTrials, make_trials
    from unmask.trials.large import ScoreBatch, StreamedScores, is_large, streamed_scores
    from unmask.trials.problems import two_speakers
    from unmask.trials.readers.detect import embedding_columns
    from unmask.trials.readers.files import Input
    from unmask.trials.readers.guard import ParquetFile
    from unmask.trials.readers.kaldi import check_archive_folder
    from unmask.trials.reading import holds_embeddings, is_frame, read_any, read_embeddings
    from unmask.trials.reading import read_key, read_scores, read_trials
    from unmask.trials.slices import EmbeddingFile, open_embeddings
    from unmask.trials.speakers import Speakers, assign, read_speakers, speaker_rule
    from unmask.trials.trial_list import Scores, TrialList, Trials
    from unmask.trials.writing import embedding_format, score_format, write

open_door(__name__)
