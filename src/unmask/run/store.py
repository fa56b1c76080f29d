"""The one serialiser, without pickle: a tree of plain values and the arrays it points to.

A value is a dataclass of this package made of numbers, strings, arrays, tuples, mappings, tables of
names and further such dataclasses. Nothing else is stored, and nothing else is built from a file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.errors import InputError
from unmask.run.files import atomic_file, check_memory, check_room, content_digest, write_whole

Arrays = dict[str, npt.NDArray[Any]]
_TREE, _DATA = "tree", "data"
_PACKAGE = "unmask."


def to_bytes(value: Any) -> bytes:
    """The value as an npz archive, tree and bytes of arrays; equal values give equal bytes."""
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(value, arrays)
    aligned = sorted(arrays.items(), key=lambda one: -one[1].dtype.alignment)
    kinds = [[name, array.dtype.str, array.size] for name, array in aligned]
    text = json.dumps([tree, kinds], ensure_ascii=False, allow_nan=False)
    data = b"".join(np.ascontiguousarray(array).tobytes() for _, array in aligned)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in ((_TREE, text.encode()), (_DATA, data)):
            part = io.BytesIO()
            np.lib.format.write_array(part, np.frombuffer(content, np.uint8), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    return buffer.getvalue()


def from_bytes(content: bytes, name: str = "value") -> Any:
    """The value that :func:`to_bytes` wrote; ``name`` names it where it is damaged."""
    members = load_arrays(io.BytesIO(content), name)
    try:
        tree, kinds = json.loads(members[_TREE].tobytes().decode())
        data, arrays = members[_DATA].data, {}
        for own, kind, size in kinds:
            used = size * np.dtype(kind).itemsize
            arrays[own] = _plain((size,), np.dtype(kind), data[:used])
            data = data[used:]
        if len(data):
            raise ValueError(f"{len(data)} bytes too many")
        return _decode(tree, arrays)
    except Exception as error:
        raise InputError(name, "a kept value", f"a damaged one ({error})") from None


def digest(value: Any, *more: str) -> str:
    """Names a value by all its bytes, those of maps of files too, and by strings."""
    arrays: dict[str, np.ndarray] = {}
    sha = hashlib.sha256(json.dumps([_encode(value, arrays, once={}), *more]).encode())
    for array in arrays.values():
        sha.update(f"{array.dtype} {array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return sha.hexdigest()[:16]


def write_folder(folder: Path, value: Any, what: str) -> None:
    """Write a value into a folder, if an earlier run has not: an npy file for every array that is
    not the map of a file; ``what`` names the value where the disk has no room.
    """
    path = folder / f"{_TREE}.json"
    if path.exists():
        return
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_encode(value, arrays, once={}), ensure_ascii=False)
    check_room(folder, sum(array.nbytes for array in arrays.values()), what)
    for name, array in arrays.items():
        with atomic_file(folder / f"{name}.npy", private=True) as file:
            np.save(file, array, allow_pickle=False)
    write_whole(path, tree.encode(), private=True)


def read_folder(folder: str | Path) -> Any:
    """What :func:`write_folder` wrote, its arrays mapped into memory."""
    try:
        tree = json.loads((Path(folder) / f"{_TREE}.json").read_text(encoding="utf-8"))
        arrays = {path.stem: _mapped(path) for path in Path(folder).glob("a*.npy")}
        return _decode(tree, arrays, files=True)
    except (FileNotFoundError, KeyError):
        actual = "none: they vanished, or this machine does not see them"
        raise InputError(folder, "the arrays of a job", actual) from None
    except Exception as error:
        raise InputError(f"{folder}: cannot be read ({error})") from None


def load_arrays(
    file: str | Path | BinaryIO, name: str, *, only: Sequence[str] | None = None
) -> Arrays:
    """The arrays of an npz archive (``only`` some members), nothing unpickled; what is declared is
    compared with the bytes that are there, and with the free memory, before any of it is taken.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                twice = next(member for n, member in enumerate(names) if member in names[:n])
                raise InputError(name, "each array once", f"{twice} twice")
            members = [one for one in archive.infolist() if only is None or one.filename in only]
            check_memory(sum(member.file_size for member in members), name, "arrays")
            arrays = {}
            for member in members:
                with archive.open(member) as stream:
                    content = stream.read()
                arrays[member.filename.removesuffix(".npy")] = npy_array(content)
            return arrays
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except Exception as error:
        said = str(error) or type(error).__name__
        raise InputError(name, "an npz file", f"one that cannot be read ({said})") from None


def npy_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape of the array of an npy file, whether it lies column by column, and its type."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"unknown version {version} of the npy format")
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def npy_array(content: bytes) -> npt.NDArray[Any]:
    """The array of an npy file, of which the bytes must be all there; pickled ones are refused."""
    stream = io.BytesIO(content)
    shape, by_columns, kind = npy_header(stream)
    data = bytearray(content[stream.tell() :])
    return _plain(shape, kind, data, order="F" if by_columns else "C")


