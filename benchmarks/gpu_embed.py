"""Embedding on a CUDA device: from FLAC files and from samples to vectors, and the bare network.

    python benchmarks/gpu_embed.py [FOLDER] [HOURS] [DEVICE]

Needs the package with soundfile, soxr and safetensors, and torch with a CUDA device. FOLDER is an
encoder that `unmask train` wrote; without one, or with "-", CAM++ gets fresh weights, which take as
long. Speech-like files of 2 to 12 s are made, and copied until there are HOURS (5) of them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.signal import lfilter

from unmask.speech import Recording, embed, read_audio, recordings
from unmask.speech.audio import write_audio
from unmask.speech.encoders import load_encoder
from unmask.speech.encoders.card import Recipe, write_encoder
from unmask.speech.encoders.networks import build
from unmask.speech.encoders.neural import inference

DISTINCT, SHARD = 401, 512


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes, and what it gives."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def speech(rng: np.random.Generator, length: int) -> np.ndarray:
    """Pulses and noise through four formants, louder and softer four times a second."""
    phase = np.cumsum(rng.uniform(80, 250) * (1 + 0.05 * rng.standard_normal(length)) / 16000)
    signal = np.diff(np.floor(phase), prepend=0.0) + 0.01 * rng.standard_normal(length)
    for formant in rng.uniform(0.85, 1.15) * np.array([600.0, 1300.0, 2500.0, 3500.0]):
        angle, radius = 2 * np.pi * formant / 16000, 0.97
        signal = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], signal)
    signal *= 0.05 + np.sin(np.pi * 4 * np.arange(length) / 16000) ** 2
    return 0.1 * signal / signal.std()


def corpus(folder: Path, hours: float) -> None:
    """Files speaker/utterance.flac; beyond the first ones they are copies."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2 * 16000, 12 * 16000, DISTINCT)
    contents, total, count = [], 0.0, 0
    while total < 3600 * hours:
        place = folder / f"s{count // 20:05d}" / f"s{count // 20:05d}-{count:06d}.flac"
        place.parent.mkdir(exist_ok=True)
        if count < DISTINCT:
            write_audio(place, speech(rng, int(lengths[count])))
            contents.append(place.read_bytes())
        else:
            place.write_bytes(contents[count % DISTINCT])
        total += lengths[count % DISTINCT] / 16000
        count += 1


def row(what: str, taken: float, audio: float, bare: float = 0.0) -> None:
    """A line: seconds, times real time, and the share of the bare network."""
    ratio = f", {audio / taken / bare:5.2f} of the bare network" if bare else ""
    print(f"{what:<58} {taken:8.3f} s {audio / taken:10,.0f} x real time{ratio}", flush=True)


def passes(network: Any, heard: torch.Tensor, count: int = 20) -> float:
    """Seconds of a pass, the first one aside."""
    network(heard)
    return seconds(lambda: [network(heard) for _ in range(count)])[0] / count


def unit(vectors: Any) -> np.ndarray:
    return np.asarray(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)


def bare_network(encoder: Any) -> float:
    """Seconds of speech in a second of the network, at best."""
    best = 0.0
    for batch in (1, 64, 160):
        heard = torch.randn(batch, 400, 80, device=encoder.device)
        with inference(encoder.device):
            taken = passes(encoder.network, heard)
        row(f"bare network, batches of {batch} x 4 s", taken, batch * 4.0)
        best = max(best, batch * 4.0 / taken)
    with torch.inference_mode():
        row("the same with products of 19 bits (TF32)", passes(encoder.network, heard), 640.0)
    return best


def one_by_one(encoder: Any, samples: list[np.ndarray]) -> np.ndarray:
    """Vectors without any padding."""
    with inference(encoder.device):
        each = (torch.from_numpy(one)[None].to(encoder.device) for one in samples)
        return np.concatenate([encoder.network(encoder.features(one)).cpu() for one in each])


def from_samples(encoder: Any, given: str, files: Sequence[Recording], bare: float) -> None:
    """Decoded speech, no two recordings equally long; and how far vectors lie apart."""
    few = [read_audio(one.path).samples for one in files[:DISTINCT]]
    taken, alone = seconds(lambda: one_by_one(encoder, few[:100]))
    row("decoded, one at a time", taken, sum(one.size for one in few[:100]) / 16000, bare)
    cut = np.random.default_rng(2).integers(0, 4000, len(files))
    every = [few[n % DISTINCT][: -1 - less] for n, less in enumerate(cut.tolist())]
    audio = sum(one.size for one in every) / 16000
    shards = [every[n : n + SHARD] for n in range(0, len(every), SHARD)]
    for again in ("", ", once more"):
        taken, _ = seconds(lambda: [encoder.encode(one) for one in shards])
        row(f"decoded, {len(every)} of 2 to 12 s{again}", taken, audio, bare)
    batched, here = encoder.encode(few[:100]), load_encoder(given).encode(few[:100])
    away = [np.abs(unit(batched) - unit(other)).max() for other in (alone, here)]
    print(
        f"unit vectors differ from one at a time by {away[0]:.1e}, from the CPU's by {away[1]:.1e}"
    )


def from_files(given: str, files: Sequence[Recording], device: str, bare: float) -> None:
    """All that `unmask embed` does but to list the files and to write the vectors."""
    made = []
    for what, places in (
        ("FLAC to vectors", device),
        ("FLAC to vectors, once more", device),
        ("the same in two processes, with their start", f"{device},{device}"),
    ):
        taken, result = seconds(partial(embed, files, given, device=places))
        made.append(result.embeddings.vectors)
        row(what, taken, result.seconds, bare)
    away = max(np.abs(unit(one) - unit(made[0])).max() for one in made)
    print(f"{len(made[0])} vectors, largest difference between these ways {away:.1e}")


def main(given: str = "-", hours: str = "5", device: str = "cuda:0") -> None:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        if given == "-":
            given, recipe = str(root / "encoder"), Recipe()
            Path(given).mkdir()
            fresh = {k: v.numpy() for k, v in build(recipe).state_dict().items()}
            write_encoder(Path(given), fresh, {"recipe": asdict(recipe)})
        (root / "speech").mkdir()
        corpus(root / "speech", float(hours))
        loading, encoder = seconds(lambda: load_encoder(given, device=device))
        noise = 0.1 * np.random.default_rng(1).standard_normal(64000).astype(np.float32)
        first, _ = seconds(lambda: encoder.encode([noise]))
        print(f"start: encoder and CUDA {loading:.2f} s, first recording {first:.2f} s")
        bare = bare_network(encoder)
        files = recordings(root / "speech", speakers="folder")
        from_samples(encoder, given, files, bare)
        from_files(given, files, device, bare)


if __name__ == "__main__":
    main(*sys.argv[1:])
