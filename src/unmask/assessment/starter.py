"""A commented config for what a folder holds, and the bundled case study as one.

VoicePrivacy 2020 and 2022 write ``ASV-libri_dev_enrolls_anon-libri_dev_trials_f_anon/scores``, 2024
and 2026 ``libri_dev_enrolls_mcadams-libri_dev_trials_f_mcadams/scores``; trials and speakers lie in
``data/libri_dev_trials_f``. What follows ``_enrolls`` and ``_trials_f`` names the safeguard.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from unmask.assessment.challenge import read_results
from unmask.assessment.config import ATTACKERS, FRAMEWORKS, Config
from unmask.assessment.toml import check_config, relative, resolved
from unmask.base import one_line
from unmask.data import demo_scores
from unmask.errors import InputError
from unmask.run import files_below, folders_below, make_folder, write_whole
from unmask.speech import case_study, case_study_subset
from unmask.trials import Embeddings, Scores, read_any, write
from unmask.utility import case_study_utility, write_measurements

_ENROLS = r"(?P<corpus>.+)_enrolls(?P<enrolled>_.+)?"
_TRIALS = r"(?P<name>.+)_trials(?P<sex>_f|_m|_mixed)?(?P<common>_common)?(?P<tested>_.+)?"
_PAIR = re.compile(rf"(?:ASV-)?{_ENROLS}-{_TRIALS}")
_DATA = re.compile(rf"(?:xvect(?:ors?)?_)?{_TRIALS}")
_WORDS = re.compile(r"(?P<name>.+?)_asr(?P<tag>_.+)?")
_SPOKEN = re.compile(r"(?P<name>.+?)_(?:asr|enrolls|trials(?:_f|_m|_mixed)?(?:_common)?)")
_SCORES = ("scores", "scores.txt")
REMARK = "# Remark: "
"""What precedes a line on something that was not taken up."""
_RANK, _ANON = "result_for_rank_", "anon"
_STATED = re.compile(rf"(?:results_(?!folds_)|{_RANK}|ASR-.+?_asr(?:_|$))(?P<tag>.*?)(?:\.csv)?")
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
    tree = walk_tree(where)
    if tree.systems or tree.vectors:
        return _of_tree(tree, where, start)
    return _of_files(where, start)


def _of_files(where: Path, start: Path) -> str:
    """What lies in the folder itself: embeddings, folders of recordings, score files."""
    embeddings: dict[str, str] = {}
    audio: dict[str, str] = {}
    scores: dict[str, dict[str, Any]] = {}
    keys: list[str] = []
    columns: dict[str, None] = {}
    skipped = []
    for path in sorted(where.iterdir()):
        name, place = path.name.split(".")[0], relative(path.resolve(), start)
        if path.name.startswith(".") or path.name in _KEPT_LISTS:
            continue
        if path.is_dir():
            if any(f.suffix.lower() in _SOUND for f in files_below(path)):
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
                scores[name] = {"path": place, "is_labelled": content.label is not None}
            else:
                keys.append(place)
    paths = embeddings or audio
    if not paths and not scores:
        known = "embeddings, recordings or scores, or a VoicePrivacy or Kaldi tree below it"
        loose = [path.name for path in sorted(where.iterdir()) if path.suffix.lower() in _SOUND]
        actual = (
            f"{loose[0]} in no speaker's folder (SAFEGUARD/SPEAKER/{loose[0]})" if loose else ""
        )
        raise InputError(where, known, actual or "none")
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
    remarks = _give_keys(scores, keys)
    return _rendered(
        where,
        kind="embeddings" if embeddings else "audio",
        original=None if original is None else paths[original],
        safeguards=safeguards,
        scores=scores,
        columns=list(columns),
        skipped=skipped,
        remarks=remarks,
    )


def _give_keys(scores: Mapping[str, dict[str, Any]], keys: Sequence[str]) -> list[str]:
    """Give score files without labels the only key there is; say what was done, or must be."""
    unlabelled = [one for one in scores.values() if not one["is_labelled"]]
    if not unlabelled:
        return []
    names = ", ".join(one["path"] for one in unlabelled)
    if len(keys) == 1:
        for one in unlabelled:
            one["key"] = keys[0]
        return [f"no labels in {names}: taken from {keys[0]}"]
    found = f"; found {', '.join(keys)}" if keys else ""
    return [f'no labels in {names}: write key = "FILE" below its files{found}']


def _rendered(where: Path, **values: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unmask.assessment", "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"toml": _toml_text, "one_line": one_line}
    title = f"Assessment of {where.resolve().name}"
    template = environment.get_template("starter.toml.j2")
    return template.render(title=title, frameworks=FRAMEWORKS, attackers=ATTACKERS, **values)


def _toml_text(value: Any) -> str:
    """A value as TOML has it, which is as JSON has it but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _of_tree(tree: Tree, where: Path, start: Path) -> str:
    """A VoicePrivacy or Kaldi tree: its score files, or x-vectors of the first set."""

    def named(path: Path | None) -> str | None:
        return None if path is None else relative(path.resolve(), start)

    parts = ("oo", "op", "pp", "key", "speakers", "genders")
    scored = [
        {
            "name": system,
            "results": [named(path) for path in tree.results.get(system, ())],
            "heard": [
                {
                    "set": name,
                    "data": [named(place) for place in tree.spoken[name]],
                    "original": named(tree.heard[name, ""]),
                    "protected": named(tree.heard[name, system]),
                }
                for name in sorted(tree.spoken)
                if {(name, ""), (name, system)} <= tree.heard.keys()
            ],
            "scores": [
                {
                    "set": name,
                    "extractor": "trained" if extractor == "trained" else None,
                    **{part: named(files.get(part)) for part in parts},
                }
                for (name, extractor), files in sorted(sets.items())
            ],
        }
        for system, sets in tree.systems.items()
    ]
    voices: dict[str, Any] = {}
    pairs = {name: tags for name, tags in tree.vectors.items() if "" in tags and len(tags) > 1}
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
        alike = f"{len(tree.vectors)} sets of x-vectors of one kind only"
        raise InputError(where, "scores, or x-vectors original and protected", alike)
    return _rendered(where, scored=scored, remarks=tree.remarks, **voices)