def _plain(
    shape: tuple[int, ...], kind: np.dtype[Any], data: Any, *, order: Literal["C", "F"] = "C"
) -> npt.NDArray[Any]:
    """An array of these bytes, if it is one of numbers or text and they are as many as it needs."""
    if kind.hasobject:
        raise ValueError("expected plain arrays, found pickled objects, which are not read")
    size = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or len(data) != size:
        raise ValueError(f"expected {size} bytes of numbers as declared, found {len(data)}")
    if kind.kind == "U":
        codes = np.frombuffer(data, kind.str[0] + "u4")
        if (codes > 0x10FFFF).any() or ((codes >= 0xD800) & (codes <= 0xDFFF)).any():
            raise ValueError("expected text, found numbers that are no characters")
    return np.ndarray(shape, kind, data, order=order)


def _mapped(path: Path) -> npt.NDArray[Any]:
    return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]


def write_arrays(
    path: str | Path, kind: str, arrays: Mapping[str, npt.NDArray[Any]], *, private: bool = False
) -> None:
    """Write named arrays of a kind as npz, whole or not at all."""
    named: dict[str, Any] = {**arrays, "format": np.asarray(kind)}
    with atomic_file(path, private=private) as file:
        np.savez(file, **named)


def read_arrays(path: str | Path, kind: str, names: Sequence[str] = ()) -> Arrays:
    """Read the arrays of an npz file of this kind; all ``names`` must be there."""
    try:
        arrays = load_arrays(path, str(path))
    except InputError as error:
        raise InputError(f"{error}: expected a file of the kind {kind}") from None
    named = str(arrays.pop("format", "no format"))
    if named != kind:
        raise InputError(path, f"the format {kind}", named)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputError(path, f"the arrays {', '.join(missing)}", "none of them")
    return arrays


def _encode(
    value: Any, arrays: dict[str, np.ndarray], *, once: dict[int, str] | None = None
) -> Any:
    """A tree for JSON; arrays go to ``arrays``, each object a single time if ``once`` is given."""

    def encoded(value: Any) -> Any:
        if value is None or isinstance(value, (bool, str, int)):
            return value
        if isinstance(value, np.generic):
            return encoded(value.item())
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$": "float", "v": str(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "OV":
                raise TypeError("an array of objects cannot be stored")
            if once is not None and isinstance(getattr(value, "base", None), mmap):
                path = Path(str(getattr(value, "filename", "")))
                return {"$": "file", "v": str(path), "is": content_digest(path)}
            name = f"a{len(arrays)}"
            name = name if once is None else once.setdefault(id(value), name)
            arrays[name] = value
            return {"$": "array", "v": name, "shape": list(value.shape)}
        if isinstance(value, pl.Series):
            return {"$": "names", "v": value.to_list()}
        if isinstance(value, list):
            return [encoded(item) for item in value]
        if isinstance(value, tuple):
            return {"$": "tuple", "v": [encoded(item) for item in value]}
        if isinstance(value, Mapping):
            if all(type(key) is str for key in value):
                return {"$": "named", "v": {key: encoded(part) for key, part in value.items()}}
            return {"$": "mapping", "v": [[encoded(k), encoded(v)] for k, v in value.items()]}
        kind = type(value)
        if is_dataclass(value) and kind.__module__.startswith(_PACKAGE):
            parts = {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
            return {"$": "object", "of": f"{kind.__module__}:{kind.__qualname__}", "v": parts}
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")

    return encoded(value)


def _decode(tree: Any, arrays: dict[str, np.ndarray], *, files: bool = False) -> Any:
    """What a tree stands for; only what a job shares may point to further ``files``."""

    def decoded(node: Any) -> Any:
        if isinstance(node, list):
            return [decoded(item) for item in node]
        if not isinstance(node, dict):
            return node
        value = node["v"]
        match node["$"]:
            case "float":
                return float(value)
            case "array":
                array, shape = arrays[value], tuple(node["shape"])
                array = array if array.shape == shape else array.reshape(shape)
                array.flags.writeable = False
                return array
            case "file" if files:
                if value not in arrays:
                    arrays[value] = _mapped(Path(value))
                return arrays[value]
            case "names":
                return pl.Series(value, dtype=pl.String)
            case "tuple":
                return tuple(map(decoded, value))
            case "named":
                return {name: decoded(part) for name, part in value.items()}
            case "mapping":
                return {decoded(k): decoded(v) for k, v in value}
            case "object":
                return _object(node["of"], {k: decoded(v) for k, v in value.items()})
        raise ValueError(f"unknown mark {node['$']!r}")

    return decoded(tree)


def _object(where: str, values: Mapping[str, Any]) -> Any:
    module, name = where.split(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{where} is not part of this package")
    kind: Any = import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise ValueError(f"{where} is not a result")
    value = object.__new__(kind)
    vars(value).update({field.name: values[field.name] for field in fields(kind)})
    return value
