"""Training as a whole: it learns, goes on after a kill, and says what is wrong in a line."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.notices import steady

from unmask.errors import InputError
from unmask.run import run_on
from unmask.speech import (
    Recipe,
    embed,
    export_onnx,
    load_encoder,
    read_card,
    recordings,
    train,
    training_seconds,
)

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from unmask.speech.training import fit, loop  # noqa: E402
from unmask.speech.training.data import split  # noqa: E402

SMALL = Recipe(network="tdnn", channels=16, dimension=8, crop=0.5, batch=6, epochs=1, held_out=0)


@pytest.fixture(autouse=True)
def _one_worker():
    with run_on(workers=1):
        yield


def weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def test_twelve_voices_and_one_epoch(twelve, tmp_path):
    """The smoke training: a TDNN from scratch, three voices kept apart."""
    seen = []
    recipe = replace(SMALL, channels=64, dimension=64, held_out=3, loss="am")
    made = train(twelve, tmp_path / "encoder", recipe=recipe, watch=seen.append)
    assert (made.steps, made.speakers) == (6, 9)
    assert made.eer is not None
    assert 0.0 <= made.eer < 0.5
    assert seen[-1].step == seen[-1].steps == 6
    assert seen[-1].speed > 0
    assert math.isfinite(seen[-1].loss)
    card = read_card(tmp_path / "encoder")
    assert card["data"]["recordings"] == 36
    assert len(card["data"]["validation"]["speaker_names"]) == 3
    assert not set(card["data"]["speaker_names"]) & set(card["data"]["validation"]["speaker_names"])
    assert Recipe.from_dict(card["recipe"]) == recipe
    done = embed(twelve[:4], str(tmp_path / "encoder"))
    assert done.embeddings is not None
    assert done.embeddings.vectors.shape == (4, 64)
    assert {path.name for path in (tmp_path / "encoder").iterdir()} == {
        "card.json",
        "weights.safetensors",
    }


def test_the_loss_falls(twelve, tmp_path):
    recipe = replace(SMALL, channels=32, epochs=8, margin=0.0)
    curve = train(twelve, tmp_path / "encoder", recipe=recipe).curve
    assert curve[-1][1] < 0.7 * curve[0][1]


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_run_ends_with_the_same_weights(twelve, tmp_path, monkeypatch, after):
    recipe = replace(SMALL, steps=6, every=2, held_out=2, speeds=(0.9,))
    whole = train(twelve, tmp_path / "whole", recipe=recipe)
    before = loop.Loop.step

    def killed(self, moving, step, batch):
        if step == after:
            raise KeyboardInterrupt
        return before(self, moving, step, batch)

    with monkeypatch.context() as patched:
        patched.setattr(loop.Loop, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(twelve, tmp_path / "killed", recipe=recipe)
    assert not (tmp_path / "killed" / "card.json").exists()
    gone_on = train(twelve, tmp_path / "killed", recipe=recipe)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert gone_on.curve == whole.curve


def test_a_seed_makes_the_weights(twelve, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(twelve, tmp_path / name, recipe=replace(SMALL, steps=1, seed=seed))
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


def test_a_finished_encoder_is_returned_and_no_other_overwrites_it(twelve, tmp_path, sentences):
    first = train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1))
    content = weights(tmp_path / "e")
    again = train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1))
    assert again.curve == first.curve
    with pytest.raises(InputError) as error:
        train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1, loss="am"))
    sentences.check(str(error.value))
    assert weights(tmp_path / "e") == content


def test_from_the_weights_of_another(twelve, tmp_path, sentences):
    train(twelve, tmp_path / "first", recipe=replace(SMALL, steps=2))
    still = replace(SMALL, steps=1, rate=0.0, decay=0.0)
    train(twelve, tmp_path / "second", recipe=still, start=str(tmp_path / "first"))
    first, second = (
        load_encoder(str(tmp_path / name)).network.state_dict() for name in ("first", "second")
    )
    for name, value in first.items():
        if "running" not in name and "tracked" not in name:
            torch.testing.assert_close(value, second[name])
    with pytest.raises(InputError) as error:
        train(
            twelve,
            tmp_path / "third",
            recipe=Recipe(network="ecapa", channels=16, steps=1, held_out=0),
            start=str(tmp_path / "first"),
        )
    sentences.check(str(error.value))


def test_early_stop(twelve, tmp_path, monkeypatch):
    rates = iter([0.3, 0.2, 0.25, 0.25, 0.1])
    monkeypatch.setattr("unmask.speech.training.data.equal_error_rate", lambda *_: next(rates))
    recipe = replace(SMALL, steps=9, every=1, patience=2, held_out=2)
    made = train(twelve, tmp_path / "e", recipe=recipe)
    assert [eer for _, _, eer in made.curve] == [0.3, 0.2, 0.25, 0.25]
    assert (made.eer, made.steps) == (0.2, 2)


def test_noise_and_rooms(twelve, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    generator = np.random.default_rng(0)
    for name in ("noise", "rooms"):
        (tmp_path / name).mkdir()
    soundfile.write(tmp_path / "noise/hiss.wav", 0.1 * generator.standard_normal(8000), 16000)
    decay = np.exp(-np.arange(1600) / 300)
    soundfile.write(tmp_path / "rooms/hall.wav", 0.3 * decay * generator.random(1600), 16000)
    recipe = replace(
        SMALL,
        steps=2,
        augmented=1.0,
        noise=str(tmp_path / "noise"),
        responses=str(tmp_path / "rooms"),
    )
    made = train(twelve, tmp_path / "e", recipe=recipe)
    assert made.steps == 2
    plain = train(twelve, tmp_path / "plain", recipe=replace(SMALL, steps=2))
    assert made.curve != plain.curve


def test_noise_has_its_level_and_rooms_their_echo():
    from unmask.speech.training.loop import add_noise, in_rooms

    torch.manual_seed(0)
    speech, noise = torch.randn(2, 4000), 0.05 * torch.randn(2, 4000)
    noise[1] = 0.0
    mixed = add_noise(speech, noise, torch.tensor([6.0, 6.0]))
    level = 10 * torch.log10(speech[0].square().mean() / (mixed - speech)[0].square().mean())
    assert level.item() == pytest.approx(6.0, abs=1e-3)
    torch.testing.assert_close(mixed[1], speech[1])
    response = torch.zeros(1, 100)
    response[0, 0], response[0, 30] = 0.8, 0.6
    heard = in_rooms(speech, response, torch.tensor([0, -1]))
    wanted = 0.8 * speech[0]
    wanted[30:] += 0.6 * speech[0, :-30]
    torch.testing.assert_close(heard[0], wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(heard[1], speech[1])


def test_speed_moves_pitch_and_length():
    from unmask.speech.training.data import at_speed

    tone = np.sin(2 * np.pi * 400 * np.arange(16000) / 16000).astype(np.float32)
    fast = at_speed(tone, 1.25)
    assert fast.size == 12800
    peak = np.abs(np.fft.rfft(fast)).argmax() * 16000 / fast.size
    assert peak == pytest.approx(500, abs=2)


def test_other_speeds_are_new_speakers_unless_told_otherwise(twelve, tmp_path):
    from unmask.speech.training.data import decode

    one = decode(twelve, tmp_path / "new", Recipe(speeds=(0.9, 1.1)))
    assert (len(one.speakers), len(one.samples)) == (36, 144)
    assert one.labels[:3].tolist() == [0, 12, 24]
    same = decode(twelve, tmp_path / "same", Recipe(speeds=(0.9,), speeds_are_speakers=False))
    assert (len(same.speakers), same.labels[:3].tolist()) == (12, [0, 0, 0])


def test_an_epoch_takes_every_recording_once(twelve, tmp_path):
    from unmask.speech.training.data import decode

    corpus = decode(twelve, tmp_path)
    plan = loop.BatchPlan(SMALL, corpus.samples, corpus.labels)
    assert plan.epoch == 8
    for epoch in (0, 3):
        rows = np.concatenate([plan.rows_at(8 * epoch + n) for n in range(8)])
        assert sorted(rows.tolist()) == list(range(48))
    halves = [replace(plan, part=part, parts=2).at(5) for part in (0, 1)]
    result = np.concatenate([half["labels"] for half in halves])
    assert sorted(result) == sorted(plan.at(5)["labels"])


def test_crops_of_samples_on_a_device_are_the_same(twelve, tmp_path):
    from unmask.speech.training.data import decode

    samples = decode(twelve, tmp_path, Recipe(speeds=(1.1,))).samples
    moved = replace(samples, whole=torch.cat([torch.from_numpy(np.array(samples.shards[0]))]))
    rows, places = np.array([0, 7, 95, 2]), np.array([0.0, 0.99, 0.5, 0.3])
    for length in (4000, 14545, 40000):
        np.testing.assert_array_equal(
            moved.crops(rows, places, length).numpy(), samples.crops(rows, places, length)
        )
    assert samples.near(torch.device("cpu")) is samples


def test_onnx_gives_the_same_vectors(twelve, tmp_path):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1))
    path = export_onnx(tmp_path / "e", tmp_path / "e.onnx")
    both = [embed(twelve[:3], str(one)).embeddings for one in (tmp_path / "e", path)]
    np.testing.assert_allclose(both[0].vectors, both[1].vectors, atol=1e-4)


def test_two_processes(voices, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"""
from unmask.speech import Recipe, recordings, train
recipe = Recipe(network="tdnn", channels=16, steps=2, batch=8, crop=0.5, held_out=2)
train(recordings({str(voices)!r}), {str(tmp_path / "e")!r}, recipe=recipe)
"""
    command = [sys.executable, "-c", code]
    usual = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(command, env={**usual, "RANK": str(rank)}, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    card = read_card(tmp_path / "e")
    assert (card["steps_done"], card["eer"] is None) == (2, False)


def test_how_long_it_takes():
    assert 0 < training_seconds(replace(SMALL, steps=10), speakers=5, utterances=20) < 60


def one_line(error: pytest.ExceptionInfo[InputError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


class TestBadInput:
    def test_one_speaker(self, twelve, tmp_path, sentences):
        with pytest.raises(InputError) as error:
            train(twelve[:4], tmp_path / "e", recipe=SMALL)
        sentences.check(str(error.value))
        assert not (tmp_path / "e").exists()

    def test_a_speaker_with_one_recording(self, twelve, tmp_path, sentences):
        made = train(twelve[3:], tmp_path / "e", recipe=replace(SMALL, steps=1))
        sentences.check(made.remarks[0])

    def test_a_recording_shorter_than_a_crop(self, twelve, tmp_path, sentences):
        made = train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1, crop=1.5))
        sentences.check(made.remarks[0].partition(" (")[0])

    def test_silence_and_files_that_are_no_audio(self, voices, tmp_path):
        import shutil

        import soundfile

        root = tmp_path / "some"
        for name in ("v00", "v01", "v02"):
            shutil.copytree(voices / name, root / name)
        soundfile.write(root / "v00/silent.wav", np.zeros(16000), 16000)
        (root / "v01/broken.wav").write_bytes(b"no audio")
        made = train(recordings(root), tmp_path / "e", recipe=replace(SMALL, steps=1))
        assert len(made.failures) == 2
        assert "silent.wav: silent" in made.failures[0]
        assert "broken.wav: " in made.failures[1]
        assert read_card(tmp_path / "e")["data"]["recordings"] == 12

    def test_a_validation_speaker_among_the_training_speakers(self, twelve, tmp_path, sentences):
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=SMALL, validation=twelve[-4:])
        sentences.check(str(error.value))
        one_line(error)

    def test_validation_without_pairs(self, twelve, tmp_path, sentences):
        with pytest.raises(InputError) as error:
            train(twelve[:40], tmp_path / "e", recipe=SMALL, validation=twelve[44:45])
        sentences.check(str(error.value))

    def test_nobody_with_one_recording_is_held_out(self, twelve):
        counts = Counter(one.speaker for one in twelve)
        single = sorted(counts)[:6]
        first = {one.speaker: one for one in reversed(twelve)}
        some = [one for one in twelve if one.speaker not in single or one is first[one.speaker]]
        for seed in range(4):
            kept = split(some, replace(SMALL, held_out=5, seed=seed))[1]
            assert not {one.speaker for one in kept} & {*single}

    @pytest.mark.parametrize(("speakers", "apart"), [(19, 0), (20, 2), (100, 5), (2000, 50)])
    def test_a_twentieth_of_many_speakers_is_held_out(self, twelve, speakers, apart):
        many = [replace(twelve[0], speaker=f"s{n}") for n in range(speakers) for _ in "ab"]
        kept = split(many, replace(SMALL, held_out=None))[1]
        assert len({one.speaker for one in kept}) == apart

    def test_more_held_out_than_there_are(self, twelve, tmp_path, sentences):
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=replace(SMALL, held_out=11))
        sentences.check(str(error.value))

    def test_a_checkpoint_of_another_network(self, twelve, tmp_path, monkeypatch, sentences):
        recipe = replace(SMALL, steps=3, every=1)
        with monkeypatch.context() as patched:
            patched.setattr(fit, "write_encoder", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                train(twelve, tmp_path / "e", recipe=recipe)
        other = Recipe(network="resnet34", channels=8, crop=0.5, batch=6, steps=3, held_out=0)
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=other)
        sentences.check(str(error.value))
        one_line(error)
        train(twelve, tmp_path / "e", recipe=recipe)

    def test_a_broken_checkpoint(self, twelve, tmp_path, sentences):
        (tmp_path / "e/work").mkdir(parents=True)
        (tmp_path / "e/work/checkpoint.safetensors").write_bytes(b"\x08" + bytes(20))
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=SMALL)
        sentences.check(str(error.value).partition(": Error")[0])
        one_line(error)

    @pytest.mark.parametrize(
        "why",
        [
            torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate"),
            RuntimeError("could not create a primitive"),
            MemoryError(),
        ],
        ids=["cuda", "onednn", "python"],
    )
    def test_out_of_memory(self, twelve, tmp_path, monkeypatch, why, sentences):
        def full(*_):
            raise why

        monkeypatch.setattr(loop.Loop, "step", full)
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=SMALL)
        sentences.check(str(error.value))
        one_line(error)

    def test_no_thread_that_finds_no_memory_to_begin_with_is_waited_for(
        self, twelve, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(loop, "ThreadPoolExecutor", None)
        train(twelve, tmp_path / "e", recipe=SMALL, device="cpu")

    def test_a_loss_that_is_not_finite(self, twelve, tmp_path, monkeypatch, sentences):
        before = loop.Loop.step

        def nan(self, moving, step, batch):
            loss = before(self, moving, step, batch)
            return loss * math.nan if step == 3 else loss

        monkeypatch.setattr(loop.Loop, "step", nan)
        with pytest.raises(InputError) as error:
            train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=6, every=2))
        sentences.check(str(error.value))
        one_line(error)
        assert (tmp_path / "e/work/checkpoint.safetensors").is_file()

    def test_no_such_device(self, twelve, tmp_path):
        for device, said in (("cuda:99", "CUDA devices"), ("toaster", "expected cpu, cuda")):
            with pytest.raises(InputError, match=said):
                train(twelve, tmp_path / "e", recipe=SMALL, device=device)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"network": "vgg"}, "network: expected one of"),
            ({"network": "ecapa", "pooling": "tsp"}, "pooling: expected asp for ecapa"),
            ({"loss": "triplet"}, "loss: expected one of"),
            ({"batch": 1}, "batch: expected 2 to"),
            ({"speeds": (1.0,)}, "speeds: expected 0.5 to 2 but not 1"),
            ({"crop": 0.0}, "crop: expected 0.1 to 60"),
            ({"rate": 10.5}, "rate: expected 0 to 10"),
        ],
    )
    def test_options(self, options, said):
        with pytest.raises(InputError, match=said):
            Recipe(**options)

    def test_weights_that_are_not_those_of_the_card(self, twelve, tmp_path, sentences):
        train(twelve, tmp_path / "e", recipe=replace(SMALL, steps=1))
        content = weights(tmp_path / "e")
        (tmp_path / "e/weights.safetensors").write_bytes(content[:-1] + b"\x00")
        with pytest.raises(InputError) as error:
            load_encoder(str(tmp_path / "e"))
        sentences.check(steady(error.value))
        card = json.loads((tmp_path / "e/card.json").read_text())
        (tmp_path / "e/card.json").write_text(json.dumps({**card, "kind": "something"}))
        with pytest.raises(InputError) as error:
            load_encoder(str(tmp_path / "e"))
        sentences.check(str(error.value))


def _interrupt(*_):
    raise KeyboardInterrupt
