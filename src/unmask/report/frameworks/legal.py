"""Linkability, Singling Out and inference: what the law asks (Vauquier 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unmask.estimate import Estimate
from unmask.figures import Figure, RiskLine
from unmask.figures.legal import legal_panel, risk_comparison
from unmask.privacy.legal import (
    PLAIN,
    Curve,
    Inference,
    LegalSweep,
    Ranks,
    Strongest,
    inference,
    legal_sweep,
    strongest_of,
    sweep_warnings,
)
from unmask.privacy.legal import Attacker as LegalAttacker
from unmask.privacy.similarity import ALL
from unmask.report.cache import Progress, Step, digest_of_embeddings
from unmask.report.config import CONSISTENCY, ORIGINAL, Config
from unmask.report.document import Row
from unmask.report.frameworks.attacks import NO_EXTRACTOR, Attack, Variant, shown
from unmask.report.headline import CONTROL, WORST
from unmask.report.inputs import Inputs
from unmask.report.section import VAUQUIER_2025, Choice, Method, Section, TableBlock

TITLES = {"linkability": "Linkability", "singling_out": "Singling Out", "one_minus_eer": "1 − EER"}


def with_fitting_lengths(
    config: Config, attacks: Mapping[str, Sequence[Attack]]
) -> tuple[Config, tuple[str, ...]]:
    """The config with those lengths that the attacked speech allows, and a note on the others.

    A length needs a speaker with two conversations of it; if none fits, the metrics tell why.
    """
    tests = [attack.test for found in attacks.values() for attack in found]
    most = min((int(np.bincount(test.speakers.codes).max()) // 2 for test in tests), default=0)
    lengths = config.legal.lengths
    fitting = tuple(length for length in lengths if length <= most)
    if not fitting or fitting == lengths:
        return config, ()
    longer = ", ".join(str(length) for length in lengths if length > most)
    note = f"conversations of {longer} utterances left out: nobody has two of them to attack"
    legal = config.legal.model_copy(update={"lengths": fitting})
    return config.model_copy(update={"legal": legal}), (note,)


def sweep_step(attack: Attack, config: Config) -> Step:
    """All curves of one attacker, in every variant."""
    how = config.legal
    options: dict[str, Any] = {
        "counts": how.counts,
        "lengths": how.lengths,
        "metrics": how.metrics,
        "linkability_enrol": how.linkability_enrol,
        "singling_out_enrol": how.singling_out_enrol,
        "folds": how.folds,
        "draws": how.draws,
        "max_enrol": how.max_enrol,
        "level": config.intervals.level,
        "replicates": config.intervals.replicates,
        "seed": config.seed,
    }

    def compute(progress: Progress) -> LegalSweep:
        return legal_sweep(_attackers(attack), **options, progress=progress)

    what = f"linkability and singling out of {attack.safeguard}, {attack.attacker}"
    params = {**options, "backends": attack.backends}
    return Step(what, attack.inputs, params, compute, weight=1.0 * len(how.lengths))


def _attackers(attack: Attack) -> dict[str, LegalAttacker]:
    """The attacker with each of its back-ends; what it enrols is never the attacked run, or the
    safeguard has no key.
    """
    return {
        attack.label(Variant(backend)): LegalAttacker(
            attack.enrol, attack.test, backend, attack.train, consistency=False
        )
        for backend in attack.backends
    }


def consistency_steps(config: Config, runs: Mapping[str, Attack]) -> dict[str, Step]:
    """How often a protected utterance is closest to its own speaker's others of the same run."""
    steps = {}
    options: dict[str, Any] = {
        "counts": config.legal.counts,
        "lengths": config.legal.lengths[:1],
        "metrics": ("linkability",),
        "variants": (PLAIN,),
        "level": config.intervals.level,
        "replicates": config.intervals.replicates,
        "seed": config.seed,
    }
    for name, one in runs.items():

        def compute(progress: Progress, a: Attack = one) -> LegalSweep:
            return legal_sweep({CONSISTENCY: LegalAttacker(a.enrol, a.test)}, **options)

        steps[name] = Step(f"{CONSISTENCY} of {name}", one.inputs, options, compute, weight=0.5)
    return steps


