"""Linkability, Singling Out and inference: what the law asks (Vauquier 2025)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from unmask import figures as charts
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.privacy import legal as law
from unmask.report.cache import Cache, Step, Work, cache_of
from unmask.report.config import CONSISTENCY, ORIGINAL, Config
from unmask.report.documents import Row, figures_of
from unmask.report.frameworks.attacks import Attack, Variant, attacks_of
from unmask.report.frameworks.study import Framework, Plan, Results, Study
from unmask.report.headline import ALL, CONTROL, WORST
from unmask.report.inputs import read_inputs
from unmask.report.section import Choice, Section, TableBlock, note, shown


@figures_of.register(law.LegalSweep)
def _(sweep: law.LegalSweep) -> list[charts.Figure]:
    return charts.legal_figures(sweep)


@figures_of.register(law.RiskCurve)
def _(curve: law.RiskCurve) -> list[charts.Figure]:
    line = charts.RiskLine("attacked", "attacker", curve.metric, 1, curve)
    colours = charts.system_colours(["attacked"])
    return [charts.risk_comparison([line], colours=colours, name=curve.metric)]


def with_fitting_lengths(
    config: Config, attacks: Mapping[str, Sequence[Attack]]
) -> tuple[Config, tuple[Notice, ...]]:
    """The config with those lengths that the attacked speech of some safeguard allows, and notices
    on the others.
    """
    lengths = config.legal.lengths
    fitting = {name: _fitting(lengths, some) for name, some in attacks.items()}
    kept = tuple(n for n in lengths if any(n in some for some in fitting.values())) or lengths
    lacking: dict[tuple[str, ...], list[int]] = {}
    for length in lengths:
        names = tuple(name for name, some in fitting.items() if length not in some)
        lacking.setdefault(names, []).append(length)
    notices = []
    for names, longer in lacking.items():
        whose = "" if len(names) == len(attacks) else f" of {' and '.join(names)}"
        sentence = (
            f"conversations of {', '.join(map(str, longer))} utterances left out{whose}: nobody has"
            " two of them to attack"
        )
        notices += [Notice("length-left-out", "", sentence)] if names else []
    return _with_lengths(config, kept), tuple(notices)


def _fitting(lengths: tuple[int, ...], attacks: Iterable[Attack]) -> tuple[int, ...]:
    """Lengths of which somebody has two conversations to attack; all where none is so short, and
    the metrics tell why.
    """
    codes = [attack.test.speakers.codes for attack in attacks]
    most = min((int(np.bincount(one).max()) // 2 for one in codes), default=0)
    return tuple(length for length in lengths if length <= most) or lengths


def _with_lengths(config: Config, lengths: tuple[int, ...]) -> Config:
    return config.model_copy(update={"legal": config.legal.model_copy(update={"lengths": lengths})})


def _options(config: Config) -> dict[str, Any]:
    """Options of a sweep but attributes, which are probed once for all attackers."""
    return {**config.legal.model_dump(exclude={"attributes"}), **config.drawn}


def legal_attackers(config: Config, path: Path) -> tuple[dict[str, law.Attacker], dict[str, Any]]:
    """Attackers of the config at ``path``, and the options of their sweep.

    The control has the first back-end; names begin with the safeguard where there are several.
    """
    work = Work(Cache(cache_of(path.with_suffix(""))))
    inputs = read_inputs(config, work, base=path.resolve().parent)
    attacks = attacks_of(config, inputs)
    if not attacks.of:
        raise InputError(f"{path}: expected original and protected voices to attack, found none")
    (control,) = attacks.of[ORIGINAL]
    attackers = {ORIGINAL: law.Attacker(control.enrol, control.test, consistency=False)}
    for attack in attacks.every[1:]:
        prefix = "" if len(attacks.of) == 2 else f"{attack.safeguard}, "
        attackers |= {f"{prefix}{label}": one for label, one in _attackers(attack).items()}
    config = _with_lengths(config, _fitting(config.legal.lengths, attacks.every))
    return attackers, {**_options(config), "attributes": config.legal.attributes}


def _attackers(attack: Attack) -> dict[str, law.Attacker]:
    return {attack.label(Variant(name)): attack.against(name) for name in attack.backends}


def _sweep_step(attack: Attack, config: Config) -> Step:
    """All curves of one attacker, in every variant."""
    options = _options(config) | {"lengths": _fitting(config.legal.lengths, [attack])}
    return Step(
        f"linkability and singling out of {attack.safeguard}, {attack.attacker}",
        attack.inputs,
        {**options, "backends": attack.backends},
        lambda: law.legal(_attackers(attack), **options),
        weight=1.0 * len(options["lengths"]),
    )


def _consistency_step(name: str, run: Attack, config: Config) -> Step:
    """How often a protected utterance is closest to its own speaker's others of the same run."""
    options = {
        "counts": config.legal.counts,
        "lengths": config.legal.lengths[:1],
        "metrics": ("linkability",),
        "variants": (law.PLAIN,),
        **config.drawn,
    }
    attackers, what = {CONSISTENCY: law.Attacker(run.enrol, run.test)}, f"{CONSISTENCY} of {name}"
    return Step(what, run.inputs, options, lambda: law.legal(attackers, **options), weight=0.5)


