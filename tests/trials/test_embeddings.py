from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unmask.errors import InputError
from unmask.trials import Embeddings, Ids, read_any, read_embeddings, refuse_encoders, write
from unmask.trials.readers.kaldi import encode

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
UTTERANCES = ["a/1", "a/2", "b/1", "b/2"]
SPEAKERS = ["a", "a", "b", "b"]


def check(result: Embeddings, *, format: str, columns: tuple[str, ...] = ()) -> None:
    assert result.vectors.dtype == np.float32
    assert result.utterances is not None
    order = np.argsort(result.utterances.to_series().to_numpy())
    assert (result.vectors[order] == VECTORS).all()
    assert result.speakers.take(order).to_series().to_list() == SPEAKERS
    assert result.source is not None
    assert result.source.format == format
    assert set(result.columns) == set(columns)
    assert (len(result), result.dimension, result.n_speakers) == (4, 3, 2)


def test_npz(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        embeddings=VECTORS,
        utt_ids=UTTERANCES,
        speaker_ids=SPEAKERS,
        gender=list("ffmm"),
        age=[1, 2, 3, 4],
        session=list("xyxy"),
    )
    result = read_embeddings(tmp_path / "x.npz")
    check(result, format="embeddings-npz", columns=("gender", "age"))
    assert result.sessions is not None
    assert result.sessions.n_unique == 2
    assert isinstance(read_any(tmp_path / "x.npz"), Embeddings)


def test_npy_with_utt2spk(tmp_path: Path, sentences) -> None:
    np.save(tmp_path / "x.npy", VECTORS)
    table = tmp_path / "utt2spk"
    table.write_text("".join(f"{u} {s}\n" for u, s in zip(UTTERANCES, SPEAKERS, strict=True)))
    check(read_embeddings(tmp_path / "x.npy", speakers=table), format="embeddings-npy")
    with pytest.raises(InputError) as error:
        read_embeddings(tmp_path / "x.npy")
    sentences.check(str(error.value))
    table.write_text("a/1 a\n")
    with pytest.raises(InputError) as error:
        read_embeddings(tmp_path / "x.npy", speakers=table)
    sentences.check(str(error.value))


def test_hdf5_layouts(tmp_path: Path, sentences) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for utterance, vector in zip(UTTERANCES, VECTORS, strict=True):
            file[utterance] = vector
    with pytest.raises(InputError) as error:
        read_embeddings(tmp_path / "x.h5")
    sentences.check(str(error.value))
    result = read_embeddings(tmp_path / "x.h5", speakers="pattern:^(.)/")
    check(result, format="embeddings-hdf5")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["embedding"] = VECTORS
        file["utterance_id"], file["speaker_id"], file["sex"] = UTTERANCES, SPEAKERS, list("ffmm")
    check(read_embeddings(tmp_path / "x.h5"), format="embeddings-hdf5", columns=("sex",))
    assert isinstance(read_any(tmp_path / "x.h5"), Embeddings)


@pytest.mark.parametrize("dtype", [pl.List(pl.Float32), pl.Array(pl.Float32, 3)])
def test_parquet(tmp_path: Path, dtype: pl.DataType) -> None:
    pl.DataFrame(
        {
            "utterance_id": UTTERANCES,
            "speaker_id": SPEAKERS,
            "age": [1, 2, 3, 4],
            "embedding": pl.Series(VECTORS.tolist(), dtype=dtype),
        }
    ).write_parquet(tmp_path / "x.parquet")
    check(read_embeddings(tmp_path / "x.parquet"), format="embeddings-parquet", columns=("age",))


def test_kaldi_directory_script_and_archive(tmp_path: Path, sentences) -> None:
    kaldiio = pytest.importorskip("kaldiio")
    vectors = dict(zip(UTTERANCES, VECTORS, strict=True))
    ark, scp = tmp_path / "xvector.ark", tmp_path / "xvector.scp"
    kaldiio.save_ark(str(ark), vectors, scp=str(scp))
    with pytest.raises(InputError, match="expected speakers"):
        read_embeddings(ark)
    (tmp_path / "spk2utt").write_text("a a/1 a/2\nb b/1 b/2\n")
    check(read_embeddings(ark), format="kaldi-ark")
    (tmp_path / "utt2spk").write_text("b/2 b\nb/1 b\na/1 a\na/2 a\n")
    check(read_embeddings(scp), format="kaldi-scp")
    scp.write_text(scp.read_text().replace(str(tmp_path) + "/", ""))
    check(read_embeddings(scp), format="kaldi-scp")
    (tmp_path / "spk2gender").write_text("a f\nb m\n")
    result = read_embeddings(tmp_path)
    check(result, format="kaldi-dir", columns=("gender",))
    assert sorted(result.columns["gender"].to_series()) == ["f", "f", "m", "m"]
    (tmp_path / "spk2gender").write_text("a f\n")
    with pytest.raises(InputError) as error:
        read_embeddings(tmp_path)
    sentences.check(str(error.value))
    scp.write_text("a/1 touch${IFS}x|:1\n")
    with pytest.raises(InputError, match="found a command"):
        read_embeddings(scp)
    scp.write_text("a/1 gone.ark:3\n")
    with pytest.raises(InputError) as error:
        read_embeddings(scp)
    sentences.check(str(error.value))


