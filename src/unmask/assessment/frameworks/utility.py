"""What protection costs, measured or read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unmask import utility as costs
from unmask.assessment.cache import Step
from unmask.assessment.config import ORIGINAL, Config, Heard, UtilityConfig
from unmask.assessment.runs import recordings_of, seconds_each, workers
from unmask.assessment.study import Framework, Plan, Study
from unmask.errors import InputError
from unmask.run import content_digest
from unmask.speech import Recording

UTILITY = "utility"
_RATING = 0.4
"""Seconds that DNSMOS takes for a recording."""


def check_code(config: Config, *, allow_code: bool) -> None:
    """A config may name a command or a model to fetch only where its user allows code."""
    named = config.utility.recogniser
    if config.utility.given and costs.runs_code(named) and not allow_code:
        code = f"{named}, which is code to run: add --allow-code if you trust it"
        raise InputError("utility.recogniser", "pocketsphinx", code)


def _steps(study: Study) -> Plan:
    """One step for all safeguards, since their intervals share draws."""
    how, drawn, what = study.config.utility, study.config.drawn, "utility of all safeguards"
    if not how.given:
        return {UTILITY: _word_steps(study)}
    if how.measurements is not None:
        read = partial(_read, how.measurements, study.inputs.safeguards, drawn)
        params = {**drawn, "names": study.inputs.safeguards}
        data = [content_digest(how.measurements)]
        return {UTILITY: {UTILITY: Step(what, data, params, read)}}
    voices = {one.name: one for one in study.config.safeguards if not one.hidden and one.audio}
    if study.config.original.audio is None or not voices:
        raise InputError("utility: expected audio of the original and of safeguards, found none")
    original = recordings_of(study.config.original)
    protected = {name: recordings_of(safeguard) for name, safeguard in voices.items()}
    every = [recording for files in (original, *protected.values()) for recording in files]
    data = [f"{recording!r} {recording.digest}" for recording in every]
    params = {**drawn, **how.model_dump(mode="json"), "names": [*protected]}
    if how.transcripts is not None:
        data.append(content_digest(how.transcripts))
        with suppress(InputError):  # what is wrong with it costs this section alone
            params["recogniser"] = repr(costs.recogniser(how.recogniser, grammar=how.grammar))
    measure = partial(_measured, study.config, original, protected)
    weight = (1.0 if how.transcripts else 0.1) * len(every) / workers()
    timed = partial(_seconds, how, original, protected)
    return {UTILITY: {UTILITY: Step(what, data, params, measure, weight, timed=timed)}}


def _seconds(
    how: UtilityConfig, original: Sequence[Recording], protected: Mapping[str, Sequence[Recording]]
) -> float:
    """About how long measuring takes: two utterances are tried, but for DNSMOS."""
    measure = _measure(how)

    def do(one: Recording) -> None:
        same = {n: [x for x in f if x.utterance == one.utterance] for n, f in protected.items()}
        measure([one], same)

    rated = min(how.dnsmos * len({recording.speaker for recording in original}), len(original))
    each, files = seconds_each(original, do), rated * (1 + len(protected))
    return (each * len(original) + _RATING * files) / workers()


def _word_steps(study: Study) -> dict[tuple[str, str], Step]:
    """Word error rates of each system and set of which somebody wrote down what was heard."""
    sets = {(one.name, of.set): of for one in study.config.safeguards for of in one.heard}
    steps = {}
    for (name, of_set), recogniser in sets.items():
        base = study.config.table.baseline
        other = sets.get((base, of_set)) if base and base != name else None
        files = [*(place / file for place in recogniser.data for file in ("text", "utt2spk"))]
        files += [recogniser.original, recogniser.protected, *([other.protected] if other else [])]
        heard = partial(heard_words, recogniser, other, **study.config.drawn)
        data = [content_digest(file) for file in files]
        what = f"words of {name}, {of_set}"
        steps[name, of_set] = Step(what, data, study.config.drawn, heard, weight=1.0)
    return steps


def heard_words(one: Heard, baseline: Heard | None = None, **drawn: Any) -> list[costs.Utility]:
    """Word error rates of a set beside those of unprotected speech, then those beside the baseline
    where there is one; ``drawn`` says how intervals are made.
    """
    said: dict[str, str] = {}
    whose: dict[str, str] = {}
    for place in one.data:
        said |= costs.read_transcripts(place / "text")
        whose |= costs.read_labels(place / "utt2spk")
    if lost := sorted(said.keys() - whose.keys()):
        wanted = "the speaker of every utterance"
        raise InputError(one.data[0] / "utt2spk", wanted, f"none of {lost[0]}")

    def counted(path: Path) -> dict[str, Any]:
        heard = costs.read_transcripts(path, empty=True)
        if silent := sorted(said.keys() - heard.keys()):
            actual = f"none of {silent[0]} ({len(silent)} of {len(said)} missing)"
            raise InputError(path, "the words of every utterance", actual)
        texts = ((said[name], heard[name]) for name in said)
        apart = costs.characters_apart
        rows = [costs.errors(apart(right), apart(wrong)) for right, wrong in texts]
        nothing = dict.fromkeys(costs.COLUMNS, np.full(len(rows), np.nan))
        columns = zip(costs.Errors._fields, np.array(rows, float).T, strict=True)
        return {**nothing, **dict(columns)}

    own = counted(one.protected)
    others = [one.original, *([baseline.protected] if baseline else [])]
    speakers = tuple(whose[name] for name in said)
    return [
        costs.utility_of(
            costs.Measurements(tuple(said), speakers, {ORIGINAL: counted(path), one.set: own}),
            **drawn,
        )
        for path in others
    ]


def _read(path: Path, names: Sequence[str], drawn: Mapping[str, Any]) -> costs.Utility:
    measured = costs.read_measurements(path)
    missing = [name for name in measured.conditions if name not in (ORIGINAL, *names)]
    if len(missing) == len(measured.conditions) - 1:
        known = f"one of the safeguards {', '.join(names)}"
        raise InputError(path, known, ", ".join(missing) or "none")
    return costs.utility_of(measured, **drawn)


def _measured(
    config: Config, original: Sequence[Recording], protected: Mapping[str, Sequence[Recording]]
) -> costs.Utility:
    measured = _measure(config.utility)(original, protected, mos=config.utility.dnsmos, skip=True)
    return costs.utility_of(measured, **config.drawn)


def _measure(how: UtilityConfig) -> Callable[..., costs.Measurements]:
    words: dict[str, Any] = {}
    if how.transcripts is not None:
        words["transcripts"] = costs.read_transcripts(how.transcripts)
        words["recogniser"] = costs.recogniser(how.recogniser, grammar=how.grammar)
    return partial(costs.measure, pitched=how.melody, **words)


FRAMEWORK = Framework(UTILITY, steps=_steps, main=UTILITY)
