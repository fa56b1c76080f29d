"""Make the score table of the demo again: three encoders on the same real trials.

    python scripts/make_demo_scores.py ../shared/data/embeddings

Each of 60 AudioMNIST speakers is enrolled with the mean of their first five length-normalised
utterance embeddings; the other fifteen utterances of every speaker are tested against every model.
Scores are cosines, rounded to four decimals.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl

from unmask import __version__
from unmask.trials import Embeddings, read_embeddings

ENCODERS = {"campplus": "campplus192", "ecapa": "ecapa192", "resemblyzer": "resemblyzer256"}
ENROLLED = 5
TARGET = Path(__file__).parents[1] / "src" / "unmask" / "data" / "demo"


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length one."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(embeddings: Embeddings, enrolled: np.ndarray, speaker: np.ndarray) -> np.ndarray:
    """Cosine of every speaker's model with every utterance that was not enrolled."""
    vectors = unit(embeddings.vectors.astype(np.float64))
    models = unit(np.stack([vectors[enrolled & (speaker == s)].mean(axis=0) for s in range(60)]))
    return models @ vectors[~enrolled].T


def main(folder: Path) -> None:
    """Write the table and its provenance."""
    table: dict[str, object] = {}
    inputs = {}
    for name, suffix in ENCODERS.items():
        path = folder / f"audiomnist_1200_{suffix}.npz"
        inputs[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        embeddings = read_embeddings(path)
        speaker = embeddings.speakers.codes
        names = embeddings.speakers.names.to_list()
        place = np.array([np.sum(speaker[:i] == speaker[i]) for i in range(len(speaker))])
        enrolled = place < ENROLLED
        scores = cosines(embeddings, enrolled, speaker)
        tested = speaker[~enrolled]
        if not table:
            sex = embeddings.columns["gender"]
            by_speaker = {int(s): sex.decode(int(np.argmax(speaker == s))) for s in range(60)}
            rows, columns = np.indices(scores.shape)
            utterances = embeddings.utterances.take(~enrolled).to_series()
            table = {
                "enrol": [f"{names[r]}_model" for r in rows.ravel()],
                "test": utterances.gather(columns.ravel()),
                "enrol_spk": [names[r] for r in rows.ravel()],
                "test_spk": [names[s] for s in tested[columns.ravel()]],
                "enrol_sex": [by_speaker[int(r)] for r in rows.ravel()],
                "test_sex": [by_speaker[int(s)] for s in tested[columns.ravel()]],
                "label": (rows.ravel() == tested[columns.ravel()]).astype(np.int8),
            }
        table[name] = np.round(scores.ravel(), 4).astype(np.float32)
    frame = pl.DataFrame(table).with_columns(pl.col(pl.String).cast(pl.Categorical))
    TARGET.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(TARGET / "audiomnist.parquet", compression="zstd", compression_level=19)
    provenance = {
        "what": "cosine scores of 54,000 trials: 60 speakers' models of five utterances against "
        "fifteen test utterances of each, by three speaker encoders",
        "speech": "AudioMNIST, 60 speakers, five spoken digits an utterance (Becker et al.), MIT",
        "encoders": {
            "campplus": "CAM++ zh-en, 3D-Speaker, Apache-2.0",
            "ecapa": "ECAPA-TDNN, spkrec-ecapa-voxceleb, Apache-2.0",
            "resemblyzer": "Resemblyzer GE2E, Apache-2.0",
        },
        "inputs_sha256": inputs,
        "made_by": f"scripts/make_demo_scores.py, unmask {__version__}",
        "limits": "one session and one room per speaker: error rates are optimistic",
    }
    text = json.dumps(provenance, indent=2, ensure_ascii=False)
    (TARGET / "provenance.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
