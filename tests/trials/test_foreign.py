"""What libraries raise on odd data ends in one line of ours."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.engine import read_map
from unmask.errors import InputError
from unmask.utility import read_transcripts


class Frame:
    """A data frame as pandas has them: a name may stand twice."""

    def __init__(self, *columns):
        self.held = columns
        self.columns = [name for name, _ in columns]

    def __getitem__(self, name):
        found = [values for known, values in self.held if known == name]
        return found[0] if len(found) == 1 else Frame(*((name, values) for values in found))

    def __iter__(self):
        return iter(self.columns)


LABELS = ("label", ["target", "nontarget"])
NAMES = (("enrol", ["a", "b"]), ("test", ["c", "d"]), LABELS)


@pytest.mark.parametrize(
    "read",
    [
        lambda: um.read_scores(Frame(*NAMES, ("score", [1.0, 2.0]), ("score", [1.0, 2.0]))),
        lambda: um.read_scores(Frame(*NAMES, ("score", [1 + 2j, 2j]))),
        lambda: um.read_scores([("a", "b", "target", 1.0)]),
        lambda: um.read_scores(pl.Series([1.0])),
        lambda: um.read_embeddings(pl.Series([1.0])),
    ],
)
def test_odd_objects_are_refused_in_a_line(read, sentences):
    with pytest.raises(InputError) as refused:
        read()
    sentences.check(str(refused.value))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"\x1f", b"\x1d", "\u2028".encode(), b"\x1f\n\x1d\n"])
def test_a_file_of_separators_is_empty(tmp_path, content, sentences):
    (tmp_path / "x.txt").write_bytes(content)
    for read in (um.read_scores, um.read_key, um.trials.read_any):
        with pytest.raises(InputError) as error:
            read(tmp_path / "x.txt")
        sentences.check(str(error.value))


def test_an_archive_holds_each_array_once(tmp_path, sentences):
    content = {}
    for name, array in (("embeddings", np.eye(3)), ("speaker_ids", np.array(["a", "b", "c"]))):
        file = io.BytesIO()
        np.save(file, array)
        content[name] = file.getvalue()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name in ("embeddings", "speaker_ids"):
            archive.writestr(f"{name}.npy", content[name])
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("embeddings.npy", content["embeddings"])
    with pytest.raises(InputError) as error:
        um.read_embeddings(tmp_path / "x.npz")
    sentences.check(str(error.value))


def test_bytes_are_text():
    for names in ([b"s0", "s\u00e9".encode()], np.array([b"s0", "s\u00e9".encode()])):
        assert list(um.Embeddings(np.eye(2), names).speakers) == ["s0", "s\u00e9"]
    with pytest.raises(InputError, match="speakers as text"):
        um.Embeddings(np.eye(2), [b"\xff", b"s"])


def test_what_is_nested_too_deep_is_one_line(tmp_path, sentences):
    (tmp_path / "map.json").write_text('{"a":' * 100_000)
    with pytest.raises(InputError) as error:
        read_map(tmp_path / "map.json")
    sentences.check(str(error.value).partition(" (")[0])  # in brackets: what the parser says
    (tmp_path / "x.jsonl").write_text('{"a":' + "[" * 200_000)
    with pytest.raises(InputError) as error:
        read_transcripts(tmp_path / "x.jsonl")
    sentences.check(str(error.value))
