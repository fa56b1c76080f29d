"""Which recordings there are and who speaks in them: folders, lists, manifests, Kaldi."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from unmask.errors import InputError
from unmask.run import content_digest, files_below, remember_input, text_lines
from unmask.speech.audio import SUFFIXES, cut_of
from unmask.trials import embedding_columns, read_speakers

_SLACK = 0.025
_MANIFEST = re.compile(r"^metadata\.(csv|jsonl)(\.gz)?$|(recordings|supervisions).*\.jsonl(\.gz)?$")


@dataclass(frozen=True)
class Recording:
    """One file, or a cut of one: where it is, what it is called, who speaks, and in which session
    if known.

    ``place`` is where its protected version goes below an output folder, without suffix.
    """

    path: Path
    utterance: str
    speaker: str
    session: str | None = None
    place: PurePosixPath = field(default_factory=PurePosixPath)

    @property
    def file(self) -> Path:
        """The file, where ``path`` names a cut of it."""
        return cut_of(self.path)[0]

    @property
    def digest(self) -> str:
        """SHA-256 of the file; empty where it cannot be read."""
        try:
            return content_digest(self.file)
        except InputError:
            return ""


def first_of_each(names: Iterable[Hashable], most: int) -> list[int]:
    """Places of the first ``most`` of every name."""
    seen: Counter[Hashable] = Counter()
    places = []
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] <= most:
            places.append(place)
    return places


Labeller = Callable[[PurePosixPath], tuple[str, str | None]]


def recordings(
    source: str | os.PathLike[str], *, speakers: str | None = None
) -> tuple[Recording, ...]:
    """The recordings of ``source``: a folder, a Kaldi directory, a manifest or a list.

    A folder with ``wav.scp`` and ``utt2spk`` is a Kaldi directory. Any other folder is searched
    for audio files; ``speakers`` says whose they are: ``folder`` (speaker/…/file; a folder
    between is the session), ``name`` (the file name up to the first ``-`` or ``_``),
    ``pattern:REGEX`` on the path below the folder, with one group or the groups ``speaker`` and
    ``session``, or the path of an ``utt2spk`` file. A file is a list, one recording per line:
    PATH, or SPEAKER and PATH, or UTTERANCE, SPEAKER and PATH, separated by tabs or single spaces.
    ``recordings.jsonl`` with ``supervisions.jsonl`` (lhotse) and ``metadata.csv`` or
    ``metadata.jsonl`` (file_name, speaker) say whose recordings are; gzipped they are read as well.
    An utterance is called by its file name without suffix, or, if two share that, by its path.
    """
    place = Path(source)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    manifest = _manifest(place) if speakers in (None, "folder") else None
    if manifest is not None:
        rows = _from_metadata(manifest) if "metadata" in manifest.name else _from_lhotse(manifest)
    elif place.is_file():
        rows = _from_list(place, speakers)
    elif (place / "wav.scp").is_file():
        rows = _from_kaldi(place)
    else:
        rows = _from_folder(place, speakers)
    for recording in rows:
        remember_input(recording.file)
    if not rows and manifest is not None:
        raise InputError(manifest, "a line for each recording", "none")
    if not rows:
        kinds = " ".join(sorted(SUFFIXES))
        inside = files_below(place) if place.is_dir() else []
        endings = Counter(path.suffix for path in inside if path.is_file())
        found = ", ".join(f"{n:,} {end or 'without ending'}" for end, n in endings.most_common(3))
        raise InputError(f"{place}: expected audio files ({kinds}), found {found or 'none'}")
    seen: dict[str, Path] = {}
    for one in rows:
        first = seen.setdefault(one.utterance, one.path)
        if first is not one.path:
            raise InputError(
                f"{place}: utterance {one.utterance} appears twice: {first} and {one.path}"
            )
    return tuple(rows)


def _from_folder(root: Path, speakers: str | None) -> list[Recording]:
    inside = sorted(
        PurePosixPath(path.relative_to(root).as_posix())
        for path in files_below(root)
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    for path in inside:
        if re.search("[\ud800-\udfff]", path.as_posix()):
            raise InputError(f"{root}: expected file names in UTF-8, found {str(path)!a}")
        if speakers is None and len(path.parts) < 2:
            raise InputError(
                f"{root}: {path} lies in no speaker's folder: say whose the files are"
                " with --speakers (a pool's: --pool-speakers): name, pattern:REGEX or an utt2spk"
            )
    names = {path: path.stem for path in inside}
    if len(set(names.values())) < len(inside):
        names = {path: path.with_suffix("").as_posix() for path in inside}
    label = _labeller(speakers or "folder", names)
    return [
        Recording(root / path, name, *label(path), path.with_suffix(""))
        for path, name in names.items()
    ]


def _labeller(speakers: str, names: Mapping[PurePosixPath, str]) -> Labeller:
    """How a path tells speaker and session; ``names`` are those of the utterances."""
    text = speakers.removeprefix("pattern:")
    pattern, table = re.compile(""), {}
    if text != speakers:
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise InputError(f"pattern {text}: not a regular expression: {error}") from None
        if "speaker" not in pattern.groupindex and pattern.groups != 1:
            raise InputError(f"pattern {text}: expected one group, or groups speaker and session")
    elif speakers not in ("folder", "name"):
        table = read_speakers(speakers)

    def label(path: PurePosixPath) -> tuple[str, str | None]:
        if speakers == "folder":
            if len(path.parts) < 2:
                problem = "expected speaker/…/file, found a file in no speaker's folder"
                raise InputError(f"{path}: {problem}")
            return path.parts[0], "/".join(path.parts[1:-1]) or None
        if speakers == "name":
            return re.split("[-_]", path.stem, maxsplit=1)[0], None
        if not pattern.pattern:
            if names[path] not in table:
                raise InputError(f"{speakers}: no speaker for utterance {names[path]} ({path})")
            return table[names[path]], None
        match = pattern.search(path.as_posix())
        if match is None:
            raise InputError(f"{path}: the pattern {text} does not match")
        parts = match.groupdict()
        if not (speaker := parts.get("speaker", match[1])):
            raise InputError(f"{path}: the pattern {text} finds no speaker")
        return speaker, parts.get("session")

    return label


def _from_kaldi(root: Path) -> list[Recording]:
    files: dict[str, str] = {}
    for number, line in _lines(root / "wav.scp"):
        first, _, rest = line.replace("\t", " ", 1).partition(" ")
        if not rest.strip() or first in files:
            problem = "twice" if first in files else "without a file"
            raise InputError(f"{root / 'wav.scp'}, line {number}: {first} appears {problem}")
        files[first] = rest.strip()
    owners = read_speakers(root / "utt2spk")
    rows = []
    for utterance, file in sorted(files.items()):
        if utterance not in owners:
            raise InputError(f"{root / 'utt2spk'}: no speaker for utterance {utterance}")
        if file.endswith("|"):
            raise InputError(
                f"{root / 'wav.scp'}: {utterance}: expected a file, found a command; write the"
                " audio to files first"
            )
        path = Path(file)
        base = path if path.is_absolute() or os.path.exists(path) else root / path
        rows.append(_placed(base, utterance, owners[utterance]))
    return rows


def _from_list(place: Path, speakers: str | None) -> list[Recording]:
    rows = []
    owners: dict[str, str] = {}
    for number, line in _lines(place):
        fields = line.split("\t") if "\t" in line else line.split(" ", 2)
        *labels, last = fields
        path = Path(last) if Path(last).is_absolute() else place.parent / last
        if len(fields) > 3:
            raise InputError(f"{place}, line {number}: expected at most 3 columns, found more")
        if not labels:
            relative = PurePosixPath(Path(last).as_posix())
            label = _labeller(speakers or "folder", {relative: relative.stem})
            trimmed = PurePosixPath(*relative.parts[-2:]) if speakers is None else relative
            labels = [label(trimmed)[0]]
        utterance = labels[0] if len(labels) == 2 else path.stem
        if "\0" in last:
            raise InputError(f"{place}, line {number}", "the path of a file", "one with a NUL")
        owner = owners.setdefault(os.path.realpath(path), labels[-1])
        if owner != labels[-1]:
            where = f"{place}, line {number}"
            raise InputError(where, f"one speaker of {last}", f"{owner} and {labels[-1]}")
        rows.append(_placed(path, utterance, labels[-1]))
    return rows


def _manifest(place: Path) -> Path | None:
    """The table of metadata or the recordings of lhotse that ``place`` is or holds."""
    if place.is_file():
        return place if _MANIFEST.search(place.name) else None
    inside = {path.name: path for path in sorted(place.iterdir()) if _MANIFEST.search(path.name)}
    for name, path in inside.items():
        if name.startswith("metadata") and _names_speakers(path):
            return path
        if "recordings" in name and name.replace("recordings", "supervisions") in inside:
            return path
    return None


def _names_speakers(path: Path) -> bool:
    """Whether a table of metadata tells files and their speakers."""
    if ".jsonl" in path.name:
        columns = list(next(_objects(path), ("", {}))[1])
    else:
        columns = next(csv.reader(line for _, line in _lines(path)), [])
    return "file_name" in columns and "speakers" in embedding_columns(columns)


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each line of a manifest is, and what it holds: an object, or a row below a header."""
    if ".jsonl" not in path.name:
        yield from _table_rows(path)
        return
    for number, line in _lines(path):
        try:
            held = json.loads(line, object_pairs_hook=partial(_each_once, f"{path}, line {number}"))
        except InputError:
            raise
        except (ValueError, RecursionError):
            held = None
        if not isinstance(held, dict):
            raise InputError(f"{path}, line {number}", "an object of JSON", line[:40])
        yield f"{path}, line {number}", held


