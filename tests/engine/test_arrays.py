"""What may be given as numbers: tensors of any kind, frames, but neither masks nor complex ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.engine import fusion_weights
from unmask.privacy.legal import linkability_from_scores as from_matrix, singling_out_from_scores
from unmask.scoring.alignment import procrustes
from unmask.stress import PairScores

RNG = np.random.default_rng(3)
TARGET, NONTARGET = RNG.normal(2, 1, 64).round(2), RNG.normal(0, 1, 96).round(2)
SQUARE = RNG.normal(size=(6, 6)).round(2)
CUBE = RNG.normal(size=(3, 4, 5)).round(2)
VECTORS = RNG.normal(size=(8, 4)).round(2)
SPEAKERS = np.repeat(["a", "b", "c", "d"], 2)
CALIBRATION = um.calibrate(TARGET, NONTARGET)
ISOTONIC = um.calibrate(TARGET, NONTARGET, "isotonic")

OF_SCORES: dict[str, Callable[[Any], Any]] = {
    "eer": lambda x: um.eer(x, NONTARGET),
    "nontarget": lambda x: um.eer(TARGET + 1, x),
    "min_dcf": lambda x: um.min_dcf(x, NONTARGET),
    "act_dcf": lambda x: um.act_dcf(x, NONTARGET),
    "cllr": lambda x: um.cllr(x, NONTARGET),
    "min_cllr": lambda x: um.min_cllr(x, NONTARGET),
    "d_sys": lambda x: um.d_sys(x, NONTARGET),
    "histogram": lambda x: um.d_sys(x, NONTARGET, estimator="histogram"),
    "tpr_at_fpr": lambda x: um.tpr_at_fpr(x, NONTARGET),
    "ece": lambda x: um.ece(x, NONTARGET, log_odds=[0.0]).tolist(),
    "zebra": lambda x: um.zebra(x, NONTARGET).d_ece,
    "detection": lambda x: um.detection(x, NONTARGET).cllr,
    "evaluate": lambda x: um.evaluate((x, NONTARGET), replicates=0)["system"]["eer"].value,
    "calibrate": lambda x: um.calibrate(x, NONTARGET).scale,
    "apply": lambda x: CALIBRATION.apply(x).tolist(),
    "isotonic": lambda x: ISOTONIC.apply(x).tolist(),
    "blocks": lambda x: um.Roc.from_blocks(TARGET, [x]).eer(),
    "cp_map": lambda x: um.cp_map(x, NONTARGET, grid=4).full,
    "hardness": lambda x: um.cp_map(TARGET, NONTARGET, target_hardness=x, grid=4).full,
    "thresholds": lambda x: um.worst_case_false_alarms(CUBE, x, counts=[2]).tolist(),
    "from_trials": lambda x: PairScores.from_trials("ab" * 32, "xy" * 32, x).scores.tolist(),
    "Scores": lambda x: scores_of(x).scores().tolist(),
}
OF_OTHERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "weights": (
        abs(TARGET),
        lambda x: um.Roc.from_scores(TARGET, NONTARGET, target_weights=x).eer(),
    ),
    "fusion": (SQUARE, lambda x: fusion_weights(x, SQUARE[:, ::-1] - 1).tolist()),
    "linkability": (SQUARE, lambda x: from_matrix(x, np.arange(6), counts=[3]).tolist()),
    "singling out": (
        SQUARE,
        lambda x: singling_out_from_scores(
            x, np.arange(6) % 3, np.repeat([0, 1, 2], 2), counts=[2]
        ).tolist(),
    ),
    "worst case": (CUBE, lambda x: um.worst_case_false_alarms(x, [0.0], counts=[2]).tolist()),
    "embeddings": (VECTORS, lambda x: um.Embeddings(x, SPEAKERS).vectors.tolist()),
    "back-end": (VECTORS, lambda x: um.Cosine().sides(x).enrol.tolist()),
    "alignment": (VECTORS, lambda x: procrustes(x, VECTORS).matrix.tolist()),
    "matrices": (
        RNG.normal(size=(8, 8)),
        lambda x: um.pseudonymisation(x, x, x, SPEAKERS, replicates=0)["deid"].value,
    ),
}
EVERY = {name: (TARGET, call) for name, call in OF_SCORES.items()} | OF_OTHERS


def scores_of(values: Any) -> um.Scores:
    names = um.Ids.from_strings(map(str, range(len(TARGET))))
    return um.Scores(names, names, np.arange(64) % 2, systems={"s": values})


@pytest.mark.parametrize("name", EVERY)
def test_masked_and_complex_numbers_are_refused(name: str, sentences) -> None:
    values, call = EVERY[name]
    masked = np.ma.masked_array(values, values > 1)
    with pytest.raises(um.InputError) as error:
        call(masked)
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        call(values + 0j)
    sentences.check(str(error.value))
    assert call(np.ma.masked_array(values)) == call(values)


@pytest.mark.parametrize("name", EVERY)
def test_tensors_of_any_kind(name: str) -> None:
    torch = pytest.importorskip("torch")
    values, call = EVERY[name]
    learnt = torch.tensor(values, requires_grad=True)
    assert call(learnt) == call(values)
    short = learnt.bfloat16()
    assert call(short) == call(short.detach().double().numpy())


def test_lists_of_tensors_and_series() -> None:
    torch = pytest.importorskip("torch")
    wanted = um.eer(TARGET, NONTARGET)
    assert um.eer(list(torch.tensor(TARGET, requires_grad=True)), list(NONTARGET)) == wanted
    assert um.eer(pl.Series(TARGET), NONTARGET.tolist()) == wanted
    rows = list(torch.tensor(VECTORS, requires_grad=True))
    assert (um.Embeddings(rows, SPEAKERS).vectors == VECTORS).all()
    with pytest.raises(um.InputError, match="without a mask"):
        um.Embeddings([np.ma.masked_array(row, row > 0) for row in VECTORS], SPEAKERS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array(["2020-01-01"], "M8[D]"), r"real numbers, found datetime64\[D\]"),
        ([[1.0], [1.0, 2.0]], "rows of one length, found uneven ones"),
        (["a"], "numbers, found list: could not convert"),
        ([np.ma.masked, 1.0], "numbers without a mask, found 1 of 1"),
    ],
)
def test_other_things_are_refused(values: Any, expected: str) -> None:
    with pytest.raises(um.InputError, match=f"target: expected {expected}"):
        um.eer(values, NONTARGET)


class Frame:
    """What is needed of a frame of pandas."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]


