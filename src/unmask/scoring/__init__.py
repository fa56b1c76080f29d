"""From embeddings to scores of all their pairs, and to what is counted of them."""

from unmask.scoring.alignment import (
    AlignedCosine,
    Alignment,
    centring,
    coral,
    procrustes,
    wasserstein_procrustes,
    whitening,
)
from unmask.scoring.backend import (
    TILE_COLUMNS,
    TILE_ROWS,
    Backend,
    backend_named,
    fused,
    product_sides,
    score_blocks,
    train,
)
from unmask.scoring.cosine import Cosine, Whitening
from unmask.scoring.moments import average_groups
from unmask.scoring.pairs import BLOCK, MOST_TRIALS, Pairs
from unmask.scoring.plda import Plda
from unmask.scoring.reducers.among import (
    UNIT,
    CountAmong,
    Tally,
    TargetScores,
    add_counts,
    packed,
    unpacked,
)
from unmask.scoring.reducers.by_speaker import BySpeaker, CountBySpeaker
from unmask.scoring.shards import shards_of
from unmask.scoring.sides import Layout
from unmask.scoring.two_sided import AsNorm, TwoSided

__all__ = [
    "BLOCK",
    "MOST_TRIALS",
    "TILE_COLUMNS",
    "TILE_ROWS",
    "UNIT",
    "AlignedCosine",
    "Alignment",
    "AsNorm",
    "Backend",
    "BySpeaker",
    "Cosine",
    "CountAmong",
    "CountBySpeaker",
    "Layout",
    "Pairs",
    "Plda",
    "Tally",
    "TargetScores",
    "TwoSided",
    "Whitening",
    "add_counts",
    "average_groups",
    "backend_named",
    "centring",
    "coral",
    "fused",
    "packed",
    "procrustes",
    "product_sides",
    "score_blocks",
    "shards_of",
    "train",
    "unpacked",
    "wasserstein_procrustes",
    "whitening",
]
