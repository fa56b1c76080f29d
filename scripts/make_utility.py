"""Make the bundled measurements of utility again, and the voices of b1 and pitch.

    python scripts/make_utility.py ../shared/data/audio --work ../utility --utterances 4

AUDIO is that of ``make_case_study.py``. Of each speaker the first utterances are protected with b2,
b2r, b2w (the case study's own keys), b1 (twice, under different keys) and pitch, heard by
pocketsphinx with a grammar of digits, and embedded by CAM++. The audio itself is not part of the
result. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

from unmask._version import __version__
from unmask.run import place
from unmask.speech import (
    Recording,
    Safeguard,
    anonymise,
    embed,
    pooled_voices,
    read_gender,
    recordings,
    safeguard,
)
from unmask.utility import measure, recogniser, write_measurements

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
METADATA = "unmask-anonymise.json"
NEW = ("b1", "b1-again", "pitch")
HEARD = ("b2", "b2r", "b2w", "b1", "pitch")
RESULT = Path(__file__).resolve().parents[1] / "src" / "unmask" / "data" / "case_study"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("audio", type=Path)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--utterances", type=int, default=4)
    arguments.add_argument("--dnsmos", type=int, default=0)
    arguments.add_argument("--workers", type=int, default=None)
    options = arguments.parse_args()
    original = first(recordings(options.audio / "audiomnist_5digit_16k"), options.utterances)
    sets = {"original": original}
    with place(workers=options.workers):
        for name, method in safeguards(options.audio, original).items():
            folder = options.work / name
            if not (folder / METADATA).exists():
                made = method() if callable(method) else method
                failures = anonymise(original, folder, made).failures
                if failures:
                    raise SystemExit("\n".join(failures))
            sets[name] = recordings(folder)
        found = measure(
            original,
            {name: files for name, files in sets.items() if name in HEARD},
            transcripts=transcripts(options.audio / "audiomnist_manifest.tsv"),
            recogniser=recogniser(grammar="digits"),
            mos=options.dnsmos,
            state=options.work / "state",
        )
        vectors = {name: embed(sets[name], parts=options.work / f"parts-{name}") for name in NEW}
    write_measurements(found, options.work / "utility.csv")
    content = (options.work / "utility.csv").read_bytes()
    files = {"utility.csv.gz": gzip.compress(content, 9, mtime=0), "subset.npz": compact(vectors)}
    for name, data in files.items():
        (RESULT / name).write_bytes(data)
    told = json.dumps(note(options.utterances, files), indent=1)
    (RESULT / "utility.json").write_text(told + "\n", encoding="utf-8")


def note(utterances: int, files: dict[str, bytes]) -> dict[str, object]:
    """Where the numbers come from."""
    return {
        "what": f"Utility of the first {utterances} utterances of 60 voices; voices of b1,"
        " b1-again and pitch (CAM++, unit vectors, float16)",
        "made by": "scripts/make_utility.py",
        "tool": f"unmask {__version__}",
        "packages": {
            name: version(name)
            for name in ("pocketsphinx", "jiwer", "pyworld-prebuilt", "speechmos", "numpy")
        },
        "source": "AudioMNIST (Becker et al., 2018), MIT; pool: LibriSpeech train-clean-100"
        " (Panayotov et al., 2015), CC BY 4.0",
        "conditions": {"b1": {"seed": 7}, "b1-again": {"seed": 8}, "pitch": {"semitones": 4.0}},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }


def safeguards(audio: Path, original: tuple[Recording, ...]) -> dict[str, object]:
    """The safeguards; a function makes that which takes long to plan."""
    pool = recordings(audio / "librispeech_train-clean-100", speakers="name")
    people = pl.read_csv(audio / "audiomnist_manifest.tsv", separator="\t")
    gender = read_gender(audio / "librispeech_train-clean-100" / "SPEAKERS.TXT")
    gender |= dict(people.select("speaker_id", "gender").unique().rows())

    def pooled(seed: int) -> Safeguard:
        return pooled_voices(original, pool, gender=gender, seed=seed)

    return {
        "b2": safeguard("b2"),
        "b2r": safeguard("b2r", seed=1),
        "b2w": safeguard("b2w", seed=3),
        "pitch": safeguard("pitch"),
        "b1": lambda: pooled(7),
        "b1-again": lambda: pooled(8),
    }


def first(files: tuple[Recording, ...], number: int) -> tuple[Recording, ...]:
    """The first utterances of each speaker by name."""
    taken: dict[str, int] = {}
    chosen = []
    for one in sorted(files, key=lambda one: one.utterance):
        taken[one.speaker] = taken.get(one.speaker, 0) + 1
        if taken[one.speaker] <= number:
            chosen.append(one)
    return tuple(chosen)


def transcripts(manifest: Path) -> dict[str, str]:
    """The digits of every utterance; a file of the source begins with the digit in it."""
    rows = pl.read_csv(manifest, separator="\t").select("utt_id", "source_files").rows()
    return {name: " ".join(DIGITS[int(part[0])] for part in files.split()) for name, files in rows}


def compact(vectors: dict[str, object]) -> bytes:
    arrays = {}
    for name, one in vectors.items():
        arrays[name] = one.embeddings.normalised().vectors.astype(np.float16)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
