"""Who attacks whom: enrolment and test speech of every safeguard and attacker, and its trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.detection import curves
from unmask.detection.battery import Battery
from unmask.detection.evaluate import SystemResult, evaluate, group_masks
from unmask.errors import InputError
from unmask.privacy.legal_backend import train_backend
from unmask.privacy.legal_counts import count_above_in_scores
from unmask.report.cache import Progress, Step, digest_of_embeddings
from unmask.report.config import ORIGINAL, Config
from unmask.report.inputs import Inputs
from unmask.scoring import Backend, average_groups, score_blocks
from unmask.trials import Embeddings, Ids, Scores
from unmask.trials.labels import NONTARGET, TARGET

DESCRIPTIONS = {
    "original": "who knows nothing of the safeguard",
    "again": "who has a related version of the safeguard",
    "protected": "who knows the safeguard",
}


@dataclass(frozen=True, eq=False)
class Attack:
    """One attacker with one back-end on one safeguard (``original`` for unprotected speech)."""

    safeguard: str
    attacker: str
    backend: str
    enrols: str
    label: str
    enrol: Embeddings = field(repr=False)
    test: Embeddings = field(repr=False)
    digests: tuple[str, str] = ("", "")

    def trained(self) -> Backend:
        """The back-end, trained on the enrolment speech where it needs training."""
        return train_backend(self.backend, self.enrol)

    @property
    def inputs(self) -> list[str]:
        return list(self.digests)

    def scores(self) -> Scores:
        """Every enrolled speaker against every attacked utterance.

        A speaker's model is the normalised mean of the normalised enrolment vectors.
        """
        codes = np.unique(self.enrol.speakers.codes, return_inverse=True)[1]
        names = self.enrol.speakers.names.gather(self.enrol.speakers.used)
        backend = self.trained()
        models = backend.prepare(average_groups(self.enrol.vectors, codes))
        tests = backend.prepare(self.test.vectors)
        values = np.concatenate(
            [np.asarray(part, float) for _, _, part in score_blocks(backend, models, tests)]
        ).ravel()
        enrol = Ids(np.repeat(np.arange(len(names), dtype=np.int32), len(tests)), names)
        rows = np.tile(np.arange(len(tests), dtype=np.int32), len(names))
        speaker = Ids(self.test.speakers.codes[rows], self.test.speakers.names)
        assert self.test.utterances is not None
        test = Ids(self.test.utterances.codes[rows], self.test.utterances.names)
        same = _same(enrol, speaker)
        columns = {}
        for name, ids in self.test.columns.items():
            of_speaker = _first_value(self.enrol, name)
            if of_speaker is not None:
                columns[f"enrol_{name}"] = Ids(of_speaker.codes[enrol.codes], of_speaker.names)
                columns[f"test_{name}"] = Ids(ids.codes[rows], ids.names)
        return Scores(
            enrol,
            test,
            np.where(same, TARGET, NONTARGET).astype(np.int8),
            enrol_speaker=enrol,
            test_speaker=speaker,
            columns=columns,
            systems={self.label: values},
        )


def _same(first: Ids, second: Ids) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    place = {name: i for i, name in enumerate(first.names)}
    translated = np.array([place.get(name, -1) for name in second.names], dtype=np.int64)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = first.codes == translated[second.codes]
    return found


def _first_value(embeddings: Embeddings, column: str) -> Ids | None:
    """The attribute of each speaker, if it has one value per speaker."""
    if column not in embeddings.columns:
        return None
    ids = embeddings.columns[column]
    codes = np.unique(embeddings.speakers.codes, return_index=True, return_inverse=True)
    value = ids.codes[codes[1]]
    if (value[codes[2]] != ids.codes).any():
        return None
    return Ids(value, ids.names)


def attacks_of(config: Config, inputs: Inputs) -> dict[str, list[Attack]]:
    """Attacks by safeguard; ``original`` first: the same back-ends on unprotected speech."""
    if inputs.original is None or not inputs.protected:
        return {}
    backends = dict.fromkeys(b for one in config.attackers for b in one.backends)
    digests: dict[int, str] = {}

    def made(
        safeguard: str, attacker: str, backend: str, enrols: str, several: bool,
        enrol: Embeddings, test: Embeddings,
    ) -> Attack:  # fmt: skip
        for one in (enrol, test):
            digests.setdefault(id(one), digest_of_embeddings(one))
        label = f"{attacker} ({backend})" if several else attacker
        found = (digests[id(enrol)], digests[id(test)])
        return Attack(safeguard, attacker, backend, enrols, label, enrol, test, found)

    known = {"original": inputs.enrolment(inputs.original)}
    control = inputs.attacked(inputs.original)
    result = {
        ORIGINAL: [
            made(ORIGINAL, ORIGINAL, b, "original", len(backends) > 1, known["original"], control)
            for b in backends
        ]
    }
    for name, protected in inputs.protected.items():
        test = inputs.attacked(protected)
        enrolments = {**known, "protected": inputs.enrolment(protected)}
        if name in inputs.again:
            enrolments["again"] = inputs.enrolment(inputs.again[name])
        result[name] = [
            made(name, a.name, b, a.enrol, len(a.backends) > 1, enrolments[a.enrol], test)
            for a in config.attackers
            if a.enrol in enrolments
            for b in a.backends
        ]
        if not result[name]:
            raise InputError(f"attackers: none can attack {name}: it has no other run (again)")
    return result


@dataclass(frozen=True, eq=False)
class Trialled:
    """An attack as a verification system: metrics with intervals, curves, and who is found.

    ``identified`` is the share of each speaker's attacked utterances whose closest enrolled
    speaker is the right one, among all ``candidates``.
    """

    safeguard: str
    attacker: str
    label: str
    enrols: str
    result: SystemResult
    warnings: tuple[str, ...]
    det: curves.DetCurve
    ece: curves.EceProfile
    speakers: tuple[str, ...]
    identified: FloatArray
    recordings: IntArray
    candidates: int
    trials: str

    @property
    def name(self) -> str:
        """Safeguard and attacker."""
        return self.safeguard if self.safeguard == ORIGINAL else f"{self.safeguard}, {self.label}"

    def value(self, metric: str) -> float:
        """A metric's value."""
        return float(self.result[metric].value)


