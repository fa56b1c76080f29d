"""ZEBRA: how much evidence of identity the scores of an attacker disclose (Noé 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from unmask.figures import Figure, calibration_profiles, disclosure_profiles
from unmask.privacy import CalibrationDistortion, disclosure_of
from unmask.privacy.similarity import calibration_distortion
from unmask.report.cache import Step
from unmask.report.config import ORIGINAL
from unmask.report.documents import Row
from unmask.report.frameworks.attacks import Attack, Variant
from unmask.report.frameworks.study import TRIALS, Framework, Plan, Study
from unmask.report.frameworks.trialled import Trialled, strongest
from unmask.report.frameworks.verification import (
    named_colours,
    notices_of,
    of_many,
    variant_blocks,
)
from unmask.report.headline import LARGEST_D_ECE
from unmask.report.section import NOE_2022, Choice, Method, Section, TableBlock, shown

_EVIDENCE = ("d_ece", "l_w", "tag", "min_cllr")


def _distortion(learnt: Attack, attacked: Attack, **options: Any) -> CalibrationDistortion:
    first, second = (one.scores(Variant("cosine"), names=["cosine"]) for one in (learnt, attacked))
    return calibration_distortion(first, second, **options)


def _steps(study: Study) -> Plan:
    """Calibration learnt on another run of the same safeguard, where there is one (eq. 15).

    A keyless safeguard has none: its second run is the first. A related safeguard is another one.
    """
    inputs, attacks = study.inputs, study.attacks.of
    how = {name: study.config.trials[name] for name in ("replicates", "level", "seed")}
    steps = {}
    for name, other in inputs.again.items():
        if name not in attacks:
            continue
        control = attacks[ORIGINAL][0]
        attacked = replace(control, test=inputs.attacked(inputs.protected[name]))
        learnt = replace(control, test=inputs.attacked(other))
        steps[name] = Step(
            f"calibration of {name} by another run",
            [*attacked.inputs, *learnt.inputs],
            how,
            partial(_distortion, learnt, attacked, **how),
            weight=0.5,
        )
    return {"distortions": steps}


def _section(study: Study, results: Mapping[str, Mapping[Any, Any]]) -> Section:
    """How much evidence of identity the strongest attacker's scores disclose."""
    trialled, keyless = study.trialled, sorted(study.inputs.keyless)
    distortions: Mapping[str, CalibrationDistortion] = results["distortions"]
    chosen = {name: strongest(found, "d_ece") for name, found in trialled.items()}
    disclosures = {n: disclosure_of(one.result.roc, system=n) for n, one in chosen.items()}
    tables = variant_blocks("Evidence disclosed", trialled, "d_ece", _EVIDENCE)
    figures: list[Figure | Choice] = [
        disclosure_profiles(
            disclosures, colours=named_colours(chosen, study.colours), title=_conclusion(chosen)
        )
    ]
    if distortions:
        told = tuple(
            (
                name,
                calibration_profiles(
                    [found],
                    name=f"calibration_distortion_{number}",
                    title=f"{name}: a calibration learnt on another run",
                ),
            )
            for number, (name, found) in enumerate(distortions.items(), start=1)
        )
        figures.append(Choice("Another run of", told))
        tables.append(
            TableBlock(
                "Calibration learnt on another run",
                tuple(Row({"safeguard": n}, d.estimates) for n, d in distortions.items()),
                folded=True,
                note="".join(
                    f"{name} is deterministic: a second run is the same, and there is none to learn"
                    " from. "
                    for name in keyless
                ).strip(),
            )
        )
    return Section(
        key="zebra",
        title="Evidence disclosed (ZEBRA)",
        question="How strongly does a comparison speak for or against an identity, on average and"
        " at worst?",
        answer=tuple(_evidence(one, len(trialled[name])) for name, one in chosen.items()),
        figures=tuple(figures),
        tables=tuple(tables),
        notices=tuple(
            dict.fromkeys(
                [
                    *notices_of(trialled, "d_ece"),
                    *(one.about(n) for n, d in distortions.items() for one in d.notices),
                ]
            )
        ),
        method=_ZEBRA,
        citation=NOE_2022,
    )


def _conclusion(chosen: Mapping[str, Trialled]) -> str:
    shares = {n: one.value("d_ece") / LARGEST_D_ECE for n, one in chosen.items()}
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    return f"Evidence that the strongest attacker's scores give away, of all there is: {told}"


def _evidence(one: Trialled, tried: int) -> str:
    return (
        f"{one.name}: {shown(one.result['d_ece'], 3)} bit on average of at most 0.721; at worst the"
        f" odds change by a factor of 10^{one.value('l_w'):.1f}, tag {one.result['tag'].value}"
        f"{of_many(tried)}."
    )


_ZEBRA = (
    Method(
        "Expected disclosure",
        "D_ECE = area between the prior's and the oracle-calibrated cross-entropy, 0 … 0.721 bit",
        "What an attacker learns on average, whatever the prior (eq. 11–13).",
    ),
    Method(
        "Worst case",
        "l_w = max |log₁₀ LR|, oracle-calibrated with Laplace",
        "Tags: 0 none, A below 1, B below 2, C below 4, D below 5, E below 6, F from 6 (Table 1)."
        " It grows with the number of trials, so counts stand beside it.",
    ),
)

FRAMEWORK = Framework("zebra", _section, steps=_steps, trials=True, main=TRIALS)
