"""The ROC statistic and all that follows from it."""

from unmask.engine.bootstrap import (
    Units as Units,
    auto_replicates as auto_replicates,
    speaker_count as speaker_count,
    units_of as units_of,
)
from unmask.engine.calibration import (
    IsotonicCalibration as IsotonicCalibration,
    LinearCalibration as LinearCalibration,
    calibrate as calibrate,
    fusion_weights as fusion_weights,
    weighted_line as weighted_line,
)
from unmask.engine.comparison import Comparison as Comparison, compare as compare
from unmask.engine.counted import cross_pairing as cross_pairing, roc_of_pairs as roc_of_pairs
from unmask.engine.curves import (
    Array as Array,
    DetBand as DetBand,
    DetCurve as DetCurve,
    EceProfile as EceProfile,
    Histogram as Histogram,
    PavMap as PavMap,
    Reliability as Reliability,
    det_bands as det_bands,
)
from unmask.engine.evaluation import (
    Battery as Battery,
    Evaluation as Evaluation,
    SystemResult as SystemResult,
    evaluate as evaluate,
    group_masks as group_masks,
)
from unmask.engine.metrics import (
    Detection as Detection,
    Zebra as Zebra,
    act_dcf as act_dcf,
    cllr as cllr,
    d_sys as d_sys,
    detection as detection,
    ece as ece,
    eer as eer,
    min_cllr as min_cllr,
    min_dcf as min_dcf,
    negated_notices as negated_notices,
    tpr_at_fpr as tpr_at_fpr,
    zebra as zebra,
    zebra_of as zebra_of,
)
from unmask.engine.operating import (
    Cost as Cost,
    Pav as Pav,
    Polygon as Polygon,
    equal_error as equal_error,
    equal_errors as equal_errors,
    first_of_blocks as first_of_blocks,
)
from unmask.engine.roc import Roc as Roc
