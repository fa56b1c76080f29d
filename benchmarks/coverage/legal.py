"""Coverage of the intervals of Linkability, Singling Out and the worst decile.

A sample of speakers is drawn again and again from one law, and the share of intervals counted that
hold the truth. For a fixed number of speakers the mean over samples is the truth of Linkability and
Singling Out, which are unbiased; that of the worst decile comes from a sample of very many
speakers. 1 − EER, which is quick, has a module of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import unmask as um

Array = npt.NDArray[np.float64]
DIMENSIONS = 24
ENROL, TEST = 3, 5
_LARGE, _MANY = 1500, 40


@dataclass(frozen=True)
class Law:
    """Voices of spread ``separation`` about recordings of spread 1.

    ``heterogeneity`` is the spread of the logarithm of each speaker's own separation;
    of ``unprotected`` speakers the separation is 4 whatever that of the others. Samples follow
    from ``seed``.
    """

    name: str
    separation: float
    heterogeneity: float = 0.0
    unprotected: float = 0.0
    seed: int = 0

    def sample(
        self, rng: np.random.Generator, speakers: int, tested: int = TEST
    ) -> tuple[um.Embeddings, ...]:
        """Enrolment and test embeddings of speakers drawn anew."""
        size = self.separation * np.exp(self.heterogeneity * rng.normal(size=speakers))
        size = np.where(rng.random(speakers) < self.unprotected, 4.0, size)
        voices = size[:, None] * rng.normal(size=(speakers, DIMENSIONS))
        found = []
        for tag, each in (("e", ENROL), ("t", tested)):
            owner = np.repeat(np.arange(speakers), each)
            rows = voices[owner] + rng.normal(size=(len(owner), DIMENSIONS))
            names = [f"{tag}{i}" for i in range(len(owner))]
            found.append(um.Embeddings(rows, [f"s{i}" for i in owner], names))
        return tuple(found)


LAWS = (
    Law("moderate", 0.55),
    Law("near 0", 0.1),
    Law("near 1", 1.6),
    Law("heterogeneous", 0.55, heterogeneity=0.7),
    Law("few unprotected", 0.1, unprotected=0.05),
    Law("few protected", 0.2, unprotected=0.95),
)
# No constant of an interval was chosen on samples of this law.
KEPT_APART = Law("kept apart", 0.4, heterogeneity=0.4, unprotected=0.2, seed=73)


@cache
def risks(law: Law) -> Array:
    """The risks of very many speakers."""
    enrol, test = law.sample(np.random.default_rng(99), _LARGE, _MANY)
    linked = um.linkability(enrol, test, counts=[20], replicates=0, max_conversations=_MANY)
    return np.asarray(linked.per_speaker[:, 0])


def sampled(law: Law, speakers: int, times: int, seed: int = 0) -> dict[str, Array]:
    """Value, low and high end of each metric in each sample, at 20 and at all speakers."""
    rng = np.random.default_rng([seed, speakers])
    counts = [20] if speakers <= 20 else [20, speakers]
    found: dict[str, list[Any]] = {}
    for _ in range(times):
        enrol, test = law.sample(rng, speakers)
        curves = {
            "singling_out": um.singling_out(enrol, test, counts=counts, folds=5),
            "linkability": um.linkability(enrol, test, counts=counts),
        }
        for name, curve in curves.items():
            for i, count in enumerate(counts):
                row = [curve.value[i], curve.low[i], curve.high[i]]
                found.setdefault(f"{name} N={count}", []).append(row)
        linked = curves["linkability"]
        assert isinstance(linked, um.privacy.Linkability)
        limits = linked.worst_decile_limits(0)
        assert limits is not None
        found.setdefault("worst decile N=20", []).append([linked.worst_decile[0], *limits])
    return {name: np.array(rows) for name, rows in found.items()}


def coverage(rows: Array, truth: float) -> tuple[float, float, float]:
    """Share of intervals that hold the truth, lie above it, and lie below it."""
    low, high = rows[:, 1:3].T
    near = 1e-9
    above, below = (low > truth + near).mean(), (high < truth - near).mean()
    assert (high > low).all()
    return float(1 - above - below), float(above), float(below)


def header() -> None:
    """The first line of a table."""
    print(
        f"{'law':<18}{'speakers':>9}  {'metric':<24}{'truth':>8}{'held':>8}{'above':>8}{'below':>8}"
    )


def line(law: str, speakers: int, name: str, rows: Array, truth: float) -> None:
    """One line of it."""
    shown = "".join(f"{share:>8.3f}" for share in (truth, *coverage(rows, truth)))
    print(f"{law:<18}{speakers:>9}  {name:<24}{shown}", flush=True)


def run(*, samples: int = 200) -> None:
    """Print a table."""
    header()
    for law in (KEPT_APART, *LAWS):
        for speakers in (20, 40, 60):
            for name, rows in sampled(law, speakers, samples, law.seed).items():
                truth = float(rows[:, 0].mean())
                if name.startswith("worst"):
                    truth = float(np.sort(risks(law))[-_LARGE // 10 :].mean())
                line(law.name, speakers, name, rows, truth)


if __name__ == "__main__":
    run()
