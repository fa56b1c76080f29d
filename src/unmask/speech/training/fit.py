"""``train``: recordings in, a folder with an encoder out."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unmask.errors import InputError
from unmask.run import locked
from unmask.speech.audio import needed
from unmask.speech.corpus import Recording
from unmask.speech.training.card import (
    fingerprint_of_folder,
    is_encoder,
    read_card,
    recipe_of,
    refuse_other,
    weights_of_folder,
    write_encoder,
)
from unmask.speech.training.data import (
    Corpus,
    Samples,
    audio_files,
    decode,
    equal_error_rate,
    remarks_on,
    some_of,
    split,
)
from unmask.speech.training.recipe import Recipe, Status

if TYPE_CHECKING:
    from unmask.speech.training.loop import Classifier
    from unmask.speech.training.run import Run

Watch = Callable[[Status], None]
WORK = "work"


@dataclass(frozen=True)
class Trained:
    """What :func:`train` made: the ``folder`` that ``load_encoder`` takes, how many ``steps`` and
    ``speakers``, the best validation ``eer`` if speakers were kept apart, the ``curve`` of (step,
    mean loss, EER), seconds of training, lines of recordings that could not be read, and remarks.
    """

    folder: Path
    steps: int
    speakers: int
    eer: float | None
    curve: tuple[tuple[int, float, float | None], ...]
    seconds: float
    failures: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def train(
    recordings: Sequence[Recording],
    output: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    start: str | None = None,
    validation: Sequence[Recording] | None = None,
    device: str = "cpu",
    watch: Watch | None = None,
) -> Trained:
    """Train a speaker encoder on ``recordings`` and write it into the folder ``output``.

    ``recipe`` has all options, ``start`` names weights to begin with (``campplus``, or the folder
    of a trained encoder with the same network) instead of random ones, ``validation`` recordings of
    other speakers for the validation EER, ``device`` is ``cpu`` or ``cuda``, and ``watch`` is
    called with a :class:`Status` now and then.

    A run that was killed goes on from its checkpoint in the same folder and ends with the same
    weights on a CPU (with the same number of threads). A finished folder is returned as it is if it
    was made from the same recordings with the same options, and refused otherwise. Under
    ``torchrun`` every process calls this with the same arguments, and batches are shared out.
    """
    needed("torch", "torch", "train")
    needed("safetensors", "safetensors", "train")
    chosen = recipe or Recipe()
    folder = Path(output)
    training, kept = split(recordings, chosen, validation)
    name = _run_name(chosen, training, kept, start)
    if is_encoder(folder):
        card = read_card(folder)
        known = card.get("run")
        expected = f"{folder}: expected no encoder, or one"
        refuse_other(name, known if isinstance(known, dict) else {}, expected)
        return _trained(folder, card)
    from unmask.speech.training.run import Run, group

    with group(device) as own:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
        with locked(folder) if own.rank == 0 else nullcontext():
            run = Run(chosen, own, folder / WORK, name, watch)
            made = _made(folder, run, training, kept, start)
            own.wait()
        if own.rank == 0:
            shutil.rmtree(run.folder, ignore_errors=True)
        return made


def _made(
    folder: Path,
    run: Run,
    training: Sequence[Recording],
    kept: Sequence[Recording],
    start: str | None,
) -> Trained:
    recipe, in_turn = run.recipe, run.group.in_turn
    corpus = in_turn(
        lambda: decode(
            training,
            run.folder / "training",
            speeds=recipe.speeds,
            speeds_are_speakers=recipe.speeds_are_speakers,
        )
    )
    apart = in_turn(lambda: decode(kept, run.folder / "validation")) if kept else None
    versions = 1 + len(recipe.speeds)
    remarks = remarks_on(corpus.recordings, corpus.samples.sizes[::versions].tolist(), recipe)
    if len({one.speaker for one in corpus.recordings}) < 2:
        first = corpus.failures[0] if corpus.failures else "no recordings"
        raise InputError(f"training: expected at least 2 speakers, found 1 ({first})")
    if recipe.network == "ivector":
        from unmask.speech.training.ivector import Extraction

        tensors, details = Extraction(run, corpus).train(apart)
    else:
        tensors, details = _network(run, corpus, apart, start)
    card = {"recipe": recipe.to_dict(), "run": run.name, "start": start}
    card |= {"data": _data(corpus, apart), **details}
    if run.group.rank == 0:
        write_encoder(folder, tensors, card)
    failures = (*corpus.failures, *(apart.failures if apart else ()))
    return replace(_trained(folder, card), failures=failures, remarks=remarks)


def _network(
    run: Run, corpus: Corpus, apart: Corpus | None, start: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights of a trained network, and what the card says of the training."""
    from unmask.speech.training.features import responses_of
    from unmask.speech.training.loop import Loop, Plan, placed

    recipe, own = run.recipe, run.group
    if recipe.batch % own.size:
        raise InputError(
            f"batch: expected a multiple of the {own.size} processes, found {recipe.batch}"
        )
    extra = {
        name: own.in_turn(partial(decode, audio_files(path), run.folder / name)).samples
        for name, path in (("noise", recipe.noise), ("responses", recipe.responses))
        if path is not None
    }
    rooms = responses_of(extra["responses"], own.device) if "responses" in extra else None
    count = 0 if rooms is None else len(rooms)
    noise = extra.get("noise")
    plan = Plan(recipe, corpus.samples, corpus.labels, noise, count, own.rank, own.size)
    model = placed(new_classifier(recipe, len(corpus.speakers), start), own.device)
    loop = Loop(run, model, plan, rooms)
    if apart is not None:
        from unmask.speech.encoders.neural import by_length

        samples, labels = some_of(apart)

        def validate() -> float:
            vectors = by_length(samples, lambda s: model.encoder(model.features(s)), own.device)
            return equal_error_rate(vectors, labels)

        loop.validate = validate
    return loop.train()


