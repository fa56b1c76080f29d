"""What is wrong with a file is said in the same words, read in batches or as a whole."""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile

import numpy as np
import polars as pl
import pytest
from streams import compare, content, make_batches_tiny
from tests.helpers.populations import some_trials

import unmask as um
from unmask.trials import large, spool
from unmask.trials.readers.tables import TableFile

N = 1200


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    make_batches_tiny(monkeypatch)


def rows(n=N):
    return [[*map(str, row)] for row in zip(*some_trials(1, n, 50).values(), strict=True)]


HEADER = ["enrol", "test", "plda", "label"]


def put(path, table, *, header=None, separator=" "):
    lines = [separator.join(row) for row in ([header, *table] if header else table)]
    path.write_text("\n".join(lines) + "\n")
    return path


PLAIN = {
    "a word for a score": ("e0 t0 high target", "line 901: expected a number in column 'score'"),
    "nan": ("e0 t0 nan target", r"line 901: .* found NaN \(1 in all\)"),
    "no score": ("e0 t0 - target", r"line 901: expected a score, found none \(1 trials lack"),
    "a label": ("e0 t0 1.5 maybe", "line 901: expected a label .* found 'maybe'"),
    "too few columns": ("e0 t0 1.5", "line 901: expected 4 columns .* found 3"),
    "too many columns": ("e0 t0 1.5 target 7", "line 901: expected 4 columns .* found 5"),
    "empty line": ("", "line 901: expected a trial, found an empty line"),
    "binary": ("e0 \0 1.5 target", "line 901: expected text, found binary data"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_bad_lines(tmp_path, case):
    line, text = PLAIN[case]
    table = rows()
    table[900] = [line]
    result = compare(put(tmp_path / "a.score", table))
    assert isinstance(result, str)
    assert re.search(text, result), result


HEADED = {
    "no enrolment": ["", "t0", "1.5", "target"],
    "a dash for a test": ["e0", "-", "1.5", "target"],
    "no score": ["e0", "t0", "", "target"],
    "no label": ["e0", "t0", "1.5", ""],
    "nan": ["e0", "t0", "NaN", "target"],
    "a word for a score": ["e0", "t0", "1,5", "target"],
    "short": ["e0", "t0", "1.5"],
}


@pytest.mark.parametrize("case", HEADED)
def test_bad_lines_under_a_header(tmp_path, case):
    table = rows()
    table[900] = table[1000] = HEADED[case]
    result = compare(put(tmp_path / "a.tsv", table, header=HEADER, separator="\t"))
    assert "line 902" in result


def test_bytes_that_are_no_text(tmp_path):
    data = put(tmp_path / "a.score", rows()).read_bytes().splitlines(keepends=True)
    data[900] = b"e0 t\xff 1.5 target\n"
    (tmp_path / "a.score").write_bytes(b"".join(data))
    assert "line 901: expected UTF-8" in compare(tmp_path / "a.score")


def test_the_first_kind_of_fault_is_told(tmp_path, sentences):
    table = rows()
    table[300], table[500], table[700] = ["e0 t0 1 maybe"], ["e1 t1 nan target"], table[2]
    assert "line 501: expected a number" in compare(put(tmp_path / "a.score", table))
    table[500] = ["e1 t1 - target"]
    assert "line 301: expected a label" in compare(put(tmp_path / "a.score", table))
    table[300] = ["e0 t0 1 target"]
    sentences.check(compare(put(tmp_path / "a.score", table)))
    sentences.check(compare(tmp_path / "a.score", missing="skip"))


@pytest.mark.parametrize("part", [0.3, 0.8])
def test_gzip_that_ends_early_or_is_damaged(tmp_path, part, sentences):
    whole = gzip.compress(put(tmp_path / "a.score", rows()).read_bytes())
    place = int(part * len(whole))
    (tmp_path / "b.gz").write_bytes(whole[:place])
    sentences.check(compare(tmp_path / "b.gz"))
    (tmp_path / "c.gz").write_bytes(whole[:place] + b"\xff" * 40 + whole[place + 40 :])
    assert "c.gz" in compare(tmp_path / "c.gz")


def test_classes_and_files_that_are_not_there(tmp_path, sentences):
    for label in ("target", "nontarget"):
        table = [[*row[:3], label] for row in rows()]
        sentences.check(compare(put(tmp_path / "a.score", table)))
    assert "no such file" in compare(tmp_path / "absent")
    assert "no such file" in compare(tmp_path / "a.score", key=tmp_path / "absent")
    assert "found a directory" in compare(tmp_path)
    (tmp_path / "empty").write_text("")
    sentences.check(compare(tmp_path / "empty"))
    sentences.check(compare(put(tmp_path / "b.tsv", [], header=HEADER)))
    table = [row[:3] for row in rows()]
    sentences.check(compare(put(tmp_path / "scores", table)))
    key = put(tmp_path / "trials", [[row[0], row[1], row[3]] for row in rows()])
    sentences.check(compare(key))
    assert "expected a key, found" in compare(tmp_path / "scores", key=tmp_path / "scores")
    bare = put(tmp_path / "bare", [row[2:] for row in rows()])
    sentences.check(compare(bare, key=key))
    sentences.check(compare(bare, speakers="pattern:(.)"))
    sentences.check(compare(tmp_path / "a.score", bare))


def test_options_are_checked_alike(tmp_path, sentences):
    path = put(tmp_path / "a.score", rows())
    for options in (
        {"missing": "ignore"},
        {"duplicates": "mean"},
        {"format": "kaldy"},
        {"format": "long"},
        {"format": "kaldi-scores"},
        {"format": "parquet"},
        {"systems": ["y"]},
    ):
        sentences.check(compare(path, **options))
    assert not isinstance(compare(path, format="wespeaker"), str)
    table = put(tmp_path / "b.tsv", rows(), header=["enrol", "test", "score", "label"])
    assert compare(table).results[0].system == "b"
    assert compare(table, systems=["score"]).results[0].system == "score"
    sentences.check(compare(table, systems=["b"]))


def test_bad_parquet(tmp_path, sentences):
    table = rows()
    frame = pl.DataFrame(table, schema=HEADER, orient="row").with_columns(
        pl.col("plda").cast(pl.Float64)
    )
    at = pl.int_range(pl.len()) == 900
    path = tmp_path / "a.parquet"

    def fault_of(**columns):
        frame.with_columns(**columns).write_parquet(path)
        return compare(path)

    def without(name, value=None):
        return pl.when(at).then(value).otherwise(name)

    sentences.check(fault_of(enrol=without("enrol")))
    sentences.check(fault_of(label=without("label")))
    sentences.check(fault_of(plda=without("plda")))
    sentences.check(fault_of(plda=without("plda", float("nan"))))
    assert "row 901: expected a label" in fault_of(label=without("label", pl.lit("maybe")))
    word = pl.when(at).then(pl.lit("high")).otherwise(pl.col("plda").cast(pl.String))
    sentences.check(fault_of(plda=word))
    sentences.check(
        fault_of(
            enrol=without("enrol", pl.lit(table[3][0])), test=without("test", pl.lit(table[3][1]))
        )
    )
    frame.with_columns(score=word).drop("plda").write_parquet(path)
    sentences.check(compare(path))
    frame.clear().write_parquet(path)
    sentences.check(compare(path))
    frame.rename({"enrol": "foo", "test": "bar", "label": "baz"}).write_parquet(path)
    sentences.check(compare(path))
    frame.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(um.InputError) as caught:
        um.evaluate(path, stream=True)
    sentences.check(str(caught.value).partition(" (")[0])  # in brackets: what polars says
    assert "\n" not in str(caught.value)


def test_numbers_that_are_names_or_labels(tmp_path, sentences):
    table = rows()
    frame = pl.DataFrame(table, schema=HEADER, orient="row").with_columns(
        pl.col("enrol").str.slice(1).cast(pl.Float64),
        pl.col("test").str.slice(1).cast(pl.Int32),
        pl.col("plda").cast(pl.Float32),
        (pl.col("label") == "target").cast(pl.Float64),
    )
    frame.write_parquet(tmp_path / "a.parquet")
    key = [[row[0][1:], row[1][1:], row[3]] for row in table]
    put(tmp_path / "key", key)
    assert not isinstance(compare(tmp_path / "a.parquet", key=tmp_path / "key"), str)
    half = pl.when(pl.int_range(pl.len()) == 900).then(0.5)
    frame.with_columns(enrol=half.otherwise("enrol")).write_parquet(tmp_path / "b.parquet")
    sentences.check(compare(tmp_path / "b.parquet", key=tmp_path / "key"))
    frame.with_columns(label=half.otherwise("label")).write_parquet(tmp_path / "c.parquet")
    assert "row 1: expected a label" in compare(tmp_path / "c.parquet")
    frame.with_columns(pl.col("label") == 1).write_parquet(tmp_path / "d.parquet")
    assert not isinstance(compare(tmp_path / "d.parquet"), str)


def test_repeated_trials(tmp_path, sentences):
    table = rows()
    table[900] = [*table[7][:2], "0.5", "target"]
    table[1100] = [*table[7][:2], "0.25", "target"]
    table[1150] = [*table[3][:2], "0.25", "nontarget"]
    path = put(tmp_path / "a.score", table)
    found = compare(path)
    assert " ".join(table[7][:2]) in found
    sentences.check(found)
    assert "line 901: expected" in compare(path, duplicates="skip")
    for row, first in ((900, 7), (1100, 7), (1150, 3)):
        table[row][3] = table[first][3]
    put(path, table)
    assert compare(path, duplicates="skip").sources[0].duplicates == 3
    put(path, [table[0]] * 2000)
    sentences.check(compare(path))
    assert "both classes" in compare(path, duplicates="skip")


@pytest.mark.parametrize("duplicates", ["error", "skip"])
def test_two_labels_of_one_trial(tmp_path, duplicates, sentences):
    """Mirrored trials with one label pass, and those of a segment with its side."""
    table = rows()
    both = [*table, *([row[1], row[0], *row[2:]] for row in table[::-1])]
    path = put(tmp_path / "a.score", both)
    assert not isinstance(compare(path, duplicates=duplicates), str)
    for i in (2000, 1700):
        both[i] = [*both[i][:3], "target" if both[i][3] == "nontarget" else "nontarget"]
    trial, line = " ".join(both[1700][:2]), 2400 - 1700
    put(path, both)
    found = compare(path, duplicates=duplicates)
    assert f"a.score, line 1701: expected {trial}," in found
    assert f"line {line}, found" in found
    sentences.check(found)
    scores, key = put(tmp_path / "scores", [row[:3] for row in both]), tmp_path / "key"
    put(key, [[*row[:2], row[3]] for row in both])
    assert f"key, line 1701: expected {trial}" in compare(scores, key=key, duplicates=duplicates)


def test_a_repeated_trial_with_another_label_is_no_duplicate(tmp_path, sentences):
    table = rows()
    path = put(tmp_path / "a.score", [*table, [*table[4][:3], "spoof"], [*table[0][:3], "spoof"]])
    sentences.check(compare(path))
    found = compare(path, duplicates="skip")
    assert " ".join(table[4][:2]) in found
    sentences.check(found)


def test_first_hashes_that_collide_are_told_apart(tmp_path, monkeypatch):
    hashed = spool._hashes

    def weak(columns, seed):
        return (
            hashed(columns, seed) & np.uint64(0xFFF << 52) if seed == 0 else hashed(columns, seed)
        )

    monkeypatch.setattr(spool, "_hashes", weak)
    monkeypatch.setattr(large.Digest, "__str__", lambda self: f"{self.count} trials")
    table = rows()
    path = put(tmp_path / "a.score", table)
    key = put(tmp_path / "trials", [[row[0], row[1], row[3]] for row in table[::-1]])
    assert not isinstance(compare(path, key=key), str)
    put(path, [*table, *table[:5]])
    assert compare(path, duplicates="skip").sources[0].duplicates == 5


def test_trials_that_only_scores_or_key_have(tmp_path, sentences):
    table = rows()
    labels = [[row[0], row[1], row[3]] for row in table]
    scores, key = tmp_path / "scores", tmp_path / "trials"
    plain = [row[:3] for row in table]
    put(key, labels[::-1])
    put(scores, plain[:-3])
    found = compare(scores, key=key)
    assert " ".join(table[-1][:2]) in found
    sentences.check(found)
    assert compare(scores, key=key, missing="skip").sources[1].missing == 3
    put(scores, [*plain[:5], ["e0", "nobody", "0.5"], *plain[7:]])
    text = compare(scores, key=key)
    sentences.check(text)
    skipped = compare(scores, key=key, missing="skip")
    assert [source.missing for source in skipped.sources] == [1, 2]
    put(scores, [["a", f"b{i}", "0.5"] for i in range(400)])
    sentences.check(compare(scores, key=key))
    sentences.check(compare(scores, key=key, missing="skip"))
    put(scores, [*plain, plain[4]])
    sentences.check(compare(scores, key=key))
    assert compare(scores, key=key, duplicates="skip").sources[0].duplicates == 1
    put(scores, plain)
    put(key, [*labels, labels[4]])
    sentences.check(compare(scores, key=key))
    assert compare(scores, key=key, duplicates="skip").sources[1].duplicates == 1
    put(key, [*labels, [*labels[4][:2], "spoof"]])
    assert "found another label" in compare(scores, key=key, duplicates="skip")
    wrong = [[*row[:3], "target"] for row in table]
    put(scores, wrong)
    put(key, labels)
    sentences.check(compare(scores, key=key))


def test_several_files_are_several_systems(tmp_path, sentences):
    table = rows()
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    first = put(tmp_path / "x" / "a.score", table)
    other = [[*row[:2], f"{-float(row[2]):.2f}", row[3]] for row in table[::-1]]
    second = put(tmp_path / "y" / "a.score", other)
    third = put(tmp_path / "plain", [row[:3] for row in other])
    key = put(tmp_path / "trials", [[row[0], row[1], row[3]] for row in table])

    def same(*paths, **options):
        """Numbers to the last bit; trials of all systems come in the order of the first file."""
        streamed = um.evaluate(paths, stream=True, replicates=0, **options)
        tables = [um.read_scores(path, **options) for path in paths]
        whole = um.evaluate(um.Scores.merged(*tables), replicates=0)
        assert content(streamed)[0] == content(whole)[0]
        return streamed

    assert [r.system for r in same(first, second)] == ["x/a", "y/a"]
    assert [r.system for r in same(third, first)] == ["plain", "a"]
    assert [r.system for r in same(first, third, second)][1] == "plain"
    assert len(same(third, third, first).sources) == 2
    assert len(same(third, first, key=key).sources) == 3
    put(second, other[4:])
    sentences.check(compare(first, second))
    put(second, [*other[4:], *[["e", f"{i}", "0.5", "target"] for i in range(3)]])
    assert "and 3 trials of" in compare(first, second)
    put(second, [[*row[:3], "target"] for row in other])
    sentences.check(compare(first, second))


def test_columns_without_any_score_are_left_out(tmp_path, sentences):
    table = [[*row, "-", "" if i % 100 == 5 else "1.5"] for i, row in enumerate(rows())]
    path = put(tmp_path / "a.tsv", table, header=[*HEADER, "empty", "gaps"], separator="\t")
    sentences.check(compare(path))
    outcome = compare(path, missing="skip")
    assert [result.system for result in outcome] == ["plda", "gaps"]
    sentences.check(outcome.sources[0].detected)
    assert compare(path, systems=["plda"]).sources[0].missing == 0
    sentences.check(compare(path, systems=["empty"]))


def test_a_layout_that_only_the_end_of_the_file_decides(tmp_path, sentences):
    table = [[str(i % 2), str(i), str(i % 40), str(i % 3)] for i in range(3000)]
    path = put(tmp_path / "a", table)
    assert "ambiguous" not in compare(path, format="sunine")
    table[2000][3] = "0.5"
    text = compare(put(path, table))
    assert isinstance(text, str) or text.sources[0].format == "sunine"
    for row in table:
        row[2] = str(int(row[2]) % 2)
    sentences.check(compare(put(path, table)))
    table[2999][2] = "7"
    assert compare(put(path, table)).sources[0].format == "sunine"


def test_room_on_disk_is_checked_before(tmp_path, monkeypatch, sentences):
    path = put(tmp_path / "a.score", rows())
    sentences.replaced[tempfile.gettempdir()] = "<temporary>"
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda where: usage._replace(free=20_000))
    monkeypatch.setattr(TableFile, "batches", lambda self: pytest.fail("was read"))
    with pytest.raises(um.InputError) as caught:
        um.evaluate(path, stream=True)
    sentences.check(str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_disk_that_is_full_is_one_line(tmp_path, monkeypatch, sentences):
    path = put(tmp_path / "a.score", rows())

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    sentences.replaced[tempfile.gettempdir()] = "<temporary>"
    monkeypatch.setattr("unmask.trials.spool.open", full, raising=False)
    with pytest.raises(um.InputError) as error:
        um.evaluate(path, stream=True)
    sentences.check(str(error.value))


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    path = put(tmp_path / "a.score", rows())
    um.evaluate(path, stream=True)
    put(path, [*rows(), rows()[0]])
    with pytest.raises(um.InputError, match="each trial once"):
        um.evaluate(path, stream=True)
    assert not list((tmp_path / "scratch").iterdir())
