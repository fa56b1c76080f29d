"""What comes in: trials, scores and embeddings, one reader per file format."""

from unmask.trials.embeddings import Embeddings as Embeddings, refuse_repeated as refuse_repeated
from unmask.trials.formats import FORMATS as FORMATS
from unmask.trials.ids import (
    Ids as Ids,
    lookup as lookup,
    match as match,
    share as share,
    text_ids as text_ids,
    trial_codes as trial_codes,
)
from unmask.trials.large import (
    ScoreBatch as ScoreBatch,
    StreamedScores as StreamedScores,
    is_large as is_large,
    streamed_scores as streamed_scores,
)
from unmask.trials.problems import two_speakers as two_speakers
from unmask.trials.readers.detect import embedding_columns as embedding_columns
from unmask.trials.readers.files import Input as Input
from unmask.trials.readers.guard import ParquetFile as ParquetFile
from unmask.trials.readers.kaldi import check_archive_folder as check_archive_folder
from unmask.trials.reading import (
    holds_embeddings as holds_embeddings,
    read_any as read_any,
    read_embeddings as read_embeddings,
    read_key as read_key,
    read_scores as read_scores,
)
from unmask.trials.scores import Scores as Scores
from unmask.trials.speakers import (
    Speakers as Speakers,
    assign as assign,
    read_speakers as read_speakers,
    speaker_rule as speaker_rule,
)
from unmask.trials.trial_list import (
    NONTARGET as NONTARGET,
    TARGET as TARGET,
    OnProblem as OnProblem,
    Source as Source,
    TrialList as TrialList,
    Trials as Trials,
)
from unmask.trials.writing import embedding_format as embedding_format, write as write
