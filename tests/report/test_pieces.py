"""What an assessment has of the papers' tables and figures: 1 − EER, each sex, both zoos; the
recordings of a release linked to each other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.assessment import load_config
from unmask.assessment.attacks import attacks_of
from unmask.assessment.cache import Work
from unmask.assessment.frameworks import RECORDS
from unmask.assessment.inputs import read_inputs
from unmask.privacy.legal import RELEASE, one_minus_eer
from unmask.report import run_assessment as assess
from unmask.report.headline import find
from unmask.run import run_on

PEOPLE, EACH, DIMENSION = 24, 8, 16
CONFIG = """
figures = []
frameworks = ["legal", "similarity"]
intervals = {replicates = 30}
legal = {lengths = [1, 2], draws = 2, folds = 3}
[original]
embeddings = "original.npz"
[[safeguards]]
name = "mixed"
embeddings = "mixed.npz"
"""


def voices(seed: int, noise: float) -> um.Embeddings:
    gender = {"gender": np.where(np.arange(PEOPLE * EACH) // EACH % 3, "f", "m")}
    shape = PEOPLE, EACH, DIMENSION
    return named_speakers(*shape, noise=noise, means=0, draws=seed, columns=gender)


def run(folder: Path, *, changes=(), more=""):
    (folder / "study.toml").write_text(CONFIG + more, encoding="utf-8")
    config = load_config(folder / "study.toml", changes=changes)
    with run_on(workers=1):
        return assess(config, folder / "out")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    um.write(voices(1, 0.5), folder / "original.npz")
    um.write(voices(2, 1.2), folder / "mixed.npz")
    return folder, run(folder)


def section(result, key):
    return next(one for one in result.sections if one.key == key)


def test_one_minus_eer_stands_in_tables_and_as_a_row_of_panels_and_on_no_card(study):
    folder, result = study
    config = load_config(folder / "study.toml")
    work = Work(folder / "cache")
    attacks, _ = attacks_of(config, read_inputs(config, work, base=folder))
    data = attacks["mixed"][0].data
    expected = one_minus_eer(data.enrol, data.test, counts=[20, 24], length=2, replicates=30)
    legal = section(result, "legal")
    (shown,) = [
        one.estimate
        for one in find(legal.rows, "one_minus_eer", attacker="original enrolment (cosine)")
        if one.conditions == {
            "safeguard": "mixed", "attacker": "original enrolment (cosine)",
            "utterances": "2", "speakers": "20",
        }
    ]  # fmt: skip
    assert shown.value == expected.value[0]
    assert (shown.interval.low, shown.interval.high) == (expected.low[0], expected.high[0])
    curves = next(b for b in legal.tables if b.title == "Strongest variant of each attacker")
    told = {tuple(e.metric for e in row.estimates) for row in curves.rows}
    assert told == {("linkability", "singling_out", "one_minus_eer")}
    (table,) = [block for block in legal.tables if block.title == "1 − EER"]
    assert table.folded
    assert "1 − EER" not in " ".join(legal.answer)
    assert not [n for card in result.cards for n in card.numbers if "EER" in n.label]
    panels = {figure.name: figure for figure in legal.all_figures}
    for name in ("risk_comparison", "legal_panel_1"):
        assert "1 − EER (%)" in str(panels[name].chart)


def test_deid_and_g_vd_of_each_sex_are_those_of_that_sex_alone(study):
    folder, result = study
    original, protected = (
        um.read_embeddings(folder / f"{name}.npz") for name in ("original", "mixed")
    )
    similarity = section(result, "similarity")
    whole = find(similarity.rows, "deid", safeguard="mixed")[0]
    assert "group" not in whole.conditions
    # Attacks are fitted on everybody, and run and calibrated within each group.
    options = {"by": "gender", "replicates": 30}
    groups = {
        row.dataset: row.result
        for row in um.compare_safeguards(original, {"mixed": protected}, **options)
    }
    for sex in ("f", "m"):
        alone = groups[sex]
        expected = {e.metric: e for e in alone.estimates}
        for metric in ("deid", "g_vd", "deid_strongest"):
            (row,) = find(similarity.rows, metric, safeguard="mixed", group=f"gender {sex}")
            assert row.estimate.value == expected[metric].value
            assert row.estimate.interval == expected[metric].interval
            assert row.attacker == alone.attacker_of(expected[metric])
    grouped = [
        any("group" in row.conditions for row in table.rows) for table in similarity.tables[:2]
    ]
    assert grouped == [False, True]


def test_a_group_of_one_person_costs_its_own_row(tmp_path):
    speakers = voices(1, 0.5).speakers.to_series().to_numpy()
    middle = sorted(set(speakers))[12]
    dialect = np.where(speakers == "s00", "x", np.where(speakers < middle, "y", "z"))
    for name, seed in (("original", 1), ("mixed", 2)):
        some = voices(seed, 0.8)
        um.write(
            um.Embeddings(
                some.vectors, some.speakers, some.utterances, columns={"dialect": dialect}
            ),
            tmp_path / f"{name}.npz",
        )
    quick = ['frameworks=["similarity"]', 'verification.by="dialect"', "intervals.replicates=2"]
    result = run(tmp_path, changes=quick)
    rows = section(result, "similarity").rows
    assert not result.failures, result.failures
    for group in "yz":
        assert find(rows, "deid", safeguard="mixed", group=f"dialect {group}")
    assert not find(rows, "deid", safeguard="mixed", group="dialect x")


def test_the_zoo_of_op_stands_beside_that_of_pp_with_both_matrices(study, sentences):
    figures = {f.name: f for f in section(study[1], "similarity").all_figures}
    drawn = figures["zoo_1"]
    text = str(drawn.chart)
    assert "zoo0_parts" in text
    assert "zoo1_parts" in text
    assert "OP: " in drawn.caption
    sentences.check(drawn.caption)


def within(result, point=RELEASE, metric="linkability"):
    (one,) = find(section(result, "legal").rows, metric, safeguard="mixed", point=point)
    return one


def test_the_release_is_linked_in_rounds(study):
    folder, result = study
    how = {"lengths": [1, 2], "replicates": 30}
    protocol = um.LegalProtocol(draws=2, folds=3)
    release = um.read_embeddings(folder / "mixed.npz")
    backends = {
        f"{RELEASE} ({backend})": um.within_release(release, backend)
        for backend in ("cosine", "wccn", "whitened", "length")
    }
    metrics = ["linkability", "singling_out", "one_minus_eer"]
    sweep = um.assess_attackers(backends, metrics=metrics, protocol=protocol, **how)
    for metric in metrics:
        most, row = sweep.worst(metric), within(result, metric=metric)
        assert row.estimate == most.estimate
        assert row.attacker == most.attacker
    nameless = {
        f"{RELEASE} ({backend})": um.within_release(release, backend, "record to record")
        for backend in ("cosine", "whitened")
    }
    one_each = {**how, "lengths": [1], "protocol": replace(protocol, linkability_enrol=1)}
    records = um.assess_attackers(nameless, metrics=["linkability"], **one_each)
    most, row = records.worst("linkability"), within(result, RECORDS)
    assert row.estimate == most.estimate


def test_people_of_the_release_without_originals_are_among_those_to_be_linked(tmp_path):
    original, protected = voices(1, 0.5), voices(2, 1.2)
    kept = np.asarray(original.speakers.to_series() != "s00")
    um.write(original.select(kept), tmp_path / "original.npz")
    one = protected.utterances.to_series().to_numpy()
    lone = np.asarray([not n.startswith("s01") or n == "s01-3" for n in one])
    um.write(protected.select(lone), tmp_path / "mixed.npz")
    result = run(tmp_path, changes=['frameworks=["legal"]', 'legal.metrics=["linkability"]'])
    row = within(result).estimate
    assert row.n["speakers"] == PEOPLE - 1
    assert row.n["left_out"] == 1


def test_a_list_of_those_that_enrol_splits_the_release_one_way(study, tmp_path):
    folder, _ = study
    for name in ("original", "mixed"):
        (tmp_path / f"{name}.npz").write_bytes((folder / f"{name}.npz").read_bytes())
    protected = um.read_embeddings(folder / "mixed.npz")
    names = protected.utterances.to_series()
    enrols = names.filter(names.str.slice(-1).is_in(["0", "1", "2"]))
    (tmp_path / "enrols.txt").write_text("\n".join(enrols), encoding="utf-8")
    quick = ['frameworks=["legal"]', 'legal.metrics=["linkability"]', "legal.lengths=[1]"]
    result = run(tmp_path, changes=[*quick, 'split.utterances="enrols.txt"'])
    chosen = names.is_in(enrols.implode()).to_numpy()
    sides = protected.select(chosen), protected.select(~chosen)
    sweep = um.assess_attackers(
        {
            f"{RELEASE} ({b})": um.Attacker(*sides, b, train=sides[0], release=True)
            for b in ("cosine", "wccn", "whitened", "length")
        },
        metrics=["linkability"], lengths=[1], replicates=30,
    )  # fmt: skip
    assert within(result).estimate == sweep.worst("linkability").estimate