def inference_steps(config: Config, inputs: Inputs) -> dict[tuple[str, str], Step]:
    """What an attacker infers from each safeguard, by (safeguard, attribute)."""
    found: dict[tuple[str, str], Step] = {}
    original = inputs.original
    for name, protected in inputs.protected.items():
        for attribute, bands in config.legal.attributes.items():

            def compute(progress: Progress, p=protected, a=attribute, b=bands) -> Inference:  # type: ignore[no-untyped-def]
                return inference(
                    p,
                    a,
                    unprotected=original,
                    bands=b,
                    level=config.intervals.level,
                    replicates=config.intervals.replicates,
                    seed=config.seed,
                )

            assert original is not None
            found[name, attribute] = Step(
                f"inference of {attribute} from {name}",
                [digest_of_embeddings(protected), digest_of_embeddings(original)],
                {
                    "attribute": attribute,
                    "bands": bands,
                    "level": config.intervals.level,
                    "replicates": config.intervals.replicates,
                    "seed": config.seed,
                },
                compute,
                weight=2.0,
            )
    return found


@dataclass(frozen=True)
class LegalRisk:
    """The strongest attack on one safeguard at one point: utterances and speakers."""

    safeguard: str
    metric: str
    length: int
    count: int
    strongest: Strongest

    @property
    def value(self) -> float:
        return float(self.strongest.estimate.value)

    def conditions(self, point: str) -> dict[str, str]:
        """Conditions of a row of the table."""
        return {
            "safeguard": self.safeguard,
            "attacker": self.strongest.attacker,
            "point": point,
            "utterances": str(self.length),
            "speakers": f"{self.count:,}",
        }


Curves = dict[tuple[str, str, int], Curve]


class LegalResults:
    """Curves of every attack on every safeguard, and of the same attacks on unprotected speech."""

    def __init__(
        self,
        sweeps: Mapping[tuple[str, str], LegalSweep],
        inferences: Mapping[tuple[str, str], Inference],
        consistency: Mapping[str, LegalSweep],
        config: Config,
    ) -> None:
        self.config = config
        self.inferences = inferences
        self.consistency = consistency
        self.metrics: tuple[str, ...] = config.legal.metrics
        self.lengths = config.legal.lengths
        self.curves: dict[str, dict[str, Curves]] = {}
        self.ranks: dict[str, dict[tuple[str, int], Ranks]] = {}
        for (name, attacker), sweep in sweeps.items():
            self.curves.setdefault(name, {})[attacker] = dict(sweep.curves)
            self.ranks.setdefault(name, {}).update(sweep.ranks)
        self.safeguards = tuple(name for name in self.curves if name != ORIGINAL)
        self._found: dict[tuple[str, str, int, int, str | None], LegalRisk] = {}

    def of(
        self, safeguard: str, metric: str, length: int, attacker: str | None = None
    ) -> dict[str, Curve]:
        """Curves of one metric and length by their attacker's name, of one attacker or of all."""
        return {
            label: curve
            for who, curves in self.curves[safeguard].items()
            if attacker in (None, who)
            for (label, m, n), curve in curves.items()
            if (m, n) == (metric, length)
        }

    def counts(self, safeguard: str, metric: str, length: int) -> list[int]:
        """Numbers of speakers at which attacks were run."""
        curves = self.of(safeguard, metric, length).values()
        return sorted({int(n) for curve in curves for n in curve.counts})

    def strongest(
        self, safeguard: str, metric: str, length: int, count: int, attacker: str | None = None
    ) -> LegalRisk:
        """The strongest attack at one point, of one attacker or of all."""
        key = (safeguard, metric, length, count, attacker)
        if key not in self._found:
            curves = self.of(safeguard, metric, length, attacker)
            best = strongest_of(curves, count, seed=self.config.seed)
            self._found[key] = LegalRisk(safeguard, metric, length, count, best)
        return self._found[key]

    def points(self, safeguard: str, metric: str) -> list[LegalRisk]:
        """The strongest attack at every number of utterances and of speakers."""
        return [
            self.strongest(safeguard, metric, length, count)
            for length in self.lengths
            for count in self.counts(safeguard, metric, length)
        ]

    def worst(self, safeguard: str, metric: str) -> LegalRisk:
        """The largest risk of all points: most often many utterances and few candidates."""
        return max(self.points(safeguard, metric), key=lambda risk: risk.value)

    def crowd(self, safeguard: str, metric: str) -> LegalRisk:
        """The fewest utterances and all candidates."""
        length = min(self.lengths)
        return self.strongest(safeguard, metric, length, self.counts(safeguard, metric, length)[-1])

    def shown(self, safeguard: str) -> Curves:
        """For each attacker the curve of the variant that is strongest among most speakers."""
        found: Curves = {}
        for attacker in self.curves[safeguard]:
            for metric in self.metrics:
                for length in self.lengths:
                    count = self.counts(safeguard, metric, length)[-1]
                    best = self.strongest(safeguard, metric, length, count, attacker)
                    label = best.strongest.attacker
                    found[attacker, metric, length] = self.curves[safeguard][attacker][
                        label, metric, length
                    ]
        return found

    def sweep(self, safeguard: str) -> LegalSweep:
        """Unprotected speech and every attacker of a safeguard in one sweep."""
        curves = {**self.shown(ORIGINAL), **self.shown(safeguard)}
        probes = {(name, a): i for (name, a), i in self.inferences.items() if name == safeguard}
        return LegalSweep(
            curves=curves,
            ranks={},
            inferences=probes,
            original=ORIGINAL,
            asked=None,
            seed=self.config.seed,
            warnings=tuple(dict.fromkeys(sweep_warnings(curves, probes, {}, ORIGINAL))),
        )


