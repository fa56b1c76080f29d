"""Attacks as verification systems: metrics of every variant, and who is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.engine import Battery, SystemResult, evaluate, group_masks
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.legal import count_above_in_scores
from unmask.report.cache import Step
from unmask.report.config import ORIGINAL, Config
from unmask.report.frameworks.attacks import Attack, Variant, labelled
from unmask.run import part
from unmask.trials import Scores

WEAKER = "made for the strongest reading of each attacker only"


@dataclass(frozen=True, eq=False)
class Trialled:
    """An attack as a verification system: metrics, and who is found.

    ``identified`` is the share of each speaker's attacked utterances whose closest enrolled
    speaker is the right one, among all ``candidates``.
    """

    safeguard: str
    attacker: str
    variant: Variant
    result: SystemResult
    speakers: tuple[str, ...]
    identified: FloatArray
    recordings: IntArray
    candidates: int
    trials: str
    notices: tuple[Notice, ...] = ()

    @property
    def label(self) -> str:
        """Attacker, back-end and reading."""
        return labelled(self.attacker, self.variant)

    @property
    def name(self) -> str:
        """Safeguard and attacker."""
        return self.safeguard if self.safeguard == ORIGINAL else f"{self.safeguard}, {self.label}"

    def value(self, metric: str) -> float:
        """A metric's value; ``identified`` is the mean over speakers."""
        if metric == "identified":
            return float(self.identified.mean())
        return float(self.result[metric].value)


@dataclass(frozen=True, eq=False)
class Trials:
    """Every variant of one attack."""

    variants: tuple[Trialled, ...]


def trial_step(attack: Attack, config: Config) -> Step:
    """Score the trials of an attack in every variant and measure them.

    Intervals are made for the strongest variant by D_ECE and by EER; the others are there to show
    what they were chosen from.
    """
    params = {**config.trials, "backends": attack.backends}

    def compute() -> Trials:
        if attack.size > config.verification.max_trials:
            raise InputError(
                f"verification.max_trials: {attack.enrol.n_speakers:,} speakers and"
                f" {len(attack.test):,} utterances make more than"
                f" {config.verification.max_trials:,} trials"
            )
        battery = Battery(p_target=params["p_target"], fpr=params["fpr"])
        how = {name: params[name] for name in ("replicates", "level", "seed")}
        found = {}
        for variant in attack.variants:
            scores = attack.scores(variant)
            result = evaluate(scores, battery=battery, **{**how, "replicates": 0}).results[0]
            bare = [replace(e, no_interval=WEAKER) for e in result.estimates]
            result = replace(result, estimates=tuple(bare))
            found[variant] = _trialled(attack, variant, scores, result)
        chosen = dict.fromkeys(strongest(tuple(found.values()), m).variant for m in MOST)
        attack.hold(*chosen)
        if how["replicates"]:
            again = evaluate(attack.scores(*chosen), battery=battery, **how)
            for variant, result in zip(chosen, again, strict=True):
                found[variant] = replace(found[variant], result=result, notices=again.notices)
        return Trials(tuple(found.values()))

    what = f"verification of {attack.safeguard}, {attack.attacker}"
    seconds = 1 + attack.size * params["replicates"] / 5e6
    return Step(what, attack.inputs, params, compute, weight=seconds)


def _trialled(attack: Attack, variant: Variant, scores: Scores, result: SystemResult) -> Trialled:
    models = attack.enrol.n_speakers
    return Trialled(
        attack.safeguard,
        attack.attacker,
        variant,
        result,
        *_identified(scores, models),
        models,
        scores.digest,
    )


MOST = {"d_ece": 1.0, "eer": -1.0}


def strongest(found: Sequence[Trialled], metric: str = "d_ece") -> Trialled:
    """The attack that discloses most by a metric; the first of equals."""
    sign = MOST.get(metric, 1.0)
    return max(found, key=lambda one: sign * one.value(metric))


def leaders(found: Sequence[Trialled], metric: str) -> tuple[Trialled, ...]:
    """The strongest variant of each attacker by a metric, in the order of the attackers."""
    names = dict.fromkeys(one.attacker for one in found)
    return tuple(strongest([o for o in found if o.attacker == name], metric) for name in names)


@dataclass(frozen=True, eq=False)
class Groups:
    """An attack on groups of speakers, such as women and men."""

    label: str
    results: tuple[SystemResult, ...]
    notices: tuple[Notice, ...]


def group_step(attack: Attack, variant: Variant, config: Config, by: str) -> Step:
    """Measure an attack within and between the groups of a column."""
    how = {name: config.trials[name] for name in ("replicates", "level", "seed")}

    def compute() -> Groups:
        scores = attack.scores(variant)
        parts = []
        notices: list[Notice] = []
        masks = group_masks(scores, by)
        for index, (group, mask) in enumerate(masks):
            chosen = scores.select(mask)
            if not (chosen.is_target.any() and chosen.is_nontarget.any()):
                sentence = f"group {group} has no trials of both kinds and is left out"
                notices.append(Notice("group-left-out", "", sentence))
                continue
            with part(index, len(masks)):
                found = evaluate(chosen, **how)
            parts.append(replace(found.results[0], group=group))
            notices += [notice.about(f"group {group}") for notice in found.notices]
        return Groups(attack.label(variant), tuple(parts), tuple(notices))

    what = f"groups of {by} under {attack.safeguard}, {attack.attacker}"
    params = {**how, "by": by, "variant": [variant.backend, variant.reading]}
    return Step(what, attack.inputs, params, compute, weight=1.5)


def _identified(scores: Scores, models: int) -> tuple[tuple[str, ...], FloatArray, IntArray]:
    """Speakers, the share of their utterances that are found, and how many utterances they have."""
    assert scores.test_speaker is not None
    matrix = scores.scores().reshape(models, -1).T
    true = scores.is_target.reshape(models, -1).T
    known = true.any(axis=1)
    above = count_above_in_scores(matrix[known], true[known].argmax(axis=1))
    owner = scores.test_speaker.codes[: len(matrix)][known]
    used, dense = np.unique(owner, return_inverse=True)
    recordings = np.bincount(dense)
    hits = np.bincount(dense, weights=above.at_or_above == 0) / recordings
    names = tuple(str(scores.test_speaker.names[int(code)]) for code in used)
    return names, hits, recordings
