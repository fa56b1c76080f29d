"""Kaldi archives, script files and data directories of vectors."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.files import Input
from unmask.trials.ids import Ids, lookup
from unmask.trials.speakers import SpeakerRule, read_pairs
from unmask.trials.text import Dialect, TextTable, sample_lines

VECTOR_FILES = ("xvector.scp", "xvector.ark", "embedding.scp", "embedding.ark")


def kaldiio_module(name: str) -> Any:
    """Import kaldiio, or say which extra brings it."""
    try:
        import kaldiio
    except ImportError as error:
        raise InputError(
            f"{name}: Kaldi archives need kaldiio (pip install 'unmask[formats]')"
        ) from error
    return kaldiio


def read_ark(source: Input) -> tuple[list[str], np.ndarray]:
    """Utterances and vectors of an archive."""
    kaldiio = kaldiio_module(source.name)
    stream = io.BytesIO(source.read_all())
    return _stack(source.name, kaldiio.load_ark(stream))


def read_scp(source: Input) -> tuple[list[str], np.ndarray]:
    """Utterances and vectors of a script file; entries that are commands are refused."""
    kaldiio = kaldiio_module(source.name)
    sample_lines(source)
    table = TextTable(
        source,
        Dialect(" "),
        ["utterance", "place"],
        header=False,
        layout="utterance archive:offset",
    )
    ids, _ = table.read(["utterance", "place"], [])
    places = ids["place"].to_series().to_list()
    base = Path(source.name).parent
    for row, place in enumerate(places):
        if "|" in place:
            raise InputError(f"{table.line(row)}: expected archive:offset, found a command")
        file = place.rsplit(":", 1)[0]
        if not os.path.isfile(file):
            if not (base / file).is_file():
                raise InputError(f"{table.line(row)}: expected an archive, found none at {file}")
            places[row] = str(base / place)
    utterances = ids["utterance"].to_series().to_list()
    vectors = (kaldiio.load_mat(place) for place in places)
    return _stack(source.name, zip(utterances, vectors, strict=True))


def _stack(name: str, entries: Iterable[tuple[str, Any]]) -> tuple[list[str], np.ndarray]:
    utterances: list[str] = []
    vectors: list[np.ndarray] = []
    try:
        for utterance, vector in entries:
            array = np.asarray(vector)
            if array.ndim == 2 and array.shape[0] == 1:
                array = array[0]
            if array.ndim != 1 or array.dtype.kind != "f":
                raise InputError(
                    f"{name}: expected a vector for {utterance}, found {array.dtype} {array.shape}"
                )
            if vectors and array.shape != vectors[0].shape:
                raise InputError(
                    f"{name}: expected {vectors[0].size} dimensions for {utterance}, found "
                    f"{array.size}"
                )
            utterances.append(utterance)
            vectors.append(array)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: the Kaldi archive cannot be read ({error})") from error
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
