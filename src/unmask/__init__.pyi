from unmask import (
    assessment as assessment,
    engine as engine,
    privacy as privacy,
    report as report,
    speech as speech,
    stress as stress,
    trials as trials,
    utility as utility,
)
from unmask._version import __version__ as __version__
from unmask.assessment import load_config as load_config
from unmask.engine import (
    Battery as Battery,
    Roc as Roc,
    act_dcf as act_dcf,
    calibrate as calibrate,
    cllr as cllr,
    compare as compare,
    d_sys as d_sys,
    detection as detection,
    ece as ece,
    eer as eer,
    evaluate as evaluate,
    forensic as forensic,
    fuse as fuse,
    group_gaps as group_gaps,
    min_cllr as min_cllr,
    min_dcf as min_dcf,
    operating_point as operating_point,
    tpr_at_fpr as tpr_at_fpr,
    zebra as zebra,
)
from unmask.errors import InputError as InputError, UnmaskWarning as UnmaskWarning
from unmask.estimate import Estimate as Estimate, Interval as Interval
from unmask.privacy import (
    Attacker as Attacker,
    LegalProtocol as LegalProtocol,
    assess_attackers as assess_attackers,
    attribute_inference as attribute_inference,
    compare_safeguards as compare_safeguards,
    compare_sessions as compare_sessions,
    extrapolate_linkability as extrapolate_linkability,
    linkability as linkability,
    linkability_from_scores as linkability_from_scores,
    pseudonymisation as pseudonymisation,
    singling_out as singling_out,
    within_release as within_release,
    zoo as zoo,
)
from unmask.report import (
    assess as assess,
    document as document,
    render as render,
)
from unmask.run import overwriting as overwriting, progress as progress, run_on as run_on
from unmask.scoring import (
    Backend as Backend,
    Cosine as Cosine,
    Plda as Plda,
    Sides as Sides,
    Whitening as Whitening,
    register_backend as register_backend,
    score as score,
)
from unmask.stress import (
    CpMetric as CpMetric,
    ImpostorProtocol as ImpostorProtocol,
    cp_map as cp_map,
    cp_maps as cp_maps,
    delta_cp_map as delta_cp_map,
    extrapolate as extrapolate,
    worst_case as worst_case,
    worst_case_false_alarms as worst_case_false_alarms,
    worst_case_study as worst_case_study,
)
from unmask.trials import (
    Embeddings as Embeddings,
    Ids as Ids,
    Scores as Scores,
    Trials as Trials,
    make_trials as make_trials,
    read_embeddings as read_embeddings,
    read_key as read_key,
    read_scores as read_scores,
    write as write,
)

__all__: list[str]
