"""The surface of the command line: names, widths, completion, refusals, charts of a comparison."""

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import unmask as um
import unmask.figures
from unmask.cli import COMMANDS, EXAMPLES, STOPPED, main
from unmask.estimate import Estimate, Interval
from unmask.report import Document, Row, render


@pytest.fixture
def folder(tmp_path):
    """Two systems on the same trials of eight people, each scored four times with everybody."""
    rng = np.random.default_rng(0)
    pairs = [(f"p{a}", f"p{b}-{u}") for a in range(8) for b in range(8) for u in range(4)]
    own = np.array([test.startswith(f"{enrol}-") for enrol, test in pairs])
    (tmp_path / "trials").write_text(
        "".join(
            f"{a} {b} {'' if o else 'non'}target\n" for (a, b), o in zip(pairs, own, strict=True)
        )
    )
    for name, strength in (("a.txt", 2.0), ("b.txt", 2.1)):
        scores = strength * own + rng.normal(size=len(pairs))
        (tmp_path / name).write_text(
            "".join(f"{a} {b} {s:.3f}\n" for (a, b), s in zip(pairs, scores, strict=True))
        )
    return tmp_path


WHO = ("-k", "trials", "-s", "pattern:^(p[0-9])")


def test_files_are_systems_by_name(unmask, sentences):
    result = json.loads(
        unmask("eval", "B1=a.txt", "ours=b.txt", *WHO, "--ci", "0", "-f", "json").stdout
    )
    assert {row["conditions"]["system"] for row in result["results"]} == {"B1", "ours"}
    eer = next(row for row in result["results"] if row["metric"] == "eer")
    assert eer["unit"] == "share"
    assert 0 < eer["value"] < 0.5
    sentences.check(unmask("eval", "x=a.txt", "x=b.txt", *WHO).stderr)
    sentences.check(unmask("eval", "=a.txt").stderr)


