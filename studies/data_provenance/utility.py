"""Make the bundled measurements of utility again, and the voices of b1 and pitch.

    python studies/data_provenance/utility.py ../shared/data/audio --work ../utility

AUDIO is that of ``case_study.py``. The first utterances of each speaker are protected with b1
(twice, under different keys), pitch, b2, b2r, b2w (the case study's own keys) and restate, and
heard by pocketsphinx with a grammar of digits; b1 and pitch are embedded by CAM++. The audio itself
is not part of the result. A run that was stopped goes on where it was; ``--keep`` takes what the
result holds as it is, and adds conditions that were not heard yet.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import io
import json
import resource
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

from unmask._version import __version__
from unmask.run import run_on
from unmask.speech import (
    PooledVoices,
    Recording,
    Safeguard,
    anonymise,
    embed,
    pooled_voices,
    pooling,
    read_gender,
    recordings,
    safeguard,
)
from unmask.speech.safeguards import METADATA, SEMITONES
from unmask.utility import case_study_utility, measure, recogniser, write_measurements

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OWN, CHILDREN, START = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN, time.monotonic()
PACKAGES = (
    *("pocketsphinx", "jiwer", "pyworld-prebuilt", "speechmos", "numpy"),
    "espeakng-loader",
)
NEW = ("b1", "b1-again", "pitch")
HEARD = ("b2", "b2r", "b2w", "b1", "pitch", "restate")
SAFEGUARDS = {
    "b2": safeguard("b2"),
    "b2r": safeguard("b2r", seed=1),
    "b2w": safeguard("b2w", seed=3),
    "pitch": safeguard("pitch"),
    "restate": safeguard("restate:digits"),
}
SEEDS = {"b1": 7, "b1-again": 8}
RESULT = Path(__file__).resolve().parents[2] / "src" / "unmask" / "data" / "case_study"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("audio", type=Path)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--utterances", type=int, default=4)
    arguments.add_argument("--dnsmos", type=int, default=1)
    arguments.add_argument("--workers", type=int, default=None)
    arguments.add_argument("--keep", action="store_true")
    options = arguments.parse_args()
    original = first(recordings(options.audio / "audiomnist_5digit_16k"), options.utterances)
    known = case_study_utility() if options.keep else None
    heard = tuple(name for name in HEARD if known is None or name not in known.conditions)
    with run_on(workers=options.workers):
        plans: dict[str, Safeguard] = {n: one for n, one in SAFEGUARDS.items() if n in heard}
        if known is None and not all((options.work / name / METADATA).exists() for name in SEEDS):
            plans |= pooled_plans(options.audio, original, options.work)
            log("pseudo-voices chosen")
        for name, method in plans.items():
            folder = options.work / name
            if not (folder / METADATA).exists():
                failures = anonymise(original, folder, method).failures
                if failures:
                    raise SystemExit("\n".join(failures))
            log(f"protected with {name}")
        made = (*SAFEGUARDS, *SEEDS) if known is None else heard
        sets = {name: recordings(options.work / name) for name in made}
        vectors = {
            name: embed(sets[name], parts=options.work / f"parts-{name}").embeddings
            for name in NEW
            if name in sets
        }
        log("embedded")
        result = measure(
            original,
            {name: sets[name] for name in heard},
            transcripts=transcripts(options.audio / "audiomnist_manifest.tsv"),
            recogniser=recogniser(grammar="digits"),
            mos=options.dnsmos,
            state=options.work / "state",
        )
        log("heard")
    if known is not None:
        assert (result.utterances, result.recogniser) == (known.utterances, known.recogniser)
        result = replace(known, values={**known.values, **{n: result.values[n] for n in heard}})
    write_measurements(result, options.work / "utility.csv")
    content = (options.work / "utility.csv").read_bytes()
    subset = compact(vectors) if vectors else (RESULT / "subset.npz").read_bytes()
    files = {"utility.csv.gz": gzip.compress(content, 9, mtime=0), "subset.npz": subset}
    for name, data in files.items():
        (RESULT / name).write_bytes(data)
    text = json.dumps(note(options.utterances, files), indent=1)
    (RESULT / "utility.json").write_text(text + "\n", encoding="utf-8")


def note(utterances: int, files: dict[str, bytes]) -> dict[str, object]:
    """Where the numbers come from."""
    return {
        "what": f"Utility of the first {utterances} utterances of 60 voices; voices of b1,"
        " b1-again and pitch (CAM++, unit vectors, float16)",
        "made by": "studies/data_provenance/utility.py",
        "tool": f"unmask {__version__}",
        "packages": {name: version(name) for name in PACKAGES},
        "source": "AudioMNIST (Becker et al., 2018), MIT; pool: LibriSpeech train-clean-100"
        " (Panayotov et al., 2015), CC BY 4.0",
        "conditions": {
            **{name: {"seed": seed} for name, seed in SEEDS.items()},
            "pitch": {"semitones": SEMITONES},
            "restate": SAFEGUARDS["restate"].describe(),
        },
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }


def pooled_plans(
    audio: Path, original: tuple[Recording, ...], work: Path
) -> dict[str, PooledVoices]:
    """b1 under two keys, whose pool is embedded and analysed once."""
    pool = recordings(audio / "librispeech_train-clean-100", speakers="name")
    people = pl.read_csv(audio / "audiomnist_manifest.tsv", separator="\t")
    gender = read_gender(audio / "librispeech_train-clean-100" / "SPEAKERS.TXT")
    gender |= dict(people.select("speaker_id", "gender").unique().rows())
    embeddings = embed(pool, parts=work / "parts-pool").embeddings
    log("pool embedded")
    pooling._voices = functools.cache(pooling._voices)
    return {
        name: pooled_voices(original, pool, gender=gender, embeddings=embeddings, seed=seed)
        for name, seed in SEEDS.items()
    }


def log(what: str) -> None:
    """What is finished, after how many seconds, of processor time too."""
    used = sum(sum(resource.getrusage(who)[:2]) for who in (OWN, CHILDREN))
    print(f"{what}: {time.monotonic() - START:.0f} s, {used:.0f} s of processors", flush=True)


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
        arrays[name] = one.normalised().vectors.astype(np.float16)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
