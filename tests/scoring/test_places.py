"""Whatever is counted of pairs is the same on every place, there and from what was kept there."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from tests.helpers.populations import population
from tests.helpers.worst_case import COUNTS, FEW, MANY, voices
from tests.scoring.test_reducers import small

import unmask as um
from unmask.base import Groups
from unmask.privacy.legal import isolating_kernel, verification
from unmask.privacy.legal.isolating_kernel import Attempts, Predicates, single_out_all
from unmask.privacy.legal.linking import LinkRows, count_above
from unmask.privacy.similarity import kernels
from unmask.run import run_on
from unmask.scoring import (
    Cosine,
    CountAmong,
    CountBySpeaker,
    TargetScores,
    reducers,
    trial_scores,
)
from unmask.stress.impostors import rates, voices as impostors
from unmask.trials import TrialList

SUMS = ("count", "log_sigmoid", "llr", "disclosure", "extreme")


@pytest.fixture(autouse=True)
def several_tasks(monkeypatch):
    monkeypatch.setattr(reducers, "STRIP", 1 << 14)
    monkeypatch.setattr(kernels, "TRIALS", 1)
    monkeypatch.setattr(verification, "ROWS", 256)
    monkeypatch.setattr(isolating_kernel, "SPEAKERS", 7)
    monkeypatch.setattr(impostors, "ROWS", 40)
    monkeypatch.setattr(impostors, "FEW_SPEAKERS", 3)
    monkeypatch.setattr(impostors, "_DEVICE", 1000)
    monkeypatch.setattr(rates, "SCORES", 4000)
    monkeypatch.setattr(trial_scores, "BLOCK", 200)


def among(unordered):
    pairs = small(unordered)
    with run_on():
        knots = TargetScores.of(pairs).scores
    return CountAmong(pairs, knots).total(targets=1, block=128)


def by_speaker(unordered):
    return CountBySpeaker(small(unordered), np.linspace(-1, 1, 9), 40).total(block=128)


@cache
def speech():
    """Two sets of 700 segments, unevenly many per speaker, in no order."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.concatenate([np.repeat(np.arange(40), 2), rng.integers(0, 40, 620)]))
    vectors = rng.normal(size=(40, 10))[codes] + 0.9 * rng.normal(size=(codes.size, 10))
    names, utterances = [f"s{code}" for code in codes], [f"u{row}" for row in range(codes.size)]
    sessions = [f"d{row % 3}" for row in range(codes.size)]
    noisy = vectors + 0.8 * rng.normal(size=vectors.shape)
    return [um.Embeddings(rows, names, utterances, sessions) for rows in (vectors, noisy)]


def sums(kind):
    original, protected = speech()
    if kind == "sessions":
        made = um.compare_sessions(original, protected, replicates=0)
    elif kind == "matrices":
        o, p = (Cosine().sides(one.vectors).enrol for one in speech())
        scores = o @ o.T, (o @ p.T).astype(np.float32), p @ p.T
        made = um.pseudonymisation(*scores, original.speakers, replicates=0)
    else:
        how = {"backend": um.Plda.fit(original), "pairs": "upper"} if kind == "plda" else {}
        made = um.pseudonymisation(original, protected, replicates=0, **how)
    sets = made.sets.values()
    rates = [(own.roc.eer(), own.roc.d_ece(), own.roc.min_cllr()) for own in sets]
    negated = [own.negated for own in sets if own.negated is not None]
    return *rates, *negated, *(getattr(own.sums, what) for own in sets for what in SUMS)


def links(sides):
    rng = np.random.default_rng(0)
    enrol, test = rng.normal(size=(150, 12)), rng.normal(size=(130, 12))
    test += enrol[:130]
    codes = np.arange(150) % 2
    known = (codes, codes[:130]) if sides else None
    return count_above(LinkRows(enrol, test, known, true=np.arange(130)), rows=40)


