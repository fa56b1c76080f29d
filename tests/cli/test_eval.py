"""``unmask eval`` and ``unmask compare`` as a user runs them."""

import gzip
import json
import os
import subprocess
import sys

import jsonschema
import numpy as np
import pytest
from tests.helpers.populations import two_systems

import unmask as um


@pytest.fixture
def folder(tmp_path):
    lines, other, key = two_systems(0, 6, 3, noise=2)
    (tmp_path / "scores").write_text("\n".join(lines) + "\n")
    (tmp_path / "other").write_text("\n".join(reversed(other)) + "\n")
    (tmp_path / "trials").write_text("\n".join(key[::-1]) + "\n")
    return tmp_path


def test_table_on_stdout_remarks_on_stderr(folder, unmask):
    done = unmask("eval", "scores", "--key", "trials", "--ci", 20)
    assert done.returncode == 0, done.stderr
    assert "EER [%]" in done.stdout
    assert "kaldi-scores" in done.stderr
    assert "kaldi" not in done.stdout
    assert "trial bootstrap" in done.stdout


def test_json_equals_the_python_api(folder, unmask):
    done = unmask(
        "eval", "scores", "-k", "trials", "-s", "pattern:^(s[0-9]+)-", "--ci", 20, "-f", "json",
        "--seed", 7,
    )  # fmt: skip
    result = json.loads(done.stdout)
    jsonschema.validate(result, um.report.json_schema())
    scores = um.read_scores(
        folder / "scores", key=folder / "trials", speakers="pattern:^(s[0-9]+)-"
    )
    expected = um.document(um.evaluate(scores, replicates=20, seed=7)).to_dict()
    assert result["results"] == expected["results"]
    assert result["results"][0]["n"]["speakers"] == 6


@pytest.mark.parametrize("format", ["csv", "md", "latex"])
def test_other_formats_into_a_file(folder, format, unmask):
    done = unmask("eval", "scores", "-k", "trials", "--ci", 0, "-f", format, "-o", "out.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr.rstrip().endswith("wrote out.txt")
    assert "EER" in (folder / "out.txt").read_text().upper()


def test_stdin_and_gzip(folder, unmask):
    text = (folder / "scores").read_text()
    (folder / "scores.gz").write_bytes(gzip.compress(text.encode()))
    piped = unmask("eval", "-", "-k", "trials", "--ci", 0, "-f", "csv", "-q", stdin=text)
    packed = unmask("eval", "scores.gz", "-k", "trials", "--ci", 0, "-f", "csv", "-q")
    assert piped.returncode == packed.returncode == 0, piped.stderr + packed.stderr
    values = [
        [line.split(",")[1:3] for line in done.stdout.splitlines()] for done in (piped, packed)
    ]
    assert values[0] == values[1]


def test_several_files_and_figures(folder, unmask):
    done = unmask(
        "eval", "scores", "other", "-k", "trials", "--ci", 0, "--figures", "drawn",
        "--figure-formats", "svg",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (folder / "drawn").iterdir()} == {
        "calibration_plot.svg", "det.svg", "ece_profile.svg", "pav_map.svg",
        "score_histograms.svg",
    }  # fmt: skip
    assert "other" in (folder / "drawn" / "det.svg").read_text()


def test_compare_two_files(folder, unmask, sentences):
    done = unmask(
        "compare", "scores", "other", "-k", "trials", "-s", "pattern:^(s[0-9]+)-", "--ci", 50,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "other − scores" in done.stdout
    sentences.check(next(line for line in done.stdout.splitlines() if "EER of scores" in line))


def test_compare_needs_two_systems(folder, unmask, sentences):
    done = unmask("compare", "scores", "-k", "trials")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])


