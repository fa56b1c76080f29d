"""What ``unmask privacy`` was given: embeddings, score files or matrices, by safeguard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.engine import Progress
from unmask.errors import InputError
from unmask.privacy.similarity import (
    ALL,
    PrivacyAssessment,
    Safeguard,
    assess_safeguards,
    distortions,
    pseudonymisation,
    pseudonymisation_from_scores,
    read_matrices,
    share,
    speaker_trials,
)
from unmask.privacy.zebra import CalibrationDistortion
from unmask.run import Where
from unmask.scoring import Backend, Plda, Whitening, resolve
from unmask.trials import Embeddings, Scores, Source, read_embeddings, read_scores


@dataclass(frozen=True)
class Inputs:
    """The options that name files, as they were given."""

    original: str | None
    protected: tuple[str, ...]
    scores: tuple[str, ...]
    matrices: tuple[str, ...]
    again: tuple[str, ...]
    backend: str
    train: str | None
    lda: int | None
    speakers: str | None

    def __post_init__(self) -> None:
        embeddings = self.original is not None or bool(self.protected)
        if embeddings + bool(self.scores) + bool(self.matrices) != 1:
            raise InputError("expected --original with --protected, or --scores, or --matrices")
        if embeddings and (self.original is None or not self.protected):
            raise InputError("--original and --protected belong together: one of them is missing")
        if self.matrices and self.again:
            raise InputError("--again needs embeddings or score files, found --matrices")
        if not embeddings and (self.train or self.backend != "cosine"):
            raise InputError("--backend and --train need embeddings, found scores")

    def embeddings(self, path: str) -> Embeddings:
        return read_embeddings(path, speakers=self.speakers)

    def scored(self, path: str) -> Scores:
        return read_scores(path, speakers=self.speakers)

    def scorer(self) -> Backend:
        """The back-end, trained where it has to be."""
        if self.backend.endswith(".npz"):
            return Plda.load(self.backend)
        if self.backend not in ("wccn", "plda"):
            return resolve(self.backend)
        if self.train is None:
            raise InputError(f"--backend {self.backend} needs --train: embeddings to train it on")
        data = self.embeddings(self.train)
        return Plda.fit(data, lda=self.lda) if self.backend == "plda" else Whitening.fit(data)


def assess(
    inputs: Inputs,
    *,
    by: str | None,
    sessions: bool,
    mean: str,
    pairs: str,
    laplace: bool,
    replicates: int,
    level: float,
    seed: int,
    where: Where,
    progress: Progress | None,
) -> tuple[PrivacyAssessment, tuple[Source, ...]]:
    """Read everything and assess it; also the sources, for the result's ``inputs``."""
    if inputs.original is None and (by is not None or sessions):
        raise InputError("--by and --sessions need embeddings, found scores")
    if inputs.scores:
        _refuse_place(where)
        return _from_scores(inputs, mean, pairs, laplace, replicates, level, seed)
    if inputs.matrices:
        return _from_matrices(inputs, mean, pairs, replicates, level, seed, where, progress)
    assert inputs.original is not None
    original = inputs.embeddings(inputs.original)
    protected = {
        name: inputs.embeddings(path) for name, path in named(inputs.protected, "--protected")
    }
    again = {name: inputs.embeddings(path) for name, path in named(inputs.again, "--again")}
    assessment = assess_safeguards(
        original,
        protected,
        again=again,
        by=by,
        with_sessions=sessions,
        backend=inputs.scorer(),
        mean=mean,
        pairs=pairs,
        laplace=laplace,
        replicates=replicates,
        level=level,
        seed=seed,
        on=where.on,
        workers=where.workers,
        state=where.state,
        progress=progress,
    )
    every = (original, *protected.values(), *again.values())
    return assessment, tuple(e.source for e in every if e.source is not None)


def _refuse_place(where: Where) -> None:
    """Lists of scores are read and counted here."""
    given = {
        "--on": where.on != "local",
        "--workers": where.workers is not None,
        "--state": where.state is not None,
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option}: is for embeddings and matrices, found --scores")


def _from_scores(
    inputs: Inputs, mean: str, pairs: str, laplace: bool, replicates: int, level: float, seed: int
) -> tuple[PrivacyAssessment, tuple[Source, ...]]:
    again = dict(named(inputs.again, "--again"))
    safeguards, sources = [], []
    for name, paths in named(inputs.scores, "--scores"):
        files = paths.split(",")
        if len(files) != 3:
            raise InputError(
                f"--scores {name}: expected three files OO,OP,PP, found {len(files)}: {paths}"
            )
        lists = [inputs.scored(path) for path in files]
        result = pseudonymisation_from_scores(
            *lists, mean=mean, pairs=pairs, replicates=replicates, level=level, seed=seed
        )
        runs = [inputs.scored(again.pop(name))] if name in again else []
        made: tuple[CalibrationDistortion, ...] = ()
        if runs:
            both = speaker_trials({"op": lists[1], "again": runs[0]})
            made = distortions(
                *both, laplace=laplace, replicates=replicates, level=level, seed=seed
            )
        safeguards.append(Safeguard(name, ALL, result, made))
        sources += [source for scores in (*lists, *runs) for source in scores.sources]
    if again:
        raise InputError(f"--again {next(iter(again))}: there is no safeguard of that name")
    return PrivacyAssessment(tuple(safeguards), seed), tuple(dict.fromkeys(sources))


def _from_matrices(
    inputs: Inputs,
    mean: str,
    pairs: str,
    replicates: int,
    level: float,
    seed: int,
    where: Where,
    progress: Progress | None,
) -> tuple[PrivacyAssessment, tuple[Source, ...]]:
    safeguards: list[Safeguard] = []
    given = named(inputs.matrices, "--matrices")
    for name, path in given:
        oo, op, pp, speakers = read_matrices(path)
        try:
            result = pseudonymisation(
                oo,
                op,
                pp,
                speakers,
                mean=mean,
                pairs=pairs,
                replicates=replicates,
                level=level,
                seed=seed,
                on=where.on,
                workers=where.workers,
                state=where.state,
                progress=share(progress, len(safeguards), len(given)),
            )
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        safeguards.append(Safeguard(name, ALL, result))
    return PrivacyAssessment(tuple(safeguards), seed), ()


def named(values: Sequence[str], option: str) -> list[tuple[str, str]]:
    """``NAME=VALUE`` options as pairs, each name once."""
    pairs = []
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not name or not path:
            raise InputError(f"{option}: expected NAME=FILE, found {value}")
        pairs.append((name, path))
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{option}: expected each name once, found {name} twice")
    return pairs
