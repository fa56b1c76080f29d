"""Reading embeddings, whatever their format."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.embedding_formats import (
    HDF5_EMBEDDINGS,
    KALDI_ARK,
    KALDI_DIR,
    KALDI_SCP,
    NPY_EMBEDDINGS,
    NPZ_EMBEDDINGS,
    PARQUET_EMBEDDINGS,
)
from unmask.trials.embeddings import Embeddings
from unmask.trials.files import Input
from unmask.trials.formats import format_named
from unmask.trials.hdf5 import datasets, is_bosaris, read_hdf5, strings
from unmask.trials.header import normalise
from unmask.trials.ids import Ids, text_ids
from unmask.trials.kaldi import (
    directory_gender,
    directory_speakers,
    read_ark,
    read_scp,
    vector_file,
)
from unmask.trials.npz import load_npz
from unmask.trials.parquet import load_parquet
from unmask.trials.registry import Format
from unmask.trials.source import Source
from unmask.trials.speakers import SpeakerRule, Speakers, assign, speaker_rule

VECTORS = ("embeddings", "embedding", "vectors", "vector", "xvectors", "xvector", "emb")
UTTERANCES = (
    "utt_ids", "utt_id", "utterance_id", "utterance_ids", "utterances", "utterance", "utt", "ids",
)  # fmt: skip
SPEAKERS = (
    "speaker_ids", "speaker_id", "speakers", "speaker", "spk_ids", "spk_id", "spk", "spks",
)  # fmt: skip
SESSIONS = ("session", "sessions", "session_id", "session_ids")
_SCP_LINE = re.compile(rb"^\S+[ \t]+\S+:\d+[ \t]*\r?$")


@dataclass(frozen=True)
class Found:
    """What an embedding file holds; ``digest`` covers further files that it is read from."""

    format: Format
    vectors: Any
    utterances: Any = None
    speakers: Any = None
    sessions: Any = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None


def embedding_container(source: Input) -> str:
    """Kind of file, telling Kaldi archives and script files from other text."""
    if source.container != "text":
        return source.container
    if b"\0B" in source.head[:4096] or source.name.endswith((".ark", ".ark.gz")):
        return "ark"
    if _SCP_LINE.match(source.head.split(b"\n", 1)[0]):
        return "scp"
    return "text"


def read_embeddings(
    path: str | Path, *, format: str | None = None, speakers: Speakers | None = None
) -> Embeddings:
    """Read embeddings from npz, npy, HDF5, parquet, a Kaldi archive, script file or directory.

    ``speakers`` is an ``utt2spk`` file, ``"pattern:REGEX"`` with a group on the utterance, or a
    mapping; without it, the file's own speakers are used, or ``utt2spk`` beside Kaldi files.
    """
    is_directory = str(path) != "-" and Path(path).is_dir()
    file = vector_file(Path(path)) if is_directory else path
    with Input(file) as source:
        return embeddings_from(
            source, format=format, speakers=speakers, directory=str(path) if is_directory else None
        )


def embeddings_from(
    source: Input,
    *,
    format: str | None = None,
    speakers: Speakers | None = None,
    directory: str | None = None,
) -> Embeddings:
    """Read embeddings from an opened input; ``directory`` is the Kaldi directory it belongs to."""
    name = directory or source.name
    expected = None if format is None else format_named(format)
    rule = None if speakers is None else speaker_rule(speakers)
    found = _read(source)
    told = KALDI_DIR if directory else found.format
    if expected is not None and expected is not told:
        raise InputError(f"{name}: expected {expected.name}, found {told.name}")
    is_kaldi = found.format in (KALDI_ARK, KALDI_SCP)
    folder = Path(source.name).parent
    remarks = []
    if rule is None and is_kaldi:
        rule = directory_speakers(folder)
        remarks += [f"speakers from {rule.name}"] if rule else []
    utterances, speaker_ids = _speakers(name, found, rule)
    columns = dict(found.columns)
    gender = directory_gender(folder, speaker_ids) if is_kaldi else None
    if gender is not None:
        columns["gender"] = gender
    if found.format is NPY_EMBEDDINGS:
        remarks.append("utterances in the order of utt2spk")
    if columns:
        remarks.append(f"metadata: {', '.join(columns)}")
    source_told = Source(
        name,
        found.digest or source.sha256,
        told.name,
        speakers=speaker_ids.n_unique,
        detected="; ".join((f"{told.name}: {told.source}", *remarks)),
    )
    return Embeddings(
        found.vectors, speaker_ids, utterances, found.sessions, columns=columns, source=source_told
    )


def holds_embeddings(source: Input) -> bool:
    """Whether an input holds embeddings and not scores or a key."""
    match embedding_container(source):
        case "npz":
            return bool({normalise(name) for name in load_npz(source)} & set(VECTORS))
        case "parquet":
            return bool({normalise(name) for name in load_parquet(source).columns} & set(VECTORS))
        case "hdf5":
            return not read_hdf5(source, lambda file: is_bosaris(datasets(file)))
        case "npy" | "ark" | "scp":
            return True
    return False


def _speakers(name: str, found: Found, rule: SpeakerRule | None) -> tuple[Any, Ids]:
    if found.format is NPY_EMBEDDINGS:
        if rule is None or rule.table is None:
            raise InputError(
                f"{name}: expected an utt2spk file for the rows of a matrix, found none"
            )
        return rule.table["utterance"], Ids.from_strings(rule.table["speaker"])
    if rule is not None:
        if found.utterances is None:
            raise InputError(f"{name}: expected utterances to find speakers for, found none")
        utterances = text_ids(found.utterances, "utterances", name)
        return utterances, assign(utterances, rule)
    if found.speakers is None:
        raise InputError(
            f"{name}: expected speakers in the file or an utt2spk file (--speakers), found neither"
        )
    return found.utterances, text_ids(found.speakers, "speakers", name)


def _read(source: Input) -> Found:
    match embedding_container(source):
        case "npz":
            return _from_table(source, load_npz(source), NPZ_EMBEDDINGS)
        case "npy":
            return Found(NPY_EMBEDDINGS, _load_npy(source))
        case "parquet":
            frame = load_parquet(source)
            return _from_table(
                source, {c: _array(frame[c], source) for c in frame.columns}, PARQUET_EMBEDDINGS
            )
        case "hdf5":
            found: Found = read_hdf5(source, lambda file: _from_hdf5(source, file))
            return found
        case "ark":
            utterances, vectors = read_ark(source)
            return Found(KALDI_ARK, vectors, utterances)
        case "scp":
            utterances, vectors, digest = read_scp(source)
            return Found(KALDI_SCP, vectors, utterances, digest=digest)
    raise InputError(
        f"{source.name}: expected embeddings (npz, npy, HDF5, parquet, Kaldi archive), found "
        f"{'an empty file' if not source.head else 'something else'}"
    )


def _load_npy(source: Input) -> np.ndarray:
    try:
        array = np.load(io.BytesIO(source.read_all()), allow_pickle=False)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{source.name}: the npy file cannot be read ({error})") from error
    return np.asarray(array)


def _array(column: pl.Series, source: Input) -> Any:
    if not column.dtype.is_nested():
        return (
            column
            if column.dtype == pl.String
            else column.cast(pl.String, strict=False).fill_null("")
        )
    lengths = column.list.len() if column.dtype == pl.List else None
    if column.null_count() or (lengths is not None and lengths.n_unique() != 1):
        raise InputError(
            f"{source.name}: expected vectors of one length in column {column.name!r}, found others"
        )
    try:
        return np.array(column.to_list(), dtype=_precision(column.dtype))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source.name}: expected numbers in column {column.name!r}, found {column.dtype}"
        ) from error


def _precision(dtype: pl.DataType) -> Any:
    return np.float32 if getattr(dtype, "inner", None) == pl.Float32 else np.float64


def _from_table(source: Input, arrays: Mapping[str, Any], format: Format) -> Found:
    names = {normalise(name): name for name in arrays}

    def pick(choices: tuple[str, ...]) -> Any:
        return next((arrays[names.pop(c)] for c in choices if c in names), None)

    vectors = pick(VECTORS)
    if vectors is None or np.ndim(vectors) == 0:
        raise InputError(
            f"{source.name}: expected {format.layout}, found {', '.join(arrays) or 'nothing'}"
        )
    utterances, speakers, sessions = pick(UTTERANCES), pick(SPEAKERS), pick(SESSIONS)
    columns = {
        short: arrays[name]
        for short, name in names.items()
        if np.ndim(arrays[name]) == 1 and len(arrays[name]) == len(vectors)
    }
    return Found(format, vectors, utterances, speakers, sessions, columns)


def _from_hdf5(source: Input, file: Any) -> Found:
    found = datasets(file)
    names = {normalise(name) for name in found}
    if names & set(VECTORS):
        arrays = {
            name: dataset[()] if dataset.ndim == 2 else strings_or_numbers(dataset)
            for name, dataset in found.items()
        }
        return _from_table(source, arrays, HDF5_EMBEDDINGS)
    if not found:
        raise InputError(f"{source.name}: the file holds no vectors")
    vectors: list[np.ndarray] = []
    speakers = []
    for name, dataset in found.items():
        vector = np.asarray(dataset[()]).squeeze()
        if (
            vector.ndim != 1
            or vector.dtype.kind != "f"
            or vector.shape != np.shape((vectors or [vector])[0])
        ):
            raise InputError(
                f"{source.name}: expected a vector like the first for {name}, found "
                f"{dataset.dtype} {dataset.shape}"
            )
        vectors.append(vector)
        speaker = dataset.attrs.get("speaker_id", dataset.attrs.get("speaker"))
        speakers.append(speaker.decode() if isinstance(speaker, bytes) else speaker)
    known = None if any(speaker is None for speaker in speakers) else [str(s) for s in speakers]
    return Found(HDF5_EMBEDDINGS, np.stack(vectors), list(found), known)


def strings_or_numbers(dataset: Any) -> np.ndarray:
    """A one-dimensional dataset as text, whatever it holds."""
    values = np.asarray(dataset[()]).ravel()
    return values.astype(str) if values.dtype.kind in "biuf" else strings(dataset)
