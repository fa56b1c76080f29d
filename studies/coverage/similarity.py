"""Intervals of DeID, G_VD and D_ECE, of their normalised twins and of the log domain: voices of
which protection keeps a known part.

A protected voice is share·own + √(1 − share²)·new. What is true of such a population is the mean of
large samples; where nothing of the own voice is kept, DeID is 100 %. Real voices are those of the
bundled case study: samples of its speakers, judged by all of them, which is a little too easy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import unmask as um
from studies.coverage.study import SPEAKERS, Array, Drawn, Study, ends

METRICS = ("deid", "deid_strongest", "g_vd", "d_ece")
DETAILS = ("deid_d_ece", "deid_min_cllr", "g_d_ece", "g_min_cllr", "deid_log", "g_vd_log")
REPLICATES = 100
DIMENSIONS = 16
_LARGE, _TIMES = 300, 12


@dataclass(frozen=True)
class Voices:
    """A law of original and protected voices.

    ``share`` of the own voice is kept, differently by speaker where it has a ``spread``;
    ``heterogeneity`` is the spread of the logarithm of each speaker's own variation; ``freedom``
    are the degrees of freedom of Student's t, 0 for Gaussian tails. The speech of an ``untouched``
    share of the speakers is not protected at all. Samples follow from ``seed``.
    """

    name: str
    share: float
    spread: float = 0.0
    heterogeneity: float = 0.3
    utterances: int = 6
    freedom: float = 0.0
    untouched: float = 0.0
    seed: int = 0

    def sample(
        self, rng: np.random.Generator, speakers: int
    ) -> tuple[um.Embeddings, um.Embeddings]:
        """Original and protected utterances of some speakers."""
        original, protected = self.runs(rng, speakers, 1)
        return original, protected

    def runs(self, rng: np.random.Generator, speakers: int, runs: int) -> list[um.Embeddings]:
        """Original utterances and those of runs of a safeguard that draws new voices each time."""
        shape = speakers, DIMENSIONS
        own, new = rng.normal(size=shape), rng.normal(size=(runs, *shape))
        share = np.clip(self.share + self.spread * rng.normal(size=(speakers, 1)), 0.0, 1.0)
        varied = 0.8 * np.exp(self.heterogeneity * rng.normal(size=(speakers, 1)))
        codes = np.repeat(np.arange(speakers), self.utterances)
        names = [f"s{code}" for code in codes]
        utterances = [f"u{row}" for row in range(codes.size)]

        def spoken(voice: Array, spread: Array) -> um.Embeddings:
            noise = rng.normal(size=(codes.size, DIMENSIONS))
            if self.freedom:
                noise /= np.sqrt(rng.chisquare(self.freedom, (codes.size, 1)) / self.freedom)
            return um.Embeddings(voice[codes] + spread[codes] * noise, names, utterances)

        kept = [share * own + np.sqrt(1 - share**2) * each for each in new]
        made = [spoken(own, varied), *(spoken(voice, 1.2 * varied) for voice in kept)]
        if self.untouched:
            same = (rng.random(speakers) < self.untouched)[codes]
            first = made[0].vectors
            kept = [np.where(same[:, None], first, run.vectors) for run in made]
            made = [um.Embeddings(vectors, names, utterances) for vectors in kept]
        return made


POPULATIONS = (
    Voices("half own voice", 0.5, spread=0.15),
    Voices("quarter own", 0.25, spread=0.15),
    Voices("no own voice", 0.0),
    Voices("homogeneous", 0.4, heterogeneity=0.0),
    Voices("few protected", 0.1, untouched=0.97),
)
# No constant of an interval was chosen on samples of this law.
KEPT_APART = Voices("kept apart", 0.35, spread=0.3, heterogeneity=0.5, freedom=5.0, seed=71)


def studies() -> list[Study]:
    """Every law with every number of speakers, and speakers of the case study."""
    made = [
        Study(voices.name, speakers, (sample, voices, speakers), (truth, voices))
        for voices in (KEPT_APART, *POPULATIONS)
        for speakers in SPEAKERS
    ]
    real = [
        Study(f"real, {name}", 20, (real_sample, name, 20), (real_truth, name))
        for name in ("b2", "b2w")
    ]
    return made + real


def truth(voices: Voices, *, large: int = _LARGE, times: int = _TIMES) -> dict[str, float]:
    """Every number of the population: the mean of large samples, ratios averaged as ratios."""
    rng = np.random.default_rng([2026, voices.seed])
    result = [um.pseudonymisation(*voices.sample(rng, large), replicates=0) for _ in range(times)]
    known = {"d_ece": float(np.mean([one.sets["op"].zebra.d_ece for one in result]))}
    known["deid_strongest"] = float(np.mean([min(one.attacks.values()) for one in result]))
    for metric in ("deid", *DETAILS, "g_vd"):
        values = np.array([getattr(one, metric) for one in result])
        if metric.startswith("g_"):
            values = 10 * np.log10((10 ** (values / 10)).mean())
        known[metric] = float(values.mean())
    if voices.share == 0 and voices.spread == 0:
        known |= {metric: 1.0 for metric in known if metric.startswith("deid")} | {"d_ece": 0.0}
    return known


def sample(voices: Voices, speakers: int, number: int, replicates: int = REPLICATES) -> Drawn:
    """Intervals of one sample."""
    made = voices.sample(np.random.default_rng([voices.seed, number]), speakers)
    return _intervals(*made, number, replicates)


@cache
def _real(safeguard: str) -> tuple[um.Embeddings, um.Embeddings]:
    from unmask.speech import case_study

    voices = case_study("campplus")
    return voices["original"], voices[safeguard]


def real_truth(safeguard: str) -> dict[str, float]:
    """Numbers of all speakers of the case study."""
    whole = um.pseudonymisation(*_real(safeguard), replicates=0)
    known = {metric: float(getattr(whole, metric)) for metric in ("deid", "g_vd", *DETAILS)}
    strongest = min(whole.attacks.values())
    return known | {"d_ece": whole.sets["op"].zebra.d_ece, "deid_strongest": strongest}


def real_sample(safeguard: str, speakers: int, number: int) -> Drawn:
    """Intervals of some of them, drawn without replacement."""
    both = _real(safeguard)
    every = np.unique(both[0].speakers.to_series().to_numpy())
    names = np.random.default_rng(number).choice(every, speakers, replace=False).tolist()
    some = [e.select(e.speakers.to_series().is_in(names).to_numpy()) for e in both]
    return _intervals(some[0], some[1], number, REPLICATES)


def _intervals(
    original: um.Embeddings, protected: um.Embeddings, seed: int, replicates: int
) -> Drawn:
    made = um.pseudonymisation(original, protected, replicates=replicates, seed=seed)
    values = {metric: getattr(made, metric) for metric in ("deid", "g_vd", *DETAILS)}
    values["d_ece"] = made.sets["op"].zebra.d_ece
    values["deid_strongest"] = min(made.attacks.values())
    return {metric: ends(made.interval(metric), values[metric]) for metric in (*METRICS, *DETAILS)}
