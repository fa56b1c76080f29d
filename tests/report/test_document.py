"""Documents, tables and JSON."""

import csv
import io
import json
import math
from dataclasses import replace

import jsonschema
import pytest
from tests.helpers.latex import compiled, has_tex

import unmask as um
from unmask import Estimate, InputError, Interval, render
from unmask.engine import Battery
from unmask.report import Document, Row, json_schema
from unmask.report.frameworks.verification import _table_blocks
from unmask.report.html import Number, TableView, table_view
from unmask.report.section import TableBlock
from unmask.report.table import WIDTH, cell, label
from unmask.report.words import whole_percent
from unmask.trials import Source


def interval(low, high):
    return Interval(low, high, 0.95, "speaker", 1000, 0)


EER = Estimate(
    "eer", 0.332, "%", interval(0.31, 0.359), 0.5, {"target": 10, "nontarget": 20},
    {"est": "rocch"}, "3f9a12c0", 1.25,
)  # fmt: skip
SOURCE = Source("scores.txt", "0" * 64, "kaldi-scores", 10, 20, 0, 0, None)


def document(*rows, **more):
    return Document(tuple(rows), inputs=(SOURCE,), **more)


def test_a_metric_that_a_battery_adds_is_among_all_metrics_of_a_report(monkeypatch):
    measured = Battery.measured
    new = measured(Battery())["min_dcf@0.01"]._replace(metric="fnmr")
    monkeypatch.setattr(Battery, "measured", lambda self: measured(self) | {"fnmr": new})
    result = um.evaluate([1.0, 2.0, 3.0], [0.0, 1.5, 0.5], replicates=0)
    table = next(t for t in _table_blocks("a", result, {}) if t.title == "a: all metrics")
    assert [e.metric for e in table.rows[0].estimates].count("fnmr") == 1


@pytest.mark.parametrize(("count", "turned"), [(5, True), (6, False), (7, False), (9, False)])
def test_a_page_turns_tables_of_few_rows_and_many_metrics(count, turned):
    metrics = [
        Estimate(name, 0.1, "") for name in ("eer", "cllr", "cllr_min", "d_ece", "d_sys", "l_w")
    ]
    rows = [Row({"system": f"s{n}", "threshold": f"t{n}"}, metrics) for n in range(count)]
    view = table_view(TableBlock("T", rows), lambda estimate: "0.1")
    assert (view.header[0][0] == "Metric") == turned
    assert len(view.rows) == (len(metrics) if turned else count)


def test_cells_show_value_and_interval_in_one_precision():
    assert cell(EER) == "33.20 [31.00, 35.90]"
    assert cell(Estimate("cllr", math.inf, "bit")) == "∞"
    assert cell(Estimate("g_vd", -7.354, "dB")) == "−7.35"
    assert cell(Estimate("d_ece", -1e-9, "bit")) == "0.000"
    assert cell(Estimate("eer", math.nan, "%")) == "undefined"
    assert cell(Estimate("tag", "C")) == "C"


def test_headings_name_metric_parameter_and_unit():
    assert label(EER) == "EER [%]"
    for metric, name in (("deid_strongest", "DeID"), ("d_ece_strongest", "D_ECE")):
        assert label(Estimate(metric, 0.1, params={"attacker": "centred"})) == name
    assert label(Estimate("min_dcf", 0.1, params={"p_target": 0.05})) == "minDCF (0.05)"
    assert label(Estimate("tpr_at_fpr", 0.1, "%", params={"fpr": 1e-3})) == "TPR (FPR 0.1 %) [%]"


def test_signature():
    assert EER.signature.startswith("EER|est:rocch|ci:speaker,1000,95%|seed:0|trials:3f9a12c0|v:")


def test_json_follows_the_published_schema(sentences):
    odd = Estimate("cllr", math.inf, "bit", interval(math.nan, math.inf), 1.0)
    undefined = Estimate("eer", math.nan, "%")
    made = document(
        Row({"system": "a"}, (EER, odd, undefined, Estimate("tag", "C"))), warnings=("careful",)
    )
    outcome = json.loads(render(made, "json"))
    jsonschema.validate(outcome, json_schema())
    values = [result["value"] for result in outcome["results"]]
    assert values == [0.332, "inf", None, "C"]
    assert outcome["results"][1]["interval"] == [None, "inf"]
    assert outcome["warnings"][0] == "careful"
    assert len(outcome["warnings"]) == 2
    sentences.check(outcome["warnings"][1])
    assert outcome["results"][0]["threshold"] == 1.25


def test_wide_tables_are_split_and_repeat_their_keys():
    many = tuple(Estimate(f"metric_{i}", 0.5, "%", interval(0.4, 0.6)) for i in range(6))
    text = render(document(Row({"system": "one"}, many), Row({"system": "two"}, many)))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("system") > 1
    assert text.count("50.00 [40.00, 60.00]") == 12


def test_few_rows_of_many_metrics_are_turned():
    many = tuple(Estimate(f"metric_{i}", 0.5, "%") for i in range(9))
    lines = render(document(Row({"system": "one"}, many))).splitlines()
    assert lines[0].split() == ["metric", "one"]
    assert len([line for line in lines if "50.00" in line]) == 9


