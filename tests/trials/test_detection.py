"""Which layout a file is taken for, and what is refused as ambiguous."""

from __future__ import annotations

from pathlib import Path

import pytest

from unmask.errors import InputError
from unmask.trials import Scores, read_any, read_key, read_scores
from unmask.trials.readers import files


def put(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_zeros_and_ones_in_the_third_column_are_refused(tmp_path: Path, sentences) -> None:
    path = put(tmp_path / "x", "a b 1", "a c 0")
    for read in (read_scores, read_any):
        with pytest.raises(InputError) as caught:
            read(path)
        sentences.check(str(caught.value))

    assert read_scores(path, format="kaldi-scores").scores().tolist() == [1, 0]


def test_the_role_decides_and_says_so(tmp_path: Path, sentences) -> None:
    path = put(tmp_path / "x", "a b 1", "a c 0")
    key = read_key(path)
    assert key.label is not None
    assert key.label.tolist() == [1, 0]
    assert key.source is not None
    sentences.check(key.source.detected)
    scored = put(tmp_path / "y", "a c 0", "a b 1")
    scores = read_scores(scored, key=key)
    assert scores.targets().tolist() == [1]
    sentences.check(scores.sources[0].detected)
    with pytest.raises(InputError) as error:
        read_scores(path, key=key)
    sentences.check(str(error.value))


def test_the_whole_file_decides_where_the_sample_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "HEAD", 64)
    path = put(tmp_path / "x", *(f"a b{i} {i % 2}" for i in range(2000)), "a z 0.5")
    scores = read_scores(path)
    assert scores.sources[0].format == "kaldi-scores"
    assert len(scores) == 2001


def test_two_columns_of_zeros_and_ones_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "x", "a b 1 0", "a c 0 1")
    with pytest.raises(InputError, match=r"speechbrain .* and wespeaker"):
        read_scores(path)


def test_numeric_identifiers(tmp_path: Path) -> None:
    result = read_scores(put(tmp_path / "x", "1462 17 0.5", "1 18 0.25"))
    assert result.sources[0].format == "kaldi-scores"
    assert read_scores(put(tmp_path / "x", "1 17 0.5", "0 18 -3.25")).sources[0].format == (
        "kaldi-scores"
    )
    with pytest.raises(InputError, match="ambiguous"):
        read_scores(put(tmp_path / "x", "1 17 5", "0 18 3"))


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ("a b 0.5", "kaldi-scores"),
        ("a b target", "kaldi-trials"),
        ("1 a b", "voxceleb"),
        ("1 a b 0.7", "sunine"),
        ("a b 1 0.7", "speechbrain"),
        ("a b 0.7 1", "wespeaker"),
        ("a b 0.7 tgt", "wespeaker"),
        ("a b imp 0.7", "3d-speaker"),
        ("0.7 non", "kaldi-eer"),
        ("a,b,0.5", "kaldi-scores"),
    ],
)
def test_one_line_is_enough_when_it_is_clear(tmp_path: Path, line: str, format: str) -> None:
    result = read_any(put(tmp_path / "x", line))
    source = result.sources[0] if isinstance(result, Scores) else result.source
    assert source is not None
    assert source.format == format


def test_first_line_alone_does_not_decide(tmp_path: Path) -> None:
    result = read_scores(put(tmp_path / "x", "1 b 0 0.7", "a c 1 0.2"))
    assert result.sources[0].format == "speechbrain"


def test_nothing_fits(tmp_path: Path, sentences) -> None:
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x", "a b c d e", "a b c d f"))
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="found kaldi-scores"):
        read_key(put(tmp_path / "x", "a b 0.5"))
    with pytest.raises(InputError, match="found kaldi-trials"):
        read_scores(put(tmp_path / "x", "a b target"), key=put(tmp_path / "k", "a b target"))
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "x", "a b target"))
    sentences.check(str(error.value))


def test_a_score_table_with_labels_serves_as_key(tmp_path: Path) -> None:
    key = put(
        tmp_path / "k.tsv", "enrol\ttest\tlabel\tplda\tsex", "a\tb\t1\t0.5\tf", "a\tc\t0\t0\tm"
    )
    scores = read_scores(put(tmp_path / "x", "a c 0.25", "a b 0.75"), key=key)
    assert scores.targets().tolist() == [0.75]
    assert list(scores.systems) == ["x"]
    assert scores.columns["sex"].to_series().to_list() == ["m", "f"]
