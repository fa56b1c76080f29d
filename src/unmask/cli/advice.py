"""What a message advises, as the command that was called has it."""

from __future__ import annotations

import re
from collections.abc import Collection

_KEYWORDS = "missing|duplicates|pairs|allow_shared_utterances|skip_single"
_KEYWORD = re.compile(
    rf"\b(?:(?:um\.)?[A-Z]\w+\((?P<wrapped>{_KEYWORDS})='?(?P<inner>\w+)'?\)"
    rf"|(?P<name>{_KEYWORDS})='?(?P<value>\w+)'?)"
)
"""Keywords of Python functions that commands have as options, also those of a protocol."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
CONFIG_KEYS = frozenset(
    {"key", "speakers", "sessions", "encoder", "transcripts", "grammar", "again", "keyless"}
)
"""Options whose names are keys of a config."""


def as_options(message: str) -> str:
    """A message with options in place of keywords: ``--missing skip``."""
    return _KEYWORD.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    name = found["wrapped"] or found["name"]
    value = found["inner"] or found["value"]
    return f"--{name.replace('_', '-')}{'' if value == 'True' else f' {value}'}"


def fitting(message: str, options: Collection[str], *, has_config: bool = False) -> str:
    """A message without advice that a command cannot follow, since it lacks the ``options``.

    Where a config is given it names the key of the config instead.
    """
    for name in dict.fromkeys(_OPTION.findall(message)):
        key = name.removeprefix("--").replace("-", "_")
        in_config = has_config and key in CONFIG_KEYS
        if name in options and not in_config:
            continue
        # Advice stands in brackets, in a clause of its own, or else within the sentence.
        if in_config:
            message = re.sub(rf"{name}(?![\w-])", f"{key} = in the config", message)
            continue
        message = re.sub(rf"\s*\({name}(?![\w-])[^()]*\)", "", message)
        message = re.sub(rf";[^;]*{name}(?![\w-])[^;]*", "", message)
        message = re.sub(rf"{name}(?![\w-])", key.replace("_", " "), message)
    return message