def test_markdown_and_latex_escape_names():
    made = document(Row({"system": "a|b_c&d"}, (EER,)))
    assert "| a\\|b_c&d | 33.20 [31.00, 35.90] |" in render(made, "md")
    assert r"a\textbar{}b\_c\&d & 33.20 [31.00, 35.90] \\" in render(made, "latex")


@pytest.mark.skipif(not has_tex(), reason="pdflatex with booktabs is not installed")
def test_latex_compiles_and_fits_a_page_of_two_columns(tmp_path):
    metrics = ("eer", "d_ece", "deid", "g_vd", "linkability", "singling_out")
    row = [Estimate(name, 0.5, "%", interval(-0.4, 0.6)) for name in metrics]
    row += [Estimate("l_w", 3.2), Estimate("tag", "C"), Estimate("min_cllr", math.inf, "bit")]
    names = ["libri_dev_f", "[odd] *", r"a\b{c}$d#e~f^g%h", "τ₂ ≤ 10⁵ …"]
    rows = [Row({"system": name, "trials": "OP"}, tuple(row)) for name in names]
    made = document(*rows, title="All_of it & more", notes=("D_ECE and C_llr^min of 10 % <x>",))
    made = replace(made, tables=(tuple(rows), tuple(rows[:2])))
    compiled(made, tmp_path)


@pytest.mark.skipif(not has_tex(), reason="pdflatex with booktabs is not installed")
def test_ten_columns_of_a_challenge_fit_a_page_of_two_columns(tmp_path):
    heads = [f"EER {name} [%]" for name in ("en", "de", "es", "fr", "mean")]
    heads += ["DeID [%]", "G_VD [dB]", "Linkability [%]", "WER [%]", "UAR [%]"]
    ten = [Estimate("eer", 0.1234, "%", interval(0.1034, 0.2345))] * 8
    ten[6] = Estimate("g_vd", -12.34, "dB", interval(-17.57, -10.43))
    ten += [Estimate("wer", 0.0712, "%"), Estimate("uar", 0.5345, "%")]
    rows = [Row({"system": name}, ten, heads) for name in ("original", "mcadams", "B5", "ours")]
    notes = ("Attacker: informed (semi-informed)",)
    made = replace(document(*rows, title="Four", notes=notes), tables=(rows,), stacked=True)
    compiled(made, tmp_path)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.skipif(not has_tex(), reason="pdflatex with booktabs is not installed")
def test_few_columns_fit_one_column_of_a_page(tmp_path, columns):
    heads = ["EER mean [%]", "Linkability [%]", "WER [%]"][:columns]
    numbers = [Estimate("eer", 0.1234, "%", interval(0.1034, 0.2345))] * columns
    rows = [Row({"system": name}, numbers, heads) for name in ("original", "ours, 0.8")]
    made = replace(document(*rows, title="Few"), tables=(rows,), stacked=True)
    assert r"\begin{table}" in render(made, "latex")
    compiled(made, tmp_path)


def test_csv_holds_everything_in_full_precision():
    made = document(Row({"system": "a, b"}, (EER,)))
    (row,) = csv.DictReader(io.StringIO(render(made, "csv")))
    assert row["system"] == "a, b"
    assert float(row["value"]) == 0.332
    assert row["n_nontarget"] == "20"
    assert row["signature"] == EER.signature


def test_unknown_format(sentences):
    with pytest.raises(InputError, match=r"latex.* xlsx") as error:
        render(document(Row({}, (EER,))), "xlsx")
    sentences.check(str(error.value))


def test_a_table_wider_than_paper_comes_in_parts_that_hold_all_columns():
    def number(text):
        return Number(text, "0", "9", "%", 1.0, None, "")

    heads = (("System", "", False), *((f"m{i}", "", True) for i in range(5)))
    lines = tuple((name, *(number(f"{name}{i}") for i in range(5))) for name in ("a", "b"))
    table = TableView(heads, lines, 1, "t", False, "note")
    (whole,) = table.sheets(1000)
    assert [tuple(line) for line in whole.rows] == list(lines)
    parts = table.sheets(20)
    assert [[text for text, _, _ in part.header] for part in parts] == [
        ["System", "m0", "m1"],
        ["System", "m2", "m3"],
        ["System", "m4"],
    ]
    assert [part.rows[1][-1].value for part in parts] == ["b1", "b3", "b4"]
    assert [part.note for part in parts] == ["", "", "note"]
    assert replace(table, rows=()).sheets(1) == [replace(table, rows=())]


def test_a_little_risk_is_never_said_to_be_none():
    assert [whole_percent(risk) for risk in (0.994, 0.996, 1 - 1e-9)] == [
        "99 %",
        "more than 99 %",
        "more than 99 %",
    ]
    said = [whole_percent(risk) for risk in (0.0, 1e-6, 0.004, 0.0099, 0.01, 0.126, 1.0)]
    assert said == ["0 %", *["less than 1 %"] * 3, "1 %", "13 %", "100 %"]


def test_a_number_without_an_interval_says_so():
    made = Interval(0.1, 0.3, 0.95, "speaker", 10, 0)
    rows = [Row({}, [Estimate("a", 0.2), Estimate("b", 0.2, interval=made)])]
    said = [one["no_interval"] for one in Document(rows).to_dict()["results"]]
    assert said == ["none was made", None]