def _steps(study: Study) -> Plan:
    """A sweep of each attacker, what is inferred from each safeguard, consistency of pseudonyms."""
    config, inputs = study.config, study.inputs
    if not study.attacks.of:
        return {}
    probes = {
        (name, attribute): Step.of(
            f"inference of {attribute} from {name}",
            lambda one, bare, **how: law.inference(one, unprotected=bare, **how),
            protected,
            inputs.original,
            attribute=attribute,
            bands=bands,
            weight=2.0,
            **config.drawn,
        )
        for name, protected in inputs.protected.items()
        if inputs.original is not None
        for attribute, bands in config.legal.attributes.items()
    }
    return {
        "sweeps": study.per_attack(_sweep_step),
        "probes": probes,
        "consistency": {
            name: _consistency_step(name, run, config)
            for name, run in study.attacks.consistency.items()
        },
    }


class LegalResults:
    """Curves of every attack on every safeguard, and of the same attacks on unprotected speech.

    ``sweeps`` are by safeguard and attacker, ``probes`` by safeguard and attribute.
    """

    def __init__(
        self,
        config: Config,
        sweeps: Mapping[tuple[str, str], law.LegalSweep],
        probes: Mapping[tuple[str, str], law.Inference],
        consistency: Mapping[str, law.LegalSweep],
    ) -> None:
        self.sweeps, self.probes, self.consistency = sweeps, probes, consistency
        self.metrics: tuple[str, ...] = config.legal.metrics
        self.lengths, self.seed = config.legal.lengths, config.seed
        self.whole = {
            name: self._joined([s for (n, _), s in sweeps.items() if n == name])
            for name in dict.fromkeys(name for name, _ in sweeps)
        }
        self.safeguards = tuple(name for name in self.whole if name != ORIGINAL)
        self._found: dict[tuple[str, str, int, int, str | None], law.Worst] = {}

    def _joined(self, sweeps: Sequence[law.LegalSweep]) -> law.LegalSweep:
        curves = {key: curve for one in sweeps for key, curve in one.curves.items()}
        ranks = {key: rank for one in sweeps for key, rank in one.ranks.items()}
        return law.LegalSweep(curves, ranks, {}, None, None, self.seed)

    def of(
        self, safeguard: str, metric: str, length: int, attacker: str | None = None
    ) -> dict[str, law.Curve]:
        """Curves of one metric and length by their attacker's name, of one attacker or of all."""
        sweep = self.whole[safeguard] if attacker is None else self.sweeps[safeguard, attacker]
        return sweep.competing(metric, length)

    def lengths_of(self, safeguard: str) -> list[int]:
        """Lengths of conversations that a safeguard was attacked with."""
        known = {length for _, _, length in self.whole[safeguard].curves}
        return [length for length in self.lengths if length in known]

    def counts(self, safeguard: str, metric: str, length: int) -> list[int]:
        """Numbers of speakers at which attacks were run."""
        curves = self.of(safeguard, metric, length).values()
        return sorted({int(n) for curve in curves for n in curve.counts})

    def strongest(
        self, safeguard: str, metric: str, length: int, count: int, attacker: str | None = None
    ) -> law.Worst:
        """The strongest attack at one point, of one attacker or of all."""
        key = (safeguard, metric, length, count, attacker)
        if key not in self._found:
            curves = self.of(safeguard, metric, length, attacker)
            best = law.strongest_of(curves, count, seed=self.seed)
            self._found[key] = law.Worst(length, count, best)
        return self._found[key]

    def worst(self, safeguard: str, metric: str) -> law.Worst:
        """The largest risk of all points, the surest of equal ones."""
        points = [
            self.strongest(safeguard, metric, length, count)
            for length in self.lengths
            for count in self.counts(safeguard, metric, length)
        ]
        return max(points, key=lambda risk: law.extent(risk.strongest.estimate))

    def crowd(self, safeguard: str, metric: str) -> law.Worst:
        """The fewest utterances and all candidates."""
        return self.most(safeguard, metric, min(self.lengths))

    def most(
        self, safeguard: str, metric: str, length: int, attacker: str | None = None
    ) -> law.Worst:
        """The strongest attack with most speakers, of one attacker or of all."""
        count = self.counts(safeguard, metric, length)[-1]
        return self.strongest(safeguard, metric, length, count, attacker)

    def shown(self, safeguard: str) -> dict[tuple[str, str, int], law.Curve]:
        """For each attacker the curve of the variant that is strongest among most speakers."""
        shown = {}
        attackers = [who for name, who in self.sweeps if name == safeguard]
        for key in product(attackers, self.metrics, self.lengths_of(safeguard)):
            attacker, metric, length = key
            label = self.most(safeguard, metric, length, attacker).strongest.attacker
            shown[key] = self.sweeps[safeguard, attacker].curves[label, metric, length]
        return shown

    def sweep(self, safeguard: str) -> law.LegalSweep:
        """Unprotected speech and every attacker of a safeguard in one sweep."""
        own = self.lengths_of(safeguard)
        control = {key: curve for key, curve in self.shown(ORIGINAL).items() if key[2] in own}
        curves = {**control, **self.shown(safeguard)}
        probes = {(name, a): i for (name, a), i in self.probes.items() if name == safeguard}
        return law.LegalSweep(curves, {}, probes, ORIGINAL, None, self.seed)

    def overlaps(self) -> dict[str, tuple[law.Overlap, ...]]:
        """Whether the same people are linked by several attackers of a safeguard, under several
        safeguards, and with one utterance or more: by what the attacks differ in.
        """
        first = self.lengths[0]
        if "linkability" not in self.metrics:
            return {}
        compared: dict[str, dict[str, Any]] = {}
        for name in self.safeguards:
            compared[f"attackers on {name}"] = {
                attacker: curve
                for (attacker, metric, length), curve in self.shown(name).items()
                if metric == "linkability" and length == first
            }
            compared[f"lengths under {name}"] = {
                f"{length} utterances": self.leading(name, "linkability", length)[1]
                for length in self.lengths_of(name)
            }
        compared["safeguards"] = {
            name: self.leading(name, "linkability", first)[1] for name in self.safeguards
        }
        shared = {what: law.overlaps(curves) for what, curves in compared.items()}
        return {what: some for what, some in shared.items() if some}

    def leading(self, safeguard: str, metric: str, length: int) -> tuple[str, law.Curve]:
        """The attack that is strongest among most speakers, and its curve."""
        label = self.most(safeguard, metric, length).strongest.attacker
        return label, self.of(safeguard, metric, length)[label]


