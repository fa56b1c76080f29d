"""A package that is missing is one line, once, under one name of what brings it."""

import sys

import numpy as np
import pytest

from unmask._extras import MissingExtra
from unmask.run import run_on
from unmask.speech import Recording, anonymise, needed, recordings, safeguard


@pytest.fixture
def folder(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    for n in range(4):
        (tmp_path / "in" / f"s{n % 2}").mkdir(parents=True, exist_ok=True)
        samples = 0.1 * np.random.default_rng(n).normal(size=8000)
        soundfile.write(tmp_path / "in" / f"s{n % 2}" / f"u{n}.wav", samples, 16_000)
    return tmp_path


def test_it_is_told_once_and_not_for_every_file(folder, monkeypatch, sentences):
    files = recordings(folder / "in")
    assert all(isinstance(file, Recording) for file in files)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with run_on(workers=1), pytest.raises(MissingExtra) as told:
        anonymise(files, folder / "out", safeguard("b2"))
    assert str(told.value).count("soundfile") == 1
    sentences.check(str(told.value))


@pytest.mark.parametrize("extra", ["audio", "torch", "speech"])
def test_the_extra_has_one_name(extra, sentences):
    with pytest.raises(MissingExtra) as error:
        needed("unmask_absent", "absent", extra)
    sentences.check(str(error.value))