def section(results: LegalResults, colours: Mapping[str, str]) -> Section:
    """Risk against the number of speakers, all safeguards together and each on its own."""
    lines = []
    for name in (ORIGINAL, *results.safeguards):
        for metric in results.metrics:
            for length in results.lengths:
                count = results.counts(name, metric, length)[-1]
                label = results.strongest(name, metric, length, count).strongest.attacker
                curve = results.of(name, metric, length)[label]
                who = ORIGINAL if name == ORIGINAL else label
                lines.append(RiskLine(name, who, metric, length, curve))
    comparison = risk_comparison(lines, colours=colours, original=ORIGINAL)
    sweeps = {name: results.sweep(name) for name in results.safeguards}
    panels: list[tuple[str, Figure]] = [
        (
            name,
            legal_panel(
                sweep,
                colour=colours[name],
                name=f"legal_panel_{number}",
                title=f"{name}: every attacker",
            ),
        )
        for number, (name, sweep) in enumerate(sweeps.items(), start=1)
    ]
    return Section(
        key="legal",
        title="Linkability and Singling Out",
        question="Can someone who holds recordings of known people say whose protected voice this"
        " is, or isolate one person in the crowd?",
        answer=tuple(_answers(results)),
        figures=(comparison, Choice("Every attacker on", tuple(panels))),
        tables=_tables(results),
        warnings=tuple(f"{name}: {line}" for name, s in sweeps.items() for line in s.warnings),
        method=_METHOD,
        citation=VAUQUIER_2025,
    )


def _answers(results: LegalResults) -> list[str]:
    told = []
    for name in results.safeguards:
        for metric in results.metrics:
            found = results.worst(name, metric)
            estimate = found.strongest.estimate
            spoken = f"{found.length} utterance{'s' if found.length > 1 else ''}"
            told.append(
                f"{name}: {TITLES[metric]} up to {shown(estimate, 1, scale=100)} %, among"
                f" {found.count:,} speakers with {spoken}, by {found.strongest.attacker}; chance"
                f" {100 * float(estimate.chance or 0):.1f} %."
            )
    return told


_STRONGEST = (
    "The attack is chosen on one half of the speakers and judged by the other, over many splits, so"
    " that the choice among many attacks does not flatter it; named is the one chosen most often."
    " Risk grows with the number of utterances and falls with the number of candidates."
)
_CONSISTENCY = (
    "How often the closest enrolment of the same run is the speaker's own: how distinct and stable"
    " the pseudo-voices of one run are. Where there is a key only its holder can do this: it is no"
    " attack."
)