BAD = {
    "absent": (None, "absent"),
    "empty": (b"", "empty"),
    "short line": (b"a b 1.0\na b\n", "line 2"),
    "text for a number": (b"a b 1.0\na c high\n", "line 2"),
    "NaN": (b"a b 1.0\na c nan\n", "line 2"),
    "binary": (bytes(range(256)) * 8, ""),
    "truncated gzip": (gzip.compress(b"a b 1.0\n" * 1000)[:-20], ""),
    "duplicates": (b"a b 1.0\na b 2.0\n", "a b"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_1(folder, case, unmask):
    content, text = BAD[case]
    name = case.replace(" ", "-") + (".gz" if "gzip" in case else "")
    if content is not None:
        (folder / name).write_bytes(content)
    before = set(folder.iterdir())
    done = unmask("eval", name, "-k", "trials", "-o", "out.json", "--figures", "drawn")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("unmask: ")
    assert name in done.stderr
    assert text in done.stderr
    assert set(folder.iterdir()) == before


def test_one_class_only_is_told_with_the_counts(folder, unmask):
    text = (folder / "trials").read_text().replace("nontarget", "target")
    (folder / "all-targets").write_text(text)
    done = unmask("eval", "scores", "-k", "all-targets", "-q")
    assert done.returncode == 1
    assert "108 target and 0 nontarget" in done.stderr


def test_missing_trials_are_counted_when_skipped(folder, unmask):
    lines = (folder / "trials").read_text().splitlines()
    (folder / "part").write_text("\n".join(lines[5:]) + "\n")
    refused = unmask("eval", "scores", "-k", "part")
    assert refused.returncode == 1
    assert "5 of its 108 trials" in refused.stderr
    done = unmask("eval", "scores", "-k", "part", "--missing", "skip", "-f", "json", "--ci", 0)
    result = json.loads(done.stdout)
    assert result["inputs"][0]["missing"] == 5
    left_out = "scores: 5 trials without score or label and 0 repeated trials were left out"
    assert left_out in result["warnings"]
    assert left_out in unmask("eval", "scores", "-k", "part", "--missing", "skip", "--ci", 0).stdout


def test_a_folder_that_cannot_be_written(folder, unmask):
    done = unmask("eval", "scores", "-k", "trials", "--ci", 0, "-o", "no/such/out")
    assert done.returncode == 1
    assert "no/such/out" in done.stderr


def test_bad_usage_is_exit_code_2(folder, unmask):
    assert unmask("eval", "--no-such-option").returncode == 2
    assert unmask("eval", "scores", "-f", "xlsx").returncode == 2


def test_version_and_help(unmask):
    command = [sys.executable, "-m", "unmask", "--version"]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=path)
    assert done.stdout == f"unmask {um.__version__}\n"
    assert "compare" in unmask("--help").stdout


def test_groups_that_are_none_cost_one_line(folder, unmask, sentences):
    rng = np.random.default_rng(0)
    sexes = {"a": "f", "b": "f", "c": "m", "d": "m"}
    lines = [
        (one, two, sexes[one], sexes[two], "target" if one == two else "nontarget", rng.normal())
        for one in sexes
        for two in sexes
        for _ in range(4)
    ]
    head = "enrol,test,enrol_speaker,test_speaker,enrol_sex,test_sex,label,score"

    def table(name, give=lambda who, sex: sex):
        rows = [
            f"{a},{b}{i},{a},{b},{give(a, f)},{give(b, g)},{kind},{score}"
            for i, (a, b, f, g, kind, score) in enumerate(lines)
        ]
        (folder / name).write_text("\n".join([head, *rows]) + "\n")
        return name

    done = unmask("eval", table("two.csv"), "--by", "sex", "--alpha", "0.2", "--ci", 0)
    assert done.returncode == 0
    assert "GARBE (alpha 0.2)" in done.stdout
    for name, give, words in (
        ("one.csv", lambda who, sex: "f", "expected two groups or more, found one: f"),
        ("none.csv", lambda who, sex: "" if who == "d" else sex, "found none of 1 (first: d)"),
        ("torn.csv", lambda who, sex: rng.choice(["f", "m"]), "one group of each speaker"),
    ):
        done = unmask("eval", table(name, give), "--by", "sex", "-q", "--ci", 0)
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    done = unmask("eval", "two.csv", "--by", "age", "-q")
    assert (done.returncode, done.stdout) == (1, "")
    sentences.check(done.stderr.splitlines()[-1])
