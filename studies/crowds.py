"""``python -m studies.crowds [--samples N] [--voices FILE.npz] [--unlike]``: hide people, ask for
them.

Populations of 20,000 whose Linkability among any number is known; some people are drawn,
``um.extrapolate_linkability`` is fitted on them and asked about more. The table has what is true,
what is read on average, how far single samples stray, what a Gaussian tail would read, how often
the 95 % interval holds the truth and how wide it is. ``--voices`` adds a population of real voices,
one vector each, about which recordings scatter.

``--unlike`` draws populations of 3,000 whose strangers are not one group, twenty of each law, and
shows 150 people to ask for 640, 60 to ask for 600. Its table has the bias and the root of the mean
square error of the point, how often the truth lies in the interval, and in it or below it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

import unmask as um
from unmask.privacy.legal.linking import exact_linkability

Array = npt.NDArray[np.float64]
Sides = tuple[Array, Array]
PEOPLE, DIMENSIONS, ATTEMPTS = 20_000, 24, 2_000
SEEN, ASKED = (20, 60, 150), (600, 1_500, 7_000)


def unit(rows: Array) -> Array:
    """Rows at length one."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def even(enrol: Array, test: Array) -> Sides:
    """Rows of equal length whose cosines are proportional to the inner products of these."""
    sides = []
    for rows, place in ((enrol, 0), (test, 1)):
        square = (rows**2).sum(axis=1)
        more = np.zeros((len(rows), 2))
        more[:, place] = np.sqrt(square.max() - square + 1e-9)
        sides.append(unit(np.hstack([rows, more])))
    return sides[0], sides[1]


def recorded(rng: np.random.Generator, voices: Array, noise: float) -> Sides:
    """Enrolled voices, which scatter less, and test recordings."""
    spread = (0.4 * noise, noise)
    enrol, test = (unit(voices + one * rng.normal(size=voices.shape)) for one in spread)
    return enrol, test


def drawn_voices(rng: np.random.Generator) -> Array:
    """Normal, in directions of unequal spread."""
    return np.asarray(rng.normal(size=(PEOPLE, DIMENSIONS)) * np.linspace(1.3, 0.6, DIMENSIONS))


def smooth(rng: np.random.Generator, noise: float = 0.9) -> Sides:
    """Normal voices."""
    return recorded(rng, drawn_voices(rng), noise)


def varied(rng: np.random.Generator) -> Sides:
    """Normal voices, some of them steadier than others."""
    return recorded(rng, np.exp(0.4 * rng.normal(size=(PEOPLE, 1))) * drawn_voices(rng), 0.8)


def clustered(rng: np.random.Generator) -> Sides:
    """300 families of very unequal size."""
    family = rng.choice(300, PEOPLE, p=rng.dirichlet(np.full(300, 0.5)))
    centres = rng.normal(size=(300, DIMENSIONS))
    return recorded(rng, 0.7 * centres[family] + 0.7 * drawn_voices(rng), 0.6)


def hubs(rng: np.random.Generator, strength: float = 0.07) -> Sides:
    """Some enrolled voices are close to everybody: their scores have an exponential amount more."""
    enrol, test = recorded(rng, drawn_voices(rng), 0.6)
    amount = strength * rng.exponential(size=(PEOPLE, 1))
    return even(np.hstack([enrol, amount]), np.hstack([test, np.ones((PEOPLE, 1))]))


def heavy(rng: np.random.Generator) -> Sides:
    """Scores with tails of Student's t with five degrees of freedom, by enrolled voice."""
    enrol, test = recorded(rng, drawn_voices(rng), 0.6)
    return even(enrol * np.sqrt(5 / rng.chisquare(5, size=(PEOPLE, 1))), test)


def familiar(rng: np.random.Generator) -> Sides:
    """All voices share a direction, some more than others, as uncentred embeddings do."""
    shared = rng.lognormal(0.6, 0.5, size=(PEOPLE, 1)) * np.eye(DIMENSIONS)[:1]
    return recorded(rng, drawn_voices(rng) + shared, 0.7)


def apart(rng: np.random.Generator) -> Sides:
    """Two groups of unequal size far from each other, recordings of unequal noise, few directions.
    No constant was chosen on it.
    """
    voices = drawn_voices(rng)[:, :14]
    voices[:, 0] += np.where(rng.random(PEOPLE) < 0.3, 3.0, -1.0)
    noise = 0.5 * rng.lognormal(0.0, 0.4, size=(2, PEOPLE, 1))
    enrol, test = (unit(voices + one * rng.normal(size=voices.shape)) for one in noise)
    return enrol, test


