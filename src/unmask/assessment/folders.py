"""A config for what was named on the command line or in Python: folders, or files of embeddings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask.assessment.config import LEVELS, Config, SafeguardConfig
from unmask.assessment.toml import apply_change, check_config, resolved
from unmask.base import grouped
from unmask.errors import InputError
from unmask.run import files_below

SWEPT = {"mcadams": "b2", "pitch": "pitch"}
"""What can be swept, and the method of this package whose number it is."""
DRAWN = ("b2r", "b2w")
"""Methods that draw a voice, which levels of a pseudonym share."""
_SECOND = re.compile("[-_](again|run2)$")
_KINDS = {"audio": "recordings", "embeddings": "embeddings"}
LEARNING = {"name": "informed, encoder", "enrol": "own", "train": True}
"""The attacker who trains its encoder on what it protected itself."""


@dataclass(frozen=True)
class Beside:
    """What is known beside the originals and their protected versions.

    ``speakers`` tells whose recordings are, ``encoder`` embeds them. ``train`` is speech of other
    people, on whom attackers train; ``safeguard`` a command by which attackers run the safeguard,
    ``again`` its second run by name, ``keyless`` that there is no key. ``transcripts`` are the
    words of the recordings, ``recogniser`` and its ``grammar`` hear how many are left,
    ``text_embeddings`` are vectors of the words; ``sweep`` is
    ``mcadams=0.6,0.7``, or what the names are values of. ``sessions`` is a file of the session of
    each recording. ``levels`` are those of one pseudonym to compare
    (``global,speaker,session,utterance``): protected versions have their names, and ``method``
    makes those that are not there.
    """

    speakers: str | None = None
    sessions: Path | None = None
    encoder: str | None = None
    train: Path | None = None
    safeguard: str | None = None
    again: Mapping[str, str | Path] = field(default_factory=dict)
    keyless: bool = False
    transcripts: Path | None = None
    recogniser: str | None = None
    grammar: str | None = None
    text_embeddings: Path | None = None
    sweep: str | None = None
    levels: str | None = None
    method: str | None = None


def config_of(
    original: str | Path,
    protected: Mapping[str, str | Path],
    beside: Beside | None = None,
    *,
    changes: Sequence[str] = (),
) -> Config:
    """The config of an ``original`` and its ``protected`` versions by name, all folders of
    recordings or all files of embeddings; ``changes`` are ``key=value`` as of a file.
    """
    told, named = beside or Beside(), {name: Path(path) for name, path in protected.items()}
    again = {name: Path(path) for name, path in told.again.items()}
    for name in protected:
        if (of := _SECOND.sub("", name)) != name and of in protected:
            again[of] = named.pop(name)
    kind, others = _kind(Path(original)), [*named.values(), *again.values()]
    for path in others:
        if (found := _KINDS[_kind(path)]) != _KINDS[kind]:
            raise InputError(path, f"{_KINDS[kind]} like {original}", found)
        if sum(path.resolve() == file.resolve() for file in (Path(original), *others)) > 1:
            raise InputError(path, "different folders or files", "the same twice")
    if unknown := next((name for name in again if name not in named), None):
        raise InputError("--again", f"one of {', '.join(named)}", unknown)
    if told.safeguard is not None and len(named) > 1:
        raise InputError("--safeguard: expected one protected version that it makes, found several")
    whose: dict[str, Any] = {} if told.speakers is None else {"speakers": told.speakers}
    if told.sessions is not None:
        whose["sessions"] = Path(told.sessions)
    if told.encoder is not None:
        if kind != "audio":
            raise InputError("--encoder: expected recordings to embed, found embeddings")
        whose["encoder"] = told.encoder
    safeguards: list[dict[str, Any]] = []
    for name, path in named.items():
        one = {"name": name, kind: path, **whose, **_made_by(path)}
        one |= {"keyless": True} if told.keyless else {}
        if told.safeguard is not None:
            one = {"name": name, kind: path, **whose, "command": told.safeguard}
        if name in again and one.get("keyless") and not told.keyless:
            raise InputError(
                f"{again[name]}: {one['method']} has no key, so both runs are equal: leave out"
                " --again"
            )
        if name in again:
            one |= {"again": f"{name}-again", "keyless": told.keyless}
        safeguards.append(one)
    safeguards += _at_levels(told, kind, safeguards)
    names = ", ".join(f"'{safeguard['name']}'" for safeguard in safeguards)
    which = f"the safeguard{'s' if safeguards[1:] else ''} {names}" if names else told.sweep
    title = f"Assessment of {which}"
    safeguards += _swept(told, kind, safeguards)
    safeguards += [
        {"name": f"{name}-again", kind: path, "hidden": True, **whose}
        for name, path in again.items()
    ]
    if not safeguards:
        raise InputError(f"{original}: expected a protected version of it as well, found none")
    raw: dict[str, Any] = {
        "title": title if len(title) <= 80 else f"{title[:79]}…",
        "original": {kind: Path(original), **whose},
        "safeguards": safeguards,
    }
    if told.train is not None:
        raw["training"] = {_kind(Path(told.train)): Path(told.train), **whose}
        runnable = any(one.get("method") or one.get("command") for one in safeguards)
        if runnable and "audio" in raw["training"]:
            raw["attackers"] = [LEARNING]
    said = {"transcripts": told.transcripts, "embeddings": told.text_embeddings}
    raw["words"] = {name: Path(path) for name, path in said.items() if path is not None}
    heard = {"recogniser": told.recogniser, "grammar": told.grammar}
    how = {name: value for name, value in heard.items() if value is not None}
    if told.transcripts is not None and kind == "audio":
        raw["utility"] = {"transcripts": Path(told.transcripts), **how}
    elif how:
        raise InputError("--recogniser and --grammar", "--transcripts of recordings", "none")
    elif told.sweep is not None:
        raw["utility"] = {"dnsmos": 1}
    for change in changes:
        apply_change(raw, change)
    return resolved(check_config(raw, name="assess"), Path())


def _kind(path: Path) -> str:
    """Whether a path holds recordings or embeddings; a folder of both is of recordings."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_file():
        return "embeddings"
    from unmask.speech import SUFFIXES

    kinds = {p.suffix.lower() for p in files_below(path)}
    sound = bool(kinds & SUFFIXES) or (path / "wav.scp").is_file()
    if not sound and not kinds & {".scp", ".ark"}:
        others = sorted(kinds - {""})
        found = f"files {' '.join(others[:6])}" if others else "none"
        raise InputError(path, f"recordings ({' '.join(sorted(SUFFIXES))}) or embeddings", found)
    return "audio" if sound else "embeddings"


