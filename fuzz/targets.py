"""What reads damaged files, and how many rows a naive reader of the same bytes finds.

A target reads a file and gives the number of rows it took, or ``None`` where rows are not counted.
Its naive count knows nothing of this package; where both count, they must agree.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fuzz.seeds import ROWS, installed, seeds
from unmask.run import store
from unmask.run.job import Ledger, Total
from unmask.trials import (
    Embeddings,
    ParquetFile,
    read_any,
    read_embeddings,
    read_key,
    read_scores,
    read_speakers,
    streamed_scores,
)
from unmask.utility import read_labels, read_measurements, read_transcripts

_DIGEST = hashlib.sha256(b"".join(seeds()["weights"])).hexdigest().encode()
Read = Callable[[Path, random.Random], tuple[int | None, int]]
Count = Callable[[bytes, int], int | None]


@dataclass(frozen=True)
class Target:
    """One kind of file: how it is damaged, read and counted, and how often it is drawn.

    ``read`` gives the rows it took and how many of the lines are no rows (a header); ``needs`` is
    the package that reads it, if not every installation has it.
    """

    name: str
    file: str
    damage: str
    weight: int
    read: Read
    count: Count
    needs: str = ""

    @property
    def missing(self) -> bool:
        """Whether the package that reads it is not installed."""
        return bool(self.needs) and not installed(self.needs)


def targets() -> dict[str, Target]:
    """All kinds that can be read here."""
    return {one.name: one for one in _known() if not one.missing}


def left_out() -> dict[str, str]:
    """Kinds that cannot be read here, and the package that is missing."""
    return {one.name: one.needs for one in _known() if one.missing}


def _known() -> tuple[Target, ...]:
    return (
        Target("text", "x.txt", "text", 60, _table, _lines),
        Target("gzip", "x.txt.gz", "gzip", 8, _table, _packed_lines),
        Target("pairs", "utt2spk.txt", "text", 6, _pairs, _pair_rows),
        Target("npz", "x.npz", "zip", 12, _any, _npz_rows),
        Target("npy", "x.npy", "binary", 4, _matrix, _npy_rows),
        Target("parquet", "x.parquet", "binary", 6, _any, _parquet_rows),
        Target("hdf5", "x.h5", "binary", 3, _any, _hdf5_rows, "h5py"),
        Target("ark", "x.ark", "binary", 10, _vectors, _ark_rows),
        Target("scp", "x.scp", "text", 8, _vectors, _lines),
        Target("config", "x.toml", "text", 8, _config, _uncounted, "pydantic"),
        Target("list", "x.lst", "text", 4, _list, _filled_lines),
        Target("audio", "x.wav", "binary", 12, _audio, _frames, "soundfile"),
        Target("ledger", "results-00000000.npz", "zip", 6, _kept, _uncounted),
        Target("plan", "tree.json", "text", 4, _plan, _uncounted),
        Target("model", "model.npz", "zip", 4, _model, _uncounted),
        Target("slices", "slices.npz", "zip", 4, _slices, _slice_rows),
        Target("measured", "x.csv", "text", 4, _measured, _filled_lines),
        Target("words", "text", "text", 4, _words, _filled_lines),
        Target("sheet", "words.csv", "text", 6, _words, _filled_lines),
        Target("labels", "labels.csv", "text", 4, _labels, _filled_lines),
        Target("spoken", "words.jsonl", "text", 4, _words, _filled_lines),
        Target("metadata", "metadata.csv", "text", 6, _list, _named_files),
        Target("objects", "metadata.jsonl", "text", 6, _list, _named_objects),
        Target("supervised", "supervisions.jsonl", "text", 6, _list, _filled_lines),
        Target("recorded", "lhotse/recordings.jsonl", "text", 4, _list, _uncounted),
        Target("scripts", "kaldi/wav.scp", "text", 4, _kaldi, _filled_lines),
        Target("map", "map.json", "text", 4, _map, _uncounted),
        Target("stated", "results_x.csv", "text", 4, _stated, _uncounted),
        Target("ranked", "result_for_rank_x", "text", 4, _stated, _uncounted),
        Target("written", "ASR-libri_dev_asr", "text", 2, _stated, _uncounted),
        Target("genders", "spk2gender", "text", 3, _genders, _uncounted),
        Target("card", "encoder/card.json", "text", 6, _encoder, _uncounted, "safetensors"),
        Target(
            "weights",
            "encoder/weights.safetensors",
            "binary",
            4,
            _encoder,
            _uncounted,
            "safetensors",
        ),
    )


def prepare(folder: Path) -> None:
    """Files that damaged ones lie beside."""
    folder.mkdir(parents=True, exist_ok=True)
    made = seeds()
    (folder / "a.ark").write_bytes(made["ark"][0])
    (folder / "utt2spk").write_bytes(made["pairs"][0])
    (folder / "a.npz").write_bytes(made["npz"][4])
    (folder / "a0.npy").write_bytes(made["npy"][0])
    for name in ("encoder", "lhotse", "kaldi"):
        (folder / name).mkdir(exist_ok=True)
    for i in range(ROWS):
        (folder / f"f{i}.wav").write_bytes(b"")
        (folder / "lhotse" / f"f{i}.wav").write_bytes(b"")
    (folder / "recordings.jsonl").write_bytes(made["recorded"][0])
    (folder / "lhotse" / "supervisions.jsonl").write_bytes(made["supervised"][0])
    (folder / "kaldi" / "utt2spk").write_bytes(made["pairs"][0])


def _table(path: Path, rng: random.Random) -> tuple[int, int]:
    way = rng.random()
    if way < 0.05:
        with streamed_scores([path]) as stream:
            list(stream.batches(stream.systems[0]))
            return sum(stream.counts.values()), _header(stream.sources[0].format)
    read = read_scores if way < 0.4 else read_key if way < 0.6 else read_any
    result = read(path)
    if isinstance(result, Embeddings):
        return len(result), 0
    sources = getattr(result, "sources", None) or (result.source,)
    return len(result), _header(sources[0].format)


def _header(format: str) -> int:
    return int(format.startswith(("long", "nist", "asvspoof", "bob-csv", "bt4vt", "forensic")))


def _any(path: Path, rng: random.Random) -> tuple[int, int]:
    if path.suffix == ".parquet" and rng.random() < 0.3:
        file = ParquetFile.opened(path)
        return file.select(list(file.schema)).slice(0, file.height).height, 0
    read = (read_any, read_any, read_scores, read_embeddings, read_key)[rng.randrange(5)]
    return len(read(path)), 0


def _pairs(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_speakers(path)), 0


def _matrix(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_embeddings(path, speakers=path.with_name("utt2spk"))), 0


def _vectors(path: Path, rng: random.Random) -> tuple[int, int]:
    result = read_embeddings(path) if rng.random() < 0.5 else read_any(path)
    return len(result), 0


def _config(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.assessment import load_config

    load_config(path)
    return None, 0


def _list(path: Path, rng: random.Random) -> tuple[int, int]:
    from unmask.speech import recordings

    return len(recordings(path)), 0


def _kaldi(path: Path, rng: random.Random) -> tuple[int, int]:
    return _list(path.parent, rng)


def _map(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.engine import read_map

    read_map(path)
    return None, 0


def _stated(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.assessment.challenge import read_results

    read_results(path)
    return None, 0


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


def _plan(path: Path, rng: random.Random) -> tuple[None, int]:
    store.read_folder(path.parent)
    return None, 0


def _model(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.privacy.similarity.api import read_matrices
    from unmask.scoring.plda import Plda

    if rng.random() < 0.5:
        Plda.load(path)
    else:
        read_matrices(path)
    return None, 0


def _slices(path: Path, rng: random.Random) -> tuple[int, int]:
    from unmask.scoring.shards import shards_of

    shards = shards_of(path)
    return sum(len(vectors) for one in shards for _, vectors in one.slices()), 0


def _measured(path: Path, rng: random.Random) -> tuple[int, int]:
    kept = read_measurements(path)
    commented = path.read_bytes().removeprefix(b"\xef\xbb\xbf").startswith(b"#")
    return len(kept.utterances) * len(kept.values), 1 + commented


def _words(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_transcripts(path, empty=rng.random() < 0.5)), int(path.suffix == ".csv")


def _labels(path: Path, rng: random.Random) -> tuple[int, int]:
    return len(read_labels(path)), 1


def _genders(path: Path, rng: random.Random) -> tuple[None, int]:
    from unmask.speech import read_gender

    read_gender(path)
    return None, 0


def _encoder(path: Path, rng: random.Random) -> tuple[None, int]:
    """A folder of a card and weights, of which one is damaged; the hash on the card may fit."""
    from unmask.speech.encoders import card, fingerprint_of, load_encoder

    weights, note = path.with_name(card.WEIGHTS), path.with_name(card.CARD)
    if path == weights:
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        fitting = rng.choice(seeds()["card"]).replace(_DIGEST, digest.encode())
        note.write_bytes(fitting if rng.random() < 0.9 else seeds()["card"][0])
    else:
        weights.write_bytes(seeds()["weights"][0])
    card.recipe_of(path.parent)
    fingerprint_of(str(path.parent))
    card.weights_of_folder(path.parent)
    if rng.random() < 0.01 and installed("torch"):
        load_encoder(str(path.parent))
    return None, 0


def _uncounted(data: bytes, header: int) -> None:
    return None


def _lines(data: bytes, header: int) -> int:
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    while lines and not lines[-1].strip(b" \t\r"):
        lines.pop()
    return len(lines) - header


def _pair_rows(data: bytes, header: int) -> int:
    """Lines of two words, or the words behind the first where all lines have more."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    words = [line.split() for line in lines if line.strip()]
    if all(len(line) > 2 for line in words):
        return len({name for line in words for name in line[1:]})
    return _lines(data, header)