class Absent:
    """The mark of pandas for none, which has no truth."""

    def __repr__(self) -> str:
        return "<NA>"

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_frames() -> None:
    n, rng = 40, np.random.default_rng(6)
    columns: dict[str, list[Any]] = {
        "enrol": [f"e{i}" for i in range(n)],
        "test": [f"t{i}" for i in range(n)],
        "label": [i % 2 for i in range(n)],
        "score": rng.normal(size=n).tolist(),
    }
    known = um.evaluate(pl.DataFrame(columns), replicates=0)["system"]
    for frame in (pl.LazyFrame(columns), Frame(columns)):
        assert um.evaluate(frame, replicates=0)["system"]["eer"] == known["eer"]
        assert um.read_scores(frame).scores().tolist() == columns["score"]
    for column, value, expected in (
        ("enrol", float("nan"), "row 4: expected an identifier in column 'enrol'"),
        ("enrol", Absent(), "row 4: expected an identifier in column 'enrol'"),
        ("score", Absent(), "row 4: expected a score, found none"),
        ("label", Absent(), "row 4: expected a value in column 'label'"),
    ):
        gap = [value if i == 3 else known for i, known in enumerate(columns[column])]
        with pytest.raises(um.InputError, match=f"table, {expected}"):
            um.evaluate(Frame({**columns, column: gap}), replicates=0)


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-38])
def test_vectors_of_any_length(scale: float) -> None:
    rng = np.random.default_rng(5)
    rows, speakers = rng.normal(size=(40, 8)).astype(np.float32), np.repeat(np.arange(10), 4)
    plain = um.Embeddings(rows, speakers)
    assert plain.vectors.dtype == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        large = um.Embeddings(rows * np.float32(scale), speakers)
        assert np.allclose(large.normalised().vectors, plain.normalised().vectors, atol=1e-6)
        values = [um.evaluate(one, replicates=0)["cosine"]["eer"].value for one in (plain, large)]
        shared = um.LegalProtocol(allow_shared_utterances=True)
        risks = [
            um.linkability(one, one, counts=[5], protocol=shared).value for one in (plain, large)
        ]
    assert values[0] == pytest.approx(values[1], abs=1e-3)
    assert risks[0] == pytest.approx(risks[1], abs=1e-3)


def test_vectors_that_no_number_holds_squared(sentences) -> None:
    for scale in (1e200, 1e-200):
        with pytest.raises(um.InputError) as error:
            um.Embeddings(np.eye(2) * scale, ["a", "b"])
        sentences.check(str(error.value))
    zero = um.Embeddings([[1.0, 0.0], [0.0, 0.0]], ["a", "b"])
    with pytest.raises(um.InputError, match="1 of length zero"):
        zero.normalised()
