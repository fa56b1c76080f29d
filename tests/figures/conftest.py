from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from unmask.engine.curves import DetCurve, EceProfile, Histogram, PavMap, Reliability
from unmask.figures import Figure


@pytest.fixture(autouse=True)
def charts_are_checked(monkeypatch):
    """Every chart drawn here is compared with the schema of Vega-Lite."""
    monkeypatch.setattr(Figure, "spec", checked_spec)


def checked_spec(figure: Figure):
    if not isinstance(figure.chart, dict):
        figure.chart.to_dict(validate=True)
    return drawn_spec(figure)


drawn_spec = Figure.spec


def scores(seed: int, *, distance: float, targets: int = 400, nontargets: int = 3000):
    generator = np.random.default_rng(seed)
    spread = max(distance, 0.1)
    target = generator.normal(spread**2 / 2, spread, targets)
    nontarget = generator.normal(-(spread**2) / 2, spread, nontargets)
    return target, nontarget


def det_curve(target, nontarget, *, p_target=0.01) -> DetCurve:
    at = np.unique(np.concatenate([target, nontarget, [np.inf]]))
    p_miss = np.searchsorted(np.sort(target), at) / target.size
    p_fa = 1 - np.searchsorted(np.sort(nontarget), at) / nontarget.size
    hull: list[tuple[float, float]] = []
    for x, y in sorted(zip(p_fa, p_miss, strict=True), key=lambda p: (p[0], -p[1])):
        while (
            len(hull) > 1
            and (
                (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1])
                - (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0])
            )
            <= 0
        ):
            hull.pop()
        hull.append((x, y))
    hull_fa, hull_miss = np.array(hull).T
    cost = p_target * p_miss + (1 - p_target) * p_fa
    best = int(cost.argmin())
    fine = np.linspace(0, 1, 100001)
    eer = fine[np.abs(np.interp(fine, hull_fa, hull_miss) - fine).argmin()]
    raw = p_fa[np.abs(p_fa - p_miss).argmin()]
    keep = np.unique(np.linspace(0, at.size - 1, min(at.size, 500)).astype(int))
    return DetCurve(
        p_fa=p_fa[keep],
        p_miss=p_miss[keep],
        hull_p_fa=hull_fa,
        hull_p_miss=hull_miss,
        eer=float(eer),
        eer_raw=float(raw),
        min_dcf_p_fa=float(p_fa[best]),
        min_dcf_p_miss=float(p_miss[best]),
        p_target=p_target,
    )


def histogram(target, nontarget, *, infinite=0) -> Histogram:
    edges = np.histogram_bin_edges(np.concatenate([target, nontarget]), 50)
    return Histogram(
        edges=edges,
        target=np.histogram(target, edges, density=True)[0],
        nontarget=np.histogram(nontarget, edges, density=True)[0],
        eer_threshold=0.0,
        infinite=infinite,
    )


def pav_map(target, nontarget) -> PavMap:
    score = np.concatenate([target, nontarget])
    label = np.repeat([1.0, 0.0], [target.size, nontarget.size])
    blocks: list[list[float]] = []
    for i in np.argsort(score):
        blocks.append([score[i], score[i], label[i], 1 - label[i]])
        while len(blocks) > 1 and (
            blocks[-2][2] * (blocks[-1][2] + blocks[-1][3])
            >= blocks[-1][2] * (blocks[-2][2] + blocks[-2][3])
        ):
            low, high, hits, others = blocks.pop()
            blocks[-1] = [blocks[-1][0], high, blocks[-1][2] + hits, blocks[-1][3] + others]
    low, high, hits, others = np.array(blocks).T
    with np.errstate(divide="ignore"):
        llr = np.log(hits) - np.log(others) - np.log(target.size / nontarget.size)
    return PavMap(low=low, high=high, llr=llr, targets=hits, nontargets=others)


def ece_profile(target, nontarget, *, scale=1.0) -> EceProfile:
    odds = np.linspace(-10, 10, 101)
    prior = 1 / (1 + np.exp(-odds))

    def entropy(t, n):
        miss = np.logaddexp(0, -(t[:, None] + odds)).mean(0)
        false = np.logaddexp(0, n[:, None] + odds).mean(0)
        return (prior * miss + (1 - prior) * false) / np.log(2)

    zero = np.zeros(1)
    return EceProfile(
        log_odds=odds,
        prior=entropy(zero, zero),
        oracle=entropy(target, nontarget),
        actual=entropy(scale * target + 1, scale * nontarget + 1),
    )


def reliability(target, nontarget) -> Reliability:
    score = np.concatenate([target, nontarget])
    weight = np.repeat([0.5 / target.size, 0.5 / nontarget.size], [target.size, nontarget.size])
    label = np.repeat([1.0, 0.0], [target.size, nontarget.size])
    posterior = 1 / (1 + np.exp(-1.4 * score))
    place = np.minimum((posterior * 10).astype(int), 9)
    count = np.bincount(place, minlength=10)
    total = np.bincount(place, weight, minlength=10)
    filled = count > 0
    count, total = count[filled], total[filled]
    predicted = np.bincount(place, weight * posterior, minlength=10)[filled] / total
    observed = np.bincount(place, weight * label, minlength=10)[filled] / total
    half = 1.96 * np.sqrt(observed * (1 - observed) / count) + 0.01
    return Reliability(
        predicted=predicted,
        observed=observed,
        low=np.clip(observed - half, 0, 1),
        high=np.clip(observed + half, 0, 1),
        count=count.astype(float),
    )


NAMES = (
    "original",
    "B3",
    "T10-2",
    "a-very-long-system-name-made-by-some-program-with-seed-0042-and-more",
    "wavlm <script>alert(1)</script>",
    "campplus",
    "ecapa & friends",
    "B1 “quoted” 'name'",
)
DISTANCES = (4.6, 3.0, 1.8, 1.0, 0.4, 5.0, 2.3, 0.1)


def every_curve(systems: int) -> SimpleNamespace:
    made = {
        name: scores(seed, distance=distance)
        for seed, (name, distance) in enumerate(zip(NAMES, DISTANCES, strict=True))
    }
    made = dict(list(made.items())[:systems])
    return SimpleNamespace(
        det={n: det_curve(*s) for n, s in made.items()},
        histogram={n: histogram(*s, infinite=3 * (n == "B3")) for n, s in made.items()},
        pav={n: pav_map(*s) for n, s in made.items()},
        ece={n: ece_profile(*s, scale=1.8) for n, s in made.items()},
        reliability={n: reliability(*s) for n, s in made.items()},
    )


@pytest.fixture(scope="session")
def three() -> SimpleNamespace:
    return every_curve(3)


@pytest.fixture(scope="session")
def eight() -> SimpleNamespace:
    return every_curve(8)
