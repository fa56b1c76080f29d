"""Arrays, checks and the mathematics of intervals: numpy and scipy alone."""

from unmask.base.arrays import (
    BoolArray,
    Codes32,
    FloatArray,
    IntArray,
    Rows32,
    as_scores,
    as_weights,
    length_normalised,
    reject_nan,
)
from unmask.base.columns import Codes, Floats, Index, Labels, Mask, Vectors, as_index, read_only
from unmask.base.draws import chosen, draw, draws, generator, in_order, weighted_means
from unmask.base.intervals import (
    FEW_SPEAKERS,
    HULL,
    SKEWED,
    Side,
    bias_corrected,
    exact_bound,
    few_speakers,
    logit_interval,
    mean_interval,
    quantile_t,
    score_interval,
)
from unmask.base.places import Places, ceiling
from unmask.base.properties import lazy
from unmask.base.text import no_formula, one_line, visible

__all__ = [
    "FEW_SPEAKERS",
    "HULL",
    "SKEWED",
    "BoolArray",
    "Codes",
    "Codes32",
    "FloatArray",
    "Floats",
    "Index",
    "IntArray",
    "Labels",
    "Mask",
    "Places",
    "Rows32",
    "Side",
    "Vectors",
    "as_index",
    "as_scores",
    "as_weights",
    "bias_corrected",
    "ceiling",
    "chosen",
    "draw",
    "draws",
    "exact_bound",
    "few_speakers",
    "generator",
    "in_order",
    "lazy",
    "length_normalised",
    "logit_interval",
    "mean_interval",
    "no_formula",
    "one_line",
    "quantile_t",
    "read_only",
    "reject_nan",
    "score_interval",
    "visible",
    "weighted_means",
]
