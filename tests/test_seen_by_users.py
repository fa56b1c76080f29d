"""What a user reads and decides by, held where a small change of the code would go unnoticed."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.helpers.populations import population

import unmask as um
from unmask.assessment.splits import only
from unmask.base import logit_interval
from unmask.report.assessment import _line
from unmask.stress.impostors.uncertainty import FOLDS, fold_weight
from unmask.utility.result import Utility


def test_people_who_train_are_not_those_attacked():
    """``only`` keeps the named utterances, or all others: never the other way round."""
    speech = population(4, 3, noise=1.0, tag="u")
    names = speech.utterances.to_series().to_list()
    chosen = names[:5]
    inside = only(speech, chosen, what="train")
    outside = only(speech, chosen, what="test", inside=False)
    assert inside.utterances.to_series().to_list() == chosen
    assert outside.utterances.to_series().to_list() == names[5:]
    with pytest.raises(um.InputError, match="see split"):
        only(speech, names, what="test", inside=False)


def test_the_weight_of_the_rate_that_all_scores_chose():
    """w = f/(2f − 1) with f the mean number of folds, at most four."""
    assert FOLDS == 4
    assert fold_weight(np.array([4, 9, 100])) == pytest.approx(4 / 7)
    assert fold_weight(np.array([1, 1])) == pytest.approx(1.0)
    assert fold_weight(np.array([2, 4])) == pytest.approx(3 / 5)


def test_the_document_of_utility_names_the_recogniser():
    wer = um.Estimate("wer", 0.1, "%")
    result = Utility({"b2": (wer,)}, "pocketsphinx 5", 12, 96, (), 0)
    written = json.loads(um.render(um.document(result), "json"))
    assert written["conditions"] == {"recogniser": "pocketsphinx 5"}


def test_the_first_line_of_a_report_counts_lists_of_scores():
    study = SimpleNamespace(
        inputs=SimpleNamespace(original=None, safeguards=(), tables={}),
        lists={("b2", "oo"): None, ("b2", "pp"): None},
        attacks={},
        attackers=(),
    )
    assert re.search(r"\b2 lists of scores", _line(study))


def test_a_config_without_errors_has_the_interval_of_half_an_error():
    """The metric of a config is kept half a trial of its smaller class away from 0."""
    rng = np.random.default_rng(0)
    people = [f"s{n:02}" for n in range(24)]
    rows = []
    for i, person in enumerate(people):
        rows += [(person, person, 1, 6 + rng.normal()) for _ in range(4)]
        rows += [(person, other, 0, rng.normal()) for other in people[:i]]
    names = ["enrol_spk", "test_spk", "label", "score"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_row_index("n")
    table = table.with_columns(enrol=pl.format("e{}", "n"), test=pl.format("t{}", "n")).drop("n")
    maps = um.cp_maps(um.read_scores(table), grid=4, replicates=20)
    ((position,),) = maps.positions.values()
    assert position.value == 0.0
    half_a_trial = 0.5 / min(position.targets, position.nontargets)
    ends = logit_interval(0.0, np.zeros(20), len(people), level=0.95, least=half_a_trial)
    interval = position.intervals.value
    assert (interval.low, interval.high) == pytest.approx(ends)


def test_answers_of_a_report_name_the_chance_of_their_number():
    """A sentence "…; chance 5.0 %." has the chance of the estimate that it tells."""
    sets = {name: population(12, 4, noise=1.0, tag="u", seed=n) for n, name in enumerate("op")}
    done = um.assess(sets["o"], {"ours": sets["p"]}, quick=True, keyless=True)
    (section,) = [one for one in done.sections if one.key == "legal"]
    told = [re.search(r"among (\d+) speakers.*chance ([\d.]+) %", line) for line in section.answer]
    linked = [found for found, line in zip(told, section.answer, strict=True) if "Linkab" in line]
    assert linked
    for found in linked:
        assert float(found[2]) == pytest.approx(100 / int(found[1]), abs=0.051)
