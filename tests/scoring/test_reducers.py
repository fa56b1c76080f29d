"""All pairs, counted by reducers: against the whole score matrix, on every place, after faults."""

from __future__ import annotations

import os
import signal
import sys
import types
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from tests.helpers.notices import steady

import unmask as um
from unmask.base import Groups
from unmask.engine.pairing import statistic
from unmask.run import NUMPY, progress, ranges_of, run_on, workplace
from unmask.run.executors import Lost
from unmask.scoring import Sides, reducers
from unmask.scoring.pairs import ALL, UNORDERED, PairGrid
from unmask.scoring.reducers import Tally, TargetScores
from unmask.scoring.shards import RowOrder, shards_of
from unmask.trials import Source, write


def cross_pairing(
    *sets, on="local", workers=None, state=None, listener=None, devices=(), **options
):
    """With few replicates: their number is none of the questions here."""
    with run_on(on, workers=workers, state=state, devices=devices), progress(listener):
        return um.engine.cross_pairing(*sets, **{"replicates": 20, **options})


def table(evaluation):
    """What must be the same to the last bit; an interval as it is written, since NaN is not NaN."""
    return [
        (e.metric, e.value, e.threshold, repr(e.interval), dict(e.n))
        for e in evaluation.results[0].estimates
    ]


def whole(embeddings, backend=None, *, enrolled=None):
    """Scores of both classes from one product in float64."""
    backend = backend or um.Cosine()
    sides = backend.sides(embeddings.vectors)
    scores = sides.enrol @ sides.test.T
    code = embeddings.speakers.codes
    same = code[:, None] == code[None, :]
    if enrolled is None:
        counted = np.triu(np.ones_like(same), 1)
    else:
        counted = enrolled[:, None] & ~enrolled[None, :]
    return scores[same & counted], scores[~same & counted]


def test_all_pairs_equal_the_whole_matrix(embeddings):
    result = cross_pairing(embeddings).results[0]
    expected = um.detection(*whole(embeddings))
    n = len(embeddings)
    assert result["eer"].n["target"] == 250 * 45
    assert result["eer"].n["target"] + result["eer"].n["nontarget"] == n * (n - 1) // 2
    assert result["eer"].value == pytest.approx(expected.eer, abs=1e-6)
    assert result["min_dcf"].value == pytest.approx(expected.min_dcf, abs=1e-5)
    assert result["cllr"].value == pytest.approx(expected.cllr, abs=1e-8)
    assert result["min_cllr"].value == pytest.approx(expected.min_cllr, abs=1e-6)
    assert result["l_w"].value == pytest.approx(expected.l_w, abs=1e-3)


def test_fixed_enrolment_takes_the_first_of_each_speaker(embeddings):
    code = embeddings.speakers.codes
    first = np.zeros(len(embeddings), bool)
    for speaker in np.unique(code):
        first[np.flatnonzero(code == speaker)[:2]] = True
    result = cross_pairing(embeddings, pairs="enrolment-fixed", enrolment=2).results[0]
    target, nontarget = whole(embeddings, enrolled=first)
    assert result["eer"].n["target"] == target.size
    assert result["eer"].n["nontarget"] == nontarget.size
    assert result["eer"].value == pytest.approx(um.eer(target, nontarget), abs=1e-6)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_files_are_read_in_slices(embeddings, tmp_path, kind, sentences):
    write(embeddings, tmp_path / f"x.{kind}")
    (shard,) = shards_of(tmp_path / f"x.{kind}")
    assert shard.source.detected.startswith(kind)
    sentences.check(shard.source.detected)
    assert len(shard.speakers) == len(embeddings)


def test_the_digest_names_the_trials(embeddings):
    def digest(given, **options):
        return RowOrder.of(shards_of(given), **options).digest

    turned = embeddings.select(np.arange(len(embeddings))[::-1])
    assert digest(turned, pairs="all") == digest(embeddings, pairs="all")
    fixed = [
        digest(given, pairs="enrolment-fixed", enrolment=number)
        for given, number in ((embeddings, 1), (turned, 1), (embeddings, 2))
    ]
    assert len({*fixed, digest(embeddings, pairs="all")}) == 4


@pytest.mark.parametrize("kind", ["plda", "wccn"])
def test_trained_back_ends(embeddings, kind):
    train = embeddings.select(np.arange(0, len(embeddings), 2))
    backend = um.Plda.fit(train) if kind == "plda" else um.Whitening.fit(train)
    result = cross_pairing(embeddings, backend=backend).results[0]
    expected = um.detection(*whole(embeddings, backend))
    assert result["eer"].value == pytest.approx(expected.eer, abs=1e-6)
    assert result["cllr"].value == pytest.approx(expected.cllr, rel=1e-6)
    roc = um.Roc.from_scores(*whole(embeddings, backend), thresholds=um.Battery().thresholds)
    assert result["act_dcf"].value == pytest.approx(roc.act_dcf(), abs=1e-4)


