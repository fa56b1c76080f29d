"""What the first screen concludes: paired differences, units, levels, and words that follow."""

from __future__ import annotations

import html
import re

import pytest

from unmask.assessment.toml import load_config
from unmask.estimate import Estimate, Interval, Luck, Notice
from unmask.report.assessment import run_assessment as assess
from unmask.report.documents import Row
from unmask.report.headline import (
    Card,
    by_luck,
    conclusion,
    doubts,
    find,
    of_tables,
    verdict,
    weak_control,
)
from unmask.report.html import render_html, together
from unmask.report.words import with_level


def rate(metric: str, value: float, low: float, high: float, **params: str) -> Estimate:
    made = Interval(low, high, 0.95, "speaker,corrected", 100, 0)
    return Estimate(metric, value, "%", made, params=params)


def scored(*margins: Estimate) -> list[Row]:
    rates = {"a": rate("eer", 0.006, 0.002, 0.01), "b": rate("eer", 0.008, 0.004, 0.012)}
    rows = [Row({"table": "t", "system": name}, [one]) for name, one in rates.items()]
    return [*rows, *(Row({"table": "t", "system": "b"}, [one]) for one in margins)]


def test_a_system_errs_least_only_by_a_paired_difference(sentences):
    """The intervals of both rates overlap in either case: they do not tell."""
    better = rate("eer_difference", 0.002, 0.0005, 0.004, of="b − a")
    (card,) = of_tables(scored(better))
    assert re.findall(r"[\d.]+", card.verdict) == ["0.6", "95", "0.2", "1.0"]
    (compared,) = card.sentences
    assert "least" in compared
    sentences.check(card.verdict, compared)
    unclear = rate("eer_difference", 0.002, -0.001, 0.005, of="b − a")
    none = Estimate("eer_difference", 0.002, "%", None, params={"of": "b − a"})
    for margin in (unclear, none):
        (card,) = of_tables(scored(margin))
        assert "a 0.6 [0.2, 1.0], b 0.8 [0.4, 1.2]" in card.sentences[0]
        sentences.check(card.verdict, card.sentences[0])
        assert card.sentences[1].endswith("b − a.")
        assert "least" not in " ".join(card.sentences)
    (card,) = of_tables(scored()[:1])
    sentences.check(card.verdict)
    assert card.sentences == []


def test_a_control_that_succeeds_in_half_of_what_chance_leaves_is_believed():
    where = {"safeguard": "original", "point": "headline", "speakers": "20", "utterances": "1"}
    for value, believed in ((0.75, True), (0.74, False)):
        linked = Estimate("linkability", value, "%", None, 0.5, {"attempts": 100, "speakers": 20})
        assert (weak_control([Row(where, [linked])]) == []) == believed


def test_numbers_keep_their_unit(sentences):
    made = Interval(0.638, 0.7213, 0.9, "speaker", 10, 0)
    shown = with_level(Estimate("d_ece", 0.72, "bit", made))
    assert shown.startswith("0.720 bit (90 % ")
    sentences.check(shown)
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


def test_verdicts_go_by_95_percent_whatever_level_is_shown(levels, sentences):
    usual = {card.safeguard: card for card in levels[0.95].cards}
    for level, words in (
        (0.5, "50 % confidence interval"),
        (0.99999999, "99.999999 % confidence interval"),
    ):
        for card in levels[level].cards:
            same = usual[card.safeguard]
            assert card.extent == same.extent
            start, _, rest = same.verdict.partition(" succeed (")
            assert card.verdict.startswith(start)
            assert words in card.verdict
            ends = rest.partition(")")[0]
            assert f" 95 % one, {ends}) " in card.verdict
            sentences.check(card.verdict)
    assert not any("95 %" in card.verdict for card in usual.values())


def test_the_level_alone_would_turn_the_verdict(sentences):
    """What the verdict would be if it went by the interval that is shown."""
    where = {"safeguard": "x", "speakers": "20", "utterances": "1"}

    def linked(point: str, low: float, level: float) -> Row:
        made = Interval(low, 0.6, level, "speaker,score", 0, 0)
        risk = Estimate("linkability", 0.3, "%", made, 0.05, {"speakers": 60})
        return Row({**where, "point": point}, [risk])

    wide = linked("headline", 0.01, 0.99999999)
    assert verdict([wide], "x", {})[0] == "chance"
    sure = linked("headline, for the verdict", 0.2, 0.95)
    extent, shown, _ = verdict([wide, sure], "x", {})
    assert extent == "some"
    numbers = ["18", "60", "99.999999", "0", "36", "95", "12", "36", "1"]
    assert re.findall(r"[\d.]*\d", shown) == numbers
    sentences.check(shown)


