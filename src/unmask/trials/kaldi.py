"""Kaldi archives, script files and data directories of vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.trials.files import Input
from unmask.trials.ids import Ids, lookup
from unmask.trials.kaldi_archive import Archive
from unmask.trials.speakers import SpeakerRule, read_pairs
from unmask.trials.text import Dialect, TextTable, sample_lines

VECTOR_FILES = ("xvector.scp", "xvector.ark", "embedding.scp", "embedding.ark")


def read_ark(source: Input) -> tuple[list[str], FloatArray]:
    """Utterances and vectors of an archive."""
    return _stack(source.name, Archive(source.name, source.read_all()).entries())


def read_scp(source: Input) -> tuple[list[str], FloatArray, str]:
    """Utterances and vectors of a script file, and the digest of the archives that were used.

    An archive is looked for beside the script file, then below the current folder (as Kaldi names
    it); where both hold one of that name the choice is the user's. Commands and ranges are refused.
    """
    sample_lines(source)
    table = TextTable(
        source,
        Dialect(" "),
        ["utterance", "location"],
        header=False,
        layout="utterance archive:offset",
    )
    ids, _ = table.read(["utterance", "location"], [])
    archives: dict[str, Archive] = {}
    total = hashlib.sha256(source.sha256.encode())

    def entries() -> Iterator[tuple[str, FloatArray]]:
        utterances = ids["utterance"].to_series()
        for row, (utterance, location) in enumerate(
            zip(utterances, ids["location"].to_series(), strict=True)
        ):
            file, offset = _location(location, table.line(row))
            if file not in archives:
                path = _archive_path(file, Path(source.name).parent, table.line(row))
                with Input(path) as archive:
                    archives[file] = Archive(str(path), archive.read_all())
                    total.update(archive.sha256.encode())
            yield utterance, archives[file].vector(offset, utterance)[0]

    utterances, vectors = _stack(source.name, entries())
    return utterances, vectors, total.hexdigest()


def _location(location: str, line: str) -> tuple[str, int]:
    """Archive and byte of ``archive:offset``; a file without offset holds one vector."""
    if "|" in location:
        raise InputError(f"{line}: expected archive:offset, found a command")
    if location.endswith("]"):
        raise InputError(f"{line}: expected archive:offset, found a range of rows ({location})")
    file, colon, offset = location.rpartition(":")
    if colon and file and offset.isdecimal():
        return file, int(offset)
    return location, 0


def _archive_path(file: str, folder: Path, line: str) -> Path:
    beside, here = folder / file, Path(file)
    known = [path for path in (beside, here) if path.is_file()]
    if not known:
        raise InputError(f"{line}: expected an archive, found none at {file}")
    if len(known) == 2 and not beside.samefile(here):
        raise InputError(
            f"{line}: expected one archive {file}, found one beside the script file and another"
            " below the current folder: name it by its whole path"
        )
    return known[0]


def _stack(name: str, entries: Iterable[tuple[str, FloatArray]]) -> tuple[list[str], FloatArray]:
    utterances: list[str] = []
    vectors: list[FloatArray] = []
    for utterance, vector in entries:
        if vectors and vector.shape != vectors[0].shape:
            raise InputError(
                f"{name}: expected {vectors[0].size} dimensions for {utterance}, found "
                f"{vector.size}"
            )
        utterances.append(utterance)
        vectors.append(vector)
    if not vectors:
        raise InputError(f"{name}: the file holds no vectors")
    return utterances, np.stack(vectors)


def vector_file(directory: Path) -> Path:
    """Return the file of vectors in a Kaldi data directory."""
    for name in VECTOR_FILES:
        if (directory / name).is_file():
            return directory / name
    raise InputError(
        f"{directory}: expected a Kaldi directory with {' or '.join(VECTOR_FILES)}, found neither"
    )


def directory_speakers(directory: Path) -> SpeakerRule | None:
    """Speakers from ``utt2spk`` or ``spk2utt`` of a directory, if there."""
    if (directory / "utt2spk").is_file():
        return read_pairs(directory / "utt2spk", layout="utterance speaker", kind="utt2spk")
    if (directory / "spk2utt").is_file():
        return _read_spk2utt(directory / "spk2utt")
    return None


def check_archive_folder(path: Path) -> None:
    """Refuse an archive beside others: ``utt2spk`` holds their speakers and would be replaced."""
    owners = path.with_name("utt2spk")
    others = sorted(other.name for other in path.parent.glob("*.ark") if other.name != path.name)
    if owners.exists() and others:
        raise InputError(
            f"{path}: expected a folder of its own, found {others[0]}, whose speakers {owners.name}"
            " beside it holds and would lose"
        )


def _read_spk2utt(path: Path) -> SpeakerRule:
    with Input(path) as source:
        sample_lines(source)
        try:
            lines = source.read_all().decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: expected UTF-8 text, found other bytes") from error
    pairs = [
        (utterance, fields[0])
        for fields in (line.split() for line in lines)
        for utterance in fields[1:]
    ]
    table = pl.DataFrame(pairs, schema={"utterance": pl.String, "speaker": pl.String}, orient="row")
    if table["utterance"].n_unique() < table.height:
        raise InputError(f"{path}: expected each utterance once, found some of two speakers")
    return SpeakerRule(str(path), table)


def directory_gender(directory: Path, speakers: Ids) -> Ids | None:
    """Gender of each vector's speaker from ``spk2gender``, if that is there."""
    path = directory / "spk2gender"
    if not path.is_file():
        return None
    rule = read_pairs(path, layout="speaker gender", kind="spk2gender")
    assert rule.table is not None
    missing = lookup(speakers.names, rule.table["utterance"]) < 0
    if missing.any():
        raise InputError(
            f"{path}: expected a gender for every speaker, found none for {int(missing.sum())} "
            f"(first: {speakers.names.filter(missing)[0]})"
        )
    gender = Ids.from_strings(rule.of(speakers.names))
    return Ids(gender.codes[speakers.codes], gender.names)
