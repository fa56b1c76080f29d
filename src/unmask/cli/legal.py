"""``unmask legal``: Singling Out, Linkability, 1 − EER, ranks and inference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import common
from unmask.errors import InputError
from unmask.privacy.legal import BACKENDS, FREE, METRICS, VARIANTS, Attacker, with_backends
from unmask.privacy.legal import legal as attack
from unmask.report import document, legal_attackers, load_config
from unmask.trials import Embeddings, read_embeddings

_ENROLS: dict[str, dict[str, Any]] = {
    "original": {"enrols": "original"},
    "own": {"enrols": "protected", "consistency": False},
    "attacked": {"consistency": True},
}


def legal(
    context: typer.Context,
    attacker: Annotated[
        list[str] | None,
        typer.Option(
            "--attacker",
            "-a",
            help="NAME=ENROL,TEST, and TRAIN, and TRAIN as protected: embeddings (npz, parquet, …);"
            " call the one on unprotected speech original. Enrolment protected with keys of the"
            " attacker's own, never from the attacked run.",
        ),
    ] = None,
    enrols: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=WHAT an attacker enrols: original speech, own protected speech (say so where"
            " a safeguard without a key makes it equal to the attacked run), or the attacked run"
            " itself, which is no attack."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="The config of an assessment: its voices, attackers and [legal] options.",
        ),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(help="Numbers of speakers, comma-separated.", show_default="20 to all"),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="Utterances per conversation.", show_default="those of 1,3,30 that fit"),
    ] = None,
    metrics: Annotated[str, typer.Option(help="Which of the three metrics.")] = ",".join(METRICS),
    backends: Annotated[
        str,
        typer.Option(
            help="Of cosine, whitened, coral, wasserstein; of wccn, plda, asnorm, trained on TRAIN;"
            " of procrustes, fusion, which need TRAIN as protected too."
        ),
    ] = "cosine",
    original: Annotated[str | None, typer.Option(help="Attacker on unprotected speech.")] = None,
    asked: Annotated[str | None, typer.Option(help="Attacker whose risk is asked for.")] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(help="Column to infer; numbers with cuts of bands: age:30,50."),
    ] = None,
    linkability_enrol: Annotated[
        str | None,
        typer.Option(
            help="Utterances averaged in enrolment for Linkability, or all.", show_default="all"
        ),
    ] = None,
    singling_out_enrol: Annotated[
        str | None,
        typer.Option(help="The same for Singling Out.", show_default="30, or all where fewer"),
    ] = None,
    one_minus_eer_enrol: Annotated[
        str | None, typer.Option(help="The same for 1 − EER.", show_default="as for Linkability")
    ] = None,
    swap: Annotated[
        bool,
        typer.Option(
            "--swap",
            help="Singling Out enrols TEST and tests ENROL, as in the paper; both must be"
            " protected.",
        ),
    ] = False,
    variants: Annotated[str, typer.Option(help="Ways to read the scores that compete.")] = ",".join(
        VARIANTS
    ),
    linkability_draws: Annotated[
        int | None,
        typer.Option(help="Sample as many lists, as the paper does.", show_default="exact"),
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of Singling Out.")] = 10,
    draws: Annotated[int, typer.Option(help="Draws of Singling Out.")] = 5,
    max_enrol: Annotated[int, typer.Option(help="Most enrolment speakers of Singling Out.")] = 495,
    side: Annotated[
        list[str] | None, typer.Option(help="Column the attacker knows to match as well.")
    ] = None,
    speakers: common.SpeakersOption = None,
    allow_shared_utterances: Annotated[
        bool,
        typer.Option(
            "--allow-shared-utterances", help="Let utterances be in enrolment and in test."
        ),
    ] = False,
    ci: Annotated[int, typer.Option(min=0, help="Bootstrap replicates; 0: no intervals.")] = 1000,
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
        attackers, options = legal_attackers(load_config(config), config)
        options |= {"asked": asked, "variants": variants.split(",")}
    else:
        attackers = _attackers(
            attacker or [], enrols or [], backends.split(","), speakers, original or "original"
        )
        options = {
            "counts": None if counts is None else _numbers(counts, "--counts"),
            "lengths": None if lengths is None else _numbers(lengths, "--lengths"),
            "metrics": metrics.split(","),
            "original": _spelled(original, attackers),
            "asked": _spelled(asked, attackers),
            "attributes": dict(_attribute(text) for text in attribute or []),
            "variants": variants.split(","),
            "linkability_enrol": _length(linkability_enrol, "--linkability-enrol"),
            "singling_out_enrol": _length(singling_out_enrol, "--singling-out-enrol"),
            "one_minus_eer_enrol": _length(one_minus_eer_enrol, "--one-minus-eer-enrol"),
            "swap": swap,
            "linkability_draws": linkability_draws,
            "folds": folds,
            "draws": draws,
            "max_enrol": max_enrol,
            "side": side or [],
            "allow_shared_utterances": allow_shared_utterances,
            "replicates": ci,
            "level": level,
            "seed": seed,
        }
    with common.running("attacks", on, workers, state, quiet=quiet):
        sweep = attack(attackers, **options)
    common.draw(sweep, figures, formats=figure_formats, quiet=quiet)
    common.give(document(sweep), format=format, output=output, quiet=quiet)


_WITH_CONFIG = {
    "config", "asked", "variants", "format", "output", "figures", "figure_formats", "quiet", "on",
    "workers", "state",
}  # fmt: skip


def _refuse_both(context: typer.Context) -> None:
    """Options that a config holds are not taken from the command line as well."""
    for option in common.given(context, (n for n in context.params if n not in _WITH_CONFIG)):
        raise typer.BadParameter(f"{option} belongs into the config file")


def _attackers(
    specs: list[str],
    enrols: list[str],
    backends: list[str],
    speakers: str | None,
    original: str,
) -> dict[str, Attacker]:
    """Attackers from their files, each read once, with every back-end they can train."""
    files = {name: rest.split(",") for name, _, rest in (text.partition("=") for text in specs)}
    for name, paths in files.items():
        if not name or not 2 <= len(paths) <= 4 or not all(paths):
            raise typer.BadParameter(
                "--attacker: expected NAME=ENROL,TEST[,TRAIN[,PROTECTED]], found"
                f" {name}={','.join(paths)}"
            )
    if not files:
        raise typer.BadParameter("expected --attacker NAME=ENROL,TEST or --config FILE")
    if len(files) < len(specs):
        raise typer.BadParameter("--attacker: expected different names, found one twice")
    known = {name: what for name, _, what in (text.partition("=") for text in enrols)}
    for name, what in known.items():
        if name not in files or what not in _ENROLS:
            raise typer.BadParameter(
                f"--enrols: expected an attacker and original, own or attacked, found {name}={what}"
            )
    for backend in backends:
        if backend not in BACKENDS:
            raise InputError(f"back-end: expected {', '.join(BACKENDS)}, found {backend}")
    trained = [name for name in backends if name not in FREE]
    if trained and all(len(paths) == 2 for paths in files.values()):
        raise InputError(
            f"back-end {', '.join(trained)}: expected training embeddings of an attacker, found"
            " none"
        )

    @cache
    def load(path: str) -> Embeddings:
        return read_embeddings(path, speakers=speakers)

    attackers = {}
    for name, paths in files.items():
        enrol, test, *train = (load(path) for path in paths)
        more = _ENROLS[known[name]] if name in known else {}
        pairs = (train[0], train[1]) if len(train) == 2 else None
        data = train[0] if train else None
        attackers[name] = Attacker(enrol, test, train=data, pairs=pairs, **more)
    return with_backends(attackers, backends, original=original)


def _spelled(name: str | None, attackers: Mapping[str, Attacker]) -> str | None:
    """A name given without its back-end stands for the first with it."""
    if name is None or name in attackers:
        return name
    return next((label for label in attackers if label.startswith(f"{name} (")), name)


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
