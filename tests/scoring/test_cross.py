"""Cross-pairing in blocks against the whole score matrix, and against itself elsewhere."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unmask as um
from unmask.run.places import Lost
from unmask.run.state import workplace
from unmask.run.where import place
from unmask.scoring import cross, on_cuda, plan
from unmask.scoring.counting import Tally, TargetScores, target_scores
from unmask.scoring.layout import Layout
from unmask.scoring.shards import shards_of
from unmask.trials import Source


def cross_pairing(*sets, **options):
    """With few replicates: their number is none of the questions here."""
    return um.cross_pairing(*sets, **{"replicates": 20, **options})


def table(evaluation):
    """What must be the same to the last bit; an interval as it is written, since NaN is not NaN."""
    return [
        (e.metric, e.value, e.threshold, repr(e.interval), dict(e.n))
        for e in evaluation.results[0].estimates
    ]


def whole(embeddings, backend=None, *, enrolled=None):
    """Scores of both classes from one product in float64."""
    backend = backend or um.Cosine()
    rows = backend.prepare(embeddings.vectors)
    scores = backend.score_block(rows, rows)
    code = embeddings.speakers.codes
    same = code[:, None] == code[None, :]
    if enrolled is None:
        counted = np.triu(np.ones_like(same), 1)
    else:
        counted = enrolled[:, None] & ~enrolled[None, :]
    return scores[same & counted], scores[~same & counted]


def test_all_pairs_equal_the_whole_matrix(embeddings):
    found = cross_pairing(embeddings).results[0]
    expected = um.detection(*whole(embeddings))
    n = len(embeddings)
    assert found["eer"].n["target"] == 250 * 45
    assert found["eer"].n["target"] + found["eer"].n["nontarget"] == n * (n - 1) // 2
    assert found["eer"].value == pytest.approx(expected.eer, abs=1e-6)
    assert found["min_dcf"].value == pytest.approx(expected.min_dcf, abs=1e-5)
    assert found["cllr"].value == pytest.approx(expected.cllr, abs=1e-8)
    assert found["min_cllr"].value == pytest.approx(expected.min_cllr, abs=1e-6)
    assert found["l_w"].value == pytest.approx(expected.l_w, abs=1e-3)


def test_fixed_enrolment_takes_the_first_of_each_speaker(embeddings):
    code = embeddings.speakers.codes
    first = np.zeros(len(embeddings), bool)
    for speaker in np.unique(code):
        first[np.flatnonzero(code == speaker)[:2]] = True
    found = cross_pairing(embeddings, pairs="enrolment-fixed", enrolment=2).results[0]
    target, nontarget = whole(embeddings, enrolled=first)
    assert found["eer"].n["target"] == target.size
    assert found["eer"].n["nontarget"] == nontarget.size
    assert found["eer"].value == pytest.approx(um.eer(target, nontarget), abs=1e-6)


def test_the_digest_names_the_trials(embeddings):
    def digest(given, **options):
        return Layout.of(shards_of(given), **options).digest

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
    found = cross_pairing(embeddings, backend=backend).results[0]
    expected = um.detection(*whole(embeddings, backend))
    assert found["eer"].value == pytest.approx(expected.eer, abs=1e-6)
    assert found["cllr"].value == pytest.approx(expected.cllr, rel=1e-6)
    roc = um.Roc.from_scores(*whole(embeddings, backend), thresholds=um.Battery().thresholds)
    assert found["act_dcf"].value == pytest.approx(roc.act_dcf(), abs=1e-4)


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
    frame[:1000].write_parquet(tmp_path / "c1.parquet")
    listed = frame[1000:].with_columns(pl.col("embedding").arr.to_list())
    listed.write_parquet(tmp_path / "c2.parquet")
    np.save(tmp_path / "d.npy", embeddings.vectors)
    lines = "".join(f"{u} {s}\n" for u, s in zip(names, speakers, strict=True))
    (tmp_path / "utt2spk").write_text(lines)
    for paths in (["a.npz"], ["b.parquet"], ["c1.parquet", "c2.parquet"]):
        assert table(cross_pairing([tmp_path / path for path in paths])) == expected, paths
    npy = cross_pairing(tmp_path / "d.npy", speakers=tmp_path / "utt2spk")
    assert table(npy) == expected
    assert [source.format for source in npy.sources] == ["npy-embeddings"]


def test_bad_input_is_one_line(embeddings, tmp_path, monkeypatch):
    with pytest.raises(um.InputError, match="expected all or enrolment-fixed, found some"):
        cross_pairing(embeddings, pairs="some")
    with pytest.raises(um.InputError, match=r"expected local, .* or cuda, found moon"):
        cross_pairing(embeddings, on="moon")
    for name, width in (("a", 8), ("b", 9)):
        speakers = np.array(["x", "x", "y"])
        np.savez(tmp_path / f"{name}.npz", embeddings=np.ones((3, width)), speaker_ids=speakers)
    with pytest.raises(um.InputError, match=r"b.npz: expected 8 dimensions as in .*a.npz, found 9"):
        cross_pairing([tmp_path / "a.npz", tmp_path / "b.npz"])
    with pytest.raises(um.InputError, match="a speaker with 2 utterances"):
        cross_pairing(um.Embeddings(np.eye(3), ["a", "b", "c"]))
    with pytest.raises(um.InputError, match="expected 2 speakers"):
        cross_pairing(um.Embeddings(np.eye(3), ["a", "a", "a"]))
    zero = um.Embeddings(np.eye(4)[[0, 1, 2]] * [[1], [1], [0]], ["a", "a", "b"])
    with pytest.raises(um.InputError, match="has length 0"):
        cross_pairing(zero)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("", (), {"free": 1000})())
    with pytest.raises(um.InputError, match=r"of free disk .* found 0.00 GB"):
        cross_pairing(embeddings)


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
        cross_pairing(embeddings, block=1024, workers=1, state=state, progress=stop)
    told = []
    found = cross_pairing(
        embeddings, block=1024, state=state, progress=lambda *numbers: told.append(numbers)
    )
    assert told[0] == (min(last, 6), 12)
    assert (last, 12) in told
    assert told[-1] == (12, 12)
    assert table(found) == expected
    with pytest.raises(um.InputError, match="found that of another"):
        cross_pairing(embeddings, pairs="enrolment-fixed", state=state)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("")
    with pytest.raises(um.InputError, match="expected an empty folder"):
        cross_pairing(embeddings, state=tmp_path / "other")


def test_a_file_that_vanishes_is_named(embeddings, tmp_path):
    state = tmp_path / "state"

    def remove(done, total):
        (state / "enrol.npy").unlink(missing_ok=True)

    with pytest.raises(um.InputError, match=r"enrol.npy: expected a file of the plan"):
        cross_pairing(embeddings, block=1024, workers=1, state=state, progress=remove)


def test_two_runs_of_one_plan_do_not_meet(embeddings, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with workplace("a", None) as first, workplace("a", None) as second:
        assert first != second
    assert not list(tmp_path.iterdir())
    with (
        workplace("a", tmp_path / "here"),
        pytest.raises(um.InputError, match="another run is at work there"),
        workplace("a", tmp_path / "here"),
    ):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(um.InputError, match="cannot be used"), workplace("a", tmp_path / "file"):
        pass


def test_nothing_is_left_behind(embeddings, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cross_pairing(embeddings)
    assert not list(tmp_path.iterdir())


def test_ties_between_targets_and_nontargets_are_counted():
    vectors = np.eye(4)[[0, 0, 1, 1, 0, 2]]
    found = cross_pairing(um.Embeddings(vectors, ["a", "a", "b", "b", "c", "c"])).results[0]
    assert found.roc.scores.tolist()[:2] == [0.0, 1.0]
    assert found.roc.target.tolist()[:2] == [1, 2]
    assert found.roc.equal.tolist()[:2] == [10, 2]


def test_targets_are_those_of_the_grid_of_tiles(tmp_path, embeddings):
    layout = Layout.of(shards_of(embeddings), pairs="all")
    made = layout.write(tmp_path, um.Cosine())
    with place("local", workers=2) as somewhere:
        parts = [part for _, part in somewhere.each(target_scores, made.bands(block=1024))]
    merged = TargetScores.merge(parts)
    assert merged.counts.sum() == 250 * 45
    sides = plan.Sides.open(tmp_path)
    assert (np.diff(sides.enrol_speaker) >= 0).all()
    covered = np.zeros((made.enrol, made.test), int)
    for task in made.blocks(targets=1, block=1024):
        covered[slice(*task.rows), slice(*task.columns)] += 1
    assert (covered[np.triu_indices(made.enrol, 1)] == 1).all()


@given(
    st.lists(st.sampled_from([-1.5, -0.25, 0.0, 0.1, 0.30000001, 4.6]), max_size=4),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=30),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40),
)
def test_counts_at_knots_give_the_statistic(thresholds, target, nontarget):
    scores, counts = np.unique(np.array(target, np.float32), return_counts=True)
    knots = cross.knots_of(scores, thresholds)
    against = np.sort(np.array(nontarget, np.float32))
    below = np.searchsorted(against, knots)
    equal = np.searchsorted(against, knots, side="right") - below
    tally = Tally(below, equal, against.size, 0)
    found = cross.assemble(TargetScores(scores, counts), thresholds, knots, tally)
    expected = um.Roc.from_scores(target, nontarget, thresholds=thresholds)
    for name in ("scores", "target", "equal", "between"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


@given(st.lists(st.integers(0, 70_000), max_size=20), st.integers(0, 1 << 70))
def test_a_tally_travels_unchanged(steps, loss):
    below = np.cumsum(np.array(steps, np.int64))
    equal = np.array(steps, np.int64) % 3
    made = Tally(below, equal, int(below.sum()), loss)
    found = pickle.loads(pickle.dumps(made))
    assert found.below.tolist() == below.tolist()
    assert found.equal.tolist() == equal.tolist()
    assert (found.total, found.loss) == (made.total, made.loss)
    assert found.below.dtype == found.equal.dtype == np.int64
    assert len(pickle.dumps(Tally.empty(100_000))) < 101_000


def test_a_process_that_dies_is_one_line():
    with place("processes", workers=1) as somewhere, pytest.raises(Lost, match="was killed"):
        list(somewhere.each(os._exit, [9]))


def test_counts_of_a_device_become_a_tally():
    knots = np.array([-2, 0.1, 0.5, 4.6], np.float32)
    possible = np.array([False, True, True, False])
    tally = on_cuda.tally_of(np.array([2, 3]), np.array([5, 7, 1]), knots, possible, 1.5)
    assert tally.below.tolist() == [0, 5, 14, 18]
    assert tally.equal.tolist() == [0, 2, 3, 0]
    assert tally.total == 18
    assert tally.loss == 1.5 * 2**32


@given(st.integers(1, 200_000), st.integers(1, 9), st.booleans())
def test_rows_are_shared_once(rows, parts, symmetric):
    shares = on_cuda.share_rows(rows, parts, symmetric=symmetric)
    assert shares[0][0] == 0
    assert shares[-1][1] == rows
    assert all(a[1] == b[0] for a, b in pairwise(shares))


def test_a_state_belongs_to_the_vectors_and_not_to_their_source(embeddings, tmp_path):
    source = Source("x.scp", "0" * 64, "kaldi-scp")
    noise = np.random.default_rng(9).normal(size=embeddings.vectors.shape)

    def named(vectors):
        return um.Embeddings(vectors, embeddings.speakers, embeddings.utterances, source=source)

    state = tmp_path / "state"
    cross_pairing(named(embeddings.vectors), state=state)
    with pytest.raises(um.InputError, match="found that of another"):
        cross_pairing(named(noise), state=state)


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


def test_a_kill_while_the_key_is_written_leaves_a_state_that_can_be_used(tmp_path):
    (tmp_path / ".key.0123.part").write_bytes(b"")
    with workplace("key", tmp_path):
        assert (tmp_path / "key").read_text() == "key"