def test_a_comparison_is_drawn_and_says_no_clear_winner(unmask, folder, sentences):
    done = unmask(
        "compare", "A=a.txt", "B=b.txt", "-k", "trials", "--ci", "40", "--figures", "drawn",
        "--figure-formats", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sentences.check(next(line for line in done.stdout.splitlines() if "the EER of" in line))
    drawn = {path.stem for path in (folder / "drawn").iterdir()}
    assert {"compare_det", "compare_differences", "delta_cp_map"} <= drawn


def test_two_safeguards_are_never_better(unmask, folder, sentences):
    """``--privacy`` turns verdict, columns and charts; names of files and folders do as well."""
    asked = ("-k", "trials", "--ci", "40", "--figures", "drawn", "--figure-formats", "json")
    done = unmask("compare", "A=a.txt", "B=b.txt", *asked, "--privacy")
    sentences.check(next(line for line in done.stdout.splitlines() if "the EER of" in line))
    assert "B protects more" in done.stdout
    assert "read as safeguards" not in done.stdout + done.stderr
    drawn = {path.stem: path.read_text() for path in (folder / "drawn").iterdir()}
    assert "B protects more" in drawn["compare_differences"]
    assert "protects less" in drawn["delta_cp_map"]
    (folder / "asv_anon_x").mkdir()
    (folder / "asv_anon_x" / "scores.txt").write_text((folder / "b.txt").read_text())
    files = ("compare", "A=a.txt", "B=asv_anon_x/scores.txt", "-k", "trials", "--ci", "40")
    done = unmask(*files)
    told = "read as safeguards: anon in asv_anon_x/scores.txt; --no-privacy"
    assert (done.stdout + done.stderr).count(told) == 1
    assert "B protects more" in done.stdout
    latex = unmask(*files, "-f", "latex").stdout
    assert "as safeguards. " in latex.partition("\\caption{B against A")[2]
    assert "difference in protection" in latex
    plain = unmask(*files, "--no-privacy").stdout
    assert "no clear winner" in plain
    assert "B recognises better" in plain
    assert not [text for text in (*drawn.values(), done.stdout, latex) if "is better" in text]


@pytest.mark.parametrize("width", [60, 200])
def test_tables_are_as_wide_as_the_terminal(width):
    long = Interval(0.4, 0.6, 0.95, "speaker", 10, 0)
    many = tuple(Estimate(f"metric_{i}", 0.5, "%", long) for i in range(6))
    names = ("a long name of a system", "another")
    rows = tuple(Row({"system": name, "set": "libri_dev_trials_f"}, many) for name in names)
    shown = render(Document(rows, warnings=("word " * 60,)), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.count("50.00 [40.00, 60.00]") == 12
    assert (max(map(len, shown.splitlines())) > 100) == (width == 200)


def test_outputs_are_refused_before_anything_is_read(unmask, folder, sentences):
    for option in (
        ("-o", "nowhere/x.json"),
        ("-o", "."),
        ("--figures", "trials/x"),
        ("--figures", "d", "--figure-formats", "gif"),
    ):
        done = unmask("eval", "no-such-file", *option)
        assert done.returncode == 1
        sentences.check(done.stderr)


def test_refusals_name_the_options_of_the_command(unmask, folder, sentences):
    (folder / "a.txt").write_text((folder / "a.txt").read_text().split("\n", 1)[1])
    done = unmask("eval", "a.txt", "-k", "trials")
    sentences.check(done.stderr.splitlines()[-1])


def test_every_command_has_examples(monkeypatch, capsys):
    assert set(EXAMPLES) <= set(COMMANDS)
    monkeypatch.setattr(sys, "argv", ["unmask", "eval", "--help"])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    for word in ("Intervals", "What is written", "Where it runs", *EXAMPLES["eval"][:1]):
        assert word in shown


def test_completion_works_in_bash(tmp_path):
    program = tmp_path / "unmask"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m unmask "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    asked = (
        "source <(unmask --show-completion bash); COMP_WORDS=(unmask compare --fig); COMP_CWORD=2;"
        ' _unmask_completion unmask; echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    source = str(Path(um.__file__).parents[1])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source}
    done = subprocess.run(
        ["bash", "-c", asked], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["--figures", "--figure-formats"]


def test_whoever_stops_is_told_how_to_go_on(monkeypatch, capsys):
    def stopped(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unmask.cli.app", stopped)
    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == 130
    assert capsys.readouterr().err == f"unmask: {STOPPED}\n"


def test_the_worst_case_of_two_systems_is_one_chart():
    counts = np.array([1, 10, 100])
    rates = np.array([[0.1], [0.3], [0.6]])
    curve = SimpleNamespace(
        counts=counts, impostors=10, values=rates, low=rates / 2, high=rates, level=0.95
    )
    study = SimpleNamespace(operating=(None,), empirical=curve, predicted=curve, population=100)
    figure = um.figures.worst_case_of_systems({"A": study, "B": study})
    assert "N = 100" in figure.title
    rows = next(iter(figure.spec()["datasets"].values()))
    assert {row["system"] for row in rows} == {"A", "B"}


def test_charts_are_loaded_to_be_drawn():
    code = (
        "import sys, unmask.cli.stress, unmask.cli.privacy\n"
        "import unmask.report.frameworks\n"
        "print(*{'altair', 'vl_convert'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []


def test_no_column_twice():
    estimate = Estimate("rank", 0.5, "%")
    document = Document((Row({"metric": "linkability"}, (estimate,)),))
    table = pl.read_csv(io.StringIO(render(document, "csv")))
    assert table.columns[:4] == ["of_metric", "metric", "value", "unit"]
    assert table["unit"].to_list() == ["share"]


def test_validate_finds_what_assess_would(unmask, folder, sentences):
    (folder / "c.toml").write_text(
        '[[safeguards]]\nname = "ours"\n[safeguards.scores]\noo = "a.txt"\nkey = "trials"\n'
    )
    done = unmask("assess", "c.toml", "--validate")
    told, time, fine = done.stdout.splitlines()
    assert fine == "c.toml: fine"
    sentences.check(told)
    assert time.startswith("A run takes about ")
    (folder / "utt2spk").write_text("p0-0 p0\n")
    done = unmask("assess", "c.toml", "--validate", "--set", "safeguards.0.scores.speakers=utt2spk")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    (folder / "flat").mkdir()
    (folder / "flat" / "one.wav").write_bytes(b"RIFF")
    (folder / "c.toml").write_text(
        '[original]\naudio = "flat"\n[[safeguards]]\nname = "x"\naudio = "flat"\n'
    )
    assert unmask("assess", "c.toml", "--validate").returncode == 1


def scores_of_two(strength=2.0):
    rng = np.random.default_rng(1)
    return strength + rng.normal(size=60), rng.normal(size=90)


def test_evaluate_takes_arrays_frames_and_named_files(folder):
    target, nontarget = scores_of_two()
    arrays = um.evaluate((target, nontarget), replicates=0)["system"]["eer"].value
    assert arrays == um.eer(target, nontarget)
    frame = pl.DataFrame(
        {
            "enrol": [f"a{i}" for i in range(150)],
            "test": [f"b{i}" for i in range(150)],
            "label": ["target"] * 60 + ["nontarget"] * 90,
            "plda": np.concatenate([target, nontarget]),
        }
    )
    assert um.evaluate(frame, replicates=0)["plda"]["eer"].value == arrays
    named = um.evaluate({"A": folder / "a.txt"}, key=folder / "trials", replicates=0)
    assert (
        named["A"]["eer"].value
        == um.evaluate(folder / "a.txt", key=folder / "trials", replicates=0)["a"]["eer"].value
    )


def test_compare_takes_frames_and_named_files(folder, sentences):
    files = {"A": folder / "a.txt", "B": folder / "a.txt"}
    same = um.compare(files, key=folder / "trials", replicates=0)
    assert (same.first, same.second) == ("A", "B")
    assert same["eer"].value == 0
    table = um.read_scores(files, key=folder / "trials")
    with pytest.raises(TypeError) as error:
        um.compare(table, key=folder / "trials")
    sentences.check(str(error.value))
    assert um.compare(table, replicates=0)["eer"].first.value == same["eer"].first.value


def test_swapped_classes_and_labels_are_noticed(sentences):
    target, nontarget = scores_of_two(4.0)
    with pytest.warns(UserWarning, match="are they swapped"):
        assert um.eer(nontarget, target) == 0.5
    swapped = um.evaluate((nontarget, target), replicates=0)
    assert swapped.notices[0].code == "inverted"
    sentences.check(swapped.warnings[0])
    scores, labels = np.concatenate([target, nontarget]), np.repeat([1, 0], [60, 90])
    for call in (
        lambda: um.eer(scores, labels),
        lambda: um.min_dcf(labels, scores),
        lambda: um.evaluate((scores, labels == 1)),
    ):
        with pytest.raises(um.InputError, match=r"give scores\[labels == 1\]"):
            call()
    accepted, rejected = np.repeat([1.0, 0.0], [9, 1]), np.zeros(10)
    assert um.eer(accepted, rejected) == um.Roc.from_scores(accepted, rejected).eer()


def test_frames_and_charts_of_results(monkeypatch, sentences):
    result = um.evaluate(scores_of_two(), replicates=10)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(um.InputError) as error:
        result.to_pandas()
    sentences.check(str(error.value))
    fake = SimpleNamespace(DataFrame=lambda columns: columns)
    monkeypatch.setitem(sys.modules, "pandas", fake)
    assert result.to_pandas()["metric"][0] == "eer"
    monkeypatch.undo()
    charts = result.figures()
    assert "det" in charts
    assert "det: " in repr(charts)
    assert um.cp_map(*scores_of_two()).figures()