def _made_by(folder: Path) -> dict[str, Any]:
    """The built-in method that ``unmask anonymise`` noted beside recordings, as a config has it."""
    from unmask.speech import METADATA, safeguard

    try:
        said = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        drawn = said.get("coefficient", said.get("semitones"))
        low, high = drawn if isinstance(drawn, list) else (drawn, drawn)
        safeguard(said["method"], low=low, high=high)
    except (InputError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    made = {"method": said["method"], "ends": [low, high]}
    return made | ({"keyless": True} if low == high else {"per": said.get("per", "speaker")})


def _swept(told: Beside, kind: str, named: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The safeguards of a sweep: a method at each value, or folders named by their values."""
    if told.sweep is None:
        return []
    if kind != "audio":
        wanted = "recordings, on which what protection costs is measured"
        raise InputError("--sweep", wanted, "embeddings: their report draws DeID against G_VD")
    parameter, equals, values = told.sweep.partition("=")
    if not equals:
        for one in named:
            one["name"] = f"{parameter} {one['name']}"
        return []
    if parameter not in SWEPT:
        raise InputError("--sweep", f"{' or '.join(SWEPT)}, or folders named by value", parameter)
    made = []
    for value in values.split(","):
        try:
            ends = [float(value)] * 2
        except ValueError:
            raise InputError(f"--sweep {parameter}", "numbers between commas", value) from None
        name = f"{parameter} {value.strip()}"
        made.append({"name": name, "method": SWEPT[parameter], "ends": ends, "keyless": True})
    return made


def _at_levels(told: Beside, kind: str, named: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Levels of a pseudonym that a method has to make; versions named go by their level."""
    if told.levels is None:
        if told.method is not None:
            raise InputError("--method", "levels that it makes", "none: --levels speaker,utterance")
        return []
    levels = [level.strip() for level in told.levels.split(",")]
    known = "two or more of global, speaker, session and utterance, each once"
    if not set(levels) <= set(LEVELS) or len(set(levels)) < len(levels) or len(levels) < 2:
        raise InputError("--levels", known, told.levels or "none")
    for one in named:
        if one["name"] not in levels:
            raise InputError("--levels", "versions named by level, LEVEL=PATH", one["name"])
        one["per"] = one["name"]
    made = [level for level in levels if level not in {one["name"] for one in named}]
    if made and told.method not in DRAWN:
        found = told.method or "none"
        raise InputError("--method", f"{' or '.join(DRAWN)} to make {', '.join(made)}", found)
    if made and kind != "audio":
        raise InputError("--levels", f"a version {made[0]}=PATH of embeddings", "none")
    return [{"name": level, "method": told.method, "per": level} for level in made]


def assumptions(config: Config) -> list[str]:
    """What nobody said, in two lines: who speaks, and what attackers hold of each safeguard."""
    part, whose = config.original, "the files name them"
    if part.audio is not None:
        whose = f"{part.speakers or 'folders'} tell; vectors by the encoder {part.encoder}"
    first = f"assumed: speakers and sessions as {whose}; half of each speaker's recordings enrol"
    held = grouped((_held(one), one.name) for one in config.safeguards if not one.hidden)
    told = (f"{', '.join(names)}: {what}" for what, names in held.items())
    return [first, f"assumed: {'; '.join(told)}"]


def _held(one: SafeguardConfig) -> str:
    if one.keyless:
        return "no key, so that attackers make the same run"
    if one.again is not None:
        return "a key, and a second run by the attacker"
    if one.method or one.command:
        return "a key, and attackers run it themselves"
    return "a key, and attackers have no run of their own: --again, --keyless or --safeguard"
