"""CAM++ trained on protected speech of other speakers, and what it makes of twenty unseen voices.

    python -m studies.case_study.attackers DATA OUT --device cuda --seconds 100

DATA holds ``many_speakers_16k`` (641 speakers) and ``audiomnist_5digit_16k`` (60 speakers, of whom
every third is a test speaker). B2, B2r and B2w protect the training speech under keys of the
attacker's own, a new one for every utterance (B2w twice); original and protected
utterances of a speaker are one class. Test speakers are protected as in the bundled case study: the
run attacked, and a run of the attacker under another key. A run that was stopped goes on.

OUT/attackers.npz holds vectors of the test speech by every encoder, OUT/training.npz those of 3 s
of each training utterance by CAM++ as it was, for back-ends, OUT/times.json seconds of each stage.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from studies.case_study.common import (
    MANY,
    MNIST,
    crops,
    loaded,
    named,
    speakers_of,
    trained,
    vectors,
)
from unmask.run import run_on
from unmask.speech import Recipe, anonymise, recordings, safeguard

RUNS = {
    "b2": ({"attacked": 0}, (0,)),
    "b2r": ({"attacked": 1, "own": 2}, (21,)),
    "b2w": ({"attacked": 3, "own": 5}, (31, 32)),
}
"""Seeds of the test runs (those of the bundled case study) and of the training runs."""


def main() -> None:
    """Protect, train, embed."""
    options = arguments()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    times = Times(out / "times.json")
    many = speakers_of(options.data, MANY, options.speakers)
    mnist = speakers_of(options.data, MNIST, options.speakers)
    people = sorted({one.speaker for one in mnist})
    test = [one for one in mnist if one.speaker in people[2::3]]
    training = [*many, *(one for one in mnist if one.speaker not in people[2::3])]
    print(f"{len(training)} recordings train, {len(test)} test", flush=True)
    sets = {("original", "test"): test, ("original", "training"): training}
    for method, (keys, own) in RUNS.items():
        if method not in options.methods:
            continue
        for run, seed in keys.items():
            guard = safeguard(method, seed=seed)
            with times(f"protect {method} {run}"):
                sets[method, run] = protected(test, out / f"audio/{method}-{run}", guard, options)
        for number, seed in enumerate(own):
            guard = safeguard(method, seed=seed, per="utterance")
            with times(f"protect {method} training {number}"):
                sets[method, f"training{number}"] = protected(
                    training, out / f"audio/{method}-training{number}", guard, options
                )
    pretrained(sets, training, out, times, options)
    result: dict[str, np.ndarray] = {}
    tests = {k: v for k, v in sets.items() if not k[1].startswith("training")}
    for method in options.methods:
        for share in (1.0, *options.shares) if method == "b2w" else (1.0,):
            name = method if share == 1.0 else f"{method}-share{round(100 * share)}"
            chosen = some_speakers(sets, method, training, share)
            recipe = Recipe(
                batch=options.batch,
                steps=options.steps,
                rate=options.rate,
                held_out=options.held_out,
                seed=1,
            )
            with times(f"train {name}"):
                made = trained(
                    name,
                    chosen,
                    out,
                    recipe,
                    seconds=options.seconds * (1.0 if share == 1.0 else 0.6),
                    device=options.device,
                    start="campplus",
                )
            print(name, made.curve, flush=True)
            encoder = loaded(made.folder, options.device)
            with times(f"embed with {name}"):
                for (guard, run), files in tests.items():
                    if guard in ("original", method):
                        result[f"{name}/{guard}/{run}"] = vectors(files, encoder, options.device)
    labels = {
        "speaker": np.array([one.speaker for one in test]),
        "utterance": np.array([one.utterance for one in test]),
    }
    np.savez_compressed(out / "attackers.npz", **result, **labels)
    times.write()


def pretrained(sets, training, out, times, options) -> None:
    """Vectors of all sets by CAM++ as it was, for the back-ends."""
    if (out / "training.npz").is_file():
        return
    encoder = untouched(out, training, options)
    with times("embed with campplus"):
        result = {
            f"{guard}/{run}": (
                crops(files, encoder, out / f"decoded/{guard}-{run}")
                if run.startswith("training")
                else vectors(files, encoder, options.device)
            ).astype(np.float16)
            for (guard, run), files in sets.items()
        }
    result["training_speaker"] = np.array([one.speaker for one in training])
    np.savez_compressed(out / "training.npz", **result)


def untouched(out, training, options):
    """CAM++ with its own weights and the same filterbanks as the trained ones, on the device."""
    from unmask.speech.encoders.neural import by_length, checked
    from unmask.speech.training.loop import new_classifier

    device = checked(options.device)
    model = new_classifier(Recipe(), 2, device, "campplus").eval()

    class Untouched:
        name, fingerprint, shortest = "campplus", "campplus untouched", 720

        def encode(self, some):
            return by_length(some, lambda one: model.encoder(model.features(one)), device)

    return Untouched()


def some_speakers(sets, method, training, share):
    """Original and protected recordings of a share of the training speakers."""
    people = sorted({one.speaker for one in training})
    order = np.random.default_rng(7).permutation(len(people))
    kept = {people[n] for n in order[: max(4, round(share * len(people)))]}
    chosen = []
    for (guard, run), files in sets.items():
        if run.startswith("training") and guard in ("original", method):
            chosen += named([one for one in files if one.speaker in kept], f"{guard}-{run}")
    return chosen


def protected(some, folder, guard, options):
    """The protected version of every recording, in the same order; what is there is kept."""
    targets = [folder / f"{one.place}.flac" for one in some]
    left = [one for one, target in zip(some, targets, strict=True) if not target.is_file()]
    if left:
        with run_on("processes", workers=options.workers):
            done = anonymise(left, folder, guard)
        if done.failures:
            raise SystemExit("; ".join(done.failures[:3]))
    by_place = {one.place: one for one in recordings(folder)}
    return [by_place[one.place] for one in some]


class Times:
    """Seconds of stages, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known = json.loads(path.read_text()) if path.is_file() else {}

    @contextmanager
    def __call__(self, name: str):
        begun = time.perf_counter()
        yield
        self.known[name] = round(self.known.get(name, 0) + time.perf_counter() - begun, 1)
        print(f"{name}: {self.known[name]} s", flush=True)
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps(self.known, indent=1))


def arguments() -> argparse.Namespace:
    """Options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=100.0, help="for each training")
    parser.add_argument("--steps", type=int, default=2500, help="at most, for each training")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--held-out", type=int, default=30)
    parser.add_argument("--speakers", type=int, default=None, help="of each set, for a trial")
    parser.add_argument("--methods", nargs="+", default=list(RUNS))
    parser.add_argument("--shares", nargs="*", type=float, default=[])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    main()
