"""Words spoken again by one voice: what passes through, what does not, what is told."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

from unmask.cli import app
from unmask.run import run_on
from unmask.speech import Restated, anonymise, recordings, safeguard, write_audio
from unmask.speech.recognisers import Recogniser, recogniser

pytest.importorskip("soundfile")
RATE = 16000


@dataclass(frozen=True)
class Certain(Recogniser):
    """Hears the same words in everything."""

    words: str
    name: str = "certain"

    def hear(self, path):
        return self.words


@pytest.fixture
def two_voices(tmp_path):
    """Two noises that differ in level and length."""
    rng = np.random.default_rng(1)
    for speaker, gain, seconds in (("anna", 0.3, 1.0), ("bert", 0.01, 2.5)):
        (tmp_path / "in" / speaker).mkdir(parents=True)
        noise = rng.normal(size=round(seconds * RATE))
        write_audio(tmp_path / "in" / speaker / "1.wav", gain * noise / np.abs(noise).max())
    return recordings(tmp_path / "in")


def restated(files, folder, chosen, workers=1):
    with run_on(workers=workers):
        result = anonymise(files, folder, chosen)
    made = [(folder / f"{one.place}.flac").read_bytes() for one in files]
    return result, made, json.loads((folder / "unmask-anonymise.json").read_text())


def test_a_digit_phrase_survives_the_round_trip(tmp_path):
    pytest.importorskip("espeakng_loader")
    pytest.importorskip("pocketsphinx")
    from unmask.speech.restating import spoken

    phrase = "seven two nine six four"
    (tmp_path / "in" / "espeak").mkdir(parents=True)
    write_audio(tmp_path / "in" / "espeak" / "1.wav", spoken(phrase))
    files = recordings(tmp_path / "in")
    result, _, note = restated(files, tmp_path / "out", safeguard("restate:digits"))
    assert (result.done, result.silenced, result.failures) == (1, 0, ())
    ear = recogniser(grammar="digits")
    assert ear.hear(str(tmp_path / "out" / "espeak" / "1.flac")) == phrase
    assert note["recogniser"] == "pocketsphinx, digits"
    assert "level" not in note


def test_the_same_words_give_the_same_bits_whoever_says_them(two_voices, tmp_path):
    pytest.importorskip("espeakng_loader")
    from unmask.speech.restating import spoken

    one = Restated(Certain("How are you?"))
    _, (first, second), _ = restated(two_voices, tmp_path / "a", one)
    assert first == second
    spoken("something else in between")
    _, again, _ = restated(two_voices, tmp_path / "b", one, workers=2)
    assert again == [first, second]
    _, (other, _), _ = restated(two_voices, tmp_path / "c", Restated(Certain("how are we")))
    assert other != first


def test_a_recording_without_words_becomes_silence_and_is_counted(two_voices, tmp_path, sentences):
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("espeakng_loader")
    result, _, note = restated(two_voices, tmp_path / "out", Restated(Certain(" … ")))
    for one in two_voices:
        samples, rate = soundfile.read(tmp_path / "out" / f"{one.place}.flac")
        assert (samples.size, rate) == (RATE // 2, RATE)
        assert not samples.any()
    assert (result.silenced, note["silenced"]) == (2, 2)
    assert "1.wav: " in result.remarks[0]
    sentences.check(result.remarks[0])


def test_what_is_missing_is_one_line(two_voices, tmp_path, monkeypatch):
    pytest.importorskip("pocketsphinx")
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    asked = ["anonymise", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "-m", "restate"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert "'unmask[restate]'" in str(done.exception) + done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-m", "restate", "--seed", "3"], "--seed: is for methods with a key"),
        (["-m", "restate", "--keep-key"], "--keep-key: is for methods with a key"),
        (["-m", "b2", "--grammar", "digits"], "--grammar: is for --method restate"),
    ],
)
def test_options_without_effect_are_refused(two_voices, tmp_path, given, said):
    asked = ["anonymise", str(tmp_path / "in"), "-o", str(tmp_path / "out"), *given]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert said in str(done.exception) + done.output
