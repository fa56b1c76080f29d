"""Melody, quality, labels and recognisers on signals of which the answer is known."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.speech import clipped, level
from unmask.speech.recognisers import _decoder
from unmask.utility import measuring, recogniser, runs_code
from unmask.utility.measuring import dnsmos, melody, pitch

RATE = 16000


def sung(f0, seconds=1.0):
    """A buzz whose pitch follows ``f0`` (Hz), a number or one per sample."""
    count = round(seconds * RATE)
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(f0, count)) / RATE
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, 12))


def test_melody_of_a_copy_and_of_a_shift():
    track = np.where(np.arange(200) % 50 < 40, 150 + 30 * np.sin(np.arange(200) / 9), 0.0)
    assert melody(track, track) == pytest.approx((1.0, 0.0), abs=1e-12)
    for semitones in (-7.0, 4.0):
        moved = track * 2 ** (semitones / 12)
        assert melody(track, moved) == pytest.approx((1.0, semitones), abs=1e-9)
    assert melody(track, np.where(track > 0, track + 25.0, 0.0)).rho_f0 == pytest.approx(1.0)
    assert melody(track, np.where(track > 0, 400.0 - track, 0.0)).rho_f0 == pytest.approx(-1.0)


def test_melody_counts_frames_voiced_in_both_alone():
    rng = np.random.default_rng(1)
    first, second = rng.uniform(80, 300, (2, 100))
    first[:30], second[20:50] = 0.0, 0.0
    both = slice(50, 100)
    right = np.corrcoef(first[both], second[both])[0, 1]
    assert melody(first, second).rho_f0 == pytest.approx(right)
    assert np.isnan(melody(first, np.zeros(100))).all()
    assert np.isnan(melody(np.full(100, 99.0), second).rho_f0)
    stretched = np.repeat(first, 2)
    assert melody(first, stretched).rho_f0 == pytest.approx(1.0)


def test_pitch_of_a_glide():
    pytest.importorskip("pyworld")
    right = np.linspace(120, 180, RATE)
    result = pitch(sung(right))
    inner = result[20:-20]
    assert (inner > 0).mean() > 0.9
    at = right[np.arange(result.size)[20:-20] * 80]
    assert np.abs(inner[inner > 0] / at[inner > 0] - 1).max() < 0.03


def test_level_and_clipping():
    wave = np.sin(2 * np.pi * 100 * np.arange(RATE) / RATE)
    assert level(wave) == pytest.approx(10 * np.log10(0.5))
    assert clipped(0.9 * wave) == 0.0
    hard = np.clip(2 * wave, -1, 1)
    assert clipped(hard) == pytest.approx(np.mean(np.abs(hard) >= 1), abs=1e-3)
    assert clipped(np.array([0.0, 1.0, 0.0, -1.0])) == 0.0


def test_dnsmos_prefers_a_voice_to_noise():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("speechmos")
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE)
    result = dnsmos(noise)
    assert all(0.5 < one < 5 for one in result)
    assert result.bak < 2.5


def test_dnsmos_is_on_the_scale_of_listeners(monkeypatch):
    """By hand: the published parabolas at 3, −0.08397278·9 + 1.22083953·3 + 0.0052439 and so on."""

    class Session:
        def run(self, names, inputs):
            return [np.full((1, 3), 3.0)]

    monkeypatch.setattr(measuring, "_session", Session)
    result = dnsmos(np.zeros(RATE))
    assert result == pytest.approx((2.91200747, 3.24640004, 2.78345392), abs=1e-8)


def test_recognisers_by_name(sentences):
    assert recogniser(grammar="digits").name == "pocketsphinx, digits"
    sentences.check(recogniser(grammar="yes,no").name)
    assert recogniser("faster-whisper:base").name == "faster-whisper:base"
    assert [runs_code(name) for name in ("pocketsphinx", "a {input}", "transformers:x/y")] == [
        False,
        True,
        True,
    ]
    for name, grammar in (("sphinx", None), ("faster-whisper:", None), ("a {input}", "digits")):
        with pytest.raises(InputError):
            recogniser(name, grammar=grammar)
    with pytest.raises(InputError, match="words separated by"):
        recogniser(grammar="<a> | b;")


def test_any_command_listens(tmp_path):
    program = tmp_path / "say.py"
    program.write_text("import sys; print('heard', sys.argv[1][-5:]); sys.exit(len(sys.argv) - 2)")
    listen = recogniser(f"{sys.executable} {program} {{input}}")
    assert listen.hear("a b; c.wav") == "heard c.wav"
    broken = recogniser(f"{sys.executable} {program} {{input}} more")
    with pytest.raises(InputError, match=r"c\.wav: exit code 1"):
        broken.hear("c.wav")
    with pytest.raises(InputError, match="quotes"):
        recogniser("listen '{input}")


class Whisper:
    """Stands in for ``faster_whisper.WhisperModel``: the documented names of what is used."""

    def __init__(self, model_size_or_path, device="auto", compute_type="default"):
        if model_size_or_path == "missing":
            raise RuntimeError("no such model")

    def transcribe(self, audio, language=None, task="transcribe", beam_size=5):
        assert (audio.dtype, audio.ndim) == (np.float32, 1)
        said = [f" {audio.size} samples,", " beam", f" {beam_size}."]
        return (SimpleNamespace(text=text) for text in said), SimpleNamespace(language="en")


def pipeline(task=None, model=None):
    """Stands in for ``transformers.pipeline``, which takes its input apart."""

    def heard(inputs, *, chunk_length_s=0):
        raw, rate = inputs.pop("raw"), inputs.pop("sampling_rate")
        assert (task, raw.dtype, rate, inputs) == (
            *("automatic-speech-recognition", np.float32, RATE),
            {},
        )
        return {"text": f" {raw.size} samples, {model}, cut at {chunk_length_s:g}"}

    return heard


def test_models_of_a_hub_listen(tmp_path, monkeypatch, sentences):
    soundfile = pytest.importorskip("soundfile")
    short, long = tmp_path / "short.wav", tmp_path / "long.wav"
    soundfile.write(short, sung(120.0, 0.5), RATE)
    soundfile.write(long, np.resize(sung(120.0, 0.5), 31 * RATE), RATE)
    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=Whisper))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(pipeline=pipeline))
    assert recogniser("faster-whisper:base.en").hear(str(short)) == "8000 samples, beam 5."
    with pytest.raises(InputError) as error:
        recogniser("faster-whisper:missing").hear(str(short))
    sentences.check(str(error.value))
    listen = recogniser("transformers:a/b")
    assert listen.hear(str(short)) == "8000 samples, a/b, cut at 0"
    assert listen.hear(str(long)) == "496000 samples, a/b, cut at 30"
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError) as error:
        recogniser("transformers:c/d").hear(str(short))
    sentences.check(str(error.value))


def test_pocketsphinx_forgets_what_it_heard(tmp_path):
    pytest.importorskip("pocketsphinx")
    soundfile = pytest.importorskip("soundfile")
    digits = recogniser(grammar="digits")
    decoder = _decoder(digits.grammar)
    decoder.reinit_feat()
    fresh, means = decoder.get_cmn(False), []
    for pitch_of, loud in ((110.0, 0.2), (260.0, 1.0), (110.0, 0.2)):
        soundfile.write(tmp_path / "x.wav", loud * sung(pitch_of, 0.5), RATE)
        digits.hear(str(tmp_path / "x.wav"))
        means.append(decoder.get_cmn(False))
    assert means[0] == means[2] != means[1]
    assert fresh not in means


def test_pocketsphinx_knows_its_words(tmp_path):
    pytest.importorskip("pocketsphinx")
    soundfile = pytest.importorskip("soundfile")
    digits = recogniser(grammar="digits")
    assert digits.unknown(["one", "zehn"]) == ["zehn"]
    soundfile.write(tmp_path / "x.wav", sung(120.0, 0.5), RATE)
    assert set(digits.hear(str(tmp_path / "x.wav")).split()) <= {
        *["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    }
    with pytest.raises(InputError, match="dictionary, found xyzzyq"):
        recogniser(grammar="one,xyzzyq").hear(str(tmp_path / "x.wav"))


def test_one_recording_costs_itself_where_others_are_asked_for(tmp_path, sentences):
    """A missing version, a missing transcript and a silent file leave an utterance out."""
    from unmask.speech import recordings
    from unmask.speech.audio import write_audio
    from unmask.utility import measure

    for kind, quiet in (("orig", ""), ("prot", "u3")):
        for n in range(6):
            place = tmp_path / kind / f"s{n % 2}"
            place.mkdir(parents=True, exist_ok=True)
            sound = np.zeros(RATE) if f"u{n}" == quiet else sung(120.0 + n, 1.0)
            write_audio(place / f"u{n}.wav", sound)
    original = recordings(tmp_path / "orig")
    protected = [one for one in recordings(tmp_path / "prot") if one.utterance != "u1"]
    with pytest.raises(InputError) as error:
        measure(original, {"V": protected}, pitched=False)
    sentences.check(str(error.value))
    result = measure(original, {"V": protected}, pitched=False, skip=True)
    assert sorted(result.utterances) == ["u0", "u2", "u4", "u5"]
    assert len(result.values["V"]["level"]) == 4
    (notice,) = (one for one in result.notices if one.code == "left-out")
    sentences.check(notice.sentence)
    assert str(tmp_path) not in notice.sentence
    known = {f"u{n}": "one" for n in range(6) if n != 4}
    given = {name: {f"u{n}": "one" for n in range(6)} for name in ("original", "V")}
    whole = [one for one in protected if one.utterance != "u3"]
    heard = measure(
        original, {"V": whole}, transcripts=known, hypotheses=given, pitched=False, skip=True
    )
    assert sorted(heard.utterances) == ["u0", "u2", "u5"]
    with pytest.raises(InputError) as error:
        measure(original, {"V": []}, pitched=False, skip=True)
    sentences.check(str(error.value))
