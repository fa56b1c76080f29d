"""ZEBRA: how much evidence of identity the scores of an attacker disclose (Noé 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unmask import figures as charts
from unmask.assessment import HALVES, HalfNumbers, Results, Study, result_among, strongest
from unmask.assessment.frameworks import LEARNT
from unmask.engine import LARGEST_D_ECE
from unmask.privacy import CalibrationDistortion, disclosure_of
from unmask.report.documents import Row
from unmask.report.frameworks.verification import (
    few_people_notices,
    named,
    notices_of,
    of_many,
    variant_blocks,
)
from unmask.report.section import Choice, Section, TableBlock, colours_of
from unmask.report.table import MODELS
from unmask.report.words import note, shown, whole_percent

_EVIDENCE = ("d_ece", "l_w", "tag", "min_cllr")


def section(study: Study, results: Results) -> Section:
    """How much evidence of identity the strongest attacker's scores disclose."""
    trialled = study.trialled
    distortions: Mapping[str, Sequence[CalibrationDistortion]] = results["distortions"]
    halves: Mapping[str, HalfNumbers] = results[HALVES]
    chosen = {name: strongest(variants, "d_ece") for name, variants in trialled.items()}
    disclosures = {n: disclosure_of(tried.result.roc, system=n) for n, tried in chosen.items()}
    shares = {n: tried.value("d_ece") / LARGEST_D_ECE for n, tried in chosen.items()}
    each = ", ".join(f"{name} {whole_percent(share)}" for name, share in shares.items())
    title = f"Share of the available evidence disclosed to the strongest attacker: {each}"
    colours = {name: colours_of(study)[name] for name in chosen}
    of = f"{MODELS}, by the strongest attacker on each"
    figures: list[charts.Figure | Choice] = [
        charts.disclosure_profiles(disclosures, colours=colours, of=of).called(title=title)
    ]
    by = {"attacker": f"original enrolment ({LEARNT})", "trials": MODELS}
    if distortions:
        drawn = {
            name: charts.calibration_profiles(some, of=f"{MODELS}, by {by['attacker']}").called(
                title=f"{name}: a calibration learnt on another run"
            )
            for name, some in distortions.items()
        }
        figures.append(Choice.of("Another run of", "calibration_distortion", drawn))
    none = "is deterministic: a second run is the same, and there is none to learn from."
    said = " ".join(f"{name} {none}" for name in sorted(study.inputs.keyless))
    rows = [
        Row({"safeguard": name, **by}, [e for distortion in some for e in distortion.estimates])
        for name, some in distortions.items()
    ]
    learnt = [
        n.about(name) for name, some in distortions.items() for one in some for n in one.notices
    ]
    few = few_people_notices(trialled, "d_ece")
    answer = []
    for name, tried in chosen.items():
        d_ece = result_among(tried, trialled[name], "d_ece", halves.get(name))["d_ece"]
        answer.append(
            f"{named(tried)}: D_ECE of {MODELS} {shown(d_ece, 3)} bit of at most 0.721;"
            " in the worst case a comparison changes the odds"
            f" {_fold(tried.value('l_w'))}, tag {tried.result['tag'].value}{of_many(d_ece)}."
        )
    return Section(
        key="zebra",
        answer=answer,
        figures=figures,
        tables=[
            *variant_blocks(
                "Evidence disclosed", trialled, "d_ece", _EVIDENCE, halves, note=note("chosen")
            ),
            TableBlock("Calibration learnt on another run", rows, folded=True, note=said),
        ],
        notices=list(dict.fromkeys([*notices_of(trialled, "d_ece"), *few, *learnt])),
    )


def _fold(power: float) -> str:
    """``34,000-fold``: a power of ten to two digits."""
    return f"{float(f'{10**power:.2g}'):,.0f}-fold"
