"""``unmask assess``, ``init`` and ``demo``: from a config to one report folder, and ``cache``."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import typer

from unmask import assessment, report
from unmask._extras import need_report_extra
from unmask.base import visible
from unmask.cli.common import (
    Intervals,
    Terminal,
    Where,
    named_files,
    progress_bar,
    refuse,
    terminal_width,
    writable_folder,
)
from unmask.cli.options import argument, flat, group, option, output_file, output_folder
from unmask.errors import InputError
from unmask.run import available, run_on, write_whole

NAME = "assessment.toml"


def report_outputs(path: Path | str) -> None:
    """Refuse a report folder that may not be written."""
    need_report_extra()
    report.check_report_folder(path)


def assess(
    context: typer.Context,
    where: Where,
    given: list[str] | None = argument(default=None, show_default=False),
    output: Path | None = output_folder("-o", callback=writable_folder, check=report_outputs),
    quick: bool = False,
    beside: assessment.Beside = group(
        speakers=option("-s"),
        encoder=option("-e"),
        transcripts=option("-t"),
        grammar=option("-g"),
    ),
    again: tuple[str, ...] = (),
    change: tuple[str, ...] = option("--set"),
    baseline: str | None = None,
    rows: str | None = None,
    columns: str | None = None,
    means: str | None = None,
    sort: Literal["given", "eer", "wer", "uar"] | None = None,
    figures: str | None = None,
    validate: bool = False,
    redact: bool = False,
    file_copy: bool = False,
    cache: Path | None = output_folder(check=assessment.check_cache),
    allow_code: bool = False,
    schema: bool = False,
) -> None:
    need_report_extra()
    if schema:
        sys.stdout.write(json.dumps(assessment.config_schema(), indent=2) + "\n")
        return
    if not given:
        wanted = "a config (TOML), or folders of original and protected speech"
        raise InputError("assess", wanted, "none: unmask init writes a config")
    lists = {"table.rows": rows, "table.columns": columns, "figures": figures}
    told: dict[str, Any] = {"table.baseline": baseline, "table.means": means, "table.sort": sort}
    told |= {name: None if one is None else one.split(",") for name, one in lists.items()}
    told |= {"redact": redact or None, "quick": quick or None}
    told |= {"figures": []} if figures == "none" else {}
    said = (f"{name}={json.dumps(one)}" for name, one in told.items() if one is not None)
    changes = [*change, *said]
    if quick:
        taken = "no effect with --quick, whose attackers take a run that is there: --again"
        refuse(context, ("train", "safeguard"), taken)
    files = [one for one in given if one.endswith(".toml")]
    if files and len(given) > 1:
        raise InputError("assess", "a config alone, or folders", f"{files[0]} among {len(given)}")
    if files:
        refuse(
            context,
            assessment.Beside.__annotations__,
            "no effect with a config, which says so: see --set",
        )
        path = Path(files[0])
        read = assessment.load_config(path, changes=changes)
        folder = output or path.with_name(f"{path.stem}-report")
    else:
        original, *others = given
        named = versions(others)
        runs = versions(again)
        if len(named) == len(runs) == 1:
            runs = dict(zip(named, runs.values(), strict=True))
        read = assessment.config_of(original, named, replace(beside, again=runs), changes=changes)
        folder = output or Path("unmask-report")
        allow_code = allow_code or beside.safeguard is not None
        for line in assessment.assumptions(read):
            where.remark(line)
    if allow_code:
        sys.path += [os.getcwd(), str(Path(given[0]).resolve().parent)]
    if validate:
        kept = cache or assessment.cache_of(folder)
        for line in report.check_inputs(read, allow_code=allow_code, cache=kept):
            print(visible(line))
        print(visible(f"{' '.join(given)}: fine"))
        return
    writable_folder(folder)
    with run_on(where.on, workers=where.workers, state=where.state):
        how: Any = {"cache": cache, "allow_code": allow_code}
        run(read, folder, where, file_copy=file_copy, **how, processes=available(where.workers))


def versions(given: Sequence[str]) -> dict[str, Path]:
    """Protected versions by name: NAME=PATH, or the name of the folder or file itself."""
    paths = {}
    for name, path in named_files(given).items():
        whole = Path(path).resolve()
        own = whole.name if whole.is_dir() else whole.stem
        paths[own if name == path else name] = Path(path)
    if len(paths) < len(given):
        raise InputError("expected different names, found one twice: NAME=PATH")
    return paths


def run(
    config: assessment.Config,
    output: Path,
    terminal: Terminal,
    *,
    file_copy: bool = False,
    **how: Any,
) -> None:
    """Assess, write, and print the headline table; the path of the page comes last.

    ``how`` are options of :func:`unmask.report.run_assessment`.
    """
    with progress_bar("reading", quiet=terminal.quiet, parts=False) as bar:
        listener = bar or _logged(terminal)
        heard: Any = {"listener": listener, "say": terminal.remark}
        with report.report_folder(output, config) as folder:
            done = report.run_assessment(config, folder, **heard, **how)
            page = report.write_inside(done, folder, file_copy=file_copy, listener=listener)
        listener("", 1, 1)
    reused = f"reused {done.reused} finished steps, computed {done.computed}; "
    terminal.remark(
        f"{reused if done.reused else ''}intermediate results (they contain names and voiceprints)"
        f" are cached in {done.kept}; to delete them: unmask cache clear {quote(str(done.kept))}"
    )
    if file_copy and not page.with_name("filing.pdf").exists():
        terminal.remark("no Chromium to make a PDF: print filing.html from any browser")
    sys.stdout.write(visible(f"{report.summary_table(done, width=terminal_width())}{page}\n"))


def _logged(terminal: Terminal) -> assessment.Listener:
    """A line for each step of half a second or more, where there is no terminal for a bar."""
    doing, since = "", time.monotonic()

    def listener(what: str, done: float, total: float) -> None:
        nonlocal doing, since
        if what != doing:
            now = time.monotonic()
            if doing and now - since >= 0.5:
                terminal.remark(f"{now - since:6.1f} s  {doing}")
            doing, since = what, now

    return listener


def init(
    folder: Path = argument(),
    output: Path | None = output_file("-o"),
    force: bool = False,
) -> None:
    need_report_extra()
    path = output or folder / NAME
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; --force replaces it")
    text = assessment.starter_config(folder, base=path.resolve().parent)
    try:
        write_whole(path, text.encode())
    except UnicodeEncodeError:
        raise InputError(f"{folder}: expected file names in UTF-8, found others") from None
    for line in text.splitlines():
        if line.startswith(assessment.REMARK):
            print(visible(line.removeprefix(assessment.REMARK)), file=sys.stderr)
    sys.stdout.write(visible(f"{path}\n"))


def demo(
    terminal: Terminal,
    output: Path = output_folder("-o", default="unmask-demo", check=report_outputs),
    intervals: Intervals = group(level=0.95),
) -> None:
    need_report_extra()
    config = assessment.demo_config(output, seed=intervals.seed, replicates=intervals.ci)
    run(config, output, terminal, processes=available(None))


_CACHE = "List or clear the intermediate results of assessments."
cache = typer.Typer(name="cache", help=_CACHE, no_args_is_help=True)


@cache.command("list")
@flat
def list_kept(
    folders: list[Path] | None = argument(default=None),
) -> None:
    """List caches with their size, their age, and whether the report still exists."""
    for kept in assessment.kept_assessments(*folders or ()):
        print(visible(_line(kept)))


@cache.command("clear")
@flat
def clear_kept(
    folders: list[Path] | None = argument(default=None),
    gone: bool = False,
    all_: bool = option("--all", default=False),
) -> None:
    """Delete caches; the next run computes everything again, and redacted labels change."""
    if bool(folders) + gone + all_ != 1:
        raise InputError("cache clear", "folders, --gone or --all", "none or several of these")
    for kept in assessment.kept_assessments(*folders or ()):
        if kept.gone or not gone:
            kept.clear()
            print(visible(f"removed {_line(kept)}"))


def _line(kept: assessment.Kept) -> str:
    hours = max(0.0, time.time() - kept.last) / 3600
    age = f"{hours:.0f} hours old" if hours < 48 else f"{hours / 24:.0f} days old"
    of = f"of {', '.join(map(str, kept.reports)) or 'an unknown report'}"
    gone = ", which is gone" if kept.gone else ""
    return f"{kept.folder}: {kept.size / 1e6:,.1f} MB, {age}, {of}{gone}"
