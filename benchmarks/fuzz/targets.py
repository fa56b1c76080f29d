"""What reads damaged files, and how many rows a naive reader of the same bytes finds.

A target reads a file and gives the number of rows it took, or ``None`` where rows are not counted.
Its naive count knows nothing of this package; where both count, they must agree.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.fuzz.seeds import ROWS, seeds
from unmask.run import store
from unmask.run.job import Ledger, Total
from unmask.trials import (
    Embeddings,
    read_any,
    read_embeddings,
    read_key,
    read_scores,
    read_speakers,
    streamed_scores,
)

Read = Callable[[Path, random.Random], tuple[int | None, int]]
Count = Callable[[bytes, int], int | None]


@dataclass(frozen=True)
class Target:
    """One kind of file: how it is damaged, read and counted, and how often it is drawn.

    ``read`` gives the rows it took and how many of the lines are no rows (a header).
    """

    name: str
    file: str
    damage: str
    weight: int
    read: Read
    count: Count


def targets() -> dict[str, Target]:
    """All kinds that can be read here."""
    known = (
        Target("text", "x.txt", "text", 60, _table, _lines),
        Target("gzip", "x.txt.gz", "gzip", 8, _table, _packed_lines),
        Target("pairs", "utt2spk.txt", "text", 6, _pairs, _lines),
        Target("npz", "x.npz", "zip", 12, _any, _npz_rows),
        Target("npy", "x.npy", "binary", 4, _matrix, _npy_rows),
        Target("parquet", "x.parquet", "binary", 6, _any, _parquet_rows),
        Target("hdf5", "x.h5", "binary", 3, _any, _hdf5_rows),
        Target("ark", "x.ark", "binary", 10, _vectors, _ark_rows),
        Target("scp", "x.scp", "text", 8, _vectors, _lines),
        Target("config", "x.toml", "text", 8, _config, _uncounted),
        Target("list", "x.lst", "text", 4, _list, _list_rows),
        Target("audio", "x.wav", "binary", 12, _audio, _frames),
        Target("ledger", "results-00000000.npz", "zip", 6, _kept, _uncounted),
    )
    return {one.name: one for one in known if seeds()[one.name]}


def prepare(folder: Path) -> None:
    """Files that damaged ones lie beside."""
    folder.mkdir(parents=True, exist_ok=True)
    made = seeds()
    (folder / "a.ark").write_bytes(made["ark"][0])
    (folder / "utt2spk").write_bytes(made["pairs"][0])
    (folder / "a.npz").write_bytes(made["npz"][4])


def _table(path: Path, rng: random.Random) -> tuple[int, int]:
    way = rng.random()
    if way < 0.05:
        with streamed_scores([path]) as stream:
            rows = sum(len(b.label) for b in stream.batches(stream.systems[0]))
            return rows, _header(stream.sources[0].format)
    read = read_scores if way < 0.4 else read_key if way < 0.6 else read_any
    found = read(path)
    if isinstance(found, Embeddings):
        return len(found), 0
    sources = getattr(found, "sources", None) or (found.source,)
    return len(found), _header(sources[0].format)


def _header(format: str) -> int:
    return int(format.startswith(("long", "nist", "asvspoof")))


def _any(path: Path, rng: random.Random) -> tuple[int, int]:
    read = (read_any, read_any, read_scores, read_embeddings, read_key)[rng.randrange(5)]
    return len(read(path)), 0


def _pairs(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_speakers(path)), 0


def _matrix(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_embeddings(path, speakers=path.with_name("utt2spk"))), 0


def _vectors(path: Path, rng: random.Random) -> tuple[int, int]:
    found = read_embeddings(path) if rng.random() < 0.5 else read_any(path)
    return len(found), 0


def _config(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.report import load_config

    load_config(path)
    return None, 0


def _list(path: Path, rng: random.Random) -> tuple[int, int]:
    from unmask.speech import recordings

    return len(recordings(path)), 0


def _audio(path: Path, rng: random.Random) -> tuple[int | None, int]:
    from unmask.speech.audio import read_audio

    audio = read_audio(path)
    return (audio.samples.size if audio.rate == 16000 else None), 0


def _kept(path: Path, rng: random.Random) -> tuple[None, int]:
    content = path.read_bytes()
    way = rng.randrange(3)
    if way == 0:
        list(Ledger(path.parent).kept())
    elif way == 1:
        path.with_name("total.npz").write_bytes(content)
        Total(path.parent, {"a": np.arange(3.0)})
    else:
        store.from_bytes(content)
    return None, 0


def _uncounted(data: bytes, header: int) -> None:
    return None


def _lines(data: bytes, header: int) -> int:
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    while lines and not lines[-1].strip(b" \t\r"):
        lines.pop()
    return len(lines) - header


def _packed_lines(data: bytes, header: int) -> int:
    content = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return _lines(content, header)


def _list_rows(data: bytes, header: int) -> int:
    return sum(1 for line in data.decode("utf-8-sig").splitlines() if line.strip())


def _npz_rows(data: bytes, header: int) -> int | None:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for pair in (("tar", "non"), ("target", "nontarget"), ("tgt", "imp")):
        if set(pair) <= arrays.keys():
            return len(arrays[pair[0]]) + len(arrays[pair[1]])
    if "scores" in arrays and arrays["scores"].ndim == 2:
        return None if {"mask", "labels"} & arrays.keys() else arrays["scores"].size
    return max(len(array) for array in arrays.values() if array.ndim)


def _npy_rows(data: bytes, header: int) -> int:
    return len(np.load(io.BytesIO(data), allow_pickle=False))


def _parquet_rows(data: bytes, header: int) -> int:
    """Rows as the metadata at the end tell them, not as columns are decoded."""
    return int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())


def _hdf5_rows(data: bytes, header: int) -> int | None:
    import h5py

    with h5py.File(io.BytesIO(data), "r") as file:
        if "embedding" in file:
            return len(file["embedding"])
        if "ID" in file:
            masked = "score_mask" in file or "trial_mask" in file
            return None if masked else file["scores"].size
        return sum(len(group) for group in file.values())


def _ark_rows(data: bytes, header: int) -> int | None:
    """Entries of an archive of vectors in one precision, from the length of all of them."""
    for token, size in ((b"\0BFV \x04", 16), (b"\0BDV \x04", 32)):
        pieces = data.split(token + struct.pack("<i", 4))
        if len(pieces) == ROWS + 1 and data.count(b"\0B") == ROWS:
            middle = [len(piece) - size for piece in pieces[1:]]
            return ROWS if min(middle) >= 0 else None
    return None


def _frames(data: bytes, header: int) -> int | None:
    """Samples that the header of a WAV or FLAC file declares; None where it does not say."""
    if data.startswith(b"fLaC") and len(data) > 26:
        return int.from_bytes(data[21:26], "big") & (2**36 - 1) or None
    if not data.startswith(b"RIFF") or data[8:12] != b"WAVE":
        return None
    at, block = 12, 0
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"fmt ":
            channels, block, bits = struct.unpack("<2xH8xHH", data[at + 8 : at + 24].ljust(16))
            block = block if block * 8 == channels * bits else 0
        if name == b"data":
            stream = size == 0 or size >= 2**31 - 4096
            return None if stream or not block else size // block
        at += 8 + size + size % 2
    return None
