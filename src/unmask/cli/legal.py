"""``unmask legal``: Singling Out, Linkability, 1 − EER, ranks and inference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from unmask.cli import common
from unmask.errors import InputError
from unmask.figures import save_all
from unmask.privacy.legal import AttackerFiles, LegalConfig, legal_from_config, read_legal_config
from unmask.report import document, figures_of


def legal(
    context: typer.Context,
    attacker: Annotated[
        list[str] | None,
        typer.Option(
            "--attacker",
            "-a",
            help="NAME=ENROL,TEST or NAME=ENROL,TEST,TRAIN: embeddings (npz, parquet, Kaldi, HDF5);"
            " call the one on unprotected speech original. Enrolment protected with keys of the"
            " attacker's own, never from the attacked run.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="A TOML file with the same options.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts", help="Numbers of speakers, comma-separated.", show_default="20 to all"
        ),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths",
            help="Utterances per conversation.",
            show_default="those of 1,3,30 that fit",
        ),
    ] = None,
    metrics: Annotated[
        str, typer.Option("--metrics", help="Which of the three metrics.")
    ] = "singling_out,linkability,one_minus_eer",
    backends: Annotated[
        str,
        typer.Option(
            "--backends", help="Of cosine, wccn, plda; the last two are trained on TRAIN."
        ),
    ] = "cosine",
    original: Annotated[
        str | None, typer.Option("--original", help="Attacker on unprotected speech.")
    ] = None,
    asked: Annotated[
        str | None, typer.Option("--asked", help="Attacker whose risk is asked for.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", help="Column to infer; numbers with cuts of bands: age:30,50."),
    ] = None,
    linkability_enrol: Annotated[
        str | None,
        typer.Option(
            "--linkability-enrol",
            help="Utterances averaged in enrolment for Linkability, or all.",
            show_default="all",
        ),
    ] = None,
    singling_out_enrol: Annotated[
        str | None,
        typer.Option(
            "--singling-out-enrol",
            help="The same for Singling Out.",
            show_default="30, or all where fewer",
        ),
    ] = None,
    one_minus_eer_enrol: Annotated[
        str | None,
        typer.Option(
            "--one-minus-eer-enrol",
            help="The same for 1 − EER.",
            show_default="as for Linkability",
        ),
    ] = None,
    swap: Annotated[
        bool,
        typer.Option(
            "--swap",
            help="Singling Out enrols TEST and tests ENROL, as in the paper; both must be"
            " protected.",
        ),
    ] = False,
    variants: Annotated[
        str, typer.Option("--variants", help="Ways to read the scores that compete.")
    ] = "plain,negated,centred,centred negated",
    linkability_draws: Annotated[
        int | None,
        typer.Option(
            "--linkability-draws",
            help="Sample as many lists, as the paper does.",
            show_default="exact",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Folds of Singling Out.")] = 10,
    draws: Annotated[int, typer.Option("--draws", help="Draws of Singling Out.")] = 5,
    max_enrol: Annotated[
        int, typer.Option("--max-enrol", help="Most enrolment speakers of Singling Out.")
    ] = 495,
    side: Annotated[
        list[str] | None,
        typer.Option("--side", help="Column the attacker knows to match as well."),
    ] = None,
    speakers: common.SpeakersOption = None,
    allow_shared_utterances: Annotated[
        bool,
        typer.Option(
            "--allow-shared-utterances", help="Let utterances be in enrolment and in test."
        ),
    ] = False,
    ci: Annotated[
        int, typer.Option("--ci", min=0, help="Bootstrap replicates; 0 for no intervals.")
    ] = 1000,
    level: common.LevelOption = 0.95,
    seed: common.SeedOption = 0,
    on: common.OnOption = "local",
    workers: common.WorkersOption = None,
    state: common.StateOption = None,
    format: common.FormatOption = common.OutputFormat.text,
    output: common.OutputOption = None,
    figures: common.FiguresOption = None,
    figure_formats: common.FigureFormatsOption = "png,svg,html",
    quiet: common.QuietOption = False,
) -> None:
    """Singling Out, Linkability, 1 − EER, ranks and inference of several attackers."""
    if config is not None:
        _refuse_both(context)
        plan = read_legal_config(config)
    else:
        plan = _plan(
            attackers=_attackers(attacker or []),
            counts=None if counts is None else _numbers(counts, "--counts"),
            lengths=None if lengths is None else _numbers(lengths, "--lengths"),
            metrics=metrics.split(","),
            backends=backends.split(","),
            original=original,
            asked=asked,
            attributes=dict(_attribute(text) for text in attribute or []),
            variants=variants.split(","),
            linkability_enrol=_length(linkability_enrol, "--linkability-enrol"),
            singling_out_enrol=_length(singling_out_enrol, "--singling-out-enrol"),
            one_minus_eer_enrol=_length(one_minus_eer_enrol, "--one-minus-eer-enrol"),
            swap=swap,
            linkability_draws=linkability_draws,
            folds=folds,
            draws=draws,
            max_enrol=max_enrol,
            side=side or [],
            speakers=speakers,
            allow_shared_utterances=allow_shared_utterances,
            replicates=ci,
            level=level,
            seed=seed,
        )
    with common.progress("attacks", quiet=quiet) as bar:
        sweep = legal_from_config(plan, on=on, workers=workers, state=state, progress=bar)
    if figures is not None:
        save_all(figures_of(sweep), figures, formats=tuple(figure_formats.split(",")))
    common.give(document(sweep), format=format, output=output, quiet=quiet)
    if figures is not None:
        common.remark(f"figures in {figures}", quiet=quiet)


_WITH_CONFIG = {
    "config", "format", "output", "figures", "figure_formats", "quiet", "on", "workers", "state",
}  # fmt: skip


def _refuse_both(context: typer.Context) -> None:
    """Options that a config holds are not taken from the command line as well."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _WITH_CONFIG and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} belongs into the config file")


def _plan(**options: Any) -> LegalConfig:
    try:
        return LegalConfig(**options)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
        ) from None


def _attackers(given: list[str]) -> dict[str, AttackerFiles]:
    found: dict[str, AttackerFiles] = {}
    for text in given:
        name, _, rest = text.partition("=")
        files = rest.split(",")
        if not name or len(files) not in (2, 3) or not all(files):
            raise typer.BadParameter(f"--attacker: expected NAME=ENROL,TEST[,TRAIN], found {text}")
        if name in found:
            raise typer.BadParameter(f"--attacker: {name} is given twice")
        train = files[2] if len(files) == 3 else None
        found[name] = AttackerFiles(enrol=files[0], test=files[1], train=train)
    if not found:
        raise typer.BadParameter("expected --attacker NAME=ENROL,TEST or --config FILE")
    return found


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{option}: expected whole numbers, found {text}") from None


def _length(text: str | None, option: str) -> int | str | None:
    if text is None or text == "all":
        return text
    return _numbers(text, option)[0]


def _attribute(text: str) -> tuple[str, list[float]]:
    name, _, cuts = text.partition(":")
    try:
        return name, [float(cut) for cut in cuts.split(",")] if cuts else []
    except ValueError:
        raise typer.BadParameter(f"--attribute: expected COLUMN:CUT,CUT, found {text}") from None
