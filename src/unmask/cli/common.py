"""What all commands share: options, writing without leaving halves, progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unmask.base import visible
from unmask.report import Document, figures_of, render
from unmask.run import Progress as Callback
from unmask.run import place, reporting, write_whole


class OutputFormat(StrEnum):
    """How a result is written."""

    text = "text"
    json = "json"
    csv = "csv"
    md = "md"
    latex = "latex"


class Missing(StrEnum):
    """What to do about trials without a partner."""

    error = "error"
    skip = "skip"


FormatOption = Annotated[
    OutputFormat, typer.Option("--format", "-f", help="How the result is written.")
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the result there instead of stdout.")
]
FiguresOption = Annotated[
    Path | None, typer.Option("--figures", help="Draw the figures into this folder.")
]
FigureFormatsOption = Annotated[
    str, typer.Option("--figure-formats", help="Comma-separated: png, svg, pdf, html.")
]
ReplicatesOption = Annotated[
    int | None,
    typer.Option(
        "--ci",
        min=0,
        help="Bootstrap replicates of the intervals; 0 for none.",
        show_default="1000, in bins of scores beyond 2 million trials",
    ),
]
LevelOption = Annotated[
    float, typer.Option("--level", min=0.5, max=0.9999, help="Level of the intervals.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]
OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        help="Where blocks run: local, processes, dask, dask://HOST:PORT or cuda.",
        metavar="PLACE",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Workers.", show_default="one per processor")
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        help="Folder of what is done, to go on from after a fault; workers must see it.",
        show_default="a temporary folder",
    ),
]
KeyOption = Annotated[
    str | None, typer.Option("--key", "-k", help="Key: which trials are target and nontarget.")
]
SpeakersOption = Annotated[
    str | None,
    typer.Option(
        "--speakers",
        "-s",
        help="Speaker of each utterance: an utt2spk file, or pattern:REGEX with one group.",
    ),
]
MissingOption = Annotated[
    Missing, typer.Option("--missing", help="Trials that only the scores or only the key has.")
]
DuplicatesOption = Annotated[
    Missing, typer.Option("--duplicates", help="Repeated trials: skip keeps the first.")
]
InputFormatOption = Annotated[
    str | None, typer.Option("--format-in", help="Format of the scores, see unmask formats.")
]


def draw(result: Any, folder: Path | None, *, formats: str, quiet: bool, **options: Any) -> None:
    """All figures of a result into a folder, if one was named.

    ``formats`` are separated by commas, ``options`` those of :func:`unmask.report.figures_of`.
    """
    if folder is not None:
        from unmask.figures import save_all

        save_all(figures_of(result, **options), folder, formats=tuple(formats.split(",")))
        remark(f"figures in {folder}", quiet=quiet)


def give(document: Document, *, format: OutputFormat, output: Path | None, quiet: bool) -> None:
    """Write the result to stdout or to a file, warnings to stderr where they are not part of it."""
    text = render(document, format.value)
    if output is None:
        sys.stdout.write(visible(text))
    else:
        write_whole(output, text.encode())
        remark(f"wrote {output}", quiet=quiet)
    if format in (OutputFormat.csv,):
        for line in document.warnings:
            remark(f"warning: {line}", quiet=quiet)


def remark(text: str, *, quiet: bool = False) -> None:
    """A line on stderr."""
    if not quiet:
        print(visible(text), file=sys.stderr)


@contextmanager
def running(
    what: str,
    on: str = "local",
    workers: int | None = None,
    state: Path | None = None,
    *,
    quiet: bool = False,
) -> Iterator[None]:
    """Work where the options say, ``what`` beside a progress bar."""
    with (
        place(on, workers=workers, state=state),
        progress(what, quiet=quiet) as bar,
        reporting(bar),
    ):
        yield


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callback | None]:
    """A progress bar with the time left, on stderr and only on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance
