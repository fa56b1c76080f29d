"""The golden cases: workload × back-end × rule × option × place, on small seeded data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from tests.golden import calls

from unmask import LegalProtocol

EVERYWHERE = ("local-1", "local-3", "processes", "dask", "cuda")
LOCAL = ("local-1", "local-3")
SINGLE = ("",)  # All numbers come from products in single precision.
RESAMPLED = ("/low", "/high")  # Intervals do.


@dataclass(frozen=True)
class Case:
    """A workload at a place; ``single`` are endings of names of numbers in single precision."""

    name: str
    run: Callable[[calls.Options], calls.Numbers]
    place: str | None = None
    single: tuple[str, ...] = ()

    @property
    def workload(self) -> str:
        return self.name.partition("@")[0]

    def numbers(self) -> calls.Numbers:
        with calls.run_on(self.place) as options:
            return self.run(options)


# Data.


@cache
def population(
    speakers: int = 24,
    least: int = 2,
    most: int = 6,
    *,
    dimension: int = 10,
    noise: float = 1.0,
    seed: int = 0,
    tag: str = "u",
) -> dict[str, Any]:
    """Uneven speakers in mixed order, whose centres depend on the dimension alone."""
    rng = np.random.default_rng([seed, speakers, least, most])
    centres = np.random.default_rng(dimension).normal(size=(speakers, dimension))
    code = np.repeat(np.arange(speakers), rng.integers(least, most + 1, speakers))
    code = rng.permutation(code)
    vectors = centres[code] + noise * rng.normal(size=(code.size, dimension))
    return {
        "vectors": vectors,
        "speakers": [f"s{k:03d}" for k in code],
        "utterances": [f"{tag}{row:04d}" for row in range(code.size)],
        "sessions": [f"d{row % 3}" for row in range(code.size)],
        "columns": {
            "gender": ["fm"[k % 2] for k in code],
            "age": [str(30 + round(10 * centres[k, 1], 1)) for k in code],
        },
    }


def protected(data: dict[str, Any], noise: float, seed: int) -> dict[str, Any]:
    """The same utterances, partly turned and with more noise."""
    rng = np.random.default_rng(seed)
    vectors = data["vectors"]
    turn = np.linalg.qr(rng.normal(size=(vectors.shape[1],) * 2))[0]
    moved = 0.7 * vectors + 0.5 * vectors @ turn + noise * rng.normal(size=vectors.shape)
    return {**data, "vectors": moved}


@cache
def arrays(kind: str) -> tuple[Any, Any]:
    """Target and nontarget scores."""
    rng = np.random.default_rng(7)
    target, nontarget = rng.normal(2.0, 1.5, 90), rng.normal(-1.5, 1.2, 700)
    if kind == "ties":
        return np.round(target), np.round(nontarget)
    if kind == "infinities":
        target[:3], target[3:5] = np.inf, -np.inf
        nontarget[:4], nontarget[4:5] = -np.inf, np.inf
    elif kind == "one trial":
        return target[:1], nontarget[:1]
    elif kind == "negated":
        return -target, -nontarget
    elif kind == "separated":
        return target + 20, nontarget
    elif kind == "constant":
        return np.zeros(5), np.zeros(9)
    return target, nontarget


@cache
def trials(speakers: int = 22, systems: int = 3, seed: int = 0) -> dict[str, Any]:
    """Scores of systems on all pairs of utterances of some speakers, with their sexes."""
    rng = np.random.default_rng([11, speakers, seed])
    code = np.repeat(np.arange(speakers), 3)
    centres = np.random.default_rng(5).normal(size=(speakers, 6))
    vectors = centres[code] + 0.8 * rng.normal(size=(code.size, 6))
    one, other = np.triu_indices(code.size, 1)
    made = {}
    for number in range(systems):
        heard = vectors + 0.5 * number * rng.normal(size=vectors.shape)
        scores = 0.4 * (heard[one] * heard[other]).sum(axis=1) - 1
        made[f"system {number}"] = np.round(scores, 2) if number == 1 else scores
    sex = np.array(["fm"[k % 2] for k in range(speakers)])
    return {
        "enrol": [f"e{row:03d}" for row in one],
        "test": [f"e{row:03d}" for row in other],
        "enrol_speaker": [f"s{k:02d}" for k in code[one]],
        "test_speaker": [f"s{k:02d}" for k in code[other]],
        "target": code[one] == code[other],
        "columns": {"enrol_sex": sex[code[one]], "test_sex": sex[code[other]]},
        "systems": made,
    }


def only(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """Some of the systems."""
    return {**data, "systems": {name: data["systems"][name] for name in names}}


def anonymous(data: dict[str, Any]) -> dict[str, Any]:
    """Without speakers."""
    return {k: v for k, v in data.items() if k not in ("enrol_speaker", "test_speaker")}


@cache
def originals() -> dict[str, Any]:
    return population(26, 8, 16, noise=0.9)


@cache
def safe(number: int = 0) -> dict[str, Any]:
    return protected(originals(), 0.5 + 0.4 * number, 20 + number)


@cache
def crossed() -> tuple[Any, Any, Any]:
    o, p = (
        d["vectors"] / np.linalg.norm(d["vectors"], axis=1, keepdims=True)
        for d in (originals(), safe())
    )
    oo, op, pp = (np.round(a @ b.T, 9) for a, b in ((o, o), (o, p), (p, p)))
    return oo, op.astype(np.float32), pp


@cache
def lists() -> list[dict[str, Any]]:
    """OO, OP and PP as lists of trials."""
    data = originals()
    code = np.unique(data["speakers"], return_inverse=True)[1]
    result = []
    for number, matrix in enumerate(crossed()):
        one, other = np.nonzero(~np.eye(code.size, dtype=bool) if number != 1 else matrix < 9)
        kept = (one * 7 + other * 3) % 5 == 0
        one, other = one[kept], other[kept]
        names = np.array(data["utterances"])
        tags = [("o", "o"), ("o", "p"), ("p", "p")][number]
        result.append(
            {
                "enrol": [tags[0] + name for name in names[one]],
                "test": [tags[1] + name for name in names[other]],
                "enrol_speaker": [f"s{k}" for k in code[one]],
                "test_speaker": [f"s{k}" for k in code[other]],
                "target": code[one] == code[other],
                "systems": {"cosine": matrix[one, other].astype(float)},
            }
        )
    return result


@cache
def enrolled() -> dict[str, Any]:
    return population(300, 2, 4, noise=0.9, seed=1, tag="e")


@cache
def tested() -> dict[str, Any]:
    return population(300, 2, 4, noise=1.3, seed=2, tag="t")


def few(number: int) -> dict[str, Any]:
    return population(60, 4, 6, seed=number, tag=f"{number}-")


@cache
def uneven() -> dict[str, Any]:
    """Two of the speakers are another one's twin, utterance for utterance."""
    data = population(30, 4, 4, noise=1.0, seed=3)
    speakers, vectors = np.array(data["speakers"]), data["vectors"].copy()
    for twin in (0, 4):
        vectors[speakers == f"s{twin + 1:03d}"] = vectors[speakers == f"s{twin:03d}"]
    return {**data, "vectors": vectors}


@cache
def pair_scores() -> Any:
    """Targets × impostors × scores."""
    rng = np.random.default_rng(8)
    place = rng.normal(size=(25, 25, 1)) + 0.5 * rng.normal(size=(25, 1, 1))
    return place + 0.7 * rng.normal(size=(25, 25, 6))


LEVELS = (0.1, 0.45, 0.3)
COUNTS = (1, 5, 20)
CROWDS = [2, 20, 300]


# Cases.


def _made() -> Iterator[Case]:
    def here(name: str, run: Callable[[], calls.Numbers], single: tuple[str, ...] = ()) -> Case:
        return Case(name, lambda at: run(), None, single)

    def at(
        name: str,
        run: Callable[[calls.Options], calls.Numbers],
        places: tuple[str, ...] = EVERYWHERE,
        single: tuple[str, ...] = (),
    ) -> Iterator[Case]:
        for place in places:
            yield Case(f"{name}@{place}", run, place, single)

    yield from _detection(here, at)
    yield from _privacy(here, at)
    yield from _stress(here, at)
    yield from _files(here)


def _detection(here: Any, at: Any) -> Iterator[Case]:
    for kind in (
        "plain", "ties", "infinities", "one trial", "negated", "separated", "constant",
    ):  # fmt: skip
        yield here(f"metrics, {kind}", lambda kind=kind: calls.metrics(*arrays(kind)))
    for kind in ("plain", "ties"):
        yield here(f"roc, weighted, {kind}", lambda kind=kind: weighted(kind))
    yield here(
        "roc, blocks", lambda: calls.blocks(arrays("ties")[0], np.split(arrays("ties")[1], 7))
    )
    yield here("calibration", lambda: calls.calibrations(*arrays("plain"), np.linspace(-6, 6, 25)))
    yield from at("evaluate, by sex", lambda on: calls.evaluate(trials(), on, by="sex"), EVERYWHERE)
    yield from at("evaluate, in bins", lambda on: calls.evaluate(trials(), on, few=False), LOCAL)
    yield here("evaluate, no speakers", lambda: calls.evaluate(anonymous(trials()), {}))
    two = only(trials(), "system 0", "system 1")
    yield from at("compare", lambda on: calls.compare(two, on), (*LOCAL, "cuda"))
    yield from at("cross, cosine, all", lambda on: cross(on), EVERYWHERE, SINGLE)
    yield from at(
        "cross, plda, enrolment-fixed",
        lambda on: cross(on, scoring="plda", pairs="enrolment-fixed", enrolment=2),
        ("local-1", "local-3", "cuda"),
        SINGLE,
    )
    yield here("cross, plda with lda, all", lambda: cross({}, scoring="plda-lda"), SINGLE)
    for kind in ("within", "total"):
        yield here(f"cross, whitening {kind}", lambda kind=kind: cross({}, scoring=kind), SINGLE)
    yield from at(
        "by speaker, cosine, all", lambda on: cross(on, by_speaker=True), EVERYWHERE, SINGLE
    )
    yield here(
        "by speaker, plda, enrolment-fixed",
        lambda: cross({}, by_speaker=True, scoring="plda", pairs="enrolment-fixed"),
        SINGLE,
    )


