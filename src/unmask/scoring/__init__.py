"""From embeddings to scores of all their pairs, and to what is counted of them."""

from unmask.scoring.alignment import (
    AlignedCosine as AlignedCosine,
    Alignment as Alignment,
    centring as centring,
    coral as coral,
    procrustes as procrustes,
    wasserstein_procrustes as wasserstein_procrustes,
    whitening as whitening,
)
from unmask.scoring.backend import (
    TILE_COLUMNS as TILE_COLUMNS,
    TILE_ROWS as TILE_ROWS,
    Backend as Backend,
    backend_named as backend_named,
    fused as fused,
    product_sides as product_sides,
    score_matrix as score_matrix,
)
from unmask.scoring.cosine import (
    AsNorm as AsNorm,
    Cosine as Cosine,
    TwoSided as TwoSided,
    Whitening as Whitening,
    average_groups as average_groups,
)
from unmask.scoring.pairs import BLOCK as BLOCK, MOST_TRIALS as MOST_TRIALS, Pairs as Pairs
from unmask.scoring.plda import Plda as Plda
from unmask.scoring.reducers import (
    UNIT as UNIT,
    BySpeaker as BySpeaker,
    CountAmong as CountAmong,
    CountBySpeaker as CountBySpeaker,
    Tally as Tally,
    TargetScores as TargetScores,
    add_counts as add_counts,
    packed as packed,
    unpacked as unpacked,
)
from unmask.scoring.shards import Layout as Layout, shards_of as shards_of
