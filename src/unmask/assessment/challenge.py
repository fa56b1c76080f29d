"""What the VoicePrivacy challenges, 2020 to 2026, call sets and attackers, and state in files.

Their ignorant attacker enrols original speech, their lazy-informed one is the ignorant one here,
and their semi-informed one, whose extractor was trained on the safeguard's own output, is the
informed one here (Vauquier 2025, footnote 3).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from unmask.errors import InputError
from unmask.run import text_lines

UNPROTECTED = "unprotected"
ATTACKERS: Mapping[tuple[str, str], str] = {
    ("trained", "pp"): "informed (semi-informed)",
    ("given", "pp"): "ignorant (lazy-informed)",
    ("given", "op"): "original enrolment (ignorant)",
    ("trained", "op"): "original enrolment, trained extractor",
    ("given", "oo"): UNPROTECTED,
    ("trained", "oo"): f"{UNPROTECTED}, trained extractor",
}
"""House names, the challenges' in brackets, by extractor and list; those they rank come first."""
_SET = re.compile(
    r"(?s:(?P<corpus>.*?))(?:_(?P<split>dev|test))?(?:_(?P<sex>f|m|mixed))?(?:_(?P<common>common))?"
)
_HEARD = re.compile(r"ASR-(?P<corpus>.+?)_(?P<split>dev|test)_asr(?P<tag>_.+)?")
_RATE = re.compile(r"(?:EER:)?\s*(?P<value>[0-9.]+(?:e-?\d+)?)\s*(?P<percent>%?)")
_METRICS = ("WER", "UAR", "EER")
_KINDS = {"original": "oo", "anon": "pp"}
_LETTERS = {"original": "o", "anon": "p"}
CONDITIONS: Mapping[str, tuple[float, ...]] = {
    "voiceprivacy-2020": (0.15, 0.20, 0.25, 0.30),
    "voiceprivacy-2024": (0.10, 0.20, 0.30, 0.40),
}
"""Least EERs of the conditions within which the organisers rank: those of 2022, which 2020 did not
have, and those of 2024, by the rules that :func:`convention_of` names.
"""


class TrialSet(NamedTuple):
    """Corpus (or language), split and sex that the name of a list of trials tells."""

    corpus: str
    split: str = ""
    sex: str = ""
    common: str = ""

    @classmethod
    def of(cls, name: str) -> Self:
        match = _SET.fullmatch(name)
        assert match is not None
        return cls(*(part or "" for part in match.groups()))

    @property
    def language(self) -> str:
        """The language, where two letters name it."""
        return self.corpus if re.fullmatch("[a-z]{2}", self.corpus) else ""


def shown_sets(names: Iterable[str]) -> dict[str, TrialSet]:
    """The lists that challenges rank by: those of the test split, all where there is none."""
    sets = {name: TrialSet.of(name) for name in names}
    tests = {name: trial_set for name, trial_set in sets.items() if trial_set.split == "test"}
    return tests or sets


def ranked_sets(names: Iterable[str]) -> dict[str, float]:
    """Lists over which the organisers average, and the weight of each.

    Where a corpus has a list of both sexes (2026), that one counts and not those of each sex; lists
    of common sentences (2020, 2022) weigh a quarter of the others of their corpus.
    """
    sets = shown_sets(names)
    both = {trial_set[:2] for trial_set in sets.values() if trial_set.sex == "mixed"}
    common = {trial_set[:3] for trial_set in sets.values() if trial_set.common}
    return {
        name: 0.2 if trial_set.common else 0.8 if trial_set[:3] in common else 1.0
        for name, trial_set in sets.items()
        if trial_set.sex == "mixed" or trial_set[:2] not in both
    }


def convention_of(scores: Path) -> str:
    """By which rules a challenge judges a score file: 2020 and 2022 name its folder ``ASV-…``."""
    return f"voiceprivacy-{2020 if scores.parent.name.startswith('ASV-') else 2024}"


@dataclass(frozen=True)
class Stated:
    """A number of a tree's own files, as a fraction; ``part`` is oo, op or pp.

    ``corpus`` is the label of a list where it is an EER of a file beside scores (``eer_stated``),
    the name of the set where it is one of a result file (``eer_ranked``) under an ``extractor``.
    """

    metric: str
    value: float
    corpus: str
    split: str
    part: str
    extractor: str = "given"


def read_results(path: Path) -> list[Stated]:
    """Word error rates, recalls of emotion and EERs of a result file: ``results_X.csv``,
    ``result_for_rank_X`` (2024, 2026) or ``ASR-X_asr`` (2020, 2022: its last line counts, that of
    the larger language model).
    """
    lines = text_lines(path)
    if heard := _HEARD.fullmatch(path.name):
        rates = re.findall(r"^%WER (\S+)", "\n".join(lines), re.MULTILINE)
        if not rates:
            raise InputError(path, "a line %WER …", "none")
        part = "pp" if heard["tag"] else "oo"
        value = _percent(rates[-1], path, 1)
        return [Stated("wer", value, heard["corpus"], heard["split"], part)]
    made, header, known, extractor = [], [], False, "given"
    for number, line in enumerate(lines, start=1):
        if line.startswith("----"):
            extractor = "trained" if "^anon" in line else "given"
        cells = [cell for cell in re.split(r"[,\s]+", line) if cell]
        if {"dataset", "split"} <= set(cells):
            header, known = cells, True
            continue
        row = dict(zip(header, cells[-len(header) :], strict=False)) if header else {}
        metric = next((one for one in _METRICS if one in row), None)
        if metric is None or len(cells) < len(header):
            continue
        kind = row.get("asr") or row.get("ser")
        if kind in _KINDS:
            value = _percent(row[metric], path, number)
            stated = (row["dataset"], row["split"], _KINDS[kind])
            made.append(Stated(metric.lower(), value, *stated))
        elif metric == "EER" and {"enrollment", "trial"} <= row.keys():
            sides = [_LETTERS.get(row[side], "") for side in ("enrollment", "trial")]
            value = _percent(row[metric], path, number)
            name = "_".join(filter(None, (row["dataset"], row["split"], row.get("gender"))))
            made.append(Stated("eer_ranked", value, name, "", "".join(sides), extractor))
    if not known:
        raise InputError(path, "a table with columns dataset and split", "none")
    return made


def stated_eer(label: str, part: str, scores: Path) -> Stated | None:
    """The EER that the tree itself has in the file ``EER`` beside a score file, if there is one:
    ``0.105`` or ``EER: 10.5%``.
    """
    path = scores.with_name("EER")
    if not path.is_file():
        return None
    line = (text_lines(path) or [""])[0]
    match = _RATE.fullmatch(line.strip())
    if match is None:
        raise InputError(path, "an equal error rate such as 0.105 or EER: 10.5%", line or "nothing")
    value = float(match["value"])
    value = value / 100 if match["percent"] or value > 1 else value
    return Stated("eer_stated", value, label, "", part)


def _percent(text: str, path: Path, number: int) -> float:
    try:
        value = float(text) / 100
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{path}, line {number}: expected a number, found {text}")
    return value
