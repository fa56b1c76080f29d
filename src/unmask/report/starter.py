"""A commented config for what a folder holds, and the bundled case study as one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask.data import demo_scores
from unmask.errors import InputError
from unmask.report.config import ATTACKERS, FRAMEWORKS, Config
from unmask.report.toml import check_config, relative, resolved
from unmask.report.trees import Tree, walk_tree
from unmask.speech import case_study, case_study_subset
from unmask.trials import Embeddings, Scores, read_any, write
from unmask.utility import Measurements, case_study_utility, write_measurements

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
    """A config that names what is found in ``folder``, as TOML with comments.

    Paths are relative to ``base``, the folder itself by default.
    """
    where = Path(folder)
    if not where.is_dir():
        raise InputError(f"{folder}: expected a folder, found none")
    start = base or where.resolve()
    tree = walk_tree(where)
    if tree.systems or tree.vectors:
        return _of_tree(tree, where, start)
    found = _look(where)
    if not (found.embeddings or found.audio or found.scores):
        raise InputError(
            f"{folder}: expected embeddings, recordings or scores, or a VoicePrivacy or Kaldi tree"
            " below it, found none"
        )
    voices = {
        name: relative(p.resolve(), start) for name, p in (found.embeddings or found.audio).items()
    }
    first = next(iter(voices), None)
    original = next((n for n in voices if n.lower().startswith(_ORIGINAL)), first)
    return _rendered(
        where,
        kind="embeddings" if found.embeddings else "audio",
        original=None if original is None else voices[original],
        safeguards=[_safeguard(name, voices) for name in voices if name != original],
        scores={name: relative(path.resolve(), start) for name, path in found.scores.items()},
        columns=found.columns,
        skipped=found.skipped,
    )


def _rendered(where: Path, **values: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unmask.report", "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["toml"] = lambda value: json.dumps(value, ensure_ascii=False)
    title = f"Assessment of {where.resolve().name}"
    template = environment.get_template("starter.toml.j2")
    return template.render(title=title, frameworks=FRAMEWORKS, attackers=ATTACKERS, **values)


def _of_tree(tree: Tree, where: Path, start: Path) -> str:
    """The sets of a VoicePrivacy or Kaldi tree: score files, or x-vectors of the first set."""

    def told(path: Path | None) -> str | None:
        return None if path is None else relative(path.resolve(), start)

    scored = {
        name: [
            {
                "set": one.name,
                **{part: told(one.files.get(part)) for part in ("oo", "op", "pp")},
                "key": told(one.key),
                "speakers": told(one.speakers),
            }
            for one in sets
        ]
        for name, sets in tree.systems.items()
    }
    voices: dict[str, Any] = {}
    pairs = {name: tags for name, tags in tree.vectors.items() if "" in tags and len(tags) > 1}
    if not scored and pairs:
        name, tags = next(iter(pairs.items()))
        voices = {
            "kind": "embeddings",
            "original": told(tags[""][0]),
            "speakers": told(tags[""][1]),
            "safeguards": [
                {"name": tag, "path": told(path), "hidden": False, "again": None}
                for tag, (path, _) in tags.items()
                if tag
            ],
            "others": [other for other in pairs if other != name],
        }
    elif not scored:
        raise InputError(
            f"{where}: expected scores, or x-vectors original and protected, found"
            f" {len(tree.vectors)} sets of x-vectors of one kind only"
        )
    return _rendered(where, scored=scored, **voices)


def _safeguard(name: str, voices: dict[str, str]) -> dict[str, Any]:
    """What is told of a protected version; one named like another run of another is hidden."""
    return {
        "name": name,
        "path": voices[name],
        "hidden": any(name.endswith(e) and name.removesuffix(e) in voices for e in _AGAIN),
        "again": next((f"{name}{end}" for end in _AGAIN if f"{name}{end}" in voices), None),
    }


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


REPLICATES = 500
QUICK = 100
SAFEGUARDS: dict[str, dict[str, str | bool]] = {
    "B2": {
        "description": "shifts formants by the McAdams coefficient, the same for everybody",
        "embeddings": "data/b2.npz",
        "keyless": True,
        "related": "data/b2r-again.npz",
    },
    "B2r": {
        "description": "as B2, with a coefficient drawn for each speaker",
        "embeddings": "data/b2r.npz",
        "again": "data/b2r-again.npz",
        "related": "data/b2w-again.npz",
    },
    "B2w": {
        "description": "as B2r, with a coefficient drawn from a wider range",
        "embeddings": "data/b2w.npz",
        "again": "data/b2w-again.npz",
        "related": "data/b2r-again.npz",
    },
    "Pooling": {
        "description": "replaces the voice by an average of distant voices; no audio is made",
        "embeddings": "data/pooling.npz",
        "again": "data/pooling-again.npz",
    },
    "B1": {
        "description": "makes the voice the mean of distant ones of a pool, as audio (WORLD in"
        " place of B1's neural vocoder); four utterances of each speaker",
        "embeddings": "data/b1.npz",
        "again": "data/b1-again.npz",
    },
    "Pitch": {
        "description": "raises the pitch by four semitones; four utterances of each speaker",
        "embeddings": "data/pitch.npz",
        "keyless": True,
    },
}
ENCODERS = "Three encoders"
DESCRIPTION = (
    "Sixty people of the open corpus AudioMNIST, each saying five digits at a time, through the"
    " speaker encoder CAM++. B2 and Pitch have no key; all others are run a second time under other"
    " keys, as an attacker would. One session and room per"
    " speaker: people are easier to recognise here than in the world. The score table compares"
    " three encoders on unprotected voices of the same corpus."
)


def demo_config(folder: str | Path, *, seed: int = 0, replicates: int | None = None) -> Config:
    """Put the bundled data into ``folder/data`` and describe their assessment."""
    place = Path(folder)
    data = place / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, embeddings in {**case_study_subset(), **case_study()}.items():
        write(embeddings, data / f"{name}.npz")
    with demo_scores() as path:
        (data / "encoders.parquet").write_bytes(path.read_bytes())
    write_measurements(_renamed(case_study_utility()), data / "utility.csv")
    chosen = REPLICATES if replicates is None else max(replicates, 2)
    raw = {
        "title": "Case study: what anonymisation leaves of sixty voices",
        "description": DESCRIPTION,
        "seed": seed,
        "intervals": {"replicates": chosen},
        "original": {"embeddings": "data/original.npz"},
        "safeguards": [{"name": name, **given} for name, given in SAFEGUARDS.items()],
        "scores": [{"name": ENCODERS, "files": ["data/encoders.parquet"]}],
        "legal": {"attributes": {"gender": []}},
        "verification": {"replicates": min(chosen, QUICK)},
        "utility": {"measurements": "data/utility.csv"},
        "figures": ["svg", "png"],
    }
    return resolved(check_config(raw, name="demo"), place)


def _renamed(found: Measurements) -> Measurements:
    """Conditions by the names that safeguards have in the demo."""
    names = {Path(str(given["embeddings"])).stem: name for name, given in SAFEGUARDS.items()}
    values = {names.get(name, name): columns for name, columns in found.values.items()}
    return replace(found, values=values)
