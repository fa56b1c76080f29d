"""Any small table, in any format, with any options: batches give what the whole file gives."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st
from streams import at_once, compare, content, in_batches, make_batches_tiny

import unmask as um
from unmask.trials import streamed_scores

LAYOUTS = {
    "wespeaker": ["enrol", "test", "score", "label"],
    "sunine": ["digit", "enrol", "test", "score"],
    "speechbrain": ["enrol", "test", "digit", "score"],
    "kaldi-eer": ["score", "label"],
    "kaldi-scores": ["enrol", "test", "score"],
    "kaldi-trials": ["enrol", "test", "label"],
    "voxceleb": ["digit", "enrol", "test"],
}
HEADED = ("csv", "tsv", "parquet")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    make_batches_tiny(monkeypatch, rows=6)


@st.composite
def trials(draw):
    """Different trials of both classes; target trials have one speaker."""
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=2, max_size=40, unique=True
        )
    )
    kinds = draw(st.lists(st.sampled_from(["target", "nontarget", "spoof"]), min_size=len(pairs)))
    numbers = st.sampled_from(["0.5", "-1.25", "2", "0", "-0.0", "inf", "-inf", "1e-3"])
    scores = draw(st.lists(numbers, min_size=len(pairs)))
    rows = []
    for i, ((a, b), kind, score) in enumerate(zip(pairs, kinds, scores, strict=False)):
        label = ("target", "nontarget")[i] if i < 2 else kind
        speaker = a % 4 if label == "target" else 3 - b % 4
        rows.append((f"s{a % 4}-e{a}", f"s{speaker}-t{b}", score, label, f"{i % 5}.5"))
    frame = pl.DataFrame(rows, ["enrol", "test", "score", "label", "cosine"], orient="row")
    return frame.with_columns(
        enrol_spk=pl.col("enrol").str.slice(0, 2),
        test_spk=pl.col("test").str.slice(0, 2),
        digit=(pl.col("label") == "target").cast(pl.Int8).cast(pl.String),
    )


@st.composite
def disturbed(draw, frame, *, gaps=True):
    """The trials in another order, some repeated, some left out, some new, some without score."""
    few = st.lists(st.integers(0, frame.height - 1), max_size=2)
    order = draw(st.permutations(range(frame.height)))
    left_out = set(draw(few))
    rows = [row for row in order if row not in left_out] or [0]
    other = frame[rows + draw(few)]
    if draw(st.booleans()):
        new = frame[draw(few)].with_columns(pl.col("enrol") + "x")
        other = pl.concat([other[:1], new, other[1:]])
    absent = [row % other.height for row in draw(few)] if gaps else []
    at = pl.int_range(pl.len()).is_in(absent)
    return other.with_columns(score=pl.when(at).then(pl.lit("-")).otherwise("score"))


def write(frame, folder: Path, how: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"a.{how}"
    if how == "parquet":
        scores = pl.col("score").replace({"-": None}).cast(pl.Float64)
        frame = frame.with_columns(scores, pl.col("^cosine$").cast(pl.Float32))
        frame.drop("digit", strict=False).write_parquet(path, row_group_size=5)
    elif how in HEADED:
        frame.drop("digit", strict=False).write_csv(path, separator="," if how == "csv" else "\t")
    else:
        chosen = frame.select(LAYOUTS[how])
        text = chosen.write_csv(separator=" ", include_header=False)
        path.write_bytes(gzip.compress(text.encode()))
    return path


anywhere = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
options = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["error", "skip", "skip"]),
        "duplicates": st.sampled_from(["error", "skip", "skip"]),
        "speakers": st.sampled_from([None, None, "pattern:^(s[0-9])", "pattern:^s([0-2])"]),
    }
)


def noted(result):
    event("an error" if isinstance(result, str) else "a table")


@anywhere
@given(data=st.data(), frame=trials(), options=options)
def test_labels_in_the_file(tmp_path, data, frame, options):
    how = data.draw(st.sampled_from(["wespeaker", "sunine", "speechbrain", "kaldi-eer", *HEADED]))
    if how == "kaldi-eer":
        options["speakers"] = None
    frame = data.draw(disturbed(frame, gaps=how in HEADED))
    noted(compare(write(frame, tmp_path, how), **options))


@anywhere
@given(data=st.data(), frame=trials(), options=options)
def test_labels_in_a_key(tmp_path, data, frame, options):
    how = data.draw(st.sampled_from(["kaldi-scores", "wespeaker", *HEADED]))
    scores = data.draw(disturbed(frame, gaps=how in HEADED))
    key = data.draw(disturbed(frame))
    kind = data.draw(st.sampled_from(["kaldi-trials", "voxceleb", *HEADED]))
    path = write(scores, tmp_path, how)
    noted(compare(path, key=write(key, tmp_path / "key", kind), **options))


@anywhere
@given(frame=trials(), options=options)
def test_speakers_are_those_of_the_whole_table(tmp_path, frame, options):
    path = write(frame, tmp_path, "tsv")
    if isinstance(at_once([path], **options), str):
        return
    whole = um.read_scores(path, **options)
    with streamed_scores([path], **options) as streamed:
        assert streamed.systems == list(whole.systems)
        assert streamed.counts == whole.counts
        names = streamed.speakers.sort()
        classes = whole.is_target | whole.is_nontarget
        for system in streamed.systems:
            batches = list(streamed.batches(system, speakers=True))
            assert np.array_equal(joined(batches, "scores"), whole.scores(system)[classes])
            assert np.array_equal(joined(batches, "is_target"), whole.is_target[classes])
            for side in ("enrol", "test"):
                speakers = getattr(whole, f"{side}_speaker").take(classes).to_series()
                assert names.gather(joined(batches, side)).to_list() == speakers.to_list()


@anywhere
@given(data=st.data(), frame=trials(), speakers=st.sampled_from([None, "pattern:^(s[0-9])"]))
def test_speakers_are_the_same_in_all_files(tmp_path, data, frame, speakers):
    """Files in different orders: trials of all systems come in the order of the first."""
    frame = frame.with_columns(score=pl.int_range(pl.len()).cast(pl.String))
    rows = data.draw(st.permutations(range(frame.height)))
    first, second = frame.drop("cosine"), frame[rows].drop("cosine")
    bare = data.draw(st.sampled_from([None, "first", "second"]))
    if bare == "first":
        first = first.drop("enrol_spk", "test_spk", "label")
    if bare == "second":
        second = second.drop("enrol_spk", "test_spk", "label")
    paths = [write(part, tmp_path / str(i), "tsv") for i, part in enumerate((first, second))]
    with streamed_scores(paths, speakers=speakers) as streamed:
        names = streamed.speakers.sort()
        classes = frame.filter(pl.col("label") != "spoof")
        for system in streamed.systems:
            batches = list(streamed.batches(system, speakers=True))
            assert joined(batches, "scores").tolist() == classes["score"].cast(float).to_list()
            for side in ("enrol", "test"):
                speakers = names.gather(joined(batches, side)).to_list()
                assert speakers == classes[f"{side}_spk"].to_list()


EARLIER = ("no labels", "found a key", "expected columns for enrol and test")


def agree(path, **options):
    """The same from both; what the columns rule out is told before rows are looked at."""
    result, wanted = in_batches([path], **options), at_once([path], **options)
    if isinstance(wanted, str) and isinstance(result, str) and any(w in result for w in EARLIER):
        return
    assert content(result) == content(wanted)


words = st.sampled_from(
    ["a", "b", "1", "0", "0.5", "-inf", "nan", "target", "nontarget", "spoof", "-", "", '"', "é",
     "1e999", "x:3"]
)  # fmt: skip
columns = st.sampled_from(
    ["enrol", "test", "label", "score", "plda", "spk", "test_spk", "side", "sex"]
)
choices = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["error", "skip"]),
        "duplicates": st.sampled_from(["error", "skip"]),
    }
)


@anywhere
@given(
    rows=st.lists(st.lists(words, min_size=4, max_size=4), min_size=1, max_size=8),
    header=st.none() | st.lists(columns, min_size=3, max_size=4),
    width=st.sampled_from([3, 4]),
    separator=st.sampled_from([" ", "\t", ",", ";", "  "]),
    end=st.sampled_from(["\n", "\r\n"]),
    options=choices,
)
def test_random_text(tmp_path, rows, header, width, separator, end, options):
    rows = [row[: len(header) if header else width] for row in rows]
    lines = [separator.join(row) for row in ([header, *rows] if header else rows)]
    (tmp_path / "x").write_text(end.join(lines), newline="")
    agree(tmp_path / "x", **options)


@anywhere
@given(
    table=st.dictionaries(
        columns,
        st.sampled_from(
            [["a", "b"], [1, 0], [0.5, float("nan")], [True, None], [True, False], [1.0, 0.0],
             [1.0, None], [[1.0], [2.0]], [b"x", b"y"], [None, None], ["0.5", "x"], ["1", "0"]]
        ),
        max_size=6,
    ),
    options=choices,
)  # fmt: skip
def test_random_parquet(tmp_path, table, options):
    pl.DataFrame(table).write_parquet(tmp_path / "x.parquet")
    agree(tmp_path / "x.parquet", **options)


def joined(batches, part):
    return np.concatenate([getattr(batch, part) for batch in batches])
