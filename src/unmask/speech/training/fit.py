"""``train``: recordings in, a folder with an encoder out."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.errors import InputError
from unmask.run import check_output_folder, content_digest, locked, make_folder, overwriting
from unmask.speech.audio import SAMPLE_RATE, needed
from unmask.speech.corpus import Recording
from unmask.speech.encoders import weights_of
from unmask.speech.encoders.card import (
    WEIGHTS as WEIGHTS_FILE,
    Recipe,
    Status,
    fingerprint_of_folder,
    is_encoder,
    read_card,
    refuse_other,
    write_encoder,
)
from unmask.speech.training.data import audio_files, decode, remarks_on, split

if TYPE_CHECKING:
    from unmask.speech.training.run import TrainingRun

WORK = "work"


@dataclass(frozen=True)
class Trained:
    """What :func:`train` made: ``curve`` has (step, mean loss, EER) of every validation, ``eer``
    the best of them, ``failures`` are lines of recordings that could not be read.
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
    watch: Callable[[Status], None] | None = None,
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
    name = run_name(chosen, training, kept, start=start)
    if is_encoder(folder):
        card = read_card(folder)
        known = card.get("run")
        expected = f"{folder}: expected no encoder, or one"
        refuse_other(name, known if isinstance(known, dict) else {}, expected)
        fingerprint_of_folder(folder)
        return _trained(folder, card)
    from unmask.speech.training.run import TrainingRun, group

    check_output_folder(folder, names=f"{WORK}|{WEIGHTS_FILE}")
    with group(device) as own:
        # What lies in this folder is of this run, or of an earlier one that it takes up.
        with locked(make_folder(folder)) if own.rank == 0 else nullcontext(), overwriting():
            run = TrainingRun(chosen, own, folder / WORK, name, watch)
            made = _made(folder, run, training, kept, start)
            own.wait()
        if own.rank == 0:
            shutil.rmtree(run.folder, ignore_errors=True)
        return made


def _made(
    folder: Path,
    run: TrainingRun,
    training: Sequence[Recording],
    kept: Sequence[Recording],
    start: str | None,
) -> Trained:
    recipe, in_turn = run.recipe, run.group.in_turn
    corpus = in_turn(lambda: decode(training, run.folder / "training", recipe))
    apart = in_turn(lambda: decode(kept, run.folder / "validation")) if kept else None
    if len(corpus.names) < 2:
        first = corpus.failures[0] if corpus.failures else "no recordings"
        raise InputError(f"training: expected at least 2 speakers, found 1 ({first})")
    if recipe.network == "ivector":
        from unmask.speech.training.ivector import ExtractorTraining

        tensors, details = ExtractorTraining(run, corpus).train(apart)
    else:
        from unmask.speech.training.loop import train_network

        tensors, details = train_network(run, corpus, apart, start)
    data: dict[str, Any] = {
        "speakers": len(corpus.names),
        "classes": len(corpus.speakers),
        "hours": round(float(corpus.samples.sizes.sum()) / SAMPLE_RATE / 3600, 4),
        **corpus.card,
        **({"validation": apart.card} if apart is not None else {}),
    }
    card = {"recipe": recipe.to_dict(), "run": run.name, "start": start, "data": data, **details}
    if run.group.rank == 0:
        write_encoder(folder, tensors, card)
    failures = (*corpus.failures, *(apart.failures if apart else ()))
    return replace(
        _trained(folder, card, run.position.seconds),
        failures=failures,
        remarks=remarks_on(corpus, recipe),
    )


def run_name(
    recipe: Recipe,
    training: Sequence[Recording],
    kept: Sequence[Recording] = (),
    *,
    start: str | None = None,
) -> dict[str, Any]:
    """What names a run: options, and the content of the weights to begin with and of all files."""
    begin = "scratch"
    if start is not None:
        trained = is_encoder(start)
        begin = fingerprint_of_folder(start) if trained else weights_of(start).fingerprint
    name = {"recordings": _content(*training, *kept), "trained on": len(training), "start": begin}
    for what, folder in (("noise", recipe.noise), ("responses", recipe.responses)):
        if folder is not None:
            name[f"files of {what}"] = _content(*audio_files(folder))
    return {**recipe.to_dict(), **name}


def _content(*recordings: Recording) -> str:
    rows = ((one.speaker, one.utterance, content_digest(one.file)) for one in recordings)
    return hashlib.sha256("\n".join(map("\0".join, rows)).encode()).hexdigest()


def _trained(folder: Path, card: dict[str, Any], seconds: float = 0.0) -> Trained:
    """A finished training; how long it took stands nowhere in its files, which would else differ
    from run to run.
    """
    try:
        return Trained(
            folder,
            int(card["steps"]),
            int(card["data"]["speakers"]),
            card["eer"],
            tuple((int(step), float(loss), eer) for step, loss, eer in card["curve"]),
            seconds,
        )
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: expected the whole card of a run, lacks {error}") from None


def training_seconds(
    recipe: Recipe, *, speakers: int, utterances: int, device: str = "cpu", start: str | None = None
) -> float:
    """Seconds that the steps of :func:`train` will take with a ``recipe``, from the time of two of
    them, for so many ``speakers`` and ``utterances``; decoding and validation come on top.
    """
    needed("torch", "torch", "train")
    from unmask.speech.encoders.neural import checked

    if recipe.network == "ivector":
        from unmask.speech.training.ivector import seconds_of

        return seconds_of(recipe, utterances, checked(device))
    from unmask.speech.training.loop import network_seconds

    return network_seconds(recipe, speakers, utterances, checked(device), start)
