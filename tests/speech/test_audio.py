from __future__ import annotations

import errno

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.speech.audio import needed, read_audio, write_audio

soundfile = pytest.importorskip("soundfile")


@pytest.fixture
def tone():
    return 0.3 * np.sin(2 * np.pi * 440 * np.arange(48000) / 48000)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
@pytest.mark.parametrize(("rate", "channels"), [(48000, 1), (48000, 2), (16000, 1), (8000, 1)])
def test_any_format_rate_and_channel_count(tmp_path, tone, suffix, rate, channels):
    path = tmp_path / f"tone.{suffix}"
    sine = 0.3 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    soundfile.write(path, np.column_stack([sine] * channels), rate)
    audio = read_audio(path)
    assert (audio.rate, audio.channels) == (rate, channels)
    assert audio.samples.dtype == np.float32
    assert audio.seconds == pytest.approx(1.0, abs=0.1)
    middle = audio.samples[4000:12000].astype(float)
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(middle.size)))
    assert np.argmax(spectrum) * 16000 / middle.size == pytest.approx(440, abs=2)
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.05)


def test_remarks_name_what_is_missing_or_mixed(tmp_path):
    path = tmp_path / "eight.wav"
    noise = 0.1 * np.random.default_rng(0).standard_normal((8000, 8))
    soundfile.write(path, noise, 8000, subtype="FLOAT")
    audio = read_audio(path)
    np.testing.assert_allclose(audio.samples.size, 16000, atol=2)
    assert "nothing above 4 kHz" in audio.remarks[0]
    assert "8 channels" in audio.remarks[1]
    soundfile.write(tmp_path / "plain.wav", noise[:, :2], 16000)
    assert read_audio(tmp_path / "plain.wav").remarks == ()


def bad_files(folder):
    samples = 0.1 * np.random.default_rng(0).standard_normal(16000)
    (folder / "text.wav").write_text("not audio at all\n")
    (folder / "empty.wav").write_bytes(b"")
    soundfile.write(folder / "none.wav", np.zeros(0), 16000)
    soundfile.write(folder / "silent.wav", np.zeros(16000), 16000)
    soundfile.write(folder / "nan.wav", np.full(16000, np.nan), 16000, subtype="FLOAT")
    soundfile.write(folder / "whole.flac", samples, 16000)
    whole = (folder / "whole.flac").read_bytes()
    (folder / "cut.flac").write_bytes(whole[: len(whole) // 2])
    soundfile.write(folder / "cut.wav", samples, 16000)
    (folder / "cut.wav").write_bytes((folder / "cut.wav").read_bytes()[:20000])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("text.wav", "not readable as audio"),
        ("empty.wav", "not readable as audio"),
        ("none.wav", "found no samples"),
        ("silent.wav", "silent"),
        ("nan.wav", "16000 of 16000 samples are NaN"),
        ("cut.flac", "cut short|not readable"),
        ("cut.wav", "cut short: expected 32044 bytes, found 20000"),
        ("absent.wav", "no such file"),
    ],
)
def test_bad_files_are_named(tmp_path, name, words):
    bad_files(tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        read_audio(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_what_follows_the_samples_may_lack_its_last_byte_and_no_more(tmp_path):
    """A chunk of odd length should end in a further byte, which many programs leave out."""
    path = tmp_path / "a.wav"
    soundfile.write(path, 0.1 * np.sin(np.arange(16000)), 16000, subtype="PCM_16")
    head, sound = path.read_bytes()[:4], path.read_bytes()[8:]
    body = sound + b"LIST" + (5).to_bytes(4, "little") + b"words\0"
    whole = head + len(body).to_bytes(4, "little") + body
    for missing in (0, 1):
        path.write_bytes(whole[: len(whole) - missing])
        assert read_audio(path).seconds == 1.0
    path.write_bytes(whole[:-2])
    with pytest.raises(
        InputError, match=f"expected {len(whole) - 1} bytes, found {len(whole) - 2}"
    ):
        read_audio(path)


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_written_audio_is_sixteen_bit(tmp_path, suffix):
    samples = 0.5 * np.sin(np.arange(16000) / 20)
    write_audio(tmp_path / f"a.{suffix}", samples)
    np.testing.assert_allclose(read_audio(tmp_path / f"a.{suffix}").samples, samples, atol=4e-5)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{suffix}"]
    with pytest.raises(InputError, match=r"wav or \.flac"):
        write_audio(tmp_path / "a.mp3", samples)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, sentences):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("unmask.run.files.os.fsync", full)
    with pytest.raises(InputError) as error:
        write_audio(tmp_path / "a.wav", np.zeros(16000))
    sentences.check(str(error.value))
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_what_a_recording_is_like(tmp_path):
    """A second of a tone, one of nothing, and one of a tone 45 dB below the first."""
    tone = 0.5 * np.sin(2 * np.pi * 500 * np.arange(8000) / 8000)
    soundfile.write(tmp_path / "a.wav", np.concatenate([tone, 0 * tone, tone / 178]), 8000)
    sound = read_audio(tmp_path / "a.wav").sound
    assert (sound.seconds, sound.clipped, sound.rate) == (3.0, 0.0, 8000)
    assert sound.level == pytest.approx(20 * np.log10(0.5) - 10 * np.log10(6), abs=0.01)
    assert sound.silent == pytest.approx(2 / 3, abs=0.02)
    soundfile.write(tmp_path / "a.wav", np.clip(20 * tone[:200], -1, 1), 16_000)
    sound = read_audio(tmp_path / "a.wav").sound
    assert sound.clipped == 14 / 16
    assert sound.silent == 0.0
    soundfile.write(tmp_path / "a.wav", 0.0005 * tone, 16_000)
    assert read_audio(tmp_path / "a.wav").sound.silent == 1.0


def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path, monkeypatch, sentences):
    with pytest.raises(InputError) as error:
        needed("nowhere", "x", "speech")
    sentences.check(str(error.value))
    (tmp_path / "full.py").write_text("raise ImportError('libx.so: failed to map segment')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as error:
        needed("full", "x", "speech")
    sentences.check(str(error.value))
