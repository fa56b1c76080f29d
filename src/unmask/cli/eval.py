"""``unmask eval`` and ``compare``: detection and disclosure of systems, and of two on one list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from unmask import engine
from unmask.cli.common import (
    Intervals,
    Output,
    Ratios,
    Tables,
    Where,
    given,
    named_files,
    refuse,
    score_files,
)
from unmask.cli.options import argument, group, option
from unmask.engine import Battery
from unmask.errors import InputError
from unmask.estimate import HasNotices
from unmask.report import document
from unmask.trials import read_scores

_OF_SCORES = (
    *("key", "system", "format_in", "columns", "scores_are", "stream", "missing"),
    *("duplicates", "dev", "equalise", "spoof", "role"),
)
_OF_CONVENTION = ("p_target", "c_miss", "c_fa", "eer", "d_sys", "c_primary", "undivided")
_CONVENTION = option("Compute as in: " + ", ".join(engine.CONVENTIONS) + ".", metavar="NAME")
_EQUALISE = option("Weigh conditions in this column equally, by class.", metavar="COLUMN")


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
    """Priors and costs of an option."""
    if text is None:
        return None
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise InputError(f"--{name}", "six numbers with commas", text) from None


def _roles(words: tuple[str, ...]) -> str | dict[str, str] | None:
    """The role of all systems, or of those that are named."""
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    return named_files(words, "--role") or None


def evaluate(
    context: typer.Context,
    tables: Ratios,
    intervals: Intervals,
    output: Output,
    scores: list[str] = argument(
        "Score files (also .gz; - reads stdin), or embeddings with --key or --pairs.",
        "[NAME=]FILE...",
    ),
    system: tuple[str, ...] = option("Only these systems (columns)."),
    by: str | None = option("Also report groups of this column, such as sex, and their gaps."),
    alpha: float = option("Weight of FMR in FDR and GARBE, with --by.", default=0.5),
    equalise: str | None = _EQUALISE,
    convention: tuple[str, ...] = _CONVENTION,
    spoof: bool | None = option(
        "Judge spoof trials as a third class.", show_default="if labels have them"
    ),
    role: tuple[str, ...] = option(
        "asv or cm (countermeasure), for all systems or by name. Repeatable.",
        metavar="[NAME=]ROLE",
        show_default="cm where a name has it",
    ),
    a_dcf: str | None = option(
        "Priors and costs of the a-DCF: target, nontarget, spoof, miss, and accepting either.",
        metavar="P,P,P,C,C,C",
        show_default="0.9,0.05,0.05,1,10,20",
    ),
    t_dcf: str | None = option(
        "Those of the t-DCF.", metavar="P,P,P,C,C,C", show_default="0.9405,0.0095,0.05,1,10,10"
    ),
    battery: Battery = group(
        p_target=option("Target prior of the detection costs. Repeatable."),
        c_miss=option("Cost of a miss."),
        c_fa=option("Cost of a false alarm."),
        fpr=option("Report the true-positive rate at this false-positive rate. Repeatable."),
        threshold=option("Report FAR, FRR and cost at this threshold. Repeatable."),
        far=option("Report the threshold for this false-alarm rate, and a safe one. Repeatable."),
        eer=option("Definition of the EER: rocch, raw, kaldi, speechbrain or asvspoof."),
        d_sys=option("Estimator of D_sys: pav or histogram."),
        c_primary=option("Also report the mean cost over all priors."),
        undivided=option("Also report costs that are not normalised (C_det)."),
    ),
    dev: tuple[str, ...] = option(
        "Set thresholds on these scores of other speakers.", metavar="[NAME=]FILE"
    ),
    dev_key: str | None = option("Key of the development list.", metavar="FILE"),
    pairs: str | None = option(
        "Score pairs of embeddings: all, or enrolment-fixed.", metavar="HOW"
    ),
    enrolment: int = option("Utterances per enrolment, with enrolment-fixed.", default=1, min=1),
    backend: str = option("For embeddings: cosine, or the file of a PLDA.", default="cosine"),
    stream: bool | None = option(
        "Read scores in batches, in bounded memory.", show_default="for files over 2 GB"
    ),
) -> None:
    battery = _battery(context, battery, convention)
    if by is None:
        refuse(context, ["alpha"], "weighs gaps between groups (--by)")
    if not dev:
        refuse(context, ["dev_key"], "is the key of --dev")
    if pairs is not None:
        refuse(context, ["by"], "needs all scores in memory, which --pairs does not keep")
        refuse(context, _OF_SCORES, "is for score files")
        with output.running("blocks"):
            evaluation = engine.cross_pairing(
                scores,
                pairs=pairs,
                enrolment=enrolment,
                backend=backend,
                battery=battery,
                speakers=tables.speakers,
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
            every = (one for one in evaluation if one.group is None)
            rocs = {one.system: one.roc for one in every if one.system in known}
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
    scores: list[str] = argument(
        "Two score files, or one file with several systems.", "[NAME=]FILE..."
    ),
    system: tuple[str, ...] = option("The two systems, if the files have more."),
    privacy: bool | None = option(
        "The systems are safeguards: the one that recognises speakers better protects less.",
        show_default="if names contain oo, op, pp, o-a, a-a or anon",
    ),
    by: str | None = option("Also report gaps between groups of this column, such as sex."),
    equalise: str | None = _EQUALISE,
    convention: tuple[str, ...] = _CONVENTION,
    enrol: str | None = option(
        "Original embeddings that attackers enrol: the two files are protected embeddings.",
        metavar="FILE",
    ),
    fail_if: tuple[str, ...] = option(
        "Exit with 1 if a metric of the second system is worse. Repeatable.",
        metavar="'METRIC worsens'",
    ),
    battery: Battery = group(p_target=option("Target prior of the detection costs. Repeatable.")),
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
        output.remark(f"failed: {row.metric} worsens: {row!r}")
    if failed:
        raise typer.Exit(1)


def _refuse_groups(result: HasNotices) -> None:
    """A column that makes no groups of speakers is an error where it was asked for."""
    for notice in result.notices:
        if notice.code == "no-gaps":
            raise InputError(notice.sentence)


def _gate(words: str) -> str:
    """The metric of a condition."""
    metric, _, verb = words.strip().partition(" ")
    if verb.strip() != "worsens":
        raise InputError("--fail-if", "'METRIC worsens', such as 'eer worsens'", words)
    return metric
