"""Every bad input gets our own error, in one line, with the place."""

from __future__ import annotations

import contextlib
import gzip
import re
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from unmask.engine import evaluate
from unmask.errors import InputError
from unmask.trials import read_any, read_embeddings, read_key, read_scores
from unmask.trials.readers import files
from unmask.trials.readers.decoder import check_memory

GOOD = [f"e{i} t{i} 0.{i}" for i in range(1, 9)]


def put(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def swap(row: int, line: str) -> list[str]:
    return [*GOOD[:row], line, *GOOD[row + 1 :]]


@pytest.mark.parametrize("line", ["e4 t4", "e4 t4 0.4 0.5", "", "e4 t4 NaN", "e1 t1 5.0"])
def test_bad_lines(tmp_path: Path, line: str, sentences) -> None:
    with pytest.raises(InputError) as caught:
        read_scores(put(tmp_path / "x", swap(3, line)))
    sentences.check(str(caught.value))
    assert str(tmp_path / "x") in str(caught.value)
    assert "\n" not in str(caught.value)


BEYOND_THE_SAMPLE = {
    "u v": "line 30004: expected 3 columns .*found 2",
    "u v 0.4 0.5": "line 30004: expected 3 columns .*found 4",
    "": "line 30004: expected a trial, found an empty line",
    "u v nan": "line 30004: .*found NaN",
    "u v high": "line 30004: expected a number in column 'score', found 'high'",
    "u v -": "line 30004: expected a score, found none .1 trials lack one",
    "e1 t1 0.5": "line 30004: expected each trial once, found e1 t1 again, first in line 1 ",
    "u \0 0.5": "line 30004: expected text, found binary data",
}


@pytest.mark.parametrize("line", BEYOND_THE_SAMPLE)
@pytest.mark.parametrize("block", [1 << 14, 1 << 26])
def test_bad_lines_far_from_the_start(
    tmp_path: Path, line: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "HEAD", 1 << 12)
    monkeypatch.setattr(files.Input.blocks, "__defaults__", (block,))
    lines = [f"e{i} t{i} 0.{i}" for i in range(1, 40_000)]
    lines[30_003] = line
    with pytest.raises(InputError, match=BEYOND_THE_SAMPLE[line]):
        read_scores(put(tmp_path / "x", lines))


def test_undecodable_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a b 1.5\na c\xff 2.5\n")
    with pytest.raises(InputError, match="line 2: expected UTF-8"):
        read_scores(tmp_path / "x")


@pytest.mark.parametrize("read", [read_scores, read_key, read_embeddings, read_any])
class TestWholeFiles:
    def test_absent(self, tmp_path: Path, read) -> None:
        with pytest.raises(InputError, match="no such file"):
            read(tmp_path / "none.txt")

    def test_empty(self, tmp_path: Path, read) -> None:
        for data in (b"", b"\n\n", gzip.compress(b"")):
            (tmp_path / "x").write_bytes(data)
            with pytest.raises(InputError, match=r"empty|something else"):
                read(tmp_path / "x")

    def test_directory(self, tmp_path: Path, read) -> None:
        with pytest.raises(InputError, match="directory"):
            read(tmp_path)

    def test_truncated_gzip(self, tmp_path: Path, read) -> None:
        rng = np.random.default_rng(0)
        packed = gzip.compress(
            "".join(f"a{i} b {x}\n" for i, x in enumerate(rng.random(500))).encode()
        )
        (tmp_path / "x.gz").write_bytes(packed[: len(packed) // 2])
        with pytest.raises(InputError, match="truncated"):
            read(tmp_path / "x.gz")

    def test_damaged_gzip(self, tmp_path: Path, read) -> None:
        packed = bytearray(gzip.compress(b"a b 0.5\n" * 500))
        packed[20] ^= 0xFF
        (tmp_path / "x.gz").write_bytes(packed)
        with pytest.raises(InputError, match="gzip"):
            read(tmp_path / "x.gz")

    def test_binary(self, tmp_path: Path, read) -> None:
        (tmp_path / "x").write_bytes(bytes(range(256)) * 20)
        with pytest.raises(InputError):
            read(tmp_path / "x")

    @pytest.mark.parametrize("magic", [b"PAR1", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"])
    def test_containers_that_are_not(self, tmp_path: Path, read, magic: bytes, sentences) -> None:
        (tmp_path / "x").write_bytes(magic + b"nothing of the kind" * 10)
        with pytest.raises(InputError) as error:
            read(tmp_path / "x")
        sentences.check(str(error.value).partition(" (")[0])  # in brackets: what the parser says


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", scores=np.array([1, "a"], object), labels=np.array([1, 0]))
    for read in (read_scores, read_embeddings):
        with pytest.raises(InputError, match="pickled"):
            read(tmp_path / "x.npz")


def test_parquet_with_wrong_columns(tmp_path: Path, sentences) -> None:
    pl.DataFrame({"foo": [1], "bar": ["x"]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "x.parquet")
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="found foo, bar"):
        read_embeddings(tmp_path / "x.parquet")


def test_parquet_with_nan_null_and_text(tmp_path: Path, sentences) -> None:
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame({"enrol": ["a", "b"], "test": ["x", "x"], "score": [1.0, float("nan")]})
    frame.write_parquet(path)
    with pytest.raises(InputError, match=r"row 2: .*NaN"):
        read_scores(path)
    frame.with_columns(score=pl.Series([None, 1.0])).write_parquet(path)
    with pytest.raises(InputError) as error:
        read_scores(path)
    sentences.check(str(error.value))
    assert read_scores(path, missing="skip").sources[0].missing == 1
    frame.with_columns(score=pl.Series(["1", "x"])).write_parquet(path)
    with pytest.raises(InputError, match="row 2: expected a number"):
        read_scores(path)
    frame.with_columns(enrol=pl.Series(["a", None]), score=pl.Series([1, 2])).write_parquet(path)
    with pytest.raises(InputError) as error:
        read_scores(path)
    sentences.check(str(error.value))


def test_long_table_errors(tmp_path: Path, sentences) -> None:
    head = "enrol\ttest\tlabel\tplda"
    cases = {
        "a\tb\tmaybe\t1": "line 3: expected a label .*found 'maybe'",
        "a\tb\t1": "line 3: expected 4 columns",
        "a\tb\t1\t": "line 3: expected a score, found none",
        "\tb\t1\t2": "line 3: expected an identifier in column 'enrol'",
        "a\tb\t\t2": "line 3: expected a label .*found ''",
    }
    for line, message in cases.items():
        with pytest.raises(InputError, match=message):
            read_scores(put(tmp_path / "x.tsv", [head, "a\tx\t1\t0.5", line]))
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x.tsv", [head]))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x.tsv", ["enrol\ttest\tlabel\tkey\ts", "a\tb\t1\t1\t2"]))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x.tsv", ["enrol\tlabel\ts", "a\t1\t2"]))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x.tsv", ["enrol\ttest\tlabel", "a\tb\t1"]))
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="without labels"):
        read_key(put(tmp_path / "x.tsv", ["enrol\ttest\tscore", "a\tb\t1"]))


