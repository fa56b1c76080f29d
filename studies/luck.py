"""``python -m studies.luck [--samples N] [--processes N] [NAME …]``: is luck told from a leak?

Draws people with original and protected voices, runs all attacks of ``um.pseudonymisation`` and
``um.assess_attackers`` on each sample, and prints for the strongest of them how often p is at most
0.05, what was found and what luck reads, averaged over samples. New voices that have nothing of
their owner keep none, half or all of what a recording holds beside the voice (words, room); then at
most about 5 % of the samples may be called beyond chance. Where 0.6 of the voice is left, or one
shift hides all voices alike, all samples should be.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

import unmask as um
from unmask.run import run_on

BACKENDS = ("cosine", "wccn", "whitened", "wasserstein")
REPLICATES = 20


@dataclass(frozen=True)
class Law:
    """``owned`` of the owner's voice is left, ``kept`` of the recording's residual; all voices are
    moved by ``shift``.
    """

    name: str
    people: int
    utterances: int
    owned: float = 0.0
    kept: float = 0.0
    shift: float = 0.0
    dimensions: int = 32

    def sample(self, number: int) -> tuple[um.Embeddings, um.Embeddings, um.Embeddings]:
        """Original speech, the release, and a run of the attacker's own."""
        rng = np.random.default_rng([number, self.people, self.utterances])
        codes = np.repeat(np.arange(self.people), self.utterances)
        speakers = [f"s{code:03d}" for code in codes]
        spoken = [f"u{row:05d}" for row in range(codes.size)]
        own = rng.normal(size=(self.people, self.dimensions))
        shape = codes.size, self.dimensions
        rest, moved = rng.normal(size=shape), self.shift * rng.normal(size=self.dimensions)

        def run() -> um.Embeddings:
            new = rng.normal(size=own.shape)
            voice = self.owned * own + np.sqrt(1 - self.owned**2) * new
            noise = self.kept * rest + np.sqrt(1 - self.kept**2) * rng.normal(size=shape)
            return um.Embeddings(voice[codes] + 0.8 * noise + moved, speakers, spoken)

        return um.Embeddings(own[codes] + 0.8 * rest, speakers, spoken), run(), run()


LAWS = (
    Law("small set", 12, 6, dimensions=24),
    *(
        Law(f"residual {kept:g}", people, 10, kept=kept)
        for kept in (0.0, 0.5, 1.0)
        for people in (20, 40, 60)
    ),
    Law("30 × 10, residual 1", 30, 10, kept=1.0),
    Law("0.6 left", 30, 10, owned=0.6, kept=0.5),
    Law("one shift", 30, 10, owned=1.0, shift=5.0),
)


def tried(law: Law, number: int) -> dict[str, tuple[float, float, float]]:
    """p, what was found and what luck reads, by metric, of one sample."""
    warnings.simplefilter("ignore")
    original, release, again = law.sample(number)
    rivals = {name: um.Attacker(original, release, name) for name in ("whitened", "wasserstein")}
    with run_on("local", workers=1):
        matrices = um.pseudonymisation(
            original, release, attackers=rivals, replicates=REPLICATES, seed=number
        )
        first = np.arange(len(original)) % 2 == 0
        known, own = original.select(first), again.select(first)
        enrolled = {"original enrolment": known, "own run": own}
        attackers = {
            f"{who} ({name})": um.Attacker(some, release.select(~first), name, some, release=False)
            for who, some in enrolled.items()
            for name in BACKENDS
        }
        how = {"metrics": ("linkability", "singling_out"), "replicates": REPLICATES}
        swept = um.assess_attackers(attackers, **how, seed=number)
        within = um.Attacker(release.select(first), release.select(~first), release=True)
        linked = um.assess_attackers({"release": within}, **how, seed=number)
    found = {e.metric: e for e in matrices.estimates if e.luck is not None}
    for metric in how["metrics"]:
        found[metric] = swept.worst(metric).estimate
        found[f"{metric}, release"] = linked.worst(metric).estimate
    best = swept.worst("singling_out")
    curve = swept.curves[best.attacker, "singling_out", best.length]
    found["isolates its own"] = curve.details(int(curve.counts.argmin()))[-1]
    return {
        name: (one.luck.p, float(one.value), one.luck.value)
        for name, one in found.items()
        if one.luck is not None
    }


def main() -> None:
    """Simulate all laws, or those whose names contain a word."""
    words = argparse.ArgumentParser(prog="studies.luck", description=__doc__)
    words.add_argument("names", nargs="*", help="words that names of laws contain")
    words.add_argument("--samples", type=int, default=100, help="samples of each law")
    words.add_argument("--processes", type=int, default=1, help="worker processes")
    options = words.parse_args()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    os.environ["POLARS_MAX_THREADS"] = "1"
    print(f"{'law':20} {'people':>6} {'number':24} {'p ≤ 0.05':>9} {'found':>9} {'luck':>9}")
    with ProcessPoolExecutor(options.processes) as pool:
        for law in LAWS:
            if options.names and not any(word in law.name for word in options.names):
                continue
            some = list(pool.map(partial(tried, law), range(options.samples), chunksize=2))
            for metric in some[0]:
                rows = np.array([one[metric] for one in some if metric in one])
                share = f"{100 * (rows[:, 0] <= 0.05 + 1e-9).mean():7.1f} %"
                means = " ".join(f"{value:9.4f}" for value in rows[:, 1:].mean(axis=0))
                print(f"{law.name:20} {law.people:6} {metric:24} {share:>9} {means}", flush=True)


if __name__ == "__main__":
    main()
