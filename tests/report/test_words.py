"""One label, one value: a word that two parts show has the same number in both, or another word."""

from __future__ import annotations

import html
import json
import re

import pytest
from tests.report import report_study

from unmask.assessment.toml import load_config
from unmask.privacy.similarity import compare_safeguards
from unmask.report import document
from unmask.report.assessment import run_assessment as assess
from unmask.report.html import filing_html, render_html
from unmask.report.table import COMPARED, OF_TRIALS, render
from unmask.trials import read_embeddings

NAMED = {*OF_TRIALS, "deid", "deid_strongest"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The assessment of a small study, and what ``unmask privacy`` says of the same files."""
    folder = report_study.make(tmp_path_factory.mktemp("words"))
    kept = ["legal", "similarity", "zebra", "verification", "cpmap"]
    config = load_config(folder / "study.toml", changes=[f"frameworks={json.dumps(kept)}"])
    original, *others = (
        read_embeddings(folder / f"{name}.npz") for name in ("original", "weak", "strong")
    )
    protected = dict(zip(("weak", "strong"), others, strict=True))
    again = {"weak": read_embeddings(folder / "weak-again.npz")}
    privacy = compare_safeguards(original, protected, again=again, replicates=20, seed=3)
    return assess(config, folder / "out"), document(privacy, details=True)


def told(document):
    """Rows of metrics that several parts show, as JSON has them, with whose they are."""
    for row in document.to_dict()["results"]:
        where = row["conditions"]
        if row["metric"] in NAMED:
            yield row, where.get("safeguard") or where["system"], where


def test_every_number_names_its_attacker_and_what_is_compared(made):
    for one in (made[0].document, made[0].overview, made[1]):
        rows = [(row, where) for row, _, where in told(one)]
        assert len(rows) > 5
        for row, where in rows:
            given = where.get("attacker") == "given scores" or {"table", "system"} <= where.keys()
            assert given or (where["attacker"] and where["trials"] in COMPARED), row


def test_one_name_has_one_value(made):
    values = {}
    for one in (made[0].document, made[1], made[0].overview):
        for row, who, where in told(one):
            attacker = where.get("attacker", "")
            # The strongest of several is another attack in every number.
            if attacker == "given scores" or re.fullmatch(r"strongest of \d+", attacker):
                continue
            table = "" if attacker else where["table"]
            shown = [row["params"].get(name) for name in ("fpr", "p_target")]
            group = where.get("group")
            key = who, row["metric"], where.get("trials"), attacker, group, table, *shown
            same = values.setdefault(key, row["value"])
            assert row["value"] == (pytest.approx(same) if same != str(same) else same), key
    disclosed = {(who, of) for who, metric, of, *_ in values if metric == "d_ece"}
    for of in ("utterance pairs", "enrolled models"):
        assert {(who, of) for who in ("original", "weak", "strong")} <= disclosed


def test_the_strongest_of_the_same_attacks_has_the_same_name(made):
    names = {
        part: {
            (who, where["attacker"])
            for row, who, where in told(one)
            if row["metric"] == "deid_strongest" and "group" not in where
        }
        for part, one in (("assess", made[0].document), ("privacy", made[1]))
    }
    assert names["assess"] == names["privacy"]
    assert {who for who, _ in names["assess"]} == {"weak", "strong"}
    assert all(name.startswith("strongest of 10: ") for _, name in names["assess"])


def test_headings_tell_pairs_from_models(made):
    text = render(made[1])
    assert "D_ECE, pairs [bit]" in text
    assert "models" not in text
    assert "DeID, pairs" not in text
    assert "EER, models [%]" in (whole := render(made[0].overview))
    assert "D_ECE, models [bit]" in whole
    page = re.sub(r"<(script|style).*?</\1>", "", render_html(made[0]), flags=re.DOTALL)
    bare = re.sub(r"</?(sub|sup)>", "", page)
    heads = {
        re.sub(r"<.*?>|_", "", head)
        for head in re.findall(r"<t[hd]\b.*?</t[hd]>", bare, flags=re.DOTALL)
    }
    assert {"DECE, pairs [bit]", "DECE, models [bit]", "EER, models [%]"} <= heads
    assert {"Tag, pairs", "Tag, models", "EER, raw, models [%]"} <= heads
    # Only tables that were given have the bare words, above columns or before rows.
    for block in re.findall(r"<caption>(.*?)</caption>(.*?)</table>", bare, re.DOTALL):
        if re.search(r">(EER \[%\]|D_?ECE \[bit\]|Tag)<", block[1]):
            assert block[0].startswith("two systems")


def test_sentences_say_of_what_a_number_is(made, sentences):
    result = made[0]
    for page in (render_html(result), filing_html(result)):
        plain = re.sub(r"</?(sub|sup)>", "", page)
        assert "DECE of enrolled models: " in plain
        assert "1 − DeID of utterance pairs: " in plain
        assert re.search(r"strongest of 10: [a-z]", plain)
    answers = {section.key: section.answer for section in result.sections}
    assert all("D_ECE of enrolled models" in line for line in answers["zebra"])
    assert all(
        "(DeID of utterance pairs, " in line and " strongest of 10: " in line
        for line in answers["similarity"]
        if "retrained" not in line
    )
    rates = [line for line in answers["verification"] if not line.startswith("two systems")]
    assert all(" of enrolled models" in line for line in rates)
    captions = {figure.name: figure.caption for figure in result.all_figures}
    sentences.check(captions["zebra_profiles"], *rates)


def test_the_filing_copy_tells_what_each_attacker_needs_and_links(made, sentences):
    result = made[0]
    page = filing_html(result).partition('<section class="annex">')[0]
    needs = [need for _, need, _ in result.tried]
    assert len(set(needs)) > 1
    text = html.unescape(re.sub("<[^>]*>", "", page)).replace("\u00a0", " ")
    assert all(need in text for need in needs)
    sentences.check(*needs)
    every = [row for row in result.document.rows if row.conditions.get("point") == "each attacker"]
    for name in result.parts.keys() - {"original"}:
        here = [row for row in result.document.rows if row.conditions.get("safeguard") == name]
        (most,) = (
            row.estimates[0].value
            for row in here
            if row.conditions.get("point") == "headline"
            and row.conditions.get("setting") == "known person"
            and row.estimates[0].metric == "linkability"
        )
        risks = [r.estimates[0].value for r in every if r.conditions["safeguard"] == name]
        assert max(risks) == most
        tried = {attacker: {s: e for s, e, _ in told} for attacker, _, told in result.tried}
        assert sum(one[name] is not None for one in tried.values()) == len(risks) >= 1
