"""Score files in batches give the table that reading them whole gives."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from streams import compare, make_batches_tiny
from tests.helpers.populations import some_trials

import unmask as um
from unmask.engine import evaluation, streaming
from unmask.run import progress
from unmask.trials import is_large

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "scores"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    make_batches_tiny(monkeypatch)


@pytest.fixture(scope="module")
def trials():
    return pl.DataFrame(some_trials(0, 2000, 60))


def text(frame, *columns, header=False, separator=" "):
    chosen = frame.select(columns or frame.columns)
    return chosen.write_csv(separator=separator, include_header=header)


def test_text_gzip_and_parquet_with_labels(trials, tmp_path):
    (tmp_path / "a.score").write_text(text(trials))
    with gzip.open(tmp_path / "b.score.gz", "wt") as file:
        file.write(text(trials))
    (tmp_path / "c.tsv").write_text(text(trials, header=True, separator="\t"))
    trials.write_parquet(tmp_path / "d.parquet", row_group_size=170)
    (tmp_path / "e.score").write_text(text(trials, "score", "label"))
    for name in ("a.score", "b.score.gz", "c.tsv", "d.parquet", "e.score"):
        result = compare(tmp_path / name)
        assert result.results[0]["eer"].n["target"] == 341


def test_a_key_in_another_order(trials, tmp_path):
    (tmp_path / "scores").write_text(text(trials, "enrol", "test", "score"))
    shuffled = trials.sample(fraction=1, shuffle=True, seed=1)
    (tmp_path / "trials").write_text(text(shuffled, "enrol", "test", "label"))
    shuffled.write_parquet(tmp_path / "trials.parquet")
    assert compare(tmp_path / "scores", key=tmp_path / "trials").results[0]["eer"].value > 0
    assert compare(tmp_path / "scores", key=tmp_path / "trials.parquet").sources[1].target == 341


def test_the_side_of_a_segment_belongs_to_the_trial(trials, tmp_path, sentences):
    other = trials.with_columns(pl.col("score") - 1, side=pl.lit("b"))
    both = pl.concat([trials.with_columns(side=pl.lit("a")), other])
    both = both.rename({"enrol": "modelid", "test": "segmentid"})
    scores = both.rename({"score": "LLR"}).select("modelid", "segmentid", "side", "LLR")
    key = both.rename({"label": "targettype"}).select("modelid", "segmentid", "side", "targettype")
    paths = {name: tmp_path / f"{name}.tsv" for name in ("scores", "key", "half", "plain")}
    paths["scores"].write_text(text(scores, header=True, separator="\t"))
    paths["key"].write_text(text(key[::-1], header=True, separator="\t"))
    paths["half"].write_text(text(key[:2000], header=True, separator="\t"))
    paths["plain"].write_text(text(key[:2000].drop("side"), header=True, separator="\t"))
    assert not isinstance(compare(paths["scores"], key=paths["key"]), str)
    assert compare(paths["scores"], key=paths["half"], missing="skip").sources[0].missing == 2000
    sentences.check(compare(paths["scores"], key=paths["plain"]))
    paths["scores"].write_text(text(scores[:2000], header=True, separator="\t"))
    assert not isinstance(compare(paths["scores"], key=paths["plain"]), str)


def test_several_systems_and_spoofed_trials(trials, tmp_path, sentences):
    frame = trials.with_columns(
        other=-pl.col("score"),
        label=pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("spoof")).otherwise("label"),
    ).rename({"score": "plda"})
    frame.write_csv(tmp_path / "a.csv")
    outcome = compare(tmp_path / "a.csv")
    assert any("other" in warning for warning in outcome.warnings)
    assert "286 spoof trials" in outcome.sources[0].detected
    only = compare(tmp_path / "a.csv", systems=["other"])
    assert [result.system for result in only] == ["other"]
    sentences.check(compare(tmp_path / "a.csv", systems=["x"]))


def test_progress_reaches_the_end(trials, tmp_path):
    (tmp_path / "a.score").write_text(text(trials))
    sentence = []
    with progress(lambda *numbers: sentence.append(numbers)):
        um.evaluate(tmp_path / "a.score", stream=True, replicates=0)
    done = [numbers[0] / numbers[1] for numbers in sentence]
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert done[-1] == 1


def test_only_files_are_read_in_batches(tmp_path, sentences):
    with pytest.raises(um.InputError, match="found standard input"):
        um.evaluate("-", stream=True)
    with pytest.raises(um.InputError) as error:
        um.evaluate([], stream=True)
    sentences.check(str(error.value))
    np.savez(tmp_path / "a.npz", enrol=np.array(["a"]))
    with pytest.raises(um.InputError) as error:
        um.evaluate(tmp_path / "a.npz", stream=True)
    sentences.check(str(error.value))


def test_large_files_are_told_by_size(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1000)
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b" + b"x" * 998)
    assert not is_large(tmp_path / "a", 1000)
    assert is_large(tmp_path / "a", 999)
    assert is_large(tmp_path / "b.gz", 4999)
    assert not is_large(tmp_path / "absent", 0)


@pytest.mark.parametrize("named", [True, False])
def test_intervals_are_those_of_trials_in_bins(named, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.txt"
    effect = rng.normal(0, 0.4, 80)
    lines = [
        f"s{a:02d}-e s{b:02d}-t {effect[a] + effect[b] + rng.normal():.4f} nontarget"
        for a, b in itertools.combinations(range(80), 2)
    ]
    lines += [
        f"s{a:02d}-e s{a:02d}-{k} {3 + effect[a] + rng.normal():.4f} target"
        for a, k in itertools.product(range(80), range(4))
    ]
    path.write_text("\n".join(rng.permutation(lines)) + "\n")
    speakers = "pattern:^(s..)" if named else None
    whole = um.evaluate(path, stream=True, speakers=speakers, replicates=200)
    same = um.evaluate(um.read_scores(path, speakers=speakers), replicates=200)
    for one, other in zip(whole.results[0].estimates, same.results[0].estimates, strict=True):
        if one.interval is not None:
            ends = (other.interval.low, other.interval.high)
            assert (one.interval.low, one.interval.high) == pytest.approx(ends, rel=1e-9)
    monkeypatch.setattr(streaming, "AUTO_TRIALS", 100)
    result = um.evaluate(path, stream=True, speakers=speakers)
    monkeypatch.setattr(evaluation, "AUTO_TRIALS", 100)
    wanted = um.evaluate(um.read_scores(path, speakers=speakers))
    for one, other in zip(result.results[0].estimates, wanted.results[0].estimates, strict=True):
        if one.metric in ("l_w", "tag"):
            assert one.interval is None
            continue
        method = "speaker,first order,corrected" if named else "trial,corrected"
        assert one.interval.method == method
        assert one.interval.method == other.interval.method
        width = other.interval.high - other.interval.low
        assert one.interval.low == pytest.approx(other.interval.low, abs=0.15 * width + 1e-9)
        assert one.interval.high == pytest.approx(other.interval.high, abs=0.15 * width + 1e-9)
    assert ("no speaker ids" in " ".join(result.warnings)) != named
    assert um.evaluate(path, stream=True, replicates=0).results[0]["eer"].interval is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real files are not at hand")
@pytest.mark.parametrize("name", ["asvspoof2019_la_dev_2asv_1cm", "voxsrc2021_val_baseline"])
def test_real_files(name, monkeypatch):
    monkeypatch.undo()
    result = compare(SHARED / f"{name}.tsv.gz")
    assert result.results[0]["eer"].n["speakers"] in (20, 1251)


def test_paths_are_evaluated_in_memory_or_in_batches(trials, tmp_path, sentences):
    path = tmp_path / "a.score"
    path.write_text(text(trials))
    whole = um.evaluate(path, replicates=0)
    assert "batches" not in whole.sources[0].detected
    batches = um.evaluate([path], stream=True, replicates=0)
    assert "read in batches" in batches.sources[0].detected
    assert whole.results[0]["eer"].value == batches.results[0]["eer"].value
    np.savez(tmp_path / "b.npz", tar=[1.0, 2.0], non=[0.0, 1.5])
    assert um.evaluate(tmp_path / "b.npz", replicates=0).results[0]["eer"].value == 0.25
    with pytest.raises(um.InputError) as error:
        um.evaluate(path, by="sex", stream=True)
    sentences.check(str(error.value))
