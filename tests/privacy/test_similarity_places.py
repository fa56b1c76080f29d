"""Similarity matrices are the same wherever their pairs are compared."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scoring.test_places import SUMS, speech

import unmask as um
from unmask.privacy.similarity import kernels
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.matrix import similarity_sets
from unmask.privacy.similarity.pairs import MatrixPairs, segments_of
from unmask.run import NUMPY, executors, progress, run_on
from unmask.scoring import Cosine, CountAmong, Rule, pairs as scoring_pairs, reducers, sides_of
from unmask.trials import Ids


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch):
    monkeypatch.setattr(kernels, "TRIALS", 1)


@pytest.fixture(scope="module")
def voices():
    return speech()


@pytest.fixture(scope="module")
def matrices(voices):
    o, p = (Cosine().sides(voice.vectors).enrol for voice in voices)
    return o @ o.T, (o @ p.T).astype(np.float32), p @ p.T


def sums_of(result):
    return [
        [own.roc.scores, own.roc.target, own.roc.equal, own.roc.between]
        + [getattr(own.sums, name) for name in SUMS]
        + ([] if own.negated is None else [own.negated])
        for own in result.sets.values()
    ]


def assert_same_bits(result, wanted):
    for one, other in zip(sums_of(result), sums_of(wanted), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_table_of_safeguards_starts_its_workers_once(voices, monkeypatch):
    started = []

    class Threads(executors.ThreadPoolExecutor):
        def __init__(self, workers, *context, **options):
            started.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(executors, "ProcessPoolExecutor", Threads)
    few = [voice.select(np.isin(voice.speakers.codes, range(8))) for voice in voices]
    protected = {"a": few[1], "b": few[0]}
    options = {"with_sessions": True, "replicates": 0}
    with run_on("processes", workers=2):
        result = um.compare_safeguards(few[0], protected, **options)
    assert started == [2]
    wanted = um.compare_safeguards(few[0], protected, **options)
    for one, other in zip(result, wanted, strict=True):
        assert one.result.deid == pytest.approx(other.result.deid)


def test_a_state_goes_on_where_the_run_was_ended(voices, tmp_path):
    wanted = um.pseudonymisation(*voices, replicates=0)

    def unplug(done, total):
        if done / total > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), run_on(workers=1, state=tmp_path), progress(unplug):
        um.pseudonymisation(*voices, replicates=0)
    steps = []
    with run_on(state=tmp_path), progress(lambda *step: steps.append(step)):
        result = um.pseudonymisation(*voices, replicates=0)
    assert_same_bits(result, wanted)
    kept = [(1, 10), (6, 30), (3, 10), (12, 30), (5, 10), (18, 30), (7, 10), (15, 20)]
    fresh = [(16, 20), (9, 10), (10, 10)]
    assert steps == [*kept, *fresh]


def rules(voices):
    codes = np.random.default_rng(1).integers(0, 3, len(voices[0]))
    return {
        "all": lambda segments: None,
        "upper": lambda segments: Rule(segments.order, "<"),
        "within": lambda segments: Rule(codes, "=="),
        "between": lambda segments: Rule(codes, "!="),
    }


@pytest.fixture(params=["cosine", "plda", "matrix"])
def source(request, voices, matrices):
    if request.param == "matrix":
        return lambda segments: MatrixPairs(matrices[1], segments)
    backend = um.Plda.fit(voices[0]) if request.param == "plda" else Cosine()

    def made(segments):
        return sides_of(backend, *(voice.vectors[segments.order] for voice in voices))

    return made


@pytest.mark.parametrize("rule", ["all", "upper", "within", "between"])
@pytest.mark.parametrize("strip", [1 << 24, 20_000])
def test_a_device_counts_and_adds_up_the_same(voices, source, rule, strip, monkeypatch):
    monkeypatch.setattr(scoring_pairs, "CELLS", strip)
    segments = segments_of(voices[0].speakers)
    pairs = {"op": [segments.pairs(source(segments), rules(voices)[rule](segments))]}
    one = similarity_sets(pairs, Setup(replicates=0), negated=["op"]).sets["op"]
    with run_on("cuda", devices=["cpu"]):
        other = similarity_sets(pairs, Setup(replicates=0), negated=["op"]).sets["op"]
    np.testing.assert_allclose(one.roc.scores, other.roc.scores, atol=1e-12)
    for name in ("target", "equal", "between"):
        np.testing.assert_array_equal(getattr(one.roc, name), getattr(other.roc, name))
    for name in SUMS:
        a, b = getattr(one.sums, name), getattr(other.sums, name)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(one.sums.count, other.sums.count)
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-12)
    np.testing.assert_allclose(one.negated, other.negated, atol=1e-12)


def test_a_device_gives_the_same_numbers_to_the_user(voices, matrices, sentences):
    few = {"replicates": 30}
    wanted = um.pseudonymisation(*voices, **few), um.compare_sessions(*voices, **few)
    broken = matrices[2].copy()
    broken[3, 7] = np.nan
    with run_on("cuda", devices=["cpu", "cpu"]):
        result, sessions = um.pseudonymisation(*voices, **few), um.compare_sessions(*voices, **few)
        with pytest.raises(um.InputError) as error:
            um.pseudonymisation(*matrices[:2], broken, voices[0].speakers)
        sentences.check(str(error.value))
    assert result.deid == pytest.approx(wanted[0].deid, abs=1e-9)
    assert result.attacks["negated"] == pytest.approx(wanted[0].attacks["negated"], abs=1e-9)
    assert result.interval("g_vd").low == pytest.approx(wanted[0].interval("g_vd").low, abs=1e-6)
    assert sessions.interval("g_vd_within").low == pytest.approx(
        wanted[1].interval("g_vd_within").low, abs=1e-6
    )
    assert sessions.g_vd_within == pytest.approx(wanted[1].g_vd_within, abs=1e-9)


def test_counts_travel_in_few_bytes(voices, tmp_path):
    segments = segments_of(voices[0].speakers)
    pairs = segments.pairs(Cosine().sides(voices[0].vectors).take(segments.order))
    counting = CountAmong(pairs, np.linspace(-1, 1, 3000), with_loss=False)
    assert len(kernels.blocks_of(counting)) == 3
    with run_on(state=tmp_path):
        far = kernels.blocks_of(counting)
    assert far == [(0, 700, 0, 700)]
    counted = reducers.count_block(NUMPY, counting, far[0])
    travelled = sum(array.nbytes for array in counted.values())
    assert travelled < 2.1 * 3000


def test_counts_do_not_depend_on_the_ranges(voices, monkeypatch):
    wanted = um.pseudonymisation(*voices, replicates=0)
    monkeypatch.setattr(kernels, "blocks_of", lambda one: one.pairs.shares(1))
    monkeypatch.setattr(reducers, "PIECE", 8 * 256 * 700)
    monkeypatch.setattr(reducers, "LONGEST_PIECE", 8 * 256 * 700)
    result = um.pseudonymisation(*voices, replicates=0)
    assert_same_bits(result, wanted)


@pytest.mark.parametrize(("sessions", "within"), [([0, 1, 2, 3], True), ([0, 0, 1, 1], True)])
def test_sets_without_pairs_of_a_class_are_named(sessions, within, sentences):
    segments = segments_of(Ids.from_strings(["a", "a", "b", "b"]))
    rule = Rule(np.array(sessions), "==" if within else "!=")
    chosen = segments.pairs(MatrixPairs(np.eye(4), segments), rule)
    with pytest.raises(um.InputError) as error:
        similarity_sets({"x": [chosen]}, Setup(replicates=0))
    sentences.check(str(error.value))
