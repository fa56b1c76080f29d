from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.assessment.cache import _claimed
from unmask.engine.roc import Roc
from unmask.estimate import Estimate, Interval
from unmask.run import in_parts, kept, locked, store
from unmask.trials import Embeddings

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.tuples(st.integers(), st.text()), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=20)
@given(plain)
def test_plain_values_come_back(value):
    assert store.from_bytes(store.to_bytes(value)) == value


def test_results_come_back_exactly():
    rng = np.random.default_rng(0)
    roc = Roc.from_scores(rng.normal(size=50) + 1, rng.normal(size=90))
    again = store.from_bytes(store.to_bytes({"roc": roc, "nan": float("nan")}))
    assert isinstance(again["roc"], Roc)
    assert np.isnan(again["nan"])
    np.testing.assert_array_equal(again["roc"].scores, roc.scores)
    assert again["roc"].eer() == roc.eer()
    interval = Interval(0.1, float("inf"), 0.95, "speaker", 10, 0)
    estimate = Estimate("eer", 0.2, "%", interval, 0.5, {"target": 3}, {"est": "rocch"})
    result = store.from_bytes(store.to_bytes(estimate))
    assert result.signature == estimate.signature
    assert result.interval == interval


def test_embeddings_come_back():
    made = Embeddings(np.eye(3, dtype=np.float32), ["a", "b", "a"], ["u", "v", "w"])
    result = store.from_bytes(store.to_bytes(made))
    assert result.vectors.dtype == np.float32
    assert result.speakers.to_series().to_list() == ["a", "b", "a"]
    assert result.sessions is None


def test_equal_values_give_equal_bytes():
    value = {"x": np.arange(4.0), "names": pl.Series(["a", "b"])}
    assert store.to_bytes(value) == store.to_bytes(dict(value))


@dataclass
class Foreign:
    value: int


def test_only_results_of_this_package_are_stored_or_built(sentences):
    with pytest.raises(TypeError, match="cannot be stored"):
        store.to_bytes(Foreign(1))
    with pytest.raises(TypeError, match="array of objects"):
        store.to_bytes(np.array([object()]))
    tree = b'[{"$": "object", "of": "os:system", "v": {}}, []]'
    with pytest.raises(ValueError, match="os:system") as error:
        store.from_bytes(archive_of(tree, b""))
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    ("kinds", "data", "fault"),
    [
        ('[["a0", "<f8", 2]]', bytes(8), "16.* 8"),
        ('[["a0", "<f8", 1]]', bytes(9), "1 bytes"),
        ('[["a0", "<f8", -1]]', bytes(8), "-8 bytes"),
        ('[["a0", "|O", 1]]', bytes(8), "pickled"),
        ('[["a0", "<U1", 1]]', b"\xff" * 4, "characters"),
        ("[]", b"", "a0"),
    ],
    ids=["short", "long", "negative", "objects", "text", "undeclared"],
)
def test_arrays_that_are_not_all_there_are_refused(kinds, data, fault, sentences):
    tree = f'[{{"$": "array", "v": "a0", "shape": [1]}}, {kinds}]'
    with pytest.raises(ValueError, match=fault) as error:
        store.from_bytes(archive_of(tree.encode(), data))
    sentences.check(str(error.value))


def test_arrays_of_all_kinds_come_back_in_their_shapes():
    value = {
        "bytes": np.arange(3, dtype=np.uint8),
        "text": np.array([["a", "äöü"]]),
        "none": np.empty((0, 4), np.float32),
        "one": np.array(2.5),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(4, dtype=">i2"),
        "yes": np.array([True, False]),
    }
    again = store.from_bytes(store.to_bytes(value))
    for name, array in value.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array, strict=True)
        assert not again[name].flags.writeable


def archive_of(tree, data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (("tree", tree), ("data", data)):
            part = io.BytesIO()
            np.lib.format.write_array(part, np.frombuffer(content, dtype=np.uint8))
            archive.writestr(f"{name}.npy", part.getvalue())
    return buffer.getvalue()


def test_a_step_that_another_run_is_at_keeps_what_the_other_has_done(tmp_path):
    state = tmp_path / "0123456789abcdef.jobs"
    state.mkdir()
    (state / "block").touch()
    with locked(state), _claimed(state) as mine:
        assert not mine
    assert (state / "block").exists()
    with _claimed(state) as mine:
        assert mine
    assert not state.exists()


def test_a_step_goes_on_from_the_parts_that_were_done(tmp_path, monkeypatch):
    monkeypatch.setattr("unmask.run.job.PART", 0.0)
    state, made = tmp_path / "0123456789abcdef.jobs", []

    def step(last):
        def part(number):
            if number == last:
                raise KeyboardInterrupt
            made.append(number)
            return {"number": np.arange(number)}

        with _claimed(state):
            return [kept(partial(part, number))["number"].size for number in range(4)]

    with pytest.raises(KeyboardInterrupt):
        step(last=2)
    assert step(last=None) == [0, 1, 2, 3]
    assert made == [0, 1, 2, 3]
    assert not state.exists()


def test_curves_of_a_sweep_are_such_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("unmask.run.job.PART", 0.0)
    named = {"noise": 1.0, "means": 0, "utterance": None}
    enrol, test = (named_speakers(24, 4, 8, draws=n, **named) for n in (1, 2))
    asked = {"counts": [20], "lengths": [1, 2], "replicates": 20}
    with in_parts(tmp_path):
        whole = um.assess_attackers({"a": um.Attacker(enrol, test)}, **asked)
    curve = "unmask.privacy.legal.assessing.curve_of"
    monkeypatch.setattr(curve, lambda *_: pytest.fail("made again"))
    with in_parts(tmp_path):
        again = um.assess_attackers({"a": um.Attacker(enrol, test)}, **asked)
    assert store.to_bytes(again) == store.to_bytes(whole)
