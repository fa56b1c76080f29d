"""``unmask utility``: what protection costs in words, melody and quality."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.cli.embed import SpeakersOption
from unmask.errors import InputError
from unmask.report import Config, check_config, document
from unmask.run import place, reporting
from unmask.speech import recordings
from unmask.utility import (
    ORIGINAL,
    measure,
    read_labels,
    read_measurements,
    read_transcripts,
    recogniser,
    utility_of,
    write_measurements,
)


def utility(
    original: Annotated[
        Path, typer.Argument(help="Unprotected recordings: a folder, Kaldi directory or list.")
    ],
    protected: Annotated[
        list[str] | None,
        typer.Argument(help="Their protected versions, same names: FOLDER or NAME=FOLDER."),
    ] = None,
    transcripts: Annotated[
        Path | None,
        typer.Option("--transcripts", "-t", help="Kaldi text, CSV, or LibriSpeech .trans.txt."),
    ] = None,
    listener: Annotated[
        str,
        typer.Option(
            "--recogniser",
            "-r",
            help="pocketsphinx, faster-whisper:MODEL, transformers:MODEL, 'tool {input}' or none.",
        ),
    ] = "pocketsphinx",
    grammar: Annotated[
        str | None,
        typer.Option("--grammar", "-g", help="For pocketsphinx: digits, words, or a .gram file."),
    ] = None,
    hypotheses: Annotated[
        list[str] | None,
        typer.Option(
            "--hypotheses", help="NAME=FILE: what was heard; NAME original for originals."
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="A label of every utterance, such as emotion.")
    ] = None,
    predictions: Annotated[
        list[str] | None, typer.Option("--predictions", help="NAME=FILE: predicted labels.")
    ] = None,
    melody: Annotated[bool, typer.Option(help="Compare pitch.")] = True,
    dnsmos: Annotated[
        str,
        typer.Option("--dnsmos", help="Utterances of each speaker that DNSMOS hears, or all."),
    ] = "0",
    measurements: Annotated[
        Path | None,
        typer.Option("--measurements", "-m", help="Write every utterance's numbers there, CSV."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Assess privacy too and write the report, with the plane of both."
        ),
    ] = None,
    speakers: SpeakersOption = None,
    ci: Annotated[int, typer.Option("--ci", min=0, help="Bootstrap replicates; 0: none.")] = 1000,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    quiet: common.QuietOption = False,
) -> None:
    """What safeguards leave of words, melody and quality, beside unprotected speech."""
    if original.suffix == ".csv" and not protected:
        found = read_measurements(original)
    else:
        folders = _folders(protected or [])
        files = recordings(original, speakers=speakers)
        versions = {name: recordings(p, speakers=speakers) for name, p in folders.items()}
        heard = {n: read_transcripts(p, empty=True) for n, p in _named(hypotheses).items()}
        guessed = {n: read_labels(p) for n, p in _named(predictions).items()}
        for name in {*heard, *guessed} - {ORIGINAL, *folders}:
            raise typer.BadParameter(f"{name}: expected {ORIGINAL} or one of {', '.join(folders)}")
        listens = listener != "none" and transcripts is not None
        if listens and {ORIGINAL, *folders} <= set(heard):
            listens = False
        here = place(workers=workers)
        with here, common.progress("measuring", quiet=quiet) as bar, reporting(bar):
            found = measure(
                files,
                versions,
                transcripts=None if transcripts is None else read_transcripts(transcripts),
                recogniser=recogniser(listener, grammar=grammar) if listens else None,
                hypotheses=heard,
                labels=None if labels is None else read_labels(labels),
                predictions=guessed,
                pitched=melody and bool(folders),
                mos=None if dnsmos == "all" else _number(dnsmos),
                state=state,
            )
    if report is not None and measurements is None:
        measurements = report / "data" / "utility.csv"
        measurements.parent.mkdir(parents=True, exist_ok=True)
    if measurements is not None:
        write_measurements(found, measurements)
        common.remark(f"wrote {measurements}", quiet=quiet)
    result = utility_of(found, replicates=ci, level=level, seed=seed)
    common.give(document(result), format=format, output=output, quiet=quiet)
    if report is not None:
        assert measurements is not None
        _report(
            report, original, _folders(protected or []), measurements, speakers, seed, ci, quiet
        )


def _report(
    folder: Path,
    original: Path,
    protected: dict[str, Path],
    measurements: Path,
    speakers: str | None,
    seed: int,
    replicates: int,
    quiet: bool,
) -> None:
    """The assessment of the same folders, on whose first screen the plane stands."""
    from unmask.cli.assess import run

    if not protected:
        raise InputError("--report: expected folders of recordings, found measurements alone")
    whose = {} if speakers is None else {"speakers": speakers}
    config: Config = check_config(
        {
            "title": "What protection achieves and what it costs",
            "seed": seed,
            "intervals": {"replicates": max(replicates, 2)},
            "original": {"audio": original.resolve(), **whose},
            "safeguards": [
                {"name": name, "audio": path.resolve(), **whose} for name, path in protected.items()
            ],
            "utility": {"measurements": measurements.resolve()},
            "frameworks": ["legal", "similarity", "utility"],
        },
        name="--report",
    )
    run(config, folder, quiet=quiet)


def _folders(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        name, sign, path = text.partition("=")
        if not sign or Path(text).exists():
            name, path = Path(text).resolve().name, text
        if name in found:
            raise typer.BadParameter(f"expected different names, found {name} twice: NAME=FOLDER")
        found[name] = Path(path)
    return found


def _named(given: list[str] | None) -> dict[str, Path]:
    found = {}
    for text in given or []:
        name, sign, path = text.partition("=")
        if not sign or not name or not path:
            raise typer.BadParameter(f"expected NAME=FILE, found {text}")
        found[name] = Path(path)
    return found


def _number(text: str) -> int:
    if not text.isdigit():
        raise typer.BadParameter(f"--dnsmos: expected a number or all, found {text}")
    return int(text)
