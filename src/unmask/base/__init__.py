"""Arrays, checks and the mathematics of intervals: numpy and scipy alone."""

from unmask.base.arrays import (
    BoolArray as BoolArray,
    Codes as Codes,
    FloatArray as FloatArray,
    IntArray as IntArray,
    Labels as Labels,
    Rows32 as Rows32,
    Vectors as Vectors,
    as_index as as_index,
    as_scores as as_scores,
    as_weights as as_weights,
    lazy as lazy,
    length_normalised as length_normalised,
    read_only as read_only,
    reject_nan as reject_nan,
    weighted_sum as weighted_sum,
)
from unmask.base.display import (
    Tabular as Tabular,
    estimate_row as estimate_row,
    machine_unit as machine_unit,
    no_formula as no_formula,
    one_line as one_line,
    visible as visible,
)
from unmask.base.intervals import (
    FEW_SPEAKERS as FEW_SPEAKERS,
    HULL as HULL,
    SKEWED as SKEWED,
    Side as Side,
    bias_corrected as bias_corrected,
    exact_bound as exact_bound,
    few_speakers as few_speakers,
    logit_interval as logit_interval,
    mean_interval as mean_interval,
    quantile_t as quantile_t,
    score_interval as score_interval,
)
from unmask.base.lookup import Lookup as Lookup, ceiling as ceiling
from unmask.base.resampling import (
    MetricRange as MetricRange,
    Replicates as Replicates,
    check_replicates as check_replicates,
    draw as draw,
    draws as draws,
    generator as generator,
    in_order as in_order,
    jackknife_error as jackknife_error,
)