def test_partly_absent_scores(tmp_path: Path, sentences) -> None:
    path = put(tmp_path / "x.tsv", ["enrol\ttest\ts", "a\tb\t-", "a\tc\t1", "a\td\t"])
    with pytest.raises(InputError) as error:
        read_scores(path)
    sentences.check(str(error.value))
    scores = read_scores(path, missing="skip")
    assert (scores.scores().tolist(), scores.sources[0].missing) == ([1.0], 2)


def test_options_are_checked(tmp_path: Path, sentences) -> None:
    path = put(tmp_path / "x", GOOD)
    with pytest.raises(InputError) as error:
        read_scores(path, missing="ignore")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(path, duplicates="mean")
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="expected a format among"):
        read_scores(path, format="kaldy")
    with pytest.raises(InputError, match="expected a header"):
        read_scores(path, format="long")
    with pytest.raises(InputError, match="expected 4 columns"):
        read_scores(path, format="sunine")
    with pytest.raises(InputError, match="expected parquet"):
        read_scores(path, format="parquet")
    with pytest.raises(InputError) as error:
        read_scores(path, systems=["y"])
    sentences.check(str(error.value))


READERS = [read_scores, read_key, read_any, read_embeddings]
fuzz = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def attempt(path: Path) -> None:
    """Read with every reader; only our own error may come out."""
    for read in READERS:
        with contextlib.suppress(InputError):
            read(path)


@fuzz
@given(data=st.binary(max_size=300), packed=st.booleans())
def test_random_bytes(tmp_path: Path, data: bytes, packed: bool) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(data) if packed else data)
    attempt(tmp_path / "x")


field = st.sampled_from(
    ["a", "b", "1", "0", "0.5", "-inf", "nan", "target", "nontarget", "spoof", "-", "", '"', "é",
     "enrol", "test", "label", "score", "spk", "1e999", "x:3", "|"]
)  # fmt: skip