def trial_step(attack: Attack, config: Config) -> Step:
    """Score the trials of an attack and measure them."""
    how = config.verification
    replicates = config.intervals.replicates if how.replicates is None else how.replicates
    params = {
        "p_target": how.p_target,
        "fpr": how.fpr,
        "replicates": replicates,
        "level": config.intervals.level,
        "seed": config.seed,
        "backend": attack.backend,
        "label": attack.label,
        "safeguard": attack.safeguard,
        "attacker": attack.attacker,
    }
    models = attack.enrol.n_speakers

    def compute(progress: Progress) -> Trialled:
        if models * len(attack.test) > how.max_trials:
            raise InputError(
                f"verification.max_trials: {models:,} speakers and {len(attack.test):,} utterances"
                f" make more than {how.max_trials:,} trials"
            )
        scores = attack.scores()
        found = evaluate(
            scores,
            battery=Battery(p_target=how.p_target, fpr=how.fpr),
            replicates=replicates,
            level=config.intervals.level,
            seed=config.seed,
            progress=progress,
        )
        whole = next(r for r in found if r.group is None)
        return Trialled(
            attack.safeguard,
            attack.attacker,
            attack.label,
            attack.enrols,
            whole,
            found.warnings,
            curves.det_curve(whole.roc, p_target=how.p_target[0]),
            curves.ece_profile(scores.targets(), scores.nontargets(), whole.roc),
            *_identified(scores, models),
            models,
            scores.digest,
        )

    seconds = 1 + models * len(attack.test) * replicates / 5e6
    what = f"verification of {attack.safeguard}, {attack.label}"
    return Step(what, attack.inputs, params, compute, weight=seconds)


@dataclass(frozen=True, eq=False)
class Groups:
    """An attack on groups of speakers, such as women and men."""

    label: str
    results: tuple[SystemResult, ...]
    warnings: tuple[str, ...]


def group_step(attack: Attack, config: Config, by: str) -> Step:
    """Measure an attack within and between the groups of a column."""
    how = config.verification
    replicates = config.intervals.replicates if how.replicates is None else how.replicates
    params = {
        "by": by,
        "replicates": replicates,
        "level": config.intervals.level,
        "seed": config.seed,
        "backend": attack.backend,
        "label": attack.label,
    }

    def compute(progress: Progress) -> Groups:
        scores = attack.scores()
        parts = []
        told: list[str] = []
        masks = group_masks(scores, by)
        for done, (group, mask) in enumerate(masks, start=1):
            part = scores.select(mask)
            if not (part.is_target.any() and part.is_nontarget.any()):
                told.append(f"group {group} has no trials of both kinds and is left out")
                continue
            found = evaluate(
                part, replicates=replicates, level=config.intervals.level, seed=config.seed
            )
            parts.append(replace(found.results[0], group=group))
            told += [f"group {group}: {line}" for line in found.warnings]
            progress(done, len(masks))
        return Groups(attack.label, tuple(parts), tuple(told))

    what = f"groups of {by} under {attack.safeguard}, {attack.label}"
    return Step(what, attack.inputs, params, compute, weight=1.5)


def _identified(scores: Scores, models: int) -> tuple[tuple[str, ...], FloatArray, IntArray]:
    """Speakers, the share of their utterances that are found, and how many utterances they have."""
    assert scores.test_speaker is not None
    matrix = scores.scores().reshape(models, -1).T
    true = scores.is_target.reshape(models, -1).T
    known = true.any(axis=1)
    above = count_above_in_scores(matrix[known], true[known].argmax(axis=1))
    owner = scores.test_speaker.codes[: len(matrix)][known]
    used, dense = np.unique(owner, return_inverse=True)
    recordings = np.bincount(dense)
    hits = np.bincount(dense, weights=above.at_or_above == 0) / recordings
    names = tuple(str(scores.test_speaker.names[int(code)]) for code in used)
    return names, hits, recordings


def strongest(trialled: Mapping[str, list[Trialled]], metric: str = "min_cllr") -> dict[str, int]:
    """For each safeguard the place of the attack with the lowest C_llr^min."""
    return {
        name: int(np.argmin([one.value(metric) for one in found]))
        for name, found in trialled.items()
    }


def joined_scores(attacks: Mapping[str, Attack]) -> Iterator[tuple[list[str], Scores]]:
    """Scores of attacks on one list of trials in one table; a table each where lists differ."""
    groups: dict[str, tuple[list[str], Scores]] = {}
    for name, attack in attacks.items():
        scores = attack.scores()
        values = scores.scores()
        if scores.digest not in groups:
            groups[scores.digest] = ([name], replace(scores, systems={name: values}))
            continue
        names, table = groups[scores.digest]
        if not _same_order(table, scores):
            groups[f"{scores.digest} {name}"] = ([name], replace(scores, systems={name: values}))
            continue
        names.append(name)
        joined = replace(table, systems={**table.systems, name: values})
        groups[scores.digest] = (names, joined)
    yield from groups.values()


def _same_order(a: Scores, b: Scores) -> bool:
    return all(
        x is not None and y is not None and x.to_series().equals(y.to_series())
        for x, y in ((a.enrol, b.enrol), (a.test, b.test))
    )
