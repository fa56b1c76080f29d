"""What anonymisation leaves of an identity."""

from unmask.privacy.inference import (
    Inference,
    inference,
)
from unmask.privacy.legal import (
    Attacker,
    default_counts,
    legal_sweep,
    with_backends,
)
from unmask.privacy.legal_config import (
    LegalConfig,
    legal_from_config,
    read_legal_config,
)
from unmask.privacy.legal_curve import (
    Curve,
    RiskCurve,
)
from unmask.privacy.legal_sweep import (
    LegalSweep,
    Strongest,
)
from unmask.privacy.legal_verification import (
    verification,
)
from unmask.privacy.linkability import (
    Linkability,
    linkability,
    linkability_from_scores,
)
from unmask.privacy.ranks import (
    Ranks,
    ranks_from_scores,
    ranks_of,
)
from unmask.privacy.singling_out import (
    SinglingOut,
    singling_out,
    singling_out_from_scores,
)

__all__ = [
    "Attacker",
    "Curve",
    "Inference",
    "LegalConfig",
    "LegalSweep",
    "Linkability",
    "Ranks",
    "RiskCurve",
    "SinglingOut",
    "Strongest",
    "default_counts",
    "inference",
    "legal_from_config",
    "legal_sweep",
    "linkability",
    "linkability_from_scores",
    "ranks_from_scores",
    "ranks_of",
    "read_legal_config",
    "singling_out",
    "singling_out_from_scores",
    "verification",
    "with_backends",
]
