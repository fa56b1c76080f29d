"""``unmask privacy`` and ``legal``: what safeguards hide and what attackers make of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import typer

from unmask import assessment, privacy as law
from unmask.cli.common import (
    DrawnIntervals,
    Output,
    Where,
    Whose,
    given,
    named_files,
    read_named,
    refuse,
)
from unmask.cli.options import argument, group, option
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy import similarity as similar
from unmask.report import document
from unmask.scoring import backend_named
from unmask.trials import (
    Embeddings,
    Scores,
    Source,
    Speakers,
    read_embeddings,
    read_scores,
    refuse_encoders,
)


@dataclass(frozen=True)
class Said:
    """What is said in the recordings, by which people are recognised too."""

    transcripts: Path | None = option("-t")
    text_embeddings: Path | None = None

    def words(self, whose: Whose) -> law.Words | None:
        """What was read of them, if anything was given."""
        if self.transcripts is self.text_embeddings is None:
            return None
        from unmask.utility import read_words

        return read_words(self.transcripts, self.text_embeddings, speakers=whose.speakers)


_ENROLS: dict[str, dict[str, Any]] = {
    "original": {"enrols": "original"},
    "own": {"enrols": "protected", "release": False},
    "attacked": {"release": True},
}


def _named(*needs: str) -> str:
    """The names of back-ends that need one of these."""
    return ", ".join(backend.name for backend in law.BACKENDS.values() if backend.needs in needs)


def privacy(
    context: typer.Context,
    output: Output,
    intervals: DrawnIntervals,
    whose: Whose,
    said: Said,
    original: str | None = None,
    protected: tuple[str, ...] = (),
    scores: tuple[str, ...] = (),
    columns: str | None = None,
    matrices: tuple[str, ...] = (),
    again: tuple[str, ...] = (),
    laplace: bool = True,
    by: str | None = None,
    side: tuple[str, ...] = (),
    sessions: bool = False,
    backend: str = "cosine",
    train: str | None = None,
    lda: int | None = None,
    mean: Literal["geometric", "arithmetic"] = "geometric",
    pairs: Literal["all", "upper"] = "all",
    details: bool = False,
    order: Literal["given", "cluster"] = "given",
) -> None:
    embeddings = original is not None or bool(protected)
    if embeddings + bool(scores) + bool(matrices) != 1:
        raise InputError("expected --original with --protected, or --scores, or --matrices")
    if embeddings and (original is None or not protected):
        raise InputError("--original and --protected belong together: one of them is missing")
    if matrices and again:
        raise InputError("--again needs embeddings or score files, found --matrices")
    if not embeddings and (train or backend != "cosine"):
        raise InputError("--backend and --train need embeddings, found scores")
    if backend in ("wccn", "plda") and train is None:
        raise InputError(f"--backend {backend} needs --train: embeddings to train it on")
    if not embeddings and (by is not None or side or sessions):
        raise InputError("--by, --side and --sessions need embeddings, found scores")
    if not embeddings:
        refuse(context, Said.__annotations__, "needs embeddings, found scores")
    if not scores:
        refuse(context, ["columns"], "is for score files (--scores)")
    else:
        refuse(context, Where.__annotations__, "is for embeddings and matrices, found --scores")
    with output.running("pairs of segments"):
        data: tuple[Any, ...] = ()
        more: dict[str, Any] = {}
        if matrices:
            data = (read_named(matrices, "--matrices", similar.read_matrices),)
        elif scores:
            read = partial(read_scores, speakers=whose.speakers, columns=columns)
            lists = read_named(scores, "--scores", _three)
            data = ({name: tuple(map(read, paths)) for name, paths in lists.items()},)
            more["again"] = read_named(again, "--again", read)
        elif original is not None:
            load = partial(read_embeddings, speakers=whose.speakers)
            data = load(original), read_named(protected, "--protected", load)
            more["again"] = read_named(again, "--again", load)
            training = None if train is None else load(train)
            refuse_encoders({"the original": data[0], "training": training})
            more["backend"] = backend_named(backend, training, **({"lda": lda} if lda else {}))
            more |= {"by": by, "side": side, "with_sessions": sessions, "words": said.words(whose)}
        options = {"mean": mean, "pairs": pairs, "laplace": laplace, **intervals.options}
        result = similar.compare_safeguards(*data, **more, **options)
    sources = _sources((*data, more.get("again")))
    output.sources(sources)
    output.draw(result, order=order)
    output.give(document(result, inputs=sources, details=details))


def _three(paths: str) -> list[str]:
    files = paths.split(",")
    if len(files) != 3:
        raise InputError(f"--scores: expected three files OO,OP,PP, found {len(files)}: {paths}")
    return files


def _sources(data: Any) -> tuple[Source, ...]:
    """The files behind the data, each once, in the order read."""
    if isinstance(data, Embeddings):
        return () if data.source is None else (data.source,)
    if isinstance(data, Scores):
        return data.sources
    if isinstance(data, Mapping):
        return _sources(tuple(data.values()))
    if isinstance(data, tuple):
        return tuple(dict.fromkeys(source for part in data for source in _sources(part)))
    return ()


def legal(
    context: typer.Context,
    output: Output,
    intervals: DrawnIntervals,
    whose: Whose,
    said: Said,
    release: str | None = argument(default=None),
    attacker: tuple[str, ...] = option("-a"),
    enrols: tuple[str, ...] = (),
    config: Path | None = option("-c"),
    counts: str | None = None,
    lengths: str | None = None,
    metrics: str = "singling_out,linkability,one_minus_eer",
    backends: str = option(
        default="cosine",
        help=f"Back-ends, comma-separated: {_named('nothing', 'attacked')}; with TRAIN also"
        f" {_named('training')}; with TRAIN as protected also {_named('pairs')}.",
    ),
    original: str | None = None,
    asked: str | None = None,
    attribute: tuple[str, ...] = (),
    linkability_enrol: str | None = None,
    singling_out_enrol: str | None = None,
    one_minus_eer_enrol: str | None = None,
    by: str | None = None,
    variants: str = ",".join(law.READINGS),
    protocol: law.LegalProtocol = group(),
) -> None:
    if config is not None:
        for name in given(context, (n for n in context.params if n not in _WITH_CONFIG)):
            raise typer.BadParameter(f"{name} belongs into the config file")
        attackers, options, missing = assessment.legal_attackers(
            assessment.load_config(config), config
        )
        options |= {"asked": asked, "variants": variants.split(",")}
    else:
        names = list(named_files(attacker, "--attacker"))
        others = ", ".join(scenario for scenario in law.SCENARIOS if scenario not in names)
        usual = others and any(name in law.SCENARIOS for name in names)
        untried = f"not tried: attackers called {others} (none was given)"
        missing = (Notice("other-attackers", "", untried),) if usual else ()
        attackers = _attackers(
            attacker, release, enrols, backends.split(","), whose.speakers, original or "original"
        )
        if (words := said.words(whose)) is not None:
            attackers = law.with_words(attackers, words, original=original or "original")
        attackers = law.with_length(attackers, original=original or "original")
        options = {
            "counts": None if counts is None else _numbers(counts, "--counts"),
            "lengths": None if lengths is None else _numbers(lengths, "--lengths"),
            "metrics": metrics.split(","),
            "original": _spelled(original, attackers),
            "asked": _spelled(asked, attackers),
            "attributes": dict(_attribute(text) for text in attribute),
            "variants": variants.split(","),
            "protocol": replace(
                protocol,
                linkability_enrol=_length(linkability_enrol, "--linkability-enrol"),
                singling_out_enrol=_length(singling_out_enrol, "--singling-out-enrol"),
                one_minus_eer_enrol=_length(one_minus_eer_enrol, "--one-minus-eer-enrol"),
            ),
            **intervals.options,
        }
    with output.running("attacks"):
        sweep = law.assess_attackers(attackers, **options)
        if by is not None:
            sweep = law.risk_gaps(sweep, attackers, by, protocol=options["protocol"])
    sweep = replace(sweep, untried=(*missing, *sweep.untried))
    output.draw(sweep)
    output.give(document(sweep))


_WITH_CONFIG = {
    "config", "asked", "by", "variants", "format", "output", "figures", "figure_formats", "width",
    "bare", "font", "quiet", "on", "workers", "state",
}  # fmt: skip
"""Options that a config does not hold."""


def _attackers(
    specs: Sequence[str],
    release: str | None,
    enrols: Sequence[str],
    backends: Sequence[str],
    speakers: Speakers | None,
    original: str,
) -> dict[str, law.Attacker]:
    """Attackers from their files, each read once, with every back-end they can train."""
    files = {name: paths.split(",") for name, paths in named_files(specs, "--attacker").items()}
    for name, paths in files.items():
        if not 2 <= len(paths) <= 4 or not all(paths):
            raise typer.BadParameter(
                "--attacker: expected NAME=ENROL,TEST[,TRAIN[,PROTECTED]], found"
                f" {name}={','.join(paths)}"
            )
    if not files and release is None:
        raise typer.BadParameter("expected PROTECTED, --attacker NAME=ENROL,TEST or --config FILE")
    known = named_files(enrols, "--enrols")
    for name, what in known.items():
        if name not in files or what not in _ENROLS:
            raise typer.BadParameter(
                f"--enrols: expected an attacker and original, own or attacked, found {name}={what}"
            )
    trained = [name for name in backends if not law.known_backend(name).is_free]
    if trained and release is None and all(len(paths) == 2 for paths in files.values()):
        place = f"back-end {', '.join(trained)}"
        raise InputError(place, "training embeddings of an attacker", "none")

    @cache
    def load(path: str) -> Embeddings:
        return read_embeddings(path, speakers=speakers)

    attackers = {}
    for name, paths in files.items():
        enrol, test, *train = (load(path) for path in paths)
        more = _ENROLS[known[name]] if name in known else {}
        pairs = (train[0], train[1]) if len(train) == 2 else None
        data = train[0] if train else None
        attackers[name] = law.Attacker(enrol, test, train=data, parallel=pairs, **more)
    if release is not None:
        attackers[law.RELEASE] = law.within_release(load(release))
    return law.with_backends(attackers, backends, original=original)


def _spelled(name: str | None, attackers: Mapping[str, law.Attacker]) -> str | None:
    """A name given without its back-end stands for the first with it."""
    if name is None or name in attackers:
        return name
    return next((label for label in attackers if label.startswith(f"{name} (")), name)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{option}: expected whole numbers, found {text}") from None


def _length(text: str | None, option: str) -> law.EnrolLength:
    if text is None:
        return None
    return "all" if text == "all" else _numbers(text, option)[0]


def _attribute(text: str) -> tuple[str, list[float]]:
    name, _, cuts = text.partition(":")
    try:
        return name, [float(cut) for cut in cuts.split(",")] if cuts else []
    except ValueError:
        raise typer.BadParameter(f"--attribute: expected COLUMN:CUT,CUT, found {text}") from None
