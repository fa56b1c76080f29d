"""From embeddings to scores of all their pairs, and to what is counted of them."""

from unmask.scoring.backend import (
    TILE_COLUMNS,
    TILE_ROWS,
    Backend,
    backend_named,
    product_sides,
    score_blocks,
    train,
)
from unmask.scoring.cosine import Cosine, Whitening, product_block
from unmask.scoring.moments import (
    Moments,
    as_vectors,
    average_groups,
    discriminants,
)
from unmask.scoring.pairs import BLOCK, MOST_TRIALS, Pairs
from unmask.scoring.plda import Models, Plda, llr_block
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

resolve = backend_named

__all__ = [
    "BLOCK",
    "MOST_TRIALS",
    "TILE_COLUMNS",
    "TILE_ROWS",
    "UNIT",
    "Backend",
    "BySpeaker",
    "Cosine",
    "CountAmong",
    "CountBySpeaker",
    "Layout",
    "Models",
    "Moments",
    "Pairs",
    "Plda",
    "Tally",
    "TargetScores",
    "Whitening",
    "add_counts",
    "as_vectors",
    "average_groups",
    "backend_named",
    "discriminants",
    "llr_block",
    "packed",
    "product_block",
    "product_sides",
    "resolve",
    "score_blocks",
    "shards_of",
    "train",
    "unpacked",
]
