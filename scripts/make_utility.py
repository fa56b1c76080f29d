"""Make the bundled measurements of utility again, and the voices of b1 and pitch.

    python scripts/make_utility.py ../shared/data/audio --work ../utility

AUDIO is that of ``make_case_study.py``. All utterances are protected with b1 (twice, under other
keys) and pitch and embedded by CAM++. The first utterances of each speaker are protected with b2,
b2r and b2w as well (the case study's own keys) and heard by pocketsphinx with a grammar of digits.
The audio itself is not part of the result. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import resource
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

from unmask._version import __version__
from unmask.run import place
from unmask.speech import (
    Anonymised,
    PooledVoices,
    Recording,
    anonymise,
    embed,
    pooled_voices,
    read_audio,
    read_gender,
    recordings,
    safeguard,
    write_audio,
)
from unmask.speech.safeguards import METADATA, SEMITONES, Protected
from unmask.speech.world import analysed, moved, shifted, synthesised
from unmask.utility import measure, recogniser, write_measurements

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OWN, CHILDREN, START = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN, time.monotonic()
NEW = ("b1", "b1-again", "pitch")
HEARD = ("b2", "b2r", "b2w", "b1", "pitch")
KEPT = {"b2": safeguard("b2"), "b2r": safeguard("b2r", seed=1), "b2w": safeguard("b2w", seed=3)}
SEEDS = {"b1": 7, "b1-again": 8}
RESULT = Path(__file__).resolve().parents[1] / "src" / "unmask" / "data" / "case_study"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("audio", type=Path)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--utterances", type=int, default=4)
    arguments.add_argument("--dnsmos", type=int, default=1)
    arguments.add_argument("--workers", type=int, default=None)
    options = arguments.parse_args()
    original = recordings(options.audio / "audiomnist_5digit_16k")
    some = first(original, options.utterances)
    folders = {name: options.work / name for name in (*NEW, *KEPT)}
    with place(workers=options.workers):
        if not (folders["pitch"] / METADATA).exists():
            done(anonymise(original, folders["pitch"], vocoded(options.audio, original, folders)))
        log("protected with b1, b1-again and pitch")
        vectors = {
            name: embed(recordings(folders[name]), parts=options.work / f"parts-{name}")
            for name in NEW
        }
        log("embedded")
        for name, method in KEPT.items():
            if not (folders[name] / METADATA).exists():
                done(anonymise(some, folders[name], method))
        log("protected with b2, b2r and b2w")
        found = measure(
            some,
            {name: first(recordings(folders[name]), options.utterances) for name in HEARD},
            transcripts=transcripts(options.audio / "audiomnist_manifest.tsv"),
            recogniser=recogniser(grammar="digits"),
            mos=options.dnsmos,
            state=options.work / "state",
        )
        log("heard")
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
        " b1-again and pitch, all utterances (CAM++, unit vectors, float16)",
        "made by": "scripts/make_utility.py",
        "tool": f"unmask {__version__}",
        "packages": {
            name: version(name)
            for name in ("pocketsphinx", "jiwer", "pyworld-prebuilt", "speechmos", "numpy")
        },
        "source": "AudioMNIST (Becker et al., 2018), MIT; pool: LibriSpeech train-clean-100"
        " (Panayotov et al., 2015), CC BY 4.0",
        "conditions": {
            **{name: {"seed": seed} for name, seed in SEEDS.items()},
            "pitch": {"semitones": SEMITONES},
        },
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }


def vocoded(audio: Path, original: tuple[Recording, ...], folders: dict[str, Path]) -> Vocoded:
    """The safeguards that WORLD makes, with the pool's voices."""
    pool = recordings(audio / "librispeech_train-clean-100", speakers="name")
    people = pl.read_csv(audio / "audiomnist_manifest.tsv", separator="\t")
    gender = read_gender(audio / "librispeech_train-clean-100" / "SPEAKERS.TXT")
    gender |= dict(people.select("speaker_id", "gender").unique().rows())
    embeddings = embed(pool).embeddings
    log("pool embedded")
    plans = {
        name: pooled_voices(original, pool, gender=gender, embeddings=embeddings, seed=seed)
        for name, seed in SEEDS.items()
    }
    log("pseudo-voices chosen")
    return Vocoded(plans, folders)


@dataclass(frozen=True)
class Vocoded:
    """b1 under two keys, and pitch, of one analysis of each recording: the same bits as one by one.

    The output is that of pitch; those of ``plans`` lie beside it, in ``folders``.
    """

    plans: dict[str, PooledVoices]
    folders: dict[str, Path]
    name = "pitch"

    def protect(self, recording: Recording, output: Path) -> Protected:
        audio = read_audio(recording.path)
        speech = analysed(audio.samples)
        for name, plan in self.plans.items():
            own, pseudo = plan.voices[recording.speaker]
            target = self.folders[name] / output.relative_to(self.folders["pitch"])
            target.parent.mkdir(parents=True, exist_ok=True)
            write_audio(target, synthesised(moved(speech, own, pseudo), audio.samples).samples)
        made = synthesised(shifted(speech, SEMITONES), audio.samples)
        write_audio(output, made.samples)
        return Protected(audio.seconds, made.guarded_db, audio.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        return {"method": "pitch", "semitones": SEMITONES}


def done(result: Anonymised) -> None:
    if result.failures:
        raise SystemExit("\n".join(result.failures))


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
        arrays[name] = one.embeddings.normalised().vectors.astype(np.float16)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
