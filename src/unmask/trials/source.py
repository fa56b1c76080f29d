"""Where data came from: what the ``inputs`` entry of a result says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Source:
    """One input: the path as given, the SHA-256 of its bytes, what was detected and counted.

    Readers make it, documents list it. ``missing`` counts trials of this input that found no
    partner in the other one (or had no score) and were left out on request, ``duplicates`` trials
    left out because they came before. A count that does not apply is ``None``.
    """

    name: str
    sha256: str
    format: str
    target: int | None = None
    nontarget: int | None = None
    missing: int = 0
    duplicates: int = 0
    speakers: int | None = None
    detected: str = ""

    def counted(self, counts: Mapping[str, int], speakers: int | None) -> Source:
        """The same with counts of target, nontarget and other trials and of speakers."""
        detected = self.detected
        if counts["other"] and "neither class" not in detected:
            detected += f"; {counts['other']} spoof trials belong to neither class"
        return replace(
            self,
            target=counts["target"],
            nontarget=counts["nontarget"],
            speakers=speakers,
            detected=detected,
        )
