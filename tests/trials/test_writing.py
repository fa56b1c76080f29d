from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.trials import Ids, Scores, Trials, read_any, read_key, read_scores, write

E, T = ["s1", "s1", "s2", "s2"], ["u1", "u2", "u1", "u3"]
LABEL = np.array([1, 0, 0, 1], np.int8)
FIRST = np.array([0.1 + 0.2, -np.inf, 1 / 3, np.inf])


def made(**changes: object) -> Scores:
    values = {
        "enrol": Ids.from_strings(E),
        "test": Ids.from_strings(T),
        "label": LABEL,
        "enrol_speaker": Ids.from_strings(E),
        "test_speaker": Ids.from_strings(["s1", "v", "s1", "s2"]),
        "columns": {"sex": Ids.from_strings(list("fmfm"))},
        "systems": {"plda": FIRST, "cosine": -FIRST},
    }
    return Scores(**(values | changes))  # type: ignore[arg-type]


def same(result: Scores, given: Scores) -> None:
    order = np.lexsort((result.test.codes, result.enrol.codes))  # type: ignore[union-attr]
    rows = np.arange(len(given))
    assert result.digest == given.digest
    assert (result.scores(next(iter(result.systems)))[order] == given.scores("plda")[rows]).all()


ONE = ["wespeaker", "3d-speaker", "speechbrain", "sunine", "bosaris"]


@pytest.mark.parametrize("format", ONE)
def test_formats_of_one_system(tmp_path: Path, format: str, sentences) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "x.out"
    write(made(), path, format=format, system="plda")
    result = read_scores(path, format=format)
    same(result, made())
    with pytest.raises(InputError) as error:
        write(made(), tmp_path / "y", format=format)
    sentences.check(str(error.value))
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.out"]


def test_kaldi_scores_with_trials(tmp_path: Path) -> None:
    write(made(), tmp_path / "scores", format="kaldi-scores", system="plda")
    for format in ("kaldi-trials", "voxceleb", "long-key"):
        write(made(), tmp_path / "trials", format=format)
        same(read_scores(tmp_path / "scores", key=tmp_path / "trials"), made())
    write(made(), tmp_path / "eer", format="kaldi-eer", system="plda")
    assert np.sort(read_scores(tmp_path / "eer").targets()).tolist() == [0.1 + 0.2, np.inf]


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.tsv.gz", "x.parquet", "x.npz"])
def test_tables_keep_everything(tmp_path: Path, name: str) -> None:
    given = made(
        label=np.array([1, 0, -1, 1], np.int8), enrol=Ids.from_strings(["a b", "c", "d", "e"])
    )
    write(given, tmp_path / name)
    result = read_scores(tmp_path / name)
    same(result, given)
    assert list(result.systems) == ["plda", "cosine"]
    assert result.n_speakers == 3
    assert result.columns["sex"].to_series().to_list() == list("fmfm")
    assert result.label is not None
    assert result.label.tolist() == [1, 0, -1, 1]


def test_writing_the_same_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.tsv.gz", "b.tsv.gz"):
        write(made(), tmp_path / name)
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


def test_key_from_hdf5(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    write(made(), tmp_path / "k.h5", format="bosaris-key")
    assert read_key(tmp_path / "k.h5").digest == made().digest
    assert not isinstance(read_any(tmp_path / "k.h5"), Scores)


def test_refusals_leave_nothing_behind(tmp_path: Path) -> None:
    spoof = made(label=np.array([1, 0, -1, 1], np.int8))
    blank = made(enrol=Ids.from_strings(["a b", "c", "d", "e"]))
    tab = made(enrol=Ids.from_strings(["a\tb", "c", "d", "e"]))
    side = made(columns={"side": Ids.from_strings(list("abab"))})
    cases = [
        (spoof, "speechbrain", "found 1 others"),
        (spoof, "bosaris", "found 1 others"),
        (blank, "kaldi-scores", "without blanks, found 'a b'"),
        (tab, "long", "without tabs"),
        (side, "kaldi-scores", "cannot hold the side"),
        (side, "bosaris", "cannot hold the side"),
        (made(label=None), "wespeaker", "expected labels to write"),
        (made(), "nist-key", "expected a format among"),
        (made(), None, "known ending"),
    ]
    for scores, format, message in cases:
        with pytest.raises(InputError, match=message):
            write(scores, tmp_path / "x", format=format, system="plda")
    with pytest.raises(InputError, match="existing folder"):
        write(made(), tmp_path / "no" / "x.tsv")
    with pytest.raises(InputError, match="format of keys"):
        write(Trials(made().enrol, made().test, LABEL), tmp_path / "x", format="long")
    (tmp_path / "d.tsv").mkdir()
    with pytest.raises(InputError, match="found a folder"):
        write(made(), tmp_path / "d.tsv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.tsv"]
