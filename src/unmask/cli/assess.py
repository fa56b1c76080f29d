"""``unmask assess``: everything a config names, into one report folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from unmask.cli import common
from unmask.errors import InputError
from unmask.report import (
    Config,
    Told,
    check_inputs,
    config_schema,
    load_config,
    summary_table,
    write_report,
)
from unmask.report import assess as run_assessment
from unmask.run import place


def assess(
    config: Annotated[
        Path | None, typer.Argument(help="TOML file; unmask init writes one.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            callback=common.writable_folder,
            help="Folder to write.",
            show_default="NAME-report",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value; may be repeated."),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Only read what the config names, and check it.")
    ] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Neutral labels in place of speaker names.")
    ] = False,
    file_copy: Annotated[
        bool,
        typer.Option(
            "--file-copy",
            help="Also filing.html and, where Chromium is installed, filing.pdf: A4, to be filed.",
        ),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            help="Folder for finished steps (names and voiceprints), never part of the report.",
            show_default="in the user's cache",
        ),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="Let the config name Python to import as an encoder."),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the config and exit.")
    ] = False,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    quiet: common.QuietOption = False,
) -> None:
    """Assess safeguards with every framework: one config in, one report folder out."""
    if schema:
        sys.stdout.write(json.dumps(config_schema(), indent=2) + "\n")
        return
    if config is None:
        raise InputError("assess: expected a config (TOML), found none: unmask init writes one")
    read = load_config(config, changes=[*(change or []), *(["redact=true"] if redact else [])])
    if validate:
        for line in check_inputs(read, allow_code=allow_code):
            print(line)
        print(f"{config}: fine")
        return
    folder = output or config.with_name(f"{config.stem}-report")
    with place(on, workers=workers, state=state):
        run(read, folder, file_copy=file_copy, cache=cache, allow_code=allow_code, quiet=quiet)


def run(
    config: Config,
    output: Path,
    *,
    file_copy: bool = False,
    cache: Path | None = None,
    allow_code: bool = False,
    quiet: bool,
) -> None:
    """Assess, write, and print the headline table; the path of the page comes last."""
    with telling(quiet=quiet) as told:
        assessment = run_assessment(
            config,
            output,
            cache=cache,
            allow_code=allow_code,
            told=told,
            say=partial(common.remark, quiet=quiet),
        )
        page = write_report(assessment, output, file_copy=file_copy, told=told)
    reused = f"reused {assessment.reused} finished steps, computed {assessment.computed}; "
    common.remark(
        f"{reused if assessment.reused else ''}steps are kept, with names and voiceprints, in"
        f" {assessment.kept}",
        quiet=quiet,
    )
    if file_copy and not page.with_name("filing.pdf").exists():
        common.remark("no Chromium to make a PDF: print filing.html from any browser", quiet=quiet)
    sys.stdout.write(summary_table(assessment, width=common.terminal_width()))
    print(page)


@contextmanager
def telling(*, quiet: bool) -> Iterator[Told | None]:
    """What is being done, how far the whole is and the time left; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("reading", total=None)

        def told(what: str, done: float, total: float) -> None:
            bars.update(task, description=what, completed=done, total=total)

        yield told
