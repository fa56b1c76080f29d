"""VoicePrivacy and Kaldi folders: which scores, trials and x-vectors belong together.

VoicePrivacy 2020 and 2022 write ``ASV-libri_dev_enrolls_anon-libri_dev_trials_f_anon/scores``, 2024
``libri_dev_enrolls_mcadams-libri_dev_trials_f_mcadams/scores``; trials and speakers lie in
``data/libri_dev_trials_f``. What follows ``_enrolls`` and ``_trials_f`` names the safeguard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ENROLS = r"(?P<corpus>.+)_enrolls(?P<enrolled>_.+)?"
_TRIALS = r"(?P<name>.+)_trials(?P<sex>_f|_m|_mixed)?(?P<common>_common)?(?P<tested>_.+)?"
_PAIR = re.compile(rf"(?:ASV-)?{_ENROLS}-{_TRIALS}")
_DATA = re.compile(rf"(?:xvect(?:ors?)?_)?{_TRIALS}")
_SCORES = ("scores", "scores.txt")
_DEPTH = 8


@dataclass
class SetFiles:
    """Files of one list of trials: scores by OO, OP and PP, key and speakers."""

    name: str
    files: dict[str, Path] = field(default_factory=dict)
    key: Path | None = None
    speakers: Path | None = None


@dataclass(frozen=True)
class Tree:
    """What a folder holds: sets of score files by system, and x-vectors by set and safeguard ("" is
    unprotected) with their utt2spk.
    """

    systems: dict[str, list[SetFiles]]
    vectors: dict[str, dict[str, tuple[Path, Path | None]]]


def walk_tree(folder: Path) -> Tree:
    """Look through a folder for score files and x-vectors in places named as VoicePrivacy does."""
    data: dict[str, Path] = {}
    found: dict[tuple[Path, str], dict[str, SetFiles]] = {}
    plain: dict[Path, dict[str, Path]] = {}
    vectors: dict[str, dict[str, Path]] = {}
    for place, names in _folders(folder):
        if match := _DATA.fullmatch(place.name):
            if "utt2spk" in names or "trials" in names:
                data[place.name] = place
            if "xvector.scp" in names:
                which = (match["tested"] or "").lstrip("_")
                vectors.setdefault(_set_name(match), {})[which] = place / "xvector.scp"
        pair = _PAIR.fullmatch(place.name)
        scores = next((place / name for name in _SCORES if name in names), None)
        if pair is None or scores is None:
            continue
        name, root = _set_name(pair), place.parent
        enrolled, tested = pair["enrolled"] or "", pair["tested"] or ""
        if not tested:
            plain.setdefault(root, {})[name] = scores
            continue
        part = "pp" if enrolled else "op"
        sets = found.setdefault((root, tested.lstrip("_")), {})
        sets.setdefault(name, SetFiles(name)).files[part] = scores
    if not found:
        found = {(root, ""): {n: SetFiles(n) for n in sets} for root, sets in plain.items()}
    for (root, _), sets in found.items():
        for name, one in sets.items():
            if name in plain.get(root, {}):
                one.files["oo"] = plain[root][name]
            one.key, one.speakers = _lists_of(name, data)
    return Tree(
        {_called(root, tag, found, folder): _ordered(sets) for (root, tag), sets in found.items()},
        {
            name: {tag: (path, _lists_of(name, data)[1]) for tag, path in sorted(tags.items())}
            for name, tags in sorted(vectors.items())
        },
    )


def _folders(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Every folder below with the names of its files, in order; hidden ones and links are left."""
    top = str(folder)
    for place, below, names in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if place[len(top) :].count(os.sep) >= _DEPTH:
            below.clear()
        yield Path(place), set(names)


def _set_name(match: re.Match[str]) -> str:
    return f"{match['name']}{match['sex'] or ''}{match['common'] or ''}"


def _lists_of(name: str, data: dict[str, Path]) -> tuple[Path | None, Path | None]:
    """Key and utt2spk of a set: those of the unprotected trials, or of any."""
    same = [
        place
        for folder, place in sorted(data.items(), key=lambda item: len(item[0]))
        if (match := _DATA.fullmatch(folder)) and _set_name(match) == name
    ]
    files = [
        next((place / file for place in same if (place / file).is_file()), None)
        for file in ("trials", "utt2spk")
    ]
    return files[0], files[1]


def _called(root: Path, tag: str, every: Iterable[tuple[Path, str]], top: Path) -> str:
    """A system by its suffix; by its folder too where another has the same."""
    alone = sum(other == tag for _, other in every) == 1
    where = root.relative_to(top).as_posix() if root != top else top.resolve().name
    return tag if tag and alone else " ".join(part for part in (tag, where) if part)


def _ordered(sets: dict[str, SetFiles]) -> list[SetFiles]:
    return [sets[name] for name in sorted(sets)]
