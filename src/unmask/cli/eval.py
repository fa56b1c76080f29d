"""``unmask eval``, ``compare`` and ``forensic``: detection and disclosure of systems, of two on one
list, and whether likelihood ratios of a system hold up in court.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import typer

from unmask import engine
from unmask.cli.common import (
    Intervals,
    Output,
    Ratios,
    Tables,
    Where,
    figure_folder,
    given,
    named_files,
    refuse,
    remark,
    score_files,
    writable_file,
)
from unmask.cli.options import argument, group, option, output_file
from unmask.engine import Battery
from unmask.errors import InputError
from unmask.estimate import HasNotices
from unmask.report import document, figures_of
from unmask.trials import read_scores

_OF_SCORES = (
    *("key", "system", "format_in", "columns", "scores_are", "stream", "missing"),
    *("duplicates", "dev", "equalise", "spoof", "role"),
)
_OF_CONVENTION = ("p_target", "c_miss", "c_fa", "eer", "d_sys", "c_primary", "undivided")
_CONVENTION = option(help=f"Compute as in: {', '.join(engine.CONVENTIONS)}.", metavar="NAME")


def _battery(context: typer.Context, battery: Battery, names: tuple[str, ...]) -> Battery:
    """The battery, or that of the one convention that was named."""
    if not names:
        return battery
    if len(names) > 1:
        raise InputError(f"--convention: expected one, found {' and '.join(names)}")
    refuse(context, _OF_CONVENTION, f"is set by --convention {names[0]}")
    free = {"fpr": battery.fpr, "threshold": battery.threshold, "far": battery.far}
    return Battery.named(names[0], **free)


def _numbers(text: str | None, name: str) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise InputError(f"--{name}", "six numbers with commas", text) from None


def _roles(words: tuple[str, ...]) -> str | dict[str, str] | None:
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    return named_files(words, "--role") or None


def evaluate(
    context: typer.Context,
    tables: Ratios,
    intervals: Intervals,
    output: Output,
    scores: list[str] = argument(),
    system: tuple[str, ...] = (),
    by: str | None = None,
    alpha: float = 0.5,
    equalise: str | None = None,
    convention: tuple[str, ...] = _CONVENTION,
    spoof: bool | None = None,
    role: tuple[str, ...] = (),
    a_dcf: str | None = None,
    t_dcf: str | None = None,
    battery: Battery = group(),
    dev: tuple[str, ...] = (),
    dev_key: str | None = None,
    pairs: str | None = None,
    enrolment: int = option(default=1, min=1),
    backend: str = "cosine",
    stream: bool | None = None,
) -> None:
    battery = _battery(context, battery, convention)
    if by is None:
        refuse(context, ["alpha"], "weighs gaps between groups (--by)")
    if not dev:
        refuse(context, ["dev_key"], "is the key of --dev")
    if pairs is not None:
        refuse(context, _OF_SCORES, "is for score files")
        with output.running("blocks"):
            evaluation = engine.cross_pairing(
                scores,
                pairs=pairs,
                enrolment=enrolment,
                backend=backend,
                battery=battery,
                speakers=tables.speakers,
                by=by,
                alpha=alpha,
                **intervals.options,
            )
    else:
        refuse(context, ["enrolment"], "is for embeddings, with --pairs")
        chosen: dict[str, Any] = {"backend": backend} if given(context, ["backend"]) else {}
        if stream:
            refuse(context, Where.__annotations__, "is not for files that are read in batches")
            refuse(context, ["by", "equalise", "dev"], "needs all scores in memory (--no-stream)")
        options = tables.options
        other = None
        if dev:
            key = options | ({"key": dev_key} if given(context, ["dev_key"]) else {})
            other = read_scores(score_files(dev), systems=list(system) or None, **key)
        with output.running("bootstrap"):
            evaluation = engine.evaluate(
                score_files(scores),
                systems=list(system) or None,
                by=by,
                alpha=alpha,
                equalise=equalise,
                stream=stream,
                spoof=spoof,
                role=_roles(role),
                a_dcf=_numbers(a_dcf, "a-dcf"),
                t_dcf=_numbers(t_dcf, "t-dcf"),
                battery=battery,
                **chosen,
                dev=other,
                **options,
                **intervals.options,
            )
        if tables.scores_are and evaluation.scores is not None:
            known = evaluation.scores.systems
            every = (result for result in evaluation if result.group is None)
            rocs = {result.system: result.roc for result in every if result.system in known}
            more = engine.unit_notices(evaluation.scores, rocs, tables.scores_are)
            evaluation = replace(evaluation, notices=(*evaluation.notices, *more))
    _refuse_groups(evaluation)
    output.sources(evaluation.sources)
    output.draw(evaluation, p_target=battery.p_target[0])
    output.give(document(evaluation))


def compare(
    context: typer.Context,
    tables: Tables,
    intervals: Intervals,
    output: Output,
    scores: list[str] = argument(),
    system: tuple[str, ...] = (),
    privacy: bool | None = None,
    by: str | None = None,
    equalise: str | None = None,
    convention: tuple[str, ...] = _CONVENTION,
    enrol: str | None = None,
    fail_if: tuple[str, ...] = (),
    battery: Battery = group(),
) -> None:
    from unmask.privacy import legal as law

    if len(scores) > 2:
        raise InputError(f"compare takes one or two score files, found {len(scores)}")
    battery = _battery(context, battery, convention)
    wanted = [_gate(words) for words in fail_if]
    if enrol is None:
        table = tables.scores(scores, output)
    else:
        refuse(context, _OF_SCORES, "is for score files, not for embeddings with --enrol")
        table = law.linked_scores(enrol, named_files(scores), speakers=tables.speakers)
        output.sources(table.sources)
        privacy = True if privacy is None else privacy
    names = system or tuple(table.systems)
    if len(names) == 1:
        raise InputError(
            f"compare needs two systems: give a second file (new=FILE); found {names[0]}"
        )
    if len(names) != 2:
        raise InputError(
            "compare needs two systems: name them with --system; "
            f"there are {', '.join(table.systems)}"
        )
    if wanted and privacy is None:
        files = [source.name for source in table.sources]
        for notice in engine.read_as_safeguards([*names, *files]):
            said = notice.sentence.partition(";")[0]
            raise InputError(f"--fail-if: {said}: say --privacy or --no-privacy")
    with output.running("bootstrap"):
        comparison = engine.compare(
            table,
            *names,
            by=by,
            equalise=equalise,
            battery=battery,
            privacy=privacy,
            **intervals.options,
        )
        if comparison.privacy:
            comparison = law.with_linkability(comparison, **intervals.options)
    _refuse_groups(comparison)
    failed = [row for metric in wanted for row in comparison.worsens(metric)]
    if output.figures is not None:
        with output.running("charts"):
            output.draw(comparison)
    output.give(document(comparison))
    for row in failed:
        remark(f"failed: {row.metric} worsens: {row!r}")
    if failed:
        raise typer.Exit(GATE_FAILED)


GATE_FAILED = 3
"""Exit code of a gate that failed; 1 is that of bad input, 2 that of wrong usage."""


def _refuse_groups(result: HasNotices) -> None:
    """A column that makes no groups of speakers is an error where it was asked for."""
    for notice in result.notices:
        if notice.code == "no-gaps":
            raise InputError(notice.sentence)


def _gate(words: str) -> str:
    metric, _, verb = words.strip().partition(" ")
    if verb.strip() != "worsens":
        raise InputError("--fail-if", "'METRIC worsens', such as 'eer worsens'", words)
    return metric


_PAGES = (".html", ".pdf")


def _page(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in _PAGES:
        raise InputError("--page", "a file that ends in .html or .pdf", path.name)
    figure_folder(path and path.absolute().parent)
    return writable_file(path)


def forensic(
    context: typer.Context,
    tables: Ratios,
    intervals: Intervals,
    output: Output,
    scores: str = argument(),
    system: tuple[str, ...] = (),
    calibrate: bool = False,
    train: str | None = None,
    train_key: str | None = None,
    folds: int = option(default=5, min=3),
    case: float | None = None,
    tippett: Literal["consensus", "above"] = "consensus",
    page: Path | None = output_file(callback=_page),
    case_file: Path | None = None,
    title: str | None = None,
    note: tuple[str, ...] = (),
) -> None:
    """Validate likelihood ratios for court: validity, calibration, bounds, a case.

    C_llr, C_llr^min, C_llr^cal, EER, devPAV, misleading evidence, and the LRs
    that the data support, each with its interval over speakers.
    """
    if not calibrate:
        refuse(context, ["folds"], "is for --calibrate")
    if train is None:
        refuse(context, ["train_key"], "is for --train")
    elif calibrate:
        raise InputError("--calibrate", "cross-fitting, or --train", "both")
    if page is None and output.figures is None:
        refuse(context, ["tippett"], "is for --figures and --page")
    if page is None:
        refuse(context, ["case_file", "title", "note"], "is for --page")
    from unmask.report import CaseRecord

    record = CaseRecord() if case_file is None else CaseRecord.read(case_file)
    options = {**tables.options, "systems": list(system) or None}
    learnt = None if train is None else read_scores(train, **{**options, "key": train_key})
    with output.running("bootstrap"):
        result = engine.forensic(
            scores,
            calibrate=calibrate,
            train=learnt,
            folds=folds,
            case=case,
            **intervals.options,
            **options,
        )
    output.sources(result.sources)
    output.draw(result, tippett=tippett)
    shown = document(result)
    if page is not None:
        from unmask.report import write_page

        charts = figures_of(result, tippett=tippett)
        write_page(shown, charts, page, record.with_words(title=title, notes=note))
        output.remark(f"wrote {page}")
    output.give(shown)
