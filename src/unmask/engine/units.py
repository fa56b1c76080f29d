"""What a list of trials lets the bootstrap draw: speakers where they are known, else trials."""

from __future__ import annotations

import numpy as np

from unmask.base import few_speakers
from unmask.engine.bootstrap import Units
from unmask.trials import Ids, Scores, two_speakers

AUTO_REPLICATES = 1000
AUTO_TRIALS = 2_000_000
NO_SPEAKERS = (
    "no speaker ids: intervals are of the trial bootstrap, which takes trials for "
    "independent and is too narrow where speakers recur"
)


def auto_replicates(scores: Scores, replicates: int | None, *, most: int) -> tuple[int, list[str]]:
    """The number asked for, or 1,000 for up to ``most`` trials and none beyond, told in a line."""
    trials = trial_count(scores)
    if replicates is not None:
        return replicates, []
    if trials <= most:
        return AUTO_REPLICATES, []
    return 0, [f"no intervals by default for {trials:,} trials: ask for them, they take minutes"]


def trial_count(scores: Scores) -> int:
    """Number of trials of both classes."""
    return int(scores.is_target.sum() + scores.is_nontarget.sum())


def units_of(scores: Scores) -> tuple[Units, list[str]]:
    """Units of the bootstrap and what must be said of them."""
    target, nontarget = scores.is_target, scores.is_nontarget
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is None or test is None:
        units = Units.trials(int(target.sum()), int(nontarget.sum()))
    else:
        _check_speakers(scores, enrol, test)
        units = Units.speakers(enrol.codes[target], enrol.codes[nontarget], test.codes[nontarget])
    return units, said_of(units.count, speakers=speaker_count(scores))


def said_of(units: int, *, speakers: int | None) -> list[str]:
    """What must be said of intervals over so many units."""
    if units < 2:
        return [f"{reason_none(speakers)}: no interval can be given"]
    if speakers is None:
        return [NO_SPEAKERS]
    few = few_speakers(speakers)
    return [few] if few else []


def reason_none(speakers: int | None) -> str:
    """Why there is no interval where a class has a single unit."""
    if speakers is None:
        return "one trial of a class only"
    return "one speaker only" if speakers < 2 else "one speaker only has target trials"


def _check_speakers(scores: Scores, enrol: Ids, test: Ids) -> None:
    """A target trial has one speaker on both sides."""
    wrong = np.flatnonzero(scores.is_target & (enrol.codes != test.codes))
    if wrong.size:
        raise two_speakers(scores.name, wrong.size, enrol.decode(wrong[0]), test.decode(wrong[0]))


def speaker_count(scores: Scores) -> int | None:
    """How many speakers the trials of both classes have, if that is known."""
    if scores.enrol_speaker is None or scores.test_speaker is None:
        return None
    counted = scores.is_target | scores.is_nontarget
    seen = [
        np.bincount(ids.codes[counted], minlength=len(ids.names)) > 0
        for ids in (scores.enrol_speaker, scores.test_speaker)
    ]
    return int((seen[0] | seen[1]).sum())
