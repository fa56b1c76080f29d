"""Linkability and Singling Out of groups of people, each attacked among its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unmask.base import FloatArray, IntArray, Sampling
from unmask.engine import GroupRow
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.attack import Attacker, Reading, with_groups
from unmask.privacy.group_risks import (
    LABELLINGS,
    LEAST_PEOPLE,
    TOO_FEW,
    RiskGaps,
    gap_between,
    level_of_gap,
    level_of_pairs,
    notices_of,
    permuted_labels,
)
from unmask.privacy.legal.assessing import curve_of, ready_rounds
from unmask.privacy.legal.conversations import USUAL, LegalProtocol, Rows, attack_data
from unmask.privacy.legal.curve import Curve, RiskCurve, base_name, spoken, with_negated
from unmask.privacy.legal.linking import guessed_linkability
from unmask.privacy.legal.strongest import Strongest
from unmask.privacy.legal.sweep import HEADLINE, LegalSweep
from unmask.privacy.luck import some_people
from unmask.privacy.recordings import people_by_group

METRICS = ("linkability", "singling_out")
MOST_PEOPLE = 1000
"""Of more some are drawn by lot, among whom labels are permuted."""
_CELLS = 1 << 22
_TIED = 1e-6
_ISOLATED = "isolation counts whoever it is: values and intervals only"
_STRONGEST = "strongest attack"
_EVERYBODY = "all"

CurveKey = tuple[str, str, int]
Ways = Mapping[int, Sequence[Attacker]]
"""The ways in which an attack is run, by the length of conversations."""


@dataclass(frozen=True, eq=False, repr=False)
class LegalRiskGaps(RiskGaps):
    """Risks by group with the ``sweeps`` of the groups, so that those of others can be added.

    ``within_groups`` are attackers who were fitted within groups: they compete for the risk of a
    group and not for the gap. ``everybody`` is the largest risk without groups.
    """

    sweeps: Mapping[str, LegalSweep] = field(default_factory=dict, repr=False)
    within_groups: tuple[str, ...] = ()
    everybody: tuple[Strongest, ...] = field(default=(), repr=False)
    left_out: int = 0


def risk_gaps(
    sweep: LegalSweep,
    attackers: Mapping[str, Attacker],
    by: str,
    *,
    protocol: LegalProtocol = USUAL,
) -> LegalSweep:
    """The ``sweep`` of ``attackers`` with the largest risk of each metric by groups of a column.

    Attacks are fitted on everybody. Each is then run within each group of the test speech, among as
    many candidates of the group's own people: 20, or as many as the smallest group of two or more
    has. A group's risk is that of its own strongest attack. The gap of Linkability has a p, from
    labels permuted among people.
    """
    attackers = with_groups(attackers, protocol.side, original=sweep.original)
    gaps = [
        _gaps_of(sweep, attackers, by, metric, protocol)
        for metric in METRICS
        if metric in sweep.metrics
    ]
    return replace(sweep, gaps=tuple(gaps))


def _gaps_of(
    sweep: LegalSweep,
    attackers: Mapping[str, Attacker],
    by: str,
    metric: str,
    protocol: LegalProtocol,
) -> RiskGaps:
    """One metric of all groups."""
    worst = sweep.worst(metric)
    own = sweep.curves[worst.attacker, metric, worst.length]
    every = {name: attackers[name] for name in sweep.protected}
    tested: set[str] = set()
    for length in sweep.lengths:
        for curve in sweep.competing(metric, length).values():
            tested.update(curve.speakers)
    found: dict[str, set[str]] = {}
    attacked = every[base_name(worst.attacker, own)].attacked
    for name, people in people_by_group(attacked, by).items():
        found[name] = people & tested
    groups = {name: people for name, people in sorted(found.items()) if len(people) > 1}
    if len(groups) < 2:
        wanted = "two groups or more of two people or more"
        raise InputError(by, wanted, f"{len(groups)}")
    how = vars(own.resampling)
    count = min(HEADLINE, *map(len, groups.values()))
    runs = _Runs(sweep, metric, count, protocol, how)
    labelling = None
    if metric == METRICS[0]:
        enrolled = [set(way.enrol.speakers.present) for one in every.values() for way in one.ways]
        known = set.intersection(*enrolled)
        among_all = {name: people & known for name, people in groups.items()}
        labelling = _Labelling.of(among_all, own.resampling.seed)
    curves: dict[str, dict[CurveKey, Curve]] = {name: {} for name in groups}
    for name, attacker in every.items():
        for reading, ways in _readings(attacker, sweep.lengths, metric, sweep.seed):
            for group, people in groups.items():
                curves[group] |= runs.curves_of(name, reading, ways, people)
            if labelling is not None and not attacker.by:
                runs.label(name, reading, ways, labelling)
    reading = Reading(own.variant)
    everybody = worst
    if worst.count != count:
        name = base_name(worst.attacker, own)
        readings = dict(_readings(every[name], [worst.length], metric, sweep.seed))
        ways = readings[reading.scored]
        key = worst.attacker, metric, worst.length
        alone = runs.curves_of(name, reading.scored, ways, tested)
        whole = replace(sweep, curves={key: alone[key]})
        everybody = whole.worst(metric)
    return combined_gaps(
        [
            LegalRiskGaps(
                system=_STRONGEST,
                column=by,
                point=f"{count} candidates",
                conditions={"at": f"{count} candidates"},
                groups=(),
                gaps=(),
                seed=sweep.seed,
                risk=metric,
                no_level=_ISOLATED if labelling is None else labelling.no_level,
                labelled=None if labelling is None else labelling.strongest,
                sweeps={
                    group: replace(sweep, curves=some, original=None, gaps=(), crowds={})
                    for group, some in curves.items()
                },
                within_groups=tuple(name for name, attacker in every.items() if attacker.by),
                everybody=(everybody,),
                left_out=len(found) - len(groups),
            )
        ]
    )


def _readings(
    attacker: Attacker, lengths: Sequence[int], metric: str, seed: int
) -> Iterator[tuple[Reading, Ways]]:
    """The rounds of the attacker ready at every length, plain and centred, if it can be read so."""
    points = [(length, metric) for length in lengths]
    for reading in (Reading.PLAIN, Reading.CENTRED):
        ready = ready_rounds(attacker, reading, points, seed)
        if ready is not None:
            yield reading, {length: rounds for (length, _), rounds in ready.items()}


@dataclass(frozen=True, eq=False)
class _Runs:
    """How attacks are run within groups: those of a ``sweep``, among ``count`` candidates."""

    sweep: LegalSweep
    metric: str
    count: int
    protocol: LegalProtocol
    how: Mapping[str, Any]

    def curves_of(
        self, name: str, reading: Reading, ways: Ways, people: set[str]
    ) -> dict[CurveKey, Curve]:
        """Curves of a reading and of its negated scores among some people, at all lengths."""
        made: dict[CurveKey, Curve] = {}
        for length in self._lengths(name, reading):
            if length not in ways:
                continue
            among = [way.among(people) for way in ways[length]]
            how = self.metric, length, [self.count], self.protocol, self.how
            try:
                curve, _ = curve_of(among, *how)
            except InputError:  # nobody of the group has a conversation as long
                continue
            if curve.negated is not None:
                curve = with_negated(curve, curve.negated, reading)
            for one in (curve, curve.negated):
                if one is not None:
                    key = Reading(one.variant).of(name), self.metric, length
                    made |= {key: one} if key in self.sweep.curves else {}
        return made

    def label(self, name: str, reading: Reading, ways: Ways, labelling: _Labelling) -> None:
        """Add what a reading and its negated scores do under every labelling."""
        if labelling.no_level:
            return
        negated = {Reading.PLAIN: Reading.NEGATED, Reading.CENTRED: Reading.CENTRED_NEGATED}
        for length in self._lengths(name, reading):
            both = labelling.outcomes(ways[length], length, self.count, self.protocol, self.how)
            for one, outcomes in zip((reading, negated[reading]), both, strict=True):
                if (one.of(name), self.metric, length) in self.sweep.curves:
                    labelling.add(outcomes)

    def _lengths(self, name: str, reading: Reading) -> list[int]:
        """Lengths at which the sweep has this reading."""
        known = reading.of(name), self.metric
        return [length for length in self.sweep.lengths if (*known, length) in self.sweep.curves]


@dataclass(frozen=True, eq=False)
class _Labelling:
    """The group of each of some ``people`` as it is (first row of ``labels``) and permuted, and
    what the strongest attack so far reads of each group (column) under each labelling.
    """

    people: list[str]
    labels: IntArray
    strongest: FloatArray
    no_level: str = ""

    @classmethod
    def of(cls, groups: Mapping[str, set[str]], seed: int) -> _Labelling:
        """Labels of the people of some groups; of some of them by lot where they are many."""
        group_of = {person: n for n, people in enumerate(groups.values()) for person in people}
        everyone = sorted(group_of)
        chosen = some_people(len(everyone), MOST_PEOPLE, seed)
        people = [everyone[k] for k in chosen]
        member = np.array([group_of[person] for person in people])
        few = min(map(len, groups.values())) < LEAST_PEOPLE
        labels = permuted_labels(member, 0 if few else LABELLINGS, seed)
        strongest = np.full((len(labels), len(groups)), -np.inf)
        return cls(people, labels, strongest, TOO_FEW if few else "")

    def add(self, outcomes: FloatArray) -> None:
        """Let an attack compete, whose outcomes of people (rows) under each labelling are known."""
        known = ~np.isnan(outcomes)
        for group in range(self.strongest.shape[1]):
            inside = (group == self.labels.T) & known
            number = inside.sum(axis=0)
            total = np.where(inside, outcomes, 0.0).sum(axis=0)
            means = np.where(number > 0, total / np.maximum(number, 1), -np.inf)
            np.maximum(self.strongest[:, group], means, out=self.strongest[:, group])

    def outcomes(
        self,
        ways: Sequence[Attacker],
        length: int,
        count: int,
        protocol: LegalProtocol,
        how: Mapping[str, Any],
    ) -> FloatArray:
        """Outcomes of people (rows) under each labelling, of scores and of negated ones (first
        axis): the mean over all attempts on a person, NaN of a person on whom there is none.
        """
        total = np.zeros((2, len(self.people), len(self.labels)))
        attempts = np.zeros(len(self.people))
        place = {person: k for k, person in enumerate(self.people)}
        for way in ways:
            among = way.among(set(self.people))
            known = replace(protocol, side=tuple(dict.fromkeys((*protocol.side, *way.by))))
            try:
                both = attack_data(
                    among.enrol,
                    among.test,
                    "linkability",
                    length,
                    way.backend_in_use,
                    known,
                    Sampling(**how),
                )
            except InputError:  # nobody has a conversation as long
                continue
            enrolled = np.array([place[name] for name in both.enrolled.names])
            tested = np.array([place[name] for name in both.tested.names])
            rows = Rows(*both.rows())
            owner = both.tested.speakers
            links = links_by_label(rows, both.true[owner], owner, self.labels[:, enrolled], count)
            number = both.tested.per_speaker
            total[:, tested] += links * number[:, None]
            attempts[tested] += number
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / np.where(attempts > 0, attempts, np.nan)[:, None])


def links_by_label(
    rows: Rows, true: IntArray, owner: IntArray, labels: IntArray, count: int
) -> FloatArray:
    """Linkability of each tested person among ``count`` people of the person's label.

    ``labels`` has a labelling in each row and the label of each enrolled person in each column;
    ``true`` is the enrolment row of each conversation, ``owner`` its person, ascending. Signs of
    the score × people × labellings.

    How many of a label score above a conversation's own person is one product: a matrix of
    conversations and people, 1 where the person is above, with the 0/1 matrix of labellings.
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    number = np.diff(np.append(first, len(owner)))
    made = np.zeros((2, len(first), len(labels)))
    used = np.unique(labels)
    inside = [(labels == label).T.astype(np.float32) for label in used]
    sizes = [int(some[:, 0].sum()) for some in inside]
    step = max(1, _CELLS // max(len(labels), len(rows.enrol)))
    for start in range(0, len(owner), step):
        some = slice(start, start + step)
        outcome = np.zeros((2, len(owner[some]), len(labels)))
        for s, (above, tied) in enumerate(_stronger(rows, true, some)):
            for members, size in zip(inside, sizes, strict=True):
                is_mine = members[true[some]] > 0
                stronger = (above @ members).astype(np.int64)
                equal = (tied @ members).astype(np.int64)
                links = guessed_linkability(stronger, equal, size - 1, np.array([count]))[..., 0]
                outcome[s] += np.where(is_mine, links, 0.0)
        for s in (0, 1):
            np.add.at(
                made[s],
                np.searchsorted(first, np.arange(len(owner))[some], "right") - 1,
                outcome[s],
            )
    return made / number[:, None]


def _stronger(rows: Rows, true: IntArray, some: slice) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Who scores above the own person of each conversation, and who ties, under both signs.

    Scores within 1e-6 of the largest count as tied. Whom side information rules out is neither.
    """
    scores = rows.test[some] @ rows.enrol.T
    here = np.arange(len(scores))
    if rows.codes is not None:
        scores[rows.codes[1][some, None] != rows.codes[0]] = -np.inf
    allowed = np.isfinite(scores)
    own = scores[here, true[some]][:, None]
    near = _TIED * np.abs(scores, where=allowed, out=np.zeros_like(scores)).max()
    for sign in (1, -1):
        with np.errstate(invalid="ignore"):
            apart = sign * (scores - own)
        above = (apart > near) & allowed
        tied = (np.abs(apart) <= near) & allowed
        lost = ~np.isfinite(own[:, 0])
        above[lost] = True  # side information rules out the right person
        above[here, true[some]] = False
        tied[here, true[some]] = False
        yield above.astype(np.float32), tied.astype(np.float32)


def combined_gaps(every: Sequence[LegalRiskGaps]) -> LegalRiskGaps:
    """Risks by group of all attackers of several sweeps of the same people, who compete.

    Where groups or people differ the first stands alone.
    """
    first = every[0]
    alike = [one for one in every if _alike(first, one)]
    sweeps = {}
    for group, sweep in first.sweeps.items():
        curves = dict(sweep.curves)
        for one in alike[1:]:
            curves |= one.sweeps[group].curves
        sweeps[group] = replace(sweep, curves=curves)
    within_groups = tuple(dict.fromkeys(name for one in alike for name in one.within_groups))
    everybody = max(
        (strongest for one in alike for strongest in one.everybody),
        key=lambda strongest: float(strongest.estimate.value),
    )
    known = [one.labelled for one in alike if one.labelled is not None]
    labelled = np.asarray(np.max(known, axis=0)) if known else None
    return _told(first, sweeps, within_groups, everybody, labelled)


def _alike(one: LegalRiskGaps, other: LegalRiskGaps) -> bool:
    """Whether two have the same groups of as many people, labelled alike."""
    shapes = [None if gaps.labelled is None else gaps.labelled.shape for gaps in (one, other)]
    same = one.sweeps.keys() == other.sweeps.keys() and one.point == other.point
    return same and shapes[0] == shapes[1]


def _told(
    first: LegalRiskGaps,
    sweeps: Mapping[str, LegalSweep],
    within_groups: tuple[str, ...],
    everybody: Strongest,
    labelled: FloatArray | None,
) -> LegalRiskGaps:
    """The rows of all and of each group, and the gap."""
    metric, several = first.risk, len({key[2] for s in sweeps.values() for key in s.curves}) > 1
    rows = [_row(_EVERYBODY, everybody, several)]
    apart: dict[str, Estimate] = {}
    attacks = 0
    for group, sweep in sweeps.items():
        names = sweep.attackers
        rows.append(_row(group, sweep.worst(metric, names), several))
        for_gap = [name for name in names if name not in within_groups]
        level = level_of_pairs(_level(sweep), len(sweeps))
        at_level = {key: _at_level(curve, level) for key, curve in sweep.curves.items()}
        own = replace(sweep, curves=at_level).worst(metric, for_gap)
        apart[group] = own.estimate
        bases = [base_name(key[0], curve) for key, curve in sweep.curves.items()]
        attacks = sum(base in for_gap for base in bases)
    gaps: tuple[Estimate, ...] = ()
    no_level = first.no_level
    if metric == METRICS[0]:
        people = sum(estimate.n["speakers"] for estimate in apart.values())
        luck = None if no_level or labelled is None else level_of_gap(labelled, attacks, people)
        level = _level(next(iter(sweeps.values())))
        gaps = (gap_between(metric, apart, luck, first.column, level),)
    told = notices_of(first.left_out, no_level if gaps else "", metric)
    return replace(
        first,
        groups=tuple(rows),
        gaps=gaps,
        notices=told,
        sweeps=sweeps,
        within_groups=within_groups,
        everybody=(everybody,),
        labelled=labelled,
    )


def _row(group: str, strongest: Strongest, several: bool) -> GroupRow:
    """A group under its strongest attack, with the length where there are several."""
    estimate = strongest.estimate
    at = f", {spoken(strongest.length)}" if several else ""
    return GroupRow(group, estimate.n["speakers"], (estimate,), f"{strongest.attacker}{at}")


def _level(sweep: LegalSweep) -> float:
    """The level of the intervals of a sweep."""
    return next(iter(sweep.curves.values())).resampling.level


def _at_level(curve: Curve, level: float) -> Curve:
    """A curve with intervals of another level."""
    return curve.at_level(level) if isinstance(curve, RiskCurve) else curve
