"""Speech, spread over all cores: embedding, the McAdams transformation and what utility measures,
against the networks, eigenvalues and models alone on as many cores. Seconds are of processor.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import lfilter

from benchmarks.harness import ratio, spent
from unmask.run import run_on
from unmask.speech import (
    Recording,
    anonymise,
    embed,
    export_onnx,
    read_audio,
    recogniser,
    recordings,
    safeguard,
    write_audio,
)
from unmask.speech.encoders import WEIGHTS, load_encoder
from unmask.speech.vocoding import linear_prediction, poles
from unmask.utility import measure
from unmask.utility.measuring import dnsmos, pitch

AUDIO = Path(__file__).resolve().parents[2] / "shared" / "data" / "audio" / "audiomnist_5digit_16k"
ROWS, SECONDS = 3, 3
"""A batch that a processor core likes best."""


def run() -> None:
    """Print all ratios; real recordings where they are at hand, else noise."""
    with tempfile.TemporaryDirectory() as name, run_on("processes") as place:
        folder = Path(name)
        heard = AUDIO if AUDIO.is_dir() else noise(folder / "in", 1200)
        files = recordings(heard, speakers="folder")
        with place.executor() as pool:
            protection(files[::6], folder / "b2", pool)
            usefulness(files[::120], folder / "b2", pool)
            embedding(files[::2], folder, pool)


def noise(folder: Path, files: int) -> Path:
    """So many files of 3.3 s on average, twenty of a speaker."""
    rng = np.random.default_rng(0)
    for n in range(files):
        (folder / str(n // 20)).mkdir(parents=True, exist_ok=True)
        path = folder / str(n // 20) / f"{n}.wav"
        write_audio(path, 0.1 * rng.standard_normal(rng.integers(40_000, 66_000)))
    return folder


def alone(pool: Any, work: Any, task: Any) -> float:
    """Seconds of the same work on every core at once, on average."""
    return float(np.mean([one for _, one in pool.each(work, [task] * (pool._ahead - 1))]))


def protection(files: Sequence[Recording], folder: Path, pool: Any) -> None:
    """``anonymise --method b2``."""
    anonymise(files[::10], folder, safeguard("b2"))
    start = spent()
    audio = anonymise(files, folder, safeguard("b2")).seconds
    fast = spent() - start
    paths = [str(one.path) for one in files[::5]]
    what = f"anonymise --method b2, {audio:.0f} s of audio"
    ratio(what, fast, audio * alone(pool, eigenvalues, paths), "the eigenvalues alone")
    ratio(what, fast, audio * alone(pool, frame_by_frame, paths[:5]), "frame by frame")
    print(f"{'':52} {fast / audio:8.4f} real-time factor on one core  (aim: at most 0.008)")


def eigenvalues(_: object, paths: Sequence[str]) -> float:
    """Those of the companion matrices, for a second of audio."""
    signal = np.concatenate([read_audio(path).samples for path in paths]).astype(float)
    filters = linear_prediction(sliding_window_view(signal, 320)[::160], 20)
    start = time.process_time()
    poles(filters)
    return (time.process_time() - start) / (signal.size / 16000)


def frame_by_frame(_: object, paths: Sequence[str], alpha: float = 0.8) -> float:
    """The definition as it is usually written: one frame, one polynomial at a time."""
    samples = np.concatenate([read_audio(path).samples for path in paths]).astype(float)
    start = time.process_time()
    window = np.sqrt(np.hanning(321)[:-1])
    output = np.zeros(samples.size + 320)
    for at in range(0, samples.size - 320, 160):
        frame = samples[at : at + 320] * window
        if not frame.any():
            continue
        a = linear_prediction(frame[None], 20)[0]
        roots = np.roots(a)
        angle = np.angle(roots)
        moved = np.abs(roots) * np.exp(1j * np.sign(angle) * np.abs(angle) ** alpha)
        warped = np.poly(np.where(roots.imag == 0, roots, moved)).real
        output[at : at + 320] += window * lfilter([1.0], warped, lfilter(a, [1.0], frame))
    return (time.process_time() - start) / (samples.size / 16000)


def usefulness(files: Sequence[Recording], protected: Path, pool: Any) -> None:
    """``utility``: digits heard by pocketsphinx, pitch, DNSMOS of a file of every speaker."""
    made = {one.utterance: one for one in recordings(protected, speakers="folder")}
    both = [made[one.utterance] for one in files]
    words = dict.fromkeys(made, "one two three four five")
    given: Any = {"transcripts": words, "recogniser": recogniser(grammar="digits"), "mos": None}
    measure(files[:4], {"b2": both[:4]}, **given)
    start = spent()
    measure(files, {"b2": both}, **given)
    elapsed = spent() - start
    floor = alone(pool, models, [str(one.path) for one in (*files, *both)])
    ratio(f"utility, {2 * len(files)} files", elapsed, floor, "the models alone", limit="1.11")


def models(_: object, paths: Sequence[str]) -> float:
    """What the recogniser, WORLD's pitch and DNSMOS take, recordings read before."""
    from unmask.speech.recognisers import _decoder

    heard = [read_audio(path).samples for path in paths]
    decoder = _decoder(recogniser(grammar="digits").grammar)
    dnsmos(heard[0])
    start = time.process_time()
    for samples in heard:
        pitch(samples)
        dnsmos(samples)
        decoder.start_utt()
        decoder.process_raw(np.int16(samples * 32767).tobytes(), no_search=False, full_utt=True)
        decoder.end_utt()
    return time.process_time() - start


