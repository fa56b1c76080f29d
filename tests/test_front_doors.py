"""What users hand to the functions of ``unmask``: frames, arrays, options of other packages."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unmask as um
from unmask.report.section import worst_first


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    names = [f"u{i}" for i in range(12)]
    vectors = rng.normal(size=(12, 4))
    speakers = [name[1:] for name in names]
    return pl.DataFrame({"utterance": names, "speaker": speakers, "embedding": list(vectors)})


def test_embeddings_of_a_frame(frame):
    read = um.read_embeddings(frame)
    assert read.n_speakers == 12
    assert list(read.utterances.names) == frame["utterance"].to_list()
    np.testing.assert_array_equal(read.vectors, np.array(frame["embedding"].to_list()))


def test_a_frame_without_vectors_is_refused(frame, sentences):
    with pytest.raises(um.InputError) as error:
        um.read_embeddings(frame.drop("embedding"))
    sentences.check(str(error.value))


@pytest.mark.parametrize("name", ["linkability", "singling_out", "pseudonymisation", "score"])
def test_functions_of_embeddings_name_the_reader_of_frames(name, frame, sentences):
    with pytest.raises(um.InputError) as error:
        getattr(um, name)(frame, frame)
    sentences.check(str(error.value))


def test_an_unknown_option_is_refused_by_the_function_called(sentences):
    data = pl.DataFrame({"score": [1.0, 0.0], "label": ["target", "nontarget"]})
    wanted = r"^evaluate\(\) has no option 'n_boot'; did you mean 'replicates'\?$"
    with pytest.raises(TypeError, match=wanted):
        um.evaluate(data, n_boot=3)
    with pytest.raises(TypeError) as error:
        um.evaluate(data, leve=0.9)
    sentences.check(str(error.value))
    for given in (([1.0], [0.0]), data):
        with pytest.raises(TypeError) as error:
            um.evaluate(given, ptarget=0.1)
        sentences.check(str(error.value))
    pairs = {"a": ([1.0], [0.0]), "b": ([1.0], [0.0])}
    with pytest.raises(TypeError) as error:
        um.compare(pairs, bootstrap=10)
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.compare(([1.0], [0.0]), ([1.0], [0.0]))
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match=r"columns=\{.label.: .same.\}"):
        um.evaluate(pl.DataFrame({"enrol": ["a"], "test": ["b"], "score": [1.0], "same": ["SS"]}))


def test_formats_of_figures_are_a_list_or_words(tmp_path):
    drawn = um.evaluate(([1.0, 2.0], [0.0, 1.5]), replicates=0).figures()
    paths = drawn.save(tmp_path, formats="json,svg")
    assert {path.suffix for path in paths} == {".json", ".svg"}


def test_maps_of_two_arrays_are_those_of_their_table():
    rng = np.random.default_rng(1)
    pair = rng.normal(2, 1, 200), rng.normal(0, 1, 1000)
    table = um.Scores.from_arrays(*pair)
    ours, theirs = (um.cp_maps(one, replicates=0).estimates for one in (pair, table))
    assert [one.value for one in ours] == [one.value for one in theirs]


def test_safeguards_change_places_among_themselves_alone():
    given = {("original", "a"): 0, ("B", "a"): 1, ("A", "a"): 2, "list": 3, "A": 4, "B": 5}
    order = [("original", "a"), ("A", "a"), "A", "list", ("B", "a"), "B"]
    assert list(worst_first(given, ["A", "B"])) == order
