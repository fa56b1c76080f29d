"""Evaluations that count trials without keeping them: cross-paired embeddings, large files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unmask.cli import common
from unmask.engine import Battery, Evaluation, cross_pairing, stream_scores
from unmask.errors import InputError
from unmask.run import place, reporting
from unmask.scoring import Plda
from unmask.trials import OnProblem, is_large


def counted(
    paths: Sequence[str],
    *,
    pairs: str | None,
    enrolment: int,
    backend: str,
    stream: bool | None,
    key: str | None,
    speakers: str | None,
    systems: Sequence[str] | None,
    format: str | None,
    missing: OnProblem,
    duplicates: OnProblem,
    battery: Battery,
    replicates: int | None,
    level: float,
    seed: int,
    needs_table: Mapping[str, bool],
    on: str,
    workers: int | None,
    state: Path | None,
    quiet: bool,
) -> Evaluation | None:
    """Evaluate by counting if that was asked for, or if a file is large; ``None`` if not."""
    if pairs is None:
        given = {"--backend": backend != "cosine", "--enrolment": enrolment != 1}
        _refuse(given, "is for embeddings, with --pairs")
        if stream is False or not (stream or any(is_large(path) for path in paths)):
            return None
        places = {
            "--on": on != "local",
            "--workers": workers is not None,
            "--state": state is not None,
        }
        _refuse(places, "is not for files that are read in batches")
        _refuse(needs_table, "needs all scores in memory (--no-stream)")
    else:
        _refuse(needs_table, "needs all scores in memory, which --pairs does not keep")
        of_scores = {
            "--key": key,
            "--system": systems,
            "--format-in": format,
            "--stream": stream,
            "--missing": missing == "skip",
            "--duplicates": duplicates == "skip",
        }
        _refuse({name: bool(value) for name, value in of_scores.items()}, "is for score files")
    if pairs is None:
        with common.progress("reading", quiet=quiet) as bar, reporting(bar):
            found = stream_scores(
                list(paths),
                key=key,
                speakers=speakers,
                systems=systems,
                format=format,
                missing=missing,
                duplicates=duplicates,
                battery=battery,
                replicates=replicates,
                level=level,
                seed=seed,
            )
    else:
        with (
            common.progress("blocks", quiet=quiet) as bar,
            place(on, workers=workers, state=state),
            reporting(bar),
        ):
            found = cross_pairing(
                list(paths),
                pairs=pairs,
                enrolment=enrolment,
                backend=backend if backend == "cosine" else Plda.load(backend),
                speakers=speakers,
                battery=battery,
                replicates=replicates,
                level=level,
                seed=seed,
            )
    for source in found.sources:
        common.remark(f"{source.name}: {source.detected}", quiet=quiet)
    return found


def _refuse(given: Mapping[str, bool], why: str) -> None:
    """An option that would have no effect is an error."""
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option}: {why}")
