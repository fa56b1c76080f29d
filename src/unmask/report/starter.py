"""A commented config for what a folder holds."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from unmask.errors import InputError
from unmask.report.config import ATTACKERS
from unmask.trials import Embeddings, Scores, read_any

_SOUND = (".flac", ".wav", ".ogg", ".mp3")
_ORIGINAL = ("original", "orig", "clean", "raw", "unprotected")
_AGAIN = ("-again", "_again", "-run2", "_run2")
_SKIPPED = (".toml", ".md", ".html", ".json", ".png", ".svg", ".pdf", ".tex", ".yaml", ".py")
_KEPT_LISTS = ("utt2spk", "spk2utt", "spk2gender", "wav.scp", "utt2sess")


@dataclass(frozen=True)
class _Found:
    embeddings: dict[str, Path]
    audio: dict[str, Path]
    scores: dict[str, Path]
    columns: tuple[str, ...]
    skipped: tuple[str, ...]


def starter_config(folder: str | Path, *, base: Path | None = None) -> str:
    """A config that names what is found; paths are relative to ``base``, the folder by default."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder}: expected a folder, found none")
    found = _look(place)
    if not (found.embeddings or found.audio or found.scores):
        raise InputError(f"{folder}: expected embeddings, recordings or scores, found none")
    where = base or place.resolve()
    lines = [
        "# What to assess, against whom and how. Check it: unmask assess FILE --validate",
        "# Run it: unmask assess FILE. Paths are relative to this file.",
        f"title = {_text(f'Assessment of {place.resolve().name}')}",
        'description = ""',
        "seed = 0",
        "# Which frameworks to run; all that the data allow if left out.",
        '# frameworks = ["legal", "similarity", "zebra", "verification", "cpmap", "worst_case"]',
        "",
        "[intervals]",
        "level = 0.95",
        "replicates = 1000",
    ]
    voices = found.embeddings or found.audio
    kind = "embeddings" if found.embeddings else "audio"
    if voices:
        lines += _voices(voices, kind, where)
    if found.scores:
        lines += _scores(found.scores, where, more=bool(voices))
    if found.columns:
        guessed = "gender" if "gender" in found.columns else found.columns[0]
        lines += [
            "",
            "[legal.attributes]",
            "# What an attacker may infer; a list of cuts makes bands of numbers: age = [30, 50].",
            f"# Columns found: {', '.join(found.columns)}.",
            f"{guessed} = []" if guessed == "gender" else f"# {guessed} = []",
        ]
    if found.skipped:
        lines += ["", f"# Not understood and left out: {', '.join(found.skipped)}"]
    return "\n".join(lines) + "\n"


def _voices(voices: dict[str, Path], kind: str, where: Path) -> list[str]:
    names = list(voices)
    original = next((n for n in names if n.lower().startswith(_ORIGINAL)), names[0])
    lines = ["", "# Unprotected speech of the same people.", "[original]"]
    lines.append(f"{kind} = {_path(voices[original], where)}")
    if len(names) == 1:
        lines += ["", "# No protected version was found: name one.", "[[safeguards]]"]
        lines += ['name = "my safeguard"', f'{kind} = "protected.npz"']
    for name in names:
        if name == original:
            continue
        lines += ["", "[[safeguards]]", f"name = {_text(name)}"]
        lines.append(f"{kind} = {_path(voices[name], where)}")
        other = next((f"{name}{end}" for end in _AGAIN if f"{name}{end}" in names), None)
        if any(name.endswith(end) and name.removesuffix(end) in names for end in _AGAIN):
            lines.append("hidden = true  # only what the attacker has")
            continue
        if other is not None:
            lines.append(f"again = {_text(other)}  # the same safeguard under other keys")
        else:
            lines += [
                '# again = "run2.npz"  # the same safeguard under other keys, made by the attacker',
                "# keyless = true  # instead, if it has no key: a second run would be the same",
            ]
        lines.append('# related = "NAME or FILE"  # what a semi-informed attacker trains on')
    lines += [
        "",
        "# Half of each speaker's utterances enrol, the others are attacked.",
        "[split]",
        "enrol = 0.5",
        "",
        "# Attackers: what they enrol and what their back-ends are trained on: original speech, an",
        "# own run of the safeguard (again, or that of a keyless one), speech of a related one.",
    ]
    for one in ATTACKERS:
        lines += ["", "[[attackers]]", f"name = {_text(one.name)}", f"enrol = {_text(one.enrol)}"]
        lines += [f"train = {json.dumps(one.train)}", f"backends = {json.dumps(one.backends)}"]
    return lines


def _scores(scores: dict[str, Path], where: Path, *, more: bool) -> list[str]:
    lines = [] if not more else ["", "# Score files found beside the voices."]
    for name, path in scores.items():
        lines += ["", "[[scores]]", f"name = {_text(name)}", f"files = [{_path(path, where)}]"]
    return lines


def _look(folder: Path) -> _Found:
    embeddings: dict[str, Path] = {}
    audio: dict[str, Path] = {}
    scores: dict[str, Path] = {}
    columns: dict[str, None] = {}
    skipped = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _KEPT_LISTS:
            continue
        if path.is_dir():
            if any(f.suffix.lower() in _SOUND for f in path.rglob("*")):
                audio[path.name] = path
            continue
        if path.suffix.lower() in _SKIPPED:
            continue
        try:
            content = read_any(path)
        except InputError:
            skipped.append(path.name)
            continue
        name = path.name.split(".")[0]
        if isinstance(content, Embeddings):
            embeddings[name] = path
            columns |= dict.fromkeys(content.columns)
        elif isinstance(content, Scores):
            scores[name] = path
    return _Found(embeddings, audio, scores, tuple(columns), tuple(skipped))


def _path(path: Path, where: Path) -> str:
    return _text(Path(os.path.relpath(path.resolve(), where)).as_posix())


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
