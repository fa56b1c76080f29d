"""What the first screen concludes: paired differences, units, levels, and words that follow."""

from __future__ import annotations

import pytest

from unmask.assessment.toml import load_config
from unmask.estimate import Estimate, Interval
from unmask.report.assessment import run_assessment as assess
from unmask.report.documents import Row
from unmask.report.headline import Card, conclusion, find, of_tables, verdict, weak_control
from unmask.report.html import render_html
from unmask.report.words import with_level


def rate(metric: str, value: float, low: float, high: float, **params: str) -> Estimate:
    made = Interval(low, high, 0.95, "speaker,corrected", 100, 0)
    return Estimate(metric, value, "%", made, params=params)


def scored(*margins: Estimate) -> list[Row]:
    rates = {"a": rate("eer", 0.006, 0.002, 0.01), "b": rate("eer", 0.008, 0.004, 0.012)}
    rows = [Row({"table": "t", "system": name}, [one]) for name, one in rates.items()]
    return [*rows, *(Row({"table": "t", "system": "b"}, [one]) for one in margins)]


def test_a_system_errs_least_only_by_a_paired_difference():
    """The intervals of both rates overlap in either case: they do not tell."""
    better = rate("eer_difference", 0.002, 0.0005, 0.004, of="b − a")
    (card,) = of_tables(scored(better))
    assert card.verdict == "Equal error rate of a: 0.6 % (95 % confidence interval 0.2 to 1.0)"
    assert card.sentences == [
        "It errs least of 2 systems; b 0.8 % (95 % confidence interval 0.4 to 1.2)."
    ]
    unclear = rate("eer_difference", 0.002, -0.001, 0.005, of="b − a")
    none = Estimate("eer_difference", 0.002, "%", None, params={"of": "b − a"})
    for margin in (unclear, none):
        (card,) = of_tables(scored(margin))
        assert card.verdict == "No clear winner among 2 systems"
        assert "a 0.6 % (95 % confidence interval 0.2 to 1.0), b 0.8 %" in card.sentences[0]
        assert card.sentences[1].endswith("b − a.")
        assert "least" not in " ".join(card.sentences)
    (card,) = of_tables(scored()[:1])
    assert card.verdict.startswith("Equal error rate of a")
    assert card.sentences == []


def test_a_control_that_succeeds_in_half_of_what_chance_leaves_is_believed():
    where = {"safeguard": "original", "point": "headline", "speakers": "20", "utterances": "1"}
    for value, believed in ((0.75, True), (0.74, False)):
        linked = Estimate("linkability", value, "%", None, 0.5, {"attempts": 100, "speakers": 20})
        assert (weak_control([Row(where, [linked])]) == []) == believed


def test_numbers_keep_their_unit():
    made = Interval(0.638, 0.7213, 0.9, "speaker", 10, 0)
    assert with_level(Estimate("d_ece", 0.72, "bit", made)) == (
        "0.720 bit (90 % confidence interval 0.638 to 0.721)"
    )
    assert with_level(Estimate("eer", 0.25, "%")) == "25.0 %"


def run(study, *changes: str):
    config = load_config(study / "study.toml", changes=["figures=[]", "scores=[]", *changes])
    return assess(config, study / "out")


def test_without_linkability_bits_stay_bits(study):
    result = run(study, 'frameworks=["zebra"]')
    for card in result.cards:
        assert card.verdict.startswith("Evidence: 0.")
        assert " bit (95 % confidence interval " in card.verdict
        assert "%" not in card.verdict.partition("(")[0]


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    from report_study import make

    folder = make(tmp_path_factory.mktemp("levels"))
    changes = ['frameworks=["legal"]', "legal.lengths=[1]", "legal.attributes={}"]
    given = [0.95, 0.5, 0.99999999]
    return {one: run(folder, *changes, f"intervals.level={one}") for one in given}


