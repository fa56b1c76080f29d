"""From embeddings to scores of all their pairs, and to what is counted of them."""

from unmask.scoring.averaging import average_groups
from unmask.scoring.backend import Backend, as_vectors, length_normalised
from unmask.scoring.blocks import (
    TILE_COLUMNS,
    TILE_ROWS,
    resolve,
    row_ranges,
    score_blocks,
    score_rows,
)
from unmask.scoring.cosine import Cosine, Whitening, product_block
from unmask.scoring.moments import Moments
from unmask.scoring.pairs import BLOCK, MOST_TRIALS, Pairs
from unmask.scoring.plda import Models, Plda, discriminants, llr_block
from unmask.scoring.products import product_sides
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
    "discriminants",
    "length_normalised",
    "llr_block",
    "packed",
    "product_block",
    "product_sides",
    "resolve",
    "row_ranges",
    "score_blocks",
    "score_rows",
    "shards_of",
    "unpacked",
]