def _section(study: Study, groups: Results) -> Section:
    """Risk against the number of speakers, all safeguards together and each on its own."""
    results, colours = LegalResults(study.config, **groups), study.colours
    lines = []
    for name in (ORIGINAL, *results.safeguards):
        for metric, length in product(results.metrics, results.lengths_of(name)):
            label, curve = results.leading(name, metric, length)
            who = ORIGINAL if name == ORIGINAL else label
            lines.append(charts.RiskLine(name, who, metric, length, curve))
    metric = results.metrics[0]
    values = {n: float(results.worst(n, metric).strongest.estimate.value) for n in results.whole}
    each = ", ".join(f"{n} {100 * values[n]:.0f} %" for n in results.safeguards)
    title = f"{law.TITLES[metric]} at worst: {each}; unprotected {100 * values[ORIGINAL]:.0f} %"
    comparison = charts.risk_comparison(lines, colours=colours, original=ORIGINAL, title=title)
    sweeps = {name: results.sweep(name) for name in results.safeguards}

    def panel(drawn: str, name: str, sweep: law.LegalSweep) -> charts.Figure:
        worst = results.worst(name, metric)
        value = 100 * float(worst.strongest.estimate.value)
        most = f"{worst.strongest.attacker} succeeds most, {value:.0f} % among"
        title = f"{name}: {most} {worst.count:,} speakers"
        return charts.legal_panel(sweep, colour=colours[name], name=drawn, title=title)

    return Section(
        key="legal",
        answer=(*_answers(results), *_one_count(lines)),
        figures=()
        if _one_count(lines)
        else (comparison, Choice.of("Every attacker on", "legal_panel", sweeps, panel)),
        tables=_tables(results),
        notices=tuple(
            Notice(one.code, name, one.sentence)
            for name, sweep in sweeps.items()
            for one in sweep.notices
        ),
    )


def _one_count(lines: Sequence[charts.RiskLine]) -> tuple[str, ...]:
    """A sentence in place of charts of curves that have one point each."""
    counts = {int(n) for line in lines for n in line.curve.counts}
    if len(counts) > 1:
        return ()
    return (f"All attacks are among {counts.pop():,} speakers: there is no curve to draw.",)


