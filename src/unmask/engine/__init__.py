"""The ROC statistic and all that follows from it."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.engine.bootstrap import Units, auto_replicates, speaker_count, units_of
    from unmask.engine.calibration import IsotonicCalibration, LinearCalibration, calibrate
    from unmask.engine.calibration import fusion_weights, weighted_line
    from unmask.engine.fusion import CalibratedScores, Fusion, Map, fuse, read_map, save_map
    from unmask.engine.comparison import CALIBRATED, Comparison, Difference, compare
    from unmask.engine.comparison import read_as_safeguards
    from unmask.engine.pairing import cross_pairing, roc_of_pairs
    from unmask.engine.curves import Array, DetBand, DetCurve, EceProfile, Histogram, PavMap
    from unmask.engine.curves import Reliability, SpoofCurve, Tippett, det_bands
    from unmask.engine.battery import CONVENTIONS, SPOOF_METRICS, Battery
    from unmask.engine.evaluation import Detection, Evaluation, SystemResult, detection
    from unmask.engine.validation import ForensicBattery, ForensicValidation, forensic, unit_notices
    from unmask.engine.evaluation import group_masks
    from unmask.engine.groups import GroupGaps, GroupRow, Spread, gaps_between
    from unmask.engine.groups import replicates_of
    from unmask.engine.evaluating import Thresholds, evaluate, group_gaps, of_arrays
    from unmask.engine.evaluating import operating_point
    from unmask.engine.spoofing import SpoofRoc, is_countermeasure
    from unmask.engine.information import LARGEST_D_ECE
    from unmask.engine.metrics import Zebra, act_dcf, cllr, d_sys, ece, eer
    from unmask.engine.metrics import min_cllr, min_dcf, negated_notices, tpr_at_fpr, zebra
    from unmask.engine.metrics import zebra_of
    from unmask.engine.operating import Cost, Pav, Polygon, equal_error, equal_errors
    from unmask.engine.operating import SpoofCost, decimal_from, first_of_blocks
    from unmask.engine.roc import Roc

open_door(__name__)
