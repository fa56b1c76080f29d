"""Thresholds, conventions and the build gate as a user asks for them."""

import csv
import io
import json

import jsonschema
import numpy as np
import pytest

import unmask as um


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, prefix, noise in (("scores", "s", 0), ("dev", "d", 0), ("poor", "s", 1.5)):
        lines, key = ["enrol\ttest\tcosine\troom"], []
        for enrol in range(12):
            for test in range(36):
                same = enrol == test // 3
                score = rng.normal(3 if same else 0, 1 + noise)
                trial = f"{prefix}{enrol:02d}-e\t{prefix}{test // 3:02d}-u{test}"
                lines.append(f"{trial}\t{score:.4f}\t{'ab'[test % 2]}")
                key.append(f"{trial} {'target' if same else 'nontarget'}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{prefix}.key").write_text("\n".join(key).replace("\t", " ") + "\n")
    return tmp_path


WHO = ("-s", "pattern:^([sd][0-9]+)-")


def test_thresholds_stand_in_every_table(folder, unmask):
    ask = ("eval", "scores.tsv", "-k", "s.key", *WHO, "--threshold", 1.5, "--far", 0.2, "--ci", 30)
    done = unmask(*ask)
    assert done.returncode == 0, done.stderr
    for row in ("FAR (at 1.5) [%]", "FRR (at 1.5) [%]", "Cost (0.01,at 1.5)", "Threshold (EER)",
                "Threshold (minDCF (0.01))", "Threshold (FAR ≤ 20 %)", "FRR (FAR ≤ 20 %) [%]",
                "Safe threshold (FAR ≤ 20 %)", "FRR (safe for FAR ≤ 20 %) [%]"):  # fmt: skip
        assert row in done.stdout
        assert row in unmask(*ask, "-f", "md").stdout
    assert "Safe threshold" in unmask(*ask, "-f", "latex").stdout
    rows = list(csv.DictReader(io.StringIO(unmask(*ask, "-f", "csv").stdout)))
    named = {row["metric"]: row for row in rows}
    assert float(named["eer"]["threshold"])
    assert float(named["safe_threshold"]["value"]) == float(named["threshold"]["high"])
    result = json.loads(unmask(*ask, "-f", "json").stdout)
    jsonschema.validate(result, um.report.json_schema())
    grouped = unmask(*ask, "--by", "room")
    assert grouped.returncode == 0, grouped.stderr
    assert "Threshold (FAR ≤ 20 %)" in grouped.stdout


