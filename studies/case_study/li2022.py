"""The six systems of Li et al. (2022, table 1), trained on 641 speakers, heard on others.

    python -m studies.case_study.li2022 DATA OUT --device cuda --seconds 90

DATA holds ``many_speakers_16k`` for training, ``audiomnist_5digit_16k`` and
``librispeech_test-other`` for testing. A run that was stopped goes on. OUT/li2022.npz has the
vectors of the test sets by system, and of the training set for those that PLDA scores.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from studies.case_study.attackers import Times
from studies.case_study.common import (
    LIBRI,
    MANY,
    MNIST,
    crops,
    loaded,
    speakers_of,
    trained,
    vectors,
)
from unmask.speech import Recipe, train

SYSTEMS = {
    "1-ivector": Recipe(network="ivector", components=512, dimension=200, iterations=10),
    "2-tdnn-tsp-softmax": Recipe(network="tdnn", pooling="tsp", loss="softmax"),
    "3-tdnn-tsp-am": Recipe(network="tdnn", pooling="tsp", loss="am"),
    "4-resnet34-tsp-am": Recipe(network="resnet34", pooling="tsp", loss="am"),
    "5-resnet34-tsp-aam": Recipe(network="resnet34", pooling="tsp", loss="aam"),
    "6-resnet34-asp-am": Recipe(network="resnet34", pooling="asp", loss="am"),
}
"""Margin 0.2 and scale 30, as in the paper; no augmentation, as in the paper."""


def main() -> None:
    """Train, embed."""
    from dataclasses import replace

    options = arguments()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    times = Times(out / "li2022-times.json")
    training = speakers_of(options.data, MANY, options.speakers)
    tests = {name: speakers_of(options.data, name, options.speakers) for name in (MNIST, LIBRI)}
    result: dict[str, np.ndarray] = {}
    for name, recipe in SYSTEMS.items():
        part = out / f"{name}.npz"
        if not part.is_file():
            with times(f"train {name}"):
                if recipe.network == "ivector":
                    recipe = replace(
                        recipe, held_out=options.held_out, components=options.components, seed=1
                    )
                    made = train(training, out / name, recipe=recipe, device=options.device)
                else:
                    recipe = replace(
                        recipe,
                        batch=options.batch,
                        steps=options.steps,
                        rate=options.rate,
                        held_out=options.held_out,
                        seed=1,
                    )
                    made = trained(
                        name, training, out, recipe, seconds=options.seconds, device=options.device
                    )
            print(name, made.curve, flush=True)
            encoder = loaded(made.folder, options.device)
            with times(f"embed {name}"):
                own = {k: vectors(v, encoder, options.device) for k, v in tests.items()}
                if name[0] in "12":
                    own["training"] = crops(training, encoder, out / "decoded")
            np.savez(part, **{k: v.astype(np.float16) for k, v in own.items()})
        with np.load(part) as arrays:
            result |= {f"{name}/{k}": arrays[k] for k in arrays.files}
    for name, some in {**tests, "training": training}.items():
        result[f"{name}/speaker"] = np.array([one.speaker for one in some])
        result[f"{name}/utterance"] = np.array([one.utterance for one in some])
    np.savez_compressed(out / "li2022.npz", **result)
    times.write()


def arguments() -> argparse.Namespace:
    """Options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=90.0, help="for each network")
    parser.add_argument("--steps", type=int, default=3000, help="at most, for each network")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--components", type=int, default=512)
    parser.add_argument("--held-out", type=int, default=30)
    parser.add_argument("--speakers", type=int, default=None, help="of each set, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    main()
