"""Results as bytes and back, without pickle: a tree of plain values and the arrays it points to.

A result is a dataclass of this package made of numbers, strings, arrays, tuples, mappings, tables
of names and further such dataclasses. Nothing else can be stored, and nothing else is ever built
from a file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

_TREE = "tree"
_PACKAGE = "unmask."


def to_bytes(value: Any) -> bytes:
    """The value as an npz archive with fixed times, so that equal values give equal bytes."""
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_encode(value, arrays), ensure_ascii=False, allow_nan=False)
    arrays[_TREE] = np.frombuffer(tree.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """The value that :func:`to_bytes` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return _decode(json.loads(found[_TREE].tobytes().decode()), found)


def _encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays)
    if isinstance(value, float):
        return value if np.isfinite(value) else {"$": "float", "v": str(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects cannot be stored")
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"$": "array", "v": name, "shape": list(value.shape)}
    if isinstance(value, pl.Series):
        return {"$": "names", "v": value.to_list()}
    if isinstance(value, list):
        return [_encode(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"$": "tuple", "v": [_encode(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        pairs = [[_encode(k, arrays), _encode(v, arrays)] for k, v in value.items()]
        return {"$": "mapping", "v": pairs}
    kind = type(value)
    if is_dataclass(value) and kind.__module__.startswith(_PACKAGE):
        parts = {f.name: _encode(getattr(value, f.name), arrays) for f in fields(value)}
        return {"$": "object", "of": f"{kind.__module__}:{kind.__qualname__}", "v": parts}
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")


def _decode(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(node, list):
        return [_decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    value = node["v"]
    match node["$"]:
        case "float":
            return float(value)
        case "array":
            array = arrays[value].reshape(node["shape"])
            array.flags.writeable = False
            return array
        case "names":
            return pl.Series(value, dtype=pl.String)
        case "tuple":
            return tuple(_decode(item, arrays) for item in value)
        case "mapping":
            return {_decode(k, arrays): _decode(v, arrays) for k, v in value}
        case "object":
            return _object(node["of"], {k: _decode(v, arrays) for k, v in value.items()})
    raise ValueError(f"unknown mark {node['$']!r}")


def _object(where: str, values: Mapping[str, Any]) -> Any:
    module, name = where.split(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{where} is not part of this package")
    kind: Any = import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise ValueError(f"{where} is not a result")
    made = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(made, field.name, values[field.name])
    return made
