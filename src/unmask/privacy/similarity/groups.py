"""DeID of groups of people, each under its own strongest attack, and the gap between the groups.

Attacks are fitted on everybody. Of each group the matrices, the calibration, D_diag(OO) and so DeID
are made of its own people alone. Attacks that are fitted within the group compete for its DeID too,
but not for the gap: nobody can fit them to permuted labels without fitting them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unmask.base import FloatArray, Groups, IntArray
from unmask.engine import GroupRow
from unmask.errors import InputError
from unmask.estimate import Estimate, Luck, Notice
from unmask.privacy.attack import CENTRED, WORDS, Attacker
from unmask.privacy.group_risks import (
    LABELLINGS_OF_DEID,
    LEAST_PEOPLE,
    TOO_FEW,
    RiskGaps,
    gap_between,
    level_of_gap,
    level_of_pairs,
    notices_of,
    permuted_labels,
)
from unmask.privacy.recordings import of_people
from unmask.privacy.similarity.api import (
    compared,
    digest_of_speakers,
    labels_of_ratios,
    pairs_of_embeddings,
)
from unmask.privacy.similarity.attackers import competing_attacks
from unmask.privacy.similarity.halves import comparisons_of_halves, strongest_numbers
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.matrix import Comparisons
from unmask.privacy.similarity.pairs import Segments
from unmask.privacy.similarity.result import Pseudonymisation, assessed
from unmask.run import progress
from unmask.scoring import Backend, PairGrid, Rule, Sides
from unmask.trials import Embeddings

DEID = "deid"
POINT = "strongest attack"
Pairs = Mapping[str, Sequence[PairGrid]]


@dataclass(frozen=True, eq=False)
class GroupedPseudonymisation:
    """A safeguard in each group of people: ``results`` by group, and the ``gaps`` of DeID."""

    results: Mapping[str, Pseudonymisation]
    gaps: RiskGaps


@dataclass(frozen=True)
class LabelledSetup(Setup):
    """Options under which replicates are not draws: each counts the people of one group.

    ``rows`` has a row for each group under each labelling, 1 for its people.
    """

    rows: tuple[FloatArray, ...] = ()

    @property
    def renames(self) -> bool:
        """No names are permuted: labels are."""
        return False

    def weights(self, speakers: int | Sequence[str]) -> FloatArray | None:
        """Who counts in each row, instead of how often who is drawn."""
        return self.rows[0]


def by_group(
    original: Embeddings,
    protected: Embeddings,
    groups: Mapping[str, set[str]],
    *,
    system: str,
    by: str,
    backend: Backend,
    attackers: Mapping[str, Attacker],
    setup: Setup,
) -> GroupedPseudonymisation:
    """Assess a safeguard in each of some ``groups`` of people, under attacks fitted on everybody.

    ``attackers`` hold the speech of everybody. Attacks that are fitted within a group stand beside
    them under names that say ``by`` which column.
    """
    people = {name: some for name, some in groups.items() if len(some) > 1}
    if len(people) < 2:
        raise InputError(by, "two groups or more of two people or more", f"{len(people)}")
    whole = original, protected, backend, attackers, setup
    with progress(None):
        pairs, segments, _ = pairs_of_embeddings(*whole)
    everybody = _GroupedAttacks(original, protected, by, backend, attackers, setup, pairs)
    level = level_of_pairs(setup.level, len(people))
    results, for_gap = {}, {}
    for name, some in people.items():
        results[name], for_gap[name] = everybody.assess(some, level)
    luck, no_level = None, ""
    if min(map(len, people.values())) < LEAST_PEOPLE:
        no_level = TOO_FEW
    elif not setup.replicates:
        no_level = "no replicates were asked for"
    elif setup.mirror:
        no_level = "both orders of two people are pooled"
    labelled = None
    if not no_level:
        with progress(None):
            labelled = everybody.labelled(segments.names, people)
        attacks = len(next(iter(for_gap.values())).attacks)
        luck = level_of_gap(labelled, attacks, sum(map(len, people.values())))
    gaps = _gaps_of(system, by, results, for_gap, luck, setup)
    left_out = len(groups) - len(people)
    told = notices_of(left_out, no_level, DEID)
    gaps = replace(gaps, no_level=no_level, labelled=labelled, notices=told)
    return GroupedPseudonymisation(results, gaps)


def _gaps_of(
    system: str,
    by: str,
    results: Mapping[str, Pseudonymisation],
    for_gap: Mapping[str, Pseudonymisation],
    luck: Luck | None,
    setup: Setup,
) -> RiskGaps:
    """A row for each group under its strongest attack, and the gap."""
    rows = []
    for name, result in results.items():
        strongest = result.strongest
        attacker = result.named(strongest.attacker)
        rows.append(GroupRow(name, len(result.speakers), (strongest.deid,), attacker))
    risks: dict[str, Estimate] = {name: r.strongest.deid for name, r in for_gap.items()}
    gap = gap_between(DEID, risks, luck, by, setup.level)
    return RiskGaps(system, by, POINT, tuple(rows), (gap,), seed=setup.seed, risk=DEID)


@dataclass(frozen=True, eq=False)
class _GroupedAttacks:
    """Attacks fitted on everybody, whose ``pairs`` are compared within groups."""

    original: Embeddings
    protected: Embeddings
    by: str
    backend: Backend
    attackers: Mapping[str, Attacker]
    setup: Setup
    pairs: Pairs

    def assess(self, people: set[str], level: float) -> tuple[Pseudonymisation, Pseudonymisation]:
        """The result of some people, and that of attacks fitted on everybody at another level."""
        pairs, segments, notes = self._pairs_among(people)
        made = compared(pairs, self.setup, self._one_way)
        names = made.sets["oo"].speakers

        def half(some: set[str]) -> Comparisons:
            """Compare half of the people, attacks within the group fitted on that half."""
            pairs, _, _ = self._pairs_among(some)
            return compared(pairs, self.setup.without_replicates, self._one_way)

        halves: Sequence[Comparisons] = ()
        if self.setup.replicates:
            halves = comparisons_of_halves(names, self.setup.seed, half)
        about: dict[str, Any] = {"backend": self.backend.name}
        about["trials"] = digest_of_speakers(segments)
        numbers = tuple(map(strongest_numbers, halves))
        result = assessed(made, **about, notes=notes, halves=numbers)
        numbers = tuple(strongest_numbers(self._everywhere(one)) for one in halves)
        alone = replace(self._everywhere(made), setup=replace(self.setup, level=level))
        return result, assessed(alone, **about, halves=numbers)

    def labelled(self, names: Sequence[str], groups: Mapping[str, set[str]]) -> FloatArray:
        """DeID of each group (column) under its strongest attack, as people are labelled (first
        row) and with labels permuted: matrices and calibration are those of a group's own people.
        """
        group_of = {name: n for n, people in enumerate(groups.values()) for name in people}
        chosen = np.array([k for k, name in enumerate(names) if name in group_of])
        order = chosen[np.argsort([names[k] for k in chosen])]
        member = np.array([group_of[names[k]] for k in order])
        labels = permuted_labels(member, LABELLINGS_OF_DEID, self.setup.seed)
        inside = np.zeros((len(labels), len(groups), len(names)))
        for group in range(len(groups)):
            inside[:, group, order] = labels == group
        options = self.setup
        setup = LabelledSetup(
            inside.shape[0] * inside.shape[1],
            options.level,
            options.seed,
            options.mean,
            options.pairs,
            (inside.reshape(-1, len(names)),),
        )
        made = self._everywhere(compared(self.pairs, setup, self._one_way))
        found = [np.abs(attack.draws.signed) for attack in competing_attacks(made).values()]
        whole = made.readings["oo"][0].draws.signed
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.where(whole > 0, np.max(found, axis=0) / whole, np.nan)
        return np.asarray((1 - left).reshape(inside.shape[:2]))

    def _pairs_among(
        self, people: set[str]
    ) -> tuple[dict[str, list[PairGrid]], Segments, tuple[Notice, ...]]:
        """Comparisons among some people, by attacks fitted on everybody and on these alone."""
        made = {name: [grid_among(g, people) for g in grids] for name, grids in self.pairs.items()}
        part = of_people(self.original, people), of_people(self.protected, people)
        fewer = {n: a.among(people) for n, a in self.attackers.items() if not a.by and n != WORDS}
        fitted, segments, notes = pairs_of_embeddings(*part, self.backend, fewer, self.setup)
        for name, grids in fitted.items():
            if len(grids) > 1:  # fitted on either half of the utterances
                made[self._within(name)] = grids
        return made, segments, notes

    @property
    def _one_way(self) -> frozenset[str]:
        """Attacks that are not read negated, fitted on everybody or within a group."""
        labels = labels_of_ratios(self.attackers)
        return labels | {self._within(label) for label in labels}

    def _within(self, name: str) -> str:
        """The name of an attack that is fitted within the groups."""
        return f"{name} by {self.by}"

    def _everywhere(self, made: Comparisons) -> Comparisons:
        """Without attacks that are fitted within groups."""
        within = {self._within(name) for name in self.pairs}
        fitted_by_column = [name for name, attacker in self.attackers.items() if attacker.by]
        within.update(fitted_by_column, map(CENTRED.of, fitted_by_column))
        kept = {name: some for name, some in made.readings.items() if name not in within}
        return replace(made, readings=kept)


def grid_among(grid: PairGrid, people: set[str]) -> PairGrid:
    """The same comparisons of some of the people."""
    chosen = np.flatnonzero([name in people for name in grid.enrol.names])
    rows, columns = grid.enrol.rows(chosen), grid.test.rows(chosen)
    source = grid.source
    assert isinstance(source, Sides)
    enrol = np.ascontiguousarray(source.enrol[rows])
    same = source.test is source.enrol and np.array_equal(rows, columns)
    test = enrol if same else np.ascontiguousarray(source.test[columns])
    which = grid.which
    if isinstance(which, Rule):
        within = None if which.within is None else which.within[rows]
        across = None if which.across is None else which.across[columns]
        which = Rule(which.codes[rows], which.holds, within, across)
    sides = _groups_among(grid.enrol, chosen, rows), _groups_among(grid.test, chosen, columns)
    return replace(grid, source=Sides(enrol, test), enrol=sides[0], test=sides[1], which=which)


def _groups_among(groups: Groups, chosen: IntArray, rows: IntArray) -> Groups:
    """The rows of the chosen people, numbered among them."""
    place = np.full(len(groups.names), -1)
    place[chosen] = np.arange(len(chosen))
    names = tuple(groups.names[k] for k in chosen)
    return Groups(place[groups.codes[rows]], names)