def cross(on: calls.Options, **options: Any) -> calls.Numbers:
    return calls.cross_pairing(population(100, 4, 8, noise=1.1), on, **options)


def weighted(kind: str) -> calls.Numbers:
    target, nontarget = arrays(kind)
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 4, target.size).astype(float), rng.random(nontarget.size)
    return calls.weighted(target, nontarget, *weights, [-1.0, 0.5, 2.0])


def _privacy(here: Any, at: Any) -> Iterator[Case]:
    yield from at(
        "similarity, cosine, all",
        lambda on: calls.similarity(originals(), safe(), on),
        EVERYWHERE,
        RESAMPLED,
    )
    for scoring, options in (
        ("plda", {"pairs": "upper"}),
        ("within", {"mean": "arithmetic"}),
        ("cosine", {"pairs": "upper", "mean": "arithmetic"}),
    ):
        yield from at(
            f"similarity, {scoring}, {', '.join(options.values())}",
            lambda on, scoring=scoring, options=options: calls.similarity(
                originals(), safe(), on, scoring=scoring, **options
            ),
            LOCAL if scoring == "plda" else LOCAL[:1],
            RESAMPLED,
        )
    yield from at(
        "similarity of matrices",
        lambda on: calls.similarity_of_matrices(crossed(), originals()["speakers"], on),
        ("local-1", "local-3", "processes", "cuda"),
        RESAMPLED,
    )
    yield here("similarity of scores", lambda: calls.similarity_of_scores(lists()), RESAMPLED)
    yield from at(
        "safeguards",
        lambda on: calls.safeguards(originals(), {"a": safe(), "b": safe(1)}, {"a": safe(2)}, on),
        LOCAL[:1],
        RESAMPLED,
    )
    yield from at(
        "sessions",
        lambda on: calls.sessions(originals(), safe(), on),
        ("local-1", "local-3", "cuda"),
        RESAMPLED,
    )
    yield from _legal(here, at)
    one, two = only(trials(), "system 0"), only(trials(seed=1), "system 0")
    yield here("zebra by speaker", lambda: calls.zebra_by_speaker(trials()))
    yield here("zebra profiles", lambda: calls.zebra_profiles(trials()))
    for method in ("linear", "isotonic"):
        yield here(
            f"distortion, {method}",
            lambda method=method: calls.distortion(arrays("plain"), arrays("ties"), method),
        )
        yield here(
            f"distortion of scores, {method}",
            lambda method=method: calls.distortion_of_scores(one, two, method),
            RESAMPLED,
        )
    yield here(
        "distortion of embeddings",
        lambda: calls.distortion_of_embeddings(originals(), safe(), safe(1), "linear"),
        RESAMPLED,
    )
    yield here("zoo", lambda: calls.zoo(trials()))
    yield here("zoo of a matrix", lambda: calls.zoo_of_set(originals(), safe()))


