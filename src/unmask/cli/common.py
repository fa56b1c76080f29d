"""What all commands share: groups of options, writing without leaving halves, progress."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import rich.progress
import typer
from rich.console import Console

from unmask._extras import need_report_extra
from unmask.base import visible
from unmask.cli.options import option, output_file, output_folder
from unmask.errors import InputError
from unmask.report import Document, figures_of, render
from unmask.run import Place, check_output_folder, check_writable, progress, run_on, write_whole
from unmask.trials import Scores, Source, read_scores

T = TypeVar("T")
Tell = Callable[[str, float, float], None]
"""What is being done, how much of it is, and how much there is."""


def writable_file(path: Path | None) -> Path | None:
    """A file that is to be written can be: said before anything is computed."""
    if path is not None and str(path) != "-":
        if path.is_dir():
            raise InputError(f"{path}: expected a file to write, found a folder")
        there = path.absolute().parent
        if not there.is_dir():
            raise InputError(f"{path}: expected an existing folder, found none at {there}")
        check_writable(there, named=path)
    return path


def writable_folder(path: Path | None) -> Path | None:
    """A folder can be written to, or made below the last one that is there."""
    if path is not None:
        check_writable(path)
    return path


_STATES = r"[0-9a-f]{16}.*|lock"
"""Names in a folder of checkpoints: the keys of jobs."""


def _state_folder(path: Path) -> None:
    check_output_folder(path, names=_STATES)


def figure_folder(path: Path | None) -> Path | None:
    """A folder for charts, which an extra draws."""
    if path is not None:
        need_report_extra()
    return writable_folder(path)


def _formats(text: str) -> str:
    for name in text.split(","):
        if name not in ("png", "svg", "pdf", "html", "json"):
            kinds = "png, svg, pdf, html or json"
            raise InputError(f"--figure-formats: expected {kinds}, found {name!r}")
    return text


def whole_number(text: str, option: str, other: str) -> int:
    """The number that an option has, which ``other`` words stand beside."""
    if not text.isdigit():
        raise typer.BadParameter(f"{option}: expected {other}, found {text}")
    return int(text)


@dataclass(frozen=True)
class Terminal:
    """What is said on stderr."""

    quiet: bool = option("-q", default=False)

    def remark(self, text: str) -> None:
        """A line on stderr, unless nothing is to be said."""
        if not self.quiet:
            remark(text)

    def sources(self, files: Iterable[Source]) -> None:
        """What files were taken for."""
        for source in files:
            if source.detected:
                self.remark(f"{source.name}: {source.detected}")


@dataclass(frozen=True)
class Where(Terminal):
    """The place of the work, and how far it is."""

    on: str = "local"
    workers: int | None = option("-w", min=1)
    state: Path | None = output_folder(check=_state_folder)

    def __post_init__(self) -> None:
        Place(self.on, self.workers)

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Work there, ``what`` beside a progress bar."""
        here = run_on(self.on, workers=self.workers, state=self.state)
        with (
            here,
            progress_bar(what, quiet=self.quiet) as bar,
            progress(bar and partial(bar, what)),
        ):
            yield


@dataclass(frozen=True)
class Output(Where):
    """Where a command works, where its result and figures go, and how they are written."""

    format: Literal["text", "json", "csv", "md", "latex"] = option("-f", default="text")
    output: Path | None = output_file("-o", callback=writable_file)
    figures: Path | None = output_folder(callback=figure_folder, check=check_output_folder)
    figure_formats: str = option(default="png,svg,html", callback=_formats)
    width: Literal["column", "page"] = "page"
    bare: bool = False
    font: Literal["sans", "serif"] = "sans"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.figures is None and (self.width, self.bare, self.font) != ("page", False, "sans"):
            raise InputError("--width, --bare and --font: expected with --figures, found without")

    def layout(self) -> AbstractContextManager[None]:
        """Within, figures are drawn as the options say."""
        from unmask.figures import layout

        return layout(width=self.width, bare=self.bare, font=self.font)

    def draw(self, result: Any, **options: Any) -> None:
        """All figures of a result into the folder, if one was named.

        ``options`` are those of :func:`unmask.report.figures_of`.
        """
        if self.figures is not None:
            with self.layout():
                self.save(figures_of(result, **options))

    def save(self, figures: Sequence[Any]) -> None:
        """Figures into the folder that was named."""
        from unmask.figures import save_all

        assert self.figures is not None
        save_all(figures, self.figures, formats=self.figure_formats)
        self.remark(f"figures in {self.figures}")

    def give(self, document: Document) -> None:
        """Write a result; its warnings go to stderr where they are not part of it."""
        text = visible(render(document, self.format, width=terminal_width(self.output)))
        if self.output is None or str(self.output) == "-":
            sys.stdout.write(text)
        else:
            write_whole(self.output, text.encode())
            self.remark(f"wrote {self.output}")
        for line in document.warnings if self.format == "csv" else ():
            self.remark(f"warning: {line}")