def test_a_development_list_sets_thresholds(folder, unmask, sentences):
    ask = ("eval", "scores.tsv", "-k", "s.key", *WHO, "--far", 0.05, "--ci", 20)
    done = unmask(*ask, "--dev", "dev.tsv", "--dev-key", "d.key")
    assert done.returncode == 0, done.stderr
    assert "development" in done.stdout
    assert "FAR (threshold of FAR ≤ 5 %) [%]" in done.stdout
    assert "FRR (threshold of EER) [%]" in done.stdout
    shared = unmask(*ask, "--dev", "scores.tsv")
    assert shared.returncode == 1
    sentences.check(shared.stderr.splitlines()[-1])
    alone = unmask(*ask, "--dev-key", "d.key")
    assert alone.returncode == 1
    assert alone.stderr.count("\n") == 1
    stream = unmask(*ask, "--stream", "--dev", "dev.tsv")
    sentences.check(stream.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    "options",
    [
        ("--convention", "vox"),
        ("--convention", "kaldi", "--convention", "voxsrc"),
        ("--convention", "voxsrc", "--p-target", 0.1),
        ("--convention", "voxsrc", "--eer", "raw"),
        ("--far", 2),
        ("--eer", "best"),
        ("--equalise", "floor"),
        ("--c-primary",),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_one_line(folder, unmask, options, sentences):
    done = unmask("eval", "scores.tsv", "-k", "s.key", "--ci", 0, *options)
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert not done.stdout


def test_a_rate_is_read_in_per_cent_as_well(folder, unmask):
    ask = ("eval", "scores.tsv", "-k", "s.key", *WHO, "--ci", 0)
    for option, share, words in (("--far", "0.05", ["5%", "5 %"]), ("--fpr", "0.001", ["0.1%"])):
        expected = unmask(*ask, option, share).stdout
        for word in words:
            assert unmask(*ask, option, word).stdout == expected
    for word in ("five", "%", "5%%", ""):
        done = unmask(*ask, "--far", word)
        assert done.returncode == 2
        assert f"expected a rate such as 0.01 or 1%, found {word}" in done.stderr


def test_conventions_and_equal_conditions_are_named_below_the_table(folder, unmask, sentences):
    ask = ("eval", "scores.tsv", "-k", "s.key", *WHO, "--ci", 10)
    told = unmask(*ask, "--convention", "kaldi").stdout
    sentences.check(next(line for line in told.splitlines() if "convention kaldi." in line))
    assert "EER, kaldi [%]" in told
    assert "D_sys, histogram" in unmask(*ask, "--d-sys", "histogram").stdout
    equal = unmask(
        *ask, "--equalise", "room", "--p-target", 0.01, "--p-target", 0.005, "--c-primary"
    )
    sentences.check(next(line for line in equal.stdout.splitlines() if "of room " in line))
    assert "actC_primary (p target 0.01+0.005)" in equal.stdout
    both = unmask(
        "compare", "scores.tsv", "poor.tsv", "-k", "s.key", "--ci", 10, "--convention", "voxsrc",
    )  # fmt: skip
    sentences.check(next(line for line in both.stdout.splitlines() if "convention voxsrc." in line))


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_infinite_false_alarms_leave_no_threshold_for_a_demand(folder, unmask, options):
    lines = (folder / "scores.tsv").read_text().splitlines()
    key = (folder / "s.key").read_text().splitlines()
    false_alarms = [row for row, line in enumerate(key, 1) if line.endswith("nontarget")]
    for row in false_alarms[::20]:
        enrol, test, _, room = lines[row].split("\t")
        lines[row] = f"{enrol}\t{test}\tinf\t{room}"
    (folder / "infinite.tsv").write_text("\n".join(lines) + "\n")
    words = ("infinite.tsv", "-k", "s.key", *WHO, "--far", 0.01, "--far", 0.2, "-f", "json")
    done = unmask("eval", *words, "--ci", 50, *options)
    assert done.returncode == 0, done.stderr
    by_demand = {
        (metric["metric"], metric["params"]["far"], metric["params"].get("safe")): metric
        for metric in json.loads(done.stdout)["results"]
        if metric["params"].get("far")
    }
    undefined = by_demand["threshold", 0.01, None]
    # Five in a hundred nontarget trials pass every threshold.
    assert undefined["value"] is None
    assert undefined["interval"] is None
    assert "infinite score" in undefined["no_interval"]
    assert by_demand["frr", 0.01, None]["value"] is None
    assert np.isfinite(by_demand["threshold", 0.2, None]["value"])


def gate(unmask, *more, first="scores.tsv", second="poor.tsv"):
    ask = ("compare", f"old={first}", f"new={second}", "-k", "s.key", *WHO, "--ci", 50)
    return unmask(*ask, *more)


def test_a_build_fails_where_the_second_system_is_clearly_worse(folder, unmask, sentences):
    done = gate(unmask, "--fail-if", "eer worsens")
    assert done.returncode == 3
    assert "EER [%]" in done.stdout
    sentences.check(done.stderr.splitlines()[-1])
    assert (
        gate(unmask, "--fail-if", "eer worsens", first="poor.tsv", second="scores.tsv").returncode
        == 0
    )
    assert gate(unmask, "--fail-if", "eer worsens", second="scores.tsv").returncode == 0
    several = gate(unmask, "--fail-if", "eer worsens", "--fail-if", "d_sys worsens")
    assert several.returncode == 3
    quiet = gate(unmask, "--fail-if", "eer worsens", "-q")
    assert (quiet.returncode, quiet.stderr.count("\n")) == (3, 1)
    assert "failed: eer worsens" in quiet.stderr
    missing = gate(unmask, "--fail-if", "eer worsens", second="absent.tsv")
    assert missing.returncode == 1
    assert gate(unmask, "--fail-if").returncode == 2
    assert several.stderr.count("failed:") == 2


def test_of_safeguards_a_lower_eer_is_worse(folder, unmask, sentences):
    assert gate(unmask, "--fail-if", "eer worsens", "--privacy").returncode == 0
    turned = {"first": "poor.tsv", "second": "scores.tsv"}
    assert gate(unmask, "--fail-if", "eer worsens", "--privacy", **turned).returncode == 3
    assert gate(unmask, "--fail-if", "d_sys worsens", "--privacy", **turned).returncode == 3
    (folder / "pp.tsv").write_bytes((folder / "poor.tsv").read_bytes())
    named = gate(unmask, "--fail-if", "eer worsens", second="pp.tsv")
    assert named.returncode == 1
    sentences.check(named.stderr.splitlines()[-1])
    assert not named.stdout


@pytest.mark.parametrize("words", ["eer", "wer worsens", "l_w worsens"])
def test_conditions_that_nobody_can_judge_are_refused(folder, unmask, words, sentences):
    done = gate(unmask, "--fail-if", words)
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert not done.stdout
    none = gate(unmask, "--fail-if", "eer worsens", "--ci", 0)
    sentences.check(none.stderr.splitlines()[-1])