KNOWN = LegalProtocol(side=("gender",))


def _legal(here: Any, at: Any) -> Iterator[Case]:
    sets = enrolled, tested

    def legal(measure: Any, places: tuple[str, ...], name: str, **options: Any) -> Iterator[Case]:
        counts = options.pop("counts", CROWDS)
        return at(
            name,
            lambda on: measure(sets[0](), sets[1](), on, counts=counts, **options),
            places,
        )

    yield from legal(calls.linkability, EVERYWHERE, "linkability, exact")
    yield from legal(
        calls.linkability, LOCAL, "linkability, plda, side", scoring="plda", protocol=KNOWN
    )
    yield from legal(calls.linkability, LOCAL[:1], "linkability, drawn", draws=20, length=2)
    yield from legal(calls.verification, EVERYWHERE, "one minus eer")
    yield from legal(
        calls.verification, LOCAL[:1], "one minus eer, within, side", scoring="within",
        protocol=KNOWN,
    )  # fmt: skip
    small = {"folds": 3, "draws": 2, "max_enrol": 40}
    yield from legal(calls.singling_out, EVERYWHERE, "singling out", **small)
    yield from legal(
        calls.singling_out, LOCAL[:1], "singling out, plda, side", scoring="plda",
        protocol=KNOWN, **small,
    )  # fmt: skip
    scores = np.random.default_rng(4).normal(size=(50, 20)).round(1)
    column = np.arange(50) % 20
    match = np.random.default_rng(5).random((50, 20)) < 0.6
    match[np.arange(50), column] = True
    yield here(
        "linkability of scores",
        lambda: calls.linkability_of_scores(scores, column, [2, 10, 20], match),
    )
    yield here(
        "singling out of scores",
        lambda: calls.singling_out_of_scores(scores.T, np.arange(20), column, [2, 10, 20]),
    )
    yield here("inference, gender", lambda: calls.inference(tested(), enrolled(), "gender"))
    yield here("inference, age", lambda: calls.inference(tested(), None, "age", [25.0, 35.0]))
    yield from at(
        "legal sweep",
        lambda on: calls.legal_sweep(
            {"original": (few(1), few(2)), "a": (few(1), protected(few(2), 0.8, 3))},
            on, counts=[2, 20, 60], lengths=[1, 2], attributes=["gender"],
            protocol=replace(KNOWN, linkability_draws=10, **small),
        ),
        ("local-1", "processes", "cuda"),
    )  # fmt: skip
    yield from at(
        "legal sweep, back-ends, all variants",
        lambda on: calls.legal_sweep(
            {"a": (few(1), few(2))}, on, counts=[2, 60], lengths=[1],
            backends=["cosine", "wccn"], protocol=LegalProtocol(**small),
        ),
        LOCAL[:1],
    )  # fmt: skip