@dataclass(frozen=True)
class Intervals:
    """How uncertain numbers are."""

    ci: int | None = option(min=0)
    level: float = option(default=0.95, min=0.5, max=0.9999)
    seed: int = option(default=0, min=0)

    @property
    def options(self) -> dict[str, Any]:
        """As functions of the library take them."""
        return {"replicates": self.ci, "level": self.level, "seed": self.seed}


@dataclass(frozen=True)
class DrawnIntervals(Intervals):
    """Intervals that are always made, unless 0 is asked for."""

    ci: int = option(default=1000, min=0)


@dataclass(frozen=True)
class Whose:
    """Whose the utterances of tables and embeddings are."""

    speakers: tuple[str, ...] = option("-s")

    def __post_init__(self) -> None:
        object.__setattr__(self, "speakers", self.speakers or None)


@dataclass(frozen=True)
class Tables(Whose):
    """How tables of trials, scores and embeddings are read."""

    key: str | None = option("-k")
    missing: Literal["error", "skip"] = "error"
    duplicates: Literal["error", "skip"] = "error"
    format_in: str | None = None
    columns: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """As functions of the library take them."""
        return {name.removesuffix("_in"): value for name, value in vars(self).items()}

    def scores(
        self, paths: Sequence[str], terminal: Terminal, *, systems: Sequence[str] = ()
    ) -> Scores:
        """One table of all systems in all files; what was detected is said on stderr."""
        table = read_scores(score_files(paths), systems=list(systems) or None, **self.options)
        terminal.sources(table.sources)
        table.check_classes()
        return table


@dataclass(frozen=True)
class Ratios(Tables):
    """Tables whose scores may be likelihood ratios."""

    scores_are: Literal["ln", "log10", "lr"] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """As functions of the library take them."""
        given = super().options
        return given if self.scores_are else {k: v for k, v in given.items() if k != "scores_are"}


def terminal_width(output: Path | None = None) -> int | None:
    """Columns of the terminal that is written to; None where there is none."""
    if output is None and (sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()):
        return shutil.get_terminal_size().columns
    return None


def named_files(values: Sequence[str], option: str = "") -> dict[str, str]:
    """What ``NAME=FILE`` words name, each name once; a file alone goes by its own name."""
    files: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or os.path.exists(value):
            name, path = "", value
            if option:
                raise InputError(f"{option}: expected NAME=FILE, found {value}")
        elif not name or not path:
            raise InputError(f"{option or value}: expected NAME=FILE, found {value}")
        if name and name in files:
            raise InputError(f"{option or value}: expected each name once, found {name} twice")
        files[name or path] = path
    return files


def read_named(values: Sequence[str], option: str, read: Callable[[str], T]) -> dict[str, T]:
    """What ``NAME=FILE`` options name, read."""
    return {name: read(path) for name, path in named_files(values, option).items()}


def score_files(paths: Sequence[str]) -> dict[str, str] | list[str]:
    """Files by name where names were given (NAME=FILE), otherwise the files."""
    named = named_files(paths)
    plain = len(named) == len(paths) and all(name == path for name, path in named.items())
    if plain or len(named) < len(paths):
        return list(paths)
    return {Path(name).stem if name == path else name: path for name, path in named.items()}


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
    for name in given(context, names):
        raise InputError(f"{name}: {why}")


def remark(text: str) -> None:
    """A line on stderr."""
    print(visible(text), file=sys.stderr)


@contextmanager
def progress_bar(what: str, *, quiet: bool, parts: bool = True) -> Iterator[Tell | None]:
    """A bar with what is done, how far it is and the time left; on a terminal only, on stderr.

    It counts ``parts``, or shows the share of the whole.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    name = rich.progress.TextColumn("{task.description}", markup=False)
    bar, left = rich.progress.BarColumn(40 if parts else 24), rich.progress.TimeRemainingColumn()
    share = (bar, rich.progress.TaskProgressColumn(), left, name)
    columns = (name, bar, rich.progress.MofNCompleteColumn(), left) if parts else share
    with rich.progress.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def listener(what: str, done: float, total: float) -> None:
            bars.update(task, description=visible(what), completed=done, total=total)

        yield listener