SMALL, POPULATIONS, SHOWN = 3_000, 20, ((150, 640), (60, 600))


def plain(rng: np.random.Generator) -> Sides:
    """Normal voices of equal spread."""
    return recorded(rng, rng.normal(size=(SMALL, DIMENSIONS)), 1.05)


def long_tails(rng: np.random.Generator) -> Sides:
    """Voices whose coordinates have Student's t with three degrees of freedom."""
    return recorded(rng, rng.standard_t(3, size=(SMALL, DIMENSIONS)), 1.0)


def two_groups(rng: np.random.Generator, apart: float, share: float = 0.5) -> Sides:
    """Two groups in one of the directions; scores with strangers of one's own group lie ``apart``
    deviations of such scores above those with the other group.
    """
    voices = rng.normal(size=(SMALL, DIMENSIONS))
    sign = np.where(rng.random(SMALL) < share, 1.0, -1.0)
    few = rng.choice(SMALL, 600, replace=False)
    low, high = 0.0, 20.0
    for _ in range(20):
        middle = (low + high) / 2
        shifted = unit(voices[few] + middle * sign[few, None] * np.eye(DIMENSIONS)[0])
        scores = shifted @ shifted.T
        is_alike = sign[few][:, None] == sign[few]
        upper = np.triu(np.ones(scores.shape, dtype=bool), 1)
        alike, other = scores[is_alike & upper], scores[~is_alike & upper]
        is_too_far = alike.mean() - other.mean() > apart * alike.std()
        low, high = (low, middle) if is_too_far else (middle, high)
    return recorded(rng, voices + low * sign[:, None] * np.eye(DIMENSIONS)[0], 1.05)


