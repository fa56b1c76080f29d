"""A commented config for what a folder holds, and the bundled case study as one.

VoicePrivacy 2020 and 2022 write ``ASV-libri_dev_enrolls_anon-libri_dev_trials_f_anon/scores``, 2024
``libri_dev_enrolls_mcadams-libri_dev_trials_f_mcadams/scores``; trials and speakers lie in
``data/libri_dev_trials_f``. What follows ``_enrolls`` and ``_trials_f`` names the safeguard.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from unmask.assessment.config import ATTACKERS, FRAMEWORKS, Config
from unmask.assessment.toml import check_config, relative, resolved
from unmask.data import demo_scores
from unmask.errors import InputError
from unmask.run import make_folder
from unmask.speech import case_study, case_study_subset
from unmask.trials import Embeddings, Scores, read_any, write
from unmask.utility import case_study_utility, write_measurements

_ENROLS = r"(?P<corpus>.+)_enrolls(?P<enrolled>_.+)?"
_TRIALS = r"(?P<name>.+)_trials(?P<sex>_f|_m|_mixed)?(?P<common>_common)?(?P<tested>_.+)?"
_PAIR = re.compile(rf"(?:ASV-)?{_ENROLS}-{_TRIALS}")
_DATA = re.compile(rf"(?:xvect(?:ors?)?_)?{_TRIALS}")
_SCORES = ("scores", "scores.txt")
_DEPTH = 8
_SOUND = (".flac", ".wav", ".ogg", ".mp3")
_ORIGINAL = ("original", "orig", "clean", "raw", "unprotected")
_AGAIN = ("-again", "_again", "-run2", "_run2")
_SKIPPED = (".toml", ".md", ".html", ".json", ".png", ".svg", ".pdf", ".tex", ".yaml", ".py")
_KEPT_LISTS = ("utt2spk", "spk2utt", "spk2gender", "wav.scp", "utt2sess")


def starter_config(folder: str | Path, *, base: Path | None = None) -> str:
    """A config that names what ``folder`` holds, as TOML with comments.

    Paths are relative to ``base``, the folder itself by default.
    """
    where = Path(folder)
    if not where.is_dir():
        raise InputError(f"{folder}: expected a folder, found none")
    start = base or where.resolve()
    systems, vectors = walk_tree(where)
    if systems or vectors:
        return _of_tree(systems, vectors, where, start)
    return _of_files(where, start)


def _of_files(where: Path, start: Path) -> str:
    """What lies in the folder itself: embeddings, folders of recordings, score files."""
    embeddings: dict[str, str] = {}
    audio: dict[str, str] = {}
    scores: dict[str, str] = {}
    columns: dict[str, None] = {}
    skipped = []
    for path in sorted(where.iterdir()):
        name, place = path.name.split(".")[0], relative(path.resolve(), start)
        if path.name.startswith(".") or path.name in _KEPT_LISTS:
            continue
        if path.is_dir():
            if any(f.suffix.lower() in _SOUND for f in path.rglob("*")):
                audio[path.name] = place
        elif path.suffix.lower() not in _SKIPPED:
            try:
                content = read_any(path)
            except InputError:
                skipped.append(path.name)
                continue
            if isinstance(content, Embeddings):
                embeddings[name] = place
                columns |= dict.fromkeys(content.columns)
            elif isinstance(content, Scores):
                scores[name] = place
    paths = embeddings or audio
    if not paths and not scores:
        known = "embeddings, recordings or scores, or a VoicePrivacy or Kaldi tree below it"
        raise InputError(where, known, "none")
    first = next(iter(paths), None)
    original = next((name for name in paths if name.lower().startswith(_ORIGINAL)), first)
    safeguards = [
        {
            "name": name,
            "path": path,
            "hidden": any(name.endswith(e) and name.removesuffix(e) in paths for e in _AGAIN),
            "again": next((f"{name}{end}" for end in _AGAIN if f"{name}{end}" in paths), None),
        }
        for name, path in paths.items()
        if name != original
    ]
    return _rendered(
        where,
        kind="embeddings" if embeddings else "audio",
        original=None if original is None else paths[original],
        safeguards=safeguards,
        scores=scores,
        columns=list(columns),
        skipped=skipped,
    )


def _rendered(where: Path, **values: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unmask.assessment", "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["toml"] = lambda value: json.dumps(value, ensure_ascii=False)
    title = f"Assessment of {where.resolve().name}"
    template = environment.get_template("starter.toml.j2")
    return template.render(title=title, frameworks=FRAMEWORKS, attackers=ATTACKERS, **values)


def _of_tree(systems: dict[str, Sets], vectors: Vectors, where: Path, start: Path) -> str:
    """The sets of a VoicePrivacy or Kaldi tree: score files, or x-vectors of the first set."""

    def named(path: Path | None) -> str | None:
        return None if path is None else relative(path.resolve(), start)

    parts = ("oo", "op", "pp", "key", "speakers")
    scored = {
        system: [
            {"set": name, **{part: named(files.get(part)) for part in parts}}
            for name, files in sorted(sets.items())
        ]
        for system, sets in systems.items()
    }
    voices: dict[str, Any] = {}
    pairs = {name: tags for name, tags in vectors.items() if "" in tags and len(tags) > 1}
    if not scored and pairs:
        name, tags = next(iter(pairs.items()))
        voices = {
            "kind": "embeddings",
            "original": named(tags[""][0]),
            "speakers": named(tags[""][1]),
            "safeguards": [
                {"name": tag, "path": named(path), "hidden": False, "again": None}
                for tag, (path, _) in tags.items()
                if tag
            ],
            "others": [other for other in pairs if other != name],
        }
    elif not scored:
        alike = f"{len(vectors)} sets of x-vectors of one kind only"
        raise InputError(where, "scores, or x-vectors original and protected", alike)
    return _rendered(where, scored=scored, **voices)


def demo_config(folder: str | Path, *, seed: int = 0, replicates: int | None = None) -> Config:
    """Put the bundled data into ``folder/data`` and describe their assessment."""
    place = Path(folder)
    data = make_folder(place / "data")
    for name, embeddings in {**case_study_subset(), **case_study()}.items():
        write(embeddings, data / f"{name}.npz")
    with demo_scores() as path:
        (data / "encoders.parquet").write_bytes(path.read_bytes())
    raw = {"seed": seed, **demo_values()}
    if replicates is not None:
        raw["intervals"]["replicates"] = max(replicates, 2)
        quick = min(raw["intervals"]["replicates"], raw["verification"]["replicates"])
        raw["verification"]["replicates"] = quick
    names = {Path(one["embeddings"]).stem: one["name"] for one in raw["safeguards"]}
    measured = case_study_utility()
    values = {names.get(name, name): columns for name, columns in measured.values.items()}
    write_measurements(replace(measured, values=values), data / "utility.csv")
    return resolved(check_config(raw, name="demo"), place)


def demo_values() -> dict[str, Any]:
    """The bundled assessment as its file has it."""
    path = resources.files("unmask.data").joinpath("demo", "assessment.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


Sets = dict[str, dict[str, Path | None]]
"""Files of each list of trials: scores by oo, op and pp, key and speakers."""


Vectors = dict[str, dict[str, tuple[Path, Path | None]]]
"""X-vectors by set and safeguard, "" where unprotected, with their utt2spk."""


def walk_tree(folder: Path) -> tuple[dict[str, Sets], Vectors]:
    """Sets of score files by system, and x-vectors, in places named as VoicePrivacy does."""
    data: dict[str, Path] = {}
    scored: dict[tuple[Path, str], Sets] = {}
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
        name, tested = _set_name(pair), pair["tested"]
        if not tested:
            plain.setdefault(place.parent, {})[name] = scores
            continue
        sets = scored.setdefault((place.parent, tested.lstrip("_")), {})
        sets.setdefault(name, {})["pp" if pair["enrolled"] else "op"] = scores
    if not scored:
        scored = {(root, ""): {name: {} for name in sets} for root, sets in plain.items()}
    systems = {}
    for (root, tag), sets in scored.items():
        for name, files in sets.items():
            files["oo"] = plain.get(root, {}).get(name)
            files["key"], files["speakers"] = _lists_of(name, data)
        # A system goes by its suffix, by its folder too where another has the same.
        where = root.relative_to(folder).as_posix() if root != folder else folder.resolve().name
        alone = tag and sum(other == tag for _, other in scored) == 1
        systems[tag if alone else f"{tag} {where}".strip()] = sets
    return systems, {
        name: {tag: (path, _lists_of(name, data)[1]) for tag, path in sorted(tags.items())}
        for name, tags in sorted(vectors.items())
    }


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
    trials, whose = ([one / file for one in same] for file in ("trials", "utt2spk"))
    return next(filter(Path.is_file, trials), None), next(filter(Path.is_file, whose), None)
