"""From embeddings to scores, in blocks."""

from unmask.base import Rows32
from unmask.run import Range, Task, devices, load, on_devices, product_type, ranges_of
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
from unmask.scoring.by_speaker import BySpeaker, Table
from unmask.scoring.cosine import Cosine, Whitening, product_block
from unmask.scoring.counting import Tally, TargetScores, add_counts, packed, unpacked
from unmask.scoring.cross import CrossCounts, count_pairs
from unmask.scoring.layout import Layout
from unmask.scoring.ledgers import SpeakerLedger, TallyLedger, keep_targets, kept_targets
from unmask.scoring.moments import Moments
from unmask.scoring.plan import BLOCK, MOST_TRIALS
from unmask.scoring.plda import Models, Plda, discriminants, llr_block
from unmask.scoring.products import product_sides
from unmask.scoring.shards import shards_of

__all__ = [
    "BLOCK",
    "MOST_TRIALS",
    "TILE_COLUMNS",
    "TILE_ROWS",
    "Backend",
    "BySpeaker",
    "Cosine",
    "CrossCounts",
    "Layout",
    "Models",
    "Moments",
    "Plda",
    "Range",
    "Rows32",
    "SpeakerLedger",
    "Table",
    "Tally",
    "TallyLedger",
    "TargetScores",
    "Task",
    "Whitening",
    "add_counts",
    "as_vectors",
    "average_groups",
    "count_pairs",
    "devices",
    "discriminants",
    "keep_targets",
    "kept_targets",
    "length_normalised",
    "llr_block",
    "load",
    "on_devices",
    "packed",
    "product_block",
    "product_sides",
    "product_type",
    "ranges_of",
    "resolve",
    "row_ranges",
    "score_blocks",
    "score_rows",
    "shards_of",
    "unpacked",
]
