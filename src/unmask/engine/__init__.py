"""The ROC statistic and all that follows from it."""

from unmask.engine.bootstrap import Units, auto_replicates, speaker_count, units_of
from unmask.engine.calibration import IsotonicCalibration, LinearCalibration, calibrate
from unmask.engine.calibration import fusion_weights, weighted_line
from unmask.engine.comparison import CALIBRATED, Comparison, compare
from unmask.engine.streaming import cross_pairing, roc_of_pairs
from unmask.engine.curves import Array, DetBand, DetCurve, EceProfile, Histogram, PavMap
from unmask.engine.curves import Reliability, det_bands
from unmask.engine.evaluation import Battery, Evaluation, SystemResult, evaluate, group_masks
from unmask.engine.metrics import Detection, Zebra, act_dcf, cllr, d_sys, detection, ece, eer
from unmask.engine.metrics import min_cllr, min_dcf, negated_notices, tpr_at_fpr, zebra, zebra_of
from unmask.engine.operating import Cost, Pav, Polygon, equal_error, equal_errors, first_of_blocks
from unmask.engine.roc import Roc