def _tables(results: LegalResults) -> tuple[TableBlock, ...]:
    strongest: dict[str, list[Row]] = {
        metric: [
            *_controls(results, metric),
            *(row for name in results.safeguards for row in _points(results, name, metric)),
        ]
        for metric in results.metrics
    }
    curves, details, variants = [], [], []
    for name in results.curves:
        for (attacker, metric, length), curve in results.shown(name).items():
            base = {"safeguard": name, "attacker": attacker, "utterances": str(length)}
            curves += [
                Row({**base, "speakers": f"{n:,}"}, (curve.estimate(i),))
                for i, n in enumerate(curve.counts)
            ]
            last = int(curve.counts.argmax())
            details.append(Row({**base, "metric": metric}, curve.details(last)))
        for metric in results.metrics:
            length = results.lengths[-1]
            for label, curve in results.of(name, metric, length).items():
                first = int(curve.counts.argmin())
                base = {"safeguard": name, "attacker": label, "utterances": str(length)}
                base["speakers"] = f"{curve.counts[first]:,}"
                variants.append(Row(base, (curve.estimate(first),)))
    named = {
        (row.conditions["safeguard"], row.conditions["attacker"])
        for rows in strongest.values()
        for row in rows
    }
    ranks = [
        Row({"safeguard": name, "attacker": label, "utterances": str(length)}, found.estimates)
        for name, of in results.ranks.items()
        for (label, length), found in of.items()
        if (name, label) in named
    ]
    stable = [
        Row(
            {"safeguard": name, "utterances": str(length), "speakers": f"{n:,}"},
            (replace(curve.estimate(i), metric="consistency"),),
        )
        for name, sweep in results.consistency.items()
        for (_, _, length), curve in sweep.curves.items()
        for i, n in enumerate(curve.counts)
        if n == curve.counts.max()
    ]
    probes = [
        Row({"safeguard": name, "attribute": attribute}, found.estimates)
        for (name, attribute), found in results.inferences.items()
    ]
    blocks = (
        *(
            TableBlock(f"{TITLES[metric]}: the strongest attack", tuple(rows), note=_STRONGEST)
            for metric, rows in strongest.items()
        ),
        TableBlock("Inference of attributes", tuple(probes)),
        TableBlock("Consistency of pseudonyms (no attack)", tuple(stable), note=_CONSISTENCY),
        TableBlock("Strongest variant of each attacker", tuple(_merged(curves)), folded=True),
        TableBlock("Residual risk, worst decile", tuple(_merged(details)), folded=True),
        TableBlock("Rank of the true speaker, in bits", tuple(ranks), folded=True),
        TableBlock("Every variant tried", tuple(_merged(variants)), folded=True),
    )
    return tuple(block for block in blocks if block.rows)


def _points(results: LegalResults, name: str, metric: str) -> list[Row]:
    """The worst point of the curve, and that of all candidates."""
    found = ((WORST, results.worst(name, metric)), (ALL, results.crowd(name, metric)))
    return [Row(risk.conditions(point), (risk.strongest.estimate,)) for point, risk in found]


def _controls(results: LegalResults, metric: str) -> list[Row]:
    """Unprotected speech at its own worst point and wherever a safeguard's stands."""
    own = results.worst(ORIGINAL, metric), results.crowd(ORIGINAL, metric)
    at = {
        (risk.length, risk.count)
        for name in results.safeguards
        for risk in (results.worst(name, metric), results.crowd(name, metric))
    }
    at -= {(risk.length, risk.count) for risk in own}
    more = [results.strongest(ORIGINAL, metric, length, count) for length, count in sorted(at)]
    return [
        *_points(results, ORIGINAL, metric),
        *(Row(risk.conditions(CONTROL), (risk.strongest.estimate,)) for risk in more),
    ]


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Rows of equal conditions as one, the metrics side by side."""
    joined: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
    for row in rows:
        joined.setdefault(tuple(row.conditions.items()), []).extend(row.estimates)
    return [Row(dict(key), tuple(found)) for key, found in joined.items()]


_METHOD = (
    Method(
        "Linkability",
        "Pr[ s(i,i) > max over j ≠ i of s(i,j) ] among N′ enrolled speakers, chance 1/N′",
        "A protected conversation is linked if its own speaker's enrolment, the average of all the"
        " speaker's enrolment utterances, is the closest. The expectation over all subsets of N′"
        " speakers is exact; a tie is a failure (eq. 3, 4). The right person is in every list.",
    ),
    Method(
        "Singling Out",
        "exactly one of N entries scores above a threshold of mean 1/N, chance e⁻¹ ≈ 36.8 %",
        "A predicate made from up to 30 enrolment utterances isolates one protected entry, whoever"
        " it is; the threshold is set on other recordings (eq. 1, 2).",
    ),
    Method(
        "Attackers",
        "what is enrolled, and what the back-end was trained on",
        "Ignorant: the attacker's own protected speech, original speech. Semi-informed: the same,"
        " and speech of a related safeguard. Informed: the same, and the attacker's own protected"
        f" speech. With original enrolment, nothing protected is enrolled. {NO_EXTRACTOR}",
    ),
    Method(
        "Inference",
        "accuracy of a logistic regression against the majority class",
        "Speakers are disjoint between training and test.",
    ),
    Method(
        "Disclosure by rank",
        "MeanD = log₂ N − H(R), MaxD = max over r of log₂(N·P(r))",
        "How many bits of identity the rank of the true speaker gives away.",
    ),
)
