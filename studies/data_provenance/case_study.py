"""Make the bundled case study again: 60 voices, five safeguards, keyed ones twice, two encoders.

    python studies/data_provenance/case_study.py ../shared/data/audio --work ../case-study

AUDIO holds ``audiomnist_5digit_16k`` (speaker/utterance.flac) with its manifest, and
``librispeech_train-clean-100``, whose voices are the pool. A run that was stopped goes on where
it was. The audio itself is not part of the result.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask._version import __version__
from unmask.run import run_on
from unmask.speech import (
    Extraction,
    Recording,
    Safeguard,
    anonymise,
    embed,
    pool_voices,
    recordings,
    safeguard,
)
from unmask.speech.embedding import CONDITIONS
from unmask.speech.encoders import weights_of
from unmask.speech.safeguards import METADATA
from unmask.trials import Embeddings

ENCODERS = ("campplus", "resemblyzer")
PACKAGES = (
    *("numpy", "torch", "soundfile", "webrtcvad-wheels"),
    *("pocketsphinx", "espeakng-loader"),
)
SAFEGUARDS = {
    "b2": safeguard("b2"),
    "b2r": safeguard("b2r", seed=1),
    "b2r-again": safeguard("b2r", seed=2),
    "b2w": safeguard("b2w", seed=3),
    "b2w-again": safeguard("b2w", seed=5),
    "restate": safeguard("restate:digits"),
}
POOLING = {"farthest": 200, "average": 100, "level": "speaker", "variation": True}
POOLED = {"pooling": {**POOLING, "seed": 4}, "pooling-again": {**POOLING, "seed": 6}}
POOL = Extraction(segment=4.0, most=3)
RESULT = Path(__file__).resolve().parents[2] / "src" / "unmask" / "data" / "case_study"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("audio", type=Path)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--workers", type=int, default=None)
    arguments.add_argument(
        "--keep", action="store_true", help="take conditions of the result as they are, add others"
    )
    options = arguments.parse_args()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    original = recordings(options.audio / "audiomnist_5digit_16k", speakers="folder")
    pool = recordings(options.audio / "librispeech_train-clean-100", speakers="name")
    kept = {encoder: bundled(encoder) if options.keep else {} for encoder in ENCODERS}
    sets = {"original": original}
    for name, method in SAFEGUARDS.items():
        if not all(name in known for known in kept.values()):
            sets[name] = protected(original, work / name, method, options.workers)
    people = manifest(options.audio / "audiomnist_manifest.tsv", original)
    pool_gender = librispeech_gender(options.audio / "librispeech_train-clean-100/SPEAKERS.TXT")
    files = {}
    for encoder in ENCODERS:
        vectors = kept[encoder]
        for name, files_of_set in sets.items():
            if name not in vectors:
                parts = work / f"{encoder}-{name}"
                vectors[name] = vectors_of(files_of_set, encoder, parts, options.workers)
        speakers = dict(people.select("speaker", "gender").rows())
        for name, settings in POOLED.items():
            if name not in vectors:
                voices = vectors_of(pool, encoder, work / f"{encoder}-pool", options.workers, POOL)
                vectors[name] = pool_voices(
                    with_gender(vectors["original"], speakers),
                    with_gender(voices, pool_gender),
                    **settings,
                )
        files[f"{encoder}.npz"] = compact({name: vectors[name] for name in CONDITIONS})
    files["people.csv"] = people.write_csv().encode()
    for name, content in files.items():
        (RESULT / name).write_bytes(content)
    note = provenance(original, pool, files)
    if options.keep:
        old = json.loads((RESULT / "provenance.json").read_text(encoding="utf-8"))
        note = {**old, **note, "files": {**old["files"], **note["files"]}}
    (RESULT / "provenance.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    print("\n".join(f"{name}: {len(content):,} bytes" for name, content in files.items()))


def bundled(encoder: str) -> dict[str, Embeddings]:
    """The conditions that the result holds already."""
    people = pl.read_csv(RESULT / "people.csv", infer_schema=False)
    with np.load(RESULT / f"{encoder}.npz", allow_pickle=False) as arrays:
        return {
            name: Embeddings(
                arrays[name].astype(np.float32), people["speaker"], people["utterance"]
            )
            for name in arrays.files
        }


def protected(
    original: tuple[Recording, ...], folder: Path, method: Safeguard, workers: int | None
) -> tuple[Recording, ...]:
    if not (folder / METADATA).exists():
        with run_on(workers=workers):
            result = anonymise(original, folder, method)
        if result.failures:
            raise SystemExit("\n".join(result.failures))
    return recordings(folder, speakers="folder")


def vectors_of(
    files: tuple[Recording, ...],
    encoder: str,
    parts: Path,
    workers: int | None,
    extraction: Extraction | None = None,
) -> Embeddings:
    with run_on(workers=workers):
        result = embed(files, encoder, extraction=extraction, parts=parts)
    if result.failures and extraction is None:
        raise SystemExit("\n".join(result.failures))
    assert result.embeddings is not None
    print(f"{parts.name}: {len(result.embeddings)} vectors, {len(result.failures)} left out")
    return result.embeddings


def manifest(path: Path, original: tuple[Recording, ...]) -> pl.DataFrame:
    """One row per utterance that is part of the study, in the order of the vectors."""
    table = pl.read_csv(path, separator="\t", schema_overrides={"age": pl.String})
    wanted = pl.DataFrame({"utt_id": [one.utterance for one in original]})
    rows = wanted.join(table, on="utt_id", how="left", maintain_order="left")
    return rows.select(
        pl.col("utt_id").alias("utterance"),
        pl.col("speaker_id").alias("speaker"),
        *("gender", "age", "accent", "room"),
    )


def librispeech_gender(path: Path) -> dict[str, str]:
    """Gender of each LibriSpeech reader."""
    gender = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(";") and line.count("|") >= 3:
            reader, sex = (field.strip() for field in line.split("|")[:2])
            gender[reader] = sex.lower()
    return gender


def with_gender(embeddings: Embeddings, gender: dict[str, str]) -> Embeddings:
    return Embeddings(
        embeddings.vectors,
        embeddings.speakers,
        embeddings.utterances,
        columns={"gender": [gender[name] for name in embeddings.speakers.to_series()]},
    )


def compact(vectors: dict[str, Embeddings]) -> bytes:
    """Unit vectors in half precision; the rows of all conditions are those of people.csv.

    What was in half precision before is kept bit by bit.
    """
    arrays = {}
    for name, one in vectors.items():
        halves = np.asarray(one.vectors).astype(np.float16)
        whole = np.array_equal(halves.astype(np.float32), one.vectors)
        arrays[name] = halves if whole else one.normalised().vectors.astype(np.float16)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def provenance(
    original: tuple[Recording, ...],
    pool: tuple[Recording, ...],
    files: dict[str, bytes],
) -> dict[str, Any]:
    return {
        "what": "Speaker embeddings (unit vectors, float16) of 60 voices, original and protected",
        "made by": "studies/data_provenance/case_study.py",
        "tool": f"unmask {__version__}",
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "source": {
            "recordings": {
                "name": "AudioMNIST (Becker et al., 2018), five spoken digits per utterance",
                "licence": "MIT",
                "files": len(original),
                "sha256 of all files in order": digest(original),
            },
            "pool of voices": {
                "name": "LibriSpeech train-clean-100 (Panayotov et al., 2015), 4 s segments",
                "licence": "CC BY 4.0",
                "files": len(pool),
                "sha256 of all files in order": digest(pool),
            },
        },
        "conditions": {
            "original": {},
            **{name: method.describe(key=True) for name, method in SAFEGUARDS.items()},
            **POOLED,
        },
        "encoders": {
            name: {
                "weights": weights_of(name).requirement,
                "sha256": weights_of(name).sha256,
                "licence": weights_of(name).licence,
            }
            for name in ENCODERS
        },
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }


def digest(files: tuple[Recording, ...]) -> str:
    total = hashlib.sha256()
    for one in files:
        total.update(hashlib.sha256(one.path.read_bytes()).digest())
    return total.hexdigest()


if __name__ == "__main__":
    main()
