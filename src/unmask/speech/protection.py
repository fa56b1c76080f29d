"""Protect a set of recordings with a safeguard, file by file, and tell what was done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import write_whole
from unmask.speech.audio import unexpected
from unmask.speech.corpus import Recording
from unmask.speech.parallel import cores, run_tasks
from unmask.speech.safeguards import McAdams, Protected, Safeguard

METADATA = "unmask-anonymise.json"


@dataclass(frozen=True)
class Anonymised:
    """What became of each recording.

    ``failures`` are the lines of those that could not be protected, ``remarks`` those of files
    that were but have something to know about. ``guarded`` counts files whose level had to stay
    below the input's for their peaks to fit, ``lowest_db`` is the largest such difference.
    """

    done: int
    failures: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float
    guarded: int
    lowest_db: float


def anonymise(
    recordings: Sequence[Recording],
    output: str | os.PathLike[str],
    safeguard: Safeguard,
    *,
    suffix: str = ".flac",
    workers: int | None = None,
    keep_key: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Anonymised:
    """Write the protected version of every recording below ``output``, as speaker/…/utterance.

    A recording that fails is reported and the rest goes on; nothing half-written stays.
    ``unmask-anonymise.json`` beside the audio says what was done. The coefficients of the
    speakers and the seed they come from undo the disguise: they are written, to the same file,
    only with ``keep_key``.
    """
    root = Path(output)
    tasks = [(one, root / f"{one.place}{suffix}") for one in recordings]
    _refuse_shared_targets(tasks)
    for one, target in tasks:
        if target.resolve() == one.path.resolve():
            raise InputError(f"{target}: expected another output folder, found the input's")
    try:
        for folder in sorted({target.parent for _, target in tasks}):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or root}: cannot be made: {error.strerror}") from None
    results: dict[int, Protected | str] = {}
    work = run_tasks(
        partial(_protect, safeguard), tasks, workers=cores() if workers is None else workers
    )
    for position, result in work:
        results[position] = result
        if progress is not None:
            progress(len(results), len(tasks))
    summary = _summary(recordings, results)
    _write_metadata(root / METADATA, recordings, safeguard, summary, keep_key=keep_key)
    return summary


def _refuse_shared_targets(tasks: Sequence[tuple[Recording, Path]]) -> None:
    """Two recordings must not be written to one file."""
    first: dict[Path, Recording] = {}
    for one, target in tasks:
        other = first.setdefault(target, one)
        if other is not one:
            raise InputError(
                f"{target}: expected one recording, found two that would be written there:"
                f" {other.path} and {one.path}"
            )


def _protect(safeguard: Safeguard, task: tuple[Recording, Path]) -> Protected | str:
    try:
        return safeguard.protect(*task)
    except InputError as error:
        return str(error)
    except Exception as error:
        return unexpected(task[0].path, error)


def _summary(recordings: Sequence[Recording], results: dict[int, Protected | str]) -> Anonymised:
    ordered = [(one, results[n]) for n, one in enumerate(recordings)]
    done = [(one, result) for one, result in ordered if isinstance(result, Protected)]
    guarded = [result.guarded_db for _, result in done if result.guarded_db > 0.0]
    return Anonymised(
        done=len(done),
        failures=tuple(result for _, result in ordered if isinstance(result, str)),
        remarks=tuple(f"{one.path}: {text}" for one, result in done for text in result.remarks),
        seconds=sum(result.seconds for _, result in done),
        guarded=len(guarded),
        lowest_db=max(guarded, default=0.0),
    )


def _write_metadata(
    path: Path,
    recordings: Sequence[Recording],
    safeguard: Safeguard,
    summary: Anonymised,
    *,
    keep_key: bool,
) -> None:
    metadata: dict[str, object] = {
        "tool": f"unmask {__version__}",
        **safeguard.describe(key=keep_key),
        "files": summary.done,
        "failed": len(summary.failures),
        "seconds": round(summary.seconds, 3),
        "level": {
            "restored": "root mean square of the input",
            "files below it for their peaks to fit": summary.guarded,
            "largest difference in dB": round(summary.lowest_db, 2),
        },
    }
    if keep_key and isinstance(safeguard, McAdams):
        metadata["coefficients"] = {
            one.utterance: round(safeguard.coefficient(one), 6) for one in recordings
        }
    write_whole(path, (json.dumps(metadata, indent=1) + "\n").encode())
