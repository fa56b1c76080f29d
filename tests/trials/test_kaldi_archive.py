"""Kaldi archives: every type against another reader, every payload refused, never run."""

import contextlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from unmask.cli import main
from unmask.errors import InputError
from unmask.trials import read_embeddings
from unmask.trials.readers.kaldi import Archive, encode

kaldiio = pytest.importorskip("kaldiio")
RNG = np.random.default_rng(0)


def both(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    ours = dict(Archive(str(path), path.read_bytes()).entries())
    theirs = {k: np.asarray(v).reshape(-1) for k, v in kaldiio.load_ark(str(path))}
    return ours, theirs


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("text", [False, True])
def test_vectors_and_matrices_of_one_row(tmp_path, dtype, rows, text):
    shape = (1, 5) if rows else (5,)
    given_vectors = {f"u{n}": RNG.normal(size=shape).astype(dtype) for n in range(4)}
    kaldiio.save_ark(str(tmp_path / "x.ark"), given_vectors, text=text)
    ours, theirs = both(tmp_path / "x.ark")
    assert list(ours) == list(theirs) == list(given_vectors)
    for name, vector in ours.items():
        np.testing.assert_allclose(vector, theirs[name], rtol=1e-6)


@pytest.mark.parametrize("method", [1, 2, 3, 5, 7])
def test_compressed_matrices(tmp_path, method):
    matrices = {f"u{n}": RNG.normal(size=(1, 40)).astype("f4") for n in range(3)}
    kaldiio.save_ark(str(tmp_path / "x.ark"), matrices, compression_method=method)
    ours, theirs = both(tmp_path / "x.ark")
    for name, vector in ours.items():
        np.testing.assert_allclose(vector, theirs[name], atol=1e-6)


@pytest.mark.parametrize("method", [2, 3, 5])
def test_every_step_of_a_compressed_column(tmp_path, method):
    matrix = np.sort(RNG.normal(size=(300, 2)).astype("f4"), axis=0)
    kaldiio.save_ark(str(tmp_path / "x.ark"), {"u": matrix}, compression_method=method)
    archive = Archive("x", (tmp_path / "x.ark").read_bytes())
    ours, _ = archive._object(2, "u")
    theirs = dict(kaldiio.load_ark(str(tmp_path / "x.ark")))["u"]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


class Payload:
    """Leaves a file behind wherever it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (os.system, (f"touch {self.mark}",))


def entries(mark: Path) -> dict[str, bytes]:
    pickled = pickle.dumps(Payload(mark))
    return {
        "PKL": b"utt1 PKL" + pickled,
        "bare pickle": b"utt1 " + pickled,
        "binary flag": b"utt1 \0BPKL" + pickled,
        "NPY": b"utt1 NPY" + pickled,
        "AUDIO": b"utt1 AUDIO" + pickled,
        "integers": b"utt1 \0B\4" + (3).to_bytes(4, "little") + bytes(12),
        "second entry": b"utt1 " + encode(np.ones(3, "f4")) + b"utt2 PKL" + pickled,
    }


@pytest.mark.parametrize("kind", sorted(entries(Path("x"))))
@pytest.mark.parametrize("name", ["x.ark", "scores.txt", "kaldi/xvector.ark"])
def test_a_payload_is_refused_and_never_run(tmp_path, monkeypatch, capsys, kind, name):
    mark = tmp_path / "ran"
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(entries(mark)[kind])
    given_paths = [str(path.parent)] if name.startswith("kaldi") else [str(path)]
    for words in (
        ["validate", *given_paths],
        ["convert", *given_paths, str(tmp_path / "out.npz")],
        ["eval", "--pairs", "all", *given_paths],
        ["init", str(path.parent)],
    ):
        monkeypatch.setattr("sys.argv", ["unmask", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 1, words
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, words
    assert not mark.exists()


def test_a_script_file_runs_nothing_and_names_what_it_refuses(tmp_path):
    mark = tmp_path / "ran"
    (tmp_path / "x.ark").write_bytes(entries(mark)["second entry"])
    for line, message in (
        ("utt2 x.ark:32", "found a pickled object, which could run code"),
        (f"utt2 touch${{IFS}}{mark}|", "found a command"),
        ("utt2 x.ark:5[0:1]", "found a range of rows"),
        ("utt2 x.ark:9999", "found neither"),
    ):
        (tmp_path / "x.scp").write_text(f"utt1 x.ark:5\n{line}\n")
        with pytest.raises(InputError, match=message):
            read_embeddings(tmp_path / "x.scp", speakers={"utt1": "a", "utt2": "b"})
    assert not mark.exists()


def test_declared_sizes_are_compared_with_the_bytes_there_are(tmp_path):
    huge = b"u \0BFV \4" + (2**31 - 1).to_bytes(4, "little") + bytes(12)
    negative = b"u \0BFV \4" + (-1).to_bytes(4, "little", signed=True)
    matrix = b"u \0BFM \4" + (2**30).to_bytes(4, "little") + b"\4" + (2**30).to_bytes(4, "little")
    compressed = b"u \0BCM " + bytes(8) + (2**30).to_bytes(4, "little") * 2
    for data in (huge, negative, matrix, compressed):
        with pytest.raises(InputError, match="cut or damaged"):
            list(Archive("x", data).entries())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 40))
def test_damage_is_an_error_of_ours(noise, position):
    whole = b"utt1 " + encode(np.ones(4, "f4")) + b"utt2 " + encode(np.ones(4, "f4"))
    damaged = whole[:position] + noise + whole[position + len(noise) :]
    with contextlib.suppress(InputError):
        for name, vector in Archive("x", damaged).entries():
            assert name
            assert vector.ndim == 1


def write(folder: Path, vectors: dict[str, np.ndarray]) -> None:
    folder.mkdir()
    data, index = b"", []
    for name, vector in vectors.items():
        data += f"{name} ".encode()
        index.append(f"{name} x.ark:{len(data)}\n")
        data += encode(vector)
    (folder / "x.ark").write_bytes(data)
    (folder / "x.scp").write_text("".join(index))
    (folder / "utt2spk").write_text("".join(f"{name} {name[0]}\n" for name in vectors))


def test_an_archive_beside_its_script_file_comes_before_one_below_the_current_folder(
    tmp_path,
    monkeypatch,
    sentences,
):
    one = {"a1": np.ones(3, "f4"), "b1": np.eye(3, dtype="f4")[0]}
    other = {"a1": np.eye(3, dtype="f4")[1], "b1": np.eye(3, dtype="f4")[2]}
    write(tmp_path / "run1", one)
    write(tmp_path / "run2", other)
    monkeypatch.chdir(tmp_path)
    result = read_embeddings("run1/x.scp")
    assert result.vectors.tolist() == [v.tolist() for v in one.values()]
    monkeypatch.chdir(tmp_path / "run2")
    with pytest.raises(InputError) as error:
        read_embeddings("../run1/x.scp")
    sentences.check(str(error.value))
    read_embeddings("x.scp")


def test_the_digest_of_a_script_file_follows_its_archive(tmp_path):
    write(tmp_path / "run", {"a1": np.ones(3, "f4")})
    before = read_embeddings(tmp_path / "run" / "x.scp")
    data = bytearray((tmp_path / "run" / "x.ark").read_bytes())
    data[-1] ^= 1
    (tmp_path / "run" / "x.ark").write_bytes(bytes(data))
    after = read_embeddings(tmp_path / "run" / "x.scp")
    assert before.source.sha256 != after.source.sha256
