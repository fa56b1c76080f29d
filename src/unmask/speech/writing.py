"""Embeddings to files: npz, parquet or Kaldi ark."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.run import write_whole
from unmask.trials import Embeddings, Ids, check_archive_folder, encode

WRITTEN = (".npz", ".parquet", ".ark")


def write_embeddings(path: str | os.PathLike[str], embeddings: Embeddings) -> tuple[Path, ...]:
    """Write embeddings in the format that the suffix names; the same set gives the same bytes.

    ``.npz`` holds ``embeddings``, ``utt_ids``, ``speaker_ids`` and where known ``session`` and
    further columns; ``.parquet`` the columns ``utterance_id``, ``speaker_id``, ``embedding`` and
    so on; ``.ark`` comes with an ``.scp`` index and ``utt2spk`` beside it. Every file is written
    under a temporary name and renamed.
    """
    target = Path(path)
    if target.suffix not in WRITTEN:
        raise InputError(f"{path}: expected a name that ends in {', '.join(WRITTEN)}")
    if target.suffix == ".npz":
        contents = {target: _npz(embeddings)}
    elif target.suffix == ".parquet":
        contents = {target: _parquet(embeddings)}
    else:
        contents = _ark(target, embeddings)
    for place, content in contents.items():
        write_whole(place, content)
    return tuple(contents)


def _columns(embeddings: Embeddings, names: tuple[str, str, str]) -> dict[str, list[str]]:
    known: dict[str, Ids | None] = {
        names[0]: embeddings.utterances,
        names[1]: embeddings.speakers,
        names[2]: embeddings.sessions,
        **embeddings.columns,
    }
    return {name: ids.to_series().to_list() for name, ids in known.items() if ids is not None}


def _npz(embeddings: Embeddings) -> bytes:
    arrays: dict[str, Any] = {"embeddings": embeddings.vectors}
    for name, values in _columns(embeddings, ("utt_ids", "speaker_ids", "session")).items():
        arrays[name] = np.array(values)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _parquet(embeddings: Embeddings) -> bytes:
    columns = _columns(embeddings, ("utterance_id", "speaker_id", "session"))
    width = embeddings.dimension
    vectors = pl.Series("embedding", embeddings.vectors, dtype=pl.Array(pl.Float32, width))
    table = pl.DataFrame(columns).with_columns(vectors.cast(pl.List(pl.Float32)))
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def _ark(target: Path, embeddings: Embeddings) -> dict[Path, bytes]:
    columns = _columns(embeddings, ("utterance", "speaker", "session"))
    utterances = columns.get("utterance")
    if utterances is None:
        raise InputError(f"{target}: Kaldi files need a name for every utterance")
    check_archive_folder(target)
    order = sorted(range(len(utterances)), key=utterances.__getitem__)
    ark, index = io.BytesIO(), []
    for n in order:
        ark.write(f"{utterances[n]} ".encode())
        index.append(f"{utterances[n]} {target.name}:{ark.tell()}\n")
        ark.write(encode(embeddings.vectors[n].astype(np.float32)))
    owners = "".join(f"{utterances[n]} {columns['speaker'][n]}\n" for n in order)
    return {
        target: ark.getvalue(),
        target.with_suffix(".scp"): "".join(index).encode(),
        target.with_name("utt2spk"): owners.encode(),
    }
