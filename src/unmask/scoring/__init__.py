"""From embeddings to scores of all their pairs, and to what is counted of them."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.scoring.alignment import AlignedCosine, Alignment, centring, wasserstein_procrustes
    from unmask.scoring.alignment import whitening
    from unmask.scoring.backend import BACKENDS, BESIDE, LENGTH, NO_VOICE, WORDS, ByGroup
    from unmask.scoring.backend import Fused, Named, Parallel
    from unmask.scoring.backend import backend_named, fitted, known_backend, register_backend
    from unmask.scoring.cosine import AsNorm, Cosine, SpeakerMoments, Whitening, average_groups
    from unmask.scoring.cosine import shrunk
    from unmask.scoring.pairs import ALL, BLOCK, MOST_TRIALS, OTHERS, Block, PairGrid, Rule, Tile
    from unmask.scoring.plda import Plda
    from unmask.scoring.reducers import UNIT, CountAmong, CountBySpeaker, Tally
    from unmask.scoring.reducers import TargetScores
    from unmask.scoring.shards import RowOrder, shards_of
    from unmask.scoring.trial_scores import TrialRows, score, score_rows
    from unmask.scoring.sides import WIDE, Backend, Sides, score_matrix, sides_of
    from unmask.scoring.sides import sides_of_means

open_door(__name__)
