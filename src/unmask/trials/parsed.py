"""What a reader found in a file, before it becomes trials or scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unmask.base import Labels, Mask
from unmask.errors import InputError
from unmask.trials.duplicates import OnProblem, check_choice, without_duplicates
from unmask.trials.ids import Ids
from unmask.trials.labels import EXPECTED, encode_labels
from unmask.trials.messages import no_score
from unmask.trials.registry import Format
from unmask.trials.scores import Scores
from unmask.trials.source import Source
from unmask.trials.text import Numbers
from unmask.trials.trial_list import TrialList, Trials


@dataclass(frozen=True)
class Parsed:
    """Columns of a file by role. ``where(row)`` names a row (from 0) of the file in messages."""

    name: str
    format: Format
    where: Callable[[int], str]
    enrol: Ids | None = None
    test: Ids | None = None
    label: Labels | None = None
    enrol_speaker: Ids | None = None
    test_speaker: Ids | None = None
    columns: dict[str, Ids] = field(default_factory=dict)
    systems: dict[str, Numbers] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    sha256: str = ""


def labels_of(column: Ids, where: Callable[[int], str]) -> Labels:
    """Labels of a column of words; an unknown word is an error that names its place."""
    labels, bad = encode_labels(column)
    if bad is not None:
        raise InputError(
            f"{where(bad)}: expected a label ({EXPECTED}), found {column.decode(bad)!r}"
        )
    return labels


def to_trials(parsed: Parsed, *, duplicates: OnProblem = "error") -> Trials:
    """Make a validated key."""
    check_key(parsed.name, parsed.format, parsed.label is not None, parsed.enrol is not None)
    trials = Trials(
        parsed.enrol,
        parsed.test,
        parsed.label,
        **_speakers(parsed),
        columns=parsed.columns,
        source=_source(parsed),
    )
    trials = without_duplicates(trials, duplicates, where=parsed.where)
    assert trials.source is not None
    return replace(trials, source=counted(trials.source, trials))


def check_key(name: str, format: Format, has_label: bool, has_ids: bool) -> None:
    """Refuse a key without labels or without names of trials."""
    if not has_label:
        raise InputError(f"{name}: expected a key, found {format.name} without labels")
    if not has_ids:
        raise InputError(
            f"{name}: expected a key with enrol and test identifiers, found none of them"
        )


def only_a_key(name: str, format: Format) -> InputError:
    """Scores were asked for, and the file holds none."""
    return InputError(
        f"{name}: expected scores, found a key ({format.name}: {format.layout}) without scores"
    )


def without_any_score(name: str, systems: Mapping[str, bool]) -> tuple[list[str], str]:
    """Systems that have a score at all, and what is said of those that have none."""
    found = [system for system, is_empty in systems.items() if not is_empty]
    if not found:
        raise InputError(f"{name}: expected scores, found no column that holds any")
    empty = [system for system, is_empty in systems.items() if is_empty]
    return found, f"columns without any score left out: {', '.join(empty)}" if empty else ""


def to_scores(
    parsed: Parsed, *, missing: OnProblem = "error", duplicates: OnProblem = "error"
) -> Scores:
    """Make validated scores; systems without any score are left out, and that is said."""
    check_choice("missing", missing)
    empty = {n: s.absent is not None and bool(s.absent.all()) for n, s in parsed.systems.items()}
    names, remark = without_any_score(parsed.name, empty)
    systems = {name: parsed.systems[name] for name in names}
    remarks = (*parsed.remarks, remark) if remark else parsed.remarks
    absent = _absent(parsed, systems, missing)
    source = _source(replace(parsed, remarks=remarks))
    scores = Scores(
        parsed.enrol,
        parsed.test,
        parsed.label,
        **_speakers(parsed),
        columns=parsed.columns,
        systems={name: column.values for name, column in systems.items()},
        sources=(source,),
    )
    where = parsed.where
    if absent is not None:
        kept = np.flatnonzero(~absent)
        scores = replace(scores.select(kept), sources=(replace(source, missing=int(absent.sum())),))
        where = lambda row: parsed.where(int(kept[row]))  # noqa: E731
    scores = without_duplicates(scores, duplicates, where=where)
    return replace(scores, sources=(counted(scores.sources[0], scores),))


def _absent(parsed: Parsed, systems: dict[str, Numbers], missing: OnProblem) -> Mask | None:
    gaps = [column.absent for column in systems.values() if column.absent is not None]
    if not gaps:
        return None
    absent: Mask = np.logical_or.reduce(gaps)
    if missing == "error":
        raise no_score(parsed.where(int(np.flatnonzero(absent)[0])), int(absent.sum()))
    return absent


def _speakers(parsed: Parsed) -> dict[str, Ids]:
    if parsed.enrol_speaker is None or parsed.test_speaker is None:
        return {}
    return {"enrol_speaker": parsed.enrol_speaker, "test_speaker": parsed.test_speaker}


def _source(parsed: Parsed) -> Source:
    return source_of(parsed.name, parsed.sha256, parsed.format, parsed.remarks)


def source_of(name: str, sha256: str, format: Format, remarks: tuple[str, ...]) -> Source:
    """What a result says about a file, but for the counts."""
    told = f"{format.name}: {format.layout if format.roles else format.source}"
    return Source(name, sha256, format.name, detected="; ".join((told, *remarks)))


def counted(source: Source, trials: TrialList) -> Source:
    """Return the source with the counts of what was read from it."""
    if trials.label is None:
        return replace(source, speakers=trials.n_speakers)
    return with_counts(source, trials.counts, trials.n_speakers)


def with_counts(source: Source, counts: Mapping[str, int], speakers: int | None) -> Source:
    """Return the source with counts of target, nontarget and other trials and of speakers."""
    told = source.detected
    if counts["other"] and "neither class" not in told:
        told += f"; {counts['other']} spoof trials belong to neither class"
    return replace(
        source,
        target=counts["target"],
        nontarget=counts["nontarget"],
        speakers=speakers,
        detected=told,
    )
