"""What all commands share: options, writing without leaving halves, progress on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unmask.base import visible
from unmask.errors import InputError
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


def _file(path: Path | None) -> Path | None:
    """A file that is to be written can be: said before anything is computed."""
    if path is not None and str(path) != "-":
        if path.is_dir():
            raise InputError(f"{path}: expected a file to write, found a folder")
        there = path.absolute().parent
        if not there.is_dir():
            raise InputError(f"{path}: expected an existing folder, found none at {there}")
        _check_writable(there, path)
    return path


def writable_folder(path: Path | None) -> Path | None:
    """A folder can be written to, or made below the last one that is there."""
    if path is not None:
        there = path.absolute()
        while not there.exists():
            there = there.parent
        _check_writable(there, path)
    return path


def _check_writable(there: Path, path: Path) -> None:
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written: {there} is not a writable folder")


def _formats(text: str) -> str:
    for name in text.split(","):
        if name not in ("png", "svg", "pdf", "html", "json"):
            raise InputError(
                f"--figure-formats: expected png, svg, pdf, html or json, found {name!r}"
            )
    return text


FormatOption = Annotated[
    OutputFormat, typer.Option("--format", "-f", help="How the result is written.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", callback=_file, help="Write the result there instead of stdout."
    ),
]
FiguresOption = Annotated[
    Path | None,
    typer.Option("--figures", callback=writable_folder, help="Draw the figures into this folder."),
]
FigureFormatsOption = Annotated[
    str,
    typer.Option(
        "--figure-formats", callback=_formats, help="Comma-separated: png, svg, pdf, html."
    ),
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
    show(render(document, format.value, width=terminal_width(output)), output, quiet=quiet)
    if format in (OutputFormat.csv,):
        for line in document.warnings:
            remark(f"warning: {line}", quiet=quiet)


def terminal_width(output: Path | None = None) -> int | None:
    """Columns of the terminal that is written to; None where there is none."""
    if output is None and (sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()):
        return shutil.get_terminal_size().columns
    return None


def show(text: str, output: Path | None, *, quiet: bool) -> None:
    """Write a text to stdout or to a file."""
    if output is None:
        sys.stdout.write(visible(text))
    else:
        write_whole(output, visible(text).encode())
        remark(f"wrote {output}", quiet=quiet)


def named_files(values: Sequence[str], option: str = "") -> dict[str, str]:
    """What ``NAME=FILE`` words name, each name once; a file alone goes by its own name."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or os.path.exists(value):
            name, path = "", value
            if option:
                raise InputError(f"{option}: expected NAME=FILE, found {value}")
        elif not name or not path:
            raise InputError(f"{option or value}: expected NAME=FILE, found {value}")
        if name and name in found:
            raise InputError(f"{option or value}: expected each name once, found {name} twice")
        found[name or path] = path
    return found


def given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Which of these options were given on the command line, as it spells them."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        f"--{name.replace('_', '-')}"
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    ]


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """An option that would have no effect is an error."""
    for option in given(context, names):
        raise InputError(f"{option}: {why}")


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
