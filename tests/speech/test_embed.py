from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.helpers import other_content

from unmask.errors import InputError
from unmask.run import progress, run_on
from unmask.speech import Extraction, clipped, embed, level, recordings
from unmask.speech.audio import silent
from unmask.speech.embedding import forget
from unmask.trials import Embeddings, write

soundfile = pytest.importorskip("soundfile")


def describe(samples: np.ndarray) -> np.ndarray:
    """A small encoder: level, zero crossings, length."""
    crossings = np.mean(np.signbit(samples[1:]) != np.signbit(samples[:-1]))
    return np.array([np.sqrt(np.mean(samples**2)), crossings, samples.size])


def test_vectors_are_those_of_the_encoder_in_order(corpus):
    outcome = recordings(corpus)
    steps = []
    with progress(lambda *step: steps.append(step)):
        result = embed(outcome, describe, shard=4)
    assert result.failures == result.remarks == ()
    assert steps == [(1, 3), (2, 3), (3, 3)]
    embeddings = result.embeddings
    assert embeddings.utterances.to_series().to_list() == [one.utterance for one in outcome]
    assert embeddings.speakers.to_series().to_list() == [one.speaker for one in outcome]
    samples, _ = soundfile.read(outcome[4].path, dtype="float32")
    np.testing.assert_allclose(embeddings.vectors[4], describe(samples), rtol=1e-6)
    assert result.seconds == pytest.approx(9 * 1.2, abs=0.01)
    assert embeddings.encoder.startswith("describe:")
    np.testing.assert_allclose(result.sounds[:, 0], 1.2, atol=1e-3)
    own = level(samples), silent(samples), clipped(samples), 16_000
    np.testing.assert_allclose(result.sounds[4, 1:], own)


def test_segments(corpus, sentences):
    result = embed(recordings(corpus), describe, extraction=Extraction(segment=0.5, most=2))
    names = result.embeddings.utterances.to_series().to_list()
    assert names[:3] == ["anna_0_s0", "anna_0_s1", "anna_1_s0"]
    assert len(names) == 18
    np.testing.assert_array_equal(result.embeddings.vectors[:, 2], 8000)
    long = embed(recordings(corpus), describe, extraction=Extraction(segment=2.0))
    assert long.embeddings is None
    assert len(long.failures) == 9
    sentences.check(long.failures[0])


def test_pauses_are_shortened(corpus):
    pytest.importorskip("webrtcvad")
    spoken, rate = soundfile.read(corpus / "anna" / "anna_0.wav")
    padded = np.concatenate([np.zeros(rate), spoken, np.zeros(rate)])
    soundfile.write(corpus / "anna" / "anna_0.wav", padded, rate)
    result = embed(recordings(corpus)[:1], describe, extraction=Extraction(trim=True))
    assert result.embeddings.vectors[0, 2] < padded.size - 0.8 * rate


def test_each_bad_file_is_reported_and_the_rest_goes_on(corpus):
    folder = corpus / "anna"
    (folder / "text.wav").write_text("no audio")
    soundfile.write(folder / "silent.wav", np.zeros(16000), 16000)
    soundfile.write(folder / "short.wav", np.full(399, 0.1), 16000)
    soundfile.write(folder / "nan.wav", np.full(16000, np.nan), 16000, subtype="FLOAT")
    noise = 0.1 * np.random.default_rng(0).standard_normal((8000, 8))
    soundfile.write(folder / "eight.wav", noise, 8000)
    outcome = recordings(corpus)
    (corpus / "bert" / "bert_0.wav").unlink()
    result = embed(outcome, describe, shard=3)
    words = {
        "nan": "NaN",
        "short": "too short",
        "silent": "silent",
        "text": "not readable",
        "bert_0": "no such file",
    }
    assert len(result.failures) == len(words)
    for line, (name, reason) in zip(result.failures, words.items(), strict=True):
        assert f"{name}.wav: " in line
        assert reason in line
    assert len(result.embeddings) == 9
    assert result.remarks[0].startswith(str(folder / "eight.wav"))
    assert "8 channels" in result.remarks[0]


def test_an_encoder_that_breaks_on_one_recording(corpus):
    def moody(samples: np.ndarray) -> np.ndarray:
        if describe(samples)[1] == worst:
            raise InputError("not this one")
        return describe(samples)

    outcome = recordings(corpus)
    vectors = embed(outcome, describe).embeddings.vectors
    worst = float(vectors[5, 1].astype(np.float64))
    crossings = [describe(soundfile.read(one.path, dtype="float32")[0])[1] for one in outcome]
    worst = crossings[5]
    result = embed(outcome, moody)
    assert result.failures == (f"{outcome[5].path}: not this one",)
    assert len(result.embeddings) == 8


calls: list[int] = []


def counted(samples: np.ndarray) -> np.ndarray:
    """An encoder that is stopped at its sixth call; plain, so that its module names it."""
    calls.append(samples.size)
    if len(calls) == 6:
        raise KeyboardInterrupt
    return describe(samples)


def test_shards_are_kept_and_used_only_for_the_same_run(corpus, tmp_path):
    outcome = recordings(corpus)
    parts = tmp_path / "x.parts"
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        embed(outcome, counted, shard=2, parts=parts)
    result = embed(outcome, counted, shard=2, parts=parts)
    assert len(calls) < 6 + len(outcome)
    np.testing.assert_array_equal(
        result.embeddings.vectors, embed(outcome, describe, shard=2).embeddings.vectors
    )
    os.utime(outcome[0].path, (1, 1))
    for shard, made in ((2, 0), (3, 9), (2, 0)):
        calls[:] = [0] * 6
        embed(outcome, counted, shard=shard, parts=parts)
        assert len(calls) == 6 + made
    spoken, rate = soundfile.read(outcome[0].path)
    with other_content(outcome[0].path) as path:
        soundfile.write(path, 0.5 * spoken, rate)
    calls[:] = [0] * 6
    changed = embed(outcome, counted, shard=2, parts=parts).embeddings.vectors
    assert len(calls) == 6 + 9
    np.testing.assert_array_equal(changed, embed(outcome, describe).embeddings.vectors)
    assert not np.array_equal(changed[0], result.embeddings.vectors[0])
    forget(parts)
    assert not parts.exists()


def test_what_holds_values_of_its_own_is_not_taken_up_again(corpus, tmp_path):
    """Nobody can see whether a closure or an object still computes the same."""
    outcome, scale = recordings(corpus), [1.0]
    made = []
    for scale[0] in (1.0, 2.0):
        result = embed(outcome, lambda s: scale[0] * describe(s), parts=tmp_path / "parts")
        made.append(result.embeddings.vectors)
    np.testing.assert_allclose(made[1], 2 * made[0])


def test_a_folder_of_something_else_is_not_touched(corpus, tmp_path):
    (tmp_path / "precious").write_text("x")
    with pytest.raises(InputError, match="found other files"):
        embed(recordings(corpus), describe, parts=tmp_path)
    assert (tmp_path / "precious").exists()


SLOW = """
    import os, time
    import numpy as np

    def encode(samples):
        time.sleep(float(os.environ["PAUSE"]))
        return np.array([samples.mean(), samples.std(), samples.size])
"""


