"""Score files in batches give the table that reading them whole gives."""

from __future__ import annotations

import gzip
import shutil

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.detection import stream
from unmask.trials import files, streaming
from unmask.trials.streaming import is_large


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(streaming, "BATCH", 300)
    monkeypatch.setattr(files, "HEAD", 4096)
    monkeypatch.setattr(stream, "HELD", 50)
    blocks = files.Input.blocks
    monkeypatch.setattr(files.Input, "blocks", lambda self: blocks(self, 5000))


@pytest.fixture(scope="module")
def trials():
    rng = np.random.default_rng(0)
    pairs = rng.choice(60 * 60, 2000, replace=False)
    enrol, test = np.divmod(pairs, 60)
    same = enrol % 6 == test % 6
    return pl.DataFrame(
        {
            "enrol": [f"e{i}" for i in enrol],
            "test": [f"t{i}" for i in test],
            "score": np.round(rng.normal(0, 1, 2000) + 2 * same, 2),
            "label": np.where(same, "target", "nontarget"),
        }
    )


def text(frame, *columns, header=False, separator=" "):
    chosen = frame.select(columns or frame.columns)
    return chosen.write_csv(separator=separator, include_header=header)


def values(evaluation):
    return [[(e.metric, e.value, e.threshold) for e in result.estimates] for result in evaluation]


def expected(path, **options):
    return um.evaluate(um.read_scores(path, **options), replicates=0)


def close(found, wanted):
    for one, other in zip(values(found), values(wanted), strict=True):
        for (metric, value, threshold), (name, number, level) in zip(one, other, strict=True):
            assert metric == name
            assert threshold == level
            assert value == (pytest.approx(number, rel=1e-12) if name != "tag" else number)


def test_text_gzip_and_parquet_with_labels(trials, tmp_path):
    (tmp_path / "a.score").write_text(text(trials))
    with gzip.open(tmp_path / "b.score.gz", "wt") as file:
        file.write(text(trials))
    (tmp_path / "c.tsv").write_text(text(trials, header=True, separator="\t"))
    trials.write_parquet(tmp_path / "d.parquet")
    for name in ("a.score", "b.score.gz", "c.tsv", "d.parquet"):
        found = um.stream_scores(tmp_path / name)
        wanted = expected(tmp_path / name)
        close(found, wanted)
        assert found.sources[0].sha256 == wanted.sources[0].sha256
        assert found.sources[0].target == wanted.sources[0].target
        assert found.results[0].system == wanted.results[0].system
        assert found.results[0]["eer"].n == {
            key: value for key, value in wanted.results[0]["eer"].n.items() if key != "speakers"
        }


def test_a_key_in_another_order(trials, tmp_path):
    (tmp_path / "scores").write_text(text(trials, "enrol", "test", "score"))
    shuffled = trials.sample(fraction=1, shuffle=True, seed=1)
    (tmp_path / "trials").write_text(text(shuffled, "enrol", "test", "label"))
    found = um.stream_scores(tmp_path / "scores", key=tmp_path / "trials")
    close(found, expected(tmp_path / "scores", key=tmp_path / "trials"))


def test_the_side_of_a_segment_belongs_to_the_trial(trials, tmp_path):
    other = trials.with_columns(pl.col("score") - 1, side=pl.lit("b"))
    both = pl.concat([trials.with_columns(side=pl.lit("a")), other])
    both = both.rename({"enrol": "modelid", "test": "segmentid"})
    scores = both.rename({"score": "LLR"}).select("modelid", "segmentid", "side", "LLR")
    key = both.rename({"label": "targettype"}).select("modelid", "segmentid", "side", "targettype")
    (tmp_path / "scores.tsv").write_text(text(scores, header=True, separator="\t"))
    (tmp_path / "key.tsv").write_text(text(key[::-1], header=True, separator="\t"))
    options = {"key": tmp_path / "key.tsv"}
    close(
        um.stream_scores(tmp_path / "scores.tsv", **options),
        expected(tmp_path / "scores.tsv", **options),
    )