@fuzz
@given(
    rows=st.lists(st.lists(field, min_size=1, max_size=5), max_size=6),
    separator=st.sampled_from([" ", "\t", ",", ";", "  "]),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
)
def test_random_tables(tmp_path: Path, rows: list[list[str]], separator: str, end: str) -> None:
    (tmp_path / "x").write_text(end.join(separator.join(row) for row in rows), newline="")
    attempt(tmp_path / "x")


columns = st.dictionaries(
    st.sampled_from(
        ["enrol", "test", "label", "labels", "score", "scores", "tar", "non", "embeddings",
         "utt_ids", "speaker_ids", "embedding", "utterance_id", "mask", "x"]
    ),
    st.sampled_from(
        [np.array(["a", "b"]), np.array([1, 0]), np.array([0.5, np.nan]), np.array([1.0, 2.0]),
         np.eye(2), np.zeros((2, 0)), np.array([True, False]), np.array(3.0), np.array([]),
         np.array([1j, 2]), np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
         np.array([b"t", b"\xff"]), np.zeros((2, 2, 2)), np.array([1, 2, 3], np.float16)]
    ),
    max_size=5,
)  # fmt: skip


@fuzz
@given(columns)
def test_random_npz(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    attempt(tmp_path / "x.npz")


@fuzz
@given(columns)
def test_random_hdf5(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    h5py = pytest.importorskip("h5py")
    names = {"enrol": "enroll_ids", "test": "test_ids", "x": "trial_mask"}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, array in arrays.items():
            if array.dtype.kind != "M":
                file[names.get(name, name)] = (
                    array.astype("S") if array.dtype.kind == "U" else array
                )
    attempt(tmp_path / "x.h5")


@fuzz
@given(
    st.dictionaries(
        st.sampled_from(
            ["enrol", "test", "label", "score", "embedding", "speaker_id", "plda", "x"]
        ),
        st.sampled_from(
            [["a", "b"], [1, 0], [0.5, float("nan")], [True, None], [[1.0, 2.0], [3.0, 4.0]],
             [[1.0], [2.0, 3.0]], [b"x", b"y"], [None, None], [{"a": 1}, {"a": 2}], [["a"], ["b"]]]
        ),
        max_size=5,
    )
)  # fmt: skip
def test_random_parquet(tmp_path: Path, table: dict[str, list[object]]) -> None:
    pl.DataFrame(table).write_parquet(tmp_path / "x.parquet")
    attempt(tmp_path / "x.parquet")


def test_archive_with_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("scores.npy", b"not an array")
    with pytest.raises(InputError, match=re.escape("x.npz")):
        read_scores(tmp_path / "x.npz")


def test_count_of_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentences) -> None:
    monkeypatch.setattr(files, "HEAD", 64)
    monkeypatch.setattr(files.Input.blocks, "__defaults__", (128,))
    lines = [f"e t{i} {'nan' if i % 50 == 20 else i / 7}" for i in range(200)]
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x", lines))
    sentences.check(str(error.value))


def test_an_absent_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["enroll_ids"] = ["a"]
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"unmask\[formats\]"):
        read_embeddings(tmp_path / "x.h5")


@pytest.mark.parametrize("place", [3, 25_000])
@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_quote_that_is_not_closed_swallows_no_trial(
    tmp_path: Path, place: int, separator: str, stream: bool
) -> None:
    lines = [separator.join((f"e{i}", f"t{i}", str(i % 2), f"{i}.5")) for i in range(25_010)]
    lines[place] = separator.join(("e", "t", "1", '"0.5'))
    lines[place + 4] = separator.join(("e", "t", "0", '1.5"'))
    header = separator.join(('"enrol"', "test", "label", "score"))
    path = put(tmp_path / "x.csv", [header, *lines])
    read = partial(evaluate, stream=True, replicates=0) if stream else read_scores
    with pytest.raises(InputError, match=rf"line {place + 2}: expected"):
        read(path)


def test_quotes_that_are_closed_are_read(tmp_path: Path) -> None:
    lines = ["enrol,test,label,score", '"a, b",t1,1,"0.5"', 'c,"t ""2""",0,0.25']
    result = read_scores(put(tmp_path / "x.csv", lines))
    assert result.enrol is not None
    assert result.enrol.to_series().to_list() == ["a, b", "c"]
    assert result.scores().tolist() == [0.5, 0.25]


def test_what_memory_cannot_hold_twice_is_refused(sentences) -> None:
    check_memory(50, 100)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        check_memory(51, 100)
    sentences.check(str(error.value))