def lists(sides):
    enrol, test = (population(300, 1, noise=1.5, tag=tag, columns=True) for tag in "et")
    made = um.privacy.one_minus_eer(
        enrol,
        test,
        counts=[2, 20, 300],
        replicates=20,
        protocol=um.LegalProtocol(side=["gender"] if sides else ()),
    )
    return made.value, made.low, made.high, made.negated.value


def levels(thresholds, *, held=False, split=False):
    data = um.stress.speaker_pairs(voices()) if held else voices()
    how = um.ImpostorProtocol(split=split)
    made = um.worst_case(data, thresholds, counts=COUNTS, protocol=how)
    return made.values, made.low, made.high


def isolated(sides):
    rng = np.random.default_rng(1)
    everyone = Groups(np.repeat(np.arange(200), 3))
    attempts = Attempts.of(
        everyone, np.arange(0, 200, 4), np.array([2, 30, 200]),
        um.LegalProtocol(folds=3, draws=2), np.random.SeedSequence(5).spawn(4)[3],
    )  # fmt: skip
    codes = (rng.integers(0, 3, 50), rng.integers(0, 3, 200)[everyone.codes])
    rows = rng.normal(size=(50, 9)), rng.normal(size=(600, 9))
    made = single_out_all(Predicates(*rows, codes if sides else None, attempts=attempts))
    return made.won, made.change, made.squares


def listed():
    names = list(speech()[0].utterances)
    rng = np.random.default_rng(2)
    enrol, test = (um.Ids.from_strings(rng.choice(names, 900)) for _ in range(2))
    backend = um.Plda.fit(speech()[0])
    made = um.score(*speech(), trials=TrialList(enrol, test, None), backend=backend)
    return (made.scores(),)


CASES = {
    "scores of a list": listed,
    "among, unordered": partial(among, True),
    "among, two sides": partial(among, False),
    "by speaker, unordered": partial(by_speaker, True),
    "by speaker, two sides": partial(by_speaker, False),
    **{f"sums, {kind}": partial(sums, kind) for kind in ("cosine", "plda", "matrices", "sessions")},
    **{f"links, {sides}": partial(links, sides) for sides in (False, True)},
    **{f"lists, {sides}": partial(lists, sides) for sides in (False, True)},
    **{f"predicates, {sides}": partial(isolated, sides) for sides in (False, True)},
    "levels, few": partial(levels, FEW),
    "levels, many": partial(levels, MANY),
    "levels, folds": partial(levels, FEW, split=True),
    "levels, held": partial(levels, FEW, held=True),
    "levels, held, folds": partial(levels, FEW, held=True, split=True),
}
SINGLE = {"rtol": 1e-5, "atol": 3}
"""Of a device: counts among float32 scores, and losses in units of 2⁻³²."""


def numbers(result):
    """All arrays of a result, one after the other."""
    values = result if isinstance(result, tuple) else vars(result).values()
    return [np.asarray(value, float) for value in values if value is not None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["local", "processes", "dask", "device"])
@pytest.mark.parametrize("case", CASES)
def test_every_place_gives_the_same(case, where, tmp_path, shared_place):
    pytest.importorskip({"dask": "distributed", "device": "torch"}.get(where, "numpy"))
    device = where == "device"
    with run_on(workers=1):
        wanted = numbers(CASES[case]())
    for state in (None, tmp_path, tmp_path):
        with run_on("cuda", devices=["cpu"], state=state) if device else shared_place(where, state):
            result = numbers(CASES[case]())
        for one, other in zip(result, wanted, strict=True):
            if device:
                close = SINGLE if "among" in case or "by speaker" in case else {"rtol": 1e-9}
                np.testing.assert_allclose(one, other, **{"atol": 1e-9} | close)
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_tasks_of_any_size_give_the_same(case, monkeypatch):
    many = numbers(CASES[case]())
    monkeypatch.undo()
    for one, other in zip(many, numbers(CASES[case]()), strict=True):
        exact = "sums" not in case and "levels" not in case
        np.testing.assert_allclose(one, other, rtol=0 if exact else 1e-12, atol=0)