def test_several_systems_and_spoofed_trials(trials, tmp_path):
    frame = trials.with_columns(
        other=-pl.col("score"),
        label=pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("spoof")).otherwise("label"),
    ).rename({"score": "plda"})
    frame.write_csv(tmp_path / "a.csv")
    found = um.stream_scores(tmp_path / "a.csv")
    close(found, expected(tmp_path / "a.csv"))
    assert any("negated" in text or "lower" in text for text in found.warnings) == any(
        "negated" in text or "lower" in text for text in expected(tmp_path / "a.csv").warnings
    )
    assert [r.system for r in um.stream_scores(tmp_path / "a.csv", systems=["other"])] == ["other"]


def test_progress_reaches_the_end(trials, tmp_path):
    (tmp_path / "a.score").write_text(text(trials))
    told = []
    um.stream_scores(tmp_path / "a.score", progress=lambda *numbers: told.append(numbers))
    done = [numbers[0] for numbers in told]
    assert done == sorted(done)
    assert told[-1][0] == told[-1][1] == 2 * (tmp_path / "a.score").stat().st_size


def test_bad_input_names_its_place(trials, tmp_path):
    lines = text(trials).splitlines()
    path = tmp_path / "a.score"
    for broken, told in (
        ("e0 t0 x target", r"a.score, line 1501: expected a score, found 'x'"),
        ("e0 t0 nan target", r"a.score, line 1501: expected a score, found NaN"),
        ("e0 t0 1.5 maybe", r"a.score, line 1501: expected a label .* found 'maybe'"),
        ("e0 t0 1.5", r"a.score, line 1501: expected 4 columns .* found 3"),
    ):
        path.write_text("\n".join([*lines[:1500], broken, *lines[1501:]]) + "\n")
        with pytest.raises(um.InputError, match=told):
            um.stream_scores(path)
    path.write_text(text(trials.filter(label="target")))
    with pytest.raises(um.InputError, match="expected trials of both classes"):
        um.stream_scores(path)
    with pytest.raises(um.InputError, match="found standard input"):
        um.stream_scores("-")
    with pytest.raises(um.InputError, match="no such file"):
        um.stream_scores(tmp_path / "absent")
    np.savez(tmp_path / "a.npz", enrol=np.array(["a"]))
    with pytest.raises(um.InputError, match="expected text, gzip or parquet"):
        um.stream_scores(tmp_path / "a.npz")


def test_scores_and_key_must_have_the_same_trials(trials, tmp_path):
    scores, key = tmp_path / "scores", tmp_path / "trials"
    lines = text(trials, "enrol", "test", "score").splitlines()
    key.write_text(text(trials, "enrol", "test", "label"))
    scores.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(um.InputError, match=r"expected the 2000 trials of .* found 1999 scores"):
        um.stream_scores(scores, key=key)
    scores.write_text("\n".join([*lines[:-1], lines[0]]) + "\n")
    with pytest.raises(um.InputError, match="some are missing, repeated"):
        um.stream_scores(scores, key=key)
    scores.write_text("\n".join([*lines[:-1], "e0 nobody 0.5"]) + "\n")
    with pytest.raises(um.InputError, match=r"scores, line 2000: expected a trial of .* e0 nobody"):
        um.stream_scores(scores, key=key)
    scores.write_text("\n".join(lines) + "\n")
    shutil.copy(key, tmp_path / "twice")
    other = lines[0].rsplit(" ", 1)[0]
    twice = {"target": "nontarget", "nontarget": "target"}[trials["label"][0]]
    with open(tmp_path / "twice", "a") as file:
        file.write(f"{other} {twice}\n")
    scores.write_text("\n".join([*lines, lines[0]]) + "\n")
    with pytest.raises(um.InputError, match="twice: expected one label for each trial"):
        um.stream_scores(scores, key=tmp_path / "twice")
    scores.write_text("\n".join(lines) + "\n")
    with pytest.raises(um.InputError, match="no labels; give a key"):
        um.stream_scores(scores)


def test_large_files_are_told_by_size(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1000)
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b" + b"x" * 998)
    assert not is_large(tmp_path / "a", 1000)
    assert is_large(tmp_path / "a", 999)
    assert is_large(tmp_path / "b.gz", 4999)
    assert not is_large(tmp_path / "absent", 0)
