"""Writing a config as TOML, which the standard library only reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def to_toml(model: BaseModel, *, base: Path | None) -> str:
    """All values of a config, defaults too; paths relative to ``base``, withheld without it."""
    return "\n".join(_table(_plain(model, base), "")).strip() + "\n"


def _plain(value: Any, base: Path | None) -> Any:
    if isinstance(value, BaseModel):
        found = {name: _plain(getattr(value, name), base) for name in type(value).model_fields}
        return {name: part for name, part in found.items() if part is not None}
    if isinstance(value, Mapping):
        return {str(name): _plain(part, base) for name, part in value.items()}
    if isinstance(value, Path):
        return _relative(value, base)
    if isinstance(value, (tuple, list)):
        return [_plain(part, base) for part in value]
    if isinstance(value, str) and os.path.isabs(value):
        return _relative(Path(value), base)
    return value


def _relative(path: Path, base: Path | None) -> str:
    if base is None:
        return f"withheld{path.suffix}"
    return Path(os.path.relpath(path, base)).as_posix()


def _table(values: Mapping[str, Any], prefix: str) -> list[str]:
    lines, tables = [], []
    for name, value in values.items():
        key = f"{prefix}{_key(name)}"
        if isinstance(value, Mapping):
            if value:
                tables += ["", f"[{key}]", *_table(value, f"{key}.")]
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            for part in value:
                tables += ["", f"[[{key}]]", *_table(part, f"{key}.")]
        else:
            lines.append(f"{_key(name)} = {_value(value)}")
    return lines + tables


def _key(name: str) -> str:
    plain = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
