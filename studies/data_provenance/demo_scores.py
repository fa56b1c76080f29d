"""Make the score table of the demo again: three encoders on the same real trials.

    python studies/data_provenance/demo_scores.py ../shared/data/embeddings

Each of the first two utterances of 60 AudioMNIST speakers is an enrolment; the last fifteen of
every speaker are tested against all of them. Scores are cosines, rounded to four decimals.
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
ENROLLED, FIRST_TESTED = 2, 5
TARGET = Path(__file__).parents[2] / "src" / "unmask" / "data" / "demo"


def cosines(embeddings: Embeddings, enrolled: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Cosine of every enrolled utterance with every tested one."""
    vectors = embeddings.vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[enrolled] @ vectors[tested].T


def main(folder: Path) -> None:
    """Write the table and its provenance."""
    table: dict[str, object] = {}
    inputs = {}
    for name, suffix in ENCODERS.items():
        path = folder / f"audiomnist_1200_{suffix}.npz"
        inputs[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        embeddings = read_embeddings(path)
        speaker = embeddings.speakers.codes
        place = np.array([np.sum(speaker[:i] == speaker[i]) for i in range(len(speaker))])
        enrolled = np.flatnonzero(place < ENROLLED)
        tested = np.flatnonzero(place >= FIRST_TESTED)
        scores = cosines(embeddings, enrolled, tested)
        if not table:
            sex = embeddings.columns["gender"]
            rows, columns = (side.ravel() for side in np.indices(scores.shape))
            sides = {"enrol": enrolled[rows], "test": tested[columns]}
            table = {side: embeddings.utterances.take(at).to_series() for side, at in sides.items()}
            table |= {
                f"{side}_spk": embeddings.speakers.take(at).to_series()
                for side, at in sides.items()
            }
            table |= {f"{side}_sex": sex.take(at).to_series() for side, at in sides.items()}
            table["label"] = (speaker[sides["enrol"]] == speaker[sides["test"]]).astype(np.int8)
        table[name] = np.round(scores.ravel(), 4).astype(np.float32)
    frame = pl.DataFrame(table).with_columns(pl.col(pl.String).cast(pl.Categorical))
    TARGET.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(TARGET / "audiomnist.parquet", compression="zstd", compression_level=19)
    provenance = {
        "what": "cosine scores of 108,000 trials: two enrolment utterances of each of 60 speakers "
        "against fifteen test utterances of each, by three speaker encoders",
        "speech": "AudioMNIST, 60 speakers, five spoken digits an utterance (Becker et al.), MIT",
        "encoders": {
            "campplus": "CAM++ zh-en, 3D-Speaker, Apache-2.0",
            "ecapa": "ECAPA-TDNN, spkrec-ecapa-voxceleb, Apache-2.0",
            "resemblyzer": "Resemblyzer GE2E, Apache-2.0",
        },
        "inputs_sha256": inputs,
        "made_by": f"studies/data_provenance/demo_scores.py, unmask {__version__}",
        "limits": "one session and one room per speaker: error rates are optimistic",
    }
    text = json.dumps(provenance, indent=2, ensure_ascii=False)
    (TARGET / "provenance.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
