"""An assessment is run: its config and data, who attacks whom, the steps of every framework."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.assessment.attacks import AttackRun, Variant, needs
    from unmask.assessment.cache import Kept, Listener, Step, Work, cache_of, check_cache
    from unmask.assessment.cache import code_digest, digest_of, kept_assessments
    from unmask.assessment.challenge import ATTACKERS, CONDITIONS, UNPROTECTED, Stated, TrialSet
    from unmask.assessment.challenge import convention_of, ranked_sets, shown_sets
    from unmask.assessment.config import FRAMEWORKS, KNOWN, ORIGINAL, Config, Legal
    from unmask.assessment.config import TableConfig, config_schema
    from unmask.assessment.folders import Beside, assumptions, config_of
    from unmask.assessment.frameworks.legal import legal_attackers
    from unmask.assessment.halves import HalfNumbers
    from unmask.assessment.inputs import Inputs
    from unmask.assessment.labelling import by_label, for_display, labelled
    from unmask.assessment.running import Done, Run, expected, read_study
    from unmask.assessment.sound import COMPARED, SPELLED, spelled
    from unmask.assessment.starter import REMARK, demo_config, starter_config
    from unmask.assessment.study import HALVES, Results, Study, Trialled, strongest, result_among
    from unmask.assessment.toml import check_config, load_config, to_toml
    from unmask.assessment.training import duration

open_door(__name__)