def like_people(rng: np.random.Generator, size: int, spread: float, noise: float) -> Sides:
    """Groups of so many people who scatter about a common voice."""
    centres = rng.normal(size=(SMALL // size, DIMENSIONS))
    voices = np.repeat(centres, size, axis=0)
    return recorded(rng, voices + spread * rng.normal(size=voices.shape), noise)


def twins(rng: np.random.Generator) -> Sides:
    """One in five people has a twin."""
    voices = rng.normal(size=(SMALL, DIMENSIONS))
    tenth = SMALL // 10
    voices[:tenth] = voices[tenth : 2 * tenth] + 0.3 * rng.normal(size=(tenth, DIMENSIONS))
    return recorded(rng, voices, 0.9)


def few_hubs(rng: np.random.Generator) -> Sides:
    """Some enrolled voices are close to everybody."""
    enrol, test = plain(rng)
    amount = 0.07 * rng.exponential(size=(SMALL, 1))
    return even(np.hstack([enrol, amount]), np.hstack([test, np.ones((SMALL, 1))]))


def unlike_noise(rng: np.random.Generator) -> Sides:
    """The recordings of some people are noisier than those of others."""
    voices = rng.normal(size=(SMALL, DIMENSIONS))
    noise = 0.8 * rng.lognormal(0.0, 0.5, size=(SMALL, 1))
    return unit(voices + 0.3 * rng.normal(size=voices.shape)), unit(
        voices + noise * rng.normal(size=voices.shape)
    )


UNLIKE: dict[str, Callable[[np.random.Generator], Sides]] = {
    "Gaussian": plain,
    "Student's t, 3": long_tails,
    "two groups, d' 1.5": partial(two_groups, apart=1.5),
    "two groups, d' 2.2": partial(two_groups, apart=2.2),
    "two groups, d' 3": partial(two_groups, apart=3.0),
    "two groups, d' 5": partial(two_groups, apart=5.0),
    "5 % another group": partial(two_groups, apart=8.0, share=0.05),
    "80/20 mix": partial(two_groups, apart=6.0, share=0.2),
    "families of ten": partial(like_people, size=10, spread=0.5, noise=0.4),
    "clusters of thirty": partial(like_people, size=30, spread=0.8, noise=0.6),
    "twins": twins,
    "hubs": few_hubs,
    "unlike noise": unlike_noise,
}


LAWS: dict[str, Callable[[np.random.Generator], Sides]] = {
    "smooth": smooth,
    "smooth, near 1": partial(smooth, noise=0.5),
    "varied": varied,
    "clustered": clustered,
    "hubs": hubs,
    "strong hubs": partial(hubs, strength=0.15),
    "heavy tails": heavy,
    "one direction": familiar,
    "kept apart": apart,
}


def truth(sides: Sides, rng: np.random.Generator, asked: Sequence[int] = ASKED) -> Array:
    """Linkability among the people asked about, in closed form over the whole population."""
    enrol, test = sides
    tried = rng.choice(len(test), ATTEMPTS, replace=False)
    counts = np.minimum(asked, len(enrol))
    above = np.empty(ATTEMPTS, dtype=np.int64)
    for start in range(0, ATTEMPTS, 200):
        rows = tried[start : start + 200]
        scores = test[rows] @ enrol.T
        above[start : start + 200] = (scores >= scores[np.arange(200), rows][:, None]).sum(1) - 1
    return np.asarray(exact_linkability(above, len(enrol) - 1, counts).mean(axis=0))


def samples(
    sides: Sides,
    people: int,
    number: int,
    rng: np.random.Generator,
    asked: Sequence[int] = ASKED,
) -> Iterator[um.privacy.legal.crowd.ExtrapolatedLinkability]:
    """What is read from people drawn anew."""
    names = [f"s{n:04}" for n in range(people)]
    for seed in range(number):
        some = rng.choice(len(sides[0]), people, replace=False)
        enrol, test = (um.Embeddings(side[some], names) for side in sides)
        yield um.extrapolate_linkability(enrol, test, counts=asked, seed=seed)


def unlike(number: int) -> None:
    """Strangers who are not one group: ``number`` samples of each law and size."""
    print(
        f"{'population':20} {'seen':>5} {'asked':>6} {'true':>6} {'bias':>6} {'rmse':>6}"
        f" {'in':>5} {'in or below':>12} {'wide':>6}"
    )
    for name, law in UNLIKE.items():
        found: dict[tuple[int, int], list[tuple[float, ...]]] = {shown: [] for shown in SHOWN}
        for population in range(POPULATIONS):
            rng = np.random.default_rng([34, population])
            sides = law(rng)
            for people, asked in SHOWN:
                (known,) = truth(sides, rng, [asked])
                for made in samples(sides, people, number // POPULATIONS, rng, [asked]):
                    one = (known, made.value[0], made.low[0], made.high[0])
                    found[people, asked].append(one)
        for (people, asked), rows in found.items():
            known, value, low, high = np.array(rows).T
            error = value - known
            numbers = (known, error, np.sqrt((error**2).mean()), high - low)
            true, bias, rmse, wide = (100 * float(np.mean(each)) for each in numbers)
            is_below = known <= high
            held = 100 * float((is_below & (known >= low)).mean())
            print(
                f"{name:20} {people:5} {asked:6} {true:6.1f} {bias:+6.1f} {rmse:6.1f}"
                f" {held:5.0f} {100 * is_below.mean():12.0f} {wide:6.0f}",
                flush=True,
            )


def main() -> None:
    """Simulate all populations."""
    words = argparse.ArgumentParser(prog="studies.crowds", description=__doc__)
    words.add_argument("--samples", type=int, default=100, help="samples of each population")
    words.add_argument("--voices", help="npz file with a matrix of one vector for each voice")
    words.add_argument("--unlike", action="store_true", help="strangers who are not one group")
    options = words.parse_args()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    warnings.simplefilter("ignore")
    if options.unlike:
        unlike(options.samples)
        return
    laws = dict(LAWS)
    if options.voices:
        with np.load(options.voices, allow_pickle=False) as held:
            found = next(held[name] for name in held.files if held[name].ndim == 2)
        voices = unit(found.astype(np.float64))
        laws["real voices"] = lambda rng: recorded(rng, voices, 0.15)
    print(
        f"{'population':15} {'seen':>5} {'asked':>6} {'true':>6} {'read':>6} {'strays':>7}"
        f" {'Gaussian':>9} {'covered':>8} {'wide':>6} {'carried by':>11}"
    )
    for name, law in laws.items():
        rng = np.random.default_rng(33)
        sides = law(rng)
        known = truth(sides, rng)
        for people in SEEN:
            made = list(samples(sides, people, options.samples, rng))
            value, low, high, gaussian = (
                np.stack([getattr(one, field) for one in made])
                for field in ("value", "low", "high", "gaussian")
            )
            carriers = np.median([one.carriers for one in made])
            for i, count in enumerate(np.minimum(ASKED, len(sides[0]))):
                held = ((low[:, i] <= known[i]) & (known[i] <= high[:, i])).mean()
                read, strays = 100 * value[:, i].mean(), 100 * value[:, i].std()
                normal, wide = 100 * gaussian[:, i].mean(), 100 * (high - low)[:, i].mean()
                print(
                    f"{name:15} {people:5} {count:6} {100 * known[i]:6.1f} {read:6.1f}"
                    f" {strays:7.1f} {normal:9.1f} {100 * held:8.0f} {wide:6.0f} {carriers:11.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