def methods(result) -> list[str]:
    """Sentences on how numbers are made, all of which the page has."""
    parts = [part["text"] for section in result.sections for part in section.words["method"]]
    lines = [line for part in parts for line in re.split(r"(?<=\w\.)\s+(?=[A-Z])", part)]
    page = html.unescape(re.sub("<[^>]*>", "", render_html(result)))
    plain = re.sub(r"[_^\s]", "", page)
    assert all(re.sub(r"[_^\s]", "", line) in plain for line in lines)
    return lines


def test_words_on_the_method_follow_the_options(study, sentences):
    changes = ['frameworks=["legal", "similarity"]', "legal.lengths=[1]", "legal.attributes={}"]
    usual = methods(run(study, *changes))
    options = ["linkability_enrol=1", 'singling_out_enrol="all"', "linkability_draws=40"]
    changes += [f"legal.{one}" for one in options] + ['similarity.mean="arithmetic"']
    other = methods(run(study, *changes))
    before = [line for line in usual if line not in other]
    after = [line for line in other if line not in usual]
    assert before
    assert after
    assert any(" 40 " in line for line in after)
    sentences.check(*before, *after)


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


def test_the_title_claims_no_more_than_the_intervals_show(sentences):
    def card(name: str, extent: str) -> Card:
        return Card(name, "", "", (), extent)

    every = [card("a", "most"), card("b", "most"), card("c", "chance")]
    mixed = [card("a", "some"), *(card(name, "chance") for name in "bcde")]
    for cards, extents in (
        (every, ("two of three", "Against c,")),
        (every[2:], ("against c",)),
        (every[:2], ("all two",)),
        (mixed, ("one of five", "four others")),
        ([card("x", "unknown")], ()),
    ):
        title = conclusion(cards)
        assert all(extent in title for extent in extents)
        sentences.check(title)


def linked_card(name: str, value: float, ends: tuple[float, float], length: int, **more) -> Card:
    made = Interval(*ends, 0.95, "speaker,score", 0, 0)
    luck = more.pop("luck", None)
    risk = Estimate("linkability", value, "%", made, 0.05, {"speakers": 60}, luck=luck)
    where = {"safeguard": name, "point": "headline", "speakers": "20", "utterances": str(length)}
    rows = [Row(where, [risk])]
    extent, said, sentences = verdict(rows, name, {"": "who listens"})
    (worst,) = find(rows, "linkability")
    return Card(name, "", said, sentences, extent, worst=worst, **more)


def test_safeguards_of_which_the_same_is_said_share_a_line(sentences):
    same = [linked_card(name, 1.0, (0.97, 1.0), n) for name, n in (("a", 5), ("b", 1))]
    other = linked_card("c", 0.9973, (0.97, 1.0), 5)
    doubted = linked_card("d", 1.0, (0.97, 1.0), 5, doubts=["But."])
    lines = together([*same, other])
    assert [[card.safeguard for card in some] for some, _ in lines] == [["a", "b"], ["c"]]
    assert " 1 to 5 " in lines[0][1]
    assert "(99.7 %)" in lines[1][1]
    sentences.check(*(line for _, line in lines))
    assert len(together([*same, doubted])) == 2


def test_chance_and_luck_are_told_once_with_their_range(sentences):
    lucks = [Luck(0.081, 0.005, 42, 199, 60), Luck(0.0912, 0.453, 150, 199, 60)]
    told = [linked_card("a", 1.0, (0.97, 1.0), 5, luck=luck) for luck in lucks]
    shown = by_luck(told)
    assert re.findall(r"\d+", shown) == ["5", "42", "150", "8", "9"]
    sentences.check(shown)
    assert by_luck([linked_card("a", 1.0, (0.97, 1.0), 5)]) == ""


@pytest.mark.parametrize(
    ("code", "high", "extent", "is_doubted"),
    [
        ("weak-own-run", 0.14, "chance", True),
        ("weak-own-run", 0.87, "most", True),
        ("learning-rises", 0.87, "some", True),
        ("learning-rises", 0.999, "most", False),
        ("weak-own-run", 0.14, "unknown", False),
    ],
)
def test_a_lower_bound_stands_on_the_card_unless_it_is_nearly_all(
    code, high, extent, is_doubted, sentences, noticed
):
    worst = linked_card("a", 0.1, (0.05, high), 3).worst
    noticed = [Notice(code, "a, informed (plda)", "…"), Notice(code, "b, informed (plda)", "…")]
    found = list(doubts("a", extent, worst, noticed))
    assert len(found) == is_doubted
    sentences.check(*found)


def test_what_rounds_to_nothing_has_no_sign():
    made = Interval(-0.011, 0.011, 0.95, "speaker", 10, 0)
    assert with_level(Estimate("deid", -0.00004, "%", made)) == (
        "0.0 % (95 % confidence interval −1.1 to 1.1)"
    )
