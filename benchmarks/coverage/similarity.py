"""Intervals of DeID, G_VD and D_ECE, of their normalised twins and of the log domain: voices of
which protection keeps a known part.

A protected voice is share·own + √(1 − share²)·new. What is true of such a population is the mean of
large samples; where nothing of the own voice is kept, DeID is 100 %. Real voices are those of the
bundled case study: samples of its speakers, judged by all of them, which is a little too easy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

import unmask as um
from benchmarks.coverage.tally import Tally, header, line

Array = npt.NDArray[np.float64]
METRICS = ("deid", "g_vd", "d_ece")
DETAILS = ("deid_d_ece", "deid_min_cllr", "g_d_ece", "g_min_cllr", "deid_log", "g_vd_log")
SPEAKERS = (20, 40, 60)
SAMPLES = 200
REPLICATES = 100
DIMENSIONS = 16
_LARGE, _TIMES = 300, 12


@dataclass(frozen=True)
class Voices:
    """A law of original and protected voices.

    ``share`` of the own voice is kept, differently by speaker where it has a ``spread``;
    ``heterogeneity`` is the spread of the logarithm of each speaker's own variation; ``freedom``
    are the degrees of freedom of Student's t, 0 for Gaussian tails. Samples follow from ``seed``.
    """

    name: str
    share: float
    spread: float = 0.0
    heterogeneity: float = 0.3
    utterances: int = 6
    freedom: float = 0.0
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
        return [spoken(own, varied), *(spoken(voice, 1.2 * varied) for voice in kept)]


POPULATIONS = (
    Voices("half own voice", 0.5, spread=0.15),
    Voices("quarter own", 0.25, spread=0.15),
    Voices("no own voice", 0.0),
    Voices("homogeneous", 0.4, heterogeneity=0.0),
)
# No constant of an interval was chosen on samples of this law.
KEPT_APART = Voices("kept apart", 0.35, spread=0.3, heterogeneity=0.5, freedom=5.0, seed=71)


@cache
def truth(voices: Voices, *, large: int = _LARGE, times: int = _TIMES) -> dict[str, float]:
    """Every number of the population: the mean of large samples, ratios averaged as ratios."""
    rng = np.random.default_rng([2026, voices.seed])
    found = [um.pseudonymisation(*voices.sample(rng, large), replicates=0) for _ in range(times)]
    known = {"d_ece": float(np.mean([one.sets["op"].zebra.d_ece for one in found]))}
    for metric in ("deid", *DETAILS, "g_vd"):
        values = np.array([getattr(one, metric) for one in found])
        if metric.startswith("g_"):
            values = 10 * np.log10((10 ** (values / 10)).mean())
        known[metric] = float(values.mean())
    if voices.share == 0 and voices.spread == 0:
        known |= {metric: 1.0 for metric in known if metric.startswith("deid")} | {"d_ece": 0.0}
    return known


def covered(
    voices: Voices,
    speakers: int,
    *,
    known: dict[str, float] | None = None,
    samples: int = SAMPLES,
    replicates: int = REPLICATES,
) -> dict[str, Tally]:
    """Tallies of all samples of so many speakers."""
    made = (
        voices.sample(np.random.default_rng([voices.seed, number]), speakers)
        for number in range(samples)
    )
    return _tallied(made, known or truth(voices), replicates)


def real(speakers: int, safeguard: str, *, samples: int, replicates: int) -> dict[str, Tally]:
    """The same for speakers of the case study, drawn without replacement."""
    from unmask.speech import case_study

    voices = case_study("campplus")
    both = voices["original"], voices[safeguard]
    whole = um.pseudonymisation(*both, replicates=0)
    known = {"deid": whole.deid, "g_vd": whole.g_vd, "d_ece": whole.sets["op"].zebra.d_ece}

    def drawn() -> Iterator[tuple[um.Embeddings, um.Embeddings]]:
        for number in range(samples):
            rng = np.random.default_rng(number)
            names = rng.choice(whole.speakers, speakers, replace=False).tolist()
            original, protected = (
                e.select(e.speakers.to_series().is_in(names).to_numpy()) for e in both
            )
            yield original, protected

    return _tallied(drawn(), known, replicates)


def _tallied(
    made: Iterator[tuple[um.Embeddings, um.Embeddings]], known: dict[str, float], replicates: int
) -> dict[str, Tally]:
    tallies = {metric: Tally(known[metric]) for metric in (*METRICS, *DETAILS) if metric in known}
    for number, (original, protected) in enumerate(made):
        result = um.pseudonymisation(original, protected, replicates=replicates, seed=number)
        for metric, tally in tallies.items():
            interval = result.interval(metric)
            tally.add_interval(interval)
    return tallies


def run(*, samples: int = SAMPLES) -> None:
    """Print coverage for every population, number of speakers and number."""
    header()
    for voices in (KEPT_APART, *POPULATIONS):
        for speakers in SPEAKERS:
            for metric, tally in covered(voices, speakers, samples=samples).items():
                line(voices.name, speakers, metric, tally)
    for safeguard in ("b2", "b2w"):
        for metric, tally in real(20, safeguard, samples=samples, replicates=REPLICATES).items():
            line(f"real, {safeguard}", 20, metric, tally)