def _stress(here: Any, at: Any) -> Iterator[Case]:
    data = trials()
    label = np.asarray(data["target"])
    systems = {name: (scores[label], scores[~label]) for name, scores in data["systems"].items()}
    one = systems["system 0"]
    other = systems["system 2"]
    yield here("cp map, eer", lambda: calls.cp_map(*one))
    yield here("cp map, min dcf", lambda: calls.cp_map(*one, metric=("min_dcf", 0.05)))
    for combine in ("rank", "mean"):
        yield here(
            f"cp map, two references, {combine}",
            lambda combine=combine: calls.cp_map(
                *one,
                target_hardness=[one[0], other[0]],
                nontarget_hardness=[one[1], other[1]],
                combine=combine,
            ),
        )
    yield here(
        "cp position",
        lambda: calls.cp_position(*one, one[0] < np.median(one[0]), one[1] > -1),
    )
    yield here("roadmap, eer", lambda: calls.roadmap(systems))
    yield here("roadmap, min dcf", lambda: calls.roadmap(systems, metric=("min_dcf", 0.1)))
    yield here("delta intervals", lambda: calls.delta_intervals(data))
    yield here("cp maps assessed", lambda: calls.cp_assessment(data))
    yield here(
        "cp maps assessed, reference",
        lambda: calls.cp_assessment(data, references=["system 0"], metric="min_dcf"),
    )
    yield here("trial bias", lambda: calls.bias({"all": one, "few": (one[0][::2], one[1][::3])}))
    yield here("worst case", lambda: calls.worst_case(pair_scores(), [0.5, 2.0, 3.0], [1, 7, 25]))
    yield from at(
        "worst case measured",
        lambda on: calls.worst_case_measured(uneven(), LEVELS, COUNTS, on, split=False),
        EVERYWHERE,
    )
    yield from at(
        "worst case measured, split",
        lambda on: calls.worst_case_measured(uneven(), LEVELS, COUNTS, on),
        LOCAL,
    )
    yield from at(
        "worst case of scores",
        lambda on: calls.worst_case_of_scores(data, [0.0, 1.0], [1, 5, 20], on),
        LOCAL[:1],
    )
    yield from at(
        "worst case of embeddings",
        lambda on: calls.worst_case_of_embeddings(uneven(), LEVELS, COUNTS, on, split=False),
        EVERYWHERE,
    )
    yield from at(
        "worst case of embeddings, split",
        lambda on: calls.worst_case_of_embeddings(uneven(), LEVELS, COUNTS, on),
        LOCAL,
    )
    proxy = population(30, 4, 4, dimension=7, seed=3)
    yield from at(
        "worst case of embeddings, plda, proxy",
        lambda on: calls.worst_case_of_embeddings(
            uneven(), [-2.0, 1.0], COUNTS, on, scoring="plda", proxy=proxy
        ),
        ("local-1", "cuda"),
    )
    for model in ("ls", "gpd"):
        yield here(
            f"extrapolation, {model}",
            lambda model=model: calls.extrapolation(
                pair_scores(), model, [10, 100, 1000], [1.0, 2.5]
            ),
        )
    yield here("models compared", lambda: calls.model_comparison(pair_scores(), ["ls", "gpd"]))
    yield from at("worst case study", lambda on: calls.worst_case_study(uneven(), on), LOCAL[:1])


def _files(here: Any) -> Iterator[Case]:
    data = only(trials(12), "system 0")
    for name, format in (
        ("scores", "kaldi-scores"), ("scores.txt", "speechbrain"), ("scores.score", "wespeaker"),
        ("scores.3d", "3d-speaker"), ("scores.sunine", "sunine"), ("scores.tsv", None),
        ("scores.csv", None), ("scores.npz", None), ("scores.parquet", None), ("scores.h5", None),
    ):  # fmt: skip
        yield here(
            f"file, {format or name}",
            lambda name=name, format=format: calls.read_scores(data, name, format),
        )
    yield here("file, in bins", lambda: calls.read_scores(data, "scores.tsv", few=False))
    for name in ("x.npz", "x.parquet", "x.h5", "xvector.ark"):
        yield here(
            f"file, embeddings, {name}",
            lambda name=name: calls.read_embeddings(population(12, 2, 4), name),
            SINGLE,
        )


CASES = {case.name: case for case in _made()}
