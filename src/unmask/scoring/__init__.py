"""From embeddings to scores, in blocks."""

from unmask.scoring.averaging import average_groups
from unmask.scoring.backend import Backend, length_normalised
from unmask.scoring.blocks import resolve, row_ranges, score_blocks, score_rows
from unmask.scoring.cosine import Cosine, Whitening
from unmask.scoring.cross import CrossCounts, count_pairs
from unmask.scoring.plda import Models, Plda

__all__ = [
    "Backend",
    "Cosine",
    "CrossCounts",
    "Models",
    "Plda",
    "Whitening",
    "average_groups",
    "count_pairs",
    "length_normalised",
    "resolve",
    "row_ranges",
    "score_blocks",
    "score_rows",
]