def _answers(results: LegalResults) -> list[str]:
    lines = []
    for name, metric in product(results.safeguards, results.metrics):
        worst = results.worst(name, metric)
        estimate = worst.strongest.estimate
        lines.append(
            f"{name}: {law.TITLES[metric]} up to {shown(estimate, 1, scale=100)} %, among"
            f" {worst.count:,} speakers with {law.spoken(worst.length)}, by"
            f" {worst.strongest.attacker}; chance {100 * float(estimate.chance or 0):.1f} %."
        )
    return lines


def _tables(results: LegalResults) -> tuple[TableBlock, ...]:
    strongest: dict[str, list[Row]] = {
        metric: [
            *_controls(results, metric),
            *(row for name in results.safeguards for row in _points(results, name, metric)),
        ]
        for metric in results.metrics
    }
    curves, details, variants = [], [], []
    for name in results.whole:
        for (attacker, metric, length), curve in results.shown(name).items():
            base = {"safeguard": name, "attacker": attacker, "utterances": str(length)}
            curves += [
                Row({**base, "speakers": f"{n:,}"}, (curve.estimate(i),))
                for i, n in enumerate(curve.counts)
            ]
            last = int(curve.counts.argmax())
            details.append(Row({**base, "metric": metric}, curve.details(last)))
        for metric in results.metrics:
            length = results.lengths_of(name)[-1]
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
        Row({"safeguard": name, "attacker": label, "utterances": str(length)}, rank.estimates)
        for name, sweep in results.whole.items()
        for (label, length), rank in sweep.ranks.items()
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
        Row({"safeguard": name, "attribute": attribute}, probe.estimates)
        for (name, attribute), probe in results.probes.items()
    ]
    same = [
        Row(
            {"between": what, "first": one.first, "second": one.second, "tenth": one.which},
            (one.estimate,),
        )
        for what, some in results.overlaps().items()
        for one in some
    ]
    blocks = (
        *(
            TableBlock(
                f"{law.TITLES[metric]}: the strongest attack", tuple(rows), note=note("strongest")
            )
            for metric, rows in strongest.items()
        ),
        TableBlock("Inference of attributes", tuple(probes)),
        TableBlock(
            "Consistency of pseudonyms (no attack)", tuple(stable), note=note("consistency")
        ),
        TableBlock("Strongest variant of each attacker", tuple(_merged(curves)), folded=True),
        TableBlock("Residual risk, worst decile", tuple(_merged(details)), folded=True),
        TableBlock("Rank of the true speaker, in bits", tuple(ranks), folded=True),
        TableBlock("Every variant tried", tuple(_merged(variants)), folded=True),
        TableBlock("Are the same people linked?", tuple(same), folded=True, note=note("overlap")),
    )
    return tuple(block for block in blocks if block.rows)


def _points(results: LegalResults, name: str, metric: str) -> list[Row]:
    """The worst point of the curve, and that of all candidates."""
    points = ((WORST, results.worst(name, metric)), (ALL, results.crowd(name, metric)))
    return [_row(name, risk, point) for point, risk in points]


def _row(safeguard: str, risk: law.Worst, point: str) -> Row:
    conditions = {
        "safeguard": safeguard,
        "attacker": risk.strongest.attacker,
        "point": point,
        "utterances": str(risk.length),
        "speakers": f"{risk.count:,}",
    }
    return Row(conditions, (risk.strongest.estimate,))


def _controls(results: LegalResults, metric: str) -> list[Row]:
    """Unprotected speech at its own worst point and wherever a safeguard's stands."""
    own = results.worst(ORIGINAL, metric), results.crowd(ORIGINAL, metric)
    at = {
        (risk.length, risk.count)
        for name in results.safeguards
        for risk in (results.worst(name, metric), results.crowd(name, metric))
    }
    at -= {(risk.length, risk.count) for risk in own}
    more = [
        results.strongest(ORIGINAL, metric, length, count)
        for length, count in sorted(at)
        if count in results.counts(ORIGINAL, metric, length)
    ]
    return [*_points(results, ORIGINAL, metric), *(_row(ORIGINAL, r, CONTROL) for r in more)]


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Rows of equal conditions as one, the metrics side by side."""
    joined: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
    for row in rows:
        joined.setdefault(tuple(row.conditions.items()), []).extend(row.estimates)
    return [Row(dict(key), tuple(estimates)) for key, estimates in joined.items()]


FRAMEWORK = Framework("legal", _section, steps=_steps, main="sweeps")
