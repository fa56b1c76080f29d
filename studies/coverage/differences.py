"""Intervals of differences: every number of ``compare``, and rates of a group less those of all.

Two laws, with systems and groups that are equal and unequal; scores are sums of effects of
speakers, pairs and trials. Two equal systems differ by noise of their own alone, so that the truth
of every difference is 0. A third of the speakers are of the smaller group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from scipy.stats import t as student

import unmask as um
from studies.coverage.study import Drawn, Study, ends
from unmask.trials import Ids, Scores

Array = npt.NDArray[np.float64]
SPEAKERS = (20, 40)
REPLICATES = 200
BATTERY = um.Battery(p_target=(0.05,))
KEYS = [key for key, about in BATTERY.measured().items() if not about.no_interval]
THRESHOLD = 2.0
TARGETS, NONTARGETS = 5, 2
_NOISE = 0.5
_OWN, _OTHER = 0.7, 0.3
_FREEDOM = 3.0
_LIMIT = 2_000_000


@dataclass(frozen=True)
class Law:
    """How hard speakers are is Gaussian, or follows Student's t with 3 degrees (``heavy``); targets
    of the second system, or of the smaller group, lie lower by ``lower`` and its nontargets higher.
    """

    name: str
    heavy: bool = False
    lower: float = 0.0
    seed: int = 0

    def effects(self, rng: np.random.Generator, size: int) -> Array:
        """Effects of speakers, of about unit spread."""
        return rng.standard_t(_FREEDOM, size) if self.heavy else rng.normal(size=size)


LAWS = (
    Law("even, equal", seed=1),
    Law("even, unequal", lower=0.6, seed=2),
    Law("heavy, equal", heavy=True, seed=3),
    Law("heavy, unequal", heavy=True, lower=0.6, seed=4),
)


def studies() -> list[Study]:
    """Every law with both numbers of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def truth(law: Law) -> dict[str, float]:
    """What very many speakers have."""
    known = {f"Δ {key}": 0.0 for key in KEYS}
    if law.lower:
        rng = np.random.default_rng(0)
        target = 3.0 + _OWN * law.effects(rng, _LIMIT) + rng.normal(size=_LIMIT)
        other = law.effects(rng, _LIMIT) + law.effects(rng, _LIMIT) + rng.normal(size=_LIMIT)
        nontarget = _OTHER * other + rng.normal(size=_LIMIT)
        values = []
        for move in (0.0, law.lower):
            noise = _NOISE * rng.normal(size=(2, _LIMIT))
            classes = target + noise[0] - move, nontarget + noise[1] + move / 2
            at = BATTERY.thresholds
            values.append(BATTERY.values(um.Roc.from_scores(*classes, thresholds=at, cllr=True)))
        known = {f"Δ {key}": values[1][key] - values[0][key] for key in KEYS}
    return known | _group_truth(law)


def _group_truth(law: Law) -> dict[str, float]:
    """FNMR and FMR of the smaller group less those of all, by integrals over effects."""
    grid = (np.arange(4000) + 0.5) / 4000
    effect = student.ppf(grid, _FREEDOM) if law.heavy else _normal(grid)
    spread = np.sqrt(1 + _NOISE**2)
    missed = [
        float(ndtr((THRESHOLD - 3 + move - _OWN * effect) / spread).mean())
        for move in (0.0, law.lower)
    ]
    some = effect[::4] if not law.heavy else student.ppf((np.arange(1000) + 0.5) / 1000, _FREEDOM)
    mean = _OTHER * (some[:, None] + some[None])
    wide = np.sqrt(1 + _NOISE**2 + _OTHER**2)
    # Pairs within the larger group, across both, and within the smaller group.
    passed = [
        float(ndtr((mean + share * law.lower / 2 - THRESHOLD) / wide).mean())
        for share in (0.0, 0.5, 1.0)
    ]
    # A share of 0.3 of the speakers, as of 6 of 20 and 12 of 40, and pairs by how many there are.
    return {
        "fnmr less all": missed[1] - (0.7 * missed[0] + 0.3 * missed[1]),
        "fmr less all": passed[2] - (0.49 * passed[0] + 0.42 * passed[1] + 0.09 * passed[2]),
    }


def _normal(share: Array) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(share))


def trials(law: Law, speakers: int, rng: np.random.Generator, *, groups: bool) -> Scores:
    """Five targets of each speaker, two nontargets of each pair; the move is that of the second
    system, or of the smaller of two ``groups``.
    """
    own, other = law.effects(rng, speakers), law.effects(rng, speakers)
    one, two = np.triu_indices(speakers, 1)
    speaker = np.repeat(np.arange(speakers), TARGETS)
    first, second = np.tile(one, NONTARGETS), np.tile(two, NONTARGETS)
    pair = np.tile(rng.normal(0, _OTHER, one.size), NONTARGETS)
    target = 3.0 + _OWN * own[speaker] + rng.normal(size=speaker.size)
    nontarget = _OTHER * (other[first] + other[second]) + pair + rng.normal(size=first.size)
    member = (np.arange(speakers) % 10 < 3).astype(float)
    whole = np.concatenate([target, nontarget])
    down = np.concatenate([-np.ones(target.size), 0.5 * np.ones(first.size)]) * law.lower
    if groups:
        sides = member[speaker], (member[first] + member[second]) / 2
        systems = {"first": whole + down * np.concatenate(sides)}
    else:
        systems = {"first": whole, "second": whole + down}
    names = np.array([f"s{k:03}" for k in range(speakers)])
    enrol, test = (np.concatenate([speaker, side]) for side in (first, second))
    ids = [Ids.from_strings(names[side]) for side in (enrol, test)]
    columns = {
        f"{name}_group": Ids.from_strings(np.array(["a", "b"])[member[side].astype(int)])
        for name, side in (("enrol", enrol), ("test", test))
    }
    noise = {name: _NOISE * rng.normal(size=whole.size) for name in systems}
    return Scores(
        *ids,
        np.repeat(np.array([1, 0], np.int8), [target.size, first.size]),
        enrol_speaker=ids[0],
        test_speaker=ids[1],
        columns=columns,
        systems={name: scores + noise[name] for name, scores in systems.items()},
    )


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Intervals of one sample of two systems and of one of two groups."""
    rng = np.random.default_rng([law.seed, speakers, number])
    two = trials(law, speakers, rng, groups=False)
    outcome = um.compare(two, battery=BATTERY, replicates=REPLICATES, privacy=False)
    rows = dict(zip(BATTERY.measured(), outcome.differences, strict=True))
    shown = {f"Δ {key}": rows[key] for key in KEYS}
    one = trials(law, speakers, rng, groups=True)
    gaps = um.group_gaps(one, "group", threshold=THRESHOLD, replicates=REPLICATES)
    smaller = next(row for row in gaps.groups if row.name == "b")
    for estimate in smaller.estimates:
        if estimate.metric.endswith("_difference"):
            metric = estimate.metric.removesuffix("_difference")
            shown[f"{metric} less all"] = estimate
    return {key: ends(one.interval, float(one.value)) for key, one in shown.items()}
