"""``unmask forensic``: whether likelihood ratios of a system hold up in court."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from unmask import engine
from unmask.cli.common import Intervals, Output, Ratios, figure_folder, refuse, writable_file
from unmask.cli.options import argument, option
from unmask.errors import InputError
from unmask.report import document, figures_of, write_page
from unmask.trials import read_scores

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
    page: Path | None = option(callback=_page),
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
        write_page(shown, figures_of(result, tippett=tippett), page)
        output.remark(f"wrote {page}")
    output.give(shown)
