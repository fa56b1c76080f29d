"""Attackers that train the extractor: on which speech, for how long, and all speech through it.

Training goes on from its checkpoint, which is kept under a name made from what it is trained on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.assessment.cache import code_digest
from unmask.assessment.config import AttackerConfig, SafeguardConfig
from unmask.assessment.runs import Runs, Speech, embedding_step, joint_digest, recordings_of
from unmask.trials import Embeddings

if TYPE_CHECKING:
    from unmask.speech import Recording

Say = Callable[[str], None]
NO_RECORDINGS = "its extractor is trained on recordings, and embeddings were given"
NOT_RUNNABLE = "its extractor is trained on protected speech, and no method or command makes such"
_NO_RUN = {
    "own": NOT_RUNNABLE,
    "related": "its extractor is trained on a related safeguard, and none was given that can be"
    " run",
}


class Extractors:
    """Extractors that attackers train on their own ``runs`` of safeguards.

    ``say`` hears before training starts how long it will take.
    """

    def __init__(self, runs: Runs, *, say: Say | None = None) -> None:
        self.runs, self.config, self.work = runs, runs.config, runs.work
        self.say = say or (lambda line: None)
        self.shares = sorted({*runs.config.training.curve, 1.0})

    def why_not(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> str | None:
        """Why an attacker's extractor cannot be trained; None if it can."""
        training = self.config.training if self.config.training.given else self.config.original
        if any(voices.audio is None for voices in (self.config.original, safeguard, training)):
            return NO_RECORDINGS
        runs = {"own": safeguard, "related": self.runs.safeguards.get(safeguard.related or "")}
        for data in sorted(runs.keys() & {*attacker.train, attacker.enrol}):
            run = runs[data]
            if run is None or not self.runs.allowed(run):
                return _NO_RUN[data]
        return None

    def _sets(
        self, safeguard: SafeguardConfig, attacker: AttackerConfig, *, make: bool = True
    ) -> dict[str, tuple[Recording, ...]]:
        """Recordings that an extractor is trained on, by what they are."""
        runs = {"own": safeguard.name, "related": str(safeguard.related)}
        return {
            data: self.runs.own_run(self.runs.safeguards[runs[data]], training=True, make=make)
            if data in runs
            else self.runs.training
            for data in dict.fromkeys(attacker.train)
        }

    def _taught(self, sets: Mapping[str, Sequence[Recording]], share: float) -> list[Recording]:
        """What an extractor is trained on: the recordings of a share of the people."""
        people = self.runs.by_lot(self.runs.training, "share")
        chosen = set(people[: max(2, round(share * len(people)))])
        return [
            replace(recording, utterance=f"{data} {recording.utterance}")
            for data, some in sets.items()
            for recording in some
            if recording.speaker in chosen
        ]

    def trained(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> Speech:
        """All speech of an attack through an extractor of the attacker's own making."""
        from unmask.speech import train

        sets = self._sets(safeguard, attacker)
        speech = {"original": self.runs.tested}
        if self.runs.allowed(safeguard):
            speech["own"] = self.runs.own_run(safeguard)
        attacked = tuple(
            one for one in recordings_of(safeguard) if one.speaker not in self.runs.apart
        )
        name = f"{attacker.name} on {safeguard.name}"

        def through(share: float) -> Speech:
            taught = self._taught(sets, share)
            chosen = {recording.speaker for recording in taught}
            place, start = self._place(name, taught), self._start
            what = f"training the extractor of {name}, {share:.0%} of the people"
            if not self.work.dry:
                with self.work.doing(what):
                    train(taught, place, recipe=self._recipe, start=start, device=self.device)

            def vectors(files: Sequence[Recording], what: str) -> Embeddings:
                step = f"{what} for {name}, {share:.0%}"
                return embedding_step(files, str(place), step, self.work)

            known = {data: vectors(files, f"{data} speech") for data, files in speech.items()}
            protected = vectors(attacked, "protected speech")
            people_of = {d: [x for x in files if x.speaker in chosen] for d, files in sets.items()}
            learnt = {d: vectors(files, f"{d} training speech") for d, files in people_of.items()}
            return Speech(protected, known, learnt, people=len(chosen))

        parts = {share: through(share) for share in self.shares}
        return replace(parts.pop(1.0), shares=parts)

    @property
    def device(self) -> str:
        """Where extractors are trained."""
        if self.config.training.device != "auto":
            return self.config.training.device
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def announce(self, safeguard: SafeguardConfig, attacker: AttackerConfig) -> None:
        """Check who trains; in dry work measure a few steps and say how long it will take."""
        from unmask.speech import is_encoder, training_seconds

        sets = self._sets(safeguard, attacker, make=False)
        name = f"{attacker.name} on {safeguard.name}"
        left = sum(not recording.file.is_file() for files in sets.values() for recording in files)
        waiting = [
            share
            for share in self.shares
            if left or not is_encoder(self._place(name, self._taught(sets, share)))
        ]
        if not waiting or not self.work.dry:
            return
        people = len({recording.speaker for recording in self.runs.training})
        rows = sum(map(len, sets.values()))
        seconds = sum(
            training_seconds(
                self._recipe,
                speakers=max(2, round(share * people)),
                utterances=max(2, round(share * rows)),
                device=self.device,
                start=self._start,
            )
            for share in waiting
        )
        self.work.total += seconds
        first = f" after {left:,} of them are protected" if left else ""
        self.say(
            f"training the extractor of {name} on {people} people, {rows:,} recordings"
            f" ({', '.join(f'{share:.0%}' for share in waiting)} of them), takes about"
            f" {duration(seconds)} on {self.device}{first}"
        )

    @cached_property
    def _recipe(self) -> Any:
        from unmask.speech import Recipe

        return Recipe.from_dict({"seed": self.config.seed, **self.config.training.recipe})

    @property
    def _start(self) -> str | None:
        start = self.config.training.start
        fits = self.config.training.recipe.get("network", "campplus") == "campplus"
        return None if start == "scratch" or (start == "campplus" and not fits) else start

    def _place(self, name: str, taught: Sequence[Recording]) -> Path:
        from unmask.speech import run_name

        if self.work.dry and not all(recording.path.is_file() for recording in taught):
            return self.work.folder / "extractors" / "to be trained"
        identity = json.dumps(run_name(self._recipe, taught, start=self._start))
        return self.work.folder / "extractors" / joint_digest(name, identity, code_digest())[:16]


def duration(seconds: float) -> str:
    """``40 s``, ``3 min`` or ``1.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
