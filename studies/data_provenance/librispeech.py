"""Make the bundled LibriSpeech readers again: CAM++ embeddings of people in rooms of their own.

    python studies/data_provenance/librispeech.py ../shared/data/audio --work ../librispeech

AUDIO holds ``librispeech_test-other`` (reader/utterance.flac: ten readers, ten utterances each) and
``librispeech_train-clean-100`` (one utterance of each of 251 readers) with its ``SPEAKERS.TXT``. Of
the former the first three seconds of each utterance are embedded, of the latter up to three
segments of three seconds; what is shorter is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

from studies.data_provenance.case_study import digest, librispeech_gender
from unmask._version import __version__
from unmask.run import run_on
from unmask.speech import Extraction, embed, recordings
from unmask.speech.encoders import weights_of

SECONDS = 3.0
PARTS = {"test-other": 1, "train-clean-100": 3}
ENCODER = "campplus"
RESULT = Path(__file__).resolve().parents[2] / "src" / "unmask" / "data" / "librispeech"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("audio", type=Path)
    arguments.add_argument("--work", type=Path, required=True)
    options = arguments.parse_args()
    gender = librispeech_gender(options.audio / "librispeech_train-clean-100" / "SPEAKERS.TXT")
    columns: dict[str, list[str]] = {"speaker_ids": [], "utt_ids": [], "gender": [], "subset": []}
    vectors, sources = [], {}
    for part, most in PARTS.items():
        files = recordings(options.audio / f"librispeech_{part}", speakers="name")
        with run_on(workers=2):
            made = embed(
                files,
                ENCODER,
                extraction=Extraction(segment=SECONDS, most=most),
                parts=options.work / part,
            )
        assert made.embeddings is not None
        people = made.embeddings.speakers.to_series().to_list()
        columns["speaker_ids"] += people
        columns["utt_ids"] += made.embeddings.utterances.to_series().to_list()
        columns["gender"] += [gender[name] for name in people]
        columns["subset"] += [part] * len(people)
        vectors.append(made.embeddings.normalised().vectors.astype(np.float16))
        sources[part] = {
            "readers": made.embeddings.n_speakers,
            "vectors": len(people),
            "segments of an utterance, at most": most,
            "files": len(files),
            "too short, left out": len(made.failures),
            "sha256 of all files in order": digest(files),
        }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, embeddings=np.concatenate(vectors), **columns)
    RESULT.mkdir(exist_ok=True)
    (RESULT / "campplus.npz").write_bytes(buffer.getvalue())
    note = {
        "what": "speaker embeddings (unit vectors, float16) of"
        f" {len(set(columns['speaker_ids']))} LibriSpeech readers, segments of {SECONDS:g} s",
        "speech": "LibriSpeech (Panayotov et al., 2015), from LibriVox recordings, CC BY 4.0",
        "subsets": sources,
        "encoder": {
            "name": ENCODER,
            "weights": weights_of(ENCODER).requirement,
            "sha256": weights_of(ENCODER).sha256,
            "licence": weights_of(ENCODER).licence,
        },
        "packages": {name: version(name) for name in ("numpy", "torch", "soundfile")},
        "made_by": f"studies/data_provenance/librispeech.py, unmask {__version__}",
        "file_sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "limits": "one chapter or utterance of a reader, so one room and microphone: error rates"
        " are optimistic",
    }
    text = json.dumps(note, indent=1, ensure_ascii=False)
    (RESULT / "provenance.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(buffer.getvalue()):,} bytes", {name: len(set(columns[name])) for name in columns})


if __name__ == "__main__":
    main()
