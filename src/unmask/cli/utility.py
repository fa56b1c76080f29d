"""``unmask utility``: what protection costs in words, melody and quality."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import typer

from unmask import utility as cost
from unmask.assessment import Beside, config_of
from unmask.cli.assess import report_outputs, run, versions
from unmask.cli.common import (
    DrawnIntervals,
    Output,
    figure_folder,
    read_named,
    whole_number,
    writable_file,
    writable_folder,
)
from unmask.cli.options import argument, group, option, output_file, output_folder
from unmask.cli.speech import Recorded
from unmask.errors import InputError
from unmask.report import document
from unmask.run import check_output_folder, make_folder, write_whole


def utility(
    recorded: Recorded,
    intervals: DrawnIntervals,
    original: Path = argument(),
    protected: list[str] | None = argument(default=None),
    transcripts: Path | None = option("-t"),
    listener: str = option("--recogniser", "-r", default="pocketsphinx"),
    grammar: str | None = option("-g"),
    hypotheses: tuple[str, ...] = (),
    labels: Path | None = None,
    predictions: tuple[str, ...] = (),
    melody: bool = True,
    dnsmos: str = "0",
    measurements: Path | None = output_file("-m", callback=writable_file),
    heard: Path | None = output_folder(callback=writable_folder, check=check_output_folder),
    report: Path | None = output_folder(callback=figure_folder, check=report_outputs),
    output: Output = group(
        on="local", figures=None, figure_formats="", width="page", bare=False, font="sans"
    ),
) -> None:
    folders = versions(protected or [])
    if original.suffix == ".csv" and not protected:
        measured = cost.read_measurements(original)
    else:
        files = recorded.read(original)
        spoken = {name: recorded.read(path) for name, path in folders.items()}
        words = partial(cost.read_transcripts, empty=True)
        known_words = read_named(hypotheses, "--hypotheses", words)
        guessed = read_named(predictions, "--predictions", cost.read_labels)
        for name in {*known_words, *guessed} - {cost.ORIGINAL, *folders}:
            raise typer.BadParameter(
                f"{name}: expected {cost.ORIGINAL} or one of {', '.join(folders)}"
            )
        known = {cost.ORIGINAL, *folders} <= set(known_words)
        listens = listener != "none" and transcripts is not None and not known
        with recorded.running("measuring"):
            measured = cost.measure(
                files,
                spoken,
                transcripts=None if transcripts is None else cost.read_transcripts(transcripts),
                recogniser=cost.recogniser(listener, grammar=grammar) if listens else None,
                hypotheses=known_words,
                labels=None if labels is None else cost.read_labels(labels),
                predictions=guessed,
                pitched=melody and bool(folders),
                mos=None
                if dnsmos == "all"
                else whole_number(dnsmos, "--dnsmos", "a number or all"),
                state=output.state,
            )
    if heard is not None:
        for name, texts in measured.heard.items():
            lines = (f"{u} {text}\n" for u, text in zip(measured.utterances, texts, strict=True))
            write_whole(make_folder(heard) / f"{name}.txt", "".join(lines).encode())
    if report is not None and measurements is None:
        measurements = make_folder(report / "data") / "utility.csv"
    if measurements is not None:
        cost.write_measurements(measured, measurements)
        recorded.remark(f"wrote {measurements}")
    output.give(document(cost.utility_of(measured, **intervals.options)))
    if report is not None:
        if not folders:
            raise InputError("--report: expected folders of recordings, found measurements alone")
        changes = {
            "title": "What protection achieves and what it costs",
            "seed": intervals.seed,
            "intervals.replicates": max(intervals.ci, 2),
            "utility.measurements": str(measurements),
            "frameworks": ["legal", "similarity", "utility"],
        }
        said = [f"{name}={json.dumps(value)}" for name, value in changes.items()]
        told = Beside(speakers=recorded.speakers)
        run(config_of(original, folders, told, changes=said), report, recorded)