def new_classifier(recipe: Recipe, speakers: int, start: str | None = None) -> Classifier:
    """A network with its loss, from the seed of the recipe or from the weights that ``start``
    names.
    """
    import torch

    from unmask.speech.training.features import Filterbanks
    from unmask.speech.training.loop import Classifier
    from unmask.speech.training.networks import Angular, Softmax, build

    size = recipe.dimension
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        encoder = build(recipe)
        if recipe.loss == "softmax":
            head = Softmax(size, speakers, hidden=size if recipe.network == "tdnn" else None)
        else:
            head = Angular(size, speakers, kind=recipe.loss, scale=recipe.scale)
    if start is not None:
        try:
            encoder.load_state_dict(_start_weights(start, recipe))
        except RuntimeError as error:
            line = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"{start}: weights of another {recipe.network}: {line}") from None
    return Classifier(Filterbanks(recipe.bins), encoder, head)


def _start_weights(start: str, recipe: Recipe) -> dict[str, Any]:
    import torch

    if start == "campplus":
        from unmask.speech.encoders.weights import installed_path

        if recipe.network != "campplus":
            raise InputError(
                f"start campplus: expected the network campplus, found {recipe.network}"
            )
        return torch.load(installed_path(start), weights_only=True, map_location="cpu")
    network = recipe_of(start).network
    if network != recipe.network:
        raise InputError(f"{start}: expected weights of {recipe.network}, found {network}")
    return {name: torch.from_numpy(value) for name, value in weights_of_folder(start).items()}


def _run_name(
    recipe: Recipe,
    training: Sequence[Recording],
    kept: Sequence[Recording],
    start: str | None,
) -> dict[str, Any]:
    """What names a run: options, weights to begin with, and the files as they are."""
    from unmask.speech.encoders.weights import weights_of

    sha = hashlib.sha256()
    for one in (*training, *kept):
        if one.stamp[0] < 0:
            raise InputError(f"{one.path}: no such file")
        sha.update(f"{one.speaker}\0{one.utterance}\0{one.stamp}\n".encode())
    if start is None:
        begin = "scratch"
    elif is_encoder(start):
        begin = fingerprint_of_folder(start)
    else:
        begin = weights_of(start).fingerprint
    return {
        **recipe.to_dict(),
        "recordings": sha.hexdigest(),
        "trained on": len(training),
        "start": begin,
    }


def _trained(folder: Path, card: dict[str, Any]) -> Trained:
    try:
        return Trained(
            folder,
            int(card["steps"]),
            int(card["data"]["speakers"]),
            card["eer"],
            tuple((int(step), float(loss), eer) for step, loss, eer in card["curve"]),
            float(card["seconds"]),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: expected the whole card of a run, lacks {error}") from None


def _data(corpus: Corpus, apart: Corpus | None) -> dict[str, Any]:
    names = sorted({one.speaker for one in corpus.recordings})
    known: dict[str, Any] = {
        "digest": corpus.digest,
        "speakers": len(names),
        "classes": len(corpus.speakers),
        "recordings": len(corpus.recordings),
        "hours": round(corpus.seconds / 3600, 4),
        "speaker_names": names,
    }
    if apart is not None:
        known["validation"] = {
            "digest": apart.digest,
            "recordings": len(apart.recordings),
            "speaker_names": sorted({one.speaker for one in apart.recordings}),
        }
    return known


def training_seconds(
    recipe: Recipe,
    *,
    speakers: int,
    utterances: int,
    device: str = "cpu",
    start: str | None = None,
) -> float:
    """Seconds that the steps of a training will take, from the time of two of them.

    ``recipe``, ``device`` and ``start`` are those of :func:`train`; ``speakers`` and ``utterances``
    how many there are to train on. Decoding and validation come on top.
    """
    needed("torch", "torch", "train")
    import torch

    from unmask.speech.encoders.neural import checked
    from unmask.speech.training.loop import Loop, Plan, fastest, placed
    from unmask.speech.training.run import Group, Run

    own = checked(device)
    if recipe.network == "ivector":
        from unmask.speech.training.ivector import seconds_of

        return seconds_of(recipe, utterances, own)
    rows = np.zeros(utterances * (1 + len(recipe.speeds)), np.int64)
    model = placed(new_classifier(recipe, speakers, start), own).train()
    plan = Plan(recipe, Samples((), rows, rows, rows), rows)
    loop = Loop(Run(recipe, Group(0, 1, own), Path(), {}), model, plan)
    generator = torch.Generator().manual_seed(recipe.seed)
    batch = {
        "crops": 3000 * torch.randn(recipe.batch, recipe.crop_samples, generator=generator),
        "labels": torch.randint(speakers, (recipe.batch,), generator=generator),
    }
    batch = {name: value.to(own) for name, value in batch.items()}
    taken = []
    with fastest(own):
        for _ in range(2 if own.type == "cpu" else 10):
            begun = time.perf_counter()
            loop.step(model, loop.steps, batch).item()
            taken.append(time.perf_counter() - begun)
    return min(taken) * loop.steps