def _filled_lines(data: bytes, header: int) -> int:
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n")
    return sum(1 for line in lines if line.decode().strip()) - header


def _named_files(data: bytes, header: int) -> int:
    """Different names of files in a table."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n").split("\n")
    rows = [next(csv.reader([line])) for line in lines if line.strip()]
    at = [name.strip() for name in rows[0]].index("file_name")
    return len({row[at] for row in rows[1:]})


def _named_objects(data: bytes, header: int) -> int:
    """Different names of files in lines of JSON."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode().split("\n")
    return len({json.loads(line.strip())["file_name"] for line in lines if line.strip()})


def _packed_lines(data: bytes, header: int) -> int:
    content = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return _lines(content, header)


def _npz_rows(data: bytes, header: int) -> int | None:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for pair in (("tar", "non"), ("target", "nontarget"), ("tgt", "imp")):
        if set(pair) <= arrays.keys():
            return len(arrays[pair[0]]) + len(arrays[pair[1]])
    if "scores" in arrays and arrays["scores"].ndim == 2:
        return None if {"mask", "labels"} & arrays.keys() else arrays["scores"].size
    return max(len(array) for array in arrays.values() if array.ndim)


def _slice_rows(data: bytes, header: int) -> int | None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "embeddings.npy" not in archive.namelist():
            return None
        return _npy_rows(archive.read("embeddings.npy"), header)


def _npy_rows(data: bytes, header: int) -> int:
    return len(np.load(io.BytesIO(data), allow_pickle=False))


def _parquet_rows(data: bytes, header: int) -> int:
    """Rows as the metadata at the end tell them, not as columns are decoded."""
    return int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())


def _hdf5_rows(data: bytes, header: int) -> int | None:
    import h5py

    with h5py.File(io.BytesIO(data), "r") as file:
        vectors = next((name for name in ("embedding", "emb") if name in file), None)
        if vectors is not None:
            return len(file[vectors])
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
