"""Writing embeddings in the formats others read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.run import atomic_file, atomic_path
from unmask.trials.embedding_formats import (
    HDF5_EMBEDDINGS,
    KALDI_ARK,
    NPZ_EMBEDDINGS,
    PARQUET_EMBEDDINGS,
)
from unmask.trials.embeddings import Embeddings
from unmask.trials.formats import format_named
from unmask.trials.ids import Ids
from unmask.trials.kaldi import check_archive_folder
from unmask.trials.kaldi_archive import encode


def write_embeddings(
    embeddings: Embeddings, path: str | Path, *, format: str | None = None
) -> None:
    """Write embeddings as npz, parquet, HDF5 or a Kaldi archive (by ``format`` or by ending).

    A Kaldi archive holds no speakers: ``utt2spk`` is written beside it.
    """
    writers = _writers()
    if format is not None:
        name = format_named(format).name
    else:
        endings = {ending: entry.name for entry in WRITTEN for ending in entry.extensions}
        name = endings.get(Path(path).suffix.lower(), "")
    if name not in writers:
        known = ", ".join(writers)
        raise InputError(
            f"{path}: expected a format of embeddings among {known} (--to), found none"
        )
    writers[name](embeddings, path)


WRITTEN = (NPZ_EMBEDDINGS, PARQUET_EMBEDDINGS, HDF5_EMBEDDINGS, KALDI_ARK)


def _writers() -> dict[str, Callable[[Embeddings, str | Path], None]]:
    return {
        NPZ_EMBEDDINGS.name: _write_npz,
        PARQUET_EMBEDDINGS.name: _write_parquet,
        HDF5_EMBEDDINGS.name: _write_hdf5,
        KALDI_ARK.name: _write_ark,
    }


def _text_columns(embeddings: Embeddings, utterance: str, speaker: str) -> dict[str, pl.Series]:
    columns: dict[str, Ids | None] = {
        utterance: embeddings.utterances,
        speaker: embeddings.speakers,
        "session": embeddings.sessions,
        **embeddings.columns,
    }
    return {name: ids.to_series() for name, ids in columns.items() if ids is not None}


def _write_npz(embeddings: Embeddings, path: str | Path) -> None:
    columns = _text_columns(embeddings, "utt_ids", "speaker_ids")
    arrays = {name: np.array(series.to_list(), dtype=str) for name, series in columns.items()}
    with atomic_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, embeddings=embeddings.vectors, **arrays)


def _write_parquet(embeddings: Embeddings, path: str | Path) -> None:
    columns = _text_columns(embeddings, "utterance_id", "speaker_id")
    vectors = pl.Series("embedding", np.ascontiguousarray(embeddings.vectors))
    with atomic_path(path) as temporary:
        pl.DataFrame({**columns, "embedding": vectors}).write_parquet(temporary)


def _write_hdf5(embeddings: Embeddings, path: str | Path) -> None:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path}: writing HDF5 needs h5py (unmask[formats])") from error
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        file["embedding"] = embeddings.vectors
        for name, series in _text_columns(embeddings, "utterance_id", "speaker_id").items():
            file[name] = series.to_list()


def _write_ark(embeddings: Embeddings, path: str | Path) -> None:
    if embeddings.utterances is None:
        raise InputError(f"{path}: expected utterances for a Kaldi archive, found none")
    check_archive_folder(Path(path))
    utterances = embeddings.utterances.to_series()
    speakers = embeddings.speakers.to_series()
    bad = utterances.str.contains(r"\s") | speakers.str.contains(r"\s")
    if bad.any():
        raise InputError(
            f"{path}: expected identifiers without blanks, found {utterances.filter(bad)[0]!r}"
        )
    with atomic_file(path) as file:
        for utterance, vector in zip(utterances, embeddings.vectors, strict=True):
            file.write(f"{utterance} ".encode() + encode(vector))
    table = pl.DataFrame({"utterance": utterances, "speaker": speakers})
    with atomic_file(Path(path).parent / "utt2spk") as file:
        table.write_csv(file, separator=" ", include_header=False, quote_style="never")
