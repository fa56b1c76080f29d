"""From embeddings to scores of all their pairs, and to what is counted of them."""

from unmask.scoring.alignment import Alignment, centring, wasserstein_procrustes, whitening
from unmask.scoring.alignment import AlignedCosine
from unmask.scoring.backend import BACKENDS, ByGroup, Fused, Named, Parallel, backend_named, fitted
from unmask.scoring.backend import known_backend, register_backend
from unmask.scoring.cosine import AsNorm, Cosine, Whitening, average_groups
from unmask.scoring.pairs import ALL, BLOCK, MOST_TRIALS, OTHERS, Block, PairGrid, Rule, Tile
from unmask.scoring.plda import Plda
from unmask.scoring.reducers import UNIT, BySpeaker, CountAmong, CountBySpeaker, Tally, TargetScores
from unmask.scoring.shards import RowOrder, shards_of
from unmask.scoring.sides import WIDE, Backend, Sides, score_matrix, sides_of
