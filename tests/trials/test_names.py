"""Identifiers that are missing or look the same, in every reader and in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.engine import cross_pairing
from unmask.stress import PairScores
from unmask.trials import write

UTTERANCES = ["u1", "u2", "u3", "u4"]
VECTORS = np.eye(4) + 1
NONE = {
    "empty": ["a", "b", "", "b"],
    "unseen": ["a", "b", "\N{ZERO WIDTH SPACE}", "b"],
    "blank": ["a", "b", " ", "b"],
    "None": ["a", "b", None, "b"],
    "NaN": ["a", "b", float("nan"), "b"],
    "null": pl.Series(["a", "b", None, "b"]),
    "number": np.array([1.0, 2.0, np.nan, 2.0]),
    "object": np.array(["a", "b", None, "b"], object),
    "masked": np.ma.masked_array(["a", "b", "a", "b"], [0, 0, 1, 0]),
}
MISSING = r"row 3: expected an identifier in speakers, found none \(1 in all\)"


@pytest.mark.parametrize("speakers", NONE.values(), ids=NONE)
def test_a_vector_without_a_speaker_is_refused(speakers, sentences) -> None:
    with pytest.raises(um.InputError, match=f"embeddings, {MISSING}"):
        um.Embeddings(VECTORS, speakers)
    with pytest.raises(um.InputError) as error:
        um.Embeddings(VECTORS, list("aabb"), ["u1", "u2", list(speakers)[2], "u4"])
    sentences.check(str(error.value))


def test_files_of_embeddings(tmp_path: Path) -> None:
    files = {}
    text, number = np.array(["a", "b", "", "b"]), np.array([1.0, 2.0, np.nan, 2.0])
    for name, speakers in (("text.npz", text), ("number.npz", number)):
        files[name] = speakers
        np.savez(tmp_path / name, embeddings=VECTORS, utt_ids=UTTERANCES, speakers=speakers)
    for name, speakers in (("null", ["a", "b", None, "b"]), ("float", number), ("empty", text)):
        files[f"{name}.parquet"] = speakers
        columns = {"utterance": UTTERANCES, "speaker": speakers, "embedding": VECTORS.tolist()}
        pl.DataFrame(columns).write_parquet(tmp_path / f"{name}.parquet")
    h5py = pytest.importorskip("h5py")
    for name, speakers in (("text.h5", text.tolist()), ("number.h5", number)):
        files[name] = speakers
        with h5py.File(tmp_path / name, "w") as file:
            file["embedding"], file["speaker_id"] = VECTORS, speakers
    for name in files:
        with pytest.raises(um.InputError, match=f"{name}, {MISSING}"):
            um.read_embeddings(tmp_path / name)
        with pytest.raises(um.InputError, match=f"{name}, {MISSING}"):
            cross_pairing(tmp_path / name)


@pytest.mark.parametrize("value", ["", None, float("nan")])
def test_rules_that_give_no_speaker(value, sentences) -> None:
    trials = um.Scores(
        um.Ids.from_strings(["e1", "e2"]),
        um.Ids.from_strings(["t1", "t2"]),
        np.array([1, 0]),
        systems={"s": np.array([1.0, 0.0])},
    )
    known = {"e1": "a", "e2": "b", "t1": "a"}
    with pytest.raises(um.InputError) as error:
        trials.with_speakers({**known, "t2": value})
    sentences.check(str(error.value))
    numbered = trials.with_speakers({"e1": 1, "e2": 2, "t1": 1, "t2": 1})
    assert numbered.n_speakers == 2
    with pytest.raises(um.InputError) as error:
        trials.with_speakers("pattern:^(x*)")
    sentences.check(str(error.value))


@pytest.mark.parametrize("role", ["enrol", "test", "enrol_speaker", "test_speaker"])
@pytest.mark.parametrize("value", ["", " ", None, float("nan")])
def test_trials_without_a_name(tmp_path: Path, role: str, value, sentences) -> None:
    names = {"enrol": "ab", "test": "uv", "enrol_speaker": "xy", "test_speaker": "xz"}
    columns = {side: list(text) for side, text in names.items()}
    frame = pl.DataFrame({**columns, "label": [1, 0], "score": [1.0, 0.0]})
    if isinstance(value, float):
        frame = frame.with_columns(pl.Series(role, [1.0, value]))
    else:
        frame = frame.with_columns(pl.Series(role, [columns[role][0], value]))
    frame.write_parquet(tmp_path / "x.parquet")
    expected = f"row 2: expected an identifier in column '{role}', found none"
    for data in (frame, frame.lazy(), tmp_path / "x.parquet"):
        with pytest.raises(um.InputError, match=expected):
            um.evaluate(data, replicates=0)
    with pytest.raises(um.InputError, match=expected):
        um.evaluate(tmp_path / "x.parquet", stream=True, replicates=0)
    columns[role][1] = "" if value is None or value != value else value
    ids = {side: um.Ids.from_strings(text) for side, text in columns.items()}
    sides = {side: ids.pop(side) for side in ("enrol", "test")}
    with pytest.raises(um.InputError) as error:
        um.Scores(*sides.values(), np.array([1, 0]), systems={"s": np.array([1.0, 0.0])}, **ids)
    sentences.check(str(error.value))


def test_matrices_and_pairs_without_a_speaker(sentences) -> None:
    scores = np.arange(16.0).reshape(4, 4)
    with pytest.raises(um.InputError, match=MISSING):
        um.pseudonymisation(scores, scores, scores, ["a", "b", None, "b"])
    with pytest.raises(um.InputError) as error:
        PairScores.from_trials(["a", None], ["b", "b"], [1.0, 2.0])
    sentences.check(str(error.value))


def test_metadata_may_be_unknown(tmp_path: Path) -> None:
    speech = um.Embeddings(VECTORS, list("aabb"), columns={"sex": ["f", None, "m", "m"]})
    assert speech.columns["sex"].to_series().to_list() == ["f", "", "m", "m"]
    write(speech, tmp_path / "x.npz")
    assert um.read_embeddings(tmp_path / "x.npz").columns["sex"].n_unique == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller", "Mu\u0308ller"),
        ("a", "a "),
        ("a", "\ta"),
        ("K", "\N{KELVIN SIGN}"),
        ("a ", " a"),
        ("a b", "a  b"),
        ("a b", "a\N{NO-BREAK SPACE}b"),
        ("anna", "an\N{ZERO WIDTH SPACE}na"),
        ("anna", "anna\N{ZERO WIDTH NO-BREAK SPACE}"),
        ("anna", "an\N{SOFT HYPHEN}na"),
        ("anna", "\N{CYRILLIC SMALL LETTER A}nna"),
        ("Peter", "\N{GREEK CAPITAL LETTER RHO}eter"),
        ("Zoë", "Zo\N{CYRILLIC SMALL LETTER IO}"),
        ("s01", "s\N{FULLWIDTH DIGIT ZERO}1"),
    ],
)
def test_names_that_look_the_same_are_refused(tmp_path: Path, one: str, other: str) -> None:
    expected = "that differ by more than blanks, look-alike letters or Unicode form, found"
    with pytest.raises(um.InputError, match=f"embeddings: expected speakers {expected}") as caught:
        um.Embeddings(VECTORS, [one, "x", other, "x"])
    named = " ".join(f"{one!a} and {other!a} (1 such names in all)".split())
    assert named in str(caught.value)
    with pytest.raises(um.InputError, match=f"expected utterances {expected}"):
        um.Embeddings(VECTORS, list("aabb"), [one, "x", other, "y"])
    columns = {"enrol": ["e", "f"], "test": ["t", "u"], "label": [1, 0], "score": [1.0, 0.0]}
    frame = pl.DataFrame({**columns, "enrol_speaker": [one, "x"], "test_speaker": [one, other]})
    frame.write_parquet(tmp_path / "x.parquet")
    for stream in (False, True):
        with pytest.raises(um.InputError, match=f"x.parquet: expected speakers {expected}"):
            um.evaluate(tmp_path / "x.parquet", stream=stream, replicates=0)
    once = um.Embeddings(VECTORS, [one, "x", one, "x"])
    assert once.speakers.names.to_list() == [one, "x"]
    assert um.Embeddings(VECTORS, [one, "x", other, "x"][:2] * 2).select([1, 3]).n_speakers == 1


def test_names_that_look_different_are_two() -> None:
    names = ["Ёлка", "Елка", "anna", "Anna", "Анна", "x1", "x 1", "Müller", "Muller"]
    assert um.Embeddings(np.eye(len(names)), names).n_speakers == len(names)
