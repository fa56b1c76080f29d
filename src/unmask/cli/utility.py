"""``unmask utility``: what protection costs in words, melody and quality."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unmask import utility as cost
from unmask.assessment import Config
from unmask.cli.assess import run
from unmask.cli.common import (
    DrawnIntervals,
    Output,
    figure_folder,
    named_files,
    read_named,
    whole_number,
)
from unmask.cli.options import argument, group, option
from unmask.cli.speech import Recorded
from unmask.errors import InputError
from unmask.report import document
from unmask.run import make_folder

if TYPE_CHECKING:
    from unmask.assessment import Config


def utility(
    recorded: Recorded,
    intervals: DrawnIntervals,
    original: Path = argument("Unprotected recordings: a folder, Kaldi directory or list."),
    protected: list[str] | None = argument(
        "Their protected versions, same names: FOLDER or NAME=FOLDER.", default=None
    ),
    transcripts: Path | None = option("Kaldi text, CSV, or LibriSpeech .trans.txt.", "-t"),
    listener: str = option(
        "pocketsphinx, faster-whisper:MODEL, transformers:MODEL, 'tool {input}' or none.",
        "--recogniser",
        "-r",
        default="pocketsphinx",
    ),
    grammar: str | None = option("For pocketsphinx: digits, words, or a .gram file.", "-g"),
    hypotheses: tuple[str, ...] = option("NAME=FILE: what was heard; NAME original for originals."),
    labels: Path | None = option("A label of every utterance, such as emotion."),
    predictions: tuple[str, ...] = option("NAME=FILE: predicted labels."),
    melody: bool = option("Compare pitch.", default=True),
    dnsmos: str = option("Utterances of each speaker that DNSMOS hears, or all.", default="0"),
    measurements: Path | None = option("Write every utterance's numbers there, CSV.", "-m"),
    report: Path | None = option(
        "Assess privacy too and write the report, with the plane of both.", callback=figure_folder
    ),
    output: Output = group(
        on="local", figures=None, figure_formats="", width="page", bare=False, font="sans"
    ),
) -> None:
    folders = _folders(protected or [])
    if original.suffix == ".csv" and not protected:
        measured = cost.read_measurements(original)
    else:
        files = recorded.read(original)
        versions = {name: recorded.read(path) for name, path in folders.items()}
        words = partial(cost.read_transcripts, empty=True)
        heard = read_named(hypotheses, "--hypotheses", words)
        guessed = read_named(predictions, "--predictions", cost.read_labels)
        for name in {*heard, *guessed} - {cost.ORIGINAL, *folders}:
            raise typer.BadParameter(
                f"{name}: expected {cost.ORIGINAL} or one of {', '.join(folders)}"
            )
        known = {cost.ORIGINAL, *folders} <= set(heard)
        listens = listener != "none" and transcripts is not None and not known
        with recorded.running("measuring"):
            measured = cost.measure(
                files,
                versions,
                transcripts=None if transcripts is None else cost.read_transcripts(transcripts),
                recogniser=cost.recogniser(listener, grammar=grammar) if listens else None,
                hypotheses=heard,
                labels=None if labels is None else cost.read_labels(labels),
                predictions=guessed,
                pitched=melody and bool(folders),
                mos=None
                if dnsmos == "all"
                else whole_number(dnsmos, "--dnsmos", "a number or all"),
                state=output.state,
            )
    if report is not None and measurements is None:
        measurements = make_folder(report / "data") / "utility.csv"
    if measurements is not None:
        cost.write_measurements(measured, measurements)
        recorded.remark(f"wrote {measurements}")
    output.give(document(cost.utility_of(measured, **intervals.options)))
    if report is not None:
        assert measurements is not None
        config = _config(original, folders, measurements, recorded.speakers, intervals)
        run(config, report, recorded)


def _config(
    original: Path,
    protected: dict[str, Path],
    measurements: Path,
    speakers: str | None,
    intervals: DrawnIntervals,
) -> Config:
    """The assessment of the same folders, on whose first screen the plane stands."""
    if not protected:
        raise InputError("--report: expected folders of recordings, found measurements alone")
    from unmask.assessment import check_config

    whose = {} if speakers is None else {"speakers": speakers}
    return check_config(
        {
            "title": "What protection achieves and what it costs",
            "seed": intervals.seed,
            "intervals": {"replicates": max(intervals.ci, 2)},
            "original": {"audio": original.resolve(), **whose},
            "safeguards": [
                {"name": name, "audio": path.resolve(), **whose} for name, path in protected.items()
            ],
            "utility": {"measurements": measurements.resolve()},
            "frameworks": ["legal", "similarity", "utility"],
        },
        name="--report",
    )


def _folders(given: list[str]) -> dict[str, Path]:
    folders = {
        Path(path).resolve().name if name == path else name: Path(path)
        for name, path in named_files(given).items()
    }
    if len(folders) < len(given):
        raise InputError("expected different names, found one twice: NAME=FOLDER")
    return folders
