"""Encoders and recognisers of other packages and of the working directory, loaded when named."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import unmask as um
from unmask.speech import load_encoder
from unmask.speech.encoders import fingerprint_of, runs_code
from unmask.utility import recogniser

MODULE = """
import numpy as np

def mean(samples):
    return np.array([samples.mean(), samples.std()], np.float32)

def words(path):
    return f"heard {path}"
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that offers an encoder and a recogniser; nothing of it is loaded."""
    (tmp_path / "some_voices.py").write_text(MODULE)
    about = tmp_path / "some_voices-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-voices\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[unmask.encoders]\nsome-mean = some_voices:mean\nabsent = some_voices:gone\n"
        "[unmask.recognisers]\nsome-words = some_voices:words\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("some_voices", None)


def test_an_entry_point_is_loaded_when_it_is_named(package, sentences):
    assert runs_code("some-mean")
    assert not runs_code("other-mean")
    assert "some_voices" not in sys.modules
    made = load_encoder("some-mean")
    samples = np.linspace(-1, 1, 1000, dtype=np.float32)
    np.testing.assert_allclose(made.encode([samples]), [[0, samples.std()]], atol=1e-6)
    assert fingerprint_of("some-mean") == made.fingerprint
    assert made.fingerprint.startswith("some-mean:")
    with pytest.raises(um.InputError, match="encoder absent"):
        load_encoder("absent")
    with pytest.raises(um.InputError) as error:
        load_encoder("other-mean")
    sentences.check(str(error.value))


def test_a_recogniser_of_another_package(package):
    made = recogniser("some-words")
    assert made.name == "some-words"
    assert made.hear("a.wav") == "heard a.wav"
    assert made.unknown(["any"]) == []
    with pytest.raises(um.InputError, match="recogniser others: expected"):
        recogniser("others")


def test_a_function_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_own_encoder.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_encoder("my_own_encoder:mean").name == "my_own_encoder:mean"
    sys.modules.pop("my_own_encoder")
