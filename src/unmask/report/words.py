"""Short explanations of metrics and conditions for headings."""

from __future__ import annotations

METRICS = {
    "linkability": "Share of protected voices linked to their owner; chance is 1/N′",
    "singling_out": "How often one person is isolated; chance is 36.8 %",
    "one_minus_eer": "1 − equal error rate; chance is 50 %",
    "consistency": "How often a pseudo-voice is closest to itself under one key; no attack",
    "deid_strongest": "The same under the reading of the score that finds most resemblance",
    "deid": "Resemblance to the original voice that is gone; higher is more protective",
    "g_vd": "Distinctiveness of protected voices; 0 dB is as before",
    "d_ece": "Evidence disclosed on average, 0 to 0.721 bit; lower is more protective",
    "l_w": "Strongest evidence, as a power of ten of the odds; lower is more protective",
    "tag": "Category of the strongest evidence, 0 and A (weak) to F (strong)",
    "eer": "Equal error rate of the attacker; 50 % is a coin toss",
    "min_dcf": "Smallest detection cost over all thresholds; 1 is no information",
    "min_cllr": "Cross-entropy after oracle calibration; 1 bit is no information",
    "identified": "Share of the speaker's recordings linked to the speaker",
    "mean_d": "Bits of identity disclosed on average by the rank",
    "max_d": "Bits of identity disclosed at most by the rank",
    "identification_rate": "How often the true speaker comes first",
    "inference": "Accuracy of guessing the attribute from protected speech",
    "inference_balanced": "The same, every class weighing alike",
    "inference_unprotected": "Accuracy of guessing it from unprotected speech",
    "cp_mean": "Mean error over the well-defined cells of the map",
    "cp_share_below": "Share of cells below 5 %",
    "cp_hardest_decile": "Error on the hardest tenth of each kind of trial",
    "cp_win": "Share of cells in which the second system errs less",
    "cp_tie": "Share of cells without a difference",
    "cp_lose": "Share of cells in which the second system errs more",
    "worst_case_false_alarms": "How often the closest of N impostors is accepted",
}
_CONDITIONS = {
    "safeguard": "Safeguard",
    "attacker": "Attacker",
    "utterances": "Utterances",
    "speakers": "Speakers",
    "speaker": "Speaker",
    "attribute": "Attribute",
    "group": "Group",
    "system": "System",
    "systems": "Systems",
    "table": "Scores",
    "point": "Point",
    "threshold": "Threshold",
    "impostors": "Impostors",
    "metric": "Metric",
}


def condition_label(name: str) -> str:
    """Heading of a condition's column."""
    return _CONDITIONS.get(name, name)
