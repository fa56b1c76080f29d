"""Configs as TOML files: read, changed by ``key=value``, checked, resolved and written."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from unmask.assessment.config import Config, VoicesConfig
from unmask.assessment.redact import ending
from unmask.errors import InputError
from unmask.run import remember_input


def load_config(path: str | Path, *, changes: Sequence[str] = ()) -> Config:
    """Read and check the config of an assessment.

    Parameters
    ----------
    path
        The TOML file; paths in it are relative to its own folder and come out resolved.
    changes
        ``key=value`` with dotted keys, as of ``unmask assess --set``.

    Returns
    -------
    Config
        All values, defaults filled in; :func:`assess` takes it.

    Examples
    --------
    >>> import tempfile, unmask as um
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.npz", "b.npz"):
    ...     (folder / name).touch()
    >>> text = 'safeguards = [{name = "B2", embeddings = "b.npz"}]'
    >>> _ = (folder / "a.toml").write_text(text)
    >>> changes = ["original.embeddings=a.npz", "seed=3"]
    >>> um.load_config(folder / "a.toml", changes=changes).seed
    3
    """
    file = Path(path)
    remember_input(file)
    try:
        text = file.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected text in UTF-8, found other bytes") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected TOML, found a mistake: {error}") from None
    for change in changes:
        apply_change(raw, change)
    return resolved(check_config(raw, name=str(path), text=text), file.parent)


def check_config(raw: dict[str, Any], *, name: str = "config", text: str = "") -> Config:
    """Validate plain values; one line names each wrong key, and where it stands in ``text``."""
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise InputError(f"{name}: {_sentence(error, text)}") from None


_MOST_MISTAKES = 4
"""How many mistakes of a config are told at once."""
_LIKE = 0.7
"""How much a known key resembles an unknown one that may be meant for it, from 0 to 1."""
_MEANT = {"protected": "embeddings or audio", "path": "embeddings or audio", "file": "files"}
"""What keys of other names are called here."""


def _sentence(error: ValidationError, text: str) -> str:
    """All mistakes of a config, a missing key not where an unknown one resembles it."""
    every = error.errors(include_url=False)
    unknown = [one for one in every if one["type"] == "extra_forbidden"]
    meant = {(*one["loc"][:-1], _near(one["loc"])) for one in unknown}
    told = [one for one in every if one["type"] != "missing" or tuple(one["loc"]) not in meant]
    # Unknown keys come first: what is missing is often what they were meant for.
    told.sort(key=lambda one: one["type"] != "extra_forbidden")
    lines = [_mistake(one, text) for one in told[:_MOST_MISTAKES]]
    more = len(told) - len(lines)
    return "; ".join(lines) + (f"; and {more} more mistakes" if more else "")


def _mistake(one: Any, text: str) -> str:
    place = one["loc"]
    key = ".".join(str(part) for part in place)
    if one["type"] == "extra_forbidden":
        near = _near(place) or _MEANT.get(str(place[-1]))
        meant = f", did you mean {near}?" if near else ""
        return f"{key}: unknown key{_line(place, text)}{meant}"
    if one["type"] == "value_error":
        said = str(one["ctx"]["error"])
        return f"{key}: {said}" if key else said
    if one["type"] == "missing":
        return f"{key}: expected a value, found none"
    message, value = one["msg"], repr(one["input"])
    said = f"{message[0].lower()}{message[1:]}, found {value[:80]}"
    return f"{key}: {said}{_line(place, text)}"


def _line(place: Sequence[int | str], text: str) -> str:
    """The line of a key, where only one line of the file has a key or table of that name."""
    names = [part for part in place if isinstance(part, str)]
    if not names:
        return ""
    name = re.escape(names[-1])
    shape = re.compile(rf"^\s*\[+([\w.-]+\.)?{name}\]|(^|[\s,{{.]){name}\s*=")
    found = [n for n, line in enumerate(text.splitlines(), start=1) if shape.search(line)]
    return f" (line {found[0]})" if len(found) == 1 else ""


def _near(place: Sequence[int | str]) -> str:
    """The known key of the same table that an unknown one resembles, if there is one."""
    table: Any = Config
    for part in (part for part in place[:-1] if isinstance(part, str)):
        kind = table.model_fields[part].annotation
        table = next(iter(get_args(kind)), kind)
    near = get_close_matches(str(place[-1]), getattr(table, "model_fields", ()), 1, _LIKE)
    return near[0] if near else ""


def apply_change(raw: dict[str, Any], change: str) -> None:
    """Set one value: ``legal.lengths=[1, 3]``, ``safeguards.0.name=B2``."""
    key, sign, text = change.partition("=")
    if not sign or not key.strip():
        raise InputError(f"--set: expected key=value, found {change!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    place: Any = raw
    *parents, last = key.strip().split(".")
    for part in parents:
        if isinstance(place, dict):
            place.setdefault(part, {})
        place = place[_index(place, part, key)]
        if not isinstance(place, (dict, list)):
            raise InputError(f"--set {key}: {part} holds a value, not a table")
    place[_index(place, last, key)] = value


def _index(place: Any, part: str, key: str) -> int | str:
    """Where ``part`` of a key stands in a table or in a list."""
    if isinstance(place, dict):
        return part
    if not part.isdigit() or int(part) >= len(place):
        raise InputError(f"--set {key}: expected an index below {len(place)}, found {part}")
    return int(part)


def resolved(config: Config, folder: Path) -> Config:
    """The same with every path made absolute; files and folders that are missing are errors."""
    known = {safeguard.name for safeguard in config.safeguards}

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, Path):
            return _existing(folder / value, key)
        if isinstance(value, BaseModel):
            made: dict[str, Any] = {}
            for name, given in value:
                made[name] = walk(given, f"{key}.{name}" if key else name)
                run = name in ("again", "related") and given not in known
                rule = str(given).startswith("pattern:") or given in ("folder", "name")
                whose = name == "speakers" and not rule
                if given and (run or whose):
                    made[name] = str(_existing(folder / given, f"{key}.{name}"))
                if name in ("encoder", "start") and (folder / given).exists():
                    made[name] = str((folder / given).resolve())
            return value.model_copy(update=made)
        if isinstance(value, tuple):
            return tuple(walk(item, f"{key}.{i}") for i, item in enumerate(value))
        return value

    made: Config = walk(config, "")
    return made


WITHHELD = "withheld"


def _existing(path: Path, key: str) -> Path:
    try:
        if path.exists():
            remember_input(path)
            return path.resolve()
    except OSError as error:
        raise InputError(f"{key}: {path}: {error.strerror}") from None
    if path.stem == WITHHELD:
        raise InputError(f"{key}: withheld, as the report was redacted: say --set {key}=PATH")
    raise InputError(f"{key}: {path}: no such file or folder")


_FREE = {
    "speakers", "command", "recogniser", "grammar", "encoder", "start", "again", "related", "noise",
    "responses",
}  # fmt: skip
_COMMANDS = {"command", "recogniser"}
_WORDS = {"folder", "name", "pocketsphinx", "digits", "campplus", "resemblyzer", "scratch"}
"""Keys whose values are files, patterns or code, any of which may hold names; and values of them
that are the words of this package.
"""


def to_toml(config: Config, *, base: Path | None) -> str:
    """All values of a config, defaults too; paths relative to ``base``. Without it paths are
    withheld, and so are patterns, commands and whatever else names files or code.
    """
    import tomli_w

    own = _WORDS | {safeguard.name for safeguard in config.safeguards}

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, BaseModel):
            values = {name: plain(part, name) for name, part in value}
            if isinstance(value, VoicesConfig) and value.audio is None:
                del values["encoder"]
            return {name: part for name, part in values.items() if part is not None}
        if isinstance(value, Mapping):
            return {str(name): plain(part, str(name)) for name, part in value.items()}
        if isinstance(value, (tuple, list)):
            return [plain(part, key) for part in value]
        free = base is None and key in _FREE and isinstance(value, str) and value not in own
        names_file = isinstance(value, str) and os.path.isabs(value) and key not in _COMMANDS
        if free or isinstance(value, Path) or names_file:
            return relative(value, base)
        return value

    return tomli_w.dumps(plain(config))


def names_written(config: Config) -> set[str]:
    """Every text of a config that is no file, pattern or code: the names that its author chose."""
    return {text for text, is_name in _texts(config) if is_name}


def paths_of(config: Config) -> set[str]:
    """Files and folders that a config names, in full and by their last part."""
    names = names_written(config) | _WORDS
    parts = {
        part for path, is_name in _texts(config) if not is_name for part in (path, Path(path).name)
    }
    return {part for part in parts if part and part not in names}


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """Every text within a config, and whether it is a name."""
    if isinstance(value, BaseModel):
        for name, part in value:
            yield from _texts(part, name)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield str(name), True
            yield from _texts(part, str(name))
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _texts(part, key)
    elif isinstance(value, (str, Path)):
        yield str(value), not (isinstance(value, Path) or key in _FREE or os.path.isabs(value))


def relative(path: str | Path, base: Path | None) -> str:
    """``path`` from the folder ``base`` where it is absolute; withheld without one."""
    if base is None:
        return f"{WITHHELD}{ending(path)}"
    return Path(os.path.relpath(path, base)).as_posix() if os.path.isabs(path) else str(path)
