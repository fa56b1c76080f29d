"""Results show themselves: readable, as a table in a notebook, as a frame, item by item."""

import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.engine import evaluate
from unmask.notices import Notice, told


def voices(seed, *, tag="", noise=1.0):
    names = f"{tag}{{row:02}}"
    return named_speakers(12, 4, 16, noise=noise, means=0, draws=seed, utterance=names)


ORIGINAL, PROTECTED, OTHER = voices(1), voices(2, noise=2.0), voices(2, tag="x", noise=2.0)


def results():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, 50), rng.normal(0, 1, 80)
    yield um.evaluate(um.Scores.from_arrays(target, nontarget), replicates=20)
    yield um.pseudonymisation(ORIGINAL, PROTECTED, replicates=20)
    yield um.compare_safeguards(ORIGINAL, {"x": PROTECTED}, replicates=20)
    yield um.linkability(ORIGINAL, OTHER, counts=[5])
    yield um.singling_out(ORIGINAL, OTHER, counts=[5])
    yield um.assess_attackers({"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[5], lengths=[1])
    yield um.worst_case(ORIGINAL, [0.1, 0.5], counts=[1, 5])
    yield um.cp_map(target, nontarget)
    yield um.detection(target, nontarget)
    yield um.zebra(target, nontarget)
    pair = {"a": (target, nontarget), "b": (target + 0.5, nontarget)}
    yield um.compare(pair, replicates=20)["a"]
    yield um.evaluate(pair, replicates=0)["b"]["eer"]
    yield um.delta_cp_map(um.cp_map(target, nontarget), um.cp_map(target, nontarget))
    yield um.worst_case_study(ORIGINAL, groups=0)
    yield um.worst_case_study(ORIGINAL, groups=0)["τ₁"]


def test_a_result_is_a_table():
    for result in results():
        rows = result.rows()
        assert rows
        frame = result.to_polars()
        assert frame.height == len(rows)
        assert {"metric", "value", "low", "high"} <= set(frame.columns)
        shown = repr(result)
        assert shown == str(result)
        assert shown.splitlines()[0] == type(result).__name__ or isinstance(result, um.Estimate)
        assert "array(" not in shown
        assert result._repr_html_().count("<tr>") == 1 + len(rows)
        written = result.to_dict()
        Draft202012Validator(um.report.json_schema()).validate(written)
        assert written == um.document(result).to_dict()
        names = {number["metric"] for number in written["results"]}
        several = sum(isinstance(name, str) for name in result.parts) > 1
        for estimate in () if several else result.estimates[:3]:
            assert isinstance(result[estimate.metric], um.Estimate)
            assert estimate.metric in names
        with pytest.raises(KeyError, match="found nothing"):
            result["nothing"]


def test_numbers_by_name(sentences):
    result = um.pseudonymisation(ORIGINAL, PROTECTED, replicates=20)
    assert result["deid"] == result.estimates[0]
    with pytest.raises(KeyError, match=r"deid, .* eer") as error:
        result["eer"]
    sentences.check(str(error.value))
    table = um.compare_safeguards(ORIGINAL, {"x": PROTECTED}, replicates=20)
    assert table["x"]["deid"].value == result["deid"].value
    with pytest.raises(KeyError, match=r"x, deid, .* y") as error:
        table["y"]
    sentences.check(str(error.value))
    both = um.compare_safeguards(ORIGINAL, {"y": voices(3), "x": PROTECTED}, replicates=20)
    assert [both[name].system for name in "xy"] == ["x", "y"]
    assert both["x"]["deid"].value == result["deid"].value
    sweep = um.assess_attackers({"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[5], lengths=[1])
    assert sweep["ignorant", "linkability", 1]["linkability"].value == pytest.approx(
        um.linkability(ORIGINAL, OTHER, counts=[5])["linkability"].value
    )


def test_parts_by_name(sentences):
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, 50), rng.normal(0, 1, 80)
    pair = {"a": (target, nontarget), "b": (target + 0.5, nontarget)}
    table = um.evaluate(pair, replicates=20)
    assert table["b"]["eer"].value == um.eer(*pair["b"])
    with pytest.raises(KeyError, match=r"a, b, .* eer") as error:
        table["eer"]
    sentences.check(str(error.value))
    both = um.compare(pair, replicates=20)
    assert both["eer"].value == both["b"]["eer"].value - both["a"]["eer"].value
    assert both["eer"].first == both["a"]["eer"]
    with pytest.raises(um.InputError, match=r"b: .* 50 .* 80 .* 79") as error:
        um.compare({"a": pair["a"], "b": (target, nontarget[1:])})
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="a: ") as error:
        um.compare({"a": target, "b": nontarget})
    sentences.check(str(error.value))
    held = {"original": um.Attacker(ORIGINAL, OTHER), "one": um.Attacker(ORIGINAL, OTHER)}
    sweep = um.assess_attackers(held, original="original", counts=[2, 5], lengths=[1])
    assert sweep["linkability"] == sweep.worst("linkability").estimate
    assert sweep["one"].attackers == ("original", "one")
    assert sweep["one"]["linkability"] == sweep["linkability"]
    study = um.worst_case_study(ORIGINAL, groups=0)
    assert study["τ₂"]["p_miss"] == study.estimates_of(1)[-1]


def test_a_metric_of_ones_own_reaches_detection(monkeypatch):
    own = um.Battery.measured

    def measured(self):
        table = own(self)
        return table | {"fnmr": table["tpr@0.01"]._replace(metric="fnmr")}

    monkeypatch.setattr(um.Battery, "measured", measured)
    result = um.detection([1.0, 2.0, 3.0], [0.0, 1.0, 2.5])
    assert result.fnmr == result["fnmr"].value == result.tpr_at_fpr[0.01]
    assert pickle.loads(pickle.dumps(result)).fnmr == result.fnmr


def test_a_number_and_its_interval_in_one_line():
    interval = um.Interval(0.1, 0.2, 0.95, "speaker,corrected", 1000, 0)
    assert str(interval) == "[0.1, 0.2] (95 %)"
    estimate = um.Estimate("eer", 0.15, "%", interval, 0.5)
    assert str(estimate) == "eer 15 % [10, 20] (95 %), chance 50 %"
    assert "|ci:speaker,corrected,1000,95%|seed:0|" in estimate.signature


def test_identifiers_can_be_gone_through():
    assert list(ORIGINAL.speakers)[3:5] == ["s00", "s01"]


def test_a_figure_draws_itself_with_title_and_caption():
    sweep = um.assess_attackers(
        {"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[2, 5], lengths=[1]
    )
    figure = um.report.figures_of(sweep)[0]
    drawn = figure._repr_svg_()
    assert drawn.startswith("<svg")
    assert figure.title.split()[0] in drawn


def test_figures_are_laid_out_and_saved(tmp_path):
    with pytest.warns(um.UnmaskWarning):
        result = um.evaluate(trials(), replicates=20)
    drawn = result.figures(width="column", bare=True)
    paths = drawn.save(tmp_path / "drawn", formats=("svg",))
    assert [path.name for path in paths] == [f"{name}.svg" for name in drawn]
    assert 'width="336"' in paths[0].read_text(encoding="utf-8")


def trials(*, names=False, turned=False):
    rng = np.random.default_rng(1)
    label = np.arange(200) % 2
    columns = {
        "enrol": [f"e{i}" for i in range(200)],
        "test": [f"t{i}" for i in range(200)],
        "label": label,
        "score": rng.normal(2 * (label - 1 if turned else label)) * (-1 if turned else 1),
    }
    if names:
        own = np.arange(200) // 5
        columns |= {"enrol_speaker": own, "test_speaker": np.where(label, own, (own + 1) % 40)}
    return pl.DataFrame(columns)


def test_warnings_are_told_where_a_result_is_made_printed_and_shown(sentences):
    with pytest.warns(um.UnmaskWarning) as caught:
        result = um.evaluate(trials(), replicates=20)
    (notice,) = result.notices
    assert notice.code == "no-speakers"
    sentences.check(notice.line)
    assert [str(one.message) for one in caught] == [notice.line] == list(result.warnings)
    assert {one.filename for one in caught} == {__file__}
    assert repr(result).splitlines()[-1] == f"warning: {notice.line}"
    assert f"</table><p>warning: {notice.line}" in result._repr_html_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = um.evaluate(trials(names=True), replicates=20)
        again = evaluate(trials(), replicates=20)
    assert not known.warnings
    assert "warning" not in repr(known)
    assert "<p>" not in known._repr_html_()
    assert again.warnings == result.warnings


def test_many_notices_are_told_in_a_few_lines(sentences):
    alike = [Notice("chance", f"attacker {n}", "at chance") for n in range(9)]
    more = [
        Notice("chance", "x", "at chance with 5"),
        *(Notice(f"c{n}", "", "?") for n in range(9)),
    ]
    first, *rest = told([*alike, *more])
    assert re.findall(r"\d+", first) == ["0", "1", "2", "6", "1"]
    *kinds, last = rest
    assert kinds == ["?"] * 3
    assert last.startswith("6 more ")
    sentences.check(first, last)
    held = {name: um.Attacker(voices(ord(name), noise=9), OTHER) for name in "abcd"}
    with pytest.warns(um.UnmaskWarning) as caught:
        sweep = um.assess_attackers(held, counts=[2, 5], lengths=[1, 2])
    assert len(caught) <= 5 < len(sweep.warnings)


def test_python_tells_a_warning_once_and_the_command_line_never_twice(tmp_path, sentences):
    loop = "for _ in range(3): um.zebra([0.0, 1.0, 2.0] * 5, [3.0, 4.0, 5.0] * 5)"
    told = subprocess.run(
        [sys.executable, "-c", f"import unmask as um\n{loop}"], capture_output=True, text=True
    )
    (line,) = [line for line in told.stderr.splitlines() if "UnmaskWarning: " in line]
    sentences.check(line.partition("UnmaskWarning: ")[2])
    trials(turned=True).write_csv(tmp_path / "x.csv")
    command = [sys.executable, "-m", "unmask", "eval", str(tmp_path / "x.csv"), "--ci", "20"]
    wide = {**os.environ, "COLUMNS": "300"}
    told = subprocess.run(command, capture_output=True, text=True, env=wide)
    assert "UnmaskWarning" not in told.stderr + told.stdout
    lines = [line for line in told.stdout.splitlines() if line.startswith("warning: ")]
    assert "warning: " not in told.stderr
    assert len(lines) == len(set(lines)) == 2
    assert lines[0].startswith("warning: x: ")
    assert " 13.67 % " in lines[0]
    sentences.check(*lines)


def test_swapped_classes_are_told_at_the_call(sentences):
    with pytest.warns(um.UnmaskWarning) as caught:
        um.eer([0.0, 1.0], [2.0, 3.0])
    sentences.check(*(str(one.message) for one in caught))
    assert caught[0].filename == __file__


def test_functions_of_the_package_can_be_sent_elsewhere():
    assert pickle.loads(pickle.dumps(um.evaluate)) is um.evaluate
