"""``unmask forensic`` and ``--scores-are`` as a user runs them."""

import json

import numpy as np
import pytest
from tests.engine.test_validation import TEN, drawn

import unmask as um

LABELS = {True: "SS", False: "DS"}


@pytest.fixture
def folder(tmp_path):
    target, nontarget = drawn(0)
    rng = np.random.default_rng(0)
    speakers = [f"p{k}" for k in range(12)]
    rows = []
    for i, llr in enumerate(np.concatenate([target, nontarget])):
        own = i < target.size
        one, other = rng.choice(12, 2, replace=False)
        who = (speakers[one], speakers[one if own else other])
        rows.append((f"r{i}", f"q{i}", LABELS[own], *who, llr))
    for unit, change in (("log10", float), ("ln", lambda x: x * TEN), ("lr", lambda x: 10**x)):
        lines = ["enrol,test,label,enrol_speaker,test_speaker,score"]
        lines += [",".join([*row[:-1], repr(float(change(row[-1])))]) for row in rows]
        (tmp_path / f"{unit}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def values(done):
    assert done.returncode == 0, done.stderr
    return {one["metric"]: one for one in json.loads(done.stdout)["results"]}


def test_all_units_give_the_same_numbers_in_every_command(folder, unmask):
    for command in ("forensic", "eval", "calibrate"):
        made = [
            values(unmask(command, f"{u}.csv", "--scores-are", u, "--ci", 20, "-f", "json", "-q"))
            for u in ("ln", "log10", "lr")
        ]
        for one in made[1:]:
            assert one.keys() == made[0].keys()
            for name in one:
                expected = made[0][name]["value"]
                if isinstance(expected, float):
                    assert one[name]["value"] == pytest.approx(expected, abs=1e-6), (command, name)
    streamed = unmask("eval", "lr.csv", "--scores-are", "lr", "--ci", 0, "-f", "json", "--stream")
    whole = unmask("eval", "ln.csv", "--ci", 0, "-f", "json")
    assert values(streamed)["cllr"]["value"] == pytest.approx(values(whole)["cllr"]["value"])


def test_a_table_a_page_and_charts_are_written(folder, unmask, sentences):
    done = unmask(
        "forensic", "log10.csv", "--scores-are", "log10", "--case", 1.2, "--ci", 20,
        "--page", "page.html", "--figures", "drawn", "--figure-formats", "json",
        "--tippett", "above",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for word in ("C_llr^cal", "devPAV", "Largest LR supported", "LR of the case"):
        assert word in done.stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<img") == 4
    sentences.check(page.partition("<h1>")[2].partition("</h1>")[0])
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    drawn = {path.stem for path in (folder / "drawn").iterdir()}
    assert drawn == {"tippett", "pav_map", "ece_profile", "calibration_plot"}


def test_a_column_of_labels_with_another_name_is_named_and_works(folder, unmask, sentences):
    text = (folder / "log10.csv").read_text()
    (folder / "truth.csv").write_text(
        text.replace("label", "truth").replace("SS", "H1").replace("DS", "H2")
    )
    words = ("forensic", "truth.csv", "--scores-are", "log10", "--ci", 0, "-f", "json")
    done = unmask(*words)
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    usual = values(unmask("forensic", "log10.csv", *words[2:]))
    assert values(unmask(*words, "--columns", "label=truth"))["cllr"] == usual["cllr"]


CASE = """
[case]
title = "Comparison <17>"
number = "2026-17"
examiner = "A. Examiner"
date = 2026-11-19
same_speaker = "The caller is the suspect."
different_speaker = "The caller is somebody else."
conditions = "telephone, 20 s"
note = ["first note"]
"""


def test_the_page_has_the_case_the_column_and_the_counts_by_speaker(folder, unmask, sentences):
    (folder / "case.toml").write_text(CASE)
    words = ("forensic", "log10.csv", "--scores-are", "log10", "--ci", 20, "--page", "page.html")
    done = unmask(*words, "--case-file", "case.toml", "--note", "second note")
    assert done.returncode == 0, done.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    for expected in (
        "<h1>Comparison &lt;17&gt;</h1>", "2026-17", "A. Examiner", "2026-11-19", "telephone, 20 s",
        "The caller is the suspect.", "The caller is somebody else.", "first note", "second note",
        "60 same-speaker and 170 different-speaker trials",
        "column log10, read as log10 likelihood ratios",
        f"unmask, version {um.__version__}", "Comparisons by speaker",
    ):  # fmt: skip
        assert expected in page, expected
    rows = [line.split(",") for line in (folder / "log10.csv").read_text().splitlines()[1:]]
    same = sum(row[2] == "SS" and "p3" in row[3:5] for row in rows)
    different = sum(row[2] == "DS" and "p3" in row[3:5] for row in rows)
    assert f"<span>p3: {same}, {different}</span>" in page
    # Without a record case, examiner, date and conditions are lines to fill in.
    assert unmask(*words).returncode == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count('"empty"></td>') == 4
    sentences.check(page.partition("<h1>")[2].partition("</h1>")[0])
    assert unmask(*words, "--title", "Another").returncode == 0
    assert "<h1>Another</h1>" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["title = 'x'", "[case]\nexaminor = 'x'", "[case]\nnumber = 17", "[case"]
)
def test_a_record_that_cannot_be_read_is_one_line(folder, unmask, text, sentences):
    (folder / "case.toml").write_text(text)
    words = (
        "forensic",
        "log10.csv",
        "--scores-are",
        "log10",
        "--ci",
        0,
        "--case-file",
        "case.toml",
    )
    done = unmask(*words, "--page", "page.html")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert done.stderr.count("\n") == 1
    assert not (folder / "page.html").exists()
    sentences.check(unmask(*words).stderr)


def test_what_has_no_effect_or_no_sense_is_one_line(folder, unmask):
    one_class = folder / "log10.csv"
    text = one_class.read_text().splitlines()
    (folder / "same.csv").write_text("\n".join([line for line in text if ",DS," not in line]))
    (folder / "nan.csv").write_text("\n".join([*text, "a,b,SS,p1,p1,nan"]))
    for words, found in {
        ("log10.csv",): "(--scores-are): expected ln, log10 or lr",
        ("log10.csv", "--scores-are", "lr"): "expected a likelihood ratio above 0",
        ("same.csv", "--scores-are", "log10"): "nontarget",
        ("nan.csv", "--scores-are", "log10"): "score",
        ("log10.csv", "--scores-are", "log10", "--folds", 4): "--folds: is for --calibrate",
        ("log10.csv", "--scores-are", "log10", "--tippett", "above"): "is for --figures and --page",
        ("log10.csv", "--scores-are", "log10", "--page", "a.txt"): ".html or .pdf",
    }.items():
        done = unmask("forensic", *words)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert found in done.stderr


def test_the_wrong_unit_is_said_with_both_numbers(folder, unmask, sentences):
    rng = np.random.default_rng(0)
    scores = um.Scores.from_arrays(rng.normal(2, 2, 500), rng.normal(-2, 2, 500))
    lines = [
        f"{'SS' if own else 'DS'} {x}"
        for own, x in zip(scores.is_target, scores.scores(), strict=True)
    ]
    (folder / "llrs.csv").write_text("label score\n" + "\n".join(lines) + "\n")
    for command in ("forensic", "eval"):
        done = unmask(command, "llrs.csv", "--scores-are", "log10", "--ci", 0)
        assert done.returncode == 0, done.stderr
        (told,) = [line for line in done.stdout.splitlines() if "--scores-are ln" in line]
        sentences.check(told)
