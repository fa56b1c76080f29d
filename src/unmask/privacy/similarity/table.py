"""Safeguards side by side: the table of Noé 2022 for any number of systems and sets of speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.similarity.distortion import cross_scores, distortions
from unmask.privacy.similarity.lists import RunScores, speaker_trials
from unmask.privacy.similarity.pseudonyms import Options, Speakers, pseudonymisation
from unmask.privacy.similarity.result import Pseudonymisation
from unmask.privacy.similarity.session_pairs import SessionAssessment, sessions
from unmask.privacy.zebra import CalibrationDistortion
from unmask.run import part, reporting
from unmask.scoring import Backend
from unmask.trials import Embeddings, Scores

ALL = "all"
Lists = tuple[Scores, Scores, Scores]
Matrices = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, Speakers]


@dataclass(frozen=True, eq=False)
class Safeguard:
    """One safeguard on one set of speech: a row of :class:`PrivacyAssessment`.

    ``distortions`` where it was run twice, ``sessions`` where they were assessed.
    """

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
    def cautions(self) -> tuple[str, ...]:
        """What to be careful about whatever the number of speakers."""
        messages = [*self.result.cautions]
        messages += [f"C_ECE, {d.method}: {text}" for d in self.distortions for text in d.warnings]
        if self.sessions is not None:
            messages += [f"sessions: {text}" for text in self.sessions.cautions]
        return tuple(messages)


@dataclass(frozen=True, eq=False)
class PrivacyAssessment:
    """What :func:`safeguards` found, in the order of sets, then systems."""

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
        messages = [
            f"{s.system}{f', {s.dataset}' if several else ''}: {text}"
            for s in self.safeguards
            for text in s.cautions
        ]
        messages += [
            f"{s.dataset}: {s.result.few}" if several else s.result.few
            for s in self.safeguards
            if s.result.few
        ]
        return tuple(dict.fromkeys(messages))


@overload
def safeguards(
    original: Embeddings,
    protected: Mapping[str, Embeddings],
    /,
    *,
    again: Mapping[str, Embeddings] | None = ...,
    by: str | None = ...,
    with_sessions: bool = ...,
    backend: Backend | str = ...,
    laplace: bool = ...,
    **options: Unpack[Options],
) -> PrivacyAssessment: ...


@overload
def safeguards(
    lists: Mapping[str, Lists],
    /,
    *,
    again: Mapping[str, Scores] | None = ...,
    laplace: bool = ...,
    **options: Unpack[Options],
) -> PrivacyAssessment: ...


@overload
def safeguards(
    matrices: Mapping[str, Matrices], /, **options: Unpack[Options]
) -> PrivacyAssessment: ...


def safeguards(
    *data: Any,
    again: Mapping[str, Any] | None = None,
    by: str | None = None,
    with_sessions: bool = False,
    backend: Backend | str = "cosine",
    laplace: bool = True,
    **options: Unpack[Options],
) -> PrivacyAssessment:
    """Assess every safeguard on the same original speech.

    ``data`` is the ``original`` embeddings and those of the ``protected`` speech by name of the
    safeguard; or, by name, the three lists of scored trials (OO, OP, PP) or the three score
    matrices and the speakers that :func:`pseudonymisation` takes. ``again`` holds a second run of
    some safeguards (embeddings, or lists of OP trials), which gives their calibration distortion;
    the isotonic map is trained with Laplace unless ``laplace=False``. For embeddings only: ``by``
    splits the speech by a column of the original set (such as gender), as the papers do, and
    assesses each part on its own; ``with_sessions`` adds :func:`sessions`; ``backend`` compares.
    ``options`` are the ``mean``, ``pairs``, ``replicates``, ``level`` and ``seed`` of
    :func:`pseudonymisation`.
    """
    original, systems = data if len(data) == 2 else (None, *data)
    second = again or {}
    unknown = [name for name in second if name not in systems]
    if unknown:
        raise InputError(f"second run of {unknown[0]}: there is no first run of that name")
    if not systems:
        raise InputError("expected at least one protected set, found none")
    if original is None and (by is not None or with_sessions):
        raise InputError("by and sessions need embeddings, found scores")
    given: dict[str, Any] = dict(options)
    drawn = {name: given[name] for name in ("replicates", "level", "seed") if name in given}
    shared = {name: value for name, value in given.items() if name != "pairs"}
    parts = {ALL: None} if original is None else _parts(original, by)
    rows: list[Safeguard] = []
    for (dataset, part_of), (system, own) in product(parts.items(), systems.items()):
        runs: Sequence[RunScores] = ()
        over = None
        with part(len(rows), len(parts) * len(systems)):
            if part_of is None:
                try:
                    result = pseudonymisation(*own, **given)
                except InputError as error:
                    raise InputError(f"{system}: {error}") from None
            else:
                chosen = _like(part_of, own, by)
                result = pseudonymisation(part_of, chosen, backend=backend, **given)
        if part_of is None and system in second:
            runs = _trials(own, second[system])
        elif part_of is not None:
            if system in second:
                both = chosen, _like(part_of, second[system], by)
                runs = [cross_scores(part_of, run, backend=backend) for run in both]
            if with_sessions:
                with reporting(None):
                    over = sessions(part_of, chosen, backend=backend, **shared)
        learnt = distortions(*runs, laplace=laplace, **drawn) if runs else ()
        rows.append(Safeguard(system, dataset, result, learnt, over))
    return PrivacyAssessment(tuple(rows), given.get("seed", 0))


def _trials(own: Any, again: Scores) -> list[RunScores]:
    """The OP trials of both runs."""
    if len(own) != 3:
        raise InputError("a second run needs embeddings or lists of trials, found matrices")
    return speaker_trials({"op": own[1], "again": again})


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