def test_a_killed_run_goes_on_and_gives_the_same_bytes(corpus, tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PAUSE", "0")
    source = str(Path(sys.modules["unmask"].__file__).parents[1])
    path = os.pathsep.join([source, str(tmp_path)])

    def start(workers: str, pause: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from unmask.cli import main; main()", "embed"]
        command += [str(corpus), "-o", str(tmp_path / "killed.npz"), "-e", "slow:encode"]
        return subprocess.Popen(
            [*command, "--shard", "1", "--workers", workers],
            env={**os.environ, "PYTHONPATH": path, "PAUSE": pause},
            stderr=subprocess.PIPE,
            text=True,
        )

    killed = start("2", "2.5")
    with run_on(workers=1):
        write(embed(recordings(corpus), "slow:encode").embeddings, tmp_path / "whole.npz")
    parts = tmp_path / "killed.npz.parts"
    deadline = time.monotonic() + 120
    while not list(parts.glob("*/results-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not (tmp_path / "killed.npz").exists()
    assert list(parts.glob("*/results-*.npz"))
    again = start("1", "0")
    assert "an earlier run" in again.communicate()[1]
    assert again.returncode == 0
    assert not parts.exists()
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.fixture
def small_network(tmp_path) -> str:
    """A folder with a small x-vector network, untrained."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from unmask.speech.encoders.card import Recipe, write_encoder
    from unmask.speech.encoders.networks import build

    torch.manual_seed(0)
    recipe = Recipe(network="tdnn", channels=16, dimension=8)
    (tmp_path / "network").mkdir()
    tensors = {name: one.numpy() for name, one in build(recipe).state_dict().items()}
    write_encoder(tmp_path / "network", tensors, {"recipe": asdict(recipe)})
    return str(tmp_path / "network")


def test_every_device_gives_the_same_bytes_and_goes_on(corpus, small_network, tmp_path, sentences):
    """One device, beside which files are read ahead, and a process for each of several."""
    (corpus / "cleo" / "text.wav").write_text("no audio")
    outcome = recordings(corpus)
    expected = embed(outcome, small_network, shard=4)
    assert len(expected.failures) == 1
    for device in ("cpu:0", "cpu,cpu"):
        seen: list[int] = []

        def unplug(done, total, seen=seen):
            seen.append(done)
            if seen == [1]:
                raise KeyboardInterrupt

        options = {"shard": 4, "device": device, "parts": tmp_path / device}
        with pytest.raises(KeyboardInterrupt), progress(unplug):
            embed(outcome, small_network, **options)
        with progress(unplug):
            result = embed(outcome, small_network, **options)
        assert seen[-1] == 3
        np.testing.assert_array_equal(result.embeddings.vectors, expected.embeddings.vectors)
        np.testing.assert_array_equal(result.sounds, expected.sounds)
        assert result.failures == expected.failures
    with pytest.raises(InputError) as error:
        embed(outcome, describe, device="cpu,cpu")
    sentences.check(str(error.value))


@pytest.fixture
def few():
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    return Embeddings(vectors, ["a", "b", "b"], ["u3", "u1", "u2"], ["x", "x", "y"])


def test_npz(few, tmp_path):
    write(few, tmp_path / "e.npz")
    with np.load(tmp_path / "e.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["embeddings"], few.vectors)
        assert arrays["utt_ids"].tolist() == ["u3", "u1", "u2"]
        assert arrays["speaker_ids"].tolist() == ["a", "b", "b"]
        assert arrays["session"].tolist() == ["x", "x", "y"]


@pytest.mark.parametrize("suffix", ["npz", "parquet", "ark"])
def test_what_is_written_can_be_read(few, tmp_path, suffix):
    from unmask.trials import read_embeddings

    written = write(few, tmp_path / f"e.{suffix}")
    if suffix == "ark":
        result = read_embeddings(written[1], speakers=str(tmp_path / "utt2spk"))
    else:
        result = read_embeddings(written[0])
    rows = dict(zip(result.utterances.to_series(), result.vectors.tolist(), strict=True))
    assert rows == dict(zip(["u3", "u1", "u2"], few.vectors.tolist(), strict=True))
    owners = dict(zip(result.utterances.to_series(), result.speakers.to_series(), strict=True))
    assert owners == {"u3": "a", "u1": "b", "u2": "b"}


def test_other_suffixes_are_refused(few, tmp_path):
    with pytest.raises(InputError, match=r"\.npz, \.parquet"):
        write(few, tmp_path / "e.txt")


def test_an_archive_beside_others_would_take_their_speakers_and_is_refused(
    few, tmp_path, sentences
):
    write(few, tmp_path / "a.ark")
    before = (tmp_path / "utt2spk").read_bytes()
    with pytest.raises(InputError) as error:
        write(few, tmp_path / "b.ark")
    sentences.check(str(error.value))
    assert (tmp_path / "utt2spk").read_bytes() == before
    assert not (tmp_path / "b.ark").exists()
    write(few, tmp_path / "a.ark")
