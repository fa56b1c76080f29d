"""Coverage of the intervals of Linkability, Singling Out, 1 − EER and the worst decile.

For a fixed number of speakers the mean over samples is the truth of Linkability and Singling Out,
which are unbiased; that of 1 − EER and of the worst decile comes from very many speakers: a hull
through few trials lies too far out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import unmask as um
from studies.coverage.study import SPEAKERS, Array, Drawn, Study

DIMENSIONS = 24
ENROL, TEST = 3, 5
_LARGE, _MANY = 1500, 40
_PEOPLE, _TESTED, _OTHERS = 20_000, 4, 10


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
        result = []
        for tag, each in (("e", ENROL), ("t", tested)):
            owner = np.repeat(np.arange(speakers), each)
            rows = voices[owner] + rng.normal(size=(len(owner), DIMENSIONS))
            names = [f"{tag}{i}" for i in range(len(owner))]
            result.append(um.Embeddings(rows, [f"s{i}" for i in owner], names))
        return tuple(result)


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


def studies() -> list[Study]:
    """Every law with every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in (KEPT_APART, *LAWS)
        for speakers in SPEAKERS
    ]


def truth(law: Law) -> dict[str, float]:
    """What is not the mean over samples."""
    enrol, test = law.sample(np.random.default_rng(99), _LARGE, _MANY)
    many = um.LegalProtocol(max_conversations=_MANY)
    linked = um.linkability(enrol, test, counts=[20], replicates=0, protocol=many)
    risks = np.sort(linked.per_speaker[:, 0])
    return {
        "worst decile N=20": float(risks[-_LARGE // 10 :].mean()),
        "one_minus_eer": one_minus_eer(law),
    }


def one_minus_eer(law: Law) -> float:
    """1 − EER of very many speakers, each against ten others."""
    rng = np.random.default_rng(99)
    enrol, test = law.sample(rng, _PEOPLE, _TESTED)
    rows = _unit(test.vectors)
    known = _unit(_unit(enrol.vectors).reshape(_PEOPLE, ENROL, -1).mean(axis=1))
    owner = np.repeat(np.arange(_PEOPLE), _TESTED)[:, None]
    others = (owner + rng.integers(1, _PEOPLE, (len(owner), _OTHERS))) % _PEOPLE
    same, differ = (np.einsum("id,ijd->ij", rows, known[j]) for j in (owner, others))
    return float(1 - um.eer(same.ravel(), differ.ravel()))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Value, low and high end of each metric in one sample, at 20 and at all speakers."""
    rng = np.random.default_rng([law.seed, speakers, number])
    enrol, test = law.sample(rng, speakers)
    counts = [20] if speakers <= 20 else [20, speakers]
    linked = um.linkability(enrol, test, counts=counts)
    singled = um.singling_out(enrol, test, counts=counts, folds=5)
    result = {
        f"{name} N={('20', 'all')[i]}": (curve.value[i], curve.low[i], curve.high[i])
        for name, curve in {"singling_out": singled, "linkability": linked}.items()
        for i in range(len(counts))
    }
    eer = um.privacy.one_minus_eer(enrol, test, counts=[speakers], replicates=300)
    limits = linked.worst_decile_limits(0)
    assert limits is not None
    return result | {
        "one_minus_eer": (eer.value[0], eer.low[0], eer.high[0]),
        "worst decile N=20": (linked.worst_decile[0], *limits),
    }