def demo_config(folder: str | Path, *, seed: int = 0, replicates: int | None = None) -> Config:
    """Put the bundled data into ``folder/data`` and describe their assessment."""
    place = Path(folder)
    data = make_folder(place / "data")
    for name, embeddings in {**case_study_subset(), **case_study()}.items():
        write(embeddings, data / f"{name}.npz")
    with demo_scores() as path:
        content, encoders = path.read_bytes(), data / "encoders.parquet"
        if not encoders.is_file() or encoders.read_bytes() != content:
            write_whole(encoders, content)
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


Files = dict[str, Path | None]
"""Files of a list of trials: scores by oo, op and pp, all of one root, key, speakers, genders."""


@dataclass
class Tree:
    """What lies in places named as the challenges do.

    ``systems`` have files by set and extractor, ``results`` result files by system; ``vectors`` are
    by set and safeguard ("" where unprotected) with their utt2spk. ``heard`` are what a recogniser
    wrote down, by set and system ("" likewise), ``spoken`` the folders that tell what was said in a
    set; ``remarks`` tell what was not taken up, or not known.
    """

    systems: dict[str, dict[tuple[str, str], Files]] = field(default_factory=dict)
    results: dict[str, list[Path]] = field(default_factory=dict)
    vectors: dict[str, dict[str, tuple[Path, Path | None]]] = field(default_factory=dict)
    heard: dict[tuple[str, str], Path] = field(default_factory=dict)
    spoken: dict[str, list[Path]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def walk_tree(folder: Path) -> Tree:
    """The score files, x-vectors and result files of a tree.

    A system goes by the suffix of its folders, and by the folder above its ``exp`` where several
    use the same suffix. Who attacks is told by the folder of the verification (:func:`_extractor`).
    """
    remarks: dict[str, None] = {}
    data: dict[str, Path] = {}
    vectors: dict[str, dict[str, Path]] = {}
    stated: dict[tuple[str, str], list[Path]] = {}
    plain: dict[Path, dict[str, Path]] = {}
    lists: dict[tuple[str, str], dict[tuple[str, str], Files]] = {}
    places = list(_folders(folder))
    for place, names in places:
        above, holder = _above(place, folder), place.parent if place.name == "meta" else place
        # Of results-X.orig and results-X (2022) those of the latter are ranked.
        older = place.suffix == ".orig" and place.with_suffix("").is_dir()
        for match in map(_STATED.fullmatch, () if older else sorted(names)):
            if match and _states_utility(place / match.string):
                stated.setdefault((above, match["tag"] or ""), []).append(place / match.string)
        if match := _DATA.fullmatch(holder.name):
            if "utt2spk" in names or "trials" in names:
                data.setdefault(holder.name, place)
            if "xvector.scp" in names:
                which = (match["tested"] or "").lstrip("_")
                vectors.setdefault(_set_name(match), {})[which] = place / "xvector.scp"
        if (pair := _PAIR.fullmatch(place.name)) is None:
            continue
        scores = next((place / name for name in _SCORES if name in names), None)
        if scores is None:
            remarks[f"{place.relative_to(folder)}: no file scores, left out"] = None
            continue
        root, name, tag = place.parent, _set_name(pair), (pair["tested"] or "").lstrip("_")
        if not tag:
            plain.setdefault(root, {})[name] = scores
            continue
        extractor = _extractor(root)
        if extractor is None:
            sentence = "no name of the challenges (asv_orig, asv_ssl, asv_anon…, results…)"
            remarks[f"{root.relative_to(folder)}: {sentence}, taken as pre-trained"] = None
        files = lists.setdefault((above, tag), {}).setdefault((name, extractor or "given"), {})
        if files.setdefault("root", root) != root:
            sentence = "left out, the same lists of the same attacker were found before"
            remarks[f"{root.relative_to(folder)}: {sentence}"] = None
            continue
        part = "pp" if pair["enrolled"] else "op"
        files |= {part: scores, "oo": plain.get(root, {}).get(name)}
    heard, spoken = _words(places, folder)
    tree = Tree(remarks=list(remarks), spoken=spoken)
    if not lists:
        for root, own in plain.items():
            name = root.parent.name if root.name.endswith("_out") else root.resolve().name
            tree.systems[name] = {(of_set, "given"): {"oo": own[of_set]} for of_set in own}
    for above, tag in sorted(lists):
        alone = sum(tag == other for _, other in lists) == 1
        name = tag if alone or not above else above if tag == _ANON else f"{above} {tag}"
        tree.systems[name] = lists[above, tag]
        found = [*stated.get((above, ""), []), *stated.get((above, tag), [])]
        ranks = [path for path in found if path.name.startswith(_RANK)]
        tree.results[name] = [path for path in found if path not in ranks] or ranks
        for (where, of_set, end), path in heard.items():
            if where == above and end in ("", tag):
                tree.heard[of_set, name if end else ""] = path
    for sets in tree.systems.values():
        for (name, _), files in sets.items():
            files |= _lists_of(name, data)
    for name, tags in sorted(vectors.items()):
        whose = _lists_of(name, data)["speakers"]
        tree.vectors[name] = {tag: (path, whose) for tag, path in sorted(tags.items())}
    return tree


def _words(
    places: Sequence[tuple[Path, set[str]]], folder: Path
) -> tuple[dict[tuple[str, str, str], Path], dict[str, list[Path]]]:
    """What was heard of sets (``X_asr`` in a recogniser's folder), by tree, set and suffix, and the
    Kaldi folders that tell what was said: ``X_asr`` too, or those of enrolment and trials.
    """
    heard: dict[tuple[str, str, str], Path] = {}
    data: dict[str, dict[str, Path]] = {}
    for place, names in places:
        if "text" in names and "utt2spk" in names:
            if match := _SPOKEN.fullmatch(place.name):
                data.setdefault(match["name"], {}).setdefault(place.name, place)
        elif "text" in names and (match := _WORDS.fullmatch(place.name)):
            end = (match["tag"] or "").lstrip("_")
            heard.setdefault((_above(place, folder), match["name"], end), place / "text")
    spoken = {
        name: [own[f"{name}_asr"]] if f"{name}_asr" in own else list(own.values())
        for name, own in data.items()
    }
    return heard, spoken


def _extractor(root: Path) -> str | None:
    """Whose extractor made the scores of a folder; None where its name does not tell.

    The one of ``asv_anon…`` was trained on protected speech (2024, 2026), as was that of
    ``results-X`` where ``results-X.orig`` lies beside it (2022).
    """
    name = root.parent.name if root.name.endswith("_out") else root.name
    if name.startswith(("asv_anon", "user_asv_eval_anon")) or name.endswith(".anon"):
        return "trained"
    if name.startswith("results"):
        return "trained" if root.with_name(f"{name}.orig").is_dir() else "given"
    return "given" if name.startswith(("asv_orig", "asv_ssl", "asv_pre", "asv_eval")) else None


def _above(place: Path, folder: Path) -> str:
    """Name of the folder in which the ``exp`` of a place lies; "" for the tree itself."""
    parts = place.relative_to(folder).parts
    return parts[parts.index("exp") - 1] if "exp" in parts[1:] else ""


def _states_utility(path: Path) -> bool:
    """Whether a result file has word error rates or recalls, which those of EERs have not."""
    try:
        return any(read_result.metric in ("wer", "uar") for read_result in read_results(path))
    except InputError:
        return False


def _folders(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Every folder below with the names of its files, in order; hidden ones are left."""
    for place, files in folders_below(folder, hidden=False, depth=_DEPTH).items():
        yield place, {path.name for path in files}


def _set_name(match: re.Match[str]) -> str:
    return f"{match['name']}{match['sex'] or ''}{match['common'] or ''}"


def _lists_of(name: str, data: dict[str, Path]) -> Files:
    """Key and utt2spk of a set's unprotected trials, or of any; of both sexes spk2gender too."""
    same = [
        place
        for folder, place in sorted(data.items(), key=lambda item: len(item[0]))
        if (match := _DATA.fullmatch(folder)) and _set_name(match) == name
    ]
    files = {"key": "trials", "speakers": "utt2spk"}
    files |= {"genders": "spk2gender"} if name.endswith("_mixed") else {}
    return {
        what: next((path / file for path in same if (path / file).is_file()), None)
        for what, file in files.items()
    }
