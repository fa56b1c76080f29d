"""A report folder: the page, results, tables and figures, put in place when all are made."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.assessment import (
    Beside,
    Config,
    Listener,
    assumptions,
    cache_of,
    code_digest,
    config_of,
    digest_of,
    load_config,
    to_toml,
)
from unmask.errors import InputError
from unmask.figures import Figure, images
from unmask.report.assessment import Assessment, run_assessment
from unmask.report.case import CaseRecord
from unmask.report.documents import Document
from unmask.report.html import filing_html, page_html, render_html
from unmask.report.table import render, text
from unmask.report.words import note
from unmask.run import (
    check_output,
    check_output_folder,
    command_files,
    is_input,
    locked,
    make_folder,
    marked,
    private_files,
    private_folder,
    refuse_input,
    scratch_folder,
    write_whole,
)
from unmask.trials import Embeddings, write

Protected = Mapping[str, Embeddings | str | Path]

PAGE = "report.html"
_NEW = ".new-"
FILING = ("filing.html", "filing.pdf")
SETTINGS = "settings.toml"
ORDER = (*FILING, "figures", "tables", SETTINGS, "results.json", PAGE)
_OTHERS = r"data|assessment\.toml"
"""What may lie in a new report folder: data of the demo or of unmask utility, and the config."""
_MARKS = re.compile(r"([*_`<])")
_SUFFIXES = {"csv": "csv", "md": "md", "latex": "tex"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 180
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:(\d{14})")


def assess(
    data: Config | Embeddings | str | Path,
    protected: Protected | str | Path | None = None,
    out: str | Path | None = None,
    *,
    quick: bool = False,
    file_copy: bool = False,
    cache: str | Path | None = None,
    allow_code: bool = False,
    listener: Listener | None = None,
    say: Callable[[str], None] | None = None,
    processes: int = 1,
    **beside: Any,
) -> Assessment:
    """Assess protected versions of speech with every framework that the data allow.

    Parameters
    ----------
    data
        Original speech: a folder of recordings, a file of embeddings or :class:`Embeddings`; or
        a config (:func:`load_config`) or the path of one.
    protected
        Its protected versions by name, of the same kind. With a config ``out`` may stand here.
    out
        Folder of the report; nothing is written without.
    quick
        A quick look: six fixed attacks, at most 100 replicates, no figures.
    file_copy
        Whether to write the filing copy as well.
    cache
        Folder of finished steps, which hold names and voiceprints: by default the user's cache,
        or none without ``out``.
    allow_code
        Whether a config may name code: an encoder to import, a safeguard's command.
    listener
        Called with what is being done, how much is done, and how much there is to do.
    say
        Called with lines on what was assumed and how long it will take.
    processes
        How many processes share the steps; a script with more than one needs the usual
        ``if __name__ == "__main__":``.
    **beside
        Options of :class:`unmask.assessment.Beside`: ``speakers``, ``encoder``, ``train``,
        ``safeguard``, ``again``, ``keyless``, ``transcripts``, ``sweep``, ``sessions``, ``levels``,
        ``method``.

    Returns
    -------
    Assessment
        Numbers (``to_polars``), conclusions (``lines``), ``figures()``; ``write`` makes a report.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng, names = np.random.default_rng(0), [f"u{n}" for n in range(36)]
    >>> def voices(noise):
    ...     vectors = np.repeat(np.eye(6), 6, axis=0) + noise * rng.normal(size=(36, 6))
    ...     return um.Embeddings(vectors, np.repeat(list("abcdef"), 6), names)
    >>> result = um.assess(voices(0.1), {"B2": voices(0.4)}, quick=True)
    >>> result.cards[0].safeguard, result.cards[0].numbers[0].label
    ('B2', 'Linkability')
    """
    if isinstance(protected, str | Path) and out is None:
        protected, out = None, protected
    given = [data, *(protected.values() if isinstance(protected, Mapping) else ())]
    named = [str(one) for one in given if isinstance(one, str | Path)]
    with ExitStack() as stack:
        stack.enter_context(command_files(named, is_shell=False))
        if cache is None:
            cache = stack.enter_context(scratch_folder()) if out is None else cache_of(Path(out))
        if isinstance(protected, Mapping) and not isinstance(data, Config):
            versions = {name: _path(path, Path(cache)) for name, path in protected.items()}
            config = config_of(_path(data, Path(cache)), versions, Beside(**beside))
            if say is not None:
                say("\n".join(assumptions(config)))
        elif protected is not None or beside or isinstance(data, Embeddings):
            raise InputError("assess: expected original and protected speech, or a config alone")
        else:
            config = data if isinstance(data, Config) else load_config(data)
        config = config.model_copy(update={"quick": quick or config.quick})
        how: Any = {"cache": cache, "allow_code": allow_code, "listener": listener, "say": say}
        how["processes"] = processes
        if out is None:
            return run_assessment(config, cache, **how)
        with report_folder(out, config) as folder:
            done = run_assessment(config, folder, **how)
            write_inside(done, folder, file_copy=file_copy, listener=listener)
    return done


@private_files()
def _path(one: Embeddings | str | Path, cache: Path) -> str | Path:
    """Where speech lies; embeddings in memory are put beside the kept steps."""
    if not isinstance(one, Embeddings):
        return one
    path = make_folder(private_folder(cache) / "inputs", private=True) / f"{digest_of(one)}.npz"
    write(one, path)
    return path


def write_report(
    assessment: Assessment,
    output: str | Path,
    *,
    file_copy: bool = False,
    listener: Listener | None = None,
) -> Path:
    """Write the whole folder; files that are there before stay until all new ones are made.

    ``file_copy`` adds the filing copy, as PDF too where there is a Chromium to print it. One run
    writes at a time; what a killed one left half made is removed, and so is an older filing copy.
    """
    with report_folder(output, assessment.asked) as folder:
        return write_inside(assessment, folder, file_copy=file_copy, listener=listener)


def _settings(config: Config, folder: Path) -> str:
    """The config as its report keeps it, which withholds paths where the report is redacted."""
    return to_toml(config, base=None if config.redact else folder.resolve())


def check_report_folder(folder: str | Path, config: Config | None = None) -> None:
    """Refuse a report folder that is an input, holds inputs under names of reports, or files of
    others.

    The report's own settings may be the ``config`` of the run that writes it again, if they stay as
    they are.
    """
    place = Path(folder)
    check_output_folder(place, signs=("results.json", SETTINGS), names=_OTHERS)
    settings = place / SETTINGS
    if is_input(settings) and config is not None:
        expected = marked(_settings(config, place), SETTINGS)
        if settings.read_text(encoding="utf-8") != expected:
            wanted = "another folder (-o): these settings are the config, and would change"
            raise InputError(f"{settings}: expected {wanted}")
    for name in ORDER:
        if name == SETTINGS and is_input(settings):
            continue
        there = place / name
        files = sorted(there.iterdir()) if there.is_dir() else [there]
        for file in (there, *files):
            # Lists of rates have a fixed layout, which leaves no room for a mark.
            if file.name.startswith("result_for_rank_") or file.is_dir():
                refuse_input(file)
            else:
                check_output(file)


@contextmanager
def report_folder(output: str | Path, config: Config) -> Iterator[Path]:
    """Keep a report folder to one run, from its start to the end of writing.

    A second run that starts meanwhile is refused at once. A folder that was made for a run that
    fails goes again.
    """
    folder = Path(output)
    check_report_folder(folder, config)
    is_new = not folder.exists()
    make_folder(folder)
    try:
        with locked(folder):
            yield folder
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def write_inside(
    assessment: Assessment,
    folder: Path,
    *,
    file_copy: bool = False,
    listener: Listener | None = None,
) -> Path:
    """Write into a :func:`report_folder` that this run holds."""
    tell = listener or (lambda what, done, total: None)
    try:
        for left in folder.glob(f"{_NEW}*"):
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=_NEW, dir=folder) as temporary:
            made = Path(temporary)
            _make(assessment, made, folder, tell)
            if file_copy:
                tell("printing the filing copy", 0, 1)
                page, pdf = (made / name for name in FILING)
                write_whole(page, filing_html(assessment).encode())
                printed = made / "printed.pdf"
                print_pdf(page, printed, date=assessment.date)
                if printed.is_file():
                    write_whole(pdf, printed.read_bytes())
            check_report_folder(folder, assessment.asked)
            _put_in_place(made, folder)
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be written: {error.strerror or error}") from None
    return folder / PAGE


def _make(assessment: Assessment, made: Path, folder: Path, tell: Listener) -> None:
    write_whole(made / PAGE, render_html(assessment).encode())
    write_whole(made / "results.json", assessment.document.to_json().encode() + b"\n")
    write_whole(made / SETTINGS, _settings(assessment.asked, folder).encode())
    (made / "tables").mkdir()
    for format, suffix in _SUFFIXES.items() if assessment.overview.rows else ():
        path = made / "tables" / f"overview.{suffix}"
        write_whole(path, render(assessment.overview, format).encode())
    for name, rates in assessment.ranks.items():
        plain = re.sub(r"[^\w.-]+", "-", name)
        write_whole(made / "tables" / f"result_for_rank_{plain}", rates.encode())
    tables = {"speakers": assessment.least} if assessment.least else {}
    tables |= {section.key: section.tables for section in assessment.sections}
    for name, blocks in tables.items():
        whole = [Document([row for block in blocks for row in block.rows])]
        apart = [Document(block.rows, title=block.title) for block in blocks if block.rows]
        for format, suffix in _SUFFIXES.items():
            parts = [render(document, format) for document in (whole if format == "csv" else apart)]
            if format == "md":
                titles = (_MARKS.sub(r"\\\1", document.title) for document in apart)
                parts = [
                    f"**{title}**\n\n{part}" for title, part in zip(titles, parts, strict=True)
                ]
            write_whole(made / "tables" / f"{name}.{suffix}", "\n".join(parts).encode())
    (made / "figures").mkdir()
    figures, kinds = assessment.all_figures, assessment.config.figures
    kept = (assessment.kept if assessment.kept.is_dir() else made / "kept") / "figures"
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(_draw, figure, kinds, made / "figures", kept) for figure in figures]
        for done, job in enumerate(jobs):
            tell("drawing figures", done, len(figures))
            job.result()


def _draw(figure: Figure, kinds: tuple[str, ...], folder: Path, kept: Path) -> None:
    """Draw a figure, or take the files of the same drawing from the cache."""
    stored = {kind: kept / f"{figure.digest}-{code_digest()[:8]}.{kind}" for kind in kinds}
    missing = tuple(kind for kind, path in stored.items() if not path.is_file())
    if missing:
        make_folder(kept, private=True)
        for kind, content in images(figure, missing).items():
            write_whole(stored[kind], content, private=True)
    for kind, path in stored.items():
        write_whole(folder / f"{figure.name}.{kind}", path.read_bytes())


def _put_in_place(made: Path, folder: Path) -> None:
    """Rename what is new over what is old, the page last."""
    old = made / "old"
    old.mkdir()
    for name in ORDER:
        there = folder / name
        if is_input(there):  # The settings of this report, which stay as they are.
            continue
        if there.is_dir():
            there.rename(old / name)
        if (made / name).exists():
            (made / name).rename(there)
        else:
            there.unlink(missing_ok=True)


def summary_table(assessment: Assessment, *, width: int | None = None) -> str:
    """The one table of all systems and sets, then what each safeguard's strongest attack does and
    what limits it.
    """
    cards, whole = assessment.cards, assessment.overview
    notes = [note("attempts")] if any(card.worst for card in cards) else []
    notes += [line for card in cards for line in card.lines]
    failures = (notice.sentence for notice in assessment.failures)
    read = (notice.line for notice in assessment.notices)
    warnings = (*failures, *assessment.limits, *read)
    shown = replace(whole, notes=(*whole.notes, *notes), warnings=warnings)
    return text(shown, width=width)


def write_page(
    document: Document, figures: Sequence[Figure], path: Path, case: CaseRecord | None = None
) -> None:
    """Write a document and its ``figures`` as one page of HTML, or of PDF where that is its ending,
    which takes a Chromium. The ``case`` stands at its head.
    """
    content = page_html(document, figures, case).encode()
    if path.suffix != ".pdf":
        write_whole(path, content)
        return
    with tempfile.TemporaryDirectory() as folder:
        page, pdf = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_bytes(content)
        print_pdf(page, pdf, date=None)
        if not pdf.is_file():
            raise InputError(path, "a Chromium to print PDF", "none: write .html and print it")
        write_whole(path, pdf.read_bytes())


def browser() -> str | None:
    """A Chromium that prints, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def print_pdf(page: Path, pdf: Path, *, date: str | None) -> None:
    """Print ``page`` into ``pdf`` where there is a Chromium; ``date`` is its date, or none."""
    command = browser()
    if command is None:
        return
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={profile}",
            f"--print-to-pdf={pdf}",
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        ]
        words = [command, *options, page.resolve().as_uri()]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.SubprocessError):
            pdf.unlink(missing_ok=True)
    if pdf.is_file():
        pdf.write_bytes(_dated(pdf.read_bytes(), date))


def _dated(content: bytes, date: str | None) -> bytes:
    """The same document, made at ``date`` or at no time in particular."""
    try:
        day = datetime.date.fromisoformat(date or "")
    except ValueError:
        day = datetime.date(1970, 1, 1)
    stamp = day.strftime("%Y%m%d000000").encode()
    return _DATES.sub(lambda match: b"/" + match[1] + b" (D:" + stamp, content)