def _each_once(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a line: of a name that stands twice, JSON would take the last value."""
    counts = Counter(name for name, _ in pairs)
    for name, count in counts.items():
        if count > 1:
            raise InputError(where, "names of different values", f"{name} twice")
    return dict(pairs)


def _table_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a table with a header, a line each: a quote that stays open ends no line."""
    head: list[str] = []
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            (row,) = csv.reader([line], strict=True)
        except csv.Error as error:
            raise InputError(where, "quotes in pairs, each row on one line", error) from None
        if not head:
            head = row
            counts = Counter(name.strip().lower() for name in head)
            if twice := [name for name, count in counts.items() if count > 1]:
                raise InputError(where, "columns of different names", f"{twice[0]} twice")
        elif len(row) != len(head):
            raise InputError(where, f"{len(head)} columns, as the header has", len(row))
        else:
            yield where, dict(zip(head, row, strict=True))


def _roles(held: Mapping[str, Any], where: str) -> dict[str, str]:
    """File, speaker and session of a line of metadata, where it has them."""
    names = {"file_name": "file_name"} | embedding_columns(held)
    known = {}
    for role in ("file_name", "speakers", "sessions"):
        value = held.get(names.get(role, ""))
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if isinstance(value, bool | float) or not isinstance(value, str | int):
            raise InputError(where, f"text as {names[role]}", json.dumps(value)[:40])
        known[role] = _encodable(str(value), names[role], where)
    return known


def _from_metadata(table: Path) -> list[Recording]:
    """A row for each file: file_name, speaker, and a session where there is one."""
    found: dict[str, tuple[Path, str, str | None]] = {}
    for where, held in _objects(table):
        known = _roles(held, where)
        if not {"file_name", "speakers"} <= known.keys():
            raise InputError(where, "file_name and speaker", ", ".join(map(str, held)))
        file, speaker = known["file_name"], known["speakers"]
        other = found.setdefault(
            file, (_existing(file, table.parent, where), speaker, known.get("sessions"))
        )
        if other[1] != speaker:
            raise InputError(where, f"one speaker of {file}", f"{other[1]} and {speaker}")
    names = {file: Path(file).stem for file in found}
    if len(set(names.values())) < len(found):
        names = {file: Path(file).with_suffix("").as_posix() for file in found}
    return [_placed(path, names[f], who, session) for f, (path, who, session) in found.items()]


def _from_lhotse(manifest: Path) -> list[Recording]:
    """The supervisions of recordings: whole files, or cuts of them."""
    heard = manifest.name.replace("recordings", "supervisions")
    files: dict[str, tuple[Path, float, int]] = {}
    rows, owners, where = [], dict[str, str](), ""
    try:
        for where, held in _objects(
            manifest.with_name(heard.replace("supervisions", "recordings"))
        ):
            kinds = [one["type"] for one in held["sources"]]
            if kinds != ["file"]:
                raise InputError(where, "a recording in one file", ", ".join(kinds))
            path = _existing(held["sources"][0]["source"], manifest.parent, where)
            channels = len(held["sources"][0]["channels"])
            files[held["id"]] = path, _seconds(held, "duration", where), channels
        for where, held in _objects(manifest.with_name(heard)):
            utterance, speaker = _text(held, "id", where), _text(held, "speaker", where)
            if owners.setdefault(utterance, speaker) != speaker:
                both = f"{owners[utterance]} and {speaker}"
                raise InputError(where, f"one speaker of {utterance}", both)
            path, seconds, channels = files[held["recording_id"]]
            start = _seconds(held, "start", where)
            end = start + _seconds(held, "duration", where)
            if start < 0 or end > seconds + _SLACK or end <= start:
                found = f"{start:g} to {end:g} s of {seconds:g} s"
                raise InputError(where, "a cut that lies in its recording", found)
            if np.size(held.get("channel", 0)) < channels:
                raise InputError(where, "all channels", f"one of {channels}: write it to a file")
            if start > _SLACK or end < seconds - _SLACK:
                path = path.with_name(f"{path.name}#t={start:.6f},{end:.6f}")
            rows.append(_placed(path, utterance, speaker))
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(where, "a line of a lhotse manifest", f"no {error}") from None
    return rows


def _text(held: Mapping[str, Any], name: str, where: str) -> str:
    value = held[name]
    if not isinstance(value, str) or not value.strip():
        raise InputError(where, f"a text as {name}", json.dumps(value)[:40])
    return _encodable(value, name, where)


def _encodable(value: str, name: str, where: str) -> str:
    """Refuse half a character, which JSON can write and no file of results can hold."""
    if re.search("[\ud800-\udfff]", value):
        raise InputError(where, f"whole characters as {name}", json.dumps(value)[:40])
    return value


def _seconds(held: Mapping[str, Any], name: str, where: str) -> float:
    value = float(held[name])
    if not math.isfinite(value):
        raise InputError(where, f"a finite {name}", value)
    return value


def _existing(file: str, folder: Path, where: str) -> Path:
    """A file that a manifest names, below the current folder or its own."""
    path = Path(file) if Path(file).is_absolute() or os.path.isfile(file) else folder / file
    if not os.path.isfile(path):
        raise InputError(where, f"the file {file}", "none")
    return path


def _placed(path: Path, utterance: str, speaker: str, session: str | None = None) -> Recording:
    place = PurePosixPath(speaker, *filter(None, [session]), utterance)
    if place.is_absolute() or ".." in place.parts:
        raise InputError(f"{path}: cannot name a file after speaker {speaker}, {utterance}")
    return Recording(path, utterance, speaker, session, place)


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    return [(n, line.strip()) for n, line in enumerate(text_lines(path), 1) if line.strip()]
