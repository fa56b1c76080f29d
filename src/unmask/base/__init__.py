"""Arrays, checks and the mathematics of intervals: numpy and scipy alone."""

from unmask.base.arrays import BoolArray, Codes, FloatArray, IntArray, Labels, Rows32, Vectors
from unmask.base.arrays import as_array, as_index, as_numbers, as_scores, as_weights, lazy
from unmask.base.arrays import length_normalised, read_only, reject_nan, weighted_sum
from unmask.base.groups import BySpeaker, Groups, grouped
from unmask.base.intervals import FEW_SPEAKERS, HULL, SKEWED, VERDICT, MetricRange, Side
from unmask.base.intervals import bias_corrected, correlation, exact_bound, few_speakers
from unmask.base.intervals import joined_interval, logit_interval, mean_interval, paired_interval
from unmask.base.intervals import pareto_tail, quantile_t, score_interval, widening
from unmask.base.lookup import Lookup, ceiling
from unmask.base.resampling import MOST_REPLICATES, Replicates, Sampling, check_replicates, draw
from unmask.base.resampling import draws, generator, in_order, jackknife_error, scattered
from unmask.display import Part, Tabular, escaped_controls, estimate_row, machine_unit, no_formula
from unmask.display import one_line, visible