@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_workers_blocks_and_order_change_nothing(embeddings, pairs):
    expected = table(cross_pairing(embeddings, pairs=pairs, workers=1))
    for options in ({"workers": 3}, {"block": 1024}, {"block": 2048, "workers": 2}):
        assert table(cross_pairing(embeddings, pairs=pairs, **options)) == expected
    if pairs == "all":
        shuffled = embeddings.select(np.random.default_rng(1).permutation(len(embeddings)))
        assert table(cross_pairing(shuffled)) == expected


def test_processes_give_the_same(embeddings):
    assert table(cross_pairing(embeddings, on="processes", workers=2)) == table(
        cross_pairing(embeddings)
    )


def test_files_of_all_kinds_and_shards_are_one_set(embeddings, tmp_path):
    embeddings = embeddings.select(np.arange(600))
    expected = table(cross_pairing(embeddings))
    names, speakers = embeddings.utterances.to_series(), embeddings.speakers.to_series()
    np.savez(
        tmp_path / "a.npz",
        embeddings=embeddings.vectors,
        utt_ids=names.to_numpy().astype(str),
        speaker_ids=speakers.to_numpy().astype(str),
    )
    frame = pl.DataFrame({"utt": names, "speaker": speakers, "embedding": embeddings.vectors})
    frame.write_parquet(tmp_path / "b.parquet")
    frame[:200].write_parquet(tmp_path / "c1.parquet")
    listed = frame[200:].with_columns(pl.col("embedding").arr.to_list())
    listed.write_parquet(tmp_path / "c2.parquet")
    np.save(tmp_path / "d.npy", embeddings.vectors)
    lines = "".join(f"{u} {s}\n" for u, s in zip(names, speakers, strict=True))
    (tmp_path / "utt2spk").write_text(lines)
    for paths in (["a.npz"], ["b.parquet"], ["c1.parquet", "c2.parquet"]):
        assert table(cross_pairing([tmp_path / path for path in paths])) == expected, paths
    npy = cross_pairing(tmp_path / "d.npy", speakers=tmp_path / "utt2spk")
    assert table(npy) == expected
    assert [source.format for source in npy.sources] == ["npy-embeddings"]


def test_bad_input_is_one_line(embeddings, tmp_path, monkeypatch, sentences):
    with pytest.raises(um.InputError) as error:
        cross_pairing(embeddings, pairs="some")
    sentences.check(steady(error.value))
    with pytest.raises(um.InputError) as error:
        cross_pairing(embeddings, on="moon")
    sentences.check(steady(error.value))
    for name, width in (("a", 8), ("b", 9)):
        speakers = np.array(["x", "x", "y"])
        np.savez(tmp_path / f"{name}.npz", embeddings=np.ones((3, width)), speaker_ids=speakers)
    with pytest.raises(um.InputError) as error:
        cross_pairing([tmp_path / "a.npz", tmp_path / "b.npz"])
    sentences.check(steady(error.value))
    with pytest.raises(um.InputError, match="a speaker with 2 utterances"):
        cross_pairing(um.Embeddings(np.eye(3), ["a", "b", "c"]))
    with pytest.raises(um.InputError, match="expected 2 speakers"):
        cross_pairing(um.Embeddings(np.eye(3), ["a", "a", "a"]))
    zero = um.Embeddings(np.eye(4)[[0, 1, 2]] * [[1], [1], [0]], ["a", "a", "b"])
    with pytest.raises(um.InputError, match="has length 0"):
        cross_pairing(zero)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("", (), {"free": 1000})())
    with pytest.raises(um.InputError) as error:
        cross_pairing(embeddings)
    sentences.check(steady(error.value))


def count_nontargets(enrol, test, one, other, knots, *, symmetric, rows):
    """What the kernel of triton counts, from the whole matrix."""
    scores = (enrol @ test.T).numpy()
    counted = (one[:, None] != other[None, :]).numpy()
    if symmetric:
        counted &= np.triu(np.ones_like(counted), 1)
    counted[: rows[0]] = counted[rows[1] :] = False
    against = np.sort(scores[counted])
    below = np.searchsorted(against, knots.numpy())
    upto = np.searchsorted(against, knots.numpy(), side="right")
    gaps = np.concatenate([[0], np.stack([below, upto], 1).ravel(), [against.size]])
    return types.SimpleNamespace(equal=upto - below, between=np.diff(gaps)[::2])


