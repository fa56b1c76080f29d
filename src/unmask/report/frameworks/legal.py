"""Linkability, Singling Out and inference: what the law asks (Vauquier 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unmask.estimate import Estimate
from unmask.figures import Figure
from unmask.figures.legal_panel import legal_panel
from unmask.figures.risk_comparison import RiskLine, risk_comparison
from unmask.privacy.inference import Inference, inference
from unmask.privacy.legal import Attacker as LegalAttacker
from unmask.privacy.legal import legal_sweep
from unmask.privacy.legal_flags import sweep_warnings
from unmask.privacy.legal_sweep import LegalSweep
from unmask.report.cache import Progress, Step, digest_of_embeddings
from unmask.report.config import ORIGINAL, Config
from unmask.report.document import Row
from unmask.report.frameworks.attacks import Attack
from unmask.report.inputs import Inputs
from unmask.report.section import VAUQUIER_2025, Choice, Method, Section, TableBlock

TITLES = {
    "linkability": "Linkability",
    "singling_out": "Singling Out",
    "one_minus_eer": "1 − EER",
}


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
    """All curves of one attack."""
    how = config.legal
    params = {
        "counts": how.counts,
        "lengths": how.lengths,
        "metrics": how.metrics,
        "folds": how.folds,
        "draws": how.draws,
        "max_enrol": how.max_enrol,
        "level": config.intervals.level,
        "replicates": config.intervals.replicates,
        "seed": config.seed,
        "backend": attack.backend,
        "label": attack.label,
    }

    def compute(progress: Progress) -> LegalSweep:
        attacker = LegalAttacker(attack.enrol, attack.test, attack.backend, attack.enrol)
        return legal_sweep(
            {attack.label: attacker},
            counts=how.counts,
            lengths=how.lengths,
            metrics=how.metrics,
            folds=how.folds,
            draws=how.draws,
            max_enrol=how.max_enrol,
            level=config.intervals.level,
            replicates=config.intervals.replicates,
            seed=config.seed,
            progress=progress,
        )

    what = f"linkability and singling out of {attack.safeguard}, {attack.label}"
    return Step(what, attack.inputs, params, compute, weight=1.0 * len(how.lengths))


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
    """The strongest attack on one safeguard for one metric, and unprotected speech beside it."""

    attack: Attack
    estimate: Estimate
    unprotected: Estimate | None


class LegalResults:
    """Sweeps of every safeguard, with unprotected speech in each."""

    def __init__(
        self,
        attacks: Mapping[str, Sequence[Attack]],
        sweeps: Mapping[str, Sequence[LegalSweep]],
        inferences: Mapping[tuple[str, str], Inference],
        config: Config,
    ) -> None:
        self.config = config
        self.attacks = attacks
        self.inferences = inferences
        self.length = config.legal.lengths[0]
        self.single = {
            name: {a.label: s for a, s in zip(attacks[name], found, strict=True)}
            for name, found in sweeps.items()
        }
        self.control = self._control()
        self.sweeps = {n: self._joined(n) for n in self.single if n != ORIGINAL}

    def _control(self) -> tuple[Attack, LegalSweep]:
        """The back-end that does best on unprotected speech."""
        metric = self.config.legal.metrics[0]
        sweeps = list(self.single[ORIGINAL].items())
        best = max(
            range(len(sweeps)),
            key=lambda i: float(sweeps[i][1].curves[sweeps[i][0], metric, self.length].value[-1]),
        )
        return self.attacks[ORIGINAL][best], sweeps[best][1]

    def _joined(self, name: str) -> LegalSweep:
        """Unprotected speech and all attackers of a safeguard in one sweep."""
        control = self.control[1]
        curves = {(ORIGINAL, m, n): c for (_, m, n), c in control.curves.items()}
        ranks = {(ORIGINAL, n): r for (_, n), r in control.ranks.items()}
        for sweep in self.single[name].values():
            curves.update(sweep.curves)
            ranks.update(sweep.ranks)
        probes = {(name, a): i for (s, a), i in self.inferences.items() if s == name}
        told = sweep_warnings(curves, probes, ranks, ORIGINAL)
        return LegalSweep(
            curves=curves,
            ranks=ranks,
            inferences=probes,
            original=ORIGINAL,
            asked=None,
            seed=self.config.seed,
            warnings=tuple(dict.fromkeys(told)),
        )

    def risk(self, safeguard: str, metric: str, length: int | None = None) -> LegalRisk:
        """The strongest attacker at the largest number of speakers."""
        length = self.length if length is None else length
        sweep = self.sweeps[safeguard]
        counts = [int(sweep.curves[a, metric, length].counts.max()) for a in sweep.protected]
        best = sweep.strongest(metric, length, max(counts))
        attack = next(a for a in self.attacks[safeguard] if a.label == best.attacker)
        bare = sweep.estimate(ORIGINAL, metric, length, max(counts))
        return LegalRisk(attack, best.estimate, bare)


def section(results: LegalResults, colours: Mapping[str, str]) -> Section:
    """Risk against the number of speakers, all safeguards together and each on its own."""
    config = results.config
    lines = []
    for name in results.sweeps:
        for metric in config.legal.metrics:
            for length in config.legal.lengths:
                found = results.risk(name, metric, length)
                curve = results.sweeps[name].curves[found.attack.label, metric, length]
                lines.append(RiskLine(name, found.attack.label, metric, length, curve))
    control = results.control[1]
    lines = [
        *(RiskLine(ORIGINAL, ORIGINAL, m, n, c) for (_, m, n), c in control.curves.items()),
        *lines,
    ]
    comparison = risk_comparison(lines, colours=colours, original=ORIGINAL)
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
        for number, (name, sweep) in enumerate(results.sweeps.items(), start=1)
    ]
    return Section(
        key="legal",
        title="Linkability and Singling Out",
        question="Can someone who holds recordings of known people say whose protected voice this"
        " is, or isolate one person in the crowd?",
        answer=tuple(_answers(results)),
        figures=(comparison, Choice("Every attacker on", tuple(panels))),
        tables=_tables(results),
        warnings=tuple(
            f"{name}: {line}" for name, s in results.sweeps.items() for line in s.warnings
        ),
        method=_METHOD,
        citation=VAUQUIER_2025,
    )


def _answers(results: LegalResults) -> list[str]:
    told = []
    for name in results.sweeps:
        for metric in ("linkability", "singling_out"):
            if metric not in results.config.legal.metrics:
                continue
            found = results.risk(name, metric)
            e = found.estimate
            chance = float(e.chance or 0)
            told.append(
                f"{name}: {TITLES[metric]} {100 * float(e.value):.1f} % among"
                f" {e.params['N']:,} speakers by {found.attack.label}; chance"
                f" {100 * chance:.1f} %."
            )
    return told


def _tables(results: LegalResults) -> tuple[TableBlock, ...]:
    config = results.config
    largest, curves, details, ranks = [], [], [], []
    for name, sweeps in results.single.items():
        for key, sweep in sweeps.items():
            for length in config.legal.lengths:
                base = {"safeguard": name, "attacker": key, "utterances": str(length)}
                at_most = []
                for metric in config.legal.metrics:
                    curve = sweep.curves[key, metric, length]
                    last = int(curve.counts.argmax())
                    at_most.append(curve.estimate(last))
                    details.append(Row({**base, "metric": metric}, curve.details(last)))
                    curves += [
                        Row({**base, "speakers": f"{n:,}"}, (curve.estimate(i),))
                        for i, n in enumerate(curve.counts)
                    ]
                largest.append(Row(base, tuple(at_most)))
                if (key, length) in sweep.ranks:
                    ranks.append(Row(base, sweep.ranks[key, length].estimates))
    blocks = [
        TableBlock("At the largest number of speakers", tuple(largest)),
        TableBlock("Rank of the true speaker, in bits", tuple(ranks), folded=True),
        TableBlock("Residual risk, worst decile, negated score", tuple(details), folded=True),
        TableBlock("Every number of speakers", tuple(_merged(curves)), folded=True),
    ]
    probes = [
        Row({"safeguard": name, "attribute": attribute}, found.estimates)
        for (name, attribute), found in results.inferences.items()
    ]
    if probes:
        blocks.insert(1, TableBlock("Inference of attributes", tuple(probes)))
    return tuple(block for block in blocks if block.rows)


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
        "A protected conversation is linked if its own speaker's enrolment is the closest. The"
        " expectation over all subsets of N′ speakers is exact; a tie is a failure (eq. 3, 4).",
    ),
    Method(
        "Singling Out",
        "exactly one of N entries scores above a threshold of mean 1/N, chance e⁻¹ ≈ 36.8 %",
        "A predicate made from one enrolment recording isolates one protected entry, whoever it"
        " is; the threshold is set on other recordings (eq. 1, 2).",
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
