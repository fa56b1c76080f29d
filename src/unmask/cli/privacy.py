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

    transcripts: Path | None = option(
        "Transcripts, for attacks by words: Kaldi text, CSV, JSON lines or a folder.", "-t"
    )
    text_embeddings: Path | None = option(
        "Vectors of a language model instead, by utterance (npz, parquet, …)."
    )

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
    return ", ".join(one.name for one in law.BACKENDS.values() if one.needs in needs)


def privacy(
    context: typer.Context,
    output: Output,
    intervals: DrawnIntervals,
    whose: Whose,
    said: Said,
    original: str | None = option("Embeddings of the original speech, or a Kaldi folder."),
    protected: tuple[str, ...] = option("NAME=FILE: embeddings of protected speech; repeat."),
    scores: tuple[str, ...] = option("NAME=OO,OP,PP: three score files instead; repeat."),
    columns: str | None = option("Columns of the score files: enrol=A,test=B,label=C,score=D."),
    matrices: tuple[str, ...] = option("NAME=FILE.npz: matrices oo, op, pp and speakers; repeat."),
    again: tuple[str, ...] = option("NAME=FILE: a second run of a safeguard, for C_ECE; repeat."),
    laplace: bool = option("Apply Laplace's rule in the isotonic map of C_ECE.", default=True),
    by: str | None = option("Assess each value of this column separately, such as gender."),
    side: tuple[str, ...] = option("Column the attacker knows: also align within its groups."),
    sessions: bool = option("Also report within and between sessions.", default=False),
    backend: str = option("cosine, wccn, plda, or a saved PLDA (FILE.npz).", default="cosine"),
    train: str | None = option("Embeddings to train wccn or plda on."),
    lda: int | None = option("LDA dimensions before PLDA."),
    mean: Literal["geometric", "arithmetic"] = option(
        "Mean of similarities: geometric (2022) or arithmetic (2020).", default="geometric"
    ),
    pairs: Literal["all", "upper"] = option(
        "Pairs of utterances: all, or upper (one order, for old tables).", default="all"
    ),
    details: bool = option("Also report the normalised twins and D_diag.", default=False),
    order: Literal["given", "cluster"] = option(
        "Order of speakers in the figures: as given, or by similarity.", default="given"
    ),
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
    release: str | None = argument(
        "Protected embeddings to link with each other: one half of each speaker's recordings"
        " enrols, the other tests, and vice versa.",
        "PROTECTED",
        default=None,
    ),
    attacker: tuple[str, ...] = option(
        "NAME=ENROL,TEST[,TRAIN[,TRAIN as protected]]: embeddings (npz, parquet, …). Call the"
        " attacker on unprotected speech original. Protected enrolment speech must come from the"
        " attacker's own run, not from the attacked one.",
        "-a",
    ),
    enrols: tuple[str, ...] = option(
        "NAME=original, own or attacked: what an attacker enrols. Give own if a keyless"
        " safeguard makes its run equal to the attacked one; attacked links recordings within"
        " the release."
    ),
    config: Path | None = option(
        "Take data, attackers and options from the config of an assessment.", "-c"
    ),
    counts: str | None = option("Candidates, comma-separated.", show_default="20 to all"),
    lengths: str | None = option(
        "Utterances per conversation, comma-separated.", show_default="those of 1,3,30 that fit"
    ),
    metrics: str = option(
        "Metrics, comma-separated.", default="singling_out,linkability,one_minus_eer"
    ),
    backends: str = option(
        f"Back-ends, comma-separated: {_named('nothing', 'attacked')}; with TRAIN also"
        f" {_named('training')}; with TRAIN as protected also {_named('pairs')}.",
        default="cosine",
    ),
    original: str | None = option("Name of the attacker on unprotected speech."),
    asked: str | None = option("Name of the attacker whose risk is reported first."),
    attribute: tuple[str, ...] = option("Column to infer; numbers by bands, as age:30,50."),
    linkability_enrol: str | None = option(
        "Utterances averaged in enrolment for Linkability: a number, or all.", show_default="all"
    ),
    singling_out_enrol: str | None = option(
        "The same for Singling Out.", show_default="30, or all if fewer"
    ),
    one_minus_eer_enrol: str | None = option(
        "The same for 1 − EER.", show_default="as for Linkability"
    ),
    by: str | None = option("Also attack each group of this column among its own people."),
    variants: str = option("Readings of the scores that compete.", default=",".join(law.READINGS)),
    protocol: law.LegalProtocol = group(
        swap=option(
            "Singling Out enrols TEST and tests ENROL, as in the paper; both must be protected."
        ),
        linkability_draws=option("Sample this many lists, as the paper.", show_default="exact"),
        folds=option("Folds of Singling Out."),
        draws=option("Draws of Singling Out."),
        max_enrol=option("Maximum number of enrolment speakers in Singling Out."),
        side=option(
            "Column that the attacker knows and matches; back-ends are also fitted within its"
            " groups."
        ),
        allow_shared_utterances=option("Allow utterances in both enrolment and test."),
        extrapolate=option("Number of people to continue Linkability to, beyond those at hand."),
    ),
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
        others = ", ".join(one for one in law.SCENARIOS if one not in names)
        usual = others and any(name in law.SCENARIOS for name in names)
        untried = f"not tried: attackers called {others} (none was given)"
        missing = (Notice("other-attackers", "", untried),) if usual else ()
        attackers = _attackers(
            attacker, release, enrols, backends.split(","), whose.speakers, original or "original"
        )
        if (words := said.words(whose)) is not None:
            attackers = law.with_words(attackers, words, original=original or "original")
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
