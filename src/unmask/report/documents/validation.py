"""The document of a forensic validation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unmask.engine import ForensicValidation
from unmask.report.documents import Document, Row, document
from unmask.report.documents.engine import counts

_CLASSES = {"target": "same-speaker", "nontarget": "different-speaker"}
_READING = (
    "C_llr below 1 bit is information; C_llr^cal is what calibration loses of it; devPAV is 0 where"
    " LRs mean what they say."
)
_BOUNDS = "LRs beyond the smallest and the largest one supported (ELUB) rest on no data"
_AT_THE_TOP = (
    "C_llr^cal lies at the top of its interval: PAV fits every sample too closely, which adds to"
    " C_llr^cal, and the interval is corrected for this."
)
_TOP = 0.9
_TEN = math.log(10)
_READ_AS = {
    "ln": "read as natural-log likelihood ratios",
    "log10": "read as log10 likelihood ratios",
    "lr": "read as likelihood ratios",
    "": "scores that were calibrated",
}


@document.register
def _(result: ForensicValidation) -> Document:
    """One row of all numbers, in the order of the consensus on validation (Morrison 2021)."""
    judged = f"column {result.column}, {_READ_AS[result.scores_are]}"
    made = f"Judged is {judged}."
    if result.calibration:
        made = f"Calibration of column {result.column}: {result.calibration}."
    notes = [
        *counts(result["cllr"], _CLASSES),
        made,
        _READING,
        _bounds(result),
    ]
    if _is_at_the_top(result):
        notes.append(_AT_THE_TOP)
    facts = [("Judged", judged)]
    tally = result.by_speaker
    if tally:
        facts.append(("Speakers", _speakers(tally)))
    return Document.of(
        result,
        [Row({}, result.estimates)],
        notes=notes,
        title="Validation of likelihood ratios",
        facts=facts,
        tally=tally,
    )


def _bounds(result: ForensicValidation) -> str:
    """How many LRs lie beyond the bounds, and how far they reach."""
    counts = result.scores.counts
    total = counts["target"] + counts["nontarget"]
    beyond = result.beyond_bounds
    if not beyond:
        return f"{_BOUNDS}: none of {total:,} here."
    logs = result.scores.scores() / _TEN
    reach = f"LRs reach from {_power(logs.min())} to {_power(logs.max())}"
    low, high = (_power(float(result[name].value)) for name in ("lr_smallest", "lr_largest"))
    return (
        f"{_BOUNDS}. {beyond:,} of {total:,} here lie below {low} or above {high} ({reach}). Report"
        " the bound instead."
    )


def _power(log10: float) -> str:
    """An LR as a power of ten."""
    if not math.isfinite(log10):
        return "∞" if log10 > 0 else "0"
    return f"10^{log10:.2f}".replace("-", "−")


def _is_at_the_top(result: ForensicValidation) -> bool:
    """Whether C_llr^cal lies in the uppermost tenth of its interval."""
    estimate = result["cllr_cal"]
    made = estimate.interval
    if made is None or not made.high > made.low:
        return False
    return bool(float(estimate.value) >= made.low + _TOP * (made.high - made.low))


def _speakers(tally: Sequence[tuple[str, int, int]]) -> str:
    """The number of speakers and of their comparisons, in words."""
    words = []
    for place, kind in ((1, "same-speaker"), (2, "different-speaker")):
        numbers = sorted(row[place] for row in tally)
        middle = numbers[len(numbers) // 2]
        words.append(f"{kind} {numbers[0]:,} to {numbers[-1]:,}, median {middle:,}")
    return f"{len(tally):,}; comparisons of each: {'; '.join(words)}"