def test_vectors_of_different_length(tmp_path: Path, sentences) -> None:
    entries = [f"{n} ".encode() + encode(np.ones(d, "f4")) for n, d in (("a", 3), ("b", 2))]
    (tmp_path / "x.ark").write_bytes(b"".join(entries))
    with pytest.raises(InputError) as error:
        read_embeddings(tmp_path / "x.ark")
    sentences.check(str(error.value))


def test_validation(sentences) -> None:
    with pytest.raises(InputError) as error:
        Embeddings([[1.0, 2.0], [np.nan, 1.0]], ["a", "b"])
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="1 axes"):
        Embeddings([1.0, 2.0], ["a", "b"])
    with pytest.raises(InputError, match="expected vectors"):
        Embeddings(np.zeros((0, 3)), [])
    with pytest.raises(InputError) as error:
        Embeddings(np.eye(2), ["a"])
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="found u 2 times"):
        Embeddings(np.eye(2), ["a", "b"], ["u", "u"])
    with pytest.raises(InputError, match="matrix of numbers"):
        Embeddings([["x"]], ["a"])
    with pytest.raises(InputError) as error:
        Embeddings([[1.0, 0.0], [0.0, 0.0]], ["a", "b"], ["u", "v"]).normalised()
    sentences.check(str(error.value))


def test_selection_and_precision() -> None:
    result = Embeddings(VECTORS, SPEAKERS, UTTERANCES, columns={"sex": list("ffmm")})
    kept = result.select(np.array([False, True, True, False]))
    assert kept.speakers.to_series().to_list() == ["a", "b"]
    assert kept.columns["sex"].to_series().to_list() == ["f", "m"]
    assert np.allclose(np.linalg.norm(result.normalised().vectors, axis=1), 1)
    assert result.normalised().vectors.dtype == np.float32
    assert Embeddings(np.eye(2, dtype=np.float16), Ids.from_strings("ab")).vectors.dtype == float
    with pytest.raises(AttributeError):
        result.vectors = VECTORS  # type: ignore[misc]
    VECTORS[0, 0] += 0


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.h5", "x.ark"])
def test_written_embeddings_come_back(tmp_path: Path, name: str, sentences) -> None:
    pytest.importorskip("h5py")
    sessions = None if name == "x.ark" else list("xyxy")
    columns = None if name == "x.ark" else {"sex": list("ffmm")}
    encoder = "" if name == "x.ark" else f"campplus:{'a' * 64}"
    more = {"columns": columns, "encoder": encoder}
    given = Embeddings(VECTORS, SPEAKERS, UTTERANCES, sessions, **more)
    write(given, tmp_path / name)
    result = read_embeddings(tmp_path / name)
    assert result.source is not None
    check(result, format=result.source.format, columns=tuple(columns or ()))
    assert (result.sessions is None) == (sessions is None)
    assert result.encoder == result.source.encoder == encoder
    assert result.select([0, 1]).normalised().encoder == encoder
    write(replace(given, encoder=""), tmp_path / name)
    assert read_embeddings(tmp_path / name).encoder == ""
    with pytest.raises(InputError) as error:
        write(given, tmp_path / "x.foo")
    sentences.check(str(error.value))


def test_a_column_of_several_encoders_is_metadata(tmp_path: Path) -> None:
    frame = pl.DataFrame({"utterance_id": UTTERANCES, "speaker_id": SPEAKERS})
    told = pl.Series(list("aabb"))
    frame = frame.with_columns(embedding=pl.Series(VECTORS.tolist()), encoder=told)
    frame.write_parquet(tmp_path / "x.parquet")
    result = read_embeddings(tmp_path / "x.parquet")
    assert result.encoder == ""
    assert result.columns["encoder"].to_series().to_list() == list("aabb")


def test_sets_of_two_encoders_are_refused_by_name(sentences) -> None:
    one, other, silent = (
        Embeddings(VECTORS, SPEAKERS, UTTERANCES, encoder=told)
        for told in (f"campplus:{'a' * 64}", "by hand", "")
    )
    refuse_encoders({"enrolment": silent, "test": one, "training": None, "again": one})
    with pytest.raises(InputError) as refused:
        refuse_encoders({"enrolment": one, "nothing told": silent, "test": other})
    sentences.check(str(refused.value))
