"""``python -m studies.release [--samples N] [NAME …]``: what is linked within a release.

The first table draws releases with a voice for each utterance, in which nobody can be linked, and
counts how often p is at most 0.05 and 0.01. People are exchanged in pairs; one renaming for both
ways in which a pair of recordings is scored would read 13 % with 40 people of two recordings.

The second draws people with two voices that take turns in several orders, a voice for each of four
sessions, and one for each utterance, and gives Linkability among 20 and the level of luck.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np

import unmask as um
from unmask.base import IntArray
from unmask.estimate import Luck

DIMENSIONS = 32
VOICES = 10


@dataclass(frozen=True)
class Release:
    """People with so many ``recordings`` each, repeated until there are ``people`` of them.

    Attributes
    ----------
    bound
        The largest share of sets without information that may have p at most 0.05.
    parts
        What a round leaves out.
    """

    people: int
    recordings: tuple[int, ...]
    bound: float
    length: int = 1
    parts: str = "utterances"

    @property
    def name(self) -> str:
        """How the table calls it."""
        numbers = ",".join(map(str, self.recordings))
        told = "" if self.length == 1 else f" L={self.length}"
        return f"{self.people}x{numbers}{told} {self.parts}"

    def p(self, number: int) -> float:
        """Adjusted p-value of the strongest reading of one set."""
        owner = np.repeat(np.arange(self.people), np.resize(self.recordings, self.people))
        rng = np.random.default_rng([number, self.people, 12])
        vectors = rng.normal(size=(len(owner), DIMENSIONS)) + 0.7 * rng.normal(size=DIMENSIONS)
        voices = um.Embeddings(vectors, [f"p{code:03d}" for code in owner])
        luck = strongest(um.within_release(voices, parts=self.parts), self.length, number)[1]
        assert luck is not None
        return luck.p


LAWS = (
    Release(40, (2,), 0.10),
    Release(40, (4,), 0.10),
    Release(20, (6,), 0.10),
    Release(30, (2, 3, 4, 10, 20), 0.14),
    Release(20, (12,), 0.10, length=3),
    Release(40, (4,), 0.10, parts="record to record"),
)


def strongest(attacker: um.Attacker, length: int, seed: int) -> tuple[float, Luck | None]:
    """Linkability of the strongest of four readings, and what luck reads."""
    sweep = um.assess_attackers(
        {"it": attacker},
        counts=[20],
        lengths=[length],
        metrics=["linkability"],
        replicates=0,
        seed=seed,
    )
    found = sweep.worst("linkability")
    return float(found.estimate.value), found.luck


def turns(name: str, number: int, rng: np.random.Generator) -> IntArray:
    """Which voice each of a person's recordings has, in the order of their names."""
    at = np.arange(number)
    made: dict[str, IntArray] = {
        "one": at * 0,
        "a b a b": at % 2,
        "a a b b": at // 2 % 2,
        "two blocks": at // (number // 2),
        "at random": rng.integers(0, 2, number),
        "four sessions": at // (number // 4),
        "each utterance": at,
    }
    return made[name]


def alternating(name: str, samples: int, people: int = 30, number: int = 12) -> str:
    """A row of the second table: means over samples."""
    values = []
    for sample in range(samples):
        rng = np.random.default_rng([sample, people, number])
        version = np.concatenate([turns(name, number, rng) for _ in range(people)])
        owner = np.repeat(np.arange(people), number)
        voices = rng.normal(size=(people, number, DIMENSIONS))[owner, version]
        sessions = [f"day{turn}" for turn in np.tile(np.arange(number) // 3, people)]
        release = um.Embeddings(
            voices + 0.5 * rng.normal(size=voices.shape),
            [f"p{code:02d}" for code in owner],
            [f"u{row:04d}" for row in range(len(owner))],
            sessions,
        )
        asked = (("utterances", 1), ("utterances", 3), ("record to record", 1), ("sessions", 1))
        row = []
        for parts, length in asked:
            value, luck = strongest(um.within_release(release, parts=parts), length, sample)
            row += [value, np.nan if luck is None else luck.value]
        values.append(row)
    return f"{name:16}" + "".join(f"{100 * value:9.1f}" for value in np.mean(values, axis=0))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=200)
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'no information':32} {'sets':>5} {'p<=.05':>7} {'p<=.01':>7} {'at most':>8}")
    for law in LAWS:
        if told.names and not any(name in law.name for name in told.names):
            continue
        p = np.array([law.p(number) for number in range(told.samples)])
        shares = np.mean(p <= 0.05 + 1e-9), np.mean(p <= 0.01 + 1e-9)
        print(
            f"{law.name:32} {len(p):5} {100 * shares[0]:7.1f} {100 * shares[1]:7.1f}"
            f" {100 * law.bound:8.0f}",
            flush=True,
        )
    if told.names:
        return
    print()
    heads = ("L = 1", "L = 3", "records", "sessions")
    print(f"{'voices, 30 x 12':16}" + "".join(f"{head:>9}{'luck':>9}" for head in heads))
    for name in ("one", "a b a b", "a a b b", "two blocks", "at random"):
        print(alternating(name, max(told.samples // 20, 1)), flush=True)
    for name in ("four sessions", "each utterance"):
        print(alternating(name, max(told.samples // 20, 1)), flush=True)


if __name__ == "__main__":
    main()