def test_verdicts_go_by_95_percent_whatever_level_is_shown(levels):
    usual = {card.safeguard: card for card in levels[0.95].cards}
    for level, words in (
        (0.5, "50 % confidence interval"),
        (0.99999999, "99.999999 % confidence interval"),
    ):
        for card in levels[level].cards:
            same = usual[card.safeguard]
            assert card.extent == same.extent
            assert card.verdict.partition(":")[0] == same.verdict.partition(":")[0]
            assert words in card.verdict
            ends = same.verdict.partition(" (")[2].rstrip(")")
            assert card.verdict.endswith(f"; this goes by the {ends}")
    assert not any("this goes by" in card.verdict for card in usual.values())


def test_the_level_alone_would_turn_the_verdict():
    """What the verdict would be if it went by the interval that is shown."""
    where = {"safeguard": "x", "speakers": "20", "utterances": "1"}

    def linked(point: str, low: float, level: float) -> Row:
        made = Interval(low, 0.6, level, "speaker,score", 0, 0)
        risk = Estimate("linkability", 0.3, "%", made, 0.05, {"speakers": 60})
        return Row({**where, "point": point}, [risk])

    wide = linked("headline", 0.01, 0.99999999)
    assert verdict([wide], "x", {})[0] == "chance"
    sure = linked("headline, for the verdict", 0.2, 0.95)
    assert verdict([wide, sure], "x", {})[:2] == (
        "some",
        "At least some attempts succeed: 30 % of attempts, 18 of 60"
        " (99.999999 % confidence interval 0 to 36);"
        " this goes by the 95 % confidence interval 12 to 36",
    )


def test_words_on_the_method_follow_the_options(study):
    changes = ['frameworks=["legal", "similarity"]', "legal.lengths=[1]", "legal.attributes={}"]
    usual = render_html(run(study, *changes))
    assert "the average of all enrolment utterances" in usual
    assert "made from up to 30 enrolment utterances" in usual
    assert "The expectation over all subsets of N′ speakers is exact" in usual
    assert "geometric mean of σ(llr) over all pairs of segments" in usual
    options = ["linkability_enrol=1", 'singling_out_enrol="all"', "linkability_draws=40"]
    changes += [f"legal.{one}" for one in options] + ['similarity.mean="arithmetic"']
    other = render_html(run(study, *changes))
    assert "the average of one enrolment utterance," in other
    assert "made from all enrolment utterances isolates" in other
    assert "averaged over 40 lists of N′ speakers" in other
    assert "arithmetic mean of σ(llr)" in other
    assert "is exact" not in other


def test_the_raw_equal_error_rate_has_one_interval(study):
    config = load_config(
        study / "study.toml", changes=["figures=[]", 'frameworks=["verification", "cpmap"]']
    )
    result = assess(config, study / "out")
    assert result.reused == 0
    rows = {section.key: section.rows for section in result.sections}
    maps = find(rows["cpmap"], "eer_raw")
    assert {one.conditions["system"] for one in maps} == {"a", "b", "original", "weak", "strong"}
    assert not find(rows["cpmap"], "eer")
    every = [match.estimate for match in find(rows["verification"], "eer_raw")]
    for one in maps:
        assert one.estimate in every
        assert one.estimate.interval is not None
    page = render_html(result)
    assert "EER, raw" in page
    assert "raw EER" in page


def test_the_title_claims_no_more_than_the_intervals_show():
    def card(extent: str) -> Card:
        return Card("x", "", "", (), extent)

    every = [card("most"), card("most"), card("chance")]
    assert conclusion(every) == (
        "Most attempts succeed against 2 of 3 safeguards; success beyond chance is not shown"
        " against 1."
    )
    assert conclusion(every[2:]) == "Success beyond chance is not shown against x."
    assert conclusion(every[:2]) == "Most attempts succeed against all 2 safeguards."
    assert conclusion([card("unknown")]).startswith("Nothing can be concluded")
