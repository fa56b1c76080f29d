"""``python -m studies.group_risks [--samples N]``: how often equal groups stand out.

Every person keeps the same share of the voice, whatever the group. In 2 to 8 % of samples the p of
the gap between the groups should be at most 0.05. Where one group keeps more, it should be often.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

import unmask as um
from unmask.privacy import risk_gaps
from unmask.privacy.similarity import Setup, by_group
from unmask.scoring import Cosine

DIMENSIONS = 32
SAMPLES, SAMPLES_OF_DEID = 200, 30


@dataclass(frozen=True)
class Law:
    """How many people two groups have, which share of the voice they keep, and how far apart the
    groups lie: the distance of their means in one dimension.
    """

    sizes: tuple[int, int]
    kept: tuple[float, float]
    apart: float = 0.0

    @property
    def name(self) -> str:
        """The law in one line."""
        sizes, kept = ("/".join(map(str, pair)) for pair in (self.sizes, self.kept))
        return f"{sizes} people, {kept} of the voice kept, groups {self.apart:g} apart"

    def sample(self, number: int, utterances: int = 6) -> tuple[um.Embeddings, um.Embeddings]:
        """Original and protected speech of people drawn anew."""
        rng = np.random.default_rng([number, *self.sizes])
        group = np.repeat([0, 1], self.sizes)
        own, new = rng.normal(size=(2, len(group), DIMENSIONS))
        own[:, 0] += self.apart * group
        new[:, 0] += self.apart * group
        kept = np.array(self.kept)[group][:, None]
        who = np.repeat(np.arange(len(group)), utterances)
        names = [f"s{n:03}" for n in who], [f"u{n:05}" for n in range(len(who))]
        columns = {"group": np.array(["a", "b"])[group][who].tolist()}

        def said(voices: np.ndarray) -> um.Embeddings:
            vectors = voices[who] + 0.8 * rng.normal(size=(len(who), DIMENSIONS))
            return um.Embeddings(vectors, *names, columns=columns)

        return said(own), said(kept * own + np.sqrt(1 - kept**2) * new)


EQUAL = (
    Law((20, 20), (0.4, 0.4)),
    Law((10, 40), (0.4, 0.4)),
    Law((5, 35), (0.4, 0.4)),
    Law((5, 35), (0.0, 0.0)),
    Law((10, 40), (0.4, 0.4), apart=3.0),
)
UNEQUAL = (Law((20, 20), (0.6, 0.3)), Law((10, 40), (-0.7, 0.0)))


def linkability_gap(law: Law, number: int) -> tuple[float, float]:
    """The gap of Linkability of a sample, and its p."""
    original, protected = law.sample(number)
    first = np.arange(len(original)) % 2 == 0
    sides = original.select(first), protected.select(~first)
    attackers = {
        name: um.Attacker(*sides, name, enrols="original") for name in ("cosine", "whitened")
    }
    how = {"counts": [20], "lengths": [1], "metrics": ["linkability"], "replicates": 0}
    sweep = um.assess_attackers(attackers, seed=number, **how)
    gap = risk_gaps(sweep, attackers, "group").gaps[0]["linkability_gap"]
    return float(gap.value), gap.luck.p


def deid_gap(law: Law, number: int) -> tuple[float, float]:
    """The gap of DeID of a sample, and its p."""
    original, protected = law.sample(number)
    sizes = np.cumsum((0, *law.sizes))
    groups = {
        name: {f"s{n:03}" for n in range(*sizes[k : k + 2])} for k, name in enumerate(("a", "b"))
    }
    setup = Setup(replicates=2, seed=number)
    how = {"system": "x", "by": "group", "backend": Cosine(), "attackers": {}, "setup": setup}
    gap = by_group(original, protected, groups, **how).gaps["deid_gap"]
    return float(gap.value), gap.luck.p


def main() -> None:
    """Print a line for each law."""
    words = argparse.ArgumentParser(prog="studies.group_risks", description=__doc__)
    words.add_argument("--samples", type=int, default=SAMPLES, help="samples a law")
    words.add_argument("--of-deid", type=int, default=SAMPLES_OF_DEID, help="samples of DeID a law")
    words.add_argument("--laws", default="", help="laws whose names contain this, for a part")
    options = words.parse_args()
    warnings.simplefilter("ignore")
    runs = (
        ("Linkability", partial(linkability_gap), (*EQUAL, *UNEQUAL), options.samples),
        ("DeID", partial(deid_gap), (*EQUAL[:2], *UNEQUAL[:1]), options.of_deid),
    )
    for metric, gap_of, laws, samples in runs:
        for law in (one for one in laws if options.laws in one.name):
            begin = time.perf_counter()
            if law in UNEQUAL:
                samples = min(samples, 40)
            found = np.array([gap_of(law, number) for number in range(samples)]).reshape(-1, 2)
            if not len(found):
                continue
            gap, share = 100 * found[:, 0].mean(), 100 * (found[:, 1] <= 0.05).mean()
            took = time.perf_counter() - begin
            print(
                f"{metric:<12}{law.name:<58} gap {gap:5.1f} points, p <= 0.05 in {share:5.1f} %"
                f" of {len(found)}, {took:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