def embedding(files: Sequence[Recording], folder: Path, pool: Any) -> None:
    """Networks of torch and of ONNX, and by how much their vectors move in a batch."""
    for name in ("campplus", "resemblyzer"):
        if not WEIGHTS[name].installed:
            print(f"encoder {name}: no weights")
            continue
        names = (name, exported(folder)) if name == "campplus" else (name,)
        for encoder in names:
            before = alone(pool, network, encoder) if name == "campplus" else 0.0
            embed(files[::3], encoder)
            start = spent()
            result = embed(files, encoder)
            elapsed = spent() - start
            what = f"{Path(encoder).name}, {result.seconds:.0f} s of audio"
            if before:
                floor = (before + alone(pool, network, encoder)) / 2 * result.seconds
                against = f"the bare network, {ROWS} x {SECONDS} s"
                ratio(what, elapsed, floor, against, limit="1.11")
                single, few = load_encoder(encoder), files[:64]
                each = [single.encode([read_audio(one.path).samples])[0] for one in few]
                moved = unit(np.stack(each)) - unit(result.embeddings.vectors[: len(few)])
                print(f"{'':<4}unit vectors move by {np.abs(moved).max():.1e} at most (aim: 1e-5)")
            print(f"{what:<52} {elapsed / result.seconds:8.4f} real-time factor on one core")


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def exported(folder: Path) -> str:
    """CAM++ as an ONNX model."""
    from unmask.speech.encoders.card import Recipe, write_encoder

    encoder: Any = load_encoder("campplus")
    tensors = {name: one.numpy() for name, one in encoder.network.state_dict().items()}
    (folder / "network").mkdir()
    recipe = Recipe(network="campplus", dimension=192)
    write_encoder(folder / "network", tensors, {"recipe": asdict(recipe)})
    return str(export_onnx(folder / "network", folder / "campplus.onnx"))


def network(_: object, name: str) -> float:
    """What the network alone takes for a second of speech."""
    import torch

    encoder: Any = load_encoder(name)
    heard = torch.randn(ROWS, 100 * SECONDS, 80)
    if name.endswith(".onnx"):
        call = lambda: encoder._session.run(None, {encoder._input: heard.numpy()})  # noqa: E731
    else:
        call = lambda: encoder.network(heard)  # noqa: E731
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        call()
        start = time.process_time()
        for _ in range(20):
            call()
    torch.set_num_threads(threads)
    return (time.process_time() - start) / (20 * ROWS * SECONDS)
