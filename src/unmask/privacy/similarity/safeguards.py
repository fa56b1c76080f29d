"""Safeguards side by side: the table of Noé 2022 for any number of systems and sets of speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.base import few_speakers
from unmask.engine import Progress
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.similarity.distortion import cross_scores, distortions
from unmask.privacy.similarity.pseudonyms import pseudonymisation_from_embeddings
from unmask.privacy.similarity.result import Pseudonymisation
from unmask.privacy.similarity.session_pairs import SessionAssessment, assess_sessions
from unmask.privacy.similarity.sets import check_backend
from unmask.privacy.zebra.profiles import CalibrationDistortion
from unmask.run import Where, kept_open
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings

ALL = "all"


@dataclass(frozen=True, eq=False)
class Safeguard:
    """One safeguard on one set of speech; ``distortions`` where it was run twice."""

    system: str
    dataset: str
    result: Pseudonymisation
    distortions: tuple[CalibrationDistortion, ...] = ()
    sessions: SessionAssessment | None = None

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The row of Table 2: DeID (plain, strongest), G_VD, D_ECE, C_ECE where known, l_w, tag."""
        row = list(self.result.estimates)
        row[4:4] = [e for d in self.distortions[:1] for e in d.estimates[:1]]
        return tuple(row)

    @property
    def details(self) -> tuple[Estimate, ...]:
        """Everything else: twins, D_diag, all calibrations, sessions."""
        more = [e for d in self.distortions for e in d.estimates]
        over = self.sessions.estimates if self.sessions is not None else ()
        return (*self.result.details, *more, *over)

    @property
    def warnings(self) -> tuple[str, ...]:
        told = [*self.result.warnings]
        told += [f"C_ECE, {d.method}: {text}" for d in self.distortions for text in d.warnings]
        if self.sessions is not None:
            told += [f"sessions: {text}" for text in self.sessions.warnings]
        return tuple(told)


@dataclass(frozen=True, eq=False)
class PrivacyAssessment:
    """What :func:`assess_safeguards` found, in the order of sets, then systems."""

    safeguards: tuple[Safeguard, ...]
    seed: int = 0

    def __iter__(self) -> Iterator[Safeguard]:
        return iter(self.safeguards)

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.system for s in self.safeguards))

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.dataset for s in self.safeguards))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Each with the safeguard and the set that it is about."""
        several = len(self.datasets) > 1
        few = {s: few_speakers(len(s.result.speakers)) for s in self.safeguards}
        told = [
            f"{s.system}{f', {s.dataset}' if several else ''}: {text}"
            for s in self.safeguards
            for text in s.warnings
            if few[s] is None or not text.endswith(few[s] or "")
        ]
        told += [
            f"{s.dataset}: {text}" if several else text
            for s, text in few.items()
            if text and s.result.replicates
        ]
        return tuple(dict.fromkeys(told))


def assess_safeguards(
    original: Embeddings,
    protected: Mapping[str, Embeddings],
    *,
    again: Mapping[str, Embeddings] | None = None,
    by: str | None = None,
    with_sessions: bool = False,
    backend: Backend | str = "cosine",
    mean: str = "geometric",
    pairs: str = "all",
    laplace: bool = True,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> PrivacyAssessment:
    """Assess every safeguard on the same original speech.

    ``again`` holds a second run of some safeguards, which gives their calibration distortion; the
    isotonic map is trained with Laplace unless ``laplace=False``.
    ``by`` splits the speech by a column of the original embeddings (such as gender), as the papers
    do, and assesses each part on its own. ``on``, ``workers`` and ``state`` say where pairs of
    segments are compared; calibration distortion is computed here.
    """
    check_backend(resolve(backend), Where(on, workers, state))
    second = again or {}
    unknown = [name for name in second if name not in protected]
    if unknown:
        raise InputError(f"second run of {unknown[0]}: there is no first run of that name")
    if not protected:
        raise InputError("expected at least one protected set, found none")
    parts = _parts(original, by)
    found: list[Safeguard] = []
    total = len(parts) * len(protected)
    with kept_open():
        for dataset, part in parts.items():
            for system, embeddings in protected.items():
                chosen = _like(part, embeddings, by)
                result = pseudonymisation_from_embeddings(
                    part,
                    chosen,
                    backend=backend,
                    mean=mean,
                    pairs=pairs,
                    replicates=replicates,
                    level=level,
                    seed=seed,
                    on=on,
                    workers=workers,
                    state=state,
                    progress=share(progress, len(found), total),
                )
                runs: tuple[CalibrationDistortion, ...] = ()
                if system in second:
                    scores = [
                        cross_scores(part, run, backend=backend)
                        for run in (chosen, _like(part, second[system], by))
                    ]
                    runs = distortions(
                        *scores, laplace=laplace, replicates=replicates, level=level, seed=seed
                    )
                over = None
                if with_sessions:
                    over = assess_sessions(
                        part,
                        chosen,
                        backend=backend,
                        mean=mean,
                        replicates=replicates,
                        level=level,
                        seed=seed,
                        on=on,
                        workers=workers,
                        state=state,
                    )
                found.append(Safeguard(system, dataset, result, runs, over))
    return PrivacyAssessment(tuple(found), seed)


def _parts(original: Embeddings, by: str | None) -> dict[str, Embeddings]:
    if by is None:
        return {ALL: original}
    column = original.columns.get(by)
    if column is None:
        known = ", ".join(original.columns) or "none"
        raise InputError(f"no column {by} to split by: the columns are {known}")
    parts = {
        str(column.names[int(code)]): original.select(column.codes == code) for code in column.used
    }
    return dict(sorted(parts.items()))


def _like(part: Embeddings, protected: Embeddings, by: str | None) -> Embeddings:
    """The protected segments of the speakers of a part."""
    if by is None:
        return protected
    names = set(part.speakers.names.gather(part.speakers.used).to_list())
    codes = [i for i, name in enumerate(protected.speakers.names) if name in names]
    return protected.select(np.isin(protected.speakers.codes, codes))


def share(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Progress of one of several assessments, told as that of all."""
    if progress is None:
        return None
    outer = progress

    def tell(part: int, whole: int) -> None:
        outer(done * whole + part, total * whole)

    return tell