@pytest.fixture(params=["torch", "triton"])
def device(request, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(reducers, "STRIP", 1 << 20)
    if request.param == "triton":
        kernel = types.ModuleType("unmask.scoring.triton_roc")
        kernel.count_nontargets = count_nontargets
        monkeypatch.setitem(sys.modules, "unmask.scoring.triton_roc", kernel)
        monkeypatch.setattr(reducers, "fuses", lambda xp: True)
    return "cpu"


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_all_devices_together_count_what_processors_count(embeddings, device, pairs, number):
    battery = um.Battery(p_target=(0.5, 0.45))
    wanted = cross_pairing(embeddings, pairs=pairs, battery=battery).results[0]
    there = {"on": "cuda", "devices": [device] * number}
    result = cross_pairing(embeddings, pairs=pairs, battery=battery, **there).results[0]
    assert result["eer"].n == wanted["eer"].n
    for one, other in zip(result.estimates, wanted.estimates, strict=True):
        assert one.no_interval == other.no_interval
        if one.metric != "tag":
            assert one.value == pytest.approx(other.value, abs=1e-6), one.metric
        if other.interval is not None:
            ends = one.interval.low, one.interval.high
            expected = other.interval.low, other.interval.high
            assert ends == pytest.approx(expected, abs=1e-5, nan_ok=True), one.metric


def test_llrs_have_no_bounds(embeddings, device):
    backend = um.Plda.fit(embeddings)
    wanted = cross_pairing(embeddings, backend=backend).results[0]
    result = cross_pairing(embeddings, backend=backend, on="cuda", devices=[device]).results[0]
    for metric in ("eer", "act_dcf", "cllr", "min_dcf"):
        assert result[metric].value == pytest.approx(wanted[metric].value, abs=1e-5), metric


def test_no_cuda_device_is_one_line(embeddings):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(um.InputError, match="no CUDA device"):
        cross_pairing(embeddings, on="cuda")


@pytest.mark.parametrize("last", [2, 8])
def test_a_run_that_failed_goes_on_where_it_was(embeddings, tmp_path, last):
    expected = table(cross_pairing(embeddings))

    def stop(done, total):
        if done == last:
            raise KeyboardInterrupt

    state = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        cross_pairing(embeddings, block=1024, workers=1, state=state, listener=stop)
    text = []
    result = cross_pairing(
        embeddings, block=1024, state=state, listener=lambda *numbers: text.append(numbers)
    )
    assert text[0] == (min(last, 6), 12)
    assert (last, 12) in text
    assert text[-1] == (12, 12)
    assert table(result) == expected
    before = len(list(state.iterdir()))
    cross_pairing(embeddings, pairs="enrolment-fixed", state=state)
    assert len(list(state.iterdir())) == before + 1


def test_two_runs_of_one_plan_do_not_meet(embeddings, tmp_path, monkeypatch, sentences):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with workplace("a", None) as first, workplace("a", None) as second:
        assert first != second
    assert not list(tmp_path.iterdir())
    with (
        workplace("a", tmp_path / "here"),
        pytest.raises(um.InputError) as error,
        workplace("a", tmp_path / "here"),
    ):
        pass
    sentences.check(steady(error.value))
    (tmp_path / "file").write_text("")
    with pytest.raises(um.InputError, match="expected a folder"), workplace("a", tmp_path / "file"):
        pass


def test_nothing_is_left_behind(embeddings, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cross_pairing(embeddings)
    assert not list(tmp_path.iterdir())


def test_ties_between_targets_and_nontargets_are_counted():
    vectors = np.eye(4)[[0, 0, 1, 1, 0, 2]]
    result = cross_pairing(um.Embeddings(vectors, ["a", "a", "b", "b", "c", "c"])).results[0]
    assert result.roc.scores.tolist()[:2] == [0.0, 1.0]
    assert result.roc.target.tolist()[:2] == [1, 2]
    assert result.roc.equal.tolist()[:2] == [10, 2]


def small(unordered, speakers=40, each=30):
    """Pairs on a grid of few rows."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(speakers, dtype=np.int32), each)
    rows = rng.normal(size=(speakers, 8))[code] + rng.normal(size=(code.size, 8))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    every = slice(None, None, 1 if unordered else 2)
    sides = Sides(rows, rows if unordered else rows[every])
    which = UNORDERED if unordered else ALL
    return PairGrid(sides, Groups(code), Groups(code[every]), which, tile=(64, 64))


@pytest.mark.parametrize("unordered", [True, False])
def test_blocks_cover_every_pair_once(unordered):
    pairs = small(unordered)
    counted = np.zeros((len(pairs.enrol), len(pairs.test)), int)
    for blocks in (pairs.blocks(targets=1, block=128), pairs.shares(3)):
        counted[:] = 0
        for block in blocks:
            for tile in pairs.tiles(NUMPY, block):
                counted[slice(*tile.rows), slice(*tile.columns)] += 1
        if unordered:
            counted[np.tril_indices(len(pairs.enrol))] = 1
        assert (counted == 1).all()
    targets = TargetScores.of(pairs, ranges_of(len(pairs.enrol), 128))
    same = pairs.enrol.codes[:, None] == pairs.test.codes
    assert targets.counts.sum() == (np.triu(same, 1) if unordered else same).sum()


def test_blocks_begin_on_the_grid(sentences):
    with pytest.raises(um.InputError) as error:
        list(small(True).tiles(NUMPY, (10, 20, 0, 64)))
    sentences.check(steady(error.value))
    with pytest.raises(um.InputError) as error:
        replace(small(False), which=UNORDERED)
    sentences.check(steady(error.value))


@given(
    st.lists(st.sampled_from([-1.5, -0.25, 0.0, 0.1, 0.30000001, 4.6]), max_size=4),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=30),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40),
)
def test_counts_at_knots_give_the_statistic(thresholds, target, nontarget):
    scores, counts = np.unique(np.array(target, np.float32), return_counts=True)
    targets = TargetScores(scores, counts)
    knots = targets.knots(thresholds)
    against = np.sort(np.array(nontarget, np.float32))
    below = np.searchsorted(against, knots)
    equal = np.searchsorted(against, knots, side="right") - below
    result = statistic(targets, thresholds, knots, Tally(below, equal, against.size, 0, 0))
    expected = um.Roc.from_scores(target, nontarget, thresholds=thresholds)
    for name in ("scores", "target", "equal", "between"):
        assert getattr(result, name).tolist() == getattr(expected, name).tolist()


@given(st.lists(st.integers(0, 70_000), max_size=20))
def test_counts_travel_unchanged(steps):
    below = np.cumsum(np.array(steps, np.int64))
    equal = np.array(steps, np.int64) % 3
    result = reducers.unpacked(*reducers.packed(below, equal))
    assert [part.tolist() for part in result] == [below.tolist(), equal.tolist()]
    assert {part.dtype for part in result} == {np.dtype(np.int64)}
    assert reducers.packed(*np.zeros((2, 1000), np.int64))[0].nbytes == 1000


def test_a_process_that_dies_is_one_line():
    with (
        run_on("processes", workers=1) as there,
        there.executor() as workers,
        pytest.raises(Lost, match="was killed"),
    ):
        list(workers.each(end, [9]))


def end(xp, code):
    os._exit(code)


def test_counts_of_a_device_become_a_tally():
    knots = np.array([-2, 0.1, 0.5, 4.6], np.float32)
    possible = np.array([False, True, True, False])
    part = reducers.tally_of(
        np.array([2, 3]), np.array([5, 7, 1]), knots, possible, 0, int(1.5 * 2**32)
    )
    below, equal = reducers.unpacked(part["step"], part["met"], part["ties"])
    assert below.tolist() == [0, 5, 14, 18]
    assert equal.tolist() == [0, 2, 3, 0]
    assert (str(part["total"]), str(part["loss"])) == ("18", str(int(1.5 * 2**32)))


@given(st.integers(1, 200_000), st.integers(1, 9), st.booleans())
def test_rows_are_shared_once(rows, parts, unordered):
    side, empty = Groups(np.zeros(rows, np.int32)), np.zeros((rows, 0), np.float32)
    which = UNORDERED if unordered else ALL
    shares = PairGrid(Sides(empty, empty), side, side, which).shares(parts)
    assert shares[0][0] == 0
    assert shares[-1][1] == rows
    assert all(a[1] == b[0] for a, b in pairwise(shares))


def test_a_state_belongs_to_the_vectors_and_not_to_their_source(embeddings, tmp_path):
    source = Source("x.scp", "0" * 64, "kaldi-scp")
    noise = np.random.default_rng(9).normal(size=embeddings.vectors.shape)

    def named(vectors):
        return um.Embeddings(vectors, embeddings.speakers, embeddings.utterances, source=source)

    for vectors in (embeddings.vectors, embeddings.vectors.copy(), noise):
        cross_pairing(named(vectors), state=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kind", ["open", "link"])
def test_temporary_state_of_others_is_not_taken(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with workplace("key", None) as folder:
        first = folder
    (tmp_path / "planted").mkdir()
    if kind == "open":
        first.mkdir(mode=0o777)
        first.chmod(0o777)
    else:
        first.symlink_to(tmp_path / "planted")
    with workplace("key", None) as folder:
        assert folder != first


def test_workers_of_a_cluster_leave_interrupts_to_the_one_that_started_it(shared_place):
    pytest.importorskip("distributed")
    with shared_place("dask") as here, here.executor() as workers:
        result = workers.each(lambda xp, task: signal.getsignal(signal.SIGINT).__name__, [0, 1])
        assert {name for _, name in result} == {"_pass"}
